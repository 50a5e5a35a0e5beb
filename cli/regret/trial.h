/* One problem of `regret`: what is chosen for it, and what is best. */
#ifndef SPARSEK_CLI_REGRET_TRIAL_H
#define SPARSEK_CLI_REGRET_TRIAL_H

#include "cli/problem/problem.h"

/* A problem in a context of its own with an empty store, which stands in for the program's. */
typedef struct trial {
    spk_context *programs;
    problem p;
} trial;

/* What one tuning chose. */
typedef struct tuned {
    char *choice; /* NULL: nothing */
    int candidates, measured;
    double seconds;
    spk_provisional provisional;
} tuned;

/* What a race of two has found: the median and the quartiles of their ratios. */
typedef struct duel {
    double ratio, low, high;
    int64_t pairs;
} duel;

/* How the best is found. */
typedef struct regret_search {
    double budget_s;       /* exhaustively, */
    int64_t among, rounds; /* or among so many; 0: among all. Rounds of races */
} regret_search;

/* Makes a problem in a context of its own, until regret_trial_end. Exit codes, here and below, after a message. */
int regret_trial_begin(cli *app, const problem_flags *flags, trial *t);
void regret_trial_end(cli *app, trial *t);

/* What tuning chooses. */
int regret_trial_tune(cli *app, trial *t, spk_effort effort, double budget_s, tuned *out);

/* What the bundle chose; nothing where it does not know the class. */
int regret_trial_look_up(cli *app, trial *t, tuned *out);

/* Finds the best, and races what was chosen beside it where the two differ. */
int regret_find_best(cli *app, const problem_flags *flags, const regret_search *search, const tuned *chosen, tuned *best, duel *met);

#endif
