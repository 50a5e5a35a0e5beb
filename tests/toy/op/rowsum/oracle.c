/* The oracle of rowsum: each output by itself. */
#include <math.h>

#include "op/rowsum/operands.h"

static long double product(const spk_problem *p, const spk_args *item, int64_t row, int64_t col)
{
    return (long double)item->scalar[0] * spk_operand_get(&p->operand[ROWSUM_X], item->at[ROWSUM_X], row, col);
}

spk_status spk_rowsum_oracle(const spk_mem *mem, const spk_problem *p, const spk_args *args, const spk_oracle_ask *ask)
{
    (void)mem;
    for (int64_t at = 0; at < ask->row_count * ask->cols; at++) {
        const int64_t r = at / ask->cols, asked = ask->rows != NULL ? ask->rows[r] : r,
                      rows = p->m * spk_operand_heads(&p->operand[ROWSUM_X]), row = asked % rows;
        const spk_args item = spk_args_item(p, args, asked / rows);
        const int64_t first = ask->output == ROWSUM_D ? ask->col0 + at % ask->cols : 0, end = ask->output == ROWSUM_D ? first + 1 : p->n;
        long double value = 0, size = 0;
        for (int64_t col = first; col < end; col++) {
            value += product(p, &item, row, col);
            size += fabsl(product(p, &item, row, col));
        }
        if (ask->want != NULL)
            ask->want[at] = (double)value;
        if (ask->magnitude != NULL)
            ask->magnitude[at] = spk_magnitude((double)size);
    }
    return SPK_OK;
}
