/* Device memory: given by the caller, not there, of another device. Each test of test_device that is named so. */
#include <pthread.h>
#include <string.h>

#include "product.h"

/* Of a tuning that is to have been, and no more. */
static const spk_tune_options quick = {SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_NOW, .only = "reference_cuda_spmm,spmm_cuda_simt",
                                       .budget_s = 0.3};

/* ------------------------------------------------------------------------------------------------ from the caller */

enum { MOST_PIECES = 64 };

static struct {
    struct {
        unsigned long long memory;
        size_t bytes;
        void *stream;
    } pieces[MOST_PIECES];
    int lent, ever, refuses;
} lender;

/* Ordered by the stream, so that a run on another one would find it gone, or not there yet. */
static void *lend(void *user, size_t bytes, void *stream)
{
    unsigned long long memory = 0;
    (void)user;
    if (lender.refuses || lender.lent == MOST_PIECES || cu.allocate_ordered(&memory, bytes, stream) != 0)
        return NULL;
    lender.pieces[lender.lent].memory = memory;
    lender.pieces[lender.lent].bytes = bytes;
    lender.pieces[lender.lent++].stream = stream;
    lender.ever++;
    return (void *)(uintptr_t)memory;
}

static void take_back(void *user, void *memory, size_t bytes, void *stream)
{
    int i = 0;
    (void)user;
    while (i < lender.lent && lender.pieces[i].memory != (unsigned long long)(uintptr_t)memory)
        i++;
    if (i == lender.lent || lender.pieces[i].bytes != bytes || lender.pieces[i].stream != stream) {
        FAIL("%zu bytes at %p for stream %p come back that were not lent so", bytes, memory, stream);
        return;
    }
    DRIVER(cu.release_ordered(lender.pieces[i].memory, stream));
    lender.pieces[i] = lender.pieces[--lender.lent];
}

static void run_on_two_streams(product *p, const char *choice)
{
    handle streams[2];
    char *d[2];
    spk_plan *plan = new_plan(p, choice);
    const int needed = spk_plan_workspace_bytes(plan) > 0;
    if (lender.lent != 0)
        FAIL("%s: %d pieces are lent before the first run", choice, lender.lent);
    for (int i = 0; i < 2; i++) {
        DRIVER(cu.stream_create(&streams[i], 1));
        d[i] = new_d(p);
    }
    spk_spmm_args args = args_of(p, d[0]);
    lender.refuses = 1;
    if (spk_plan_run_spmm(plan, &args, streams[0]) != (needed ? SPK_ERR_OUT_OF_MEMORY : SPK_OK))
        FAIL("%s without memory: \"%s\"", choice, spk_last_error(p->context));
    lender.refuses = 0;
    for (int i = 0; i < 20; i++) {
        args = args_of(p, d[i % 2]);
        MUST(p->context, spk_plan_run_spmm(plan, &args, streams[i % 2]));
    }
    if (lender.lent != 2 * needed)
        FAIL("%s: %d pieces are lent for two streams", choice, lender.lent);
    for (int i = 0; i < 2; i++) {
        MUST(p->context, spk_synchronize(p->context, streams[i]));
        check(p, d[i], choice);
    }
    spk_plan_destroy(&plan);
    for (int i = 0; i < 2; i++) {
        DRIVER(cu.stream_synchronize(streams[i]));
        DRIVER(cu.stream_destroy(streams[i]));
        spk_memory_release(p->context, (void **)&d[i]);
    }
    if (lender.lent != 0)
        FAIL("%s: %d pieces did not come back", choice, lender.lent);
}

void allocator(void)
{
    spk_context_options options = {SPK_SIZED(spk_context_options), .device = "cuda:0", .store_path = "", .device_allocate = lend,
                                   .device_release = take_back};
    spk_context *context = NULL;
    product p;
    MUST(NULL, spk_context_create(&options, &context));
    make_product(context, SPK_F16, &p);
    for_each_row(&p, run_on_two_streams);
    const int before = lender.ever;
    spk_plan *plan = NULL;
    MUST(context, spk_plan_create_spmm(context, p.pattern, &p.spmm, &quick, &plan));
    printf("  %d pieces lent, %d of them for tuning: %s\n", lender.ever, lender.ever - before, spk_plan_choice(plan));
    if (lender.ever == before || lender.lent != 0)
        FAIL("tuning took %d pieces and kept %d", lender.ever - before, lender.lent);
    spk_plan_destroy(&plan);
    release_product(&p);
    spk_context_destroy(&context);
}

/* ------------------------------------------------------------------------------------------------ not there */

enum { MOST_HELD = 4096 };
static unsigned long long held[MOST_HELD];
static int held_count;

/* All of the device's memory but `rest` bytes or less. */
static void hold_all_but(size_t rest)
{
    for (size_t piece = (size_t)1 << 37; piece >= (size_t)1 << 21; piece /= 2)
        for (size_t free_bytes = 0, total = 0; held_count < MOST_HELD; held_count++) {
            DRIVER(cu.memory_info(&free_bytes, &total));
            if (free_bytes < rest + piece || cu.memory_allocate(&held[held_count], piece) != 0)
                break;
        }
}

static void let_go(void)
{
    while (held_count > 0)
        DRIVER(cu.memory_release(held[--held_count]));
}

static void refused(spk_context *context, const char *what, spk_status status)
{
    printf("  %s: %s: %s\n", what, spk_status_name(status), spk_last_error(context));
    if (status != SPK_ERR_OUT_OF_MEMORY)
        FAIL("%s: status %d is not that of missing memory", what, (int)status);
}

