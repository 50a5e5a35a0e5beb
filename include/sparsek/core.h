/* sparsek: what all of sparsek shares: status, types, contexts, memory, patterns.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SPARSEK_CORE_H
#define SPARSEK_CORE_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define SPK_API
#else
#define SPK_API __attribute__((visibility("default")))
#endif

/* What makes a struct all zero, in both languages. */
#ifdef __cplusplus
#define SPK_ZERO \
    {            \
    }
#else
#define SPK_ZERO \
    {            \
        0        \
    }
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The version of these headers; spk_version tells that of the library. */
#define SPK_VERSION_MAJOR 0
#define SPK_VERSION_MINOR 2
#define SPK_VERSION_PATCH 0
/* As one number, to compare: 200 is 0.2.0, 10302 is 1.3.2. */
#define SPK_VERSION_NUMBER (SPK_VERSION_MAJOR * 10000 + SPK_VERSION_MINOR * 100 + SPK_VERSION_PATCH)

/* First initialiser of every struct that a caller fills in: (spk_spmm){SPK_SIZED(spk_spmm), .n = 512}. It sets struct_size, and what else
 * says which struct it is. In C++ spk_sized<spk_spmm>(), below, makes the struct. */
#define SPK_SIZED(type) .struct_size = SPK_SIZED_##type
#define SPK_SIZED_spk_context_options sizeof(spk_context_options)
#define SPK_SIZED_spk_device_info sizeof(spk_device_info)
#define SPK_SIZED_spk_device_entry sizeof(spk_device_entry)
#define SPK_SIZED_spk_library_info sizeof(spk_library_info)
#define SPK_SIZED_spk_bsr_indices sizeof(spk_bsr_indices)
#define SPK_SIZED_spk_deferred_indices sizeof(spk_deferred_indices)
#define SPK_SIZED_spk_pattern_info sizeof(spk_pattern_info)

/* Library version as "major.minor.patch", and the source revision it was built from ("unknown" outside a checkout).
 * Static strings. */
SPK_API const char *spk_version(void);
/* The library's version as SPK_VERSION_NUMBER counts. */
SPK_API int spk_version_number(void);
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
    SPK_ERR_INTERRUPTED = 9,   /* spk_context_interrupt was called, or spk_tune_options.cancel set */
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
/* The type of indices: int32_t or int64_t. No value but 0 is one of spk_dtype, so that a dtype in its place is refused. */
typedef enum spk_index_type { SPK_INDEX_I32 = 0, SPK_INDEX_I64 = 64 } spk_index_type;
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

/* The message of the last call that failed on this context in this thread ("" if none); context NULL: of the last one that has no context:
 * of spk_context_create, and of calls on tables, reports and devices. Valid until this thread's next failing call. */
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
SPK_API spk_status spk_context_get_device(spk_context *context, spk_device_info *info);

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
SPK_API spk_status spk_context_get_library(spk_context *context, int index, spk_library_info *info);

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

/* Indices that a stream of the device is still to write, and what is known of them before. */
typedef struct spk_deferred_indices {
    size_t struct_size;
    void *stream;        /* a CUstream on which what writes the arrays comes before; the plans run on it, or after what is on it now */
    int64_t longest_row; /* blocks of the longest row, about; 0: the mean. This and the next two decide the class of problems */
    double row_spread, row_overlap; /* what spk_pattern_info would say, about */
} spk_deferred_indices;

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
    /* with SPK_DEVICE on a GPU: what writes the arrays may not be done yet, nothing waits for it, and the work on them is put on a stream;
     * see below. NULL: it is done */
    const spk_deferred_indices *deferred;
} spk_bsr_indices;

/* Validates in O(nnzb), copies and inspects the indices; the arrays may be freed afterwards.
 * With deferred the device does so, when the stream comes to it: until then the arrays must stay. nnzb is taken as it is given. Wrong
 * indices are never used: SpMM is that of a pattern without blocks then, what SDDMM writes means nothing, and the next planning or run
 * after the device has found them fails, as does spk_pattern_get_info, which waits and copies the indices to the host. So do tuning, the
 * oracle, and plans with SPK_TRANS, once a pattern. A class of its own, with M and K in buckets, is tuned among the kernels that need
 * nothing on the host; with spk_tune_options.tuning = SPK_TUNING_NEVER a plan waits for nothing. The stream must exist, and other
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

#ifdef __cplusplus
}

/* SPK_SIZED for C++, which has no designated initialisers before C++20: auto problem = spk_sized<spk_spmm>(); problem.n = 512; all else is
 * zero. */
extern "C++" {
template <typename Struct> inline void spk_set_operation(Struct &) {}
template <typename Struct> inline Struct spk_sized()
{
    Struct made = Struct();
    made.struct_size = sizeof(Struct);
    spk_set_operation(made);
    return made;
}
}
#endif
#endif /* SPARSEK_CORE_H */
