/* One run of an operation on files: its inputs, its plan, its result. */
#ifndef SPARSEK_CLI_COMMANDS_COMPUTE_H
#define SPARSEK_CLI_COMMANDS_COMPUTE_H

#include "cli/base/cli.h"
#include "cli/problem/settings.h"

enum { RUN_MOST_SLOTS = 8, RUN_MOST_SCALARS = 8, RUN_MOST_OUTPUTS = 8, RUN_MOST_INPUTS = ARGS_MAX_OPERANDS };

/* An input that may be given: it takes part in one of the ways of its field. */
typedef struct run_slot {
    int setting, value; /* index of settings_at, and the field's value */
    char *option, *help;
    const char *path; /* NULL: not given */
} run_slot;

/* A scalar, of whichever operations have one of this name. */
typedef struct run_scalar {
    const char *name;
    char *help;
    double value; /* NaN: not given */
} run_scalar;

/* An output beside an operation's first, which a file is written of where one is given. */
typedef struct run_output {
    const char *name;    /* "grad_k" */
    char *option, *help; /* "grad-k" */
    const char *path;    /* NULL: not given */
} run_output;

typedef struct run_flags {
    int op;
    const char *inputs[RUN_MOST_INPUTS], *at; /* at: the file whose blocks are the pattern, where no input is */
    const char *out, *tensor[2], *tensor_out, *choice;
    int tuning; /* of "now|never|ahead|ahead_each" */
    args_block block;
    int64_t cols; /* of the matrix with blocks; 0: as its file says */
    spk_dtype dtype;
    setting_value set[SETTINGS_MOST];
    run_slot slots[RUN_MOST_SLOTS];
    run_scalar scalars[RUN_MOST_SCALARS];
    run_output others[RUN_MOST_OUTPUTS];
    int slot_count, scalar_count, other_count;
} run_flags;

typedef struct run_data {
    const operation *op;
    spk_matrix *inputs[OPERATION_MOST_ARRAYS]; /* by operand */
    spk_matrix *blocks;                        /* whose pattern it is, borrowed from `inputs` where one of them has it; NULL: no pattern */
    bool owns_blocks;
    spk_pattern *pattern;
    int64_t sizes[SPK_MOST_SIZES]; /* -1: not known */
    char *known[SPK_MOST_SIZES];   /* from where: "op(A) has 8 columns" */
    spk_dtype dtype;
    operation_struct given;
    spk_array_info arrays[OPERATION_MOST_ARRAYS];
    spk_plan *plan;
    void *whole[OPERATION_MOST_ARRAYS]; /* memory of an output between guards; NULL: it takes no part */
    bool finite;
    double run_us;
} run_data;

/* The field's slots, of all operations. */
int run_list_slots(run_slot *slots);

/* The operand of an operation that a slot is; -1: it has none. */
int run_slot_operand(const run_slot *slot, const operation *op);

/* The scalars of all operations, and the outputs: each name once. */
void run_list_scalars(run_flags *f);
void run_list_outputs(run_flags *f);

/* The scalar, or the output, of this name; -1: the operation has none. */
int run_scalar_named(const operation *op, const char *name);
int run_output_named(const operation *op, const char *name);

/* The flag of a problem that has this scalar, by their names (use_softcap: softcap), as an index of settings_at; -1: none. */
int run_scalar_flag(const char *name);

/* Not a matrix but a line beside them: a bias, offsets of groups, ends of sequences. */
bool run_is_line(const spk_operand_info *operand);

/* The inputs of an operation that are always there, in order: how many. */
int run_required(const operation *op, int operands[OPERATION_MOST_ARRAYS]);

/* Each returns an exit code, after a message. */
int run_read(cli *app, const run_flags *f, run_data *r);
int run_now(cli *app, const run_flags *f, run_data *r);
int run_write(cli *app, const run_flags *f, run_data *r);
void run_release(run_data *r);

#endif
