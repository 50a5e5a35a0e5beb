/* What the vendor rows share: the libraries' functions, a product through them, and the two ways to use one (a call for each stored
 * block; one call for the whole matrix). */
#ifndef SPK_BACKEND_CPU_VENDOR_VENDOR_H
#define SPK_BACKEND_CPU_VENDOR_VENDOR_H

#include <pthread.h>

#include "backend/cpu/cpu.h"

/* ------------------------------------------------------------------------------------------------ libraries */

typedef struct spk_opened {
    const char *path;
    bool by_host; /* the program had it open before: its settings are not ours to change */
} spk_opened;

/* Makes a freshly opened library ready and checks that it is usable: called once, under a lock. false: why says what is wrong. */
bool spk_openblas_prepare(void *handle, const spk_opened *opened, char *why, size_t size);
bool spk_blis_prepare(void *handle, const spk_opened *opened, char *why, size_t size);
bool spk_mkl_prepare(void *handle, const spk_opened *opened, char *why, size_t size);
bool spk_onednn_prepare(void *handle, const spk_opened *opened, char *why, size_t size);
/* Version text, or "". */
void spk_openblas_version(void *handle, char *text, size_t size);
void spk_blis_version(void *handle, char *text, size_t size);
void spk_mkl_version(void *handle, char *text, size_t size);
void spk_onednn_version(void *handle, char *text, size_t size);
#ifdef SPK_HAVE_LIBXSMM
bool spk_libxsmm_prepare(void *handle, const spk_opened *opened, char *why, size_t size);
bool spk_libxsmm_is_ready(void);  /* its tables are there */
bool spk_libxsmm_has_stack(void); /* the calling thread's suffices to make a plan */
const char *spk_libxsmm_version(void);
#endif

/* limits.c. Whether this process may make code at run time, and why LIBXSMM is not used where it may not. */
bool spk_code_may_be_made(void);
extern const char spk_no_code[], spk_no_stack[];
bool spk_is_executable(uintptr_t code); /* whether the address lies in memory that may be executed */
bool spk_stack_suffices(size_t bytes);  /* of the calling thread, from here on */
/* Whether a library may be opened and used by so many threads, `had` of which it has (0: it is not open): memory and threads that it takes
 * are there. false: why says which are not. */
bool spk_libxsmm_fits(int threads, int had, char *why, size_t size);
bool spk_openblas_fits(int threads, int had, char *why, size_t size);
bool spk_blis_fits(int threads, int had, char *why, size_t size);
bool spk_mkl_fits(int threads, int had, char *why, size_t size);
bool spk_onednn_fits(int threads, int had, char *why, size_t size);

/* Address of a function of a library, stored through `function` (a pointer to a function pointer). false: it has none. */
bool spk_library_function(void *handle, const char *name, void *function);

/* ------------------------------------------------------------------------------------------------ products */

typedef struct spk_cblas {
    void (*sgemm)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a, int lda, const float *b, int ldb,
                  float beta, float *c, int ldc);
    void (*dgemm)(int order, int trans_a, int trans_b, int m, int n, int k, double alpha, const double *a, int lda, const double *b,
                  int ldb, double beta, double *c, int ldc);
} spk_cblas;

bool spk_cblas_find(void *handle, spk_cblas *cblas);

/* D[m,n] = alpha A[m,k] B[k,n] + beta D. */
typedef struct spk_product {
    spk_dtype dtype, dtype_d; /* of A and B, and of D */
    int m, n, k;
    spk_layout layout_a, layout_b, layout_d;
    const void *a, *b;
    void *d;
    int lda, ldb, ldd;
    double alpha, beta;
    void *scratch; /* as much as the library asked for */
} spk_product;

void spk_cblas_multiply(const spk_cblas *cblas, const spk_product *product);

/* How a block of op(A) lies in memory: its layout and leading dimension. */
spk_layout spk_block_layout_of(const spk_bsr_view *view, int *ld);

/* What no vendor row computes: empty products, sizes beyond 32-bit integers. NULL: none of that. */
const char *spk_vendor_refusal_of_sizes(const spk_problem *problem);
/* That, and dtypes other than f32 and f64. */
const char *spk_vendor_refusal(const spk_problem *problem);

