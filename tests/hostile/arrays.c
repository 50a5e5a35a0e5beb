/* The arrays of a run: as large as the library says, to the byte, so that a sanitizer sees who goes beyond. */
#include "hostile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool array_is_out(const trial *t, int operand)
{
    return t->op->operands[operand].role == SPK_ROLE_OUT;
}

int64_t array_bytes(const spk_array_info *array)
{
    return array->elements * (int64_t)spk_dtype_bytes(array->dtype);
}

int64_t array_items(const trial *t, const spk_array_info *array)
{
    return array->stride != 0 ? t->info.items : 1;
}

int64_t array_place(const spk_array_info *array, int64_t item, int64_t head, int64_t row, int64_t col)
{
    const bool row_major = array->layout == SPK_ROW_MAJOR;
    return item * array->stride + head * array->head_stride + (row_major ? row * array->ld + col : col * array->ld + row);
}

/* Elements from the first to the last, in arithmetic that does not overflow. */
static long double elements_of(const trial *t, const spk_array_info *a)
{
    if (a->rows == 0 || a->cols == 0 || t->info.items == 0)
        return 0;
    const long double lines = (long double)(a->layout == SPK_ROW_MAJOR ? a->rows : a->cols);
    const long double length = (long double)(a->layout == SPK_ROW_MAJOR ? a->cols : a->rows);
    return (long double)a->ld * (lines - 1) + length + (long double)(a->heads > 1 ? a->heads - 1 : 0) * (long double)a->head_stride +
           (long double)(array_items(t, a) - 1) * (long double)a->stride;
}

void trial_look_at_arrays(trial *t, double *bytes)
{
    *bytes = 0;
    for (int i = 0; i < t->op->info.operand_count; i++) {
        spk_array_info *a = &t->arrays[i];
        *a = (spk_array_info){SPK_SIZED(spk_array_info)};
        if (spk_problem_get_array(t->context, t->pattern, &t->problem, i, a) != SPK_OK)
            fail(t, "%s of a problem that is taken is refused: %s", t->op->operands[i].name, spk_last_error(t->context));
        const long double wanted = elements_of(t, a);
        if (a->elements < 0 || fabsl((long double)a->elements - wanted) > 1e-9L * wanted)
            fail(t, "%s has %lld elements, which should be %.0Lf", t->op->operands[i].name, (long long)a->elements, wanted);
        *bytes += (double)a->elements * (double)spk_dtype_bytes(a->dtype);
    }
}

/* What lies between lines, heads and items is nobody's: no number. */
static void poison_gaps(const trial *t, const spk_array_info *a, unsigned char *memory)
{
    const size_t bytes = spk_dtype_bytes(a->dtype);
    unsigned char *used = calloc((size_t)a->elements, 1);
    for (int64_t item = 0; item < array_items(t, a); item++)
        for (int64_t head = 0; head < (a->heads > 0 ? a->heads : 1); head++)
            for (int64_t row = 0; row < a->rows; row++)
                for (int64_t col = 0; col < a->cols; col++)
                    used[array_place(a, item, head, row, col)] = 1;
    for (int64_t e = 0; e < a->elements; e++)
        if (!used[e])
            memset(memory + (size_t)e * bytes, 0xff, bytes);
    free(used);
}

void trial_make_arrays(trial *t)
{
    t->args = given_args(t->op);
    for (int i = 0; i < t->op->info.operand_count; i++) {
        const spk_array_info *a = &t->arrays[i];
        if (a->elements == 0)
            continue;
        const size_t bytes = (size_t)array_bytes(a);
        t->memory[i] = malloc(bytes);
        t->before[i] = malloc(bytes);
        if (!array_is_out(t, i) && spk_problem_fill(t->context, t->pattern, &t->problem, i, draw_next(&t->d), t->memory[i]) != SPK_OK)
            fail(t, "%s cannot be filled: %s", t->op->operands[i].name, spk_last_error(t->context));
        if (!array_is_out(t, i) && a->dtype != SPK_INT32)
            poison_gaps(t, a, t->memory[i]);
        memcpy(t->args.bytes + t->op->operands[i].offset, &t->memory[i], sizeof t->memory[i]);
    }
    for (int i = 0; i < t->op->info.scalar_count; i++) {
        const double value = (double[]){1, 0.5, -0.75, 0.25, 0}[draw_below(&t->d, 5)];
        memcpy(t->args.bytes + t->op->scalars[i].offset, &value, sizeof value);
    }
    trial_poison_outputs(t);
    for (int i = 0; i < t->op->info.operand_count; i++)
        if (t->memory[i] != NULL && !array_is_out(t, i))
            memcpy(t->before[i], t->memory[i], (size_t)array_bytes(&t->arrays[i]));
}

void trial_poison_outputs(trial *t)
{
    for (int i = 0; i < t->op->info.operand_count; i++)
        if (t->memory[i] != NULL && array_is_out(t, i)) {
            memset(t->memory[i], 0xff, (size_t)array_bytes(&t->arrays[i]));
            memset(t->before[i], 0xff, (size_t)array_bytes(&t->arrays[i]));
        }
}

void trial_release_arrays(trial *t)
{
    for (int i = 0; i < t->op->info.operand_count; i++) {
        free(t->memory[i]);
        free(t->before[i]);
    }
}