static void run_once(product *p, spk_plan *plan, const char *what)
{
    char *d = new_d(p);
    spk_spmm_args args = args_of(p, d);
    MUST(p->context, spk_plan_run_spmm(plan, &args, NULL));
    MUST(p->context, spk_synchronize(p->context, NULL));
    check(p, d, what);
    spk_memory_release(p->context, (void **)&d);
}

void out_of_memory(void)
{
    spk_context *context = new_context();
    product p;
    void *memory = NULL;
    spk_plan *plan = NULL;
    spk_report *report = NULL;
    make_product(context, SPK_F32, &p);
    spk_plan *small = new_plan(&p, "reference_cuda_spmm");
    run_once(&p, small, "before");
    spk_spmm wide = p.spmm;
    wide.n = 1 << 20;
    spk_spmm finite = wide;
    finite.assume_finite = 1;
    spk_tune_options pinned = quick;
    pinned.only = NULL;
    pinned.choice = "cublas_dense ALGO=0"; /* its sums take a workspace */
    hold_all_but((size_t)48 << 20);
    refused(context, "memory", spk_memory_allocate(context, (size_t)1 << 30, &memory));
    refused(context, "a plan", spk_plan_create_spmm(context, p.pattern, &finite, &pinned, &plan));
    refused(context, "tuning", spk_tune(context, p.pattern, &wide, &quick, &report));
    if (memory != NULL || plan != NULL || report != NULL)
        FAIL("a failed call wrote its output");
    run_once(&p, small, "without memory for more");
    let_go();
    MUST(context, spk_plan_create_spmm(context, p.pattern, &finite, &pinned, &plan));
    spk_plan_destroy(&plan);
    MUST(context, spk_tune(context, p.pattern, &p.spmm, &quick, &report));
    spk_report_destroy(&report);
    run_once(&p, small, "with memory again");
    spk_plan_destroy(&small);
    release_product(&p);
    spk_context_destroy(&context);
}

/* ------------------------------------------------------------------------------------------------ of another device */

typedef struct on_device {
    product p;
    spk_plan *plan;
} on_device;

static void *run_there(void *arg)
{
    on_device *o = arg;
    char *d = new_d(&o->p);
    spk_spmm_args args = args_of(&o->p, d);
    for (int i = 0; i < 50; i++)
        MUST(o->p.context, spk_plan_run_spmm(o->plan, &args, NULL));
    MUST(o->p.context, spk_synchronize(o->p.context, NULL));
    check(&o->p, d, "one of two devices");
    spk_memory_release(o->p.context, (void **)&d);
    return NULL;
}

static void refuses(on_device *o, const spk_spmm_args *args, const char *piece)
{
    const spk_status status = spk_plan_run_spmm(o->plan, args, NULL);
    const char *message = spk_last_error(o->p.context);
    if (status != SPK_ERR_ARGUMENT || strstr(message, piece) == NULL)
        FAIL("status %d, \"%s\"; expected one of arguments with \"%s\"", (int)status, message, piece);
}

static spk_context *context_on(const char *device)
{
    spk_context *context = NULL;
    MUST(NULL, spk_context_create(&(spk_context_options){SPK_SIZED(spk_context_options), .device = device, .store_path = ""}, &context));
    return context;
}

/* Both devices through contexts of this process: a thread on each, pointers that belong elsewhere, and a tuned plan on the second. */
void devices(void)
{
    static const char *const choices[] = {"reference_cuda_spmm", "spmm_cuda_simt TILE_N=64 THREAD_N=4 TILE_K=16 STAGES=3 SPLIT=0",
                                          "cublas_dense ALGO=0", "cublas_blocks"};
    int count = 0;
    DRIVER(cu.device_count(&count));
    spk_context *contexts[2] = {context_on("cuda:0"), context_on(count > 1 ? "cuda:1" : "cuda:0")};
    printf("  %d device%s here\n", count, count == 1 ? "" : "s");
    for (size_t c = 0; c < sizeof choices / sizeof choices[0]; c++) {
        on_device on[2];
        pthread_t threads[2];
        for (int i = 0; i < 2; i++) {
            make_product(contexts[i], SPK_F32, &on[i].p);
            on[i].plan = new_plan(&on[i].p, choices[c]);
        }
        for (int i = 0; i < 2; i++)
            pthread_create(&threads[i], NULL, run_there, &on[i]);
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        char *d = new_d(&on[1].p);
        spk_spmm_args args = args_of(&on[1].p, d);
        args.b = on[1].p.host_b;
        refuses(&on[1], &args, "args.b");
        refuses(&on[1], &args, "host memory");
        args.b = on[0].p.b;
        if (count > 1)
            refuses(&on[1], &args, "is memory of cuda:0: this plan runs on cuda:1");
        spk_memory_release(contexts[1], (void **)&d);
        run_there(&on[1]); /* nothing came of it */
        for (int i = 0; i < 2; i++) {
            spk_plan_destroy(&on[i].plan);
            release_product(&on[i].p);
        }
    }
    on_device tuned;
    make_product(contexts[1], SPK_F16, &tuned.p);
    MUST(contexts[1], spk_plan_create_spmm(contexts[1], tuned.p.pattern, &tuned.p.spmm, &quick, &tuned.plan));
    run_there(&tuned);
    spk_plan_destroy(&tuned.plan);
    release_product(&tuned.p);
    for (int i = 0; i < 2; i++)
        spk_context_destroy(&contexts[i]);
}
