/* One case of `check`: its candidates, row by row, into a result of its own. Several threads may be at several cases. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/memory.h"
#include "cli/base/text.h"
#include "cli/check/check.h"
#include "cli/io/messages.h"
#include "cli/io/session.h"

enum { MAX_CHOICES = 1024 };

/* An applicable candidate of a case. */
typedef struct choice {
    char text[160];
    bool needs_finite; /* multiplies zeros it filled in */
} choice;

typedef struct choice_list {
    int count;
    bool finite; /* some need it */
    choice items[MAX_CHOICES];
} choice_list;

/* A case on its way. */
typedef struct work {
    const check_setup *setup;
    const atomic_bool *stop;
    int place;
    check_case c;
    spk_context *context;
    spk_pattern *pattern;
    check_data plain, finite;
    choice_list *list;
    check_result *result;
} work;

/* The context for a number of threads: the case's, unless --threads says otherwise. A GPU's cases share one. */
static int context_for(check_setup *setup, int threads, spk_context **context)
{
    int at = setup->app->threads || setup->wish.gpu ? 0 : threads;
    int code = setup->contexts[at] ? EXIT_DONE : cli_context(setup->app, "", at, &setup->contexts[at]);
    *context = setup->contexts[at];
    return code;
}

int check_setup_workers(check_setup *setup, int *workers)
{
    spk_device_info info = {SPK_SIZED(spk_device_info)};
    spk_context *context = NULL;
    *workers = 1;
    if (!setup->wish.gpu)
        return EXIT_DONE;
    int code = context_for(setup, 0, &context);
    if (code == EXIT_DONE && spk_context_get_device(context, &info) == SPK_OK)
        *workers = info.threads < CHECK_MOST_PLACES ? info.threads : CHECK_MOST_PLACES;
    return code;
}

void check_setup_release(check_setup *setup)
{
    for (int i = 0; i <= CHECK_MAX_THREADS; i++)
        spk_context_destroy(&setup->contexts[i]);
}

/* Whether each word of `words` is one of the text's. */
static bool has_words(const char *text, const char *words)
{
    for (words += strspn(words, " "); *words; words += strcspn(words, " "), words += strspn(words, " ")) {
        size_t length = strcspn(words, " ");
        const char *at = text + strspn(text, " ");
        while (*at && (strcspn(at, " ") != length || strncmp(at, words, length) != 0)) {
            at += strcspn(at, " ");
            at += strspn(at, " ");
        }
        if (!*at)
            return false;
    }
    return true;
}

static bool of_row(const choice *one, const char *row, const char *params)
{
    size_t length = strlen(row);
    if (strncmp(one->text, row, length) != 0 || (one->text[length] != ' ' && one->text[length] != 0))
        return false;
    return !params || has_words(one->text + length, params);
}

static bool of_a_row(const check_setup *setup, const choice *one)
{
    for (int i = 0; i < setup->row_count; i++)
        if (of_row(one, setup->rows[i].name, setup->params))
            return true;
    return false;
}

/* Every candidate of the rows that can compute the case. */
static spk_status list_choices(work *w)
{
    const operation_struct given = check_given(&w->c, w->c.assume_finite);
    spk_report *list = NULL;
    spk_report_info info = {SPK_SIZED(spk_report_info)};
    spk_status status = spk_list_candidates(w->context, w->pattern, &given, NULL, &list);
    if (status == SPK_OK)
        status = spk_report_get_info(list, &info);
    for (int i = 0; i < info.candidate_count && status == SPK_OK && w->list->count < MAX_CHOICES; i++) {
        spk_candidate_info c = {SPK_SIZED(spk_candidate_info)};
        status = spk_report_get_candidate(list, i, &c);
        if (status != SPK_OK || c.status == SPK_CANDIDATE_NOT_APPLICABLE)
            continue;
        choice *one = &w->list->items[w->list->count];
        one->needs_finite = c.status == SPK_CANDIDATE_NOT_ELIGIBLE;
        snprintf(one->text, sizeof(one->text), "%s%s%s", c.name, c.params[0] ? " " : "", c.params);
        if (of_a_row(w->setup, one)) {
            w->list->count++;
            w->list->finite = w->list->finite || one->needs_finite;
        }
    }
    spk_report_destroy(&list);
    return status;
}

/* The command that runs a candidate on a case again. */
static void replay_text(const work *w, const char *text, char *out, size_t size)
{
    const cli *app = w->setup->app;
    char threads[32] = "", alike[32] = "";
    size_t row = strcspn(text, " ");
    bool params = text[row] == ' ';
    if (app->threads) /* else the case has its own number */
        snprintf(threads, sizeof(threads), " --threads %lld", (long long)app->threads);
    if (w->setup->wish.alike != CHECK_ALIKE)
        snprintf(alike, sizeof(alike), " --alike %lld", (long long)w->setup->wish.alike);
    snprintf(out, size, "sparsek check%s%s --kernel %.*s --seed %llu --case %lld%s%s%s%s%s", app->device ? " --device " : "",
             app->device ? app->device : "", (int)row, text, (unsigned long long)w->c.seed, (long long)w->c.number,
             params ? " --params \"" : "", params ? text + row + 1 : "", params ? "\"" : "", threads, alike);
}

