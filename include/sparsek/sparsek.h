/* sparsek: block-sparse times dense matrix multiplication, chosen by measurement.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Conventions
 * - Every function that can fail returns spk_status; outputs are written only on success. spk_last_error() gives the
 *   message with the offending argument, value and limit. Nothing in the library prints or aborts.
 * - Handles (spk_context, spk_pattern, spk_plan, spk_matrix, spk_report) are opaque. create/destroy own; destroy takes
 *   the address of the handle, accepts NULL and clears it. Destroy patterns, plans, matrices and reports before their context.
 * - Option structs begin with struct_size; initialise them with SPK_SIZED(type) so that they may grow. All-zero is the
 *   default of every other field. A struct_size that no version of the struct has had, as it is no multiple of 8 or less than 16,
 *   is refused. `reserved` must be 0.
 * - Sizes and leading dimensions count elements, never bytes, unless the name says bytes. Times carry their unit in the name.
 * - Threads: a context may be used from many threads at once. Patterns and matrices are immutable. A plan may run in
 *   several threads at once if each brings its own workspace. A report belongs to one thread at a time.
 */
#ifndef SPARSEK_H
#define SPARSEK_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define SPK_API
#else
#define SPK_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header; spk_version tells that of the library. */
#define SPK_VERSION_MAJOR 0
#define SPK_VERSION_MINOR 1
#define SPK_VERSION_PATCH 0

/* First initialiser of every struct that a caller fills in: (spk_spmm){SPK_SIZED(spk_spmm), .n = 512}. It sets struct_size, and what else
 * says which struct it is. In C++ spk_sized<spk_spmm>(), below, makes the struct. */
#define SPK_SIZED(type) .struct_size = SPK_SIZED_##type
#define SPK_SIZED_spk_context_options sizeof(spk_context_options)
#define SPK_SIZED_spk_device_info sizeof(spk_device_info)
#define SPK_SIZED_spk_device_entry sizeof(spk_device_entry)
#define SPK_SIZED_spk_library_info sizeof(spk_library_info)
#define SPK_SIZED_spk_bsr_indices sizeof(spk_bsr_indices)
#define SPK_SIZED_spk_pattern_info sizeof(spk_pattern_info)
#define SPK_SIZED_spk_spmm sizeof(spk_spmm), .operation = SPK_SPMM
#define SPK_SIZED_spk_spmm_args sizeof(spk_spmm_args), .operation = SPK_SPMM
#define SPK_SIZED_spk_sddmm sizeof(spk_sddmm), .operation = SPK_SDDMM
#define SPK_SIZED_spk_sddmm_args sizeof(spk_sddmm_args), .operation = SPK_SDDMM
#define SPK_SIZED_spk_gemm sizeof(spk_gemm), .operation = SPK_GEMM
#define SPK_SIZED_spk_gemm_args sizeof(spk_gemm_args), .operation = SPK_GEMM
#define SPK_SIZED_spk_attention sizeof(spk_attention), .operation = SPK_ATTENTION
#define SPK_SIZED_spk_attention_args sizeof(spk_attention_args), .operation = SPK_ATTENTION
#define SPK_SIZED_spk_attention_backward sizeof(spk_attention_backward), .operation = SPK_ATTENTION_BACKWARD
#define SPK_SIZED_spk_attention_backward_args sizeof(spk_attention_backward_args), .operation = SPK_ATTENTION_BACKWARD
#define SPK_SIZED_spk_operation_info sizeof(spk_operation_info)
#define SPK_SIZED_spk_field_info sizeof(spk_field_info)
#define SPK_SIZED_spk_size_info sizeof(spk_size_info)
#define SPK_SIZED_spk_operand_info sizeof(spk_operand_info)
#define SPK_SIZED_spk_scalar_info sizeof(spk_scalar_info)
#define SPK_SIZED_spk_problem_info sizeof(spk_problem_info)
#define SPK_SIZED_spk_array_info sizeof(spk_array_info)
#define SPK_SIZED_spk_tune_options sizeof(spk_tune_options)
#define SPK_SIZED_spk_plan_info sizeof(spk_plan_info)
#define SPK_SIZED_spk_kernel_info sizeof(spk_kernel_info)
#define SPK_SIZED_spk_candidate_info sizeof(spk_candidate_info)
#define SPK_SIZED_spk_report_info sizeof(spk_report_info)
#define SPK_SIZED_spk_race_options sizeof(spk_race_options)
#define SPK_SIZED_spk_matrix_desc sizeof(spk_matrix_desc)
#define SPK_SIZED_spk_block_advice sizeof(spk_block_advice)
#define SPK_SIZED_spk_read_options sizeof(spk_read_options)
#define SPK_SIZED_spk_write_options sizeof(spk_write_options)
#define SPK_SIZED_spk_generate sizeof(spk_generate)
#define SPK_SIZED_spk_store_entry sizeof(spk_store_entry)

/* Library version as "major.minor.patch", and the source revision it was built from ("unknown" outside a checkout).
 * Static strings. */
SPK_API const char *spk_version(void);
SPK_API const char *spk_commit(void);

/* ------------------------------------------------------------------------------------------------ status */

/* What a call returns. */
typedef enum spk_status {
    SPK_OK = 0,
    SPK_ERR_ARGUMENT = 1,      /* a caller's argument is wrong */
    SPK_ERR_OUT_OF_MEMORY = 2, /* the allocator returned NULL */
    SPK_ERR_UNSUPPORTED = 3,   /* legal, but this build, device or version does not do it */
    SPK_ERR_UNAVAILABLE = 4,   /* a device or library is not there */
    SPK_ERR_IO = 5,            /* the operating system refused a file operation */
    SPK_ERR_FORMAT = 6,        /* a file is malformed */
    SPK_ERR_NO_CANDIDATE = 7,  /* no eligible kernel is left (see only/exclude/choice) */
    SPK_ERR_UNKNOWN_CLASS = 8, /* the store does not know this class and tuning was forbidden */
    SPK_ERR_INTERRUPTED = 9,   /* spk_context_interrupt was called */
    SPK_ERR_NO_SPACE = 10,     /* disk full */
    SPK_ERR_INTERNAL = 11      /* a defect in sparsek: please report */
} spk_status;

/* A short static name of a status: "argument", "out of memory", ... */
SPK_API const char *spk_status_name(spk_status status);

/* ------------------------------------------------------------------------------------------------ types */

/* The type of elements. */
typedef enum spk_dtype {
    SPK_DTYPE_DEFAULT = 0, /* in an option: take it from the other operands, or the file */
    SPK_F32 = 1,
    SPK_F64 = 2,
    SPK_F16 = 3,
    SPK_BF16 = 4,
    SPK_F8E4M3 = 5, /* of A and B; D is f32, f16 or bf16. No infinity: what is too large is NaN */
    SPK_F8E5M2 = 6, /* likewise, with infinities */
    SPK_TF32 = 7,   /* a compute type only */
    SPK_INT32 = 8,  /* of offsets and of sums only */
    SPK_INT8 = 9    /* of A and B; D is f32, f16 or bf16 */
} spk_dtype;

/* Which elements of a matrix lie side by side: those of a row, or those of a column. */
typedef enum spk_layout { SPK_ROW_MAJOR = 0, SPK_COL_MAJOR = 1 } spk_layout;
/* Whether a matrix takes part as it is, or transposed. */
typedef enum spk_trans { SPK_NO_TRANS = 0, SPK_TRANS = 1 } spk_trans;
/* The type of indices: int32_t or int64_t. */
typedef enum spk_index_type { SPK_I32 = 0, SPK_I64 = 1 } spk_index_type;
/* Whose memory a pointer is of: the host's, or the context's device's. */
typedef enum spk_memory { SPK_HOST = 0, SPK_DEVICE = 1 } spk_memory;
/* The operations. */
typedef enum spk_operation { SPK_SPMM = 1, SPK_SDDMM = 2, SPK_GEMM = 3, SPK_ATTENTION = 4, SPK_ATTENTION_BACKWARD = 5 } spk_operation;
/* The function that is applied to each element of D. */
typedef enum spk_activation {
    SPK_ACT_NONE = 0,
    SPK_ACT_RELU = 1,
    SPK_ACT_GELU_ERF = 2,  /* x/2 (1 + erf(x / sqrt 2)) */
    SPK_ACT_GELU_TANH = 3, /* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
    SPK_ACT_SILU = 4       /* x / (1 + exp(-x)) */
} spk_activation;
/* How args.residual takes part, after the activation: added, or a factor of each element (SwiGLU: silu(gate x) times up x). */
typedef enum spk_residual { SPK_RESIDUAL_NONE = 0, SPK_RESIDUAL_ADD = 1, SPK_RESIDUAL_MULTIPLY = 2 } spk_residual;
/* The axis of a product that groups cut; see spk_gemm. */
typedef enum spk_group_axis { SPK_GROUP_NONE = 0, SPK_GROUP_ROWS = 1, SPK_GROUP_COLS = 2, SPK_GROUP_DEPTH = 3 } spk_group_axis;
/* Which key stands beside which query: the first beside the first, or the last beside the last. */
typedef enum spk_diagonal { SPK_DIAGONAL_NONE = 0, SPK_DIAGONAL_TOP_LEFT = 1, SPK_DIAGONAL_BOTTOM_RIGHT = 2 } spk_diagonal;
/* Where a bias is added: none, one number for each row, or one for each column. */
typedef enum spk_bias { SPK_BIAS_NONE = 0, SPK_BIAS_PER_ROW = 1, SPK_BIAS_PER_COL = 2 } spk_bias;

/* Name and size of a dtype ("f32", 4); NULL and 0 for an unknown one. spk_dtype_from_name returns SPK_DTYPE_DEFAULT for an
 * unknown name. */
SPK_API const char *spk_dtype_name(spk_dtype dtype);
SPK_API size_t spk_dtype_bytes(spk_dtype dtype);
SPK_API spk_dtype spk_dtype_from_name(const char *name);

/* ------------------------------------------------------------------------------------------------ context */

/* A device and its store. All other handles belong to one. */
typedef struct spk_context spk_context;

/* Calls body(arg, task) for every task in [0, tasks), in any order, on any threads, and returns when all are done. */
typedef void (*spk_parallel_body)(void *arg, int64_t task);
typedef void (*spk_parallel_for)(void *user, int64_t tasks, spk_parallel_body body, void *arg);

/* allocate returns memory aligned to alignment (a power of two), or NULL; release gets what allocate returned. Both must be
 * callable from any thread. */
typedef void *(*spk_allocate)(void *user, size_t bytes, size_t alignment);
typedef void (*spk_release)(void *user, void *memory, size_t bytes);

/* Memory of a GPU from the caller: aligned to 256 bytes, for work on `stream` (a CUstream; NULL: the default one; or the context's own,
 * which tuning uses), or NULL. It must be usable by what is put on the stream after the call, no more: allocation may be ordered by the
 * stream. release gets what allocate returned, with the same bytes and stream; work on the stream that uses the memory may still be under
 * way, so a release that is not ordered by the stream must wait for it. Called by a thread that tunes, makes the first run of a plan on a
 * stream, makes or plans a pattern of deferred indices, or destroys one of these, under whatever context is current there; for a stream
 * that is captured only where indices are deferred on it. Must not call the library. */
