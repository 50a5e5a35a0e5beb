/* What the public functions share: the context, the plan, and how an entry point begins. */
#ifndef SPK_API_CONTEXT_H
#define SPK_API_CONTEXT_H

#include <stdatomic.h>

#include "api/scratch.h"
#include "known/known.h"
#include "op/operation.h"
#include "tune/choose/tune.h"

struct spk_context {
    spk_mem mem;
    uint64_t id; /* of its messages; never 0 */
    spk_device *device;
    spk_store *store;
    atomic_int interrupted;
    spk_log log;
    void *log_user;
    spk_progress progress;
    void *progress_user;
    spk_known *plans, *recent, *decisions;
    const spk_kernel *table; /* NULL: the build's own; tests give theirs */
    int table_count;
};

/* Begins an entry point: later failures of this thread belong to the context. Refuses NULL, and calls from the caller's callbacks. */
spk_status spk_enter(const spk_context *context);

/* Refuses a call that comes from spk_log or spk_progress. */
spk_status spk_check_caller(void);

/* "name is NULL". */
spk_status spk_check_pointer(const void *pointer, const char *name);

/* A caller's options (may be NULL) checked and copied; strings are borrowed. */
spk_status spk_tune_options_read(const spk_tune_options *theirs, spk_tune_options *ours);

spk_tuner spk_context_tuner(spk_context *context);
/* Likewise, for the length of a call that took options: what cancels the call ends its work. */
spk_tuner spk_context_tuner_for(spk_context *context, const spk_tune_options *options);

/* ---- plans (plan.c): counted, so that the cache may drop one while it runs */

/* What is said of a plan's choice. */
typedef struct spk_plan_words {
    char params[SPK_MAX_PARAMS_TEXT], choice[SPK_MAX_PARAMS_TEXT + 64], why[SPK_WHY_BYTES];
} spk_plan_words;

void spk_plan_words_of(const spk_choice *choice, spk_plan_words *words);

struct spk_plan {
    spk_context *context;
    atomic_int references;
    spk_bound bound;
    spk_bound fallback;     /* for pointers that bound's kernel does not take; kernel NULL: there is none */
    size_t workspace_bytes; /* of a run of either */
    spk_scratch *scratch;   /* NULL where no workspace is needed */
    const void *values;     /* with static_values: what spk_plan_update_values took */
    bool from_store;
    spk_plan_words words;
    bool until_write; /* kept for others until this process writes to a store: its class had no evidence of its own */
    spk_epoch since;  /* before it was decided on */
    double prepare_us;
    struct spk_plan_trial *trial; /* NULL: its class is not tried in place by this plan */
};

spk_status spk_plan_make(spk_context *context, const spk_problem *problem, const spk_tune_options *options, spk_plan **plan);
void spk_plan_release(spk_plan **plan);

/* For memories of plans (spk_known_calls): the value is a pointer to one. */
void spk_plan_hold_value(void *value);
void spk_plan_release_value(void *value);

spk_status spk_plan_launch(const spk_plan *plan, spk_args *args, void *stream);

/* How a run begins: the plan's context is entered, the plan and the stream are checked. */
spk_status spk_plan_enter_run(const spk_plan *plan, void *stream);

/* For the one-call form: one reference more to the cached plan, or to one that is made and cached. */
spk_status spk_plan_find(spk_context *context, const spk_problem *problem, const spk_tune_options *options, spk_plan **plan);

/* Binds plan->fallback where plan->bound, which was made of `first`, needs one, and says what it is (plan_fallback.c); fallback->kernel is
 * NULL where there is none. */
void spk_plan_bind_fallback(spk_plan *plan, const spk_tune_options *options, const spk_choice *first, spk_choice *fallback);

/* Neither candidate takes these pointers: names the first input that is not aligned. */
spk_status spk_plan_refuse_addresses(const spk_plan *plan, const spk_args *args);

/* Runs `bound`, one of the plan's, with the caller's workspace or the plan's own. */
spk_status spk_plan_launch_bound(const spk_plan *plan, const spk_bound *bound, spk_args *args, void *stream);

/* ---- trials in place (plan_trial.c): the plan's runs are made by candidates in turn, until the fastest is known */

/* What a plan runs once that is decided. */
typedef struct spk_plan_later {
    const spk_bound *bound;
    spk_plan_words words;
    bool from_store;
} spk_plan_later;

/* Begins one, where the options ask for it, `first` is an estimate, there is something to be tried, and no other plan tries this class. */
spk_status spk_plan_begin_trial(spk_plan *plan, const spk_tune_options *options, const spk_choice *first);
void spk_plan_end_trial(spk_plan *plan);
const spk_plan_later *spk_plan_later_of(const spk_plan *plan); /* NULL: not decided, or no trial */
spk_status spk_plan_launch_in_turn(const spk_plan *plan, spk_args *args, void *stream);

/* Where a second candidate would have to be compiled, a plan that tries does without one until it meets pointers that its first choice does
 * not take: whether this one does, and a run with such pointers. */
bool spk_plan_trial_has_spare(const spk_plan *plan);
spk_status spk_plan_launch_spare(const spk_plan *plan, spk_args *args, void *stream);

/* ---- plan cache (cache.c) */

/* One reference more to the cached plan of that problem and those options, or NULL. */
spk_plan *spk_plan_cache_find(spk_known *plans, const spk_mem *mem, const spk_problem *problem, const spk_tune_options *options);

/* Keeps a reference. Does nothing where memory is short. */
void spk_plan_cache_add(spk_known *plans, const spk_mem *mem, const spk_problem *problem, const spk_tune_options *options, spk_plan *plan);
void spk_plan_cache_drop_pattern(spk_known *plans, const spk_pattern *pattern);

/* ---- decisions made lately (decisions.c): for a problem that differs in its pattern only, and in nothing that the host knows of that */

/* The candidates of a plan; other.kernel NULL: it has no second one. */
typedef struct spk_decided {
    spk_choice first, fallback;
} spk_decided;

enum { SPK_ASKED_TEXT_BYTES = 192 };

/* What a decision follows from, without padding. */
typedef struct spk_asked {
    spk_problem problem;       /* its pattern is NULL */
    spk_pattern_facts pattern; /* all zero: there is none */
    double budget_s, tolerance;
    int effort, tuning;
    char text[SPK_ASKED_TEXT_BYTES]; /* only, exclude and choice, each with its end */
} spk_asked;

/* false: nothing is remembered of these options, nor of patterns whose indices the host has, as they may change what is best. */
bool spk_asked_make(const spk_problem *problem, const spk_tune_options *options, spk_asked *asked);

/* What was decided within the last second, where this process has written to no store since. */
bool spk_decisions_find(spk_known *decisions, const spk_asked *asked, spk_decided *decided);

/* since: the epoch before the decision. Does nothing where memory is short. */
void spk_decisions_add(spk_known *decisions, const spk_asked *asked, spk_epoch since, const spk_decided *decided);

/* ---- questions asked lately (recent.c), before anything of them is checked */

/* One reference more to the plan that answered these very bytes, or NULL. pattern, problem and options are the caller's, any may be NULL.
 */
spk_plan *spk_recent_find(spk_known *recent, const spk_pattern *pattern, const void *problem, const spk_tune_options *options);

/* Keeps a reference to the plan of a question that was found right. Does nothing where memory is short. */
void spk_recent_add(spk_known *recent, const spk_pattern *pattern, const void *problem, const spk_tune_options *options, spk_plan *plan);
void spk_recent_drop_pattern(spk_known *recent, const spk_pattern *pattern);

#endif
