/* A trial's schedule, for the files that make it. */
#ifndef SPK_TUNE_TRIAL_INTERNAL_H
#define SPK_TUNE_TRIAL_INTERNAL_H

#include "tune/search/search.h"
#include "tune/trial/ahead.h"
#include "tune/trial/family.h"
#include "tune/trial/trial.h"

enum { SPK_TRIAL_MORE = 6 /* of the leading row, that join after the looks */, SPK_TRIAL_ROUNDS = 8 };
#define SPK_TRIAL_FAR_BEHIND 1.25 /* its least run so many times the least of all: it leaves after the looks */

typedef enum phase { PHASE_AHEAD, PHASE_FIELD, PHASE_MORE, PHASE_ROUNDS, PHASE_DECIDED } phase;

struct spk_trial {
    spk_tuner tuner; /* a copy, as are the next; the device and the store are the context's */
    spk_problem problem;
    spk_tune_options options;
    char *only, *exclude;
    spk_class class;
    uint64_t hash;
    spk_search search;
    spk_contender **list; /* those of this phase that are left, in the order of this round */
    int count, next;      /* next: of the list */
    phase phase;
    double runs_us;
    int runs;
    spk_contender *winner;
    spk_choice first;
    const spk_contender *wrong_first; /* that one, where it was found wrong ahead; NULL: it was not */
    spk_ahead *ahead;                 /* NULL: nothing is done ahead */
    spk_contender **prepared;         /* those of its list */
    int prepared_count;
    struct spk_watch *watch; /* NULL: a run is over when it returns */
    bool guest;              /* another trial of the class is under way: this one makes a single first run */
    spk_family family;       /* first runs at sizes near to this one */
    int64_t since;           /* unix time of its begin */
    spk_report *stored;      /* what the store had of the class then; NULL: nothing that could be used */
};

/* trial.c */
bool spk_trial_prepares(const spk_trial *t); /* whether candidates are made ready ahead */
bool spk_trial_is_choice(const spk_contender *c, const spk_choice *choice);
/* Up to `most` more of a row, or (NULL) of those with room, by their predictions. hopeful: only those that the model sees a chance for. */
void spk_trial_add_best(spk_trial *t, const spk_kernel *kernel, int most, bool hopeful);
void spk_trial_bring_first(spk_trial *t, int at);

/* first_runs.c */
void spk_first_runs_go_on(spk_trial *t);  /* makes the list one of first runs: who is known the least goes first */
bool spk_first_runs_decide(spk_trial *t); /* whether they are enough; the samples of the list are theirs then */

#endif
