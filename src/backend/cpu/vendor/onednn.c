/* oneDNN as it is used here: one matmul of all threads for the densified matrix, SDDMM's whole product or GEMM, in float32, bfloat16 and
 * float16. Its C interface of version 3, called by address. A matmul is made for its sizes, strides, scale and number of threads: the one
 * that a plan needs when the plan is, others (groups of other sizes, another alpha or beta) in the run, where oneDNN has a cache of them.
 * Its threads are OpenMP's, whose number for the calling thread is changed for the time of a call. */
#include <stdio.h>
#include <string.h>

#include "backend/cpu/vendor/vendor.h"
#include "type/value.h"

/* Values of oneDNN's enumerations. */
enum {
    DNNL_SUCCESS = 0,
    DNNL_CPU = 1,
    DNNL_IN_ORDER = 1,
    DNNL_SCRATCHPAD_USER = 1,
    DNNL_ELTWISE_LINEAR = 0x26,
    DNNL_QUERY_IMPLEMENTATION = 8,
    DNNL_QUERY_SCRATCHPAD = 136,
    DNNL_ARG_SRC = 1,
    DNNL_ARG_DST = 17,
    DNNL_ARG_WEIGHTS = 33,
    DNNL_ARG_SCRATCHPAD = 80,
    DNNL_SEQUENTIAL = 1,
    DNNL_OPENMP = 2
};

typedef struct dnnl_version {
    int major, minor, patch;
    const char *hash;
    unsigned cpu_runtime, gpu_runtime;
} dnnl_version;

typedef struct dnnl_argument {
    int arg;
    void *memory;
} dnnl_argument;

/* Name, result and parameters of the functions: objects are pointers. */
#define FUNCTIONS(F)                                                                                                              \
    F(version, const dnnl_version *, (void))                                                                                      \
    F(engine_create, int, (void **, int, size_t))                                                                                 \
    F(engine_destroy, int, (void *))                                                                                              \
    F(stream_create, int, (void **, void *, unsigned))                                                                            \
    F(stream_wait, int, (void *))                                                                                                 \
    F(stream_destroy, int, (void *))                                                                                              \
    F(memory_desc_create_with_strides, int, (void **, int, const int64_t *, int, const int64_t *))                                \
    F(memory_desc_clone, int, (void **, const void *))                                                                            \
    F(memory_desc_get_size, size_t, (const void *))                                                                               \
    F(memory_desc_destroy, int, (void *))                                                                                         \
    F(memory_create, int, (void **, const void *, void *, void *))                                                                \
    F(memory_destroy, int, (void *))                                                                                              \
    F(primitive_attr_create, int, (void **))                                                                                      \
    F(primitive_attr_set_scratchpad_mode, int, (void *, int))                                                                     \
    F(primitive_attr_set_post_ops, int, (void *, const void *))                                                                   \
    F(primitive_attr_destroy, int, (void *))                                                                                      \
    F(post_ops_create, int, (void **))                                                                                            \
    F(post_ops_append_eltwise, int, (void *, int, float, float))                                                                  \
    F(post_ops_append_sum, int, (void *, float, int32_t, int))                                                                    \
    F(post_ops_destroy, int, (void *))                                                                                            \
    F(matmul_primitive_desc_create, int, (void **, void *, const void *, const void *, const void *, const void *, const void *)) \
    F(primitive_desc_query, int, (const void *, int, int, void *))                                                                \
    F(primitive_desc_query_md, const void *, (const void *, int, int))                                                            \
    F(primitive_desc_destroy, int, (void *))                                                                                      \
    F(primitive_create, int, (void **, const void *))                                                                             \
    F(primitive_execute, int, (const void *, void *, int, const dnnl_argument *))                                                 \
    F(primitive_destroy, int, (void *))

typedef struct onednn {
#define F(name, result, parameters) result(*name) parameters;
    FUNCTIONS(F)
#undef F
    void (*set_threads)(int); /* of OpenMP, for the calling thread; NULL: it has one thread */
    int (*get_threads)(void);
    void *engine;
} onednn;

