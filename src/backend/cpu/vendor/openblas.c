/* OpenBLAS as it is used here: a single-threaded gemm for each stored block, or one gemm of all threads for the densified matrix, SDDMM's
 * whole product or GEMM. Its number of threads belongs to the whole process: it is changed for the time of a run and put back, and runs
 * that want different numbers wait for each other. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/vendor/vendor.h"

typedef struct openblas {
    spk_cblas cblas;
    void (*set_threads)(int);
    int (*get_threads)(void);
} openblas;

typedef struct blocks_state {
    openblas library;
    spk_blocks blocks;
} blocks_state;

typedef struct dense_state {
    openblas library;
    spk_dense dense;
} dense_state;

/* ------------------------------------------------------------------------------------------------ the library */

static const char *configuration(void *handle)
{
    char *(*get)(void) = NULL;
    const char *text = spk_library_function(handle, "openblas_get_config", &get) ? get() : NULL;
    return text != NULL ? text : "";
}

static bool find_functions(void *handle, openblas *library)
{
    return spk_cblas_find(handle, &library->cblas) && spk_library_function(handle, "openblas_set_num_threads", &library->set_threads) &&
           spk_library_function(handle, "openblas_get_num_threads", &library->get_threads);
}

static atomic_int most_threads; /* that it has started */

bool spk_openblas_prepare(void *handle, const spk_opened *opened, char *why, size_t size)
{
    (void)opened;
    openblas library;
    if (strstr(configuration(handle), "USE64BITINT") != NULL)
        snprintf(why, size, "it was built with 64-bit integers (%s); the one with 32-bit integers is needed", configuration(handle));
    else if (!find_functions(handle, &library))
        snprintf(why, size, "it lacks cblas_sgemm, cblas_dgemm, openblas_set_num_threads or openblas_get_num_threads");
    else {
        atomic_store(&most_threads, library.get_threads());
        return true;
    }
    return false;
}

void spk_openblas_version(void *handle, char *text, size_t size)
{
    snprintf(text, size, "%s", configuration(handle));
}

/* ------------------------------------------------------------------------------------------------ its number of threads */

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER;
static int single_runs, threads_before;

/* A child of fork() has one thread, which holds nothing of this. */
static void renew_guard(void)
{
    pthread_mutex_t fresh_guard = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t fresh_idle = PTHREAD_COND_INITIALIZER;
    guard = fresh_guard;
    idle = fresh_idle;
    single_runs = 0;
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, renew_guard);
}

/* OpenBLAS does not look whether the threads that it is to have more than before could be started: they are tried, and started at once. */
static spk_status grow(const openblas *library, int threads)
{
    char why[200];
    spk_status status = SPK_OK;
    if (threads <= atomic_load_explicit(&most_threads, memory_order_acquire))
        return SPK_OK;
    pthread_mutex_lock(&guard);
    while (single_runs > 0)
        pthread_cond_wait(&idle, &guard);
    const int had = atomic_load(&most_threads);
    if (threads > had && !spk_openblas_fits(threads, had, why, sizeof why)) {
        status = spk_fail(SPK_ERR_UNAVAILABLE, "openblas: %s", why);
    } else if (threads > had) {
        const int before = library->get_threads();
        library->set_threads(threads);
        library->set_threads(before);
        atomic_store_explicit(&most_threads, threads, memory_order_release);
    }
    pthread_mutex_unlock(&guard);
    return status;
}

static spk_status open_library(const spk_device *device, openblas *library)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    void *handle = NULL;
    SPK_TRY(spk_library_open(device, "openblas", &handle));
    if (!find_functions(handle, library))
        return spk_fail(SPK_ERR_UNSUPPORTED, "openblas: a function is gone");
    /* It keeps buffers for twice that many callers, and ends the process when they run out. */
    const char *most = strstr(configuration(handle), "MAX_THREADS=");
    int limit = most != NULL ? atoi(most + strlen("MAX_THREADS=")) : 0;
    const int threads = device->executor.threads;
    if (limit > 0 && threads > limit)
        return spk_fail(SPK_ERR_UNSUPPORTED, "threads = %d: this OpenBLAS was built for at most %d", threads, limit);
    return grow(library, threads);
}

/* Any number of runs may call it single-threaded at once. */
static void enter_single(const openblas *library)
{
    pthread_mutex_lock(&guard);
    if (single_runs++ == 0) {
        threads_before = library->get_threads();
        library->set_threads(1);
    }
    pthread_mutex_unlock(&guard);
}

static void leave_single(const openblas *library)
{
    pthread_mutex_lock(&guard);
    if (--single_runs == 0) {
        library->set_threads(threads_before);
        pthread_cond_broadcast(&idle);
    }
    pthread_mutex_unlock(&guard);
}

static void multiply_block(const void *user, const spk_product *product)
{
    const openblas *library = user;
    spk_cblas_multiply(&library->cblas, product);
}

/* One run at a time may use all threads. */
static void multiply_whole(const void *user, const spk_product *product, int threads)
{
    const openblas *library = user;
    pthread_mutex_lock(&guard);
    while (single_runs > 0)
        pthread_cond_wait(&idle, &guard);
    int before = library->get_threads();
    if (before != threads)
        library->set_threads(threads);
    spk_cblas_multiply(&library->cblas, product);
    if (before != threads)
        library->set_threads(before);
    pthread_mutex_unlock(&guard);
}