typedef void *(*spk_device_allocate)(void *user, size_t bytes, void *stream);
typedef void (*spk_device_release)(void *user, void *memory, size_t bytes, void *stream);

/* While spk_log or spk_progress runs, its thread must not call the library: what takes a context, a pattern or a plan returns
 * SPK_ERR_ARGUMENT there, on any context. Allowed are spk_context_interrupt, spk_context_resume, spk_last_error and the destroy functions.
 * The time that they take counts neither as measuring nor for spk_tune_options.budget_s; other threads that tune wait meanwhile. */

/* Warnings (level 1) and notes (level 2); the message is valid during the call only. */
typedef void (*spk_log)(void *user, int level, const char *message);

/* Progress of long work (tuning, reading): done of total steps, and what is being done. Called from the thread that asked. */
typedef void (*spk_progress)(void *user, int64_t done, int64_t total, const char *what);

/* Which device and store a context opens, and what the program lends it: threads, memory, a log. */
typedef struct spk_context_options {
    size_t struct_size;
    const char *device; /* "cpu" (NULL: the same), "cuda" or "cuda:0", "cuda:1" ... as the CUDA driver counts them */
    /* NULL: $SPARSEK_STORE, else store.db under $SPARSEK_CACHE_DIR, else under the user's cache folder; "": in memory. Only the last two
     * folders are made where they are missing. */
    const char *store_path;
    /* of the host. 0: $OMP_NUM_THREADS, else the processors this process may run on; limit 1024. 1 where no thread can be started */
    int threads;
    /* NULL: OpenMP. It is given `threads` tasks at most, each of which works until no work is left; and it is left out for a while where
     * other programs have the processors */
    spk_parallel_for parallel_for;
    void *parallel_user;
    /* Host memory: both NULL, or both set. */
    spk_allocate allocate;
    spk_release release;
    void *allocate_user;
    spk_log log; /* NULL: silent */
    void *log_user;
    spk_progress progress; /* NULL: none */
    void *progress_user;
    /* Device memory of tuning, and of workspaces for runs that bring none: both NULL (the driver's), or both set; for a GPU only. A plan
     * then takes its workspace at its first run on each stream: that run must come before a capture of the stream. Indices and prepared
     * values that a plan keeps, and spk_memory_allocate, come from the driver all the same. */
    spk_device_allocate device_allocate;
    spk_device_release device_release;
    void *device_user;
} spk_context_options;

/* Opens a device and its store. options may be NULL. On failure *context is untouched and spk_last_error(NULL) says why. A
 * store that cannot be used costs a warning through `log`, never a failure. Costs < 5 ms; opens no vendor library. */
SPK_API spk_status spk_context_create(const spk_context_options *options, spk_context **context);
SPK_API void spk_context_destroy(spk_context **context);

/* The message of the last call that failed on this context in this thread ("" if none); context NULL: of context creation.
 * Valid until this thread's next failing call. */
SPK_API const char *spk_last_error(const spk_context *context);

/* Asks running tuning on this context to stop at the next sample, where it keeps what was measured, and spk_matrix_write to stop
 * and leave nothing: they return SPK_ERR_INTERRUPTED. Async-signal-safe. spk_context_resume clears the request. */
SPK_API void spk_context_interrupt(spk_context *context);
SPK_API void spk_context_resume(spk_context *context);

/* The device of a context. */
typedef struct spk_device_info {
    size_t struct_size;
    const char *kind; /* "cpu", "cuda" */
    const char *name; /* the processor's or the GPU's model */
    int threads;      /* host threads: on a GPU those that prepare and compile */
    int isa_count;
    const char *isa[16]; /* "sse2", "avx2", "fma", "avx512f", ... what the processor and the system offer; "sm_70", "sm_80", "sm_90a" */
    int64_t l1_bytes, l2_bytes, l3_bytes; /* data caches, per core, per core, shared; of a GPU: per multiprocessor, shared, 0. 0: unknown */
    int64_t memory_bytes;
    int processors;   /* streaming multiprocessors of a GPU; 0 on a CPU */
    double clock_mhz; /* of a GPU's multiprocessors, at one of the last samples of tuning, or now; 0: unknown */
    double power_w;   /* of a GPU, likewise */
    /* of a GPU: those that committed runs on its architecture and driver have proved, which may run where there is no prover */
    int proved_candidates;
    int reserved;
} spk_device_info;

/* Strings live as long as the context. */
SPK_API spk_status spk_context_device(spk_context *context, spk_device_info *info);

/* A device of this machine, as spk_device_list tells it. */
typedef struct spk_device_entry {
    size_t struct_size;
    const char *device;   /* spk_context_options.device takes it: "cpu", "cuda:0", "cuda:1" */
    const char *name;     /* the model; "" where there is none */
    int64_t memory_bytes; /* 0: unknown */
    const char *why;      /* "", or why there is no device of this kind ("cuda") here */
} spk_device_entry;

/* The devices of this machine, one call of visit each, until it returns other than 0. Opens the CUDA driver where there is one, but no
 * device. Strings live as long as the call. */
SPK_API spk_status spk_device_list(int (*visit)(void *user, const spk_device_entry *entry), void *user);

/* A vendor library: whether it was found, and where. */
typedef struct spk_library_info {
    size_t struct_size;
    const char *name;    /* "openblas", "mkl", "libxsmm"; on a GPU "cublaslt", "cublas", "cusparse", "cudnn", "nvml", "nvrtc" */
    int found;           /* 1: a file is there (or it is built in) */
    const char *path;    /* real path, or "" ("built in" where linked) */
    const char *version; /* asks the library, which opens it; "" where it does not say */
    const char *why;     /* where it is not found or does not open: what was tried */
} spk_library_info;

/* The vendor libraries sparsek looks for on the context's kind of device, index in [0, spk_library_count). Strings live as long as the
 * context. */
SPK_API int spk_library_count(const spk_context *context);
SPK_API spk_status spk_context_library(spk_context *context, int index, spk_library_info *info);

/* ------------------------------------------------------------------------------------------------ memory */

/* Memory of the context's device for operands, where the program has no allocator of its own for it: aligned to 256 bytes on a GPU, to 64
 * on the CPU (where it is host memory), uninitialised, bytes may be 0. The caller owns it and releases it before the context. release
 * clears the pointer and accepts NULL; what still uses the memory must be done. */
SPK_API spk_status spk_memory_allocate(spk_context *context, size_t bytes, void **memory);
SPK_API void spk_memory_release(spk_context *context, void **memory);

/* Waits until what was put on a stream (NULL: the default one) of the context's device is done. On the CPU it always is. */
SPK_API spk_status spk_synchronize(spk_context *context, void *stream);

/* Copies between host memory and the device's, or within either; to and from must not overlap. Returns when the copy is done, and waits for
 * no stream of the caller's: what makes `from` must be done before (spk_synchronize). On the CPU both kinds are host memory. */
SPK_API spk_status spk_memory_copy(spk_context *context, void *to, spk_memory to_kind, const void *from, spk_memory from_kind,
                                   size_t bytes);

/* Converts count values in host memory between f32, f64, f16, bf16, f8e4m3, f8e5m2 and i8: to the nearest, ties to even. What is too large
 * becomes infinite; NaN in f8e4m3; in i8 the nearest whole number from -128 to 127, where NaN becomes 0. to and from must not overlap. */
SPK_API spk_status spk_cast_values(spk_context *context, spk_dtype to_dtype, void *to, spk_dtype from_dtype, const void *from,
                                   int64_t count);

/* ------------------------------------------------------------------------------------------------ pattern */

/* Where the blocks of a matrix are; immutable. It belongs to the context that made it: calls on another context refuse it. */
typedef struct spk_pattern spk_pattern;

/* Where the stored blocks are (BSR). rows x cols is the logical size and need not be a multiple of the block; there are
 * ceil(rows / block_rows) block rows. Block row i holds the blocks row_offsets[i] .. row_offsets[i+1]-1; col_indices are block
 * columns, strictly increasing within a block row (see spk_matrix_canonicalize otherwise). */
typedef struct spk_bsr_indices {
    size_t struct_size;
    int64_t rows, cols;             /* >= 0 */
    int64_t block_rows, block_cols; /* 1 .. 256 each */
    int64_t nnzb;                   /* stored blocks */
    const void *row_offsets;        /* ceil(rows / block_rows) + 1 indices, the first 0, the last nnzb */
    const void *col_indices;        /* nnzb indices in [0, ceil(cols / block_cols)) */
    spk_index_type index_type;
    /* SPK_HOST; SPK_DEVICE: both arrays lie in the memory of the context's device, and what writes them is done, or deferred */
    spk_memory index_memory;
    /* with SPK_DEVICE, 1: the work on the indices is put on `stream`, and nothing waits for it; see below. 0 on a CPU */
    int deferred;
    /* with deferred: a CUstream on which what writes the arrays comes before; the plans run on it, or after what is on it now */
    void *stream;
    /* with deferred: blocks of the longest row, about; 0: the mean. This and the next two decide the class of problems */
    int64_t longest_row;
    double row_spread, row_overlap; /* with deferred: what spk_pattern_info would say, about */
} spk_bsr_indices;

/* Validates in O(nnzb), copies and inspects the indices; the arrays may be freed afterwards.
 * With deferred the device does so, when the stream comes to it: until then the arrays must stay. nnzb is taken as it is given. Wrong
 * indices are never used: SpMM is that of a pattern without blocks then, what SDDMM writes means nothing, and the next planning or run
 * after the device has found them fails, as does spk_pattern_get_info, which waits and copies the indices to the host. So do tuning, the
 * oracle, and plans with SPK_TRANS, once a pattern. A class of its own, with M and K in buckets, is tuned among the kernels that need
 * nothing on the host; with spk_tune_options.unknown = SPK_UNKNOWN_ESTIMATE a plan waits for nothing. The stream must exist, and other
 * streams be done with the pattern's plans, when the last of the pattern and its plans is destroyed.
 * On a stream that is captured (with device_allocate) this work becomes part of the graph. Each replay reads the arrays anew. Wrong ones
 * then are as a pattern without blocks, and no call fails. Memory from device_allocate must stay the graph's: what is released during the
 * capture may serve only work that is captured later. The context must outlive the graph. */
SPK_API spk_status spk_pattern_create(spk_context *context, const spk_bsr_indices *indices, spk_pattern **pattern);
SPK_API void spk_pattern_destroy(spk_pattern **pattern);

/* What the library found when it inspected a pattern. */
typedef struct spk_pattern_info {
    size_t struct_size;
    int64_t rows, cols, block_rows, block_cols;
    int64_t grid_rows, grid_cols; /* blocks down and across, edge blocks included */
    int64_t nnzb;
    double density;      /* nnzb / (grid_rows * grid_cols); 0 for an empty grid */
    int64_t empty_rows;  /* block rows with no block */
    int64_t longest_row; /* blocks in the fullest block row */
    double row_spread;   /* standard deviation of blocks per block row over their mean */
    double row_overlap;  /* share of a block row's columns that the next block row has too, averaged */
    double bandwidth;    /* mean |scaled row - scaled column| of a block, 0 (diagonal) .. 1 */
} spk_pattern_info;

/* The size and structure of a pattern. Of a pattern with deferred indices it waits for the device. */
SPK_API spk_status spk_pattern_get_info(const spk_pattern *pattern, spk_pattern_info *info);

