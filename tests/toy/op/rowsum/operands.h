/* Places of rowsum's operands. */
#ifndef SPK_OP_ROWSUM_OPERANDS_H
#define SPK_OP_ROWSUM_OPERANDS_H

#include "op/operation.h"

enum { ROWSUM_X, ROWSUM_D, ROWSUM_S };

spk_status spk_rowsum_oracle(const spk_mem *mem, const spk_problem *problem, const spk_args *args, const spk_oracle_ask *ask);

#endif
