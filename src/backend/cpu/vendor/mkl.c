/* MKL as it is used here: a single-threaded gemm for each stored block, or one gemm of all threads for the densified matrix or SDDMM's
 * whole product. Threads are set for the calling thread only. It is made to share our OpenMP's threads (its GNU layer), unless the program
 * had chosen its own. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "backend/cpu/vendor/vendor.h"
#include "base/environment.h"

enum { INTERFACE_LP64 = 0, INTERFACE_ILP64_BIT = 1, THREADING_SEQUENTIAL = 1, THREADING_GNU = 3 };

/* ------------------------------------------------------------------------------------------------ the library */

/* MKL ends the process where a part of it is missing, so the parts are looked for before anything is called. */
static bool parts_present(const char *path, int threading, char *why, size_t size)
{
    const char *const parts[] = {"core", "intel_lp64", threading == THREADING_GNU ? "gnu_thread" : "sequential", "def", "avx2"};
    const char *slash = strrchr(path, '/'), *suffix = slash != NULL ? strstr(slash, ".so") : NULL;
    if (suffix == NULL) {
        snprintf(why, size, "%s is not named like a shared library", path);
        return false;
    }
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        char part[4096];
        snprintf(part, sizeof part, "%.*s/libmkl_%s%s", (int)(slash - path), path, parts[i], suffix);
        if (access(part, R_OK) != 0) {
            snprintf(why, size, "a part of it is not there: %.300s", part);
            return false;
        }
    }
    return true;
}

/* Its GNU layer takes OpenMP's functions from the process: ours are made visible to it, so that there is one pool of threads. */
static bool share_openmp(void)
{
#ifdef SPK_HAVE_OPENMP
    Dl_info where;
    void *function = dlsym(RTLD_DEFAULT, "omp_get_max_threads");
    if (function != NULL && dladdr(function, &where) != 0 && dlopen(where.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD) != NULL)
        return true;
#endif
    return dlopen("libgomp.so.1", RTLD_NOW | RTLD_GLOBAL) != NULL;
}

bool spk_mkl_prepare(void *handle, const spk_opened *opened, char *why, size_t size)
{
    int (*set_interface)(int) = NULL, (*set_threading)(int) = NULL, (*set_threads)(int) = NULL;
    spk_cblas cblas;
    const char *interface = spk_environment_value("MKL_INTERFACE_LAYER"), *threading = spk_environment_value("MKL_THREADING_LAYER");
    if (!spk_library_function(handle, "MKL_Set_Interface_Layer", &set_interface) ||
        !spk_library_function(handle, "MKL_Set_Threading_Layer", &set_threading) ||
        !spk_library_function(handle, "MKL_Set_Num_Threads_Local", &set_threads) || !spk_cblas_find(handle, &cblas)) {
        snprintf(why, size, "it lacks functions of libmkl_rt");
        return false;
    }
    if (interface != NULL && strcasestr(interface, "ILP64") != NULL) {
        snprintf(why, size, "MKL_INTERFACE_LAYER = \"%s\": 32-bit integers (LP64) are needed", interface);
        return false;
    }
    if (!opened->by_host && (threading == NULL || *threading == '\0')) {
        int layer = share_openmp() ? THREADING_GNU : THREADING_SEQUENTIAL;
        if (!parts_present(opened->path, layer, why, size))
            return false;
        set_threading(layer);
    }
    if (set_interface(INTERFACE_LP64) & INTERFACE_ILP64_BIT) {
        snprintf(why, size, "the program uses it with 64-bit integers");
        return false;
    }
    return true;
}

void spk_mkl_version(void *handle, char *text, size_t size)
{
    void (*get)(char *, int) = NULL;
    if (spk_library_function(handle, "MKL_Get_Version_String", &get))
        get(text, (int)size);
    text[size - 1] = '\0';
    for (size_t length = strlen(text); length > 0 && text[length - 1] == ' '; length--)
        text[length - 1] = '\0';
}

spk_status spk_mkl_open(const spk_device *device, void **handle, spk_mkl *mkl)
{
    SPK_TRY(spk_library_open(device, "mkl", handle));
    if (!spk_cblas_find(*handle, &mkl->cblas) || !spk_library_function(*handle, "MKL_Set_Num_Threads_Local", &mkl->set_threads))
        return spk_fail(SPK_ERR_UNSUPPORTED, "mkl: a function is gone");
    return SPK_OK;
}

