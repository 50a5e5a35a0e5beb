/* The problem: what to compute, normalised, and what a run works on. One struct for every operation, so that the table, the tuner and the
 * plan cache have one shape. */
#ifndef SPK_OP_PROBLEM_H
#define SPK_OP_PROBLEM_H

#include <stdbool.h>

#include "type/type.h"
#include "matrix/pattern.h"
#include "op/operand.h"

typedef struct spk_epilogue {
    bool use_c, keep_preact;
    bool unused[2];
    spk_residual residual;
    spk_bias bias;
    spk_activation activation;
} spk_epilogue;

/* Which keys a query of attention sees; 0: no limit (spk_attention). */
typedef struct spk_band {
    int64_t left, right, sinks;
    spk_diagonal diagonal;
    int use_softcap;
} spk_band;

/* Lists of blocks in a pattern that is a mask of attention (spk_attention.mask_heads): in an item, and from one item to the next; 0: there
 * is no pattern; the items share them. tiles: of bits, for some of the blocks. */
typedef struct spk_lists {
    int64_t heads, item_step, tiles;
} spk_lists;

/* Which rows of Q, K and V belong together, where the arguments of a run say so (spk_attention.sequences); 0: they do not. */
typedef struct spk_packing {
    int64_t sequences, key_lengths, page_keys, pages;
} spk_packing;

/* Places of operands: of the matrix products D = act(alpha A B + beta C + bias) + residual. SpMM: A is the values of the pattern. SDDMM: A
 * is X, B is Y; C and D are values of the pattern. GEMM: A is M x K, B is K x N. */
enum { SPK_A, SPK_B, SPK_C, SPK_D, SPK_BIAS, SPK_RESIDUAL, SPK_PREACT, SPK_OFFSETS };
/* No operands, of the products: the tiles that scale factors cover (op/scale.h). */
enum { SPK_SCALED_A = SPK_MAX_OPERANDS - 2, SPK_SCALED_B };

/* Problems are compared and hashed byte by byte: there is no padding, and what an operation does not use is zero. */
#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wpadded"
typedef struct spk_problem {
    const struct spk_op *op;
    spk_pattern *pattern; /* borrowed here, a plan shares it; NULL where the operation has none */
    union {
        spk_operand operand[SPK_MAX_OPERANDS];
        struct {
            spk_operand a, b, c, d, bias, residual, preact, offsets;
        };
        struct {
            spk_operand of_operations[SPK_SCALED_A];
            spk_operand scaled_a, scaled_b; /* rows and cols alone; 0: no factors. Of what else uses these places, zero in products */
        };
    };
    int64_t batch;     /* items, >= 1: of a batch, or groups, of which only some operands have one each (a stride other than 0) */
    spk_dtype compute; /* never SPK_DTYPE_DEFAULT */
    /* how operands lie when a candidate is timed (spk_tune_options), and promises of the caller */
    spk_cache_mode cache;
    bool assume_finite, static_values;
    bool padding[6];
    /* of products */
    spk_trans trans_a;       /* SpMM. A transposed matrix of GEMM is one of the other layout */
    spk_layout block_layout; /* of an array of values */
    spk_epilogue epilogue;
    spk_group_axis group_axis; /* GEMM: the items are groups */
    int more_padding;
    /* of attention */
    int64_t depth_v;
    spk_band band;
    spk_lists lists;
    spk_packing packing;
    double pairs;    /* of a query and a key that it sees, of all heads of an item, on average: follows from the rest */
    int64_t m, n, k; /* M and K of SpMM: the pattern's rows and columns after op. M and N of SDDMM: the pattern's rows and columns */
} spk_problem;
#pragma GCC diagnostic pop

/* What a run works on, for every operation. */
typedef struct spk_args {
    union {
        void *at[SPK_MAX_OPERANDS]; /* those of inputs are not written through */
        struct {
            const void *a, *b, *c;
            void *d;
            const void *bias, *residual;
            void *preact;
            const void *offsets;
        };
    };
    union {
        double scalar[SPK_MAX_SCALARS];
        struct {
            double alpha, beta;
        };
    };
    void *workspace;
    size_t workspace_bytes;
    int64_t item; /* of the batch, which the pointers are of */
} spk_args;