/* A matmul that was made, and what it was made for. */
enum { SRC, WEIGHTS, DST, SCRATCH, MEMORIES };

typedef struct matmul {
    spk_product product; /* without its arrays */
    int threads;
    void *primitive, *layouts[MEMORIES]; /* layouts[SCRATCH]: NULL where it takes none */
    size_t scratch_bytes;
} matmul;

typedef struct onednn_state {
    onednn library;
    matmul made;
    spk_dense dense; /* of onednn_dense */
} onednn_state;

/* ------------------------------------------------------------------------------------------------ the library */

/* The first function that is missing, or NULL. */
static const char *find_functions(void *handle, onednn *library)
{
#define F(name, result, parameters)                                   \
    if (!spk_library_function(handle, "dnnl_" #name, &library->name)) \
        return "dnnl_" #name;
    FUNCTIONS(F)
#undef F
    return NULL;
}

/* OpenMP's functions as the library sees them: a search from it comes to its own OpenMP first. */
static bool find_threads(void *handle, onednn *library)
{
    library->set_threads = NULL;
    library->get_threads = NULL;
    return library->version()->cpu_runtime == DNNL_SEQUENTIAL ||
           (spk_library_function(handle, "omp_set_num_threads", &library->set_threads) &&
            spk_library_function(handle, "omp_get_max_threads", &library->get_threads));
}

bool spk_onednn_prepare(void *handle, const spk_opened *opened, char *why, size_t size)
{
    (void)opened;
    onednn library;
    const dnnl_version *(*version)(void) = NULL;
    if (!spk_library_function(handle, "dnnl_version", &version)) {
        snprintf(why, size, "it is no oneDNN: it lacks dnnl_version");
        return false;
    }
    const dnnl_version *v = version();
    const char *missing = v->major == 3 ? find_functions(handle, &library) : NULL;
    if (v->major != 3)
        snprintf(why, size, "it is oneDNN %d.%d: version 3 is needed", v->major, v->minor);
    else if (missing != NULL)
        snprintf(why, size, "it lacks %s", missing);
    else if (v->cpu_runtime != DNNL_OPENMP && v->cpu_runtime != DNNL_SEQUENTIAL)
        snprintf(why, size, "its threads are not OpenMP's (runtime %u): their number cannot be set", v->cpu_runtime);
    else if (!find_threads(handle, &library))
        snprintf(why, size, "its OpenMP lacks omp_set_num_threads or omp_get_max_threads");
    else
        return true;
    return false;
}

void spk_onednn_version(void *handle, char *text, size_t size)
{
    const dnnl_version *(*version)(void) = NULL;
    if (!spk_library_function(handle, "dnnl_version", &version))
        return;
    const dnnl_version *v = version();
    snprintf(text, size, "oneDNN %d.%d.%d, %s", v->major, v->minor, v->patch, v->cpu_runtime == DNNL_OPENMP ? "OpenMP" : "one thread");
}

static spk_status open_library(const spk_device *device, onednn *library)
{
    void *handle = NULL;
    SPK_TRY(spk_library_open(device, "onednn", &handle));
    if (find_functions(handle, library) != NULL || !find_threads(handle, library))
        return spk_fail(SPK_ERR_UNSUPPORTED, "onednn: a function is gone");
    if (library->engine_create(&library->engine, DNNL_CPU, 0) != DNNL_SUCCESS)
        return spk_fail(SPK_ERR_UNSUPPORTED, "onednn: it made no engine for the CPU");
    return SPK_OK;
}

/* How many threads it takes from here on; returns how many it took before. */
static int enter(const onednn *library, int threads)
{
    if (library->set_threads == NULL)
        return 0;
    const int before = library->get_threads();
    if (before != threads)
        library->set_threads(threads);
    return before;
}

static void leave(const onednn *library, int before, int threads)
{
    if (library->set_threads != NULL && before != threads)
        library->set_threads(before);
}

/* ------------------------------------------------------------------------------------------------ a matmul */

static void release_matmul(const onednn *library, matmul *m)
{
    for (int i = 0; i < MEMORIES; i++)
        if (m->layouts[i] != NULL)
            library->memory_desc_destroy(m->layouts[i]);
    if (m->primitive != NULL)
        library->primitive_destroy(m->primitive);
    memset(m, 0, sizeof *m);
}

static int make_layout(const onednn *library, spk_dtype dtype, int64_t rows, int64_t cols, spk_layout layout, int64_t ld, void **out)
{
    const int64_t sizes[] = {rows, cols}, strides[] = {layout == SPK_ROW_MAJOR ? ld : 1, layout == SPK_ROW_MAJOR ? 1 : ld};
    return library->memory_desc_create_with_strides(out, 2, sizes, spk_type_of(dtype)->onednn, strides);
}

static spk_layout turned(spk_layout layout)
{
    return layout == SPK_ROW_MAJOR ? SPK_COL_MAJOR : SPK_ROW_MAJOR;
}

/* The same product with a row-major D: D' = B' A'. Its code for others is slow. */
static spk_product by_rows(const spk_product *product)
{
    spk_product p = *product;
    if (p.layout_d == SPK_ROW_MAJOR)
        return p;
    p.m = product->n;
    p.n = product->m;
    p.a = product->b;
    p.b = product->a;
    p.lda = product->ldb;
    p.ldb = product->lda;
    p.layout_a = turned(product->layout_b);
    p.layout_b = turned(product->layout_a);
    p.layout_d = SPK_ROW_MAJOR;
    return p;
}

/* Scratch memory of the caller's, or (for a matmul of one call) its own; alpha and beta as further operations. */
static int make_attributes(const onednn *library, const spk_product *p, bool own_scratch, void **attributes)
{
    void *more = NULL;
    int status = library->primitive_attr_create(attributes);
    if (status == DNNL_SUCCESS && !own_scratch)
        status = library->primitive_attr_set_scratchpad_mode(*attributes, DNNL_SCRATCHPAD_USER);
    if (status != DNNL_SUCCESS || (p->alpha == 1 && p->beta == 0))
        return status;
    status = library->post_ops_create(&more);
    if (status == DNNL_SUCCESS && p->alpha != 1)
        status = library->post_ops_append_eltwise(more, DNNL_ELTWISE_LINEAR, (float)p->alpha, 0);
    if (status == DNNL_SUCCESS && p->beta != 0)
        status = library->post_ops_append_sum(more, (float)p->beta, 0, spk_type_of(p->dtype_d)->onednn);
    if (status == DNNL_SUCCESS)
        status = library->primitive_attr_set_post_ops(*attributes, more);
    if (more != NULL)
        library->post_ops_destroy(more);
    return status;
}

/* p is by rows. NULL: it is made; else what went wrong. Threads are set. once: for one call, where the plain loops of its reference will do
 * (it has nothing else for alpha = 0). */
static const char *make_matmul(const onednn *library, const spk_product *p, bool once, matmul *out)
{
    matmul m = {.product = *p};
    void *attributes = NULL, *description = NULL;
    const char *wrong = NULL, *name = NULL;
    if (make_layout(library, p->dtype, p->m, p->k, p->layout_a, p->lda, &m.layouts[SRC]) != DNNL_SUCCESS ||
        make_layout(library, p->dtype, p->k, p->n, p->layout_b, p->ldb, &m.layouts[WEIGHTS]) != DNNL_SUCCESS ||
        make_layout(library, p->dtype_d, p->m, p->n, p->layout_d, p->ldd, &m.layouts[DST]) != DNNL_SUCCESS ||
        make_attributes(library, p, once, &attributes) != DNNL_SUCCESS)
        wrong = "it has no room for a matmul";
    else if (library->matmul_primitive_desc_create(&description, library->engine, m.layouts[SRC], m.layouts[WEIGHTS], NULL, m.layouts[DST],
                                                   attributes) != DNNL_SUCCESS)
        wrong = "it has no matmul of these types for this processor";
    else if (!once && (library->primitive_desc_query(description, DNNL_QUERY_IMPLEMENTATION, 0, &name) != DNNL_SUCCESS || name == NULL ||
                       strncmp(name, "ref", 3) == 0))
        wrong = "its only matmul of these types for this processor is the plain loops of its reference";
    else if (library->primitive_create(&m.primitive, description) != DNNL_SUCCESS)
        wrong = "it could not make a matmul";
    if (wrong == NULL && !once) {
        const void *scratch = library->primitive_desc_query_md(description, DNNL_QUERY_SCRATCHPAD, 0);
        m.scratch_bytes = scratch != NULL ? library->memory_desc_get_size(scratch) : 0;
        if (m.scratch_bytes > 0 && library->memory_desc_clone(&m.layouts[SCRATCH], scratch) != DNNL_SUCCESS)
            wrong = "it has no room for a matmul";
    }
    if (description != NULL)
        library->primitive_desc_destroy(description);
    if (attributes != NULL)
        library->primitive_attr_destroy(attributes);
    if (wrong != NULL)
        release_matmul(library, &m);
    *out = m;
    return wrong;
}

static spk_status execute(const onednn *library, const matmul *m, const spk_product *p)
{
    static const int names[MEMORIES] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_SCRATCHPAD};
    void *const arrays[MEMORIES] = {(void *)p->a, (void *)p->b, p->d, p->scratch};
    dnnl_argument arguments[MEMORIES];
    void *stream = NULL;
    int count = 0, status = library->stream_create(&stream, library->engine, DNNL_IN_ORDER);
    for (int i = 0; i < MEMORIES && status == DNNL_SUCCESS; i++)
        if (m->layouts[i] != NULL) {
            arguments[count].arg = names[i];
            status = library->memory_create(&arguments[count].memory, m->layouts[i], library->engine, arrays[i]);
            count += status == DNNL_SUCCESS;
        }
    if (status == DNNL_SUCCESS)
        status = library->primitive_execute(m->primitive, stream, count, arguments);
    if (status == DNNL_SUCCESS)
        status = library->stream_wait(stream);
    while (count > 0)
        library->memory_destroy(arguments[--count].memory);
    if (stream != NULL)
        library->stream_destroy(stream);
    return status == DNNL_SUCCESS ? SPK_OK : spk_fail(SPK_ERR_UNSUPPORTED, "onednn: a matmul ended with status %d", status);
}

static bool is_made_for(const matmul *m, const spk_product *p, int threads)
{
    const spk_product *q = &m->product;
    return m->primitive != NULL && m->threads == threads && p->alpha == q->alpha && p->beta == q->beta && p->dtype == q->dtype &&
           p->dtype_d == q->dtype_d && p->m == q->m && p->n == q->n && p->k == q->k && p->layout_a == q->layout_a &&
           p->layout_b == q->layout_b && p->lda == q->lda && p->ldb == q->ldb && p->ldd == q->ldd;
}

/* D = beta D: what is left of a product of nothing, for which it would leave D as it is. */
static void scale_d(const spk_product *p)
{
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            const int64_t at = i * p->ldd + j;
            const float made = p->beta != 0 ? (float)p->beta * (float)spk_value_at(p->d, p->dtype_d, at) : 0;
            spk_value_put(p->d, p->dtype_d, at, (double)made);
        }
}

