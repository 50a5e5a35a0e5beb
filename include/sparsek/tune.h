/* sparsek: tuning, plans and their runs, reports, the store.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SPARSEK_TUNE_H
#define SPARSEK_TUNE_H

#include "operations.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SPK_SIZED_spk_tune_options sizeof(spk_tune_options)
#define SPK_SIZED_spk_plan_info sizeof(spk_plan_info)
#define SPK_SIZED_spk_kernel_info sizeof(spk_kernel_info)
#define SPK_SIZED_spk_candidate_info sizeof(spk_candidate_info)
#define SPK_SIZED_spk_report_info sizeof(spk_report_info)
#define SPK_SIZED_spk_race_options sizeof(spk_race_options)
#define SPK_SIZED_spk_store_entry sizeof(spk_store_entry)

/* ------------------------------------------------------------------------------------------------ tuning options */

/* How much tuning measures. */
typedef enum spk_effort {
    SPK_TUNE_MEASURE = 0,   /* the promising candidates, under the budget */
    SPK_TUNE_ESTIMATE = 1,  /* measure nothing: the nearest known class, else the cost model */
    SPK_TUNE_EXHAUSTIVE = 2 /* every applicable candidate; the budget is ignored unless set */
} spk_effort;

/* When a class that the store does not know is tuned. Another number of tokens of a known layer runs on the nearest class's choice. */
typedef enum spk_tuning {
    /* The default: nobody waits. A plan begins with the estimate; its next runs, up to 100, are made by a few candidates in turn, until the
     * fastest is known and stored, as provisional. The last bits of results may differ meanwhile. On the CPU each candidate's first result
     * is compared with the oracle, and computed again by another where it is wrong: runs with D = C try nobody new. On a GPU candidates are
     * compiled, proved and compared by another thread first. One plan tries a class, others follow; a child of fork() tries nothing on its
     * parent's plans. With fresh, static_values, deferred indices or SPK_TUNE_EXHAUSTIVE it is SPK_TUNING_NOW */
    SPK_TUNING_IN_PLACE = 0,
    SPK_TUNING_NOW = 1,       /* the call tunes it, and waits. spk_tune does so whatever this says */
    SPK_TUNING_NOW_EACH = 2,  /* likewise, and each number of tokens by itself: for warming up */
    SPK_TUNING_NEVER = 3,     /* the nearest class or the estimate decides. Nothing is measured */
    SPK_TUNING_AHEAD = 4,     /* what was tuned ahead decides, the nearest class of a known layer too; else SPK_ERR_UNKNOWN_CLASS */
    SPK_TUNING_AHEAD_EACH = 5 /* likewise, the class itself alone */
} spk_tuning;

/* Whether operands are in the caches when a candidate is timed. */
typedef enum spk_cache_mode { SPK_COLD = 0, SPK_WARM = 1 } spk_cache_mode;

/* How a candidate is chosen: by measuring or by estimate, for how long, among which kernels. */
typedef struct spk_tune_options {
    size_t struct_size;
    spk_effort effort;
    spk_tuning tuning;
    spk_cache_mode cache; /* cold: operands rotate through more memory than the last cache; warm: the same operands again */
    double budget_s;      /* 0: the default (2 s on the CPU, 5 s on a GPU; none for exhaustive); limit 86400. Compiling does not count */
    /* largest norm-wise relative error of a candidate's first output, and in proportion of its others; 0: from the dtype and K */
    double tolerance;
    int fresh;           /* tune again though the class is known */
    int reserved;        /* 0 */
    const char *only;    /* comma-separated kernel names, NULL: all */
    const char *exclude; /* comma-separated kernel names */
    /* a pinned candidate, as spk_plan_choice prints it: bound without measuring, and on a GPU without a proof where none can be had. A
     * parameter that is left out has its first value, but SERIAL the one that fits: 1, the calling thread alone, where that is expected to
     * be faster or the threads would not have a processor each at this moment. spk_plan_choice tells what was taken. */
    const char *choice;
    uint64_t seed; /* of the random operands; 0: from the clock */
    /* NULL, or a flag that cancels this call alone: once it is not zero, the call's tuning ends with SPK_ERR_INTERRUPTED, as after
     * spk_context_interrupt. A signal handler may set it, or another thread by __atomic_store_n; it must stay set until the call returns.
     * A choice from the store, an estimate, and the runs of a plan do not look at it */
    const volatile int *cancel;
} spk_tune_options;

/* ------------------------------------------------------------------------------------------------ plan */

