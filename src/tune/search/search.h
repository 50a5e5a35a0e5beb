/* The search: which candidates there are, how they are brought down to a few, and which of these is the fastest. */
#ifndef SPK_TUNE_SEARCH_SEARCH_H
#define SPK_TUNE_SEARCH_SEARCH_H

#include "tune/measure/measure.h"

/* ---- candidates.c */

const spk_kernel *spk_tuner_table(const spk_tuner *tuner, int *count);
const spk_kernel *spk_tuner_kernel(const spk_tuner *tuner, const char *name); /* NULL: not in the table */

/* One thread or all, where nothing is measured: SERIAL=1 in place of SERIAL=0 where it may run and the model expects it to be faster, or
 * other programs use the processors: then waking the other threads may cost a hundred times what they save. */
void spk_fit_threads(const spk_tuner *tuner, const spk_problem *problem, const spk_kernel *kernel, spk_params *params);

/* "name params": SPK_ERR_ARGUMENT where the table has no such candidate. SERIAL, where it is left out, as it fits the problem. */
spk_status spk_choice_parse(const spk_tuner *tuner, const spk_problem *problem, const char *text, const spk_kernel **kernel,
                            spk_params *params);

/* options->only and ->exclude; says why not. */
bool spk_kernel_allowed(const spk_kernel *kernel, const spk_tune_options *options, const char **why);
bool spk_is_restricted(const spk_tune_options *options);

/* Applicable, eligible and allowed. */
bool spk_may_win(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, const spk_kernel *kernel,
                 const spk_params *params, const char **why);

/* Whether the row is a reference, and a candidate of another row may win: then it is not chosen, whatever was measured. A reference is
 * there to be compared with, and for what nothing else computes. */
bool spk_stands_back(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, const spk_kernel *kernel);

/* The cost model's time, made safe: positive and finite. */
double spk_predict(const spk_kernel *kernel, const spk_params *params, const spk_problem *problem, const spk_device *device);

/* Every candidate of the operation's rows for this kind of device, in the table's order, with its status before anything ran. References
 * are held back where others may win. */
spk_status spk_contenders_make(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options,
                               spk_contender **contenders, int *count);
/* Only those that may win: some dozens of an operation's thousands. NULL where there is none. */
spk_status spk_contenders_eligible(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options,
                                   spk_contender **contenders, int *count);
void spk_contenders_release(const spk_tuner *tuner, spk_contender **contenders, int count);

/* Lets SERIAL=1 in where only other programs' work makes it worth a try (kernel/threads.h). */
void spk_contenders_admit_for_load(spk_contender *contenders, int count);

extern const char spk_why_held_back[];

/* Where nothing that may win is left: lets those in that are held back. Returns whether there are such. */
bool spk_contenders_readmit(spk_contender *contenders, int count);

/* The least predicted of those that may win (ties: priority, then the table); -1 for none. */
int spk_contenders_predicted_best(const spk_contender *contenders, int count);

/* "row: not applicable, why; ..." of each row that the options leave, one after the other, as many as find room, and how many do not. */
void spk_contenders_reasons(const spk_contender *contenders, int count, const spk_tune_options *options, bool references, char *text,
                            size_t size);

/* SPK_ERR_NO_CANDIDATE with the reasons of those that the options leave. */
spk_status spk_no_candidate(const spk_contender *contenders, int count, const spk_tune_options *options);

/* ---- search.c */

typedef struct spk_search {
    const spk_tuner *tuner;
    const spk_problem *problem;
    const spk_tune_options *options;
    spk_contender *contenders;
    int count;
    uint64_t seed;
    double tolerance;
    double start_us, budget_us; /* budget: INFINITY for none */
    double prepare_us;          /* what the device spent on preparing contenders; start_us was moved by it */
    double lost_us;             /* of its time, to other programs, which the budget does not count */
    bool exhaustive;
    bool by_row;      /* race: each row has its own best */
    int least_rounds; /* by_row: that those who meet have, unless the budget ended */
    double limit_us;  /* race: nobody begins so long after the start; 0: no such limit */
    bool all;         /* race: those that cannot win and would take long run, too */
    spk_rng rng;
    spk_operand_memory operand_memory;
    int done, total;             /* progress */
    double told_us;              /* when somebody was told of it */
    int chosen;                  /* contender, -1 */
    spk_load load;               /* of the processors when the measuring began */
    bool crowded;                /* other programs used the processors while it went on */
    bool kept_out;               /* what was measured is not in the store, as that has better */
    spk_provisional provisional; /* spk_search_conclude: what the outcome is worth */
} spk_search;