/* What a run leaves behind where a call fails in it. */
static _Thread_local spk_status failed;

static void multiply(const void *user, const spk_product *product, int threads)
{
    const onednn_state *state = user;
    const onednn *library = &state->library;
    const spk_product p = by_rows(product);
    const int before = enter(library, threads);
    spk_status status = SPK_OK;
    if (p.k == 0) {
        scale_d(&p);
    } else if (is_made_for(&state->made, &p, threads)) {
        status = execute(library, &state->made, &p);
    } else {
        matmul once;
        const char *wrong = make_matmul(library, &p, true, &once);
        status = wrong == NULL ? execute(library, &once, &p) : spk_fail(SPK_ERR_UNSUPPORTED, "onednn: %s", wrong);
        release_matmul(library, &once);
    }
    leave(library, before, threads);
    if (status != SPK_OK)
        failed = status;
}

/* ------------------------------------------------------------------------------------------------ what the rows share */

static const char *refusal(const spk_problem *problem, const spk_device *device)
{
    const spk_problem *p = problem;
    const bool known = p->a.dtype == SPK_F32 || p->a.dtype == SPK_F16 || p->a.dtype == SPK_BF16;
    if (!known || p->b.dtype != p->a.dtype || (p->d.dtype != p->a.dtype && p->d.dtype != SPK_F32) || p->compute == SPK_F64)
        return "it multiplies f32, f16 and bf16";
    if (p->a.dtype == SPK_BF16 && !(device->isa & SPK_ISA_AVX512F))
        return "it multiplies bf16 from AVX-512 on";
    if (p->a.dtype == SPK_F16 && !(device->isa & SPK_ISA_AVX512_FP16))
        return "it multiplies f16 where there is AVX512-FP16";
    return NULL;
}

