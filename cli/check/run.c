/* One candidate on a case's data: bound through a pinned choice, run into poisoned memory between guards, compared with the oracle. */
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/c_locale.h"
#include "cli/base/device_memory.h"
#include "cli/base/memory.h"
#include "cli/base/values.h"
#include "cli/check/check.h"
#include "type/type.h"

enum { GUARD_BYTES = 256, GUARD = 0xA7 };

/* Memory that begins 64-byte aligned, between two guards; *whole is to be freed. */
static void *guarded(size_t bytes, void **whole)
{
    size_t total = (bytes + 2 * GUARD_BYTES + 127) / 64 * 64;
    *whole = aligned_alloc(64, total);
    if (!*whole) {
        fputs("sparsek: out of memory\n", stderr);
        exit(EXIT_RESOURCES);
    }
    memset(*whole, GUARD, total);
    return (char *)*whole + GUARD_BYTES;
}

static bool guards_whole(const void *whole, size_t bytes)
{
    const unsigned char *at = whole;
    for (size_t i = 0; i < GUARD_BYTES; i++)
        if (at[i] != GUARD || at[GUARD_BYTES + bytes + i] != GUARD)
            return false;
    return true;
}

static double get(spk_dtype dtype, const void *array, int64_t index)
{
    return value_get(dtype, array, index);
}

__attribute__((format(printf, 2, 3))) static void fail(check_outcome *o, const char *format, ...)
{
    if (o->failed)
        return;
    va_list list;
    va_start(list, format);
    spk_vsnprintf(o->why, sizeof(o->why), format, list);
    va_end(list);
    o->failed = true;
}

/* One element, where it is, and what the oracle says of it. */
typedef struct element {
    const char *name;
    spk_dtype dtype;
    int64_t item, i, j;
    double got, wanted, magnitude, tolerance;
} element;

/* Compares an element with the oracle's where that is finite; where it is not, it must not be finite either; where nothing can be said of
 * it (a magnitude that is NaN), it may be anything. */
static void compare_element(const check_data *d, const element *e, check_outcome *o)
{
    char item[32] = "";
    if (isnan(e->magnitude))
        return;
    if (d->c->items > 1)
        snprintf(item, sizeof(item), "item %lld: ", (long long)e->item);
    if (!isfinite(e->wanted) || !isfinite(e->magnitude)) {
        if (isfinite(e->got))
            fail(o, "%s%s[%lld,%lld] = %.9g, where the oracle has %g", item, e->name, (long long)e->i, (long long)e->j, e->got, e->wanted);
        return;
    }
    const bool overflows = isinf(e->got) && fabs(e->wanted) + e->tolerance * e->magnitude >= spk_type_of(e->dtype)->largest;
    double off = overflows ? 0 : spk_type_difference(e->dtype, e->got, e->wanted),
           error = off == 0 ? 0 : off / (e->tolerance * e->magnitude);
    if (!(error <= 1))
        fail(o, "%s%s[%lld,%lld] = %.9g, oracle %.9g: error %.3g of the terms' magnitude, tolerance %.3g", item, e->name, (long long)e->i,
             (long long)e->j, e->got, e->wanted, off / e->magnitude, e->tolerance);
    if (error > o->error || isnan(error))
        o->error = isnan(error) ? INFINITY : error;
}

static void compare(const check_data *d, int which, const void *got, check_outcome *o)
{
    const spk_array_info *a = &d->c->arrays[which];
    const int64_t items = check_items(d->c, which);
    element e = {.name = d->c->op->operands[which].title, .dtype = a->dtype, .tolerance = d->out[which].tolerance};
    int64_t at = 0;
    for (; e.item < items; e.item++)
        for (e.i = 0; e.i < check_rows(a); e.i++)
            for (e.j = 0; e.j < a->cols; e.j++, at++) {
                e.got = get(a->dtype, got, check_place(a, e.item, e.i, e.j));
                e.wanted = d->out[which].want[at];
                e.magnitude = d->out[which].magnitude[at];
                compare_element(d, &e, o);
            }
}

/* Everything in an output's memory that is no element of it must be as it was. */
static void compare_gaps(const check_data *d, int which, const void *got, const void *before, check_outcome *o)
{
    const spk_array_info *a = &d->c->arrays[which];
    const size_t bytes = spk_dtype_bytes(a->dtype);
    bool *is_element = cli_alloc((size_t)a->elements, sizeof(bool));
    for (int64_t item = 0; item < d->c->items; item++)
        for (int64_t i = 0; i < check_rows(a); i++)
            for (int64_t j = 0; j < a->cols; j++)
                is_element[check_place(a, item, i, j)] = true;
    for (int64_t i = 0; i < a->elements; i++)
        if (!is_element[i] && memcmp((const char *)got + (size_t)i * bytes, (const char *)before + (size_t)i * bytes, bytes) != 0)
            fail(o, "wrote into the gap behind a line of %s (element %lld, leading dimension %lld)", d->c->op->operands[which].title,
                 (long long)i, (long long)a->ld);
    free(is_element);
}

