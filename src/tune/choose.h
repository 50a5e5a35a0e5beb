/* What choosing, listing and racing share: the names of a class, and reports for which nothing was measured now. Internal to src/tune. */
#ifndef SPK_TUNE_CHOOSE_H
#define SPK_TUNE_CHOOSE_H

#include "tune/tune.h"

typedef struct spk_class {
    bool restricted;             /* only or exclude leave some kernels out, or the tolerance is the caller's */
    char plain[SPK_MAX_KEY_TEXT]; /* the class of the problem */
    char key[SPK_MAX_KEY_TEXT + 32]; /* the class that decisions belong to: plain, unless restricted */
} spk_class;

spk_status spk_class_keys(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, spk_class *class);

/* Every candidate with the model's time, nothing run; choice (may be NULL) is marked as chosen. */
spk_status spk_report_unmeasured(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, const spk_choice *choice, spk_report **report);

/* Makes a loaded report today's answer: from_store, the given choice or (NULL) the one these options allow, a fresh summary. */
spk_status spk_report_from_store(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options,
                                 const spk_choice *choice, spk_report *report);

/* estimate.c: choices for which nothing is measured. class NULL: the store is not asked. */
spk_status spk_choose_pinned(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, spk_choice *choice);
spk_status spk_choose_estimated(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options,
                                const spk_class *class, spk_choice *choice);

/* Whether a stored decision still names a candidate of the table that may win here; choice gets it. */
bool spk_decision_usable(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, const spk_decision *decision,
                         spk_choice *choice);

/* Of a class in a store among the rows of a table: what is remembered of it in this process goes by this. */
uint64_t spk_class_hash(const spk_tuner *tuner, const char *key);

#endif
