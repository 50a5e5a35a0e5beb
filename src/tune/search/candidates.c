/* The candidates of a problem: every row of the table with every choice of its tunables, what may win among them, and what the cost model
 * makes of them. Nothing runs here. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernel/threads.h"
#include "op/operation.h"
#include "tune/search/search.h"

const spk_kernel *spk_tuner_table(const spk_tuner *tuner, int *count)
{
    const spk_kernel *table = tuner->table;
    if (table != NULL)
        *count = tuner->table_count;
    else
        *count = spk_kernels(&table);
    return table;
}

const spk_kernel *spk_tuner_kernel(const spk_tuner *tuner, const char *name)
{
    int count = 0;
    const spk_kernel *table = spk_tuner_table(tuner, &count);
    for (int i = 0; i < count; i++)
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    return NULL;
}

void spk_fit_threads(const spk_tuner *tuner, const spk_problem *problem, const spk_kernel *kernel, spk_params *params)
{
    const spk_device *device = tuner->device;
    const int at = spk_serial_tunable(kernel);
    const char *why = NULL;
    if (at < 0 || params->v[at] != 0)
        return;
    spk_params alone = *params;
    alone.v[at] = 1;
    if (!spk_serial_is_for_load(kernel, &alone, problem) && spk_candidate_applicable(kernel, &alone, problem, device, &why) &&
        (spk_predict(kernel, &alone, problem, device) < spk_predict(kernel, params, problem, device) || spk_is_busy(tuner)))
        *params = alone;
}

spk_status spk_choice_parse(const spk_tuner *tuner, const spk_problem *problem, const char *text, const spk_kernel **kernel,
                            spk_params *params)
{
    char name[64];
    text += strspn(text, " ");
    size_t length = strcspn(text, " ");
    snprintf(name, sizeof name, "%.*s", length < sizeof name ? (int)length : (int)sizeof name - 1, text);
    const spk_kernel *found = spk_tuner_kernel(tuner, name);
    if (found == NULL) {
        int count = 0;
        const spk_kernel *table = spk_tuner_table(tuner, &count);
        return spk_no_such_kernel(table, count, problem->op->id, "choice", text, name);
    }
    SPK_TRY(spk_params_parse(found, text + length, params));
    if (!spk_serial_is_named(text + length))
        spk_fit_threads(tuner, problem, found, params);
    *kernel = found;
    return SPK_OK;
}

static bool in_list(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        at += strspn(at, " ");
        size_t end = strcspn(at, ", ");
        if (end == length && strncmp(at, name, length) == 0)
            return true;
    }
    return false;
}

static bool is_empty(const char *list)
{
    return list == NULL || list[0] == '\0';
}

bool spk_kernel_allowed(const spk_kernel *kernel, const spk_tune_options *options, const char **why)
{
    *why = NULL;
    if (!is_empty(options->only) && !in_list(options->only, kernel->name))
        *why = "the options allow only others";
    else if (!is_empty(options->exclude) && in_list(options->exclude, kernel->name))
        *why = "the options exclude it";
    return *why == NULL;
}

bool spk_is_restricted(const spk_tune_options *options)
{
    return !is_empty(options->only) || !is_empty(options->exclude);
}

/* What holds of all candidates of a row alike. */
static bool row_may_win(const spk_problem *problem, const spk_tune_options *options, const spk_kernel *kernel, const char **why)
{
    return spk_kernel_allowed(kernel, options, why) && spk_candidate_eligible(kernel, problem, why);
}

bool spk_may_win(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, const spk_kernel *kernel,
                 const spk_params *params, const char **why)
{
    return spk_candidate_applicable(kernel, params, problem, tuner->device, why) && row_may_win(problem, options, kernel, why);
}

double spk_predict(const spk_kernel *kernel, const spk_params *params, const spk_problem *problem, const spk_device *device)
{
    double us = spk_candidate_predict_us(kernel, params, problem, device);
    if (us > 0 && isfinite(us))
        return us;
    double gflops = device->peak_gflops_f32 > 0 ? device->peak_gflops_f32 : 1;
    return 1 + spk_problem_flops(problem) / (50.0 * gflops); /* a twentieth of the peak */
}

static const char why_untried[] = "its turn never came";
static const char why_for_load[] = "one thread is tried for so much work where other programs use the processors";
const char spk_why_held_back[] = "a reference: chosen where no other kernel can run";

