/* What choosing, listing and racing share: the names of a class, reports for which nothing was measured now, proofs, and what stored
 * evidence is worth. */
#ifndef SPK_TUNE_CHOOSE_CHOOSE_H
#define SPK_TUNE_CHOOSE_CHOOSE_H

#include "tune/choose/tune.h"
#include "tune/search/search.h"

typedef struct spk_class {
    bool restricted;                 /* only or exclude leave some kernels out, or the tolerance is the caller's */
    char plain[SPK_MAX_KEY_TEXT];    /* the class of the problem */
    char key[SPK_MAX_KEY_TEXT + 32]; /* the class that decisions belong to: plain, unless restricted */
} spk_class;

spk_status spk_class_keys(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, spk_class *class);

/* Every candidate with the model's time, nothing run; choice (may be NULL) is marked as chosen. */
spk_status spk_report_unmeasured(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options,
                                 const spk_choice *choice, spk_report **report);

/* Makes a loaded report today's answer: from_store, the given choice or (NULL) the one these options allow, a fresh summary. */
spk_status spk_report_from_store(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options,
                                 const spk_choice *choice, spk_report *report);

/* estimate.c: choices for which nothing is measured. class NULL: the store is not asked. */
spk_status spk_choose_pinned(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, spk_choice *choice);
spk_status spk_choose_estimated(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, const spk_class *class,
                                spk_choice *choice);

/* near.c: what the bundle knows of a class, or the nearest that calls of the same layer may be in. Nothing is measured; what nobody knows
 * of is proved. report (may be NULL): the evidence, which says whose it is. sizes: also the nearest; else the bundle alone. */
spk_status spk_choose_elsewhere(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, const spk_class *class,
                                bool sizes, spk_choice *choice, spk_report **report, bool *found);

/* choose.c: the best entry of evidence that may run here: those before it that may not are no longer ok in this copy of the report. *best
 * is -1 where there is none. */
spk_status spk_choose_best_proved(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, spk_report *report,
                                  spk_choice *choice, int *best);

/* estimate.c: one thread or all, as it fits this problem; but what was found wrong is not taken for that. */
void spk_choose_threads(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, const spk_class *class,
                        spk_choice *choice);

/* last_resort.c: warns, once a class, where the choice is a reference as nothing else runs, and far slower than a tuned kernel would be. */
void spk_tell_last_resort(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, const spk_choice *choice);

/* Whether a stored decision still names a candidate of the table that may win here; choice gets it. */
bool spk_decision_usable(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, const spk_decision *decision,
                         spk_choice *choice);

/* Of a class in a store among the rows of a table: what is remembered of it in this process goes by this. */
uint64_t spk_class_hash(const spk_tuner *tuner, const char *key);

/* ---- proof.c: what may run in this process. On a device without proofs everything may */

enum { SPK_MOST_PROVED = 3 }; /* candidates that are proved for one plan, each as the one before it was not good */

/* What is known of a candidate; runs nothing. why: as spk_backend.proof gives it. */
spk_proof spk_proof_known(const spk_tuner *tuner, const spk_problem *problem, const spk_kernel *kernel, const spk_params *params, char *why,
                          size_t size);

/* Whether a choice is proved, by the name of its proof: false where it has none. */
bool spk_proof_stands(const spk_tuner *tuner, const spk_choice *choice);

/* What is known of a candidate; what is not is proved now, unless that failed within the last minute (proof.c). An error is an
 * interruption. elsewhere: what was proved elsewhere will do (spk_proves_soon). */
spk_status spk_prove(const spk_tuner *tuner, const spk_problem *problem, const spk_kernel *kernel, const spk_params *params, bool elsewhere,
                     spk_proof *proof, char *why, size_t size);

/* Whether these options want a first choice without a wait: what was proved elsewhere runs at once, and is proved here meanwhile. */
bool spk_proves_soon(const spk_tune_options *options);

/* For tests: forgets what could not be proved. */
void spk_prove_again(void);

