/* What the library hands to the prover (prover/main.c) on its standard input: this head, then `count` choices, then the pattern's row
 * offsets and block columns as 64-bit integers, if it has one. The prover answers on its standard output, one line each: "ready" when the
 * device and the operands are there; "run I" before candidate I is tried, "made I" when its plan is made and it runs next, then "ok I" or
 * "failed I STATUS: MESSAGE"; "lost MESSAGE" when it cannot go on at all,
 * "refused MESSAGE" when the problem itself is not one. Other lines are passed over. Plain data of one machine: no byte
 * order, no versions beyond the magic. */
#ifndef SPK_BACKEND_CUDA_PROOF_JOB_H
#define SPK_BACKEND_CUDA_PROOF_JOB_H

#include <sparsek/sparsek.h>

#define SPK_PROOF_MAGIC "SPKPROV9"
enum {
    SPK_PROOF_OPERANDS = 14,
    SPK_PROOF_SCALARS = 2,
    SPK_PROOF_STRUCT_BYTES = 512,
    SPK_PROOF_CHOICE_BYTES = 192,
    SPK_PROOF_DEVICE_BYTES = 32
};

typedef struct spk_proof_operand {
    int64_t elements;
    int32_t dtype; /* SPK_DTYPE_DEFAULT: the problem has no such operand */
    int32_t place; /* of the pointer in the arguments of a run */
} spk_proof_operand;

typedef struct spk_proof_scalar {
    double value;
    int64_t place;
} spk_proof_scalar;

typedef struct spk_proof_job {
    char magic[8];
    char device[SPK_PROOF_DEVICE_BYTES];                         /* "cuda:0" */
    int64_t rows, cols, block_rows, block_cols, nnzb, grid_rows; /* of the pattern; block_rows 0: there is none, nor indices */
    int32_t operation;                                           /* spk_operation */
    int32_t args_bytes;                                          /* of the struct of a run's arguments */
    int32_t static_operand;                                      /* the one that spk_plan_update_values takes; -1: none */
    int32_t operand_count, scalar_count, padding;
    union {
        char bytes[SPK_PROOF_STRUCT_BYTES];
        double aligned;
    } problem; /* the operation's own struct */
    spk_proof_operand operands[SPK_PROOF_OPERANDS];
    spk_proof_scalar scalars[SPK_PROOF_SCALARS];
    int32_t finite_place; /* of assume_finite in the problem; -1: it has none */
    int32_t count;
} spk_proof_job;

typedef struct spk_proof_choice {
    char text[SPK_PROOF_CHOICE_BYTES]; /* as spk_plan_choice prints it */
} spk_proof_choice;

#endif