/* ------------------------------------------------------------------------------------------------ SpMM */

/* The stride of an input of a batch that all items share. */
#define SPK_STRIDE_SHARED (-1)

/* Scale factors of a matrix of f8e4m3, f8e5m2 or i8: each of its elements stands for itself times the factor that covers it. Factors are
 * float32, one for each tile of rows x cols elements of the matrix (of op(A), not of A), contiguous, row by row of tiles; a tile that the
 * edge cuts has a factor of its own. {1, SPK_SCALE_ALL}: one a row; {SPK_SCALE_ALL, SPK_SCALE_ALL}: one for all; {0, 0}: none, all are 1;
 * of SpMM's A also {SPK_SCALE_BLOCK, SPK_SCALE_BLOCK}: one for each stored block, in the order of col_indices. If each item of a batch, or
 * each group, has its own matrix, it has its own factors, too; they follow one another. */
typedef struct spk_scale {
    int64_t rows, cols;
} spk_scale;

/* A side of a tile: all that there are along this axis. */
#define SPK_SCALE_ALL (-1)
/* Both sides of a tile: a factor for each stored block of SpMM's A. */
#define SPK_SCALE_BLOCK (-2)

/* D[M,N] = act(alpha * op(A)[M,K] B[K,N] + beta * C[M,N] + bias) + residual[M,N], or times residual[M,N]
 * with A = rows x cols of the pattern; op N: M = rows, K = cols; op T: M = cols, K = rows. D may be C. All arrays live on the
 * context's device. Accumulation is in float32 (float64 for float64; whole numbers are summed without rounding). An absent block
 * contributes nothing, whatever B holds. Dtypes: A and B f32, f64, f16, bf16, f8e4m3, f8e5m2 or i8 (one for both); D the same, or f32 for
 * f16 and bf16; f32, f16 or bf16 for those of 8 bits. */
typedef struct spk_spmm {
    size_t struct_size;
    spk_operation operation; /* SPK_SPMM */
    spk_trans trans_a;
    int64_t n;         /* columns of B and D, >= 0 */
    spk_dtype dtype_a; /* values; default: SPK_F32 */
    spk_dtype dtype_b; /* default: dtype_a */
    spk_dtype dtype_d; /* C, D, bias, residual, preact; default: dtype_b, f32 for 8 bits */
    spk_dtype compute; /* default: f32, f64 for f64, i32 for i8. SPK_TF32 with f32: A and B may be rounded to 10 bits behind the point */
    spk_layout block_layout; /* inside a block of values */
    spk_layout layout_b;
    spk_layout layout_d;   /* D, C, residual and preact */
    int use_c;             /* 1: C takes part (args.beta); 0: beta is ignored */
    int64_t ldb, ldc, ldd; /* 0: tight (the row length if row-major, the column length if column-major) */
    int64_t ldr, ldp;      /* of residual and preact; 0: tight */
    spk_bias bias;         /* per row: M values; per column: N values */
    spk_activation activation;
    spk_residual residual;
    int keep_preact;  /* 1: the value before the activation goes to args.preact */
    int64_t batch;    /* items: products of one pattern, each with arrays of its own; 0: 1 */
    int64_t stride_a; /* values from one item to the next; 0: one A for all */
    /* elements from one item to the next; 0: tight (leading dimension x lines); B, C: SPK_STRIDE_SHARED */
    int64_t stride_b, stride_c, stride_d;
    /* of residual (or SPK_STRIDE_SHARED) and preact. Items of D or preact may lie side by side in each line, and must not overlap. Bias is
     * one for all */
    int64_t stride_r, stride_p;
    spk_scale scale_a, scale_b; /* of op(A) and of B */
} spk_spmm;

/* The arrays of one run of SpMM, and its scalars. */
typedef struct spk_spmm_args {
    size_t struct_size;
    spk_operation operation; /* SPK_SPMM */
    int reserved;            /* 0 */
    const void *values; /* nnzb * block_rows * block_cols elements, in the order of col_indices; the overhang of edge blocks is ignored */
    const void *b;
    const void *c;        /* with use_c; may equal d (then ldc must equal ldd) */
    void *d;              /* shares no element with an input but c and residual, nor with preact. See below */
    const void *bias;     /* with bias */
    const void *residual; /* with residual; may equal d (then ldr must equal ldd) */
    void *preact;         /* with keep_preact */
    double alpha;         /* finite; 1 is NOT the default of a zeroed struct: set it */
    double beta;          /* finite with use_c; 0 never reads c */
    /* NULL: the plan's own. On the CPU for one thread at a time, a second one meanwhile allocates; on a GPU one for each stream. The bytes
     * of it that the plan needs are shared with no array of the run */
    void *workspace;
    size_t workspace_bytes;
    void *stream;                  /* of spk_compute; spk_run takes its own and ignores this one */
    const void *scale_a, *scale_b; /* with scale_a, scale_b of the problem: float32 */
} spk_spmm_args;

/* Arrays that share no element may interleave, such as B and D as columns 0..1 and 2..3 of one row-major array. It is known of arrays with
 * equal leading dimensions in bytes and equal strides (one item and contiguous arrays fit any), and of items that lie apart as a whole;
 * others whose first and last elements enclose some of the other's are refused. */

/* ------------------------------------------------------------------------------------------------ SDDMM */

/* D = alpha * (X[M,K] Y[K,N] at the stored blocks) + beta * C
 * with M = rows, N = cols of the pattern; D and C are arrays of values: nnzb * block_rows * block_cols elements in the order of
 * col_indices. What of an edge block lies beyond M or N is written as zero, and not read from C. The gradient of SpMM by its values: X =
 * dL/dD, Y = B^T. Dtypes as of SpMM, X and Y for A and B. Accumulation is in float32 (float64 for float64; whole numbers are summed
 * exactly). */
typedef struct spk_sddmm {
    size_t struct_size;
    spk_operation operation; /* SPK_SDDMM */
    int reserved;            /* 0 */
    int64_t k;               /* columns of X and rows of Y, >= 0 */
    spk_dtype dtype_x;       /* default: SPK_F32 */
    spk_dtype dtype_y;       /* default: dtype_x */
    spk_dtype dtype_d;       /* C and D; default: dtype_y, f32 for 8 bits */
    spk_dtype compute; /* default: f32, f64 for f64, i32 for i8. SPK_TF32 with f32: X and Y may be rounded to 10 bits behind the point */
    spk_layout block_layout; /* inside a block of C and D */
    spk_layout layout_x, layout_y;
    int use_c;                                      /* 1: C takes part (args.beta); 0: beta is ignored */
    int64_t ldx, ldy;                               /* 0: tight */
    int64_t batch;                                  /* items: products of one pattern, each with arrays of its own; 0: 1 */
    int64_t stride_x, stride_y, stride_c, stride_d; /* elements from one item to the next; 0: tight; X, Y, C: SPK_STRIDE_SHARED */
    spk_scale scale_x, scale_y;                     /* of X and Y */
} spk_sddmm;

/* The arrays of one run of SDDMM, and its scalars. */
typedef struct spk_sddmm_args {
    size_t struct_size;
    spk_operation operation; /* SPK_SDDMM */
    int reserved;            /* 0 */
    const void *x;
    const void *y;
    const void *c;   /* with use_c; may equal d */
    void *d;         /* shares no element with an input but c; see spk_spmm_args */
    double alpha;    /* finite; 1 is NOT the default of a zeroed struct: set it */
    double beta;     /* finite with use_c; 0 never reads c */
    void *workspace; /* as in spk_spmm_args */
    size_t workspace_bytes;
    void *stream;                  /* of spk_compute; spk_run takes its own and ignores this one */
    const void *scale_x, *scale_y; /* with scale_x, scale_y of the problem: float32 */
} spk_sddmm_args;

/* ------------------------------------------------------------------------------------------------ GEMM */

/* D[M,N] = act(alpha * op(A)[M,K] op(B)[K,N] + beta * C[M,N] + bias) + residual[M,N], or times residual[M,N].
 * All matrices are dense: there is no pattern, and the calls that take one get NULL. D may be C. Accumulation is in float32 (float64 for
 * float64; whole numbers are summed without rounding). Dtypes as of SpMM. With K = 0 the product is 0. */
typedef struct spk_gemm {
    size_t struct_size;
    spk_operation operation;   /* SPK_GEMM */
    spk_group_axis group_axis; /* with groups */
    int64_t m, n, k;           /* >= 0 */
    spk_dtype dtype_a;         /* default: SPK_F32 */
    spk_dtype dtype_b;         /* default: dtype_a */
    spk_dtype dtype_d;         /* C, D, bias, residual, preact; default: dtype_b, f32 for 8 bits */
    spk_dtype compute;   /* default: f32, f64 for f64, i32 for i8. SPK_TF32 with f32: A and B may be rounded to 10 bits behind the point */
    spk_trans trans_a;   /* T: the array of A is K x M */
    spk_trans trans_b;   /* T: the array of B is N x K */
    spk_layout layout_a; /* of the array, as it is before op; so layout_b */
    spk_layout layout_b;
    spk_layout layout_d; /* D, C, residual and preact */
    int use_c;           /* 1: C takes part (args.beta); 0: beta is ignored */
    int64_t lda, ldb;    /* 0: tight (the row length of the array if row-major, its column length if column-major) */
    int64_t ldc, ldd;    /* 0: tight */
    int64_t ldr, ldp;    /* of residual and preact; 0: tight */
    spk_bias bias;       /* per row: M values; per column: N values */
    spk_activation activation;
    spk_residual residual;
    int keep_preact; /* 1: the value before the activation goes to args.preact */
    int64_t batch;   /* items: products with arrays of their own; 0: 1 */
    /* elements from one item to the next; 0: tight (leading dimension x lines); A, B, C: SPK_STRIDE_SHARED */
    int64_t stride_a, stride_b, stride_c, stride_d;
    /* of residual (or SPK_STRIDE_SHARED) and preact. Items of D or preact may lie side by side in each line, and must not overlap. Bias is
     * one for all */
    int64_t stride_r, stride_p;
    int64_t groups;             /* pieces that the product is cut into along group_axis; 0: none. See below */
    spk_scale scale_a, scale_b; /* of op(A) and op(B). Along the axis that groups cut a factor is of one element, or of all */
} spk_gemm;

/* Groups: the product is cut along an axis at args.offsets, `groups` int32 (on the context's device, like all arrays): where each group
 * ends, ascending; the first begins at 0, and a group may be empty. m, n and k are those of the whole. batch is 1.
 * - SPK_GROUP_ROWS: rows of A and of D; each group has a B of its own (a mixture of experts: tokens sorted by expert). A bias per column is
 *   groups x N, a line for each group.
 * - SPK_GROUP_COLS: columns of B and of D; each group has an A of its own. A bias per row is groups x M.
 * - SPK_GROUP_DEPTH: columns of A and rows of B; each group has a D of its own, with C, residual and preact (the gradient of the experts'
 *   weights). Bias is one for all.
 * Arrays that each group has for itself lie stride_a, stride_b, or stride_c, stride_d, stride_r, stride_p apart; the other strides must be
 * 0. Rows, columns or depth behind the last end take no part: nothing of D there is written. On the CPU wrong offsets are refused; on a GPU
 * they must be right.
 */

