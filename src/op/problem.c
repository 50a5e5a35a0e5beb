/* What follows from a problem, whatever its operation. */
#include <stdio.h>
#include <string.h>

#include "op/fields.h"
#include "op/scale.h"

enum { MOST_PROBLEM_BYTES = 512 };

/* Elements from the first to the last of all items; -1: more than 2^62 bytes. Whatever reading the operation's fields has multiplied. */
static int64_t extent_of(const spk_operand *o, int64_t items)
{
    int64_t lines, heads, more, all = spk_operand_length(o);
    if (spk_operand_is_empty(o))
        return 0;
    if (__builtin_mul_overflow(o->ld, spk_operand_lines(o) - 1, &lines) ||
        __builtin_mul_overflow(o->head_stride, spk_operand_heads(o) - 1, &heads) || __builtin_mul_overflow(o->stride, items - 1, &more) ||
        __builtin_add_overflow(all, lines, &all) || __builtin_add_overflow(all, heads, &all) || __builtin_add_overflow(all, more, &all))
        return -1;
    return all <= (INT64_C(1) << 62) / (int64_t)spk_dtype_bytes(o->dtype) ? all : -1;
}

/* Rows are counted over all heads and items, also of an array that has no columns. */
static bool can_count_rows(const spk_operand *o, int64_t items)
{
    int64_t rows;
    return !__builtin_mul_overflow(o->rows, spk_operand_heads(o), &rows) && !__builtin_mul_overflow(rows, items, &rows) &&
           rows <= INT64_C(1) << 62;
}

static spk_status check_extents(const spk_problem *p)
{
    for (int i = 0; i < p->op->operand_count; i++) {
        const spk_operand *o = &p->operand[i];
        if (o->dtype == SPK_DTYPE_DEFAULT || (extent_of(o, p->batch) >= 0 && can_count_rows(o, p->batch)))
            continue;
        return spk_fail(SPK_ERR_ARGUMENT, "%s (%s): %lld x %lld numbers for each of %lld heads of %lld items exceed 2^62 %s",
                        p->op->operands[i].name, p->op->operands[i].extents, (long long)o->rows, (long long)o->cols,
                        (long long)spk_operand_heads(o), (long long)p->batch, extent_of(o, p->batch) < 0 ? "bytes" : "rows");
    }
    return SPK_OK;
}

/* The caller's field that says the dtype of an operand. */
static const char *dtype_field(const spk_op *op, int operand)
{
    for (int i = 0; i < op->field_count; i++)
        if (op->fields[i].kind == SPK_FIELD_DTYPE && op->fields[i].operand == operand)
            return op->fields[i].name;
    return op->operands[operand].name;
}

/* A matrix that gave its pattern most likely gives its values, too. */
static spk_status check_values(const spk_problem *p)
{
    const spk_dtype of_matrix = p->pattern != NULL ? p->pattern->dtype : SPK_DTYPE_DEFAULT;
    for (int i = 0; of_matrix != SPK_DTYPE_DEFAULT && i < p->op->operand_count; i++) {
        const spk_operand_row *row = &p->op->operands[i];
        if (row->role != SPK_ROLE_IN || strcmp(row->extents, SPK_EXTENTS_VALUES) != 0 || p->operand[i].dtype == of_matrix)
            continue;
        const char *field = dtype_field(p->op, i), *name = spk_dtype_name(p->operand[i].dtype);
        return spk_fail(SPK_ERR_ARGUMENT,
                        "%s = %s: the pattern was made of a matrix of %s. Set %s to that; or make the pattern of spk_matrix_cast to %s, or "
                        "with spk_pattern_create, which knows no values",
                        field, name, spk_dtype_name(of_matrix), field, name);
    }
    return SPK_OK;
}

spk_status spk_problem_read(const spk_op *op, spk_pattern *pattern, const void *theirs, const spk_tune_options *options,
                            spk_problem *problem)
{
    union {
        double aligned;
        char bytes[MOST_PROBLEM_BYTES];
    } given;
    if (op->problem_bytes > sizeof given)
        return spk_fail(SPK_ERR_INTERNAL, "%s has %zu bytes, the limit is %zu", op->problem_type, op->problem_bytes, sizeof given);
    SPK_TRY(spk_struct_read(&given, op->problem_bytes, theirs, op->problem_type));
    memset(problem, 0, sizeof *problem);
    problem->op = op;
    problem->pattern = pattern;
    SPK_TRY(spk_fields_check(op, &given));
    SPK_TRY(op->read(pattern, &given, problem));
    if (problem->batch < 1 || problem->compute == SPK_DTYPE_DEFAULT)
        return spk_fail(SPK_ERR_INTERNAL, "%s: reading %s left %s unset", op->name, op->problem_type,
                        problem->batch < 1 ? "batch" : "compute");
    SPK_TRY(check_extents(problem));
    SPK_TRY(check_values(problem));
    if (options != NULL)
        problem->cache = options->cache;
    return SPK_OK;
}

spk_status spk_problem_reread(const spk_problem *problem)
{
    union {
        double aligned;
        char bytes[MOST_PROBLEM_BYTES];
    } given;
    spk_problem again;
    const spk_tune_options options = {SPK_SIZED(spk_tune_options), .cache = problem->cache};
    problem->op->write(problem, &given);
    SPK_TRY(spk_problem_read(problem->op, problem->pattern, &given, &options, &again));
    return spk_problem_equal(problem, &again) ? SPK_OK
                                              : spk_fail(SPK_ERR_INTERNAL, "%s: its description is of another problem", problem->op->name);
}

