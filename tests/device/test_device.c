/* What needs a GPU and is no single product: proofs with rows that fault and hang, streams, threads, contexts, graphs, pointers of little
 * alignment, memory that a caller gives or that is not there, two devices (memory.c), indices that stay there (deferred.c). The public
 * library only, and the driver through dlopen. Usage: test_device
 * [proof|streams|threads|contexts|graphs|aligned|skipped|epilogues|deferred|allocator|memory|devices ...] (default: all). Ends with 1 where
 * something is wrong; says it on standard error. */
#include <pthread.h>
#include <string.h>

#include "product.h"

/* ------------------------------------------------------------------------------------------------ streams, graphs, pointers */

static void two_streams(product *p, const char *choice)
{
    handle streams[2];
    char *d[2];
    spk_plan *plan = new_plan(p, choice);
    for (int i = 0; i < 2; i++) {
        DRIVER(cu.stream_create(&streams[i], 1));
        d[i] = new_d(p);
    }
    for (int i = 0; i < 40; i++) {
        spk_spmm_args args = args_of(p, d[i % 2]);
        MUST(p->context, spk_plan_run_spmm(plan, &args, streams[i % 2]));
    }
    for (int i = 0; i < 2; i++) {
        MUST(p->context, spk_synchronize(p->context, streams[i]));
        check(p, d[i], choice);
    }
    check_same(p, d[0], d[1], choice);
    spk_plan_destroy(&plan);
    for (int i = 0; i < 2; i++) {
        DRIVER(cu.stream_destroy(streams[i]));
        spk_memory_release(p->context, (void **)&d[i]);
    }
}

static void graph(product *p, const char *choice)
{
    handle stream, recorded, executable;
    spk_plan *plan = new_plan(p, choice);
    char *d = new_d(p), *again = new_d(p);
    spk_spmm_args args = args_of(p, d);
    DRIVER(cu.stream_create(&stream, 1));
    MUST(p->context, spk_plan_run_spmm(plan, &args, stream));
    DRIVER(cu.stream_synchronize(stream));
    args.d = again;
    DRIVER(cu.begin_capture(stream, 0));
    for (int i = 0; i < 3; i++)
        MUST(p->context, spk_plan_run_spmm(plan, &args, stream));
    DRIVER(cu.end_capture(stream, &recorded));
    DRIVER(cu.instantiate(&executable, recorded, 0));
    for (int i = 0; i < 3; i++)
        DRIVER(cu.launch(executable, stream));
    DRIVER(cu.stream_synchronize(stream));
    check(p, d, choice);
    check(p, again, choice);
    check_same(p, d, again, choice);
    DRIVER(cu.executable_destroy(executable));
    DRIVER(cu.graph_destroy(recorded));
    spk_plan_destroy(&plan);
    DRIVER(cu.stream_destroy(stream));
    spk_memory_release(p->context, (void **)&d);
    spk_memory_release(p->context, (void **)&again);
}

/* Operands one element beyond what allocation aligns. */
static void aligned_to_elements(product *p, const char *choice)
{
    spk_plan *plan = new_plan(p, choice);
    char *d = new_d(p), what[300];
    char *values = p->values, *b = p->b;
    const size_t value_bytes = (size_t)p->nnzb * BLOCK * BLOCK * p->element, b_bytes = (size_t)K * N * p->element;
    for (int which = 1; which < 8; which++) {
        spk_spmm_args args = args_of(p, d + (which & 4 ? p->element : 0));
        if (which & 1) {
            MUST(p->context, spk_memory_copy(p->context, values + p->element, SPK_DEVICE, p->host_values, SPK_HOST, value_bytes));
            args.values = values + p->element;
        }
        if (which & 2) {
            MUST(p->context, spk_memory_copy(p->context, b + p->element, SPK_DEVICE, p->host_b, SPK_HOST, b_bytes));
            args.b = b + p->element;
        }
        snprintf(what, sizeof what, "%s, misaligned %d", choice, which);
        MUST(p->context, spk_plan_run_spmm(plan, &args, NULL));
        MUST(p->context, spk_synchronize(p->context, NULL));
        check(p, args.d, what);
        MUST(p->context, spk_memory_copy(p->context, values, SPK_DEVICE, p->host_values, SPK_HOST, value_bytes));
        MUST(p->context, spk_memory_copy(p->context, b, SPK_DEVICE, p->host_b, SPK_HOST, b_bytes));
    }
    spk_plan_destroy(&plan);
    spk_memory_release(p->context, (void **)&d);
}

/* ------------------------------------------------------------------------------------------------ threads and contexts */

typedef struct runner {
    product *p;
    spk_plan *plan;
    const char *choice;
} runner;

static void *run_many(void *arg)
{
    runner *r = arg;
    handle stream;
    char *d = new_d(r->p);
    DRIVER(cu.stream_create(&stream, 1)); /* of the primary context, which the run makes current for itself */
    spk_spmm_args args = args_of(r->p, d);
    for (int i = 0; i < 50; i++)
        MUST(r->p->context, spk_plan_run_spmm(r->plan, &args, stream));
    MUST(r->p->context, spk_synchronize(r->p->context, stream));
    check(r->p, d, r->choice);
    DRIVER(cu.stream_destroy(stream));
    spk_memory_release(r->p->context, (void **)&d);
    return NULL;
}

static void *run_many_current(void *arg)
{
    handle context;
    int device = 0;
    DRIVER(cu.device_get(&device, 0));
    DRIVER(cu.retain(&context, device));
    DRIVER(cu.push(context));
    return run_many(arg);
}