/* The contender with the best prediction among those that may run: of SPK_MOST_PROVED rows the best candidate, proved now, else the best
 * that is proved. -1: none, and those that were looked at say why not and are no longer eligible. soon: before them the best of those that
 * may run without a wait, and what was proved elsewhere will do. */
spk_status spk_proved_best(const spk_tuner *tuner, const spk_problem *problem, spk_contender *contenders, int count, bool soon, int *best);

/* Of what a candidate's program is compiled with; 0: it has none. */
uint64_t spk_program_hash(const spk_tuner *tuner, const spk_problem *problem, const spk_kernel *kernel, const spk_params *params);

/* ---- evidence.c: what a stored report is worth today */

/* The kernel and parameters of an entry where they are still what was measured (same hash). */
bool spk_evidence_current(const spk_tuner *tuner, const char *name, const char *params_text, const char *hash, const spk_kernel **kernel,
                          spk_params *params);

/* The entry that may be used for this problem: the stored choice, else the fastest measured; a reference only where the evidence has all
 * others that may run as wrong or failed; -1 for none. */
int spk_evidence_best(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, const spk_report *report);

/* Marks contenders that the evidence does not know (new, changed, cut short) as wanted and the others as not; returns how many. */
int spk_evidence_lacks(const spk_report *report, spk_contender *contenders, int count);

/* What the evidence of a class has as wrong, the class's own or that of the unrestricted one, may not be chosen: such contenders are no
 * longer eligible, and say why. A tolerance of the caller's that is above the error that was measured lets them in again. */
spk_status spk_evidence_rule_out(const spk_tuner *tuner, const spk_tune_options *options, const spk_class *class, spk_contender *contenders,
                                 int count);

/* The same for one candidate. */
spk_status spk_evidence_is_wrong(const spk_tuner *tuner, const spk_tune_options *options, const spk_class *class, const spk_kernel *kernel,
                                 const spk_params *params, bool *wrong);

/* Writes contenders into a report (adds missing entries); those that took no part keep what `stored` (may be NULL) says of the same
 * hash. */
spk_status spk_evidence_write(spk_report *report, spk_contender *contenders, int count, double tolerance, const spk_report *stored);

/* Whether evidence measured now takes the place of what is stored (NULL: nothing): not where it is worth less, nor where a smaller budget
 * measured fewer candidates. usable: of the stored, something can be chosen still. */
bool spk_evidence_replaces(const spk_report *made, const spk_report *stored, bool usable);

/* The report of a search (evidence.c): `chosen` among these contenders, -1 for none; stored as in spk_evidence_write. */
spk_status spk_evidence_report(const spk_search *search, spk_contender *contenders, int count, int chosen, const char *key,
                               const spk_report *stored, spk_report **report);

/* choose.c: whether these options ask for a trial in place of a class that nobody knows (tune/trial), and the problem and the device allow
 * it: runs are over when they return, or can be timed on their stream; and neither static values, which each contender would pack, nor
 * indices that only the device has, for which candidates cannot be compared before they come to the host. */
bool spk_tries_in_place(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options);

/* How far the trial of a class is. */
typedef struct spk_trying {
    int runs;                 /* in turn so far */
    double at_us;             /* when that was, on the clock of spk_now_us */
    const spk_kernel *kernel; /* of the fastest so far; NULL: none */
    spk_params params;
    double us; /* its least run */
} spk_trying;

/* ---- due.c */

/* Whether what was measured on a busy machine is so recent that it is not measured anew, busy as it may be now. */
bool spk_load_is_recent(int64_t measured_at);

/* Whether a tuning now may do better than the stored decision of a class, whose spk_class_hash this is. */
bool spk_evidence_due(const spk_tuner *tuner, const spk_tune_options *options, const spk_decision *decision, uint64_t hash);

/* Whether a tuning that begins measures everyone afresh, and not only what the stored evidence lacks. Where load is the reason this is for
 * once in a process, which was_measured_anew says is over. */
bool spk_evidence_anew(const spk_tuner *tuner, const spk_tune_options *options, const spk_report *stored, uint64_t hash);
void spk_evidence_was_measured_anew(uint64_t hash);

#endif
