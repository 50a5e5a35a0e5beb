/* What was measured of one problem, ready to be shown: from a report, with later timings laid over it. */
#ifndef SPARSEK_CLI_RESULT_RESULT_H
#define SPARSEK_CLI_RESULT_RESULT_H

#include "cli/problem/problem.h"

typedef struct result_ratio {
    char *name;
    double median; /* other / chosen over the paired samples: above 1 the chosen one is faster */
    int64_t pairs;
} result_ratio;

typedef struct result_row {
    char *name, *params, *hash, *why; /* why: NULL for none */
    spk_kind kind;
    spk_candidate_status status;
    double median_us, spread_us, prepare_us, error, tolerance; /* median 0: not measured; error negative: not checked */
    double least_us;                                           /* 0: not told */
    int64_t sample_count;
    double *samples_us;
    bool renewed; /* timed again now; the others' times are the store's */
} result_row;

typedef struct result {
    int count, chosen; /* chosen: -1 for none */
    result_row *rows;
    int ratio_count, ratio_room;
    result_ratio *ratios; /* of the chosen one against every other kernel */
    spk_provisional provisional;
    bool from_store, renewed;         /* renewed: some rows were timed again now */
    bool disturbed;                   /* other programs used the processors when they were */
    double tuning_s, stored_dense_us; /* stored_dense_us: of the fastest dense row before it was timed again */
    int64_t measured_at;
    char *summary, *class_key;
    char *origin; /* whose evidence it is, where not the class's own; NULL */
    bool foreign; /* another class's: its times are not this problem's */
} result;

/* Whether the time is of a few runs, maybe of a part of the work, before the interleaved rounds: it does not compare with times of those.
 */
bool result_is_first_look(const result_row *row);

/* Copies a report. Rows measured in interleaved rounds come first, the fastest ahead, then those with a first look only, then the others.
 * best_only: one row a kernel, the first (the chosen one, for its kernel). */
spk_status result_from_report(const spk_report *report, bool best_only, result *out);

/* Lays the timings of a later report over the rows of the same candidates, and renews the ratios that it knows. */
spk_status result_renew(result *r, const spk_report *later);
void result_release(result *r);

/* The fastest dense row of the interleaved rounds, else of those with a first look; -1: none was measured. */
int result_best_dense(const result *r);

/* One element of "results". */
json_t *result_json(const problem *p, const result *r);

/* Header line, table, summary. */
void result_print(cli *app, const problem *p, const result *r);

const char *result_status_name(spk_candidate_status status);
const char *result_kind_name(spk_kind kind);

/* "interrupted", "budget", "load", "in_place"; "" for what is finished. */
const char *result_provisional(spk_provisional provisional);

/* "3 minutes ago". */
void result_age(int64_t measured_at, char *out, size_t size);

#endif