static void look_at(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, spk_contender *c)
{
    const char *why = NULL;
    c->status = SPK_CANDIDATE_PRUNED;
    c->error = -1;
    c->batch = 1;
    if (!spk_candidate_applicable(c->kernel, &c->params, problem, tuner->device, &why)) {
        c->status = SPK_CANDIDATE_NOT_APPLICABLE;
    } else {
        c->predicted_us = spk_predict(c->kernel, &c->params, problem, tuner->device);
        c->eligible = row_may_win(problem, options, c->kernel, &why);
        if (c->eligible && spk_serial_is_for_load(c->kernel, &c->params, problem)) {
            c->eligible = false;
            c->for_load = true;
            why = why_for_load;
        }
        c->in_search = c->eligible;
        if (!c->eligible)
            c->status = SPK_CANDIDATE_NOT_ELIGIBLE;
        else
            why = why_untried;
    }
    snprintf(c->why, sizeof c->why, "%s", why);
}

/* How many candidates a row has here: those for another kind of device, or another operation, are none. */
static int candidates_of(const spk_tuner *tuner, const spk_problem *problem, const spk_kernel *kernel)
{
    return kernel->operation == problem->op->id && kernel->backend == tuner->device->backend->id ? spk_params_count(kernel) : 0;
}

/* Contenders, and how many there is memory for. */
typedef struct gathered {
    spk_contender *all;
    int count, capacity;
} gathered;

static spk_status next(const spk_tuner *tuner, gathered *g, spk_contender **contender)
{
    if (g->count == g->capacity) {
        const int capacity = g->capacity > 0 ? 2 * g->capacity : 64;
        SPK_TRY(spk_realloc(tuner->mem, &g->all, (size_t)capacity, sizeof *g->all));
        g->capacity = capacity;
    }
    *contender = &g->all[g->count++];
    **contender = (spk_contender){.kernel = NULL};
    return SPK_OK;
}

static spk_status gather(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, bool only_eligible,
                         gathered *g)
{
    int rows = 0, order = 0;
    const char *why = NULL;
    const spk_kernel *table = spk_tuner_table(tuner, &rows);
    for (int row = 0; row < rows; row++) {
        const spk_kernel *kernel = &table[row];
        const int candidates = candidates_of(tuner, problem, kernel);
        spk_tunables tunables;
        if (candidates > 0)
            spk_tunables_read(kernel, &tunables);
        for (int i = 0; i < candidates; i++, order++) {
            const spk_params params = spk_tunables_params(&tunables, i);
            spk_contender *c = NULL;
            if (only_eligible && !spk_may_win(tuner, problem, options, kernel, &params, &why))
                continue;
            SPK_TRY(next(tuner, g, &c));
            c->kernel = kernel;
            c->row = row;
            c->order = order;
            c->params = params;
            look_at(tuner, problem, options, c);
        }
    }
    return SPK_OK;
}

bool spk_stands_back(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, const spk_kernel *kernel)
{
    int rows = 0;
    const char *why = NULL;
    const spk_kernel *table = spk_tuner_table(tuner, &rows);
    for (int row = 0; row < rows && kernel->kind == SPK_KIND_REFERENCE; row++) {
        const int candidates = table[row].kind != SPK_KIND_REFERENCE ? candidates_of(tuner, problem, &table[row]) : 0;
        spk_tunables tunables;
        if (candidates > 0)
            spk_tunables_read(&table[row], &tunables);
        for (int i = 0; i < candidates; i++) {
            const spk_params params = spk_tunables_params(&tunables, i);
            if (spk_may_win(tuner, problem, options, &table[row], &params, &why))
                return true;
        }
    }
    return false;
}

/* On a busy machine a single thread that works without waiting for others may be the fastest of all for once, and a machine that is never
 * quiet would go on with it. */
static void hold_references_back(spk_contender *contenders, int count)
{
    bool others = false;
    for (int i = 0; i < count; i++)
        others = others || (contenders[i].eligible && contenders[i].kernel->kind != SPK_KIND_REFERENCE);
    for (int i = 0; i < count && others; i++) {
        spk_contender *c = &contenders[i];
        if (!c->eligible || c->kernel->kind != SPK_KIND_REFERENCE)
            continue;
        c->eligible = c->in_search = false;
        c->held_back = true;
        c->status = SPK_CANDIDATE_NOT_ELIGIBLE;
        snprintf(c->why, sizeof c->why, "%s", spk_why_held_back);
    }
}

void spk_contenders_admit_for_load(spk_contender *contenders, int count)
{
    for (int i = 0; i < count; i++) {
        spk_contender *c = &contenders[i];
        if (!c->for_load)
            continue;
        c->for_load = false;
        c->eligible = c->in_search = true;
        c->status = SPK_CANDIDATE_PRUNED;
        snprintf(c->why, sizeof c->why, "%s", why_untried);
    }
}

