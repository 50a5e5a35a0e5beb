/* A plan whose class is tried in place: tune/trial says whose turn a run is, this file runs it. On the CPU it compares a candidate's first
 * outcome with the oracle. Where there are proofs each candidate has one, and a run is timed on its stream: its time is read at a later
 * run, and until it can be read the fastest so far runs, untimed. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "api/context.h"
#include "base/callback.h"
#include "base/clock.h"
#include "tune/trial/trial.h"

enum { LOOK_AGAIN = 32 /* runs */, MOST_REPEATS = 8 };

/* Between two events, as these take some microseconds themselves: a shorter run is made several times. */
static const double timed_us = 40;

/* The workspace of runs in turn, which grows with who wants more. */
typedef struct room {
    size_t bytes;
    spk_scratch *scratch;
} room;

/* Of the plan's first choice. */
typedef enum first_is { FIRST_UNSEEN, FIRST_RIGHT, FIRST_OUT } first_is;

typedef struct spk_plan_trial {
    int forks;            /* as `forks` was when it was made */
    pthread_mutex_t lock; /* of a run in turn; who finds it taken runs the first choice where that is right, and else waits */
    _Atomic first_is first;
    bool waits;               /* for the outcome of another plan's trial */
    bool heeds;               /* a decision of its class by others, as there was none when it began */
    spk_tune_options options; /* without texts: what waits, or wants a second candidate, has none */
    spk_epoch since;          /* when it last looked for the outcome */
    int runs;                 /* since it looked whether that trial is still under way */
    int seen;                 /* how many runs that one had made then; -1: it did not look */
    spk_trial *trial;         /* NULL: it is over */
    room room;
    spk_contender *timed; /* whose time on its stream is still to be read */
    int repeats;          /* runs that it is of */
    bool has_spare;       /* a second candidate is bound when one is wanted */
    spk_bound spare;      /* kernel NULL: not yet */
    spk_scratch *spare_scratch;
    spk_bound own;        /* the winner, where it is not the plan's first choice */
    spk_scratch *scratch; /* its workspaces */
    spk_plan_later decided;
    _Atomic(const spk_plan_later *) later; /* &decided once that is filled */
} spk_plan_trial;

/* How often this process, or one of its ancestors since the library was loaded, was made by fork(). */
static atomic_int forks;

static void note_fork(void)
{
    atomic_fetch_add(&forks, 1);
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, note_fork);
}

/* A trial of the parent's is no more than what it has found: who held its lock at the fork is not here to give it back. */
static bool is_inherited(const spk_plan_trial *t)
{
    return t->forks != atomic_load_explicit(&forks, memory_order_relaxed);
}

const spk_plan_later *spk_plan_later_of(const spk_plan *plan)
{
    return plan->trial != NULL ? atomic_load_explicit(&plan->trial->later, memory_order_acquire) : NULL;
}

/* What still runs on a stream keeps its memory: a device's own is released when it has ended, an allocator's in the order of the stream. */
static void release_room(spk_plan_trial *t)
{
    spk_scratch_release(&t->room.scratch);
    t->room.bytes = 0;
}

/* Whether candidates come with a proof; else the oracle looks at the first outcome of each. */
static bool has_proofs(const spk_plan *plan)
{
    return plan->context->device->backend->proof != NULL;
}

void spk_plan_end_trial(spk_plan *plan)
{
    spk_plan_trial *t = plan->trial;
    plan->trial = NULL;
    if (t == NULL)
        return;
    spk_trial_end(&t->trial);
    release_room(t);
    spk_scratch_release(&t->scratch);
    spk_scratch_release(&t->spare_scratch);
    spk_unbind(&t->spare);
    spk_unbind(&t->own);
    pthread_mutex_destroy(&t->lock);
    spk_free(&plan->context->mem, t);
}