/* The arrays of one run of a dense product, and its scalars. */
typedef struct spk_gemm_args {
    size_t struct_size;
    spk_operation operation; /* SPK_GEMM */
    int reserved;            /* 0 */
    const void *a;
    const void *b;
    const void *c;        /* with use_c; may equal d (then ldc must equal ldd) */
    void *d;              /* shares no element with an input but c and residual, nor with preact; see spk_spmm_args */
    const void *bias;     /* with bias */
    const void *residual; /* with residual; may equal d (then ldr must equal ldd) */
    void *preact;         /* with keep_preact */
    const void *offsets;  /* with groups */
    double alpha;         /* finite; 1 is NOT the default of a zeroed struct: set it */
    double beta;          /* finite with use_c; 0 never reads c */
    void *workspace;      /* as in spk_spmm_args */
    size_t workspace_bytes;
    void *stream;                  /* of spk_compute; spk_run takes its own and ignores this one */
    const void *scale_a, *scale_b; /* with scale_a, scale_b of the problem: float32 */
} spk_gemm_args;

/* ------------------------------------------------------------------------------------------------ attention */

/* O = softmax(scale Q K^T over the keys that each query sees) V, for each head of each item.
 * Q is queries x depth, K keys x depth, V keys x depth_v, O queries x depth_v, row by row. Arrays are on the context's device. Each row
 * is contiguous; rows, heads and items have strides of their own (item, head, row, column; or item, row, head, column).
 * Query i stands beside key i (SPK_DIAGONAL_TOP_LEFT, and where there are as many queries as keys), or beside key i + keys - queries
 * (SPK_DIAGONAL_BOTTOM_RIGHT). It sees the keys that neither causal nor a window excludes. Keys that it does not see have no influence,
 * whatever stands in their rows of K and V. A query that sees none has O = 0 and LSE = -infinity. Sums are in float32 (float64 for
 * float64). Dtypes: f32, f64, f16 or bf16, one for all four.
 * A pattern, where one is given (NULL: none), is a mask of blocks, of queries and of keys: a query sees only keys in the blocks that its
 * block row stores, and of those what causal and windows leave. Blocks may have any size; the pattern has `keys` columns. One list of
 * blocks may serve all heads, or mask_heads and mask_items say that there are more: for each of their heads, for each item. Lists stand one
 * below the other, each of ceil(queries / block_rows) block rows: list l of item i, of `mask_heads` lists, begins at block row
 * (i * mask_heads + l) * ceil(queries / block_rows). A single list has `queries` rows.
 *
 * What may change from run to run without a new plan is read where the arrays are, as int32 (on a GPU by its kernels, without a wait):
 * - sequences: Q, K, V and O hold so many sequences, one behind the other: `queries` and `keys` are those of all, and batch is 1. Sequence
 *   s has the queries [args.query_ends[s - 1], args.query_ends[s]) and the keys [args.key_ends[s - 1], args.key_ends[s]); the first begins
 *   at 0. (Of the usual offsets, which begin with 0, pass all but the first.) Queries see keys of their own sequence, whose first ones
 *   stand beside each other (top left), or whose last ones; sinks are its first keys. Behind the last end nothing is read or written. A
 *   pattern is over all queries and all keys.
 * - key_lengths: item i has its first args.key_ends[i] keys only, at most `keys`.
 * - page_keys: keys lie in pages of so many rows. K and V are `pages` pages, one behind the other, which all items share: row r of page p
 *   is row p * page_keys + r, and stride_k and stride_v are 0. args.page_table has ceil(keys / page_keys) numbers of pages for each item
 *   (or sequence): its keys 0 to page_keys - 1, and so on. With sequences `keys` is the most that one has, and args.key_ends their numbers.
 *   Numbers of pages behind an item's last key, and rows behind it in its last page, have no influence.
 * - tiles: a block of the pattern keeps all of its pairs, or those that a tile of bits says. args.tile_numbers has a number for each stored
 *   block, in the pattern's order: -1: all; t: tile t of the `tiles` in args.tile_bits. A tile is block_rows lines of
 *   ceil(block_cols / 32) words: bit j % 32 of word j / 32 is key j of the block, 1: kept.
 * On the CPU wrong numbers are refused; on a GPU they must be right. */
typedef struct spk_attention {
    size_t struct_size;
    spk_operation operation;    /* SPK_ATTENTION */
    spk_dtype dtype;            /* of Q, K, V and O; default: SPK_F32 */
    int64_t queries, keys;      /* of an item, >= 0 */
    int64_t depth;              /* columns of Q and K, >= 0 */
    int64_t depth_v;            /* columns of V and O; 0: as depth */
    int64_t batch;              /* items; 0: 1 */
    int64_t heads;              /* of Q and O; 0: 1 */
    int64_t heads_kv;           /* of K and V, divides heads: head h of Q goes with head h / (heads / heads_kv); 0: as heads */
    spk_diagonal diagonal;      /* with causal or a window where queries and keys differ: there is no default */
    int causal;                 /* 1: a query sees no key behind the one beside it */
    int64_t window_left;        /* a query sees so many keys up to the one beside it, which counts; 0: no limit */
    int64_t window_right;       /* so many from the one beside it on, which counts; 0: no limit. With causal: 0 */
    int64_t sinks;              /* with window_left: the first keys are seen whatever it says; causal and window_right hold for them, too */
    int soft_cap;               /* 1: a score s becomes softcap tanh(s / softcap) */
    int want_lse;               /* 1: args.lse gets the natural log of the sum of the exponentials of the scores */
    int64_t mask_heads;         /* with a pattern: lists of blocks in an item: 1, heads_kv or heads; 0: 1 */
    int64_t mask_items;         /* with a pattern: batch: each item has lists of its own; 0 or 1: all items have the same */
    int64_t ldq, ldk, ldv, ldo; /* from row to row; 0: tight */
    int64_t head_stride_q, head_stride_k, head_stride_v, head_stride_o, head_stride_lse; /* 0: tight (leading dimension x rows) */
    /* from item to item; 0: tight. Q, K, V: SPK_STRIDE_SHARED. Rows of O and of LSE must not overlap */
    int64_t stride_q, stride_k, stride_v, stride_o, stride_lse;
    int64_t sequences;        /* packed one behind the other; 0: none */
    int key_lengths;          /* 1: args.key_ends says how many keys each item has; sequences have them anyhow */
    int reserved;             /* 0 */
    int64_t page_keys, pages; /* rows of a page of K and V, pages in all; 0: K and V are no pages */
    int64_t tiles;            /* of bits, for some of the pattern's blocks; 0: none */
} spk_attention;

/* The arrays of one run of attention, and its scalars. */
typedef struct spk_attention_args {
    size_t struct_size;
    spk_operation operation; /* SPK_ATTENTION */
    int reserved;            /* 0 */
    const void *q;
    const void *k;
    const void *v;
    void *o;         /* shares no element with an input, nor with lse */
    void *lse;       /* with want_lse: queries numbers for each head, f32 (f64 for f64) */
    double scale;    /* finite; 1 / sqrt(depth) is NOT the default of a zeroed struct: set it */
    double softcap;  /* finite; with soft_cap. 0: none */
    void *workspace; /* as in spk_spmm_args */
    size_t workspace_bytes;
    void *stream; /* of spk_compute; spk_run takes its own and ignores this one */
    /* int32, see spk_attention */
    const void *query_ends;   /* with sequences */
    const void *key_ends;     /* with sequences or key_lengths */
    const void *page_table;   /* with page_keys */
    const void *tile_numbers; /* with tiles */
    const void *tile_bits;    /* with tiles */
} spk_attention_args;

/* Gradients of attention: from O, LSE and the gradient of a loss with respect to O, those with respect to Q, K and V. With the scores
 * S = scale Q K^T, which a soft cap may bend to T = softcap tanh(S / softcap), over the pairs that are kept:
 *     P = exp(T - LSE), D = rows' sums of grad_O O, minus grad_LSE
 *     grad_S = P (grad_O V^T - D), times 1 - (T / softcap)^2 with a soft cap
 *     grad_Q = scale grad_S K, grad_K = scale grad_S^T Q, grad_V = P^T grad_O
 * where grad_K and grad_V are sums over the heads of Q that share a head of K and V (Dao et al. 2022, arXiv:2205.14135, appendix B). O and
 * LSE must be what attention gave for these Q, K and V: they are not computed again. A query whose LSE is -infinity has no gradient: its P
 * is 0. What a pair that is not kept has in Q, K, V, O, grad_O and LSE has no influence on it. Sums are in float32 (float64 for float64),
 * in an order that is the same on every run, with the same number of threads. Members as in spk_attention, which describes the mask, the
 * sequences, the lengths and the tiles; there are no pages. Behind the last end of sequences nothing is read or written. Where key_lengths
 * ends an item's keys, the rows of grad_K and grad_V behind them are 0. */
typedef struct spk_attention_backward {
    size_t struct_size;
    spk_operation operation; /* SPK_ATTENTION_BACKWARD */
    spk_dtype dtype;         /* of Q, K, V, O and their gradients; default: SPK_F32 */
    int64_t queries, keys, depth, depth_v, batch, heads, heads_kv;
    spk_diagonal diagonal;
    int causal;
    int64_t window_left, window_right, sinks;
    int soft_cap;
    int use_grad_lse; /* 1: the loss depends on LSE, too: args.grad_lse is read */
    int64_t mask_heads, mask_items;
    /* of the arrays of attention: from row to row, from head to head, from item to item; as in spk_attention */
    int64_t ldq, ldk, ldv, ldo;
    int64_t head_stride_q, head_stride_k, head_stride_v, head_stride_o, head_stride_lse;
    int64_t stride_q, stride_k, stride_v, stride_o, stride_lse;
    /* of the gradients, each of the shape of what it belongs to; 0: tight. Rows of grad_q, grad_k and grad_v must not overlap;
     * stride_grad_o and stride_grad_lse may be SPK_STRIDE_SHARED */
    int64_t ld_grad_o, ld_grad_q, ld_grad_k, ld_grad_v;
    int64_t head_stride_grad_o, head_stride_grad_lse, head_stride_grad_q, head_stride_grad_k, head_stride_grad_v;
    int64_t stride_grad_o, stride_grad_lse, stride_grad_q, stride_grad_k, stride_grad_v;
    int64_t sequences;
    int key_lengths;
    int reserved; /* 0 */
    int64_t tiles;
} spk_attention_backward;

/* The arrays of one run of the gradients of attention, and its scalars. */
typedef struct spk_attention_backward_args {
    size_t struct_size;
    spk_operation operation; /* SPK_ATTENTION_BACKWARD */
    int reserved;            /* 0 */
    const void *q;
    const void *k;
    const void *v;
    const void *o;
    const void *lse; /* queries numbers for each head, f32 (f64 for f64). Of these scores: a weight exp(score - lse) above 1 counts as 1 */
    const void *grad_o;
    const void *grad_lse; /* with use_grad_lse: as lse */
    void *grad_q;         /* the three share no element with an input, nor with one another */
    void *grad_k;
    void *grad_v;
    double scale;    /* as attention had it */
    double softcap;  /* likewise; with soft_cap */
    void *workspace; /* as in spk_spmm_args */
    size_t workspace_bytes;
    void *stream; /* of spk_compute; spk_run takes its own and ignores this one */
    /* int32, see spk_attention */
    const void *query_ends;   /* with sequences */
    const void *key_ends;     /* with sequences or key_lengths */
    const void *tile_numbers; /* with tiles */
    const void *tile_bits;    /* with tiles */
} spk_attention_backward_args;