spk_status spk_search_begin(spk_search *search, const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options);
void spk_search_end(spk_search *search);

/* Around the measuring: whether others used the processors meanwhile is noted, and told once through the log. */
void spk_search_watch(spk_search *search);
void spk_search_judge(spk_search *search);

/* The winner of rounds, or -1: by medians; where other programs disturbed them, by the least run of each. */
int spk_search_winner(spk_search *search, spk_contender **list, int count, bool any);

/* After the measuring, whose status this is: judges, and sets search->provisional. */
void spk_search_conclude(spk_search *search, spk_status status);
void spk_search_progress(spk_search *search, const spk_contender *contender, bool step);

/* The same again, of a search whose numbers stand still, where nobody was told for a tenth of a second: the callback may interrupt it
 * (spk_rounds.tell). */
void spk_search_tell(void *search, const spk_contender *contender);

/* Whether the race's time is over. */
bool spk_search_late(const spk_search *search);

/* Race: whether a contender cannot win and would take long, so that it is not run: by the model far behind the best prediction and the best
 * time so far, and its runs would cost seconds, or much of a budget that was given. Its why says so then. Never one that was asked for. */
bool spk_search_hopeless(const spk_search *search, spk_contender *contender);

/* What a contender of the race costs: preparing it, a checked run, and the least number of rounds. us: one run is expected to take. */
double spk_search_cost_us(const spk_search *search, const spk_contender *contender, double us);

/* Microseconds left of the budget, or of a part of it. */
double spk_search_left_us(const spk_search *search, double part);

/* prepare.c: where the device prepares what is tried: has it do so for all at once, those that are wanted and those that are extra. Some
 * two dozen at most by the model's prediction, but of every row its best two; in a race six of a row; exhaustive: all. The others are not
 * wanted any more; those that the device refuses have failed. The why of each says so. */
spk_status spk_search_prepare(spk_search *search);
bool spk_search_ready(const spk_search *search, const spk_contender *contender); /* prepared, where that is needed, and not refused */

/* screen.c: brings the wanted contenders down to those worth a place in the finals, on samples of a large problem; survivors (room for
 * all) come ordered by estimated time. *stage is the whole problem where they were screened on it, else NULL. */
spk_status spk_search_screen(spk_search *search, spk_contender **survivors, int *survivor_count, spk_stage **stage);

/* The time of the whole problem from two samples: a part that every run pays and a part that grows with the work. */
double spk_extrapolate(const spk_sample_time level[2]);

/* Screens, then measures the finalists on the whole problem; sets search->chosen, on SPK_ERR_INTERRUPTED too where something was
 * measured. */
spk_status spk_search_run(spk_search *search);

/* ---- steady.c: where the device's clock falls under load (spk_backend.settle_us) and others are close to the winner of the rounds, they
 * meet once more under load, so that the winner is what is fastest for products one after the other; a tie changes nothing. Those that met
 * have the new times; the others lose their samples, and the list's order changes. *winner: of the rounds before, then of these; NULL where
 * all failed. */
spk_status spk_steady_run(spk_search *search, spk_stage *stage, spk_contender **list, int count, spk_contender **winner);

/* A stage of the whole problem with checks, within the budget's share for that. */
spk_status spk_search_whole(spk_search *search, spk_stage **stage);

/* One measurement at a time in this process, as timings disturb each other: waits at most limit_s, then goes on all the same. */
bool spk_measuring_begin(const spk_tuner *tuner, double limit_s);
void spk_measuring_end(bool held);

#endif