static void two_threads(product *p, const char *choice)
{
    runner r = {p, new_plan(p, choice), choice};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, run_many_current, &r);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    spk_plan_destroy(&r.plan);
}

/* The second goes on after the first is gone. */
static void two_contexts(void)
{
    spk_context *contexts[2] = {new_context(), new_context()};
    product p[2];
    spk_plan *plans[2];
    char *d[2];
    for (int i = 0; i < 2; i++) {
        make_product(contexts[i], i == 0 ? SPK_F16 : SPK_F32, &p[i]);
        plans[i] = new_plan(&p[i], "reference_cuda_spmm");
        d[i] = new_d(&p[i]);
    }
    for (int i = 0; i < 20; i++) {
        spk_spmm_args args = args_of(&p[i % 2], d[i % 2]);
        MUST(contexts[i % 2], spk_plan_run_spmm(plans[i % 2], &args, NULL));
    }
    for (int i = 0; i < 2; i++) {
        MUST(contexts[i], spk_synchronize(contexts[i], NULL));
        check(&p[i], d[i], "the contexts in turn");
        if (i == 0) {
            spk_plan_destroy(&plans[0]);
            spk_memory_release(contexts[0], (void **)&d[0]);
            release_product(&p[0]);
            spk_context_destroy(&contexts[0]);
        }
    }
    spk_spmm_args args = args_of(&p[1], d[1]);
    MUST(contexts[1], spk_plan_run_spmm(plans[1], &args, NULL));
    MUST(contexts[1], spk_synchronize(contexts[1], NULL));
    check(&p[1], d[1], "the context that is left");
    spk_plan_destroy(&plans[1]);
    spk_memory_release(contexts[1], (void **)&d[1]);
    release_product(&p[1]);
    spk_context_destroy(&contexts[1]);
}

/* ------------------------------------------------------------------------------------------------ proofs */

static void check_refuted(const product *p, const spk_report *report, const char *name)
{
    spk_report_info info = {SPK_SIZED(spk_report_info)};
    MUST(p->context, spk_report_get_info(report, &info));
    for (int i = 0; i < info.candidate_count; i++) {
        spk_candidate_info c = {SPK_SIZED(spk_candidate_info)};
        MUST(p->context, spk_report_get_candidate(report, i, &c));
        if (strcmp(c.name, name) != 0)
            continue;
        printf("  %s: status %d, \"%s\"\n", name, (int)c.status, c.why != NULL ? c.why : "");
        if (c.status != SPK_CANDIDATE_FAILED || c.why == NULL || c.why[0] == '\0')
            FAIL("%s was not refuted", name);
        return;
    }
    FAIL("%s is not in the table: build with -DSPARSEK_TEST_ROWS=ON", name);
}

static void tune_with_them(const char *when)
{
    spk_context *context = new_context();
    product p;
    spk_report *report = NULL;
    make_product(context, SPK_F32, &p);
    spk_tune_options options = {SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_NOW,
                                .only = "test_fault,test_hang,spmm_cuda_simt,reference_cuda_spmm"};
    const double begun = now_s();
    MUST(context, spk_tune(context, p.pattern, &p.spmm, &options, &report));
    printf("  %s: tuned in %.2f s\n", when, now_s() - begun);
    check_refuted(&p, report, "test_fault");
    check_refuted(&p, report, "test_hang");
    spk_report_destroy(&report);
    spk_plan *plan = NULL;
    MUST(context, spk_plan_create_spmm(context, p.pattern, &p.spmm, &options, &plan));
    printf("  %s: %s\n", when, spk_plan_choice(plan));
    char *d = new_d(&p);
    spk_spmm_args args = args_of(&p, d);
    MUST(context, spk_plan_run_spmm(plan, &args, NULL));
    MUST(context, spk_synchronize(context, NULL));
    check(&p, d, "after the refutation");
    spk_plan_destroy(&plan);
    spk_memory_release(context, (void **)&d);
    release_product(&p);
    spk_context_destroy(&context);
}

static void proof(void)
{
    setenv("SPARSEK_TEST_ROWS", "1", 1);
    tune_with_them("first");
    tune_with_them("again, from what is kept");
    unsetenv("SPARSEK_TEST_ROWS");
}

static void streams(void)
{
    on_every_row(two_streams);
}
static void graphs(void)
{
    on_every_row(graph);
}
static void threads(void)
{
    on_every_row(two_threads);
}
static void aligned(void)
{
    on_every_row(aligned_to_elements);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } tests[] = {{"streams", streams}, {"threads", threads},     {"contexts", two_contexts}, {"graphs", graphs},
                 {"aligned", aligned}, {"skipped", skipped},     {"epilogues", epilogues},   {"deferred", deferred},
                 {"proof", proof},     {"allocator", allocator}, {"memory", out_of_memory},  {"devices", devices}};
    int known = 0;
    open_driver();
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        int wanted = argc < 2;
        for (int a = 1; a < argc; a++)
            wanted |= strcmp(argv[a], tests[i].name) == 0;
        if (!wanted)
            continue;
        known++;
        const int before = failures;
        const double begun = now_s();
        printf("%s\n", tests[i].name);
        tests[i].run();
        printf("%s: %s, %.1f s\n", tests[i].name, failures == before ? "passed" : "FAILED", now_s() - begun);
        fflush(stdout);
    }
    if (known < argc - 1)
        FAIL("there is no such test");
    return failures != 0;
}
