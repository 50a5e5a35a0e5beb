/* The kernel row: one way to compute an operation, as data. The build, the registry, `check` and `bench` walk the same table
 * (src/backend/cpu/kernels.def and its like). Adding a kernel is one file that defines its spk_kernel_ops, and one row. */
#ifndef SPK_KERNEL_KERNEL_H
#define SPK_KERNEL_KERNEL_H

#include <stddef.h>

#include "backend/backend.h"
#include "kernel/types.h"
#include "op/problem.h"

#define SPK_MAX_TUNABLES 8
#define SPK_MAX_PARAMS_TEXT 96

/* Values of a row's tunables, in the row's order: SPK_TUNED names them. */
typedef struct spk_params {
    int v[SPK_MAX_TUNABLES];
} spk_params;

/* A problem bound to a candidate, ready to run. Immutable while it runs; several threads may run it, each with its workspace. */
typedef struct spk_bound {
    const struct spk_kernel *kernel;
    spk_problem problem; /* problem.pattern is shared by the owner */
    spk_params params;
    spk_device *device;
    spk_bsr_view view;      /* op(A); filled before bind is called, where the problem has a pattern */
    size_t workspace_bytes; /* bind sets it; a run gets this much, 64-byte aligned */
    void *state;            /* the kernel's, made by bind, released by unbind */
    /* a batch on a kernel that takes one item: the tasks that share the items (kernel/batch.c); 0: it takes the whole batch */
    int64_t parts;
    spk_device *serial; /* the device as one thread that a part, or the whole problem, runs on; NULL: all threads */
    size_t part_bytes;  /* of the workspace */
} spk_bound;

/* A device program: an embedded source file compiled with options ("-DBN=256 -DSTAGES=4 ..."). */
typedef struct spk_build {
    const char *file;  /* "spmm_sm90_wgmma.cu", a static string */
    const char *entry; /* the __global__ function, extern "C" */
    char options[640];
    int shared_bytes; /* dynamic shared memory of a block */
} spk_build;

typedef struct spk_kernel_ops {
    /* Pure: can this candidate compute the problem on this device? Says why not (a static string). NULL: it takes every problem. */
    bool (*applicable)(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why);
    /* Predicted microseconds of one run: orders candidates, never decides alone. */
    double (*predict_us)(const spk_problem *problem, const spk_device *device, const spk_params *params);
    /* The device program of a candidate, where it is one that is compiled at run time; pure. NULL: it needs none. */
    void (*build)(const spk_problem *problem, const spk_device *device, const spk_params *params, spk_build *build);
    /* bind, unbind, update_values and run are called with the device current for the thread (kernel/row.c). */
    /* Makes state (partition, tables) from the pattern: O(nnzb). NULL: nothing to do. On failure state is released by itself. */
    spk_status (*bind)(spk_bound *bound);
    void (*unbind)(spk_bound *bound); /* NULL: nothing; must accept a NULL state */
    /* Takes (new) values with static_values: repacks them. NULL: the kernel has no use for it. */
    spk_status (*update_values)(spk_bound *bound, const void *values);
    /* Whether a run takes these pointers, where that is not so for all that are aligned to their elements. NULL: it takes all. A plan sends
     * others to a second candidate. */
    bool (*accepts)(const spk_bound *bound, const spk_args *args);
    /* Computes D. args are checked; workspace is there. No lock, no allocation of device memory. */
    spk_status (*run)(const spk_bound *bound, const spk_args *args, void *stream);
    /* run takes the whole batch. Else it takes one item, as do applicable, predict_us, build, bind and update_values: on the CPU the items
     * are run one by one or side by side, on a GPU the row is not applicable to a batch. */
    bool batched;
    /* It takes problems in groups (spk_problem.group_axis), all groups at once; batched is set, too. */
    bool grouped;
    /* bind and run read the indices in device memory only: the row takes patterns that have them nowhere else (spk_pattern.device_only). */
    bool device_indices;
    /* Of the sources that make the kernel (the build defines SPK_SOURCE_HASH for each kernel file). */
    const char *source_hash;
} spk_kernel_ops;

typedef struct spk_kernel {
    spk_operation operation;
    const char *name;
    spk_backend_id backend;
    spk_kind kind;
    unsigned isa;         /* needed bits */
    int priority;         /* breaks ties: larger first */
    bool fills_zeros;     /* multiplies zeros it filled in: wins only with assume_finite */
    const char *library;  /* vendor library it needs, or NULL */
    spk_row_types types;  /* of the factors that it multiplies */
    const char *tunables; /* "MR=4,6 PACK=0,1", "" if none */
    const spk_kernel_ops *ops;
} spk_kernel;