static uint64_t hash(uint64_t h, const void *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        h = (h ^ ((const unsigned char *)bytes)[i]) * 0x100000001B3u;
    return h;
}

static size_t bytes_of(const check_case *c, int which)
{
    return (size_t)c->arrays[which].elements * spk_dtype_bytes(c->arrays[which].dtype);
}

static uint64_t hash_inputs(const check_data *d)
{
    uint64_t h = 0xCBF29CE484222325u;
    for (int i = 0; i < d->c->op->info.operand_count; i++)
        if (!check_is_output(d->c, i) && d->arrays[i])
            h = hash(h, d->arrays[i], bytes_of(d->c, i));
    return h;
}

/* What a run writes: its outputs, by operand, and its workspace. */
typedef struct buffers {
    void *out[OPERATION_MOST_ARRAYS], *whole[OPERATION_MOST_ARRAYS];
    void *work, *whole_work;
    size_t work_bytes;
} buffers;

static buffers make_buffers(const check_data *d, const spk_plan *plan)
{
    buffers b = {.work_bytes = spk_plan_workspace_bytes(plan)};
    b.work = guarded(b.work_bytes, &b.whole_work);
    for (int i = 0; i < d->c->op->info.operand_count; i++) {
        if (!check_is_output(d->c, i))
            continue;
        b.out[i] = guarded(bytes_of(d->c, i), &b.whole[i]);
        memcpy(b.out[i], d->arrays[i], bytes_of(d->c, i));
    }
    return b;
}

static void release_buffers(buffers *b)
{
    for (int i = 0; i < OPERATION_MOST_ARRAYS; i++)
        free(b->whole[i]);
    free(b->whole_work);
}

/* What is the very array of an output points there. */
static void point_alike(const check_case *c, operation_struct *run_args)
{
    for (int i = 0; i < c->op->info.operand_count; i++)
        if (c->same_as[i] >= 0)
            operation_set_pointer(c->op, run_args, i, operation_pointer(c->op, run_args, c->same_as[i]));
}

/* On a device with memory of its own: everything goes there and comes back, guards and inputs too. */
static spk_status run_there(const check_data *d, const spk_plan *plan, operation_struct *run_args, buffers *b)
{
    const check_case *c = d->c;
    const int count = c->op->info.operand_count, kept = c->static_values ? operation_static_operand(c->op) : -1; /* the plan has it */
    const void *pointers[OPERATION_MOST_ARRAYS + 1] = {0};
    device_array all[OPERATION_MOST_ARRAYS + 1] = {0};
    for (int i = 0; i < count; i++) {
        pointers[i] = c->same_as[i] >= 0 || i == kept ? NULL : operation_pointer(c->op, run_args, i);
        all[i] = (device_array){&pointers[i], bytes_of(c, i), .output = check_is_output(c, i),
                                .shift = (size_t)c->shifts[i] * spk_dtype_bytes(c->arrays[i].dtype)};
    }
    pointers[count] = c->own_workspace && b->work_bytes ? b->work : NULL;
    all[count] = (device_array){&pointers[count], b->work_bytes, .output = true};
    spk_status status = device_arrays_in(d->context, all, count + 1);
    for (int i = 0; i < count; i++)
        operation_set_pointer(c->op, run_args, i, pointers[i]);
    if (pointers[count])
        operation_set_workspace(c->op, run_args, (void *)pointers[count], b->work_bytes);
    point_alike(c, run_args);
    if (status == SPK_OK)
        status = spk_plan_run(plan, run_args, NULL);
    if (status == SPK_OK)
        status = spk_synchronize(d->context, NULL);
    return device_arrays_out(d->context, all, count + 1, status);
}

static spk_status run(const check_data *d, const spk_plan *plan, buffers *b)
{
    const check_case *c = d->c;
    operation_struct run_args = check_args(d);
    for (int i = 0; i < c->op->info.operand_count; i++)
        if (check_is_output(c, i))
            operation_set_pointer(c->op, &run_args, i, b->out[i]);
    point_alike(c, &run_args);
    if (c->own_workspace && b->work_bytes)
        operation_set_workspace(c->op, &run_args, b->work, b->work_bytes);
    return d->far ? run_there(d, plan, &run_args, b) : spk_plan_run(plan, &run_args, NULL);
}

static void judge(const check_data *d, const buffers *b, uint64_t inputs, check_outcome *o)
{
    const check_case *c = d->c;
    for (int i = 0; i < c->op->info.operand_count; i++)
        if (b->out[i] && !guards_whole(b->whole[i], bytes_of(c, i)))
            fail(o, "wrote outside of %s", c->op->operands[i].title);
    if (!guards_whole(b->whole_work, b->work_bytes))
        fail(o, "wrote outside of the workspace (%zu bytes)", b->work_bytes);
    if (hash_inputs(d) != inputs)
        fail(o, "changed an input");
    for (int i = 0; i < c->op->info.operand_count; i++)
        if (check_is_output(c, i)) {
            compare(d, i, b->out[i], o);
            compare_gaps(d, i, b->out[i], d->arrays[i], o);
        }
}