/* A problem bound to the candidate that runs it. */
typedef struct spk_plan spk_plan;

/* A problem is the struct of its operation (spk_spmm, spk_sddmm, spk_gemm), which begins with its size and its operation; so are the
 * arguments of a run. The calls that take them as const void * are for every operation; spk_plan_create_spmm and its like, at the end of
 * this header, are the same with the struct's type. pattern is what the operation's struct says of it; NULL where it has none.
 *
 * Binds a problem to a candidate: from the store where its class is known, else as options->effort and ->tuning say.
 * options may be NULL. The plan keeps the pattern alive.
 * On a GPU only candidates are bound whose program is proved: it has run in a helper process (sparsek-prover), or there is none and
 * committed runs on such a GPU proved it. What is not is proved first, which takes seconds, once a machine. Where that cannot be, the next
 * best that is proved is taken; SPK_ERR_NO_CANDIDATE where there is none, and for a pinned choice that did harm in the helper process. A
 * pinned choice that cannot be proved is bound all the same: spk_plan_info.why is "pinned, not proved" then, and the log has a line. */
SPK_API spk_status spk_plan_create(spk_context *context, spk_pattern *pattern, const void *problem, const spk_tune_options *options,
                                   spk_plan **plan);
SPK_API void spk_plan_destroy(spk_plan **plan);

/* Runs a plan. stream is NULL on the CPU, which refuses another; on a GPU a CUstream of the device's primary context (NULL: the legacy
 * default stream), and the call returns when the work is on it. With a workspace of its own, and when no candidates are tried in place any
 * more: no lock, no allocation, no access to the store. A stream may be captured into a graph meanwhile: the graph keeps the pointers and
 * the workspace, so that the plan must outlive it; without a workspace in args, let the stream run the plan once before capture, and the
 * graph not run beside other runs of the plan on another stream. A plan that needs no measuring may be made during the capture, too: what
 * that does on the device is no part of the graph. */
SPK_API spk_status spk_plan_run(const spk_plan *plan, const void *args, void *stream);

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
     * "estimated: cost model", "pinned", "pinned, not proved"; with "; tried in place" until "measured in place" */
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
 * operand is an output, by its index (spk_operation_get_operand), or SPK_FIRST_OUTPUT. Computes rows[0..row_count) of it (all where rows is
 * NULL) into out, row-major [row_count, columns]. Rows and columns are those of spk_problem_get_array; of a batch, row r of item i is
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
SPK_API spk_status spk_kernel_get_info(int index, spk_kernel_info *info);

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
    /* the shortest run of the last phase, by which the choice goes where other programs used the processors; 0: none was timed, or the
     * evidence is the store's, which does not keep it */
    double least_us;
    double prepare_us; /* one-off work of a plan */
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
    /* a few candidates were tried in place, by the runs of the program (SPK_TUNING_IN_PLACE). A tuning measures more of them anew */
    SPK_PROVISIONAL_IN_PLACE = 4
} spk_provisional;

/* What a report says as a whole. */
typedef struct spk_report_info {
    size_t struct_size;
    int candidate_count;
    int chosen;     /* index, or -1 */
    int from_store; /* 1: the stored evidence, nothing was measured */
    int foreign;    /* 1: the evidence is another class's; its times are not this problem's, and give no rates of it */
    /* of this evidence. In the store nothing provisional replaces what is finished, with options->fresh neither */
    spk_provisional provisional;
    int reserved;
    double tuning_s;       /* spent (then, when from the store) */
    int64_t measured_at;   /* seconds since 1970-01-01 UTC; 0: never */
    const char *class_key; /* the class of problems this evidence is for */
    const char *summary;   /* one paragraph: why the chosen one won */
    /* what decides where nothing was measured of the class: "nearest class, of n=64", "from the bundle, of NVIDIA H200", "from the cost
     * model, ...", "tried in place: 12 runs in turn so far"; NULL: its own evidence */
    const char *origin;
} spk_report_info;

/* The report as a whole, and one of its candidates, index in [0, spk_report_info.candidate_count). Strings live as long as the report. */
SPK_API spk_status spk_report_get_info(const spk_report *report, spk_report_info *info);
SPK_API spk_status spk_report_get_candidate(const spk_report *report, int index, spk_candidate_info *info);
SPK_API void spk_report_destroy(spk_report **report);

