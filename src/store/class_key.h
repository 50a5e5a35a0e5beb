/* How far two class keys are from each other. The tuner makes keys (tune/choose/key.c); an operation's rows say what a field weighs. */
#ifndef SPK_STORE_CLASS_KEY_H
#define SPK_STORE_CLASS_KEY_H

#define SPK_MAX_KEY_TEXT 1024

/* Distance of two keys with the same exact part; infinity for others. */
double spk_key_distance(const char *a, const char *b);

#endif
