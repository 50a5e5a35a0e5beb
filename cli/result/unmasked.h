/* What a mask costs against the same problem without one. */
#ifndef SPARSEK_CLI_RESULT_UNMASKED_H
#define SPARSEK_CLI_RESULT_UNMASKED_H

#include "cli/result/result.h"

typedef struct unmasked {
    double kept; /* share of the pairs that the problem without the mask has */
    double masked_us, whole_us;
    bool is_measured; /* both, by the store; else both are the cost model's */
    bool is_shaky;    /* measured, but one of them on a busy machine, or at a first look */
} unmasked;

/* false: the problem has no mask, or nothing is known. Runs nothing. r: the problem's stored result. */
bool unmasked_find(const cli *app, const problem *p, const result *r, unmasked *out);
void unmasked_print(const unmasked *u);
json_t *unmasked_json(const unmasked *u);

#endif
