/* The backend: a kind of device. The tuner and the plans reach a device only through this table of functions, so that a GPU with
 * its own memory and queue fits beside the CPU. */
#ifndef SPK_BACKEND_BACKEND_H
#define SPK_BACKEND_BACKEND_H

#include <stdbool.h>

#include "base/executor.h"
#include "base/mem.h"
#include "base/stop.h"

typedef enum spk_backend_id { SPK_BACKEND_CPU = 1, SPK_BACKEND_CUDA = 2 } spk_backend_id;

/* Instruction sets and features as bits; a kernel row names what it needs. */
enum {
    SPK_ISA_SSE2 = 1u << 0,
    SPK_ISA_AVX = 1u << 1,
    SPK_ISA_AVX2 = 1u << 2,
    SPK_ISA_FMA = 1u << 3,
    SPK_ISA_F16C = 1u << 4,
    SPK_ISA_AVX512F = 1u << 5, /* with BW, DQ and VL */
    SPK_ISA_AVX512_BF16 = 1u << 6,
    SPK_ISA_AVX512_FP16 = 1u << 7,
    SPK_ISA_AMX_BF16 = 1u << 8,
    SPK_ISA_NEON = 1u << 9,
    SPK_ISA_NEON_BF16 = 1u << 10, /* BFDOT and BFMMLA */
    SPK_ISA_SVE = 1u << 11,
    SPK_ISA_SM70 = 1u << 16, /* NVIDIA compute capability 7.0 or more, and so on */
    SPK_ISA_SM80 = 1u << 17,
    SPK_ISA_SM90A = 1u << 18 /* exactly 9.0: wgmma and setmaxnreg exist there only */
};

/* The caller's device memory; allocate NULL: there is none, the backend's is taken. */
typedef struct spk_device_mem {
    spk_device_allocate allocate;
    spk_device_release release;
    void *user;
} spk_device_mem;

typedef struct spk_device {
    const struct spk_backend *backend;
    spk_mem mem;
    spk_device_mem device_mem;
    spk_executor executor;
    char name[96];
    unsigned isa;
    int64_t l1_bytes, l2_bytes, l3_bytes, memory_bytes; /* caches: 0 unknown */
    int processors;                                     /* streaming multiprocessors; 0 on a CPU */
    double peak_gflops_f32;                             /* a rough guess from ISA, clock and threads: for cost models */
    double stream_gbs;                                  /* likewise, from memory */
    struct spk_libraries *libraries;                    /* the vendor libraries of this backend */
    void *state;
} spk_device;

/* `lines` lines of `length` elements, ld elements apart. */
typedef struct spk_scan {
    spk_dtype dtype;
    const void *array;
    int64_t lines, length, ld;
} spk_scan;

enum { SPK_GATHER_MOST = 64 };

struct spk_pattern_remote;
struct spk_problem;
struct spk_args;
struct spk_bound;
struct spk_prepared;
struct spk_kernel;
struct spk_params;
struct spk_watch;

enum { SPK_PROOF_NAME_BYTES = 40 };

/* What is known of a candidate: nothing; that it has run well in a helper process; that it did harm there. */
typedef enum spk_proof { SPK_PROOF_NONE, SPK_PROOF_GOOD, SPK_PROOF_REFUTED } spk_proof;

/* What leave wants of enter. */
typedef struct spk_entered {
    bool pushed; /* another context was current */
} spk_entered;

