/* After a run: outputs are what the oracle has, gaps in them and all inputs are as they were. */
#include "hostile.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* An output beside the oracle. */
typedef struct beside {
    trial *t;
    int operand;
    const spk_array_info *array;
    double *want, *magnitude, tolerance, worst;
    int64_t worst_row, worst_col;
    double worst_got, worst_want;
} beside;

static double largest(spk_dtype dtype)
{
    return dtype == SPK_F16 ? 65504 : dtype == SPK_F64 ? DBL_MAX : FLT_MAX;
}

/* The smallest difference that the dtype can show near 0. */
static double smallest(spk_dtype dtype)
{
    return dtype == SPK_F16 ? 0x1p-24 : dtype == SPK_F64 ? 0x1p-1074 : dtype == SPK_BF16 ? 0x1p-133 : 0x1p-149;
}

/* In units of the magnitude. Nothing is said of what the oracle has no number for, or what the dtype cannot hold. */
static double error_of(const beside *b, double got, double want, double magnitude)
{
    if (!isfinite(magnitude) || (isinf(want) && got == want))
        return 0;
    if (fabs(want) > 0.9 * largest(b->array->dtype))
        return 0;
    if (isnan(got) != isnan(want) || isinf(got))
        return INFINITY;
    const double difference = fabs(got - want);
    return isnan(want) || difference <= smallest(b->array->dtype) ? 0 : difference / fmax(magnitude, 1e-300);
}

static void look_at_element(beside *b, int64_t row, int64_t col, int64_t place)
{
    const size_t bytes = spk_dtype_bytes(b->array->dtype);
    const int64_t at = row * b->array->cols + col;
    double got = 0;
    (void)spk_cast_values(b->t->context, SPK_F64, &got, b->array->dtype, (char *)b->t->memory[b->operand] + (size_t)place * bytes, 1);
    const double error = error_of(b, got, b->want[at], b->magnitude[at]);
    if (error <= b->worst)
        return;
    b->worst = error;
    b->worst_row = row;
    b->worst_col = col;
    b->worst_got = got;
    b->worst_want = b->want[at];
}

/* All elements; what is between them must be poison still. */
static void look_at_all(beside *b)
{
    trial *t = b->t;
    const spk_array_info *a = b->array;
    const int64_t heads = a->heads > 0 ? a->heads : 1;
    const size_t bytes = spk_dtype_bytes(a->dtype);
    unsigned char *used = calloc((size_t)a->elements, 1);
    for (int64_t item = 0; item < array_items(t, a); item++)
        for (int64_t head = 0; head < heads; head++)
            for (int64_t row = 0; row < a->rows; row++)
                for (int64_t col = 0; col < a->cols; col++) {
                    const int64_t place = array_place(a, item, head, row, col);
                    used[place] = 1;
                    look_at_element(b, (item * heads + head) * a->rows + row, col, place);
                }
    for (int64_t e = 0; e < a->elements; e++)
        if (!used[e] &&
            memcmp((char *)t->memory[b->operand] + (size_t)e * bytes, (char *)t->before[b->operand] + (size_t)e * bytes, bytes) != 0) {
            fail(t, "a gap of %s was written, at element %lld", t->op->operands[b->operand].name, (long long)e);
            break;
        }
    free(used);
}

static void compare_one(trial *t, int operand, tally *sum)
{
    const spk_array_info *a = &t->arrays[operand];
    const int64_t rows = a->rows * (a->heads > 0 ? a->heads : 1) * array_items(t, a);
    beside b = {.t = t, .operand = operand, .array = a};
    b.want = malloc((size_t)(rows * a->cols) * sizeof *b.want);
    b.magnitude = malloc((size_t)(rows * a->cols) * sizeof *b.magnitude);
    spk_status status = spk_default_tolerance(t->context, t->pattern, &t->problem, operand, &b.tolerance);
    if (status == SPK_OK)
        status = spk_oracle(t->context, t->pattern, &t->problem, &t->args, operand, NULL, rows, b.want, b.magnitude);
    if (status != SPK_OK) {
        fail(t, "the oracle refuses what a run took: %s", spk_last_error(t->context));
    } else {
        sum->compared++;
        look_at_all(&b);
        if (b.worst > b.tolerance)
            fail(t, "%s of %s %s: at row %lld, column %lld %g in place of %g, %.3g times the tolerance", t->op->operands[operand].name,
                 t->op->info.name, spk_plan_choice(t->plan), (long long)b.worst_row, (long long)b.worst_col, b.worst_got, b.worst_want,
                 b.worst / b.tolerance);
    }
    free(b.want);
    free(b.magnitude);
}

void trial_compare(trial *t, tally *sum)
{
    for (int i = 0; i < t->op->info.operand_count; i++) {
        if (t->memory[i] == NULL)
            continue;
        if (array_is_out(t, i))
            compare_one(t, i, sum);
        else if (memcmp(t->memory[i], t->before[i], (size_t)array_bytes(&t->arrays[i])) != 0)
            fail(t, "the input %s was written", t->op->operands[i].name);
    }
}