spk_status spk_plan_begin_trial(spk_plan *plan, const spk_tune_options *options, const spk_choice *first)
{
    const spk_tuner tuner = spk_context_tuner(plan->context);
    spk_trial *trial = NULL;
    bool elsewhere = false;
    if (!spk_tries_in_place(&tuner, &plan->bound.problem, options) || (!spk_origin_is_estimate(first->origin) && !first->again) ||
        spk_problem_is_empty(&plan->bound.problem))
        return SPK_OK;
    int seen = -1;
    SPK_TRY(spk_trial_begin(&tuner, &plan->bound.problem, options, first, &trial, &elsewhere, &seen));
    const bool waits = elsewhere && !spk_is_restricted(options);
    if (trial == NULL && !waits) {
        plan->until_write = plan->until_write || elsewhere; /* the outcome is written to the store: it is asked again then */
        return SPK_OK;
    }
    if (spk_calloc(&plan->context->mem, 1, sizeof *plan->trial, &plan->trial) != SPK_OK) {
        spk_trial_end(&trial);
        return SPK_ERR_OUT_OF_MEMORY;
    }
    pthread_mutex_init(&plan->trial->lock, NULL);
    plan->trial->forks = atomic_load(&forks);
    plan->trial->trial = trial;
    plan->trial->waits = waits;
    plan->trial->seen = seen;
    plan->trial->heeds = !first->again && !spk_is_restricted(options);
    plan->trial->options = *options;
    plan->trial->options.only = plan->trial->options.exclude = plan->trial->options.choice = NULL;
    plan->trial->options.cancel = NULL; /* it was for the call that made the plan */
    plan->trial->has_spare = tuner.device->backend->ready != NULL && (options->exclude == NULL || options->exclude[0] == '\0');
    plan->trial->since = spk_epoch_now();
    plan->until_write = false; /* it finds out by itself */
    if (waits || has_proofs(plan))
        atomic_store(&plan->trial->first, FIRST_RIGHT);
    if (waits)
        return SPK_OK;
    const size_t used = strlen(plan->words.why);
    snprintf(plan->words.why + used, sizeof plan->words.why - used, "; tried in place");
    return SPK_OK;
}

/* ------------------------------------------------------------------------------------------------ a second candidate */

bool spk_plan_trial_has_spare(const spk_plan *plan)
{
    return plan->trial != NULL && plan->trial->has_spare;
}

static spk_status bind_spare(const spk_plan *plan, spk_plan_trial *t)
{
    const spk_tuner tuner = spk_context_tuner(plan->context);
    const spk_choice first = {.kernel = plan->bound.kernel, .params = plan->bound.params};
    spk_choice choice;
    if (t->spare.kernel != NULL)
        return SPK_OK;
    spk_bound made = {.kernel = NULL};
    spk_tune_bind_fallback(&tuner, &plan->bound.problem, &t->options, &first, &choice, &made);
    if (made.kernel == NULL)
        return SPK_OK;
    spk_status status = SPK_OK;
    if (made.workspace_bytes > 0)
        status = spk_scratch_make(&plan->context->mem, plan->context->device, made.workspace_bytes, &t->spare_scratch);
    if (status == SPK_OK)
        t->spare = made;
    else
        spk_unbind(&made);
    return status;
}

spk_status spk_plan_launch_spare(const spk_plan *plan, spk_args *args, void *stream)
{
    spk_plan_trial *t = plan->trial;
    pthread_mutex_lock(&t->lock);
    spk_status status = bind_spare(plan, t);
    pthread_mutex_unlock(&t->lock);
    SPK_TRY(status);
    if (t->spare.kernel == NULL)
        return spk_plan_refuse_addresses(plan, args);
    if (t->spare_scratch == NULL)
        return spk_bound_run(&t->spare, args, stream);
    spk_loan loan;
    SPK_TRY(spk_scratch_borrow(t->spare_scratch, stream, &loan));
    args->workspace = loan.memory;
    args->workspace_bytes = t->spare.workspace_bytes;
    status = spk_bound_run(&t->spare, args, stream);
    spk_scratch_return(t->spare_scratch, &loan);
    return status;
}

/* ------------------------------------------------------------------------------------------------ one run */

static bool is_first(const spk_plan *plan, const spk_contender *c)
{
    return c->kernel == plan->bound.kernel && memcmp(&c->params, &plan->bound.params, sizeof c->params) == 0;
}

/* What a contender is bound to: the plan's own bound, where it is the plan's first choice. */
static spk_status bind(const spk_plan *plan, spk_contender *c, const spk_bound **bound)
{
    *bound = is_first(plan, c) ? &plan->bound : &c->bound;
    if (is_first(plan, c) || c->bound_now)
        return SPK_OK;
    const double start_us = spk_now_us();
    SPK_TRY(spk_bind(c->kernel, &c->params, &plan->bound.problem, plan->context->device, &c->bound));
    c->bound_now = true;
    c->prepare_us = spk_now_us() - start_us;
    return SPK_OK;
}