/* Declares `NAME_ops` of a row. The symbol behind it begins with spk_, as all of the library's do: a static library shows it to the
 * program. */
#define SPK_KERNEL_DECLARE(name) extern const spk_kernel_ops name##_ops __asm__("spk_" #name "_ops");

/* Declares what SPK_TUNED asks: a member for each tunable of a row, in the row's order. The backends' headers do so for their tables, where
 * TUNABLE and NO_TUNABLES stand for SPK_TUNABLE_MEMBER and nothing. */
#define SPK_TUNABLES_DECLARE(name, tunables) \
    struct spk_tunables_##name {             \
        tunables int end;                    \
    };
#define SPK_TUNABLE_MEMBER(name, ...) int name;

/* A tunable's value by its name in the row: SPK_TUNED(spmm_sm90_wgmma, params, BN). Does not compile where the row has none of this name.
 */
#define SPK_TUNED(row, params, name) SPK_TUNED_OF(row, params, name) /* row: a template has a macro for it */
#define SPK_TUNED_OF(row, params, name) ((params)->v[offsetof(struct spk_tunables_##row, name) / sizeof(int)])

/* A candidate about to be tried, for spk_backend.prepare: what came of compiling and proving it. */
typedef struct spk_prepared {
    const spk_kernel *kernel;
    spk_params params;
    spk_status status; /* not SPK_OK: it must not be tried in this process */
    char why[200];
    bool unanswered; /* its proof came to no end: nothing is known of it */
    bool elsewhere;  /* given: what was proved elsewhere (spk_backend.proved) will do, in this process */
} spk_prepared;

/* Tunables (kernel/params.c). Candidate number i in [0, spk_params_count) of a row; text as "MR=6 PACK=1"; back from text, in any order,
 * where a tunable that is not named has the first of its values. */
int spk_params_count(const spk_kernel *kernel);
void spk_params_get(const spk_kernel *kernel, int candidate, spk_params *params);
/* of a tunable's value in spk_params; -1: the row has none of this name */
int spk_params_index(const spk_kernel *kernel, const char *name);
void spk_params_text(const spk_kernel *kernel, const spk_params *params, char *buffer, size_t size);
spk_status spk_params_parse(const spk_kernel *kernel, const char *text, spk_params *params);
bool spk_params_names(const char *text, const char *name); /* whether the text has a value for the tunable */

/* A row's tunables, read once for who goes through its candidates: number i in [0, candidates). Of a tunable's values those beyond
 * SPK_MOST_VALUES are none, here and in spk_params_count. */
enum { SPK_MOST_VALUES = 24 };
typedef struct spk_tunables {
    int count, candidates;
    int counts[SPK_MAX_TUNABLES], values[SPK_MAX_TUNABLES][SPK_MOST_VALUES];
} spk_tunables;
void spk_tunables_read(const spk_kernel *kernel, spk_tunables *tunables);
spk_params spk_tunables_params(const spk_tunables *tunables, int candidate);

/* 16 hex digits over the kernel's source hash, its name and the parameters' text. */
void spk_candidate_hash(const spk_kernel *kernel, const spk_params *params, char out[17]);

/* Row limits (operation, backend, isa, library present) and then ops->applicable. Pure; the reason lives as long as the device. */
bool spk_candidate_applicable(const spk_kernel *kernel, const spk_params *params, const spk_problem *problem, const spk_device *device,
                              const char **why);

/* Whether it may win: fills_zeros needs assume_finite. Says why not. */
bool spk_candidate_eligible(const spk_kernel *kernel, const spk_problem *problem, const char **why);

/* Predicted microseconds of one run of the whole batch; 0: the row has no model. */
double spk_candidate_predict_us(const spk_kernel *kernel, const spk_params *params, const spk_problem *problem, const spk_device *device);

/* Runs what is bound, the whole batch. */
spk_status spk_bound_run(const spk_bound *bound, const spk_args *args, void *stream);

/* (New) values of a problem with static_values, for all runs to come. SPK_OK where the row has no use for them. */
spk_status spk_bound_update_values(spk_bound *bound, const void *values);

/* Binds (shares the pattern) and unbinds. unbind accepts a zeroed bound. */
spk_status spk_bind(const spk_kernel *kernel, const spk_params *params, const spk_problem *problem, spk_device *device, spk_bound *bound);
void spk_unbind(spk_bound *bound);

#endif
