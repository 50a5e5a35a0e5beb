/* One candidate on a case's data: bound through a pinned choice, run into poisoned memory between guards, compared with the oracle. */
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "check.h"
#include "device_memory.h"
#include "values.h"

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
    vsnprintf(o->why, sizeof(o->why), format, list);
    va_end(list);
    o->failed = true;
}

/* Compares an output with the oracle where the sum is finite; where it is not, a result must not be finite either (an activation may
 * make it so). */
static void compare_element(const check_data *d, const char *name, const int64_t where[3], double x, double y, int64_t at, bool activated,
                            check_outcome *o)
{
    const check_case *c = d->c;
    char item[32] = "";
    if (c->items > 1)
        snprintf(item, sizeof(item), "item %lld: ", (long long)where[0]);
    if (!isfinite(d->preact[at]) || !isfinite(d->magnitude[at])) {
        if (!activated && isfinite(x))
            fail(o, "%s%s[%lld,%lld] = %.9g, where the oracle has %g", item, name, (long long)where[1], (long long)where[2], x, y);
        return;
    }
    double off = value_difference(c->spmm.dtype_d, x, y), error = off == 0 ? 0 : off / (d->tolerance * d->magnitude[at]);
    if (!(error <= 1))
        fail(o, "%s%s[%lld,%lld] = %.9g, oracle %.9g: error %.3g of the terms' magnitude, tolerance %.3g", item, name, (long long)where[1],
             (long long)where[2], x, y, off / d->magnitude[at], d->tolerance);
    if (error > o->error || isnan(error))
        o->error = isnan(error) ? INFINITY : error;
}

static void compare(const check_data *d, const char *name, int which, const void *got, const double *wanted, bool activated,
                    check_outcome *o)
{
    const check_case *c = d->c;
    const check_array *a = &c->arrays[which];
    int64_t at = 0;
    for (int64_t item = 0; item < c->items; item++)
        for (int64_t i = 0; i < a->rows; i++)
            for (int64_t j = 0; j < a->cols; j++, at++)
                compare_element(d, name, (int64_t[]){item, i, j}, get(c->spmm.dtype_d, got, check_place(a, item, i, j)), wanted[at], at,
                                activated, o);
}

/* Everything in an output's memory that is no element of it must be as it was. */
static void compare_gaps(const check_data *d, const char *name, int which, const void *got, const void *before, check_outcome *o)
{
    const check_case *c = d->c;
    const check_array *a = &c->arrays[which];
    const int64_t count = check_span(c, which);
    const size_t bytes = spk_dtype_bytes(c->spmm.dtype_d);
    bool *element = cli_alloc((size_t)count, sizeof(bool));
    for (int64_t item = 0; item < c->items; item++)
        for (int64_t i = 0; i < a->rows; i++)
            for (int64_t j = 0; j < a->cols; j++)
                element[check_place(a, item, i, j)] = true;
    for (int64_t i = 0; i < count; i++)
        if (!element[i] && memcmp((const char *)got + (size_t)i * bytes, (const char *)before + (size_t)i * bytes, bytes) != 0)
            fail(o, "wrote into the gap behind a line of %s (element %lld, leading dimension %lld)", name, (long long)i, (long long)a->ld);
    free(element);
}

static uint64_t hash(uint64_t h, const void *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        h = (h ^ ((const unsigned char *)bytes)[i]) * 0x100000001B3u;
    return h;
}

static size_t bytes_of(const check_case *c, int which)
{
    return (size_t)check_span(c, which) * spk_dtype_bytes(check_dtype(c, which));
}

static uint64_t hash_inputs(const check_data *d)
{
    static const int inputs[] = {CHECK_VALUES, CHECK_B, CHECK_C, CHECK_RESIDUAL};
    uint64_t h = 0xCBF29CE484222325u;
    for (int i = 0; i < 4; i++)
        h = hash(h, d->arrays[inputs[i]], bytes_of(d->c, inputs[i]));
    return h;
}

typedef struct buffers {
    void *d, *preact, *work, *whole_d, *whole_preact, *whole_work;
    size_t d_bytes, preact_bytes, work_bytes;
} buffers;

static buffers make_buffers(const check_data *d, const spk_plan *plan)
{
    buffers b = {
        .d_bytes = bytes_of(d->c, CHECK_D), .preact_bytes = bytes_of(d->c, CHECK_PREACT), .work_bytes = spk_plan_workspace_bytes(plan)};
    b.d = guarded(b.d_bytes, &b.whole_d);
    b.preact = guarded(b.preact_bytes, &b.whole_preact);
    b.work = guarded(b.work_bytes, &b.whole_work);
    memcpy(b.d, d->arrays[CHECK_D], b.d_bytes);
    return b;
}

static void release_buffers(buffers *b)
{
    free(b->whole_d);
    free(b->whole_preact);
    free(b->whole_work);
}

static spk_status run_plan(const check_case *c, const spk_plan *plan, const spk_spmm_args *run_args)
{
    const spk_sddmm_args sampled = check_sddmm_args(run_args);
    return spk_run(plan, c->operation == SPK_SDDMM ? (const void *)&sampled : run_args, NULL);
}

