/* The class of a problem in words: what the machine's key of it says, for people. */
#ifndef SPARSEK_CLI_PROBLEM_CLASS_WORDS_H
#define SPARSEK_CLI_PROBLEM_CLASS_WORDS_H

/* "f32 700x700 n=64 block 8, about 181 blocks, 2 threads"; the key itself where it is not understood. The caller frees it. */
char *class_words(const char *key);

#endif
