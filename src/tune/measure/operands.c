/* Operands of tuning: random numbers in device memory, aligned as allocators of devices do it (a row of a tile that begins in the middle of
 * a line of L2 takes two, and other tiles win then), as many sets as it takes that no run finds its own in a cache (cold), or one (warm).
 * Within a quarter of the free memory and a limit of time, one set excepted. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/callback.h"
#include "op/operation.h"
#include "matrix/matrix.h"
#include "tune/measure/measure.h"

enum { MOST_SETS = 4096, POISON_BYTES = 1 << 26, LINE = 256 };

/* What can be counted on for fresh pages, where a virtual machine's host may have to find them first. */
static const double fresh_bytes_a_us = 1000;

/* Noise is made once and laid out again and again: a prime number of elements, so that no stride of a problem repeats it in step. */
enum { NOISE_ELEMENTS = 131071 };

typedef struct noise {
    int64_t elements;
    char *values;
} noise;

static size_t lines(size_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

/* Bytes of each array, and of a set of all with one line between them. */
static size_t array_bytes(const spk_problem *problem, size_t bytes[SPK_MAX_OPERANDS])
{
    size_t total = 0;
    for (int i = 0; i < problem->op->operand_count; i++) {
        bytes[i] = spk_operand_bytes(&problem->operand[i], problem->batch);
        size_t padded = lines(bytes[i]) + LINE;
        total = padded > SIZE_MAX / 16 - total ? SIZE_MAX / 16 : total + padded;
    }
    return total;
}

size_t spk_operands_set_bytes(const spk_problem *problem)
{
    size_t bytes[SPK_MAX_OPERANDS] = {0};
    return array_bytes(problem, bytes);
}

/* What one run touches: of values nothing new where they stay the same from run to run. */
static double touched_bytes(const spk_operands *o)
{
    double touched = 0;
    for (int i = 0; i < o->problem->op->operand_count; i++)
        if (i != spk_problem_static_operand(o->problem))
            touched += spk_problem_touched_bytes(o->problem, i);
    return touched;
}

/* 0: unknown, as a caller's allocator has memory that the device does not count as free. */
static double free_memory(spk_device *device)
{
    return device->device_mem.allocate == NULL ? (double)device->backend->free_memory(device) : 0;
}

/* free_bytes: 0 where that is unknown. */
static spk_status fits(size_t set_bytes, double free_bytes)
{
    if (free_bytes > 0 && (double)set_bytes > 0.8 * free_bytes)
        return spk_fail(SPK_ERR_OUT_OF_MEMORY, "tuning needs operands of %zu bytes; %.0f bytes of memory are free", set_bytes, free_bytes);
    return SPK_OK;
}

spk_status spk_operands_fit(spk_device *device, const spk_problem *problem)
{
    return fits(spk_operands_set_bytes(problem), free_memory(device));
}

static spk_status choose_sets(spk_operands *o, size_t set_bytes)
{
    const spk_device *device = o->device;
    double free_bytes = free_memory(o->device);
    free_bytes += free_bytes > 0 ? (double)o->operand_memory->touched : 0;
    SPK_TRY(fits(set_bytes, free_bytes));
    o->sets = 1;
    double touched = touched_bytes(o);
    if (o->problem->cache == SPK_WARM || touched <= 0)
        return SPK_OK;
    int64_t last_cache = device->l3_bytes > 0 ? device->l3_bytes : device->l2_bytes > 0 ? device->l2_bytes : INT64_C(32) << 20;
    /* samples that begin anew (spk_operands_time) leave up to half of the sets aside */
    double times = device->backend->capturing != NULL ? 4.0 : 2.0;
    double wanted = times * (double)last_cache / touched + 2, fitting = free_bytes > 0 ? 0.25 * free_bytes / (double)set_bytes : wanted;
    wanted = wanted < fitting ? wanted : fitting;
    const double limit_us = o->operand_memory->limit_us;
    if (limit_us > 0) /* half a gigabyte of last cache would take a second, of a budget of two */
        wanted = fmin(wanted, limit_us * fresh_bytes_a_us / (double)set_bytes);
    o->sets = wanted > MOST_SETS ? MOST_SETS : wanted > 1 ? (int64_t)wanted : 1;
    return SPK_OK;
}

/* mean: of f32 and f64 alone. */
static spk_status make_noise(const spk_mem *mem, spk_dtype dtype, double mean, int64_t elements, uint64_t seed, noise *out)
{
    noise made = {elements < NOISE_ELEMENTS ? elements : NOISE_ELEMENTS, NULL};
    SPK_TRY(spk_alloc(mem, (size_t)made.elements, spk_dtype_bytes(dtype), &made.values));
    spk_status status = spk_generate_values(dtype, made.elements, seed, made.values);
    spk_rng rng;
    spk_rng_seed(&rng, ~seed);
    /* the lower bits, which the generator leaves empty, matter too */
    const double lower = spk_type_is_double(dtype) ? 0x1p-17 : 0;
    for (int64_t i = 0; status == SPK_OK && (lower > 0 || mean != 0) && i < made.elements; i++)
        spk_value_add(made.values, dtype, i, lower * spk_rng_uniform(&rng) + mean);
    if (status != SPK_OK) {
        spk_free(mem, made.values);
        return status;
    }
    *out = made;
    return SPK_OK;
}

/* Lays `from` out again and again, beginning at offset. Where the device has its own memory the host sends it once, and it is doubled
 * there; on the CPU a source that stays in the cache is faster. Fresh pages make this slow: it can be interrupted between pieces. */
static spk_status fill_repeating(const spk_operands *o, char *to, size_t bytes, const char *from, size_t from_bytes, size_t offset)
{
    spk_device *device = o->device;
    const bool far = !device->backend->host_memory;
    size_t done = 0;
    while (done < bytes && !(far && done >= from_bytes)) {
        size_t piece = from_bytes - offset < bytes - done ? from_bytes - offset : bytes - done;
        if (spk_interrupted(o->tuner))
            return spk_fail(SPK_ERR_INTERRUPTED, "tuning was interrupted");
        if (far && done + piece > from_bytes)
            piece = from_bytes - done; /* a whole period */
        SPK_TRY(device->backend->copy_in(device, to + done, from + offset, piece));
        done += piece;
        offset = 0;
    }
    while (done < bytes) {
        size_t whole = done / from_bytes * from_bytes, piece = whole < bytes - done ? whole : bytes - done;
        SPK_TRY(device->backend->copy_within(device, to + done, to, piece));
        done += piece;
    }
    return SPK_OK;
}

static void lay_out(spk_operands *o)
{
    char *at = o->operand_memory->memory;
    for (int64_t set = 0; set < o->sets; set++) {
        spk_args *args = &o->args[set];
        *args = (spk_args){.workspace = NULL};
        for (int i = 0; i < SPK_MAX_SCALARS; i++)
            args->scalar[i] = i < o->problem->op->scalar_count ? o->problem->op->scalars[i].timed : 1;
        for (int i = 0; i < SPK_MAX_OPERANDS; i++) {
            const bool shared = set > 0 && i == spk_problem_static_operand(o->problem);
            if (o->bytes[i] == 0)
                continue;
            args->at[i] = shared ? o->args[0].at[i] : at;
            at += shared ? 0 : lines(o->bytes[i]) + LINE;
        }
    }
}

/* Indices cannot be any numbers. */
static spk_status fill_index(spk_operands *o, int operand, uint64_t seed, void *to)
{
    int32_t *host = NULL;
    SPK_TRY(spk_alloc(&o->mem, o->bytes[operand], 1, &host));
    spk_problem_draw_index(o->problem, operand, seed, host);
    const spk_status status = o->device->backend->copy_in(o->device, to, host, o->bytes[operand]);
    spk_free(&o->mem, host);
    return status;
}

/* Each operand has numbers of its own: rows of one that are rows of another, too, would have products that no random numbers have. */
static spk_status make_pools(spk_operands *o, spk_rng *rng, noise pools[SPK_MAX_OPERANDS])
{
    for (int i = 0; i < o->problem->op->operand_count; i++) {
        const int64_t elements = spk_problem_operand_elements(o->problem, i);
        const double mean = o->problem->op->mean != NULL ? o->problem->op->mean(o->problem, i) : 0;
        if (elements > 0 && !spk_problem_is_index(o->problem, i))
            SPK_TRY(make_noise(&o->mem, o->problem->operand[i].dtype, mean, elements, spk_rng_next(rng), &pools[i]));
    }
    return SPK_OK;
}

/* Set by set, so that the time can end it: those that are full then are the sets. */
static spk_status fill_all(spk_operands *o, uint64_t seed)
{
    noise pools[SPK_MAX_OPERANDS] = {0};
    spk_rng rng;
    spk_rng_seed(&rng, seed);
    double deadline = spk_work_us() + (o->operand_memory->limit_us > 0 ? o->operand_memory->limit_us : INFINITY);
    spk_status status = make_pools(o, &rng, pools);
    for (int64_t set = 0; status == SPK_OK && set < o->sets; set++) {
        if (set > 0 && spk_work_us() > deadline)
            o->sets = set;
        for (int i = 0; status == SPK_OK && set < o->sets && i < o->problem->op->operand_count; i++) {
            const size_t element_bytes = spk_dtype_bytes(o->problem->operand[i].dtype);
            if (o->bytes[i] == 0 || (set > 0 && i == spk_problem_static_operand(o->problem)))
                continue;
            char *at = o->args[set].at[i];
            if (spk_problem_is_index(o->problem, i)) {
                status = fill_index(o, i, spk_rng_next(&rng), at);
            } else {
                const size_t offset = (size_t)spk_rng_below(&rng, (uint64_t)pools[i].elements) * element_bytes;
                status = fill_repeating(o, at, o->bytes[i], pools[i].values, (size_t)pools[i].elements * element_bytes, offset);
            }
            size_t end = (size_t)(at - (char *)o->operand_memory->memory) + o->bytes[i];
            o->operand_memory->touched = o->operand_memory->touched > end ? o->operand_memory->touched : end;
        }
    }
    for (int i = 0; i < SPK_MAX_OPERANDS; i++)
        spk_free(&o->mem, pools[i].values);
    return status;
}

/* ------------------------------------------------------------------------------------------------ memory of operands */

void spk_operand_memory_release(spk_device *device, spk_operand_memory *operand_memory)
{
    spk_device_give(device, operand_memory->memory, operand_memory->bytes, spk_device_own_stream(device));
    spk_device_give(device, operand_memory->workspace, operand_memory->workspace_bytes, spk_device_own_stream(device));
    *operand_memory = (spk_operand_memory){.limit_us = operand_memory->limit_us};
}

static spk_status take_operand_memory(spk_operands *o, size_t bytes)
{
    spk_operand_memory *operand_memory = o->operand_memory;
    if (operand_memory->bytes >= bytes)
        return SPK_OK;
    spk_device_give(o->device, operand_memory->memory, operand_memory->bytes, spk_device_own_stream(o->device));
    operand_memory->memory = NULL;
    operand_memory->bytes = operand_memory->touched = 0;
    SPK_TRY(spk_device_take(o->device, bytes, spk_device_own_stream(o->device), &operand_memory->memory));
    operand_memory->bytes = bytes;
    return SPK_OK;
}

spk_status spk_operands_make(const spk_tuner *tuner, const spk_problem *problem, uint64_t seed, spk_operand_memory *operand_memory,
                             spk_operands **operands)
{
    spk_operands *made = NULL;
    spk_status status;
    SPK_TRY(spk_calloc(tuner->mem, 1, sizeof *made, &made));
    made->tuner = tuner;
    made->problem = problem;
    made->device = tuner->device;
    made->mem = *tuner->mem;
    made->operand_memory = operand_memory != NULL ? operand_memory : &made->own;
    size_t set_bytes = array_bytes(problem, made->bytes);
    SPK_GOTO(choose_sets(made, set_bytes));
    SPK_GOTO(spk_alloc(tuner->mem, (size_t)made->sets, sizeof *made->args, &made->args));
    size_t again = set_bytes; /* of each set but the first */
    if (spk_problem_static_operand(problem) >= 0)
        again -= lines(made->bytes[spk_problem_static_operand(problem)]);
    SPK_GOTO(take_operand_memory(made, set_bytes + again * (size_t)(made->sets - 1)));
    lay_out(made);
    SPK_GOTO(fill_all(made, seed));
    *operands = made;
    return SPK_OK;
done:
    spk_operands_release(&made);
    return status;
}

void spk_operands_release(spk_operands **operands)
{
    spk_operands *old = *operands;
    *operands = NULL;
    if (old == NULL)
        return;
    spk_mem mem = old->mem;
    spk_operand_memory_release(old->device, &old->own);
    for (int i = 0; i < SPK_MAX_OPERANDS; i++)
        spk_free(&mem, old->staging[i]);
    spk_free(&mem, old->args);
    spk_free(&mem, old);
}

/* All-one bits: a NaN in every dtype. */
static spk_status fill_ones(const spk_operands *o, char *to, size_t bytes)
{
    for (size_t done = 0; done < bytes; done += POISON_BYTES) {
        if (spk_interrupted(o->tuner))
            return spk_fail(SPK_ERR_INTERRUPTED, "tuning was interrupted");
        SPK_TRY(o->device->backend->fill(o->device, to + done, 0xff, bytes - done < POISON_BYTES ? bytes - done : POISON_BYTES));
    }
    return SPK_OK;
}

/* Written before the first run gets it: fresh pages would make that run slow, and a kernel that counts on zeros shall be found out. */
static spk_status grow_workspace(spk_operands *o, size_t bytes)
{
    spk_operand_memory *operand_memory = o->operand_memory;
    if (bytes <= operand_memory->workspace_bytes)
        return SPK_OK;
    void *grown = NULL;
    /* The system may promise more than it has, and end the program when it is used. */
    const double free_bytes = free_memory(o->device);
    if (free_bytes > 0 && (double)bytes > 0.8 * free_bytes)
        return spk_fail(SPK_ERR_OUT_OF_MEMORY, "it needs a workspace of %zu bytes; %.0f bytes of memory are free", bytes, free_bytes);
    SPK_TRY(spk_device_take(o->device, bytes, spk_device_own_stream(o->device), &grown));
    spk_status status = fill_ones(o, grown, bytes);
    if (status != SPK_OK) {
        spk_device_give(o->device, grown, bytes, spk_device_own_stream(o->device));
        return status;
    }
    spk_device_give(o->device, operand_memory->workspace, operand_memory->workspace_bytes, spk_device_own_stream(o->device));
    operand_memory->workspace = grown;
    operand_memory->workspace_bytes = bytes;
    return SPK_OK;
}

spk_status spk_operands_workspace(spk_operands *operands, size_t bytes)
{
    if (bytes == 0 || bytes <= operands->args[0].workspace_bytes)
        return SPK_OK;
    SPK_TRY(grow_workspace(operands, bytes));
    for (int64_t set = 0; set < operands->sets; set++) {
        operands->args[set].workspace = operands->operand_memory->workspace;
        operands->args[set].workspace_bytes = operands->operand_memory->workspace_bytes;
    }
    return SPK_OK;
}

spk_status spk_operands_poison(spk_operands *operands)
{
    const spk_op *op = operands->problem->op;
    for (int i = 0; i < op->operand_count; i++)
        if (op->operands[i].role == SPK_ROLE_OUT)
            SPK_TRY(fill_ones(operands, operands->args[0].at[i], operands->bytes[i]));
    return SPK_OK;
}

spk_args spk_operands_check_args(const spk_operands *operands)
{
    spk_args args = operands->args[0];
    const spk_op *op = operands->problem->op;
    for (int i = 0; i < op->scalar_count; i++)
        args.scalar[i] = op->scalars[i].check;
    return args;
}

static spk_status make_staging(spk_operands *operands, int operand)
{
    if (operands->staging[operand] != NULL)
        return SPK_OK;
    return spk_alloc(&operands->mem, operands->bytes[operand], 1, &operands->staging[operand]);
}

spk_status spk_operands_view(spk_operands *operands, int operand, const void **view)
{
    spk_device *device = operands->device;
    const char *memory = operands->args[0].at[operand];
    const size_t bytes = operands->bytes[operand];
    if (device->backend->host_memory || bytes == 0) {
        *view = memory;
        return SPK_OK;
    }
    SPK_TRY(make_staging(operands, operand));
    SPK_TRY(device->backend->copy_out(device, operands->staging[operand], memory, bytes));
    *view = operands->staging[operand];
    return SPK_OK;
}

/* Elements of `size` bytes that come row by row to their places in an array by columns. */
static void scatter(char *to, size_t size, int64_t ld, const int64_t *rows, int count, int64_t columns, const char *from)
{
    for (int i = 0; i < count; i++)
        for (int64_t column = 0; column < columns; column++, from += size)
            memcpy(to + (size_t)(column * ld + rows[i]) * size, from, size);
}

static spk_status gather_rows(spk_operands *o, int operand, const int64_t *rows, int count, const char *memory)
{
    const spk_operand *of = &o->problem->operand[operand];
    const size_t size = spk_dtype_bytes(of->dtype);
    const spk_scan lines = {.dtype = of->dtype, .array = memory, .lines = of->cols, .length = of->rows, .ld = of->ld};
    char *gathered = NULL;
    SPK_TRY(spk_alloc(&o->mem, (size_t)of->cols * (size_t)count, size, &gathered));
    spk_status status = o->device->backend->gather(o->device, &lines, rows, count, gathered);
    if (status == SPK_OK)
        scatter(o->staging[operand], size, of->ld, rows, count, of->cols, gathered);
    spk_free(&o->mem, gathered);
    return status;
}

spk_status spk_operands_view_rows(spk_operands *operands, int operand, const int64_t *rows, int count, const void **view)
{
    spk_device *device = operands->device;
    const spk_operand *of = &operands->problem->operand[operand];
    const char *memory = operands->args[0].at[operand];
    if (device->backend->host_memory || operands->bytes[operand] == 0)
        return spk_operands_view(operands, operand, view);
    SPK_TRY(make_staging(operands, operand));
    if (of->layout == SPK_COL_MAJOR)
        SPK_TRY(gather_rows(operands, operand, rows, count, memory));
    for (int i = 0; i < count && of->layout == SPK_ROW_MAJOR; i++) {
        const size_t element = spk_dtype_bytes(of->dtype), at = (size_t)(rows[i] * of->ld) * element;
        SPK_TRY(device->backend->copy_out(device, (char *)operands->staging[operand] + at, memory + at, (size_t)of->cols * element));
    }
    *view = operands->staging[operand];
    return SPK_OK;
}

/* With a queue all runs of a sample are timed at once, as one graph: it begins anew where the sets left do not suffice. */
static spk_status time_together(spk_operands *o, int64_t first, const spk_bound *bound, int runs, double *out_us)
{
    if (o->next < first || o->sets - o->next < runs)
        o->next = first;
    int64_t count = o->sets - o->next < runs ? o->sets - o->next : runs;
    SPK_TRY(o->device->backend->time_runs(o->device, bound, o->args + o->next, (int)count, runs, out_us));
    o->next = (o->next + count) % o->sets;
    return SPK_OK;
}

spk_status spk_operands_time(spk_operands *operands, const spk_bound *bound, int runs, double *out_us)
{
    spk_device *device = operands->device;
    int64_t first = operands->sets > 2 ? 1 : 0; /* set 0 is for checks, which leave it in the caches */
    if (device->backend->capturing != NULL)
        return time_together(operands, first, bound, runs, out_us);
    while (runs > 0) {
        operands->next = operands->next < first ? first : operands->next;
        int64_t left = operands->sets - operands->next;
        int piece = operands->sets == 1 || left > runs ? runs : (int)left;
        SPK_TRY(device->backend->time_runs(device, bound, operands->args + operands->next, operands->sets == 1 ? 1 : piece, piece, out_us));
        operands->next = (operands->next + piece) % operands->sets;
        out_us += piece;
        runs -= piece;
    }
    return SPK_OK;
}