/* Bytes of a sum before the epilogue: float32, or float64 for float64. */
size_t spk_sum_bytes(const spk_problem *problem);

/* True where D = alpha * acc (with_c: + beta * C) needs nothing else, in either layout of D. */
bool spk_product_is_result(const spk_problem *problem, bool with_c);

/* beta as a product on top of D takes it: 0 without C; C is copied to D where it lies elsewhere and beta is not 0. */
double spk_start_from_c(const spk_problem *problem, const spk_args *args);

/* GFLOP/s of the device for the problem's dtype, never 0. */
double spk_peak_gflops(const spk_problem *problem, const spk_device *device);

/* Applies the epilogue to a whole acc[M,N] on all threads. A column-major acc goes through small tiles: `tiles` has
 * spk_finish_bytes() of room. */
size_t spk_finish_bytes(const spk_bound *bound, spk_layout layout);
void spk_finish(const spk_bound *bound, const spk_args *args, const void *acc, spk_layout layout, int64_t ld, void *tiles);

/* ------------------------------------------------------------------------------------------------ one call for all of D */

/* D = epilogue(A B) by one product of a library on all threads, for a dense A: into D where the epilogue is no more than alpha and beta,
 * else into `acc`, which has spk_whole_acc_bytes of room, and from there to D. */
typedef struct spk_whole {
    void (*multiply)(const void *user, const spk_product *product, int threads);
    const void *user;
    const void *a;
    spk_layout layout_a;
    int lda;
    void *acc, *scratch;
} spk_whole;

size_t spk_whole_acc_bytes(const spk_problem *problem);
void spk_whole_run(const spk_bound *bound, const spk_args *args, const spk_whole *whole);

/* GEMM by it: items of a batch, or groups, one after another. */
size_t spk_gemm_acc_bytes(const spk_problem *problem);
spk_problem spk_gemm_largest_item(const spk_problem *problem);
bool spk_gemm_fits(const spk_problem *problem, const spk_device *device, const char **why);       /* its memory */
bool spk_gemm_applicable(const spk_problem *problem, const spk_device *device, const char **why); /* that, and f32 or f64 */
double spk_gemm_predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params);
void spk_gemm_run(const spk_bound *bound, const spk_args *args, void (*multiply)(const void *, const spk_product *, int), const void *user);

/* ------------------------------------------------------------------------------------------------ a call for each stored block */

/* Our partition of the rows on our threads, one single-threaded product for each stored block, summed into D (where nothing but alpha
 * follows) or into a tile that the epilogue stores. */
typedef struct spk_blocks_library {
    void (*multiply)(const void *user, const spk_product *product); /* beta is 0 or 1 */
    bool takes_alpha;                                               /* else alpha is always 1 */
    int (*begin)(const void *user);                                 /* around each task, on its thread; may be NULL */
    void (*end)(const void *user, int token);
} spk_blocks_library;

typedef struct spk_blocks {
    spk_blocks_library library;
    const void *user;
    int64_t *bounds; /* of row_parts parts */
    int row_parts, col_parts;
    int64_t panel, panels; /* columns a panel, and how many there are */
    bool direct;
    spk_layout layout; /* of what the products are summed into: D's if direct, else row-major */
    spk_layout layout_a;
    int lda;
    size_t tile_bytes;
} spk_blocks;

/* panel: the widest panel wanted; 0: as wide as a tile of 256 KiB. Sets bound->workspace_bytes. */
spk_status spk_blocks_make(spk_bound *bound, const spk_blocks_library *library, const void *user, int64_t panel, bool direct,
                           spk_blocks *blocks);
void spk_blocks_release(const spk_bound *bound, spk_blocks *blocks);
void spk_blocks_run(const spk_bound *bound, const spk_blocks *blocks, const spk_args *args);

/* Microseconds: calls * call_us, and the FLOPs at a share of the peak, on all threads; at least the time to stream the bytes. */
double spk_blocks_predict_us(const spk_problem *problem, const spk_device *device, double call_us, double share);

/* ------------------------------------------------------------------------------------------------ one call for the densified matrix */

typedef struct spk_dense {
    void (*multiply)(const void *user, const spk_product *product, int threads);
    const void *user;
    spk_layout layout; /* of the dense A: that of the blocks, so that whole runs are copied */
    size_t dense_bytes;
    void *values; /* with static_values: A, densified by the last update */
    bool ready;
} spk_dense;