/* ------------------------------------------------------------------------------------------------ tuning options */

/* How much tuning measures. */
typedef enum spk_effort {
    SPK_TUNE_MEASURE = 0,   /* the promising candidates, under the budget */
    SPK_TUNE_ESTIMATE = 1,  /* measure nothing: the nearest known class, else the cost model */
    SPK_TUNE_EXHAUSTIVE = 2 /* every applicable candidate; the budget is ignored unless set */
} spk_effort;

/* What to do with a class the store does not know. */
typedef enum spk_unknown {
    /* it is tuned; but another number of tokens of a layer that is known runs at once on the nearest known class's choice. spk_tune
     * measures that, too */
    SPK_UNKNOWN_TUNE = 0,
    SPK_UNKNOWN_ESTIMATE = 1,
    SPK_UNKNOWN_FAIL = 2,      /* SPK_ERR_UNKNOWN_CLASS */
    SPK_UNKNOWN_TUNE_EACH = 3, /* it is tuned in any case: for warming up */
    SPK_UNKNOWN_NEAREST = 4,   /* the nearest class of a layer that is known decides; else SPK_ERR_UNKNOWN_CLASS */
    /* as SPK_UNKNOWN_TUNE, but nobody waits: a plan of a class that would be tuned begins with the estimate, and its runs are made by a few
     * candidates in turn, until the fastest is known: some 60 runs. Each one's first result is compared with the oracle at some places, and
     * computed again by another where it is wrong. So the last bits may differ from run to run meanwhile. One plan tries a class, others
     * follow it; the outcome goes to the store, as provisional. On a GPU candidates are compiled, proved and compared by another thread
     * first, and runs are timed on their stream: nothing waits for it. With static_values or deferred indices it is SPK_UNKNOWN_TUNE.
     * spk_tune measures as ever */
    SPK_UNKNOWN_IN_PLACE = 5
} spk_unknown;

/* Whether operands are in the caches when a candidate is timed. */
typedef enum spk_cache_mode { SPK_COLD = 0, SPK_WARM = 1 } spk_cache_mode;

/* How a candidate is chosen: by measuring or by estimate, for how long, among which kernels. */
typedef struct spk_tune_options {
    size_t struct_size;
    spk_effort effort;
    spk_unknown unknown;
    spk_cache_mode cache; /* cold: operands rotate through more memory than the last cache; warm: the same operands again */
    double budget_s;      /* 0: the default (2 s on the CPU, 5 s on a GPU; none for exhaustive); limit 86400. Compiling does not count */
    /* largest norm-wise relative error of a candidate's first output, and in proportion of its others; 0: from the dtype and K */
    double tolerance;
    int assume_finite; /* B holds no inf or NaN: candidates that multiply filled-in zeros may win */
    /* of SpMM: values change only through spk_plan_update_values: packing them once is free. With stride_a, all items' values */
    int static_values;
    int fresh;           /* tune again though the class is known */
    const char *only;    /* comma-separated kernel names, NULL: all */
    const char *exclude; /* comma-separated kernel names */
    /* a pinned candidate, as spk_plan_choice prints it: bound without measuring, and on a GPU without a proof where none can be had. A
     * parameter that is left out has its first value, but SERIAL the one that fits: 1, the calling thread alone, where that is expected to
     * be faster or the threads would not have a processor each at this moment. spk_plan_choice tells what was taken. */
    const char *choice;
    uint64_t seed; /* of the random operands; 0: from the clock */
} spk_tune_options;

/* ------------------------------------------------------------------------------------------------ plan */

/* A problem bound to the candidate that runs it. */
typedef struct spk_plan spk_plan;

/* A problem is the struct of its operation (spk_spmm, spk_sddmm, spk_gemm), which begins with its size and its operation; so are the
 * arguments of a run. The calls that take them as const void * are for every operation; spk_plan_spmm and its like, at the end of this
 * header, are the same with the struct's type. pattern is what the operation's struct says of it; NULL where it has none.
 *
 * Binds a problem to a candidate: from the store where its class is known, else as options->effort and ->unknown say.
 * options may be NULL. The plan keeps the pattern alive.
 * On a GPU only candidates are bound whose program is proved: it has run in a helper process (sparsek-prover), or there is none and
 * committed runs on such a GPU proved it. What is not is proved first, which takes seconds, once a machine. Where that cannot be, the next
 * best that is proved is taken; SPK_ERR_NO_CANDIDATE where there is none, and for a pinned choice that did harm in the helper process. A
 * pinned choice that cannot be proved is bound all the same: spk_plan_info.why is "pinned, not proved" then, and the log has a line. */
SPK_API spk_status spk_plan_create(spk_context *context, spk_pattern *pattern, const void *problem, const spk_tune_options *options,
                                   spk_plan **plan);
SPK_API void spk_plan_destroy(spk_plan **plan);

/* Runs a plan. stream is NULL on the CPU, which refuses another; on a GPU a CUstream of the device's primary context (NULL: the legacy
 * default stream), and the call returns when the work is on it. With a workspace of its own: no lock, no allocation, no access to the
 * store. A stream may be captured into a graph meanwhile: the graph keeps the pointers and the workspace, so that the plan must outlive it;
 * without a workspace in args, let the stream run the plan once before capture, and the graph not run beside other runs of the plan on
 * another stream. A plan that needs no measuring may be made during the capture, too: what that does on the device is no part of the
 * graph. */
SPK_API spk_status spk_run(const spk_plan *plan, const void *args, void *stream);

/* For a plan made with static_values: takes the values (again). Needed once before the first run, and after every change of
 * values; runs ignore args->values then. The array itself must stay until the next update or the plan's end. Not concurrent
 * with runs. */
SPK_API spk_status spk_plan_update_values(spk_plan *plan, const void *values, void *stream);

/* What a plan runs, and how it was chosen. */
typedef struct spk_plan_info {
    size_t struct_size;
    const char *kernel; /* "spmm_f32_avx2" */
    const char *params; /* "MR=6 NV=2 PACK=1" */
    /* how it was chosen: "measured", "from the store", "from the bundle of MODEL", "nearest class, of n=64", "estimated: nearest class",
     * "estimated: cost model", "pinned", "pinned, not proved" */
    const char *why;
    int from_store;
    size_t workspace_bytes; /* 64-byte aligned */
    double prepare_us;      /* one-off work done for this plan */
} spk_plan_info;

/* Strings live as long as the plan. */
SPK_API spk_status spk_plan_get_info(const spk_plan *plan, spk_plan_info *info);
SPK_API size_t spk_plan_workspace_bytes(const spk_plan *plan);

/* The choice as text ("spmm_f32_avx2 NV=2 PACK=1 GROUP=4 SERIAL=0"), to pin it elsewhere through spk_tune_options.choice. */
SPK_API const char *spk_plan_choice(const spk_plan *plan);

/* One call: looks the plan up in the context's cache (keyed by pattern, problem and options) or makes it, and runs it.
 * Overhead on a known pattern < 1 us. options may be NULL. */
SPK_API spk_status spk_compute(spk_context *context, spk_pattern *pattern, const void *problem, const void *args,
                               const spk_tune_options *options);

/* In place of an operand: the first output that the problem has, D of products. */
#define SPK_FIRST_OUTPUT (-1)

/* The oracle: plain loops, accumulated in float64 (wider for float64 inputs), not rounded to the output's dtype. All arrays are host
 * arrays, whatever the context's device; those of outputs and the workspace are not used.
 * operand is an output, by its index (spk_operation_operand), or SPK_FIRST_OUTPUT. Computes rows[0..row_count) of it (all where rows is
 * NULL) into out, row-major [row_count, columns]. Rows and columns are those of spk_problem_array; of a batch, row r of item i is
 * i * rows + r. D of SDDMM is taken as a matrix with a row for each row of a block, in the order of values (column-major blocks: for each
 * column): nnzb * block_rows rows of block_cols elements (nnzb * block_cols rows of block_rows).
 * magnitude (may be NULL) gets the scale of each element's rounding error: of products the sum of absolute values of all terms, times 1.13
 * where there is an activation, then plus the residual's, or times the factor's; of attention also what scores that are off by their
 * rounding make of the weights (docs/numerics.md). Where it is infinite, the element is not finite either;
 * where it is NaN, nothing can be said of the element: an activation of what is not finite. */
SPK_API spk_status spk_oracle(spk_context *context, const spk_pattern *pattern, const void *problem, const void *args, int operand,
                              const int64_t *rows, int64_t row_count, double *out, double *magnitude);

/* The tolerance that tuning uses for an output (or SPK_FIRST_OUTPUT) of a problem on a pattern when options->tolerance is 0: the largest
 * allowed |output - oracle| / magnitude. */
SPK_API spk_status spk_default_tolerance(spk_context *context, const spk_pattern *pattern, const void *problem, int operand,
                                         double *tolerance);

/* ------------------------------------------------------------------------------------------------ operations as data */

/* What the structs of each operation hold, for programs that take any operation (command lines, bindings, tests). The description of a
 * problem has fields; the arguments of a run point to operands and hold scalars; sizes are what the operands' extents are made of.
 * A program that sets the fields it knows of and leaves 0 in all others has the defaults. Strings are static. */

/* Whether an operation takes a pattern. */
typedef enum spk_pattern_use {
    SPK_PATTERN_NONE = 0,    /* the calls take none: NULL */
    SPK_PATTERN_NEEDED = 1,  /* it says where the stored blocks are */
    SPK_PATTERN_OPTIONAL = 2 /* it says which blocks of pairs count; NULL: all */
} spk_pattern_use;

/* A row of the table of operations. */
typedef struct spk_operation_info {
    size_t struct_size;
    spk_operation operation;
    spk_pattern_use takes_pattern;
    const char *name;                     /* "spmm" */
    const char *formula;                  /* "D = act(alpha op(A) B + beta C + bias) + residual" */
    const char *problem_type, *args_type; /* "spk_spmm", "spk_spmm_args" */
    size_t problem_bytes, args_bytes;     /* struct_size of those */
    size_t workspace_offset;              /* in the arguments: of workspace, workspace_bytes and stream */
    size_t workspace_bytes_offset, stream_offset;
    int field_count, size_count, operand_count, scalar_count;
    /* A problem in words: "A{transposed} {m} x {k} {pattern} times B {k} x {n}", with sizes, the pattern, and " transposed" in braces */
    const char *sentence;
} spk_operation_info;

/* The table of operations, index in [0, spk_operation_count). The functions below take an operation of it, and an index in
 * [0, info.field_count) and so on. */
SPK_API int spk_operation_count(void);
SPK_API spk_status spk_operation_get(int index, spk_operation_info *info);