/* Checks a caller's description (the operation's own struct) and makes it a problem; on failure *problem is none. options may be NULL. */
spk_status spk_problem_read(const struct spk_op *op, spk_pattern *pattern, const void *theirs, const spk_tune_options *options,
                            spk_problem *problem);

/* Whether the description that spk_op.write makes of the problem is read as that problem; else the message says what stands against it. */
spk_status spk_problem_reread(const spk_problem *problem);

/* A batch that is one larger product: becomes that, which every kernel can compute. */
void spk_problem_fold(spk_problem *problem);

/* Whether they are the same, by all their bytes; of patterns, whether they are the same object. */
bool spk_problem_equal(const spk_problem *a, const spk_problem *b);

/* The caller's arguments of a run (the operation's own struct). stream may be NULL. */
spk_status spk_args_read(const struct spk_op *op, const void *theirs, spk_args *args, void **stream);

/* Checks the arguments of a run against the problem: NULL, alignment to the element, outputs that overlap other operands. */
spk_status spk_problem_check_args(const spk_problem *problem, const spk_args *args);

/* The workspace that a caller gave, of which a run uses so many bytes: it shares none with an operand. */
spk_status spk_problem_check_workspace(const spk_problem *problem, const spk_args *args, size_t bytes);

/* The inputs alone: for who writes elsewhere. */
spk_status spk_problem_check_inputs(const spk_problem *problem, const spk_args *args);

bool spk_problem_is_empty(const spk_problem *problem); /* no output has an element */

/* Whether a run reads operand i: not where the problem has none, nor where the scalar that multiplies it is 0. */
bool spk_problem_reads(const spk_problem *problem, const spk_args *args, int i);

/* Whether a run writes operand i. */
bool spk_problem_writes(const spk_problem *problem, int i);

/* The operand that stays as it is from run to run, by the caller's promise; -1: none. */
int spk_problem_static_operand(const spk_problem *problem);

/* Stored-block FLOPs, and those of the product without zeros left out. Each for the whole batch. */
double spk_problem_flops(const spk_problem *problem);
double spk_problem_dense_flops(const spk_problem *problem);

/* Elements of operand i, from the first to the last that it occupies, with all items. */
int64_t spk_problem_operand_elements(const spk_problem *problem, int i);

/* Bytes of an operand that a run must read or write once: of a dense input no more than the stored blocks ask for. And of all operands. */
double spk_problem_touched_bytes(const spk_problem *problem, int i);
double spk_problem_bytes(const spk_problem *problem);

/* One item of a batch: the problem with batch = 1, and its arguments. */
spk_problem spk_problem_item(const spk_problem *problem);
spk_args spk_args_item(const spk_problem *problem, const spk_args *args, int64_t item);

/* The size that no pattern fixes, which a sample of the problem may cut: columns of B, or the depth of SDDMM's sums. */
int64_t spk_problem_free_size(const spk_problem *problem);

/* A second one, of a problem without a pattern; 0: there is none. */
int64_t spk_problem_other_size(const spk_problem *problem);

/* Part of the problem: of another pattern (NULL: the same) and other free sizes (0: the same), with the strides as they are. */
void spk_problem_cut(spk_problem *problem, spk_pattern *pattern, int64_t free_size, int64_t other_size);

/* What a device program for the problem is compiled with: "-DNAME=VALUE ...". As snprintf. */
int spk_problem_device_defines(const spk_problem *problem, char *text, size_t size);

/* The first output that the problem has, whether it has elements or not. And the rows of an output, by which the oracle is asked: those of
 * all items. */
int spk_problem_first_output(const spk_problem *problem);
int64_t spk_problem_output_rows(const spk_problem *problem, int output);

/* The largest |output - oracle| / magnitude that rounding explains. */
double spk_problem_tolerance(const spk_problem *problem, int output);

/* Whether the pattern is one that might be left out: a mask, without values. */
bool spk_problem_is_masked(const spk_problem *problem);

/* Numbers that operand i may hold, where not any will do: offsets. false: any will. */
bool spk_problem_is_index(const spk_problem *problem, int i);
void spk_problem_draw_index(const spk_problem *problem, int i, uint64_t seed, int32_t *out);

/* Whether the indices among the inputs are right, where the host can read them. */
spk_status spk_problem_check_indices(const spk_problem *problem, const spk_args *args);

#endif