static spk_status make_room(const spk_plan *plan, spk_plan_trial *t, size_t bytes)
{
    if (t->room.bytes >= bytes)
        return SPK_OK;
    release_room(t);
    SPK_TRY(spk_scratch_make(&plan->context->mem, plan->context->device, bytes, &t->room.scratch));
    t->room.bytes = bytes;
    return SPK_OK;
}

/* A run and how it is timed: by the watch, where there is one, the same run several times. */
typedef struct timing {
    struct spk_watch *watch; /* NULL: it is over when it returns */
    int repeats;
    double us; /* what it took, without a watch */
} timing;

static spk_status run_timed(const spk_plan *plan, const spk_bound *bound, const spk_args *args, void *stream, timing *how)
{
    spk_device *device = plan->context->device;
    if (how->watch != NULL)
        SPK_TRY(device->backend->watch_start(device, how->watch, stream));
    const double start_us = spk_now_us();
    for (int i = 0; i < how->repeats; i++)
        SPK_TRY(spk_bound_run(bound, args, stream));
    how->us = spk_now_us() - start_us;
    return how->watch != NULL ? device->backend->watch_stop(device, how->watch, stream) : SPK_OK;
}

static spk_status run(const spk_plan *plan, spk_plan_trial *t, const spk_bound *bound, const spk_args *args, void *stream, timing *how)
{
    spk_args with = *args;
    spk_loan loan;
    if (bound->workspace_bytes == 0 || (args->workspace != NULL && args->workspace_bytes >= bound->workspace_bytes))
        return run_timed(plan, bound, args, stream, how);
    SPK_TRY(make_room(plan, t, bound->workspace_bytes));
    SPK_TRY(spk_scratch_borrow(t->room.scratch, stream, &loan));
    with.workspace = loan.memory;
    with.workspace_bytes = bound->workspace_bytes;
    const spk_status status = run_timed(plan, bound, &with, stream, how);
    spk_scratch_return(t->room.scratch, &loan);
    return status;
}

/* Whether an output is one of the inputs: what is computed wrong there cannot be computed again. */
static bool overwrites(const spk_problem *problem, const spk_args *args)
{
    for (int i = 0; i < problem->op->operand_count; i++)
        for (int k = 0; k < problem->op->operand_count && spk_problem_writes(problem, i); k++)
            if ((problem->op->operands[i].may_be >> k & 1) != 0 && args->at[i] == args->at[k])
                return true;
    return false;
}

static void tell_wrong(const spk_plan *plan, const spk_contender *c)
{
    const spk_context *context = plan->context;
    char text[512], params[SPK_MAX_PARAMS_TEXT];
    spk_params_text(c->kernel, &c->params, params, sizeof params);
    snprintf(text, sizeof text, "%s%s%s gave a wrong result%s, and is ruled out: %s.%s", c->kernel->name, params[0] != '\0' ? " " : "",
             params, has_proofs(plan) ? " on random operands" : "", c->why,
             !has_proofs(plan)   ? " What it computed was computed again by another candidate: no result is affected"
             : is_first(plan, c) ? " Earlier results of this plan are its"
                                 : " It computed no result of yours");
    if (context->log != NULL)
        spk_tell_log(context->log, context->log_user, 1, text);
}

static void rule_out(const spk_plan *plan, spk_plan_trial *t, spk_contender *c, spk_candidate_status status, const char *why)
{
    spk_trial_out(t->trial, c, status, why);
    if (is_first(plan, c))
        atomic_store(&t->first, FIRST_OUT);
}

/* Whether a first run did what it should; else the contender is out. What the caller's own operands seem to show is confirmed first. */
static bool is_right(const spk_plan *plan, spk_plan_trial *t, spk_contender *c, const spk_args *args)
{
    const spk_tuner tuner = spk_context_tuner(plan->context);
    spk_verdict verdict;
    const uint64_t seed = (uint64_t)spk_now_us();
    if (spk_check_run(&tuner, &plan->bound.problem, args, seed, spk_trial_check_us(c), spk_trial_tolerance(t->trial), &verdict) != SPK_OK)
        return true; /* the oracle lacks memory: nothing is known */
    if (verdict.wrong &&
        !spk_trial_confirms(&tuner, &plan->bound.problem, c, spk_trial_tolerance(t->trial), verdict.why, sizeof verdict.why))
        return true;
    c->error = verdict.error > c->error ? verdict.error : c->error;
    if (!verdict.wrong)
        return true;
    rule_out(plan, t, c, SPK_CANDIDATE_WRONG, verdict.why);
    tell_wrong(plan, c);
    spk_epoch_refuted();
    return false;
}