/* The device with the peak of these types: twice that of f32 with AVX512-BF16, eight times with AMX. */
static spk_device device_for(const spk_problem *problem, const spk_device *device)
{
    spk_device faster = *device;
    if (problem->a.dtype == SPK_BF16)
        faster.peak_gflops_f32 *= device->isa & SPK_ISA_AMX_BF16 ? 8 : device->isa & SPK_ISA_AVX512_BF16 ? 2 : 0.5;
    return faster;
}

static void unbind(spk_bound *bound)
{
    onednn_state *state = bound->state;
    if (state == NULL)
        return;
    spk_dense_release(bound, &state->dense);
    release_matmul(&state->library, &state->made);
    if (state->library.engine != NULL)
        state->library.engine_destroy(state->library.engine);
    spk_free(&bound->device->mem, state);
    bound->state = NULL;
}

/* The state with the matmul that a run with alpha = 1 and no C will want. */
static spk_status bind_product(spk_bound *bound, const spk_product *product)
{
    onednn_state *state = NULL;
    spk_status status = SPK_OK;
    const int threads = spk_executor_library_threads(&bound->device->executor);
    SPK_TRY(spk_calloc(&bound->device->mem, 1, sizeof *state, &state));
    bound->state = state;
    SPK_GOTO(open_library(bound->device, &state->library));
    const spk_product p = by_rows(product);
    const int before = enter(&state->library, threads);
    const char *wrong = make_matmul(&state->library, &p, false, &state->made);
    leave(&state->library, before, threads);
    if (wrong != NULL) {
        status = spk_fail(SPK_ERR_UNSUPPORTED, "onednn: %s", wrong);
        goto done;
    }
    state->made.threads = threads;
    return SPK_OK;
done:
    unbind(bound);
    return status;
}

