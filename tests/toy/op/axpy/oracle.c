/* The oracle of axpy: an element at a time, from its definition. */
#include <math.h>

#include "op/axpy/operands.h"

spk_status spk_axpy_oracle(const spk_mem *mem, const spk_problem *p, const spk_args *args, const spk_oracle_ask *ask)
{
    (void)mem;
    for (int64_t at = 0; at < ask->row_count * ask->cols; at++) {
        const int64_t r = at / ask->cols, row = ask->rows != NULL ? ask->rows[r] : r, col = ask->col0 + at % ask->cols;
        const double ax = args->scalar[AXPY_ALPHA] * spk_operand_get(&p->operand[AXPY_X], args->at[AXPY_X], row, col),
                     y = spk_operand_get(&p->operand[AXPY_Y], args->at[AXPY_Y], row, col);
        if (ask->want != NULL)
            ask->want[at] = ax + y;
        if (ask->magnitude != NULL)
            ask->magnitude[at] = spk_magnitude(fabs(ax) + fabs(y));
    }
    return SPK_OK;
}
