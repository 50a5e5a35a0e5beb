/* Running candidates on a problem: operands, checks, a stage (the problem or a part of it), one contender's times, rounds over several. */
#ifndef SPK_TUNE_MEASURE_MEASURE_H
#define SPK_TUNE_MEASURE_MEASURE_H

#include "base/rng.h"
#include "tune/measure/tuner.h"

/* ---- operands.c: random operands in device memory, several sets where the caches shall be cold */

/* Device memory that the stages of a search use one after the other: fresh pages cost more than all else in making operands. */
typedef struct spk_operand_memory {
    void *memory, *workspace; /* of all arrays; shared by all candidates, as large as the largest needs */
    size_t bytes, touched, workspace_bytes;
    double limit_us; /* more sets than one are made for so long at most; 0: no limit */
} spk_operand_memory;

void spk_operand_memory_release(spk_device *device, spk_operand_memory *operand_memory);

typedef struct spk_operands {
    const spk_tuner *tuner;     /* borrowed */
    const spk_problem *problem; /* borrowed */
    spk_device *device;
    spk_mem mem;
    size_t bytes[SPK_MAX_OPERANDS];          /* of one array, 0 where the problem has none */
    int64_t sets, next;                      /* next: the set of the next run */
    spk_args *args;                          /* sets; alpha = beta = 1 */
    spk_operand_memory *operand_memory, own; /* operand_memory: the search's, or its own */
    void *staging[SPK_MAX_OPERANDS];         /* host copies of set 0 where the host cannot read device memory */
} spk_operands;

/* operand_memory NULL: memory of its own. SPK_ERR_INTERRUPTED as soon as the tuner is. */
spk_status spk_operands_make(const spk_tuner *tuner, const spk_problem *problem, uint64_t seed, spk_operand_memory *operand_memory,
                             spk_operands **operands);
void spk_operands_release(spk_operands **operands); /* accepts NULL */
size_t spk_operands_set_bytes(const spk_problem *problem);

/* SPK_ERR_OUT_OF_MEMORY where not even one set of the problem's operands finds room. */
spk_status spk_operands_fit(spk_device *device, const spk_problem *problem);
spk_status spk_operands_workspace(spk_operands *operands, size_t bytes);

/* Fills the outputs of set 0 with all-one bits: a NaN in every dtype, which no sum of finite terms gives. */
spk_status spk_operands_poison(spk_operands *operands);

/* Set 0 for a check: alpha and beta that a kernel cannot ignore unnoticed. */
spk_args spk_operands_check_args(const spk_operands *operands);

/* An array of set 0 as the host sees it now. */
spk_status spk_operands_view(spk_operands *operands, int operand, const void **view);

/* The same of an output where only some rows are wanted (of a batch: where it is row-major and its items are rows of one array); what the
 * view holds elsewhere is anything. */
spk_status spk_operands_view_rows(spk_operands *operands, int operand, const int64_t *rows, int count, const void **view);

/* `runs` runs over the next sets, each timed. */
spk_status spk_operands_time(spk_operands *operands, const spk_bound *bound, int runs, double *out_us);

/* ---- validate.c: what the outputs must be, at sampled places */

typedef struct spk_checks spk_checks;

typedef struct spk_verdict {
    bool wrong;
    double error;  /* largest |output - oracle| / magnitude, in the measure of the first output's tolerance */
    double run_us; /* of the run that was checked */
    char why[200];
} spk_verdict;

/* Runs the oracle on as many places as limit_us allows, one row at least. */
spk_status spk_checks_make(const spk_tuner *tuner, const spk_problem *problem, spk_operands *operands, uint64_t seed, double limit_us,
                           spk_checks **checks);
void spk_checks_release(spk_checks **checks); /* accepts NULL */

/* Runs the candidate once on poisoned outputs and compares. tolerance: of the first output; others have theirs in proportion. A status
 * other than SPK_OK is the candidate's own failure. */
spk_status spk_checks_run(const spk_checks *checks, spk_operands *operands, const spk_bound *bound, double tolerance, spk_verdict *verdict);

/* For a run of the caller's, in host memory, that writes over none of its inputs. Before it: every element that it writes becomes all ones.
 * After it: compares some places with the oracle, for limit_us, and looks for elements that are all ones still. */
void spk_poison_outputs(const spk_problem *problem, const spk_args *args);
spk_status spk_check_run(const spk_tuner *tuner, const spk_problem *problem, const spk_args *args, uint64_t seed, double limit_us,
                         double tolerance, spk_verdict *verdict);

/* ---- contenders */

/* A time from a part of the problem, and what the cost model makes of it. */
typedef struct spk_sample_time {
    double us, share; /* share: of the problem's work */
    double full_us;   /* of the whole problem, in the model's proportion */
    double growth_us; /* what the model sees between this part and the whole */
} spk_sample_time;