bool spk_dense_fits(const spk_problem *problem, const spk_device *device, const char **why);       /* its memory */
bool spk_dense_applicable(const spk_problem *problem, const spk_device *device, const char **why); /* that, and f32 or f64 */
double spk_dense_predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params);
/* scratch_bytes: what the library takes of the workspace. */
spk_status spk_dense_make(spk_bound *bound, void (*multiply)(const void *, const spk_product *, int), const void *user,
                          size_t scratch_bytes, spk_dense *dense);
void spk_dense_release(const spk_bound *bound, spk_dense *dense);
spk_status spk_dense_update(spk_bound *bound, spk_dense *dense, const void *values);
spk_status spk_dense_run(const spk_bound *bound, const spk_dense *dense, const spk_args *args);

/* ------------------------------------------------------------------------------------------------ one call for SDDMM's whole product */

bool spk_sampled_fits(const spk_problem *problem, const spk_device *device, const char **why);       /* its memory */
bool spk_sampled_applicable(const spk_problem *problem, const spk_device *device, const char **why); /* that, and f32 or f64 */
double spk_sampled_predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params);
size_t spk_sampled_workspace_bytes(const spk_problem *problem);
void spk_sampled_run(const spk_bound *bound, const spk_args *args, void (*multiply)(const void *, const spk_product *, int),
                     const void *user);

/* ------------------------------------------------------------------------------------------------ a library with CBLAS */

/* A number of threads that belongs to the whole process (process_threads.c): it is changed for the time of a run and put back. Runs that
 * call the library single-threaded may be many at once; those of all threads wait for them and for each other. */
typedef struct spk_process_threads {
    int (*get)(const void *library);
    void (*set)(const void *library, int count);
    pthread_mutex_t guard;
    pthread_cond_t idle;
    int single_runs, before;
    bool known;
    struct spk_process_threads *next;
} spk_process_threads;

#define SPK_PROCESS_THREADS(getter, setter)                                                                \
    {                                                                                                      \
        .get = getter, .set = setter, .guard = PTHREAD_MUTEX_INITIALIZER, .idle = PTHREAD_COND_INITIALIZER \
    }

void spk_process_threads_watch(spk_process_threads *threads); /* before all else: a child of fork() begins anew */
void spk_process_threads_lock(spk_process_threads *threads);  /* and waits until none runs */
void spk_process_threads_unlock(spk_process_threads *threads);
void spk_process_threads_enter(spk_process_threads *threads, const void *library);
void spk_process_threads_leave(spk_process_threads *threads, const void *library);
void spk_process_threads_multiply(spk_process_threads *threads, const void *library, const spk_product *product, int count);

/* What differs between such libraries. A plan has `library_bytes` that begin with spk_cblas, for its functions. */
typedef struct spk_cblas_vendor {
    size_t library_bytes;
    spk_status (*open)(const spk_device *device, void *library);
    spk_process_threads *threads;                     /* NULL: the number is each thread's own */
    int (*set_own)(const void *library, int threads); /* of the calling thread; returns what it was. NULL: it has none */
    spk_process_threads *alone;                       /* products of all threads run one at a time. NULL: any number of them */
    const struct spk_cblas_vendor *(*variant)(const void *library); /* what an opened library is treated as. NULL: as this */
    bool busy; /* its threads wait for each other busily: with more of them than processors, each wait would be a slice of time */
} spk_cblas_vendor;

bool spk_cblas_blocks_applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why);
spk_status spk_cblas_blocks_bind(spk_bound *bound, const spk_cblas_vendor *vendor);
spk_status spk_cblas_blocks_run(const spk_bound *bound, const spk_args *args, void *stream);
bool spk_cblas_dense_applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why);
spk_status spk_cblas_dense_bind(spk_bound *bound, const spk_cblas_vendor *vendor);
spk_status spk_cblas_dense_update(spk_bound *bound, const void *values);
spk_status spk_cblas_dense_run(const spk_bound *bound, const spk_args *args, void *stream);
bool spk_cblas_sampled_applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why);
spk_status spk_cblas_sampled_bind(spk_bound *bound, const spk_cblas_vendor *vendor);
spk_status spk_cblas_sampled_run(const spk_bound *bound, const spk_args *args, void *stream);
bool spk_cblas_gemm_applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why);
spk_status spk_cblas_gemm_bind(spk_bound *bound, const spk_cblas_vendor *vendor);
spk_status spk_cblas_gemm_run(const spk_bound *bound, const spk_args *args, void *stream);
void spk_cblas_unbind(spk_bound *bound);

