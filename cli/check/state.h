/* What `check` has seen so far; kept in a file where the run shall be resumable. */
#ifndef SPARSEK_CLI_CHECK_STATE_H
#define SPARSEK_CLI_CHECK_STATE_H

#include <jansson.h>

#include "cli/io/resume.h"

enum { CHECK_MAX_ROWS = 256, CHECK_MAX_FAILURES = 20 };

typedef struct check_row {
    const char *name, *isa; /* static: of the kernel table */
    spk_kind kind;
    spk_operation operation;
    int64_t cases, not_applicable, failures;
    /* of the cases: inf and NaN in B where no result may see them; NaN beyond the edges; pointers of little alignment */
    int64_t hostile, overhang, shifted;
    double worst; /* error over tolerance */
    /* Candidates that did not run for want of address space, and why; of this run alone. */
    int64_t no_room;
    char why[320];
    char absent[160]; /* "": it may run here; else what it needs that is not here, after which nobody waits for it */
} check_row;

typedef struct check_state {
    uint64_t seed;
    int64_t next; /* the case to come */
    int64_t failures;
    json_t *failed; /* messages, at most CHECK_MAX_FAILURES */
    check_row rows[CHECK_MAX_ROWS];
    int row_count;
} check_state;

/* A fresh state over the rows of the kernel table that only/exclude and the operation (0: any) leave. */
void check_state_make(const cli *app, uint64_t seed, spk_operation wanted, check_state *s);

/* Finds the rows that no problem can suit here: the device does not offer their instruction sets, or their library was not found. */
void check_state_find_absent(spk_context *context, check_state *s);

/* The operations that rows are of: bit i: operation_at(i). */
unsigned check_state_operations(const check_state *s);
void check_state_release(check_state *s);

/* Whether the row ran on no case as it can run on none here. */
bool check_row_skipped(const check_row *row);

/* "results" rows, as in the summary. */
json_t *check_state_rows(const check_state *s);

/* Writes the state; reads it back over a fresh one, which a file that is not there leaves alone. Exit codes. */
int check_state_save(const cli *app, const resume *file, const check_state *s);
int check_state_load(const cli *app, resume *file, check_state *s);

#endif