/* As spk_whole_run will ask for it. */
static spk_product whole_product(const spk_problem *p, spk_layout layout_a, int64_t lda)
{
    const bool into_d = spk_product_is_result(p, true);
    return (spk_product){.dtype = p->a.dtype,
                         .dtype_d = into_d ? p->d.dtype : SPK_F32,
                         .m = (int)p->m,
                         .n = (int)p->n,
                         .k = (int)p->k,
                         .layout_a = layout_a,
                         .layout_b = p->b.layout,
                         .layout_d = into_d ? p->d.layout : SPK_ROW_MAJOR,
                         .lda = (int)lda,
                         .ldb = (int)p->b.ld,
                         .ldd = (int)(into_d ? p->d.ld : p->n),
                         .alpha = 1};
}

/* ------------------------------------------------------------------------------------------------ onednn_dense */

static bool dense_applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)params;
    *why = refusal(problem, device);
    return *why == NULL && spk_dense_fits(problem, device, why);
}

static double dense_predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    const spk_device faster = device_for(problem, device);
    return spk_dense_predict_us(problem, &faster, params);
}

static spk_status dense_bind(spk_bound *bound)
{
    const spk_problem *p = &bound->problem;
    int ld = 0;
    const spk_layout layout = spk_block_layout_of(&bound->view, &ld);
    const spk_product product = whole_product(p, layout, layout == SPK_ROW_MAJOR ? p->k : p->m);
    SPK_TRY(bind_product(bound, &product));
    onednn_state *state = bound->state;
    const spk_status status = spk_dense_make(bound, multiply, state, state->made.scratch_bytes, &state->dense);
    if (status != SPK_OK)
        unbind(bound);
    return status;
}