static void judge_again(const check_data *d, const buffers *first, const buffers *second, check_outcome *o)
{
    for (int i = 0; i < d->c->op->info.operand_count; i++)
        if (first->out[i] && memcmp(first->out[i], second->out[i], bytes_of(d->c, i)) != 0)
            fail(o, "two runs of one plan gave different bits");
}

/* A GPU runs one candidate at a time, whichever threads prepare the next ones: what goes wrong there is this candidate's doing. */
static pthread_mutex_t there = PTHREAD_MUTEX_INITIALIZER;

/* Gives the plan the array that it keeps, where it does, and runs it; again: twice. */
static spk_status run_all(const check_data *d, spk_plan *plan, buffers *first, buffers *second, bool again)
{
    const check_case *c = d->c;
    const bool far = d->far;
    const int which = c->static_values ? operation_static_operand(c->op) : -1;
    const void *values = which >= 0 ? d->arrays[which] : NULL;
    device_array kept = {.pointer = &values};
    if (which >= 0)
        kept = (device_array){&values, bytes_of(c, which), .shift = (size_t)c->shifts[which] * spk_dtype_bytes(c->arrays[which].dtype)};
    spk_status status = SPK_OK;
    if (far)
        pthread_mutex_lock(&there);
    if (which >= 0 && far)
        status = device_arrays_in(d->context, &kept, 1);
    if (status == SPK_OK && which >= 0)
        status = spk_plan_update_values(plan, values, NULL);
    if (status == SPK_OK)
        status = run(d, plan, first);
    if (status == SPK_OK && again)
        status = run(d, plan, second);
    status = device_arrays_out(d->context, &kept, 1, status);
    if (far)
        pthread_mutex_unlock(&there);
    return status;
}

/* On a GPU, one that could not be proved: pinned as it is, it would run in this process all the same. */
static bool is_unproved(const spk_plan *plan)
{
    spk_plan_info info = {SPK_SIZED(spk_plan_info)};
    return spk_plan_get_info(plan, &info) == SPK_OK && strcmp(info.why, "pinned, not proved") == 0;
}

static bool is_limited(int resource)
{
    struct rlimit limit;
    return getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

/* A vendor library in a process whose address space is limited may not get what it needs: that says nothing about its row, which may have
 * been applicable when the rows were listed, and be so no more when it is bound. */
static bool lacks_room(const check_data *d, spk_kind kind, spk_status status)
{
    return (status == SPK_ERR_UNAVAILABLE || status == SPK_ERR_OUT_OF_MEMORY || status == SPK_ERR_NO_CANDIDATE) &&
           (kind == SPK_KIND_VENDOR || kind == SPK_KIND_DENSE) && !d->far && (is_limited(RLIMIT_AS) || is_limited(RLIMIT_DATA));
}

void check_candidate(const check_data *d, spk_kind kind, const char *choice, bool again, check_outcome *outcome)
{
    check_outcome o = {0};
    spk_plan *plan = NULL;
    const operation_struct given = check_given(d->c, d->finite);
    const spk_tune_options options = {SPK_SIZED(spk_tune_options), .choice = choice};
    spk_status status = spk_plan_create(d->context, d->pattern, &given, &options, &plan);
    if (status == SPK_OK && strcmp(spk_plan_choice(plan), choice) != 0)
        fail(&o, "the plan runs '%s'", spk_plan_choice(plan));
    o.unproved = status == SPK_ERR_INTERRUPTED || (status == SPK_OK && is_unproved(plan));
    if (status == SPK_OK && !o.unproved) {
        buffers first = make_buffers(d, plan), second = {0};
        if (again)
            second = make_buffers(d, plan);
        const uint64_t inputs = hash_inputs(d);
        status = run_all(d, plan, &first, &second, again);
        if (status == SPK_OK)
            judge(d, &first, inputs, &o);
        if (status == SPK_OK && again)
            judge_again(d, &first, &second, &o);
        release_buffers(&first);
        release_buffers(&second);
    }
    if (status != SPK_OK && !o.unproved)
        fail(&o, "%s: %s", spk_status_name(status), spk_last_error(d->context));
    o.refused = status == SPK_ERR_UNSUPPORTED && plan == NULL && (kind == SPK_KIND_VENDOR || kind == SPK_KIND_DENSE);
    o.no_room = lacks_room(d, kind, status);
    o.lost = status == SPK_ERR_UNAVAILABLE && d->far && spk_synchronize(d->context, NULL) == SPK_ERR_UNAVAILABLE;
    spk_plan_destroy(&plan);
    *outcome = o;
}
