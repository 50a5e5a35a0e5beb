/* What the files of SDDMM share. */
#ifndef SPK_OP_SDDMM_H
#define SPK_OP_SDDMM_H

#include "op/product.h"

spk_status spk_sddmm_oracle(const spk_mem *mem, const spk_problem *problem, const spk_args *args, const spk_oracle_ask *ask);
spk_status spk_sddmm_hard_rows(const spk_problem *problem, int output, spk_rng *rng, spk_row_list *list);

#endif