/* Whose turn it is. Where the result could not be computed again nobody runs for the first time but the plan's first choice, and where that
 * is out the fastest that is known runs. */
static spk_contender *next_of(const spk_plan *plan, spk_plan_trial *t, bool once)
{
    spk_contender *c = spk_trial_next(t->trial);
    const bool out = atomic_load(&t->first) == FIRST_OUT;
    if (c == NULL || !once || spk_trial_has_run(c) || is_first(plan, c))
        return c;
    return out ? spk_trial_known(t->trial) : NULL;
}

static void note_run(spk_plan_trial *t, spk_contender *c, double us)
{
    if (c == spk_trial_next(t->trial))
        spk_trial_ran(t->trial, c, us);
}

/* The time of the run before, once it can be read: false until then. */
static bool has_read_time(const spk_plan *plan, spk_plan_trial *t)
{
    spk_device *device = plan->context->device;
    double us = 0;
    if (t->timed == NULL)
        return true;
    if (!device->backend->watch_read(device, spk_trial_watch(t->trial), &us))
        return false;
    if (isinf(us))
        rule_out(plan, t, t->timed, SPK_CANDIDATE_FAILED, "its time could not be read");
    else
        note_run(t, t->timed, us / t->repeats);
    t->timed = NULL;
    return true;
}

/* One run by contender c. *done is false where another has to follow; c is out then. again: what fails half-way can be computed again. */
static spk_status run_one(const spk_plan *plan, spk_plan_trial *t, spk_contender *c, const spk_args *args, void *stream, bool again,
                          bool *done)
{
    const bool looks = !has_proofs(plan) && again && !spk_trial_has_run(c);
    const spk_bound *bound = NULL;
    timing how = {.watch = spk_trial_watch(t->trial), .repeats = 1};
    if (how.watch != NULL && again && spk_trial_has_run(c))
        how.repeats = (int)fmin(fmax(timed_us / fmax(c->least_us, 1), 1), MOST_REPEATS);
    spk_status status = bind(plan, c, &bound);
    if (status == SPK_OK && c->kernel->ops->accepts != NULL && !c->kernel->ops->accepts(bound, args)) {
        rule_out(plan, t, c, SPK_CANDIDATE_FAILED, "it does not take these addresses");
        return SPK_OK;
    }
    if (status == SPK_OK && looks)
        spk_poison_outputs(&plan->bound.problem, args);
    if (status == SPK_OK)
        status = run(plan, t, bound, args, stream, &how);
    if (status != SPK_OK && !again && bound != NULL)
        return status;
    if (status != SPK_OK) {
        rule_out(plan, t, c, SPK_CANDIDATE_FAILED, spk_last_error(plan->context));
        release_room(t); /* who runs in its place may want the memory */
        return SPK_OK;
    }
    if (looks && !is_right(plan, t, c, args))
        return SPK_OK;
    if (is_first(plan, c))
        atomic_store(&t->first, FIRST_RIGHT);
    t->repeats = how.repeats;
    if (how.watch != NULL)
        t->timed = c;
    else
        note_run(t, c, how.us);
    *done = true;
    return SPK_OK;
}

/* The fastest so far, untimed: the run before has not ended yet. */
static spk_status run_known(const spk_plan *plan, spk_plan_trial *t, const spk_args *args, void *stream, bool *done)
{
    spk_contender *c = spk_trial_known(t->trial);
    timing how = {.repeats = 1};
    if (c == NULL || is_first(plan, c) || !c->bound_now || (c->kernel->ops->accepts != NULL && !c->kernel->ops->accepts(&c->bound, args)))
        return SPK_OK;
    *done = true;
    return run(plan, t, &c->bound, args, stream, &how);
}