/* What a field of a problem is, and with that the type of the member. */
typedef enum spk_field_kind {
    SPK_FIELD_SIZE = 1,         /* int64_t: the size of this name */
    SPK_FIELD_ITEMS = 2,        /* int64_t: of a batch */
    SPK_FIELD_DTYPE = 3,        /* spk_dtype: of `operand`, and of those that are to be like it; operand -1: of the sums */
    SPK_FIELD_LAYOUT = 4,       /* spk_layout: of `operand`, likewise */
    SPK_FIELD_BLOCK_LAYOUT = 5, /* spk_layout: inside a block of arrays of values */
    SPK_FIELD_TRANS = 6,        /* spk_trans: of the pattern, or of the array of `operand` */
    SPK_FIELD_PART = 7,         /* int, or an enumeration: whether and how `operand` takes part; 0: it does not */
    SPK_FIELD_CHOICE = 8,       /* int, or an enumeration */
    SPK_FIELD_LD = 9,           /* int64_t: leading dimension of `operand` */
    SPK_FIELD_STRIDE = 10,      /* int64_t: of `operand`, from one item of a batch to the next */
    SPK_FIELD_REAL = 11,        /* double */
    SPK_FIELD_GROUPS = 12,      /* int64_t: how many pieces the product is cut into; 0: none */
    SPK_FIELD_HEADS = 13,       /* int64_t: matrices in an item of `operand`, and of those that are to be like it; 0: 1 */
    SPK_FIELD_HEAD_STRIDE = 14, /* int64_t: of `operand`, from one head of an item to the next */
    SPK_FIELD_COUNT = 15,       /* int64_t: a number of something else, >= 0 */
    SPK_FIELD_SCALE = 16        /* spk_scale: the tile of `operand` that a scale factor covers */
} spk_field_kind;

/* A field of a problem: a member of its struct, what it means, what it may be. */
typedef struct spk_field_info {
    size_t struct_size;
    const char *name; /* of the member: "layout_x" */
    spk_field_kind kind;
    int operand;   /* index of the operand that the field is about; -1: of none */
    size_t offset; /* of the member, in the problem's struct */
    /* What command lines and files call it, the same in every operation where it means the same: "layout_a". NULL: they do not. Several,
     * separated by '|', are for the values from 1 on: "residual|factor" */
    const char *option;
    const char *values; /* of an enumeration, '|'-separated, from 0 on: "row|col"; of a dtype, those that it may be. NULL: a number */
    const char *terms;  /* what each value adds to the name of an epilogue: "|relu|gelu_erf|gelu_tanh|silu". NULL: nothing */
    const char *usual;  /* the default in words: "none"; NULL: 0 */
    const char *help;   /* in a few words; NULL where it has no option */
    double low, high;   /* of a number, and of an enumeration's */
} spk_field_info;

/* A field of an operation, index in [0, spk_operation_info.field_count). */
SPK_API spk_status spk_operation_field(spk_operation operation, int index, spk_field_info *info);

/* Where a size's value comes from. */
typedef enum spk_size_source {
    SPK_SIZE_FIELD = 0,        /* the problem's field of the same name */
    SPK_SIZE_PATTERN_ROWS = 1, /* rows and columns of op(pattern), where the problem has a field of SPK_FIELD_TRANS of it */
    SPK_SIZE_PATTERN_COLS = 2,
    SPK_SIZE_LIST_ROWS = 3, /* the field; an optional pattern has as many rows for each of its lists, and as many columns */
    SPK_SIZE_LIST_COLS = 4
} spk_size_source;

/* A size of an operation: what the extents of its operands are made of. */
typedef struct spk_size_info {
    size_t struct_size;
    const char *name; /* "m" */
    spk_size_source source;
    int reserved;
    int64_t usual;    /* one to measure where nothing says another */
    const char *help; /* "rows of op(A) and of D" */
} spk_size_info;

/* A size of an operation, index in [0, spk_operation_info.size_count). */
SPK_API spk_status spk_operation_size(spk_operation operation, int index, spk_size_info *info);

/* What a run does with an operand. */
typedef enum spk_role {
    SPK_ROLE_IN = 0,
    SPK_ROLE_IN_SCALED = 1, /* not read where the scalar that it is multiplied by is 0 */
    SPK_ROLE_OUT = 2
} spk_role;

/* An operand of an operation: an array that its arguments point to. */
typedef struct spk_operand_info {
    size_t struct_size;
    const char *name;    /* of the pointer in the arguments: "values" */
    const char *title;   /* in formulas and messages: "D" */
    const char *extents; /* by sizes: "k x n"; "blocks": an array of the pattern's values */
    size_t offset;       /* of the pointer, in the arguments' struct */
    spk_role role;
    int scalar;        /* of SPK_ROLE_IN_SCALED: index of that scalar; else -1 */
    int is_values;     /* 1: it has an element for each of the pattern's blocks' */
    int may_be_static; /* 1: spk_tune_options.static_values promises that it stays as it is */
    uint64_t may_be;   /* of an output: bit i: it may be the same array as operand i */
} spk_operand_info;

/* An operand of an operation, index in [0, spk_operation_info.operand_count). */
SPK_API spk_status spk_operation_operand(spk_operation operation, int index, spk_operand_info *info);

/* A scalar of an operation: a number of type double in its arguments. */
typedef struct spk_scalar_info {
    size_t struct_size;
    const char *name; /* of a double in the arguments: "alpha" */
    size_t offset;
    int operand; /* it counts where the problem has this operand; -1: always */
    int reserved;
} spk_scalar_info;

/* A scalar of an operation, index in [0, spk_operation_info.scalar_count). */
SPK_API spk_status spk_operation_scalar(spk_operation operation, int index, spk_scalar_info *info);

enum { SPK_MOST_SIZES = 8 };

/* What follows from a problem. */
typedef struct spk_problem_info {
    size_t struct_size;
    spk_operation operation;
    spk_dtype compute;             /* of the sums */
    int64_t items;                 /* of the batch, >= 1; groups, where there are any */
    int64_t sizes[SPK_MOST_SIZES]; /* in the order of spk_operation_size */
    double flops;                  /* of stored blocks, of all items */
    double dense_flops;            /* had nothing been left out */
    double bytes;                  /* that a run must read and write once */
} spk_problem_info;

/* Sizes, flops and bytes of a problem; it refuses what planning would refuse. */
SPK_API spk_status spk_problem_get_info(spk_context *context, const spk_pattern *pattern, const void *problem, spk_problem_info *info);

/* How an operand of a problem lies: rows x cols for each item, or for each head of it; a line is a row of a row-major array, else a column.
 * All 0: the problem has none. Values of a pattern are rows of blocks: nnzb * block_rows x block_cols (column-major blocks: nnzb *
 * block_cols x block_rows). */
typedef struct spk_array_info {
    size_t struct_size;
    int64_t rows, cols;
    int64_t ld;       /* elements from one line to the next */
    int64_t stride;   /* elements from one item to the next; 0: one for all */
    int64_t elements; /* from the first to the last, of all items */
    spk_dtype dtype;
    spk_layout layout;
    int64_t heads;       /* matrices of rows x cols in an item, >= 1 where the problem has the operand */
    int64_t head_stride; /* elements from one of them to the next; 0: there is one */
} spk_array_info;

/* How an operand of a problem lies, by its index (spk_operation_operand). */
SPK_API spk_status spk_problem_array(spk_context *context, const spk_pattern *pattern, const void *problem, int operand,
                                     spk_array_info *info);

/* Fills an operand of a problem, in host memory, with numbers that it may hold: offsets are uneven and end at the whole size; others are
 * as spk_fill_random makes them, in the whole of what it occupies. `out` has the elements of spk_problem_array. */
SPK_API spk_status spk_problem_fill(spk_context *context, const spk_pattern *pattern, const void *problem, int operand, uint64_t seed,
                                    void *out);

/* ------------------------------------------------------------------------------------------------ kernels and reports */

/* Whose a kernel is: the library's own, a vendor's, a dense product, the reference, a peer that only races. */
typedef enum spk_kind { SPK_KIND_OWN = 1, SPK_KIND_VENDOR = 2, SPK_KIND_DENSE = 3, SPK_KIND_REFERENCE = 4, SPK_KIND_PEER = 5 } spk_kind;

/* A row of the table of kernels. */
typedef struct spk_kernel_info {
    size_t struct_size;
    const char *name;
    spk_operation operation;
    spk_kind kind;
    const char *device;   /* the kind of device: "cpu", "cuda" */
    const char *isa;      /* "" or what it needs: "avx2,fma" */
    const char *tunables; /* "MR=4,6 PACK=0,1" */
    /* of the factors that it multiplies: "f16, bf16". "tf32": f32 where the problem's compute is SPK_TF32; "f32": where it is SPK_F32 */
    const char *types;
} spk_kernel_info;

/* The table of kernels, index in [0, spk_kernel_count). Static strings. */
SPK_API int spk_kernel_count(void);
SPK_API spk_status spk_kernel_get(int index, spk_kernel_info *info);

/* How a candidate fared. */
typedef enum spk_candidate_status {
    SPK_CANDIDATE_OK = 0,
    SPK_CANDIDATE_WRONG = 1,  /* its result missed the tolerance */
    SPK_CANDIDATE_FAILED = 2, /* it returned an error */
    SPK_CANDIDATE_TIMED_OUT = 3,
    SPK_CANDIDATE_PRUNED = 4, /* not measured: the model or early samples ruled it out, or the budget ended */
    /* may not win here (needs assume_finite, excluded, ...); measured all the same where times are given */
    SPK_CANDIDATE_NOT_ELIGIBLE = 5,
    SPK_CANDIDATE_NOT_APPLICABLE = 6 /* cannot compute this problem on this device */
} spk_candidate_status;

/* What a report says of one candidate: a kernel with its parameters. */
typedef struct spk_candidate_info {
    size_t struct_size;
    const char *name, *params;
    const char *hash; /* of the kernel's source and parameters, 16 hex digits */
    spk_kind kind;
    spk_candidate_status status;
    const char *why;     /* NULL, or the reason of a status other than ok */
    double predicted_us; /* the cost model's; 0: none */
    double median_us;    /* 0: not measured */
    double spread_us;    /* half the distance between the quartiles */
    double prepare_us;   /* one-off work of a plan */
    /* largest |D - oracle| / magnitude on the sampled rows, of other outputs in proportion to their tolerances; negative: not checked */
    double error;
    double tolerance;
    int64_t sample_count;     /* interleaved samples of the last phase, if any */
    const double *samples_us; /* sample i of two candidates of one report was taken in the same round */
} spk_candidate_info;

/* What tuning measured, or what a list or the store tells. */
typedef struct spk_report spk_report;

/* Evidence that is good enough to go on with, and that a later tuning of its class replaces: */
typedef enum spk_provisional {
    SPK_PROVISIONAL_NO = 0,          /* finished */
    SPK_PROVISIONAL_INTERRUPTED = 1, /* the measuring was interrupted. The next tuning goes on with it */
    /* the budget ended before interleaved rounds had decided. A tuning with half as much again measures anew */
    SPK_PROVISIONAL_BUDGET = 2,
    /* other programs used the processors meanwhile. A tuning five minutes later or more measures anew, once in a process and where the
     * machine is not as busy */
    SPK_PROVISIONAL_LOAD = 3,
    /* a few candidates were tried in place, by the runs of the program (SPK_UNKNOWN_IN_PLACE). A tuning measures more of them anew */
    SPK_PROVISIONAL_IN_PLACE = 4
} spk_provisional;

