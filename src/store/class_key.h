/* The text of a class key as the store compares it. What its fields say is the tuner's business. */
#ifndef SPK_STORE_CLASS_KEY_H
#define SPK_STORE_CLASS_KEY_H

#define SPK_MAX_KEY_TEXT 1024

/* Distance of two keys with the same exact part; infinity for others. */
double spk_key_distance(const char *a, const char *b);

#endif