/* The run by whoever is next; who fails is followed by another. *done is false where the trial has nobody for this run. */
static spk_status take_turn(const spk_plan *plan, spk_plan_trial *t, const spk_args *args, void *stream, bool *done)
{
    const bool again = !overwrites(&plan->bound.problem, args), once = !has_proofs(plan) && !again;
    *done = false;
    if (!has_read_time(plan, t))
        return run_known(plan, t, args, stream, done);
    for (spk_contender *c; !*done && (c = next_of(plan, t, once)) != NULL;)
        SPK_TRY(run_one(plan, t, c, args, stream, again, done));
    return SPK_OK;
}

/* ------------------------------------------------------------------------------------------------ the end */

/* From now on the plan runs `bound`, which becomes its own; NULL: its first choice. */
static spk_status adopt(const spk_plan *plan, spk_plan_trial *t, spk_bound *bound, const spk_choice *choice)
{
    if (bound != NULL && bound->workspace_bytes > 0)
        SPK_TRY(spk_scratch_make(&plan->context->mem, plan->context->device, bound->workspace_bytes, &t->scratch));
    if (bound != NULL)
        t->own = *bound;
    t->decided.bound = bound != NULL ? &t->own : &plan->bound;
    spk_plan_words_of(choice, &t->decided.words);
    t->decided.from_store = choice->from_store;
    atomic_store_explicit(&t->later, &t->decided, memory_order_release);
    return SPK_OK;
}

/* Decided. Where there is no memory for the winner's workspace the plan stays with its first choice; where that is out the next run tries
 * again. */
static spk_status settle(const spk_plan *plan, spk_plan_trial *t)
{
    spk_contender *winner = spk_trial_winner(t->trial);
    if (winner != NULL) {
        const bool first = is_first(plan, winner) || !winner->bound_now; /* other sizes decided: it has never run here */
        const spk_choice choice = {.kernel = first ? plan->bound.kernel : winner->kernel,
                                   .params = first ? plan->bound.params : winner->params,
                                   .origin = SPK_ORIGIN_IN_PLACE};
        const spk_status status = adopt(plan, t, first ? NULL : &winner->bound, &choice);
        if (status == SPK_OK && !first)
            winner->bound_now = false;
        if (status != SPK_OK && atomic_load(&t->first) == FIRST_OUT)
            return status;
    }
    spk_trial_save(t->trial);
    spk_trial_end(&t->trial);
    release_room(t);
    return SPK_OK;
}

static bool is_captured(const spk_plan *plan, void *stream)
{
    const spk_backend *backend = plan->context->device->backend;
    return backend->capturing != NULL && backend->capturing(plan->context->device, stream);
}

/* While the stream is captured no workspace can be made for it: where the winner has none yet the first choice runs. */
static spk_status run_later(const spk_plan *plan, const spk_plan_later *later, spk_args *args, void *stream)
{
    const spk_plan_trial *t = plan->trial;
    if (later->bound == &plan->bound)
        return spk_plan_launch_bound(plan, NULL, args, stream);
    if (later->bound->kernel->ops->accepts != NULL && !later->bound->kernel->ops->accepts(later->bound, args))
        return spk_plan_launch_bound(plan, NULL, args, stream);
    if (t->scratch == NULL || (args->workspace != NULL && args->workspace_bytes >= later->bound->workspace_bytes))
        return spk_bound_run(later->bound, args, stream);
    spk_loan loan;
    spk_status status = spk_scratch_borrow(t->scratch, stream, &loan);
    if (status != SPK_OK)
        return is_captured(plan, stream) ? spk_plan_launch_bound(plan, NULL, args, stream) : status;
    args->workspace = loan.memory;
    args->workspace_bytes = later->bound->workspace_bytes;
    status = spk_bound_run(later->bound, args, stream);
    spk_scratch_return(t->scratch, &loan);
    return status;
}

/* Whether the store knows the outcome by now, and the plan runs it: of another plan's trial, or of a tuning. own_class: not that of a near
 * one. */
static bool finds_outcome(const spk_plan *plan, spk_plan_trial *t, bool own_class)
{
    const spk_tuner tuner = spk_context_tuner(plan->context);
    spk_tune_options options = t->options;
    spk_choice choice;
    t->since = spk_epoch_now();
    options.tuning = SPK_TUNING_AHEAD_EACH;
    if (spk_tune_choose(&tuner, &plan->bound.problem, &options, &choice) != SPK_OK ||
        (own_class && (!choice.from_store || choice.of[0] != '\0')))
        return false;
    const bool first = choice.kernel == plan->bound.kernel && memcmp(&choice.params, &plan->bound.params, sizeof choice.params) == 0;
    spk_bound bound = {.kernel = NULL};
    if (!first && spk_tune_bind(&tuner, &plan->bound.problem, &choice, &bound) != SPK_OK)
        return false;
    const bool adopted = adopt(plan, t, first ? NULL : &bound, &choice) == SPK_OK;
    if (!adopted)
        spk_unbind(&bound);
    return adopted;
}