/* ------------------------------------------------------------------------------------------------ mkl_blocks */

typedef struct blocks_state {
    spk_mkl mkl;
    spk_blocks blocks;
} blocks_state;

typedef struct dense_state {
    spk_mkl mkl;
    spk_dense dense;
} dense_state;

static int become_single(const void *user)
{
    const spk_mkl *mkl = user;
    return mkl->set_threads(1);
}

static void restore_threads(const void *user, int before)
{
    const spk_mkl *mkl = user;
    mkl->set_threads(before);
}

static void multiply_block(const void *user, const spk_product *product)
{
    const spk_mkl *mkl = user;
    spk_cblas_multiply(&mkl->cblas, product);
}

static bool blocks_applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)device, (void)params;
    *why = spk_vendor_refusal(problem);
    return *why == NULL;
}

static double blocks_predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    (void)params;
    return spk_blocks_predict_us(problem, device, 0.45, 0.9);
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
    static const spk_blocks_library calls = {
        .multiply = multiply_block, .takes_alpha = true, .begin = become_single, .end = restore_threads};
    blocks_state *state = NULL;
    void *handle = NULL;
    spk_status status = SPK_OK;
    SPK_TRY(spk_calloc(&bound->device->mem, 1, sizeof *state, &state));
    bound->state = state;
    SPK_GOTO(spk_mkl_open(bound->device, &handle, &state->mkl));
    SPK_GOTO(spk_blocks_make(bound, &calls, &state->mkl, 0, spk_product_is_result(&bound->problem, false), &state->blocks));
    return SPK_OK;
done:
    blocks_unbind(bound);
    return status;
}

static spk_status blocks_run(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)stream;
    const blocks_state *state = bound->state;
    spk_blocks_run(bound, &state->blocks, args);
    return SPK_OK;
}

const spk_kernel_ops mkl_blocks_ops = {
    .applicable = blocks_applicable,
    .predict_us = blocks_predict_us,
    .bind = blocks_bind,
    .unbind = blocks_unbind,
    .run = blocks_run,
    .source_hash = SPK_SOURCE_HASH,
};

/* ------------------------------------------------------------------------------------------------ mkl_dense */

static void multiply_whole(const void *user, const spk_product *product, int threads)
{
    const spk_mkl *mkl = user;
    int before = mkl->set_threads(threads);
    spk_cblas_multiply(&mkl->cblas, product);
    mkl->set_threads(before);
}

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
    void *handle = NULL;
    spk_status status = SPK_OK;
    SPK_TRY(spk_calloc(&bound->device->mem, 1, sizeof *state, &state));
    bound->state = state;
    SPK_GOTO(spk_mkl_open(bound->device, &handle, &state->mkl));
    SPK_GOTO(spk_dense_make(bound, multiply_whole, &state->mkl, 0, &state->dense));
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

const spk_kernel_ops mkl_dense_ops = {
    .applicable = dense_applicable,
    .predict_us = spk_dense_predict_us,
    .bind = dense_bind,
    .unbind = dense_unbind,
    .update_values = dense_update,
    .run = dense_run,
    .source_hash = SPK_SOURCE_HASH,
};

/* ------------------------------------------------------------------------------------------------ mkl_dense_sddmm */

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
    spk_mkl *library = NULL;
    void *handle = NULL;
    SPK_TRY(spk_calloc(&bound->device->mem, 1, sizeof *library, &library));
    bound->state = library;
    const spk_status status = spk_mkl_open(bound->device, &handle, library);
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

const spk_kernel_ops mkl_dense_sddmm_ops = {
    .applicable = sampled_applicable,
    .predict_us = spk_sampled_predict_us,
    .bind = sampled_bind,
    .unbind = whole_unbind,
    .run = sampled_run,
    .source_hash = SPK_SOURCE_HASH,
};

/* ------------------------------------------------------------------------------------------------ mkl_gemm */

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

const spk_kernel_ops mkl_gemm_ops = {
    .applicable = gemm_applicable,
    .predict_us = spk_gemm_predict_us,
    .bind = gemm_bind,
    .unbind = whole_unbind,
    .run = gemm_run,
    .batched = true,
    .grouped = true,
    .source_hash = SPK_SOURCE_HASH,
};