/* What a report says as a whole. */
typedef struct spk_report_info {
    size_t struct_size;
    int candidate_count;
    int chosen;            /* index, or -1 */
    int from_store;        /* 1: the stored evidence, nothing was measured */
    double tuning_s;       /* spent (then, when from the store) */
    int64_t measured_at;   /* seconds since 1970-01-01 UTC; 0: never */
    const char *class_key; /* the class of problems this evidence is for */
    const char *summary;   /* one paragraph: why the chosen one won */
    /* 1: the measuring was interrupted, and candidates are undecided; the next tuning of the class goes on with them */
    int interrupted;
    /* of this evidence. In the store nothing provisional replaces what is finished, with options->fresh neither */
    spk_provisional provisional;
    /* what decides where nothing was measured of the class: "nearest class, of n=64", "from the bundle, of NVIDIA H200", "from the cost
     * model, ...", "tried in place: 12 runs in turn so far"; NULL: its own evidence */
    const char *origin;
    int foreign; /* 1: the evidence is another class's; its times are not this problem's, and give no rates of it */
    int reserved;
} spk_report_info;

/* The report as a whole, and one of its candidates, index in [0, spk_report_info.candidate_count). Strings live as long as the report. */
SPK_API spk_status spk_report_get_info(const spk_report *report, spk_report_info *info);
SPK_API spk_status spk_report_candidate(const spk_report *report, int index, spk_candidate_info *info);
SPK_API void spk_report_destroy(spk_report **report);

/* What a plan would find in the table, nothing run: every candidate of every row, applicable or not, with the model's time. */
SPK_API spk_status spk_list(spk_context *context, spk_pattern *pattern, const void *problem, const spk_tune_options *options,
                            spk_report **report);

/* Tunes as spk_plan_create does (stored evidence where the class is known and options->fresh is 0) and tells. On
 * SPK_ERR_INTERRUPTED the report is written too if anything was measured. */
SPK_API spk_status spk_tune(spk_context *context, spk_pattern *pattern, const void *problem, const spk_tune_options *options,
                            spk_report **report);

/* The stored evidence of the problem's class. Where there is none, but runs of this process try the class in place: every candidate with
 * the model's time, the fastest run so far as the chosen one's time, from_store 0, and an origin that says so; else
 * SPK_ERR_UNKNOWN_CLASS. Runs nothing. */
SPK_API spk_status spk_explain(spk_context *context, spk_pattern *pattern, const void *problem, const spk_tune_options *options,
                               spk_report **report);

/* How long a race goes on, and between whom. */
typedef struct spk_race_options {
    size_t struct_size;
    int rounds; /* interleaved rounds of the last phase; 0: 20 */
    /* ';'-separated choices, as spk_tune_options.choice has one, to race against each other; NULL: the best parameters of every row */
    const char *choices;
    int keep; /* 1: the result goes to the store */
    int all;  /* 1: rows that are expected to be far too slow to win, and to take long, are run, too */
} spk_race_options;

/* The whole race: every row of the table, whatever the effort, ineligible ones too (marked); the best parameters of each row
 * then meet in interleaved rounds. One report entry a row. Dense is the yardstick. A row that is expected to be far too slow to win is left
 * out where its runs would take seconds, or much of a given budget (race->all, and options->only for the rows it names, have them run).
 * With options->budget_s a race takes that long, or up to twice as long; on a busy machine it may take longer, and tells so. */
SPK_API spk_status spk_race(spk_context *context, spk_pattern *pattern, const void *problem, const spk_tune_options *options,
                            const spk_race_options *race, spk_report **report);

/* ------------------------------------------------------------------------------------------------ matrices in host memory */

/* A matrix in the host's memory; immutable. Any context reads it, whichever made it. */
typedef struct spk_matrix spk_matrix;
/* How a matrix is stored. */
typedef enum spk_format { SPK_DENSE = 1, SPK_COO = 2, SPK_CSR = 3, SPK_BSR = 4 } spk_format;

/* A matrix in arrays: what spk_matrix_create copies and spk_matrix_view shows. */
typedef struct spk_matrix_desc {
    size_t struct_size;
    spk_format format;
    spk_dtype dtype; /* f32, f64, f16, bf16, f8e4m3, f8e5m2 or i8 */
    int64_t rows, cols;
    int64_t block_rows, block_cols; /* BSR; else 1 */
    spk_layout layout;              /* dense: of the array; BSR: inside a block */
    int64_t ld;                     /* dense; 0: tight */
    int64_t nnz;                    /* stored entries (COO, CSR) or stored blocks (BSR); dense: rows * cols */
    spk_index_type index_type;      /* what the library hands out is always SPK_I64 */
    const void *row_offsets;        /* CSR: rows + 1; BSR: block rows + 1 */
    const void *row_indices;        /* COO */
    const void *col_indices;        /* COO, CSR: columns; BSR: block columns */
    const void *values;             /* NULL: all ones */
    int pattern_only;               /* the source gave no values */
    int reserved;
} spk_matrix_desc;

/* Copies a caller's arrays after checking every index. Duplicates and unsorted entries are allowed in COO and CSR;
 * BSR may have them too until it becomes a pattern (see spk_matrix_canonicalize). */
SPK_API spk_status spk_matrix_create(spk_context *context, const spk_matrix_desc *desc, spk_matrix **matrix);
SPK_API void spk_matrix_destroy(spk_matrix **matrix);

/* Borrowed pointers, valid as long as the matrix. */
SPK_API spk_status spk_matrix_view(const spk_matrix *matrix, spk_matrix_desc *desc);

/* The pattern of a canonical BSR matrix. It remembers the dtype: a plan that reads the stored values as another is refused. For values of
 * another dtype give the matrix of spk_matrix_cast, or the indices (spk_matrix_view) to spk_pattern_create. */
SPK_API spk_status spk_pattern_from_matrix(spk_context *context, const spk_matrix *bsr, spk_pattern **pattern);

/* Each makes a new matrix. to_bsr takes any format (BSR too: re-blocks); explicit zeros are kept as stored entries, a dense
 * source stores the blocks that hold a non-zero. Duplicate entries are summed. The overhang of edge blocks is zero. A cast to f32
 * refuses what is finite in f64 and too large for f32. */
SPK_API spk_status spk_matrix_to_bsr(spk_context *context, const spk_matrix *matrix, int64_t block_rows, int64_t block_cols,
                                     spk_layout block_layout, spk_matrix **out);
SPK_API spk_status spk_matrix_to_csr(spk_context *context, const spk_matrix *matrix, spk_matrix **out);
SPK_API spk_status spk_matrix_to_coo(spk_context *context, const spk_matrix *matrix, spk_matrix **out);
SPK_API spk_status spk_matrix_to_dense(spk_context *context, const spk_matrix *matrix, spk_layout layout, spk_matrix **out);
SPK_API spk_status spk_matrix_cast(spk_context *context, const spk_matrix *matrix, spk_dtype dtype, spk_matrix **out);
SPK_API spk_status spk_matrix_transpose(spk_context *context, const spk_matrix *matrix, spk_matrix **out);

/* Sorts the blocks (entries) of each row and sums duplicates. */
SPK_API spk_status spk_matrix_canonicalize(spk_context *context, const spk_matrix *matrix, spk_matrix **out);

/* How the size of a block is measured for pruning. */
typedef enum spk_norm { SPK_NORM_L1 = 1, SPK_NORM_L2 = 2, SPK_NORM_MAX = 3 } spk_norm;

/* Keeps the round(density * grid) blocks of largest norm (ties: the lower block index first). Any source format, of finite values; what is
 * kept is a BSR matrix. density in [0, 1]. Every block of a dense source counts, zero or not, so that a layer can be trained from zeros; a
 * sparse source has the blocks that hold its entries: spk_matrix_to_bsr first leaves out those of a dense one that are zero. */
SPK_API spk_status spk_matrix_prune(spk_context *context, const spk_matrix *matrix, int64_t block_rows, int64_t block_cols, double density,
                                    spk_norm norm, spk_matrix **out);

/* What one block size would cost a matrix: an entry of the list that spk_matrix_advise writes. */
typedef struct spk_block_advice {
    size_t struct_size;
    int64_t block_rows, block_cols;
    int64_t nnzb;
    double density; /* of blocks */
    double fill;    /* stored elements (edge overhang not counted) over entries of the source, >= 1 */
    double score;   /* estimated time relative to the best of the list, >= 1: 1 marks the advice */
} spk_block_advice;

/* Fill-in at natural square sizes (1 2 3 4 5 6 8 12 16 24 32 48 64 128) up to the matrix's size. In: *count = room in advice, and
 * advice[0].struct_size is that of every entry; out: *count = entries written, sorted by block size. */
SPK_API spk_status spk_matrix_advise(spk_context *context, const spk_matrix *matrix, spk_block_advice *advice, int *count);

/* ------------------------------------------------------------------------------------------------ files */

/* How spk_matrix_read reads a file. */
typedef struct spk_read_options {
    size_t struct_size;
    const char *tensor; /* safetensors: name of a tensor or of a BSR triple; NULL: the only one in the file */
    spk_dtype dtype;    /* convert on reading; default: the file's (Matrix Market and .smtx: f64) */
    int64_t max_bytes;  /* refuse a file that would need more memory; 0: three quarters of the machine's memory */
    int64_t cols;       /* columns of the matrix, which a BSR triple without metadata does not tell; 0: not known (see below) */
} spk_read_options;

/* Format by content and extension: .mtx, .smtx, .npy, .safetensors, each in gzip's compression too. "/dev/stdin" is standard input,
 * from where it stands. options may be NULL. A bad file gives SPK_ERR_FORMAT with
 * the line or byte offset. Matrix Market coordinate gives COO in file order (symmetric files expanded), array and .npy dense,
 * .smtx CSR with values of one, safetensors BSR or dense. A BSR triple of a safetensors file (NAME.values, NAME.row_offsets,
 * NAME.col_indices) that has no metadata, such as a layer of a model, has the block that its values' shape says; its columns are
 * options.cols, else what config.json beside the file says of that layer, else those up to the last stored block, with a note in the log.
 * A matrix of another number of columns than options.cols is refused. */
SPK_API spk_status spk_matrix_read(spk_context *context, const char *path, const spk_read_options *options, spk_matrix **matrix);

/* How spk_matrix_write writes a file. */
typedef struct spk_write_options {
    size_t struct_size;
    const char *tensor;  /* safetensors: name to write under; NULL: "matrix" */
    const char *comment; /* Matrix Market: a comment line */
    const char *format;  /* "mtx", "smtx", "npy" or "safetensors"; NULL: by the extension of the path */
} spk_write_options;

/* Written aside, fsynced and renamed: at any moment the path holds the old file or the whole new one. A killed
 * process may leave a file .sparsek-*.tmp beside it, which the next write into that folder removes.
 * What is no regular file is written straight to; "/dev/stdout" is standard output.
 * What a format cannot hold is refused (.smtx: values are dropped only where all are one; .npy: dense only). */
SPK_API spk_status spk_matrix_write(spk_context *context, const spk_matrix *matrix, const char *path, const spk_write_options *options);

/* ------------------------------------------------------------------------------------------------ generators */