typedef struct spk_contender {
    const spk_kernel *kernel;
    spk_params params;
    int row, order;        /* in the table: its row, and its place among all candidates */
    int entry;             /* of the report */
    bool eligible;         /* may win here */
    bool for_load;         /* likewise, where other programs use the processors only */
    bool held_back;        /* a reference that another may run in place of: eligible where nothing else is left */
    bool in_search;        /* takes part in this search */
    bool ran;              /* something of it was measured in this search */
    bool alive;            /* still in the rounds */
    bool screened;         /* it has a time from the present stage */
    bool always_in_search; /* takes part whatever the model makes of it */
    bool optional;         /* may be tried beside those in the search */
    bool prepared, placed; /* prepare.c: the device has seen to it; it was to */
    bool left_out;         /* a run would take too long: its why says so */
    int rank;              /* order of screening before predicted time */
    bool bound_now;
    spk_bound bound;
    double predicted_us, prepare_us, error;
    spk_sample_time level[2];  /* on the last two stages it was screened on; share 0: none yet */
    double full_us;            /* estimate for the whole problem */
    bool disturbed;            /* its last sample was interrupted by other work of the machine */
    double run_us, quick_us;   /* of its last run or sample here (0: none yet), and the lower quartile of that sample's runs */
    double brief_us, least_us; /* the least run of its last sample, and of all rounds of the last phase */
    int batch;                 /* runs a sample */
    int sample_count, sample_capacity;
    double *samples; /* interleaved samples of the last phase, by round */
    double median_us, spread_us;
    spk_candidate_status status;
    spk_status failure; /* behind status failed, and behind pruned where only its library knew that it does not take the problem */
    char why[240];
} spk_contender;

/* ---- stage.c: the problem, or a sample of it, ready to run candidates */

typedef struct spk_stage {
    const spk_tuner *tuner;
    spk_problem problem;
    spk_pattern *sample;     /* owned; NULL: the whole pattern */
    double share, row_share; /* of the stored blocks' work, of the dense work */
    spk_operands *operands;
    spk_checks *checks;  /* NULL: candidates were checked on another stage */
    const char *library; /* whose threads ran the last sample, "" for ours; NULL: no sample yet */
} spk_stage;

/* How much of a problem: so many block rows of op(A) (without a pattern: of its other size), of its free size and items of the batch
 * (0: all of them). */
typedef struct spk_level {
    int64_t rows, cols;
    double share;
    int64_t items;
} spk_level;

/* The level nearest to a share of the work, not much below it. */
spk_level spk_level_for(const spk_tuner *tuner, const spk_problem *problem, double share);

/* check_us: what the oracle may cost; 0: no checks. */
spk_status spk_stage_make(const spk_tuner *tuner, const spk_problem *problem, spk_level level, uint64_t seed, double check_us,
                          spk_operand_memory *operand_memory, spk_stage **stage);
void spk_stage_release(spk_stage **stage); /* accepts NULL */
double spk_stage_share(const spk_stage *stage, const spk_contender *contender);

/* ---- measure.c: binding, checking and timing one contender; interleaved rounds over several */

spk_status spk_contender_bind(spk_contender *contender, spk_stage *stage); /* failure: the contender's status and why say so */
void spk_contender_unbind(spk_contender *contender);

/* Checks the bound contender; false where it is out (status and why say so). run_us gets the time of the checked run. */
bool spk_contender_check(spk_contender *contender, spk_stage *stage, double tolerance, double *run_us);

/* One sample (a run, or the median of a batch of short ones). */
bool spk_contender_sample(spk_contender *contender, spk_stage *stage, double *us);

/* Runs a sample that lasts long enough for the clock, given the time of one run. */
int spk_batch_for(double run_us);
int spk_batch_lasting(double run_us, double us); /* that lasts so long, if some dozens suffice */
double spk_sample_us(double run_us);             /* what such a sample costs */

typedef struct spk_rounds {
    int have;         /* samples that every contender brings along */
    int least, most;  /* with these */
    bool every_round; /* race: no early end, nobody leaves, those 20 times slower take part in 3 rounds only (cheap vendor rows: in 20) */
    double deadline_us;
    double stop_us; /* one round is enough then, whoever may win; 0: none */
    /* race: the same where one alone may win, and nothing is to be decided. One round is enough then; 0: none */
    double alone_deadline_us;
    spk_rng *rng; /* order within a round */
    /* called before each sample, that the caller's progress callback may interrupt; NULL: nobody is told */
    void (*tell)(void *user, const spk_contender *next);
    void *tell_user;
} spk_rounds;

/* Interleaved rounds over bound and checked contenders; fills samples, median_us and spread_us. SPK_ERR_INTERRUPTED keeps what there is. */
spk_status spk_rounds_run(const spk_tuner *tuner, spk_stage *stage, spk_contender **list, int count, const spk_rounds *rounds);

/* The winner among measured contenders (that may win here, or any): least median; of the tied ones the favourite (NULL: none), else
 * SERIAL=1, then by priority, then predicted time, then place in the table. -1 for none. */
int spk_rounds_winner(spk_contender **list, int count, bool any, const spk_contender *favourite);

/* By the least run of each in place of the median: where other programs disturb the measuring, which only adds. Not one whose
 * median is 30 times the least and more. Ties as above. */
int spk_rounds_briefest(spk_contender **list, int count, bool any);

/* Whether the rounds say that they were disturbed: medians that their own lower quartiles do not bear out, of the winner or of one that
 * might win else. */
bool spk_rounds_disturbed(spk_contender **list, int count, bool any);

bool spk_interrupted(const spk_tuner *tuner);
bool spk_is_busy(const spk_tuner *tuner); /* other programs use processors that the device's threads would need */
double spk_median(const double *values, int count, double *scratch);
double spk_half_quartiles(const double *values, int count, double *scratch);

#endif