/* What a plan would find in the table, nothing run: every candidate of every row, applicable or not, with the model's time. */
SPK_API spk_status spk_list_candidates(spk_context *context, spk_pattern *pattern, const void *problem, const spk_tune_options *options,
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
SPK_API spk_status spk_race_kernels(spk_context *context, spk_pattern *pattern, const void *problem, const spk_tune_options *options,
                                    const spk_race_options *race, spk_report **report);

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
static inline spk_status spk_plan_create_spmm(spk_context *context, spk_pattern *pattern, const spk_spmm *problem,
                                              const spk_tune_options *options, spk_plan **plan)
{
    return spk_plan_create(context, pattern, problem, options, plan);
}

/* spk_plan_run of SpMM. */
static inline spk_status spk_plan_run_spmm(const spk_plan *plan, const spk_spmm_args *args, void *stream)
{
    return spk_plan_run(plan, args, stream);
}

/* spk_compute of SpMM. */
static inline spk_status spk_compute_spmm(spk_context *context, spk_pattern *pattern, const spk_spmm *problem, const spk_spmm_args *args,
                                          const spk_tune_options *options)
{
    return spk_compute(context, pattern, problem, args, options);
}

/* spk_plan_create of SDDMM. */
static inline spk_status spk_plan_create_sddmm(spk_context *context, spk_pattern *pattern, const spk_sddmm *problem,
                                               const spk_tune_options *options, spk_plan **plan)
{
    return spk_plan_create(context, pattern, problem, options, plan);
}

/* spk_plan_run of SDDMM. */
static inline spk_status spk_plan_run_sddmm(const spk_plan *plan, const spk_sddmm_args *args, void *stream)
{
    return spk_plan_run(plan, args, stream);
}

/* spk_compute of SDDMM. */
static inline spk_status spk_compute_sddmm(spk_context *context, spk_pattern *pattern, const spk_sddmm *problem, const spk_sddmm_args *args,
                                           const spk_tune_options *options)
{
    return spk_compute(context, pattern, problem, args, options);
}

/* spk_plan_create of a dense product. */
static inline spk_status spk_plan_create_gemm(spk_context *context, const spk_gemm *problem, const spk_tune_options *options,
                                              spk_plan **plan)
{
    return spk_plan_create(context, NULL, problem, options, plan);
}

/* spk_plan_run of a dense product. */
static inline spk_status spk_plan_run_gemm(const spk_plan *plan, const spk_gemm_args *args, void *stream)
{
    return spk_plan_run(plan, args, stream);
}

/* spk_compute of a dense product. */
static inline spk_status spk_compute_gemm(spk_context *context, const spk_gemm *problem, const spk_gemm_args *args,
                                          const spk_tune_options *options)
{
    return spk_compute(context, NULL, problem, args, options);
}

/* spk_plan_create of attention; pattern: a mask, or NULL. */
static inline spk_status spk_plan_create_attention(spk_context *context, spk_pattern *pattern, const spk_attention *problem,
                                                   const spk_tune_options *options, spk_plan **plan)
{
    return spk_plan_create(context, pattern, problem, options, plan);
}

/* spk_plan_run of attention. */
static inline spk_status spk_plan_run_attention(const spk_plan *plan, const spk_attention_args *args, void *stream)
{
    return spk_plan_run(plan, args, stream);
}

/* spk_compute of attention. */
static inline spk_status spk_compute_attention(spk_context *context, spk_pattern *pattern, const spk_attention *problem,
                                               const spk_attention_args *args, const spk_tune_options *options)
{
    return spk_compute(context, pattern, problem, args, options);
}

/* spk_plan_create of the gradients of attention; pattern: a mask, or NULL. */
static inline spk_status spk_plan_create_attention_backward(spk_context *context, spk_pattern *pattern,
                                                            const spk_attention_backward *problem, const spk_tune_options *options,
                                                            spk_plan **plan)
{
    return spk_plan_create(context, pattern, problem, options, plan);
}

/* spk_plan_run of the gradients of attention. */
static inline spk_status spk_plan_run_attention_backward(const spk_plan *plan, const spk_attention_backward_args *args, void *stream)
{
    return spk_plan_run(plan, args, stream);
}

/* spk_compute of the gradients of attention. */
static inline spk_status spk_compute_attention_backward(spk_context *context, spk_pattern *pattern, const spk_attention_backward *problem,
                                                        const spk_attention_backward_args *args, const spk_tune_options *options)
{
    return spk_compute(context, pattern, problem, args, options);
}

#ifdef __cplusplus
}
#endif
#endif /* SPARSEK_TUNE_H */