typedef struct spk_backend {
    spk_backend_id id;
    const char *kind; /* "cpu" */
    double budget_s;  /* for tuning one problem, where the caller does not say */
    double settle_us; /* under a load that draws all the power there is, the clock falls until then; 0: it does not */
    /* Facts, each for what asks it above the backends; nobody asks which backend it is. */
    bool host_memory;       /* the host reads and writes the arrays of a run itself */
    bool shares_processors; /* runs are on processors that other programs have work for, too */
    bool splits_batches;    /* a row that takes one item takes batches, item by item (kernel/batch.c) */
    bool tiles_fit_sizes;   /* another size wants other tunables by far: the cost model chooses among all own rows (tune/choose/near.c) */
    spk_status (*open)(const spk_mem *mem, const char *name, const spk_executor *executor, spk_device **device);
    void (*close)(spk_device **device);
    /* The devices of this kind, opened or not, or one entry that says why there is none; stops where visit returns other than 0, and
     * returns that. */
    int (*list)(int (*visit)(void *user, const spk_device_entry *entry), void *user);
    /* device memory, for tuning and workspaces */
    spk_status (*allocate)(spk_device *device, size_t bytes, void **memory);
    void (*release)(spk_device *device, void *memory);
    spk_status (*copy_in)(spk_device *device, void *to, const void *from_host, size_t bytes);
    spk_status (*copy_out)(spk_device *device, void *to_host, const void *from, size_t bytes);
    spk_status (*copy_within)(spk_device *device, void *to, const void *from, size_t bytes); /* must not overlap */
    spk_status (*fill)(spk_device *device, void *to, unsigned char byte, size_t bytes);
    /* Whether all elements are finite numbers, and all bits between the lines ones. NULL: the host looks for itself. */
    spk_status (*scan)(spk_device *device, const spk_scan *scan, bool *clean);
    /* Copies out, for each of `count` places (SPK_GATHER_MOST at most), the element there of every line. NULL where scan is. */
    spk_status (*gather)(spk_device *device, const spk_scan *scan, const int64_t *at, int count, void *to_host);
    void *(*own_stream)(spk_device *device);                     /* that tuning runs on. NULL: there are no streams */
    spk_status (*synchronize)(spk_device *device, void *stream); /* of the caller's. NULL: there are no streams */
    int64_t (*free_memory)(spk_device *device);
    /* Puts the check and a copy of a caller's indices in device memory on indices->deferred->stream and waits for nothing; their shape and
     * the hints are checked. The device is needed until `remote` is released. NULL: there are no streams. */
    spk_status (*defer)(spk_device *device, const spk_bsr_indices *indices, struct spk_pattern_remote *remote);
    /* Refuses pointers that this device cannot use. NULL: all are good that the problem's own check let through. */
    spk_status (*check_args)(spk_device *device, const struct spk_problem *problem, const struct spk_args *args);
    /* Whether what is put on the stream now is being recorded: no memory may be allocated for it then. NULL: there are no streams. */
    bool (*capturing)(spk_device *device, void *stream);
    /* What this thread does from now on, such as allocating, ends no capture of another one; returns what captures_restore wants. NULL:
     * there are no streams. */
    int (*captures_spare)(const spk_device *device);
    void (*captures_restore)(const spk_device *device, int mode);
    /* Runs bound with args[i % count] for i in [0, runs), each timed; microseconds a run go to out. Arguments are already checked. */
    spk_status (*time_runs)(spk_device *device, const struct spk_bound *bound, const struct spk_args *args, int count, int runs,
                            double *out_us);
    /* One run on a caller's stream, timed by the device: start and stop are put on the stream around it, and read tells, waiting for
     * nothing, once it is over (false: not yet; infinite: it cannot be told). make may compile a program, release waits for nothing. A
     * watch is used by one thread at a time. All NULL: a run is over when it returns. */
    spk_status (*watch_make)(spk_device *device, struct spk_watch **watch);
    void (*watch_release)(spk_device *device, struct spk_watch **watch); /* accepts NULL */
    spk_status (*watch_start)(spk_device *device, struct spk_watch *watch, void *stream);
    spk_status (*watch_stop)(spk_device *device, struct spk_watch *watch, void *stream);
    bool (*watch_read)(spk_device *device, const struct spk_watch *watch, double *us);
    /* Before candidates are tried: does for all of them at once what takes long (compiling, on all host cores) or could harm this process
     * (the first run of a new device program, which a helper process makes). Each entry says what came of it; only an error that concerns
     * all is returned. NULL: nothing to do. */
    spk_status (*prepare)(spk_device *device, const struct spk_problem *problem, struct spk_prepared *list, int count,
                          const spk_stop *stop);
    /* Whether a candidate may run in this process: only what is good may, but for a choice that the caller has pinned. Looks up and runs
     * nothing, in microseconds for what this process has seen. why gets what a refutation says, or why nothing can be proved here. NULL:
     * every candidate may run. */
    spk_proof (*proof)(spk_device *device, const struct spk_problem *problem, const struct spk_kernel *kernel,
                       const struct spk_params *params, char *why, size_t size);
    /* Whether a candidate may run now, without a wait: its program is compiled, and it is proved, here or elsewhere. NULL: all may. */
    bool (*ready)(spk_device *device, const struct spk_problem *problem, const struct spk_kernel *kernel, const struct spk_params *params);
    /* The proof of a candidate for a problem by name, for who asks again and again: whether this process has seen that it is good, and has
     * not seen it refuted since. Far less work than `proof`. Both NULL: there are no proofs. */
    void (*proof_name)(const spk_device *device, const struct spk_problem *problem, const struct spk_kernel *kernel,
                       const struct spk_params *params, char name[SPK_PROOF_NAME_BYTES]);
    bool (*proof_stands)(const spk_device *device, const char *name);
    /* Clock and power at one of the last samples, or now; 0: unknown. NULL: never known. */
    void (*facts)(spk_device *device, double *clock_mhz, double *power_w);
    /* How many candidates of these rows may run here without a helper process to prove them first, as they were proved elsewhere. NULL:
     * none needs one. */
    int (*proved)(const spk_device *device, const struct spk_kernel *rows, int row_count);
    /* What of the device and its vendor libraries belongs in the tuning key, as text without spaces. */
    spk_status (*key_text)(spk_device *device, char *buffer, size_t size);
    /* The same for evidence that is made elsewhere and shipped: the model, what it can do, the driver's major version; no libraries. */
    void (*model_text)(spk_device *device, char *buffer, size_t size);
    /* Whether a vendor library that a kernel row names is there; opens nothing. */
    bool (*library_found)(const spk_device *device, const char *name);
    /* Why not, in few words. NULL: it was not found. */
    const char *(*library_why)(const spk_device *device, const char *name);
    int (*library_count)(void);
    spk_status (*library_info)(spk_device *device, int index, spk_library_info *info);
    /* Around every call of a row's bind, unbind, update_values and run: makes the device current for this thread, and undoes it. enter
     * fails where the device is lost. Both NULL: there is nothing to make current. */
    spk_status (*enter)(const spk_device *device, spk_entered *entered);
    void (*leave)(const spk_device *device, spk_entered *entered);
} spk_backend;

extern const spk_backend spk_backend_cpu;
extern const spk_backend spk_backend_cuda;

/* Device memory for work on a stream (device_mem.c): the caller's where there is one who gives it, else the backend's. give wants what take
 * was given, and accepts NULL. */
spk_status spk_device_take(spk_device *device, size_t bytes, void *stream, void **memory);
void spk_device_give(spk_device *device, void *memory, size_t bytes, void *stream);

/* The stream of tuning; NULL where there are none. */
void *spk_device_own_stream(spk_device *device);

#endif
