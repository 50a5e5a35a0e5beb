/* Right and wrong calls of the public functions, drawn from the operations' tables: what is right must be computed as the oracle has it,
 * what is wrong refused with a reason, and no array read or written beyond its end. A case is a number of a series; it does the same again.
 */
#ifndef TESTS_HOSTILE_H
#define TESTS_HOSTILE_H

#include <stdbool.h>
#include <stdint.h>

#include <sparsek/sparsek.h>

enum { MOST_FIELDS = 96, MOST_OPERANDS = 32, MOST_SCALARS = 8, STRUCT_WORDS = 512 };

/* ------------------------------------------------------------------------------------------------ draw.c */

typedef struct draw {
    uint64_t state;
} draw;

draw draw_begin(uint64_t seed, int64_t number);
uint64_t draw_next(draw *d);
int64_t draw_below(draw *d, int64_t count);
bool draw_chance(draw *d, int percent);
int64_t draw_size(draw *d);  /* of a small problem; seldom 0 */
int64_t draw_wrong(draw *d); /* where arithmetic overflows, signs turn, types end */

/* ------------------------------------------------------------------------------------------------ tables.c */

/* An operation, as its tables have it. */
typedef struct operation {
    spk_operation_info info;
    spk_field_info fields[MOST_FIELDS];
    spk_operand_info operands[MOST_OPERANDS];
    spk_scalar_info scalars[MOST_SCALARS];
} operation;

/* A struct of the caller: of a problem, or of the arguments of a run. */
typedef union given {
    uint64_t words[STRUCT_WORDS];
    unsigned char bytes[8 * STRUCT_WORDS];
    struct {
        size_t struct_size;
        spk_operation operation;
    } head;
} given;

int operations_read(operation *list, int most); /* how many there are */
given given_problem(const operation *op);       /* with its size and its operation */
given given_args(const operation *op);
bool field_is_wide(const spk_field_info *field); /* an int64_t; else an int */
int64_t field_get(const spk_field_info *field, const given *problem);
void field_put(const spk_field_info *field, given *problem, int64_t value);
const spk_field_info *field_named(const operation *op, const char *name); /* NULL: it has none */

/* ------------------------------------------------------------------------------------------------ a case */

typedef struct trial {
    uint64_t seed;
    int64_t number;
    int failures;
    bool in_place; /* candidates take turns in its runs */
    draw d;
    bool wrong; /* something of the problem may be */
    int packed; /* the operand that spk_plan_update_values takes, as the problem's static_values says; -1: none */
    spk_context *context;
    const operation *op;
    given problem, args;
    spk_pattern *pattern;
    spk_problem_info info;
    spk_array_info arrays[MOST_OPERANDS];
    spk_plan *plan;
    size_t workspace_bytes; /* that the plan asked for when it was made: what is tried in place may want more later, and does without */
    void *memory[MOST_OPERANDS], *before[MOST_OPERANDS]; /* as large as needed, to the byte; before: what was in them */
    const char *only;                                    /* the plan's row, where one was asked for; NULL: any */
} trial;

/* What the cases came to. */
typedef struct tally {
    int64_t cases, refused, planned, too_large, compared, wrong_runs;
} tally;

void fail(trial *t, const char *format, ...) __attribute__((format(printf, 2, 3))); /* main.c: says how to replay it */
void check_refused(trial *t, const char *what);                                     /* the last error has a reason */

void trial_draw_problem(trial *t);                                                    /* problem.c */
spk_pattern *trial_draw_pattern(trial *t, int64_t rows, int64_t cols, int64_t lists); /* pattern.c; NULL: refused */

/* arrays.c */
void trial_look_at_arrays(trial *t, double *bytes);
int64_t array_bytes(const spk_array_info *array);
int64_t array_items(const trial *t, const spk_array_info *array);
int64_t array_place(const spk_array_info *array, int64_t item, int64_t head, int64_t row, int64_t col);
bool array_is_out(const trial *t, int operand);
void trial_make_arrays(trial *t);
void trial_poison_outputs(trial *t);
void trial_release_arrays(trial *t);

void trial_compare(trial *t, tally *sum);     /* compare.c: after a run */
void trial_give_values(trial *t, tally *sum); /* wrong.c: what the plan packs; before it a run must be refused */
void trial_run_wrongly(trial *t, tally *sum); /* wrong.c: runs that must be refused and write nothing */
void trial_run(trial *t, tally *sum);         /* trial.c: the whole case */

#endif