/* The shape of a generated pattern. */
typedef enum spk_generator {
    SPK_GEN_UNIFORM = 1,    /* exactly round(density * grid) blocks; rows differ by at most one */
    SPK_GEN_BERNOULLI = 2,  /* uniformly random blocks, no limit on a row */
    SPK_GEN_BANDED = 3,     /* the blocks nearest the diagonal */
    SPK_GEN_WINDOW = 4,     /* a sliding window of whole rows */
    SPK_GEN_CAUSAL = 5,     /* uniform, at and below the diagonal */
    SPK_GEN_DIAGONAL = 6,   /* square groups along the diagonal */
    SPK_GEN_POWER_LAW = 7,  /* row length ~ rank^-0.5, shuffled, capped at the grid */
    SPK_GEN_EMPTY_ROWS = 8, /* uniform over half of the rows, the others empty */
    SPK_GEN_ELASTICITY = 9, /* 3-D linear elasticity, hexahedral elements: see cells_* */
    SPK_GEN_EXPERTS = 10,   /* block-diagonal with uneven groups: a group of block rows for each expert, see experts */
    SPK_GEN_MASK = 11       /* which blocks of queries and keys attention keeps, without values: see mask */
} spk_generator;

/* Masks of attention. Query i stands beside key i + keys - queries, so that the last ones stand beside each other; "so far" is up to the
 * key beside, unless all_keys is set. A block is kept where any of its pairs is: what is finer, causal and windows of the run say. */
typedef enum spk_mask_shape {
    SPK_MASK_CAUSAL = 1,    /* all keys so far */
    SPK_MASK_WINDOW = 2,    /* `window` keys so far; all_keys: as many on the other side */
    SPK_MASK_SINKS = 3,     /* a window, and the first `sinks` keys */
    SPK_MASK_DOCUMENTS = 4, /* packed sequences of random lengths tokens_least .. tokens_most, each of which sees itself so far */
    SPK_MASK_STRIDED = 5,   /* a window, and every key number stride - 1, 2 stride - 1, .. (Child et al. 2019, arXiv:1904.10509) */
    SPK_MASK_RANDOM = 6,    /* of each block row the share `density` of the blocks so far, at random */
    SPK_MASK_SELECTED = 7,  /* of each block row `selected` blocks so far, at random, as if a model had chosen the best */
    SPK_MASK_VIDEO = 8, /* tokens are cells_x frames of cells_y lines of cells_z: those in a box of window_x, _y and _z about the own one */
    SPK_MASK_NSA = 9    /* sinks, a window, and `selected` blocks of the rest (native sparse attention, mixture of block attention) */
} spk_mask_shape;

/* Which matrix or mask spk_matrix_generate makes. */
typedef struct spk_generate {
    size_t struct_size;
    spk_generator generator;
    int64_t rows, cols, block_rows, block_cols; /* not for elasticity (3 x 3 blocks); experts: rows follow */
    double density;                             /* [0, 1]; not for elasticity and experts */
    uint64_t seed;
    spk_dtype dtype;                   /* default: f32; elasticity f64 */
    int64_t cells_x, cells_y, cells_z; /* elasticity: hexahedra along each axis, >= 1 */
    double young, poisson;             /* elasticity: 0: 1.0 and 0.3 */
    int64_t experts;                   /* experts: how many share the block columns evenly; 0: 8 */
    /* experts: of each, which make ceil(tokens / block_rows) full block rows; NULL: at random by the seed, within */
    const int64_t *tokens;
    int64_t tokens_least,
        tokens_most; /* experts: these two; both 0: 16 and 256. Masks of documents: both 0: a 32nd and a 4th of the keys */
    /* masks: rows are the queries and cols the keys of each of `lists` lists (0: 1), which stand one below the other as spk_attention has
     * them, each with choices of its own. density is that of SPK_MASK_RANDOM alone. No values: all are one */
    spk_mask_shape mask;
    int all_keys;                         /* 1: keys behind the one beside count, too. Of video they always do */
    int64_t lists;                        /* 0: 1 */
    int64_t window, sinks;                /* keys; 0: an 8th of them, and 64 */
    int64_t stride;                       /* 0: a 16th of the keys */
    int64_t selected;                     /* blocks; 0: 16 */
    int64_t window_x, window_y, window_z; /* video; 0: a third of the frames, lines and columns */
} spk_generate;

/* A BSR matrix with normally distributed values (elasticity: the stiffness matrix with one face clamped, symmetric positive
 * definite). The same bits on every machine for one seed. *shortfall (may be NULL) gets the blocks that the pattern's shape
 * had no room for: requested minus stored. */
SPK_API spk_status spk_matrix_generate(spk_context *context, const spk_generate *options, spk_matrix **matrix, int64_t *shortfall);

/* Name of a generator ("uniform", "power-law", ...), NULL if unknown; 0 for an unknown name. */
SPK_API const char *spk_generator_name(spk_generator generator);
SPK_API spk_generator spk_generator_from_name(const char *name);
SPK_API const char *spk_mask_shape_name(spk_mask_shape shape);
SPK_API spk_mask_shape spk_mask_shape_from_name(const char *name);

/* Fills count elements, aligned as their dtype, with standard normal numbers, the same on every machine for one seed. */
SPK_API spk_status spk_fill_random(spk_context *context, spk_dtype dtype, int64_t count, uint64_t seed, void *out);

/* ------------------------------------------------------------------------------------------------ store */

/* Where the store is. "" in memory; where there is no file and none can be made, which the log tells when something is to be kept; and
 * once the file there has been refused, which the store's first use tells: the log says why, and spk_store_list fails with the reason.
 * Makes no file or folder. Lives as long as the context.
 *
 * A store names what is run. So a file is refused where it belongs to another user than this process's or root, where others may write it,
 * and where it holds other tables than a store's, views or triggers. Calls that only look (list, export, verify, explain) leave a file as
 * it is, whatever they find; a damaged one is set aside (FILE.bad-SECONDS) by the first call that is to write it. Reading heeds
 * spk_context_interrupt. */
SPK_API const char *spk_store_path(const spk_context *context);

/* One class of problems in the store. */
typedef struct spk_store_entry {
    size_t struct_size;
    const char *class_key;
    const char *device;
    const char *choice;
    double median_us;
    int candidate_count;
    spk_provisional provisional;
    int64_t measured_at; /* seconds since 1970-01-01 UTC */
    int64_t bytes;       /* reserved, 0 */
} spk_store_entry;

/* Calls visit for every class, newest first, until it returns non-zero. The entry is valid during the call. SPK_ERR_IO: the store's file
 * cannot be read now (locked, damaged, a failing disk), or was refused, and nothing was learned beside it; so does export, which then
 * writes nothing. */
SPK_API spk_status spk_store_list(spk_context *context, int (*visit)(void *user, const spk_store_entry *entry), void *user);

/* All entries as JSON, and back. import keeps the newer entry of a class, but what is finished before what is provisional; one whose time
 * lies in the future or before 1970 is taken, as of now, where its class is not known. A bad file changes nothing. *count (may be NULL)
 * gets the number of classes written or taken. */
SPK_API spk_status spk_store_export(spk_context *context, const char *path, int64_t *count);
SPK_API spk_status spk_store_import(spk_context *context, const char *path, int64_t *count);

/* Checks the database's integrity and every entry's shape. *bad (may be NULL) gets the number of bad entries; a damaged file is one. */
SPK_API spk_status spk_store_verify(spk_context *context, int64_t *good, int64_t *bad);
SPK_API spk_status spk_store_clear(spk_context *context, int64_t *removed);

/* ------------------------------------------------------------------------------------------------ the same, typed */

/* The calls above for one operation each, so that the compiler checks the structs. */

/* spk_plan_create of SpMM. */
static inline spk_status spk_plan_spmm(spk_context *context, spk_pattern *pattern, const spk_spmm *problem, const spk_tune_options *options,
                                       spk_plan **plan)
{
    return spk_plan_create(context, pattern, problem, options, plan);
}

/* spk_run of SpMM. */
static inline spk_status spk_run_spmm(const spk_plan *plan, const spk_spmm_args *args, void *stream)
{
    return spk_run(plan, args, stream);
}

/* spk_compute of SpMM. */
static inline spk_status spk_matmul(spk_context *context, spk_pattern *pattern, const spk_spmm *problem, const spk_spmm_args *args,
                                    const spk_tune_options *options)
{
    return spk_compute(context, pattern, problem, args, options);
}

/* spk_plan_create of SDDMM. */
static inline spk_status spk_plan_sddmm(spk_context *context, spk_pattern *pattern, const spk_sddmm *problem,
                                        const spk_tune_options *options, spk_plan **plan)
{
    return spk_plan_create(context, pattern, problem, options, plan);
}

/* spk_run of SDDMM. */
static inline spk_status spk_run_sddmm(const spk_plan *plan, const spk_sddmm_args *args, void *stream)
{
    return spk_run(plan, args, stream);
}

/* spk_compute of SDDMM. */
static inline spk_status spk_matmul_sampled(spk_context *context, spk_pattern *pattern, const spk_sddmm *problem,
                                            const spk_sddmm_args *args, const spk_tune_options *options)
{
    return spk_compute(context, pattern, problem, args, options);
}

/* spk_plan_create of a dense product. */
static inline spk_status spk_plan_gemm(spk_context *context, const spk_gemm *problem, const spk_tune_options *options, spk_plan **plan)
{
    return spk_plan_create(context, NULL, problem, options, plan);
}

/* spk_run of a dense product. */
static inline spk_status spk_run_gemm(const spk_plan *plan, const spk_gemm_args *args, void *stream)
{
    return spk_run(plan, args, stream);
}

/* spk_compute of a dense product. */
static inline spk_status spk_matmul_dense(spk_context *context, const spk_gemm *problem, const spk_gemm_args *args,
                                          const spk_tune_options *options)
{
    return spk_compute(context, NULL, problem, args, options);
}

#ifdef __cplusplus
}

/* SPK_SIZED for C++, which has no designated initialisers before C++20: auto problem = spk_sized<spk_spmm>(); problem.n = 512; all else is
 * zero. */
extern "C++" {
template <typename Struct> inline void spk_set_operation(Struct &) {}
template <> inline void spk_set_operation(spk_spmm &made)
{
    made.operation = SPK_SPMM;
}
template <> inline void spk_set_operation(spk_spmm_args &made)
{
    made.operation = SPK_SPMM;
}
template <> inline void spk_set_operation(spk_sddmm &made)
{
    made.operation = SPK_SDDMM;
}
template <> inline void spk_set_operation(spk_sddmm_args &made)
{
    made.operation = SPK_SDDMM;
}
template <> inline void spk_set_operation(spk_gemm &made)
{
    made.operation = SPK_GEMM;
}
template <> inline void spk_set_operation(spk_gemm_args &made)
{
    made.operation = SPK_GEMM;
}
template <> inline void spk_set_operation(spk_attention &made)
{
    made.operation = SPK_ATTENTION;
}
template <> inline void spk_set_operation(spk_attention_args &made)
{
    made.operation = SPK_ATTENTION;
}
template <> inline void spk_set_operation(spk_attention_backward &made)
{
    made.operation = SPK_ATTENTION_BACKWARD;
}
template <> inline void spk_set_operation(spk_attention_backward_args &made)
{
    made.operation = SPK_ATTENTION_BACKWARD;
}
template <typename Struct> inline Struct spk_sized()
{
    Struct made = Struct();
    made.struct_size = sizeof(Struct);
    spk_set_operation(made);
    return made;
}
}
#endif
#endif /* SPARSEK_H */