static spk_status dense_update(spk_bound *bound, const void *values)
{
    onednn_state *state = bound->state;
    return spk_dense_update(bound, &state->dense, values);
}

static spk_status dense_run(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)stream;
    const onednn_state *state = bound->state;
    failed = SPK_OK;
    SPK_TRY(spk_dense_run(bound, &state->dense, args));
    return failed;
}

const spk_kernel_ops onednn_dense_ops = {
    .applicable = dense_applicable,
    .predict_us = dense_predict_us,
    .bind = dense_bind,
    .unbind = unbind,
    .update_values = dense_update,
    .run = dense_run,
    .source_hash = SPK_SOURCE_HASH,
};

/* ------------------------------------------------------------------------------------------------ onednn_dense_sddmm */

static bool sampled_applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)params;
    *why = refusal(problem, device);
    return *why == NULL && spk_sampled_fits(problem, device, why);
}

static double sampled_predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    const spk_device faster = device_for(problem, device);
    return spk_sampled_predict_us(problem, &faster, params);
}

static spk_status sampled_bind(spk_bound *bound)
{
    const spk_problem *p = &bound->problem;
    const spk_product product = {.dtype = p->a.dtype,
                                 .dtype_d = SPK_F32,
                                 .m = (int)p->m,
                                 .n = (int)p->n,
                                 .k = (int)p->k,
                                 .layout_a = p->a.layout,
                                 .layout_b = p->b.layout,
                                 .layout_d = SPK_ROW_MAJOR,
                                 .lda = (int)p->a.ld,
                                 .ldb = (int)p->b.ld,
                                 .ldd = (int)p->n,
                                 .alpha = 1};
    SPK_TRY(bind_product(bound, &product));
    const onednn_state *state = bound->state;
    bound->workspace_bytes = spk_sampled_workspace_bytes(p) + state->made.scratch_bytes;
    return SPK_OK;
}

static spk_status sampled_run(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)stream;
    failed = SPK_OK;
    spk_sampled_run(bound, args, multiply, bound->state);
    return failed;
}

const spk_kernel_ops onednn_dense_sddmm_ops = {
    .applicable = sampled_applicable,
    .predict_us = sampled_predict_us,
    .bind = sampled_bind,
    .unbind = unbind,
    .run = sampled_run,
    .source_hash = SPK_SOURCE_HASH,
};

/* ------------------------------------------------------------------------------------------------ onednn_gemm */

static bool gemm_applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)params;
    *why = refusal(problem, device);
    return *why == NULL && spk_gemm_fits(problem, device, why);
}

static double gemm_predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    const spk_device faster = device_for(problem, device);
    return spk_gemm_predict_us(problem, &faster, params);
}

static spk_status gemm_bind(spk_bound *bound)
{
    const spk_problem item = spk_gemm_largest_item(&bound->problem);
    const spk_product product = whole_product(&item, item.a.layout, item.a.ld);
    SPK_TRY(bind_product(bound, &product));
    const onednn_state *state = bound->state;
    bound->workspace_bytes = (spk_gemm_acc_bytes(&bound->problem) + 63) / 64 * 64 + state->made.scratch_bytes;
    return SPK_OK;
}

static spk_status gemm_run(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)stream;
    failed = SPK_OK;
    spk_gemm_run(bound, args, multiply, bound->state);
    return failed;
}

const spk_kernel_ops onednn_gemm_ops = {
    .applicable = gemm_applicable,
    .predict_us = gemm_predict_us,
    .bind = gemm_bind,
    .unbind = unbind,
    .run = gemm_run,
    .batched = true,
    .grouped = true,
    .source_hash = SPK_SOURCE_HASH,
};