/* ------------------------------------------------------------------------------------------------ openblas_blocks */

static bool blocks_applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)device, (void)params;
    *why = spk_vendor_refusal(problem);
    return *why == NULL;
}

static double blocks_predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    (void)params;
    return spk_blocks_predict_us(problem, device, 0.55, 0.85);
}

static void blocks_unbind(spk_bound *bound)
{
    blocks_state *state = bound->state;
    if (state == NULL)
        return;
    spk_blocks_release(bound, &state->blocks);
    spk_free(&bound->device->mem, state);
    bound->state = NULL;
}

static spk_status blocks_bind(spk_bound *bound)
{
    static const spk_blocks_library calls = {.multiply = multiply_block, .takes_alpha = true};
    blocks_state *state = NULL;
    spk_status status = SPK_OK;
    SPK_TRY(spk_calloc(&bound->device->mem, 1, sizeof *state, &state));
    bound->state = state;
    SPK_GOTO(open_library(bound->device, &state->library));
    SPK_GOTO(spk_blocks_make(bound, &calls, &state->library, 0, spk_product_is_result(&bound->problem, false), &state->blocks));
    return SPK_OK;
done:
    blocks_unbind(bound);
    return status;
}

static spk_status blocks_run(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)stream;
    const blocks_state *state = bound->state;
    enter_single(&state->library);
    spk_blocks_run(bound, &state->blocks, args);
    leave_single(&state->library);
    return SPK_OK;
}

const spk_kernel_ops openblas_blocks_ops = {
    .applicable = blocks_applicable,
    .predict_us = blocks_predict_us,
    .bind = blocks_bind,
    .unbind = blocks_unbind,
    .run = blocks_run,
    .source_hash = SPK_SOURCE_HASH,
};

/* ------------------------------------------------------------------------------------------------ openblas_dense */

static bool dense_applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)params;
    return spk_dense_applicable(problem, device, why);
}

static void dense_unbind(spk_bound *bound)
{
    dense_state *state = bound->state;
    if (state == NULL)
        return;
    spk_dense_release(bound, &state->dense);
    spk_free(&bound->device->mem, state);
    bound->state = NULL;
}

static spk_status dense_bind(spk_bound *bound)
{
    dense_state *state = NULL;
    spk_status status = SPK_OK;
    SPK_TRY(spk_calloc(&bound->device->mem, 1, sizeof *state, &state));
    bound->state = state;
    SPK_GOTO(open_library(bound->device, &state->library));
    SPK_GOTO(spk_dense_make(bound, multiply_whole, &state->library, 0, &state->dense));
    return SPK_OK;
done:
    dense_unbind(bound);
    return status;
}

static spk_status dense_update(spk_bound *bound, const void *values)
{
    dense_state *state = bound->state;
    return spk_dense_update(bound, &state->dense, values);
}

static spk_status dense_run(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)stream;
    const dense_state *state = bound->state;
    return spk_dense_run(bound, &state->dense, args);
}

const spk_kernel_ops openblas_dense_ops = {
    .applicable = dense_applicable,
    .predict_us = spk_dense_predict_us,
    .bind = dense_bind,
    .unbind = dense_unbind,
    .update_values = dense_update,
    .run = dense_run,
    .source_hash = SPK_SOURCE_HASH,
};

/* ------------------------------------------------------------------------------------------------ openblas_dense_sddmm */

static bool sampled_applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)params;
    return spk_sampled_applicable(problem, device, why);
}

static void whole_unbind(spk_bound *bound)
{
    spk_free(&bound->device->mem, bound->state);
    bound->state = NULL;
}

static spk_status whole_bind(spk_bound *bound, size_t workspace_bytes)
{
    openblas *library = NULL;
    SPK_TRY(spk_calloc(&bound->device->mem, 1, sizeof *library, &library));
    bound->state = library;
    const spk_status status = open_library(bound->device, library);
    if (status != SPK_OK) {
        whole_unbind(bound);
        return status;
    }
    bound->workspace_bytes = workspace_bytes;
    return SPK_OK;
}

static spk_status sampled_bind(spk_bound *bound)
{
    return whole_bind(bound, spk_sampled_workspace_bytes(&bound->problem));
}

static spk_status sampled_run(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)stream;
    spk_sampled_run(bound, args, multiply_whole, bound->state);
    return SPK_OK;
}

const spk_kernel_ops openblas_dense_sddmm_ops = {
    .applicable = sampled_applicable,
    .predict_us = spk_sampled_predict_us,
    .bind = sampled_bind,
    .unbind = whole_unbind,
    .run = sampled_run,
    .source_hash = SPK_SOURCE_HASH,
};

/* ------------------------------------------------------------------------------------------------ openblas_gemm */

static bool gemm_applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)params;
    return spk_gemm_applicable(problem, device, why);
}

static spk_status gemm_bind(spk_bound *bound)
{
    return whole_bind(bound, spk_gemm_acc_bytes(&bound->problem));
}

static spk_status gemm_run(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)stream;
    spk_gemm_run(bound, args, multiply_whole, bound->state);
    return SPK_OK;
}

const spk_kernel_ops openblas_gemm_ops = {
    .applicable = gemm_applicable,
    .predict_us = spk_gemm_predict_us,
    .bind = gemm_bind,
    .unbind = whole_unbind,
    .run = gemm_run,
    .batched = true,
    .grouped = true,
    .source_hash = SPK_SOURCE_HASH,
};