/* The plan that tried may be gone, or no longer used, and have come to no outcome. */
static void take_over(const spk_plan *plan, spk_plan_trial *t)
{
    const spk_tuner tuner = spk_context_tuner(plan->context);
    const spk_choice first = {.kernel = plan->bound.kernel, .params = plan->bound.params};
    bool elsewhere = false;
    t->runs = 0;
    spk_trial_end(&t->trial); /* a single run that it could not make */
    if (spk_trial_begin(&tuner, &plan->bound.problem, &t->options, &first, &t->trial, &elsewhere, &t->seen) == SPK_OK)
        t->waits = elsewhere;
}

static void wait_no_longer(const spk_plan *plan, spk_plan_trial *t)
{
    if (spk_epoch_now().writes != t->since.writes && finds_outcome(plan, t, false))
        t->waits = false;
    if (t->waits && ++t->runs >= LOOK_AGAIN)
        take_over(plan, t);
}

static spk_status run_locked(const spk_plan *plan, spk_plan_trial *t, const spk_args *args, void *stream, bool *done)
{
    if (spk_plan_later_of(plan) != NULL) /* decided while this thread waited for its turn */
        return SPK_OK;
    if (t->waits)
        wait_no_longer(plan, t);
    else if (t->heeds && t->trial != NULL && t->timed == NULL && spk_epoch_now().writes != t->since.writes)
        (void)finds_outcome(plan, t, true); /* the class may have been tuned meanwhile */
    if (spk_plan_later_of(plan) != NULL) {
        spk_trial_end(&t->trial);
        release_room(t);
        return SPK_OK;
    }
    if (t->trial == NULL || spk_trial_waits(t->trial))
        return SPK_OK;
    if (spk_trial_wrong_first(t->trial) != NULL && atomic_exchange(&t->first, FIRST_OUT) != FIRST_OUT) {
        tell_wrong(plan, spk_trial_wrong_first(t->trial));
        spk_epoch_refuted();
    }
    SPK_TRY(take_turn(plan, t, args, stream, done));
    const spk_status status = t->timed == NULL && spk_trial_next(t->trial) == NULL ? settle(plan, t) : SPK_OK;
    return *done ? SPK_OK : status;
}

spk_status spk_plan_launch_in_turn(const spk_plan *plan, spk_args *args, void *stream)
{
    spk_plan_trial *t = plan->trial;
    const spk_plan_later *later = spk_plan_later_of(plan);
    if (later != NULL)
        return run_later(plan, later, args, stream);
    const spk_bound *first = &plan->bound;
    const bool taken = !t->has_spare || first->kernel->ops->accepts == NULL || first->kernel->ops->accepts(first, args);
    if (is_inherited(t) && atomic_load(&t->first) == FIRST_OUT)
        return spk_fail(SPK_ERR_NO_CANDIDATE, "the plan's choice was found wrong before this process was forked: make the plan anew");
    if (!taken || is_inherited(t) || is_captured(plan, stream)) /* the graph's runs are one candidate's */
        return spk_plan_launch_bound(plan, NULL, args, stream);
    if (atomic_load(&t->first) != FIRST_RIGHT)
        pthread_mutex_lock(&t->lock);
    else if (pthread_mutex_trylock(&t->lock) != 0)
        return spk_plan_launch_bound(plan, NULL, args, stream);
    bool done = false;
    const spk_status status = run_locked(plan, t, args, stream, &done);
    const bool out = atomic_load(&t->first) == FIRST_OUT;
    pthread_mutex_unlock(&t->lock);
    if (status != SPK_OK || done)
        return status;
    later = spk_plan_later_of(plan);
    if (later != NULL)
        return run_later(plan, later, args, stream);
    if (out)
        return spk_fail(SPK_ERR_NO_CANDIDATE, "each candidate for this problem failed or gave a wrong result; spk_explain tells how");
    return spk_plan_launch_bound(plan, NULL, args, stream);
}