/* Its four rows: NAME_blocks, NAME_dense, NAME_dense_sddmm and NAME_gemm. A call for a block costs call_us beside its FLOPs, which take a
 * share of the peak; with one column, which is a vector's, vector_us. */
#define SPK_CBLAS_ROWS(name, vendor, vector_us, call_us, share)                                                            \
    static double name##_blocks_predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params) \
    {                                                                                                                      \
        (void)params;                                                                                                      \
        return spk_blocks_predict_us(problem, device, problem->n == 1 ? vector_us : call_us, share);                       \
    }                                                                                                                      \
    static spk_status name##_blocks_bind(spk_bound *bound)                                                                 \
    {                                                                                                                      \
        return spk_cblas_blocks_bind(bound, vendor);                                                                       \
    }                                                                                                                      \
    static spk_status name##_dense_bind(spk_bound *bound)                                                                  \
    {                                                                                                                      \
        return spk_cblas_dense_bind(bound, vendor);                                                                        \
    }                                                                                                                      \
    static spk_status name##_sampled_bind(spk_bound *bound)                                                                \
    {                                                                                                                      \
        return spk_cblas_sampled_bind(bound, vendor);                                                                      \
    }                                                                                                                      \
    static spk_status name##_gemm_bind(spk_bound *bound)                                                                   \
    {                                                                                                                      \
        return spk_cblas_gemm_bind(bound, vendor);                                                                         \
    }                                                                                                                      \
    const spk_kernel_ops name##_blocks_ops = {                                                                             \
        .applicable = spk_cblas_blocks_applicable,                                                                         \
        .predict_us = name##_blocks_predict_us,                                                                            \
        .bind = name##_blocks_bind,                                                                                        \
        .unbind = spk_cblas_unbind,                                                                                        \
        .run = spk_cblas_blocks_run,                                                                                       \
        .source_hash = SPK_SOURCE_HASH,                                                                                    \
    };                                                                                                                     \
    const spk_kernel_ops name##_dense_ops = {                                                                              \
        .applicable = spk_cblas_dense_applicable,                                                                          \
        .predict_us = spk_dense_predict_us,                                                                                \
        .bind = name##_dense_bind,                                                                                         \
        .unbind = spk_cblas_unbind,                                                                                        \
        .update_values = spk_cblas_dense_update,                                                                           \
        .run = spk_cblas_dense_run,                                                                                        \
        .source_hash = SPK_SOURCE_HASH,                                                                                    \
    };                                                                                                                     \
    const spk_kernel_ops name##_dense_sddmm_ops = {                                                                        \
        .applicable = spk_cblas_sampled_applicable,                                                                        \
        .predict_us = spk_sampled_predict_us,                                                                              \
        .bind = name##_sampled_bind,                                                                                       \
        .unbind = spk_cblas_unbind,                                                                                        \
        .run = spk_cblas_sampled_run,                                                                                      \
        .source_hash = SPK_SOURCE_HASH,                                                                                    \
    };                                                                                                                     \
    const spk_kernel_ops name##_gemm_ops = {                                                                               \
        .applicable = spk_cblas_gemm_applicable,                                                                           \
        .predict_us = spk_gemm_predict_us,                                                                                 \
        .bind = name##_gemm_bind,                                                                                          \
        .unbind = spk_cblas_unbind,                                                                                        \
        .run = spk_cblas_gemm_run,                                                                                         \
        .batched = true,                                                                                                   \
        .grouped = true,                                                                                                   \
        .source_hash = SPK_SOURCE_HASH,                                                                                    \
    }

/* ------------------------------------------------------------------------------------------------ MKL */

typedef struct spk_mkl {
    spk_cblas cblas;
    int (*set_threads)(int); /* of this thread; returns what it was, 0: the global number */
} spk_mkl;

spk_status spk_mkl_open(const spk_device *device, void **handle, spk_mkl *mkl);

#endif
