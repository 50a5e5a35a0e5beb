/* How far two class keys are from each other. The tuner makes keys (tune/choose/key.c); an operation's rows say what a field weighs. */
#ifndef SPK_STORE_CLASS_KEY_H
#define SPK_STORE_CLASS_KEY_H

#include <stddef.h>

#define SPK_MAX_KEY_TEXT 1024

/* Distance of two keys with the same exact part; infinity for others. */
double spk_key_distance(const char *a, const char *b);

/* Distance of two classes that calls of one layer may be in, which differ in the number of the caller's tokens alone
 * (spk_key_row.token_group), or by a step in what strays from one pattern to the next (spk_key_row.step_tolerance); infinity for others. Up
 * to eight tokens are kept apart from more, and of these 1, 2, 3 and 4, 5 to 8 from each other. */
double spk_key_size_distance(const char *a, const char *b);

/* What such a class differs in, in words of its own key ("n=64"); "" where it does not. */
void spk_key_size_words(const char *key, const char *other, char *words, size_t size);

/* Bytes that the keys of such classes have in common at their beginning. */
size_t spk_key_size_prefix(const char *key);

#endif