/* On a device with memory of its own: everything goes there and comes back, guards and inputs too. */
static spk_status run_there(const check_data *d, const spk_plan *plan, spk_spmm_args *run_args, buffers *b)
{
    const check_case *c = d->c;
    const void **const pointers[] = {&run_args->values,
                                     &run_args->b,
                                     &run_args->c,
                                     &run_args->bias,
                                     &run_args->residual,
                                     (const void **)&run_args->d,
                                     (const void **)&run_args->preact};
    device_array all[CHECK_ARRAYS + 1] = {0};
    for (int i = 0; i < CHECK_ARRAYS; i++)
        all[i] = (device_array){pointers[i], bytes_of(c, i), .output = i == CHECK_D || i == CHECK_PREACT,
                                .shift = (size_t)c->shifts[i] * spk_dtype_bytes(check_dtype(c, i))};
    all[CHECK_ARRAYS] = (device_array){(const void **)&run_args->workspace, b->work_bytes, .output = true};
    enum { COUNT = sizeof(all) / sizeof(*all) };
    const void *host_d = run_args->d;
    bool c_is_d = run_args->c == host_d, residual_is_d = run_args->residual == host_d;
    if (c_is_d)
        run_args->c = NULL;
    if (residual_is_d)
        run_args->residual = NULL;
    if (d->c->static_values)
        run_args->values = NULL; /* the plan has them */
    spk_status status = device_arrays_in(d->context, all, COUNT);
    if (c_is_d)
        run_args->c = run_args->d;
    if (residual_is_d)
        run_args->residual = run_args->d;
    if (status == SPK_OK)
        status = run_plan(d->c, plan, run_args);
    if (status == SPK_OK)
        status = spk_synchronize(d->context, NULL);
    return device_arrays_out(d->context, all, COUNT, status);
}

static spk_status run(const check_data *d, const spk_plan *plan, buffers *b)
{
    const check_case *c = d->c;
    spk_spmm_args run_args = {SPK_SIZED(spk_spmm_args), .values = d->arrays[CHECK_VALUES], .b = d->arrays[CHECK_B],
                              .bias = d->arrays[CHECK_BIAS], .d = b->d};
    run_args.c = c->alias_c ? b->d : d->arrays[CHECK_C];
    run_args.residual = c->alias_residual ? b->d : d->arrays[CHECK_RESIDUAL];
    run_args.preact = c->spmm.keep_preact ? b->preact : NULL;
    run_args.alpha = c->alpha;
    run_args.beta = c->beta;
    if (c->own_workspace && b->work_bytes) {
        run_args.workspace = b->work;
        run_args.workspace_bytes = b->work_bytes;
    }
    return device_is_far(d->context) ? run_there(d, plan, &run_args, b) : run_plan(c, plan, &run_args);
}

static void judge(const check_data *d, const buffers *b, uint64_t inputs, check_outcome *o)
{
    const spk_spmm *s = &d->c->spmm;
    void *blank = NULL;
    if (!guards_whole(b->whole_d, b->d_bytes))
        fail(o, "wrote outside of D");
    if (!guards_whole(b->whole_preact, b->preact_bytes))
        fail(o, "wrote outside of preact");
    if (!guards_whole(b->whole_work, b->work_bytes))
        fail(o, "wrote outside of the workspace (%zu bytes)", b->work_bytes);
    if (hash_inputs(d) != inputs)
        fail(o, "changed an input");
    compare(d, "D", CHECK_D, b->d, d->out, s->activation != SPK_ACT_NONE, o);
    compare_gaps(d, "D", CHECK_D, b->d, d->arrays[CHECK_D], o);
    if (!s->keep_preact)
        return;
    void *image = guarded(b->preact_bytes, &blank);
    compare(d, "preact", CHECK_PREACT, b->preact, d->preact, false, o);
    compare_gaps(d, "preact", CHECK_PREACT, b->preact, image, o);
    free(blank);
}

static void judge_again(const buffers *first, const buffers *second, check_outcome *o)
{
    if (memcmp(first->d, second->d, first->d_bytes) != 0 || memcmp(first->preact, second->preact, first->preact_bytes) != 0)
        fail(o, "two runs of one plan gave different bits");
}

/* A GPU runs one candidate at a time, whichever threads prepare the next ones: what goes wrong there is this candidate's doing. */
static pthread_mutex_t there = PTHREAD_MUTEX_INITIALIZER;

/* Gives the plan its values, where it keeps them, and runs it; again: twice. */
static spk_status run_all(const check_data *d, spk_plan *plan, buffers *first, buffers *second, bool again)
{
    const bool far = device_is_far(d->context);
    const void *values = d->arrays[CHECK_VALUES];
    device_array kept = {&values, bytes_of(d->c, CHECK_VALUES),
                         .shift = (size_t)d->c->shifts[CHECK_VALUES] * spk_dtype_bytes(d->c->spmm.dtype_a)};
    spk_status status = SPK_OK;
    if (far)
        pthread_mutex_lock(&there);
    if (d->c->static_values && far)
        status = device_arrays_in(d->context, &kept, 1);
    if (status == SPK_OK && d->c->static_values)
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
           (kind == SPK_KIND_VENDOR || kind == SPK_KIND_DENSE) && !device_is_far(d->context) &&
           (is_limited(RLIMIT_AS) || is_limited(RLIMIT_DATA));
}

void check_candidate(const check_data *d, spk_kind kind, const char *choice, bool again, check_outcome *outcome)
{
    check_outcome o = {0};
    spk_plan *plan = NULL;
    spk_tune_options options = check_options(d->c, d->finite);
    options.choice = choice;
    spk_status status = spk_plan_create(d->context, d->pattern, check_problem(d->c), &options, &plan);
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
            judge_again(&first, &second, &o);
        release_buffers(&first);
        release_buffers(&second);
    }
    if (status != SPK_OK && !o.unproved)
        fail(&o, "%s: %s", spk_status_name(status), spk_last_error(d->context));
    o.no_room = lacks_room(d, kind, status);
    o.lost = status == SPK_ERR_UNAVAILABLE && device_is_far(d->context) && spk_synchronize(d->context, NULL) == SPK_ERR_UNAVAILABLE;
    spk_plan_destroy(&plan);
    *outcome = o;
}