void spk_problem_fold(spk_problem *problem)
{
    if (problem->batch > 1 && problem->op->fold != NULL && !(problem->op->scales != 0 && spk_problem_is_scaled(problem)))
        problem->op->fold(problem);
}

bool spk_problem_equal(const spk_problem *a, const spk_problem *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

bool spk_problem_writes(const spk_problem *problem, int i)
{
    return problem->op->operands[i].role == SPK_ROLE_OUT && !spk_operand_is_empty(&problem->operand[i]);
}

bool spk_problem_is_empty(const spk_problem *problem)
{
    bool any = false;
    for (int i = 0; i < problem->op->operand_count; i++)
        any = any || spk_problem_writes(problem, i);
    return !any;
}

int spk_problem_first_output(const spk_problem *problem)
{
    const spk_op *op = problem->op;
    int i = 0;
    while (i + 1 < op->operand_count && (op->operands[i].role != SPK_ROLE_OUT || problem->operand[i].dtype == SPK_DTYPE_DEFAULT))
        i++;
    return i;
}

int64_t spk_problem_output_rows(const spk_problem *problem, int output)
{
    const spk_operand *o = &problem->operand[output];
    return o->rows * spk_operand_heads(o) * spk_operand_items(o, problem->batch);
}

bool spk_problem_reads(const spk_problem *problem, const spk_args *args, int i)
{
    const spk_operand_row *row = &problem->op->operands[i];
    if (row->role == SPK_ROLE_OUT || spk_operand_is_empty(&problem->operand[i]))
        return false;
    return row->role == SPK_ROLE_IN || args->scalar[row->scalar] != 0;
}

int spk_problem_static_operand(const spk_problem *problem)
{
    return problem->static_values ? spk_op_static_operand(problem->op) : -1;
}

double spk_problem_flops(const spk_problem *problem)
{
    return problem->op->flops(problem) * (double)problem->batch;
}

double spk_problem_dense_flops(const spk_problem *problem)
{
    return problem->op->dense_flops(problem) * (double)problem->batch;
}

int64_t spk_problem_operand_elements(const spk_problem *problem, int i)
{
    return spk_operand_elements(&problem->operand[i], problem->batch);
}

double spk_problem_touched_bytes(const spk_problem *problem, int i)
{
    const spk_operand *o = &problem->operand[i];
    double elements = (double)spk_operand_item_elements(o);
    if (problem->op->touched != NULL) {
        const double most = problem->op->touched(problem, i);
        elements = elements < most ? elements : most;
    }
    return elements * (double)spk_operand_items(o, problem->batch) * (double)spk_dtype_bytes(o->dtype);
}

double spk_problem_bytes(const spk_problem *problem)
{
    double bytes = 0;
    for (int i = 0; i < problem->op->operand_count; i++)
        bytes += spk_problem_touched_bytes(problem, i);
    return bytes;
}

spk_problem spk_problem_item(const spk_problem *problem)
{
    spk_problem item;
    memcpy(&item, problem, sizeof item);
    item.batch = 1;
    for (int i = 0; i < SPK_MAX_OPERANDS; i++)
        item.operand[i].stride = 0;
    return item;
}

int64_t spk_problem_free_size(const spk_problem *problem)
{
    spk_problem copy = *problem;
    return *problem->op->free_size(&copy);
}

int64_t spk_problem_other_size(const spk_problem *problem)
{
    spk_problem copy = *problem;
    const int64_t *size = problem->op->other_size != NULL ? problem->op->other_size(&copy) : NULL;
    return size != NULL ? *size : 0;
}

void spk_problem_cut(spk_problem *problem, spk_pattern *pattern, int64_t free_size, int64_t other_size)
{
    if (pattern != NULL)
        problem->pattern = pattern;
    if (free_size > 0)
        *problem->op->free_size(problem) = free_size;
    if (other_size > 0)
        *problem->op->other_size(problem) = other_size;
    problem->op->fit(problem);
}

int spk_problem_device_defines(const spk_problem *problem, char *text, size_t size)
{
    return problem->op->device_defines != NULL ? problem->op->device_defines(problem, text, size) : snprintf(text, size, "%s", "");
}

double spk_problem_tolerance(const spk_problem *problem, int output)
{
    return problem->op->tolerance(problem, output);
}

bool spk_problem_is_masked(const spk_problem *problem)
{
    return problem->pattern != NULL && problem->op->takes_pattern == SPK_PATTERN_OPTIONAL;
}

bool spk_problem_is_index(const spk_problem *problem, int i)
{
    return spk_type_is_index(problem->operand[i].dtype);
}

void spk_problem_draw_index(const spk_problem *problem, int i, uint64_t seed, int32_t *out)
{
    spk_rng rng;
    spk_rng_seed(&rng, seed);
    problem->op->draw_index(problem, i, &rng, out);
}

spk_status spk_problem_check_indices(const spk_problem *problem, const spk_args *args)
{
    return problem->op->check_indices != NULL ? problem->op->check_indices(problem, args) : SPK_OK;
}
