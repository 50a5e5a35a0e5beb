/* What the files of GEMM share. */
#ifndef SPK_OP_GEMM_H
#define SPK_OP_GEMM_H

#include "op/product.h"

spk_status spk_gemm_oracle(const spk_mem *mem, const spk_problem *problem, const spk_args *args, const spk_oracle_ask *ask);
spk_status spk_gemm_hard_rows(const spk_problem *problem, int output, spk_rng *rng, spk_row_list *list);

/* Groups (groups.c). */
void spk_gemm_draw_offsets(const spk_problem *problem, int i, spk_rng *rng, int32_t *out);
spk_status spk_gemm_check_offsets(const spk_problem *problem, const spk_args *args);

#endif