bool spk_contenders_readmit(spk_contender *contenders, int count)
{
    bool any = false;
    for (int i = 0; i < count; i++) {
        spk_contender *c = &contenders[i];
        if (!c->held_back)
            continue;
        c->held_back = false;
        if (c->left_out || (c->status != SPK_CANDIDATE_NOT_ELIGIBLE && c->status != SPK_CANDIDATE_PRUNED)) /* found out already */
            continue;
        any = c->eligible = c->in_search = true;
        c->status = SPK_CANDIDATE_PRUNED;
        snprintf(c->why, sizeof c->why, "%s", why_untried);
    }
    return any;
}

static spk_status make(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, bool only_eligible,
                       int capacity, spk_contender **contenders, int *count)
{
    gathered g = {.capacity = capacity};
    spk_status status = capacity > 0 ? spk_alloc(tuner->mem, (size_t)capacity, sizeof *g.all, &g.all) : SPK_OK;
    if (status == SPK_OK)
        status = gather(tuner, problem, options, only_eligible, &g);
    if (status != SPK_OK) {
        spk_free(tuner->mem, g.all);
        return status;
    }
    hold_references_back(g.all, g.count);
    *contenders = g.all;
    *count = g.count;
    return SPK_OK;
}

spk_status spk_contenders_make(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options,
                               spk_contender **contenders, int *count)
{
    int rows = 0, total = 0;
    const spk_kernel *table = spk_tuner_table(tuner, &rows);
    for (int row = 0; row < rows; row++)
        total += candidates_of(tuner, problem, &table[row]);
    return make(tuner, problem, options, false, total, contenders, count);
}

spk_status spk_contenders_eligible(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options,
                                   spk_contender **contenders, int *count)
{
    return make(tuner, problem, options, true, 0, contenders, count);
}

void spk_contenders_release(const spk_tuner *tuner, spk_contender **contenders, int count)
{
    spk_contender *all = *contenders;
    *contenders = NULL;
    for (int i = 0; all != NULL && i < count; i++) {
        spk_contender_unbind(&all[i]);
        spk_free(tuner->mem, all[i].samples);
    }
    spk_free(tuner->mem, all);
}

int spk_contenders_predicted_best(const spk_contender *contenders, int count)
{
    int best = -1;
    for (int i = 0; i < count; i++) {
        const spk_contender *c = &contenders[i];
        if (!c->eligible)
            continue;
        const spk_contender *b = best >= 0 ? &contenders[best] : NULL;
        if (b == NULL || c->predicted_us < b->predicted_us ||
            (c->predicted_us == b->predicted_us && c->kernel->priority > b->kernel->priority))
            best = i;
    }
    return best;
}

/* What a status does to a candidate's chances, in words. */
static const char *status_words(spk_candidate_status status)
{
    static const char *const words[] = {"ok", "wrong", "failed", "timed out", "not measured", "not eligible", "not applicable"};
    return words[status];
}

void spk_contenders_reasons(const spk_contender *contenders, int count, const spk_tune_options *options, bool references, char *text,
                            size_t size)
{
    enum { MORE = 48 };
    const int room = (int)size - MORE;
    int used = 0, others = 0;
    const char *last = "", *why = NULL;
    text[0] = '\0';
    for (int i = 0; i < count; i++) {
        const spk_contender *c = &contenders[i];
        /* the first of a row speaks for the others */
        if (strcmp(last, c->kernel->name) == 0 || !spk_kernel_allowed(c->kernel, options, &why) ||
            (!references && c->kernel->kind == SPK_KIND_REFERENCE))
            continue;
        last = c->kernel->name;
        const int left_bytes = room - used;
        const int length = snprintf(text + used, (size_t)left_bytes, "%s%s: %s%s%s", used > 0 ? "; " : "", c->kernel->name,
                                    status_words(c->status), c->why[0] != '\0' ? ", " : "", c->why);
        if (length >= left_bytes || others > 0) { /* reasons are told whole, or not at all */
            text[used] = '\0';
            others++;
        } else {
            used += length;
        }
    }
    if (others > 0)
        snprintf(text + used, MORE, "; and %d others", others);
}

spk_status spk_no_candidate(const spk_contender *contenders, int count, const spk_tune_options *options)
{
    char text[608];
    spk_contenders_reasons(contenders, count, options, true, text, sizeof text);
    if (spk_is_restricted(options))
        return spk_fail(SPK_ERR_NO_CANDIDATE, "no kernel is left (only = \"%.60s\", exclude = \"%.60s\")%s%s",
                        options->only != NULL ? options->only : "", options->exclude != NULL ? options->exclude : "",
                        text[0] != '\0' ? ": " : "", text);
    return spk_fail(SPK_ERR_NO_CANDIDATE, "no kernel is left: %s", text);
}
