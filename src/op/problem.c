/* What follows from a problem, whatever its operation. */
#include <stdio.h>
#include <string.h>

#include "op/fields.h"

enum { MOST_PROBLEM_BYTES = 512 };

static spk_status read_promises(const spk_tune_options *options, spk_problem *problem)
{
    if (options == NULL)
        return SPK_OK;
    problem->assume_finite = options->assume_finite != 0;
    problem->static_values = options->static_values != 0;
    problem->cache = options->cache;
    if (problem->static_values && spk_op_static_operand(problem->op) < 0)
        return spk_fail(SPK_ERR_ARGUMENT, "static_values = 1: no operand of %s may be static", problem->op->name);
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
    return read_promises(options, problem);
}

void spk_problem_fold(spk_problem *problem)
{
    if (problem->batch > 1 && problem->op->fold != NULL)
        problem->op->fold(problem);
}

bool spk_problem_equal(const spk_problem *a, const spk_problem *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* Four chains of multiplications, none of which waits for another. */
uint64_t spk_problem_hash(const spk_problem *problem)
{
    enum { CHAINS = 4, WORDS = sizeof *problem / sizeof(uint64_t) };
    _Static_assert(sizeof *problem % sizeof(uint64_t) == 0, "a problem is a number of whole words");
    const uint64_t factor = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t words[WORDS], chain[CHAINS] = {1, 2, 3, problem->pattern != NULL ? problem->pattern->id : 0}, hash = 0;
    memcpy(words, problem, sizeof words);
    for (size_t i = 0; i < WORDS; i++)
        chain[i % CHAINS] = (chain[i % CHAINS] ^ words[i]) * factor;
    for (size_t i = 0; i < CHAINS; i++)
        hash = (hash ^ chain[i] ^ chain[i] >> 32) * factor;
    return hash ^ hash >> 32;
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
    return problem->operand[i].dtype == SPK_INT32;
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