static void note_failure(work *w, int row, const char *text, const char *replay, const char *why)
{
    check_result *result = w->result;
    result->rows[row].failures++;
    if (result->message_count == CHECK_MAX_FAILURES)
        return;
    char *what = check_text(&w->c);
    result->messages[result->message_count++] =
        cli_format("case %lld, %s: %s\n  %s\n  replay: %s", (long long)w->c.number, text, why, what, replay);
    free(what);
}

static void try_candidate(work *w, int row, const choice *one, bool again)
{
    char replay[320], crash[512];
    check_outcome outcome;
    check_result_row *result = &w->result->rows[row];
    const check_data *data = one->needs_finite ? &w->finite : &w->plain;
    replay_text(w, one->text, replay, sizeof(replay));
    snprintf(crash, sizeof(crash), "CRASHED case %lld, %s\n  replay: %s\n", (long long)w->c.number, one->text, replay);
    check_running(w->place, crash);
    check_candidate(data, w->setup->rows[row].kind, one->text, again, &outcome);
    w->result->lost = outcome.lost;
    if (outcome.lost)
        return; /* by another's doing */
    if (outcome.unproved) {
        w->result->unproved++;
        return;
    }
    if (outcome.refused)
        return;
    if (outcome.no_room) {
        result->no_room++;
        snprintf(result->why, sizeof(result->why), "%s", outcome.why);
        return;
    }
    result->ran = true;
    result->hostile = data->hostile;
    result->worst = outcome.error > result->worst ? outcome.error : result->worst;
    if (outcome.failed)
        note_failure(w, row, one->text, replay, outcome.why);
}

static bool goes_on(const work *w)
{
    return !w->result->lost && !atomic_load(w->stop);
}

/* One at random: on a GPU the same for all cases of a family, as far as it can compute them. */
static int pick_one(const work *w, random_state *r, const int *fitting, int count)
{
    int best = (int)random_between(r, 0, count - 1);
    uint64_t highest = 0;
    for (int i = 0; w->setup->wish.gpu && i < count; i++) {
        random_state family = random_for(w->c.seed, check_family(&w->setup->wish, w->c.number), w->list->items[fitting[i]].text);
        const uint64_t height = random_next(&family);
        best = height >= highest ? i : best;
        highest = height >= highest ? height : highest;
    }
    return best;
}

/* The candidates of one row on the case: one of them at random, or all. */
static void check_row_on(work *w, int row)
{
    const char *name = w->setup->rows[row].name;
    int fitting[MAX_CHOICES], count = 0;
    for (int i = 0; i < w->list->count; i++)
        if (of_row(&w->list->items[i], name, w->setup->params))
            fitting[count++] = i;
    if (count == 0)
        return;
    random_state r = random_for(w->c.seed, (uint64_t)w->c.number, name);
    const int pick = pick_one(w, &r, fitting, count);
    bool again = random_chance(&r, 0.25);
    for (int i = 0; i < count && goes_on(w); i++)
        if (w->setup->all_params || i == pick)
            try_candidate(w, row, &w->list->items[fitting[i]], again);
}

static void run(work *w)
{
    check_result *result = w->result;
    spk_status status = SPK_OK;
    check_draw(w->setup->seed, w->c.number, &w->setup->wish, &w->c);
    result->overhang = w->c.overhang;
    result->shifted = check_is_shifted(&w->c);
    result->code = context_for((check_setup *)w->setup, w->c.threads, &w->context);
    if (result->code != EXIT_DONE)
        return;
    status = check_pattern_make(&w->c, w->context, &w->pattern);
    if (status == SPK_OK)
        status = check_lay_out(&w->c, w->context, w->pattern);
    if (status == SPK_OK)
        status = list_choices(w);
    if (status == SPK_OK && w->list->count > 0)
        status = check_data_make(&w->c, w->context, w->pattern, w->c.assume_finite, &w->plain);
    if (status == SPK_OK && w->list->finite)
        status = check_data_make(&w->c, w->context, w->pattern, true, &w->finite);
    if (status != SPK_OK) {
        char *text = check_text(&w->c);
        result->code = cli_exit_code(status);
        result->trouble = cli_format("case %lld (%s): %s", (long long)w->c.number, text, spk_last_error(w->context));
        free(text);
    }
    for (int i = 0; status == SPK_OK && i < w->setup->row_count && goes_on(w); i++)
        check_row_on(w, i);
    result->whole = status == SPK_OK && goes_on(w);
}

check_result *check_one(const check_setup *setup, int place, int64_t number, const atomic_bool *stop)
{
    work w = {.setup = setup, .stop = stop, .place = place, .c = {.number = number}};
    w.list = cli_alloc(1, sizeof(*w.list));
    w.result = cli_alloc(1, sizeof(*w.result));
    run(&w);
    check_data_release(&w.plain);
    check_data_release(&w.finite);
    spk_pattern_destroy(&w.pattern);
    check_release(&w.c);
    free(w.list);
    return w.result;
}

void check_result_release(check_result **result)
{
    for (int i = 0; i < (*result)->message_count; i++)
        free((*result)->messages[i]);
    free((*result)->trouble);
    free(*result);
    *result = NULL;
}
