/* A race between its files: who takes part, how they meet, what is said of it. */
#ifndef SPK_TUNE_CHOOSE_RACE_H
#define SPK_TUNE_CHOOSE_RACE_H

#include "tune/choose/choose.h"

typedef struct race {
    spk_search search;
    const spk_race_options *options;
    bool *meets;          /* of each contender */
    spk_contender **list; /* room for every contender */
    spk_contender **row;  /* likewise: those of one row */
    int *entrants;        /* contenders of the report: one a row, or the given choices */
    int entrant_count;
    bool cut_short; /* interrupted before the entrants had met */
} race;

/* race_field.c: which contender a candidate is, -1: none. */
int spk_race_contender(const spk_search *search, const spk_kernel *kernel, const spk_params *params);

/* race_field.c: the given choices, or every row; and of each row the parameters that meet the others, where several may. *stage is where
 * they were screened. */
spk_status spk_race_enter(race *r);
spk_status spk_race_row_bests(race *r, spk_stage **stage);

/* race_meeting.c: the measuring. */
spk_status spk_race_run(race *r);

/* Of a given budget: nobody begins after the first, the rounds of those who meet end after the second, be they as few as one. What is under
 * way is finished. */
static const double spk_race_last_begin = 1.4, spk_race_last_round = 1.7;

#endif
