/* Places of axpy's operands and scalars, for its description, its oracle and its kernels. */
#ifndef SPK_OP_AXPY_OPERANDS_H
#define SPK_OP_AXPY_OPERANDS_H

#include "op/operation.h"

enum { AXPY_X, AXPY_Y, AXPY_D };
enum { AXPY_ALPHA };

spk_status spk_axpy_oracle(const spk_mem *mem, const spk_problem *problem, const spk_args *args, const spk_oracle_ask *ask);

#endif
