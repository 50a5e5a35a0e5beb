/* sparsek check: every kernel row against the oracle on random problems; resumable. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "check_state.h"
#include "json.h"
#include "output.h"
#include "progress.h"
#include "result.h"
#include "stats.h"
#include "table.h"
#include "term.h"

enum { MAX_THREADS = 4, MAX_CHOICES = 1024 };

static const char about[] =
    "Differential test: draws random problems and runs every row of the kernel table that can compute them, with one\n"
    "random combination of its parameters each, into poisoned memory between guards, and compares with the oracle at\n"
    "the default tolerance. The problems: sizes 0 to 300, blocks 1 to 64 (rarely 256) square and not, ragged edges, empty\n"
    "rows and matrices, n from 0 to 200, all dtypes, op N and T, all layouts and leading dimensions, all epilogues,\n"
    "alpha and beta with 0, D that is C, int32 and int64 indices, 1 to 4 threads, inf and NaN where no result may see\n"
    "them. A failure prints the command that replays it; exit code 1.";

typedef struct check_flags {
    int64_t cases, only_case; /* only_case: -1, or the one to run */
    uint64_t seed;
    const char *kernel, *params, *resume;
    int all_params;
} check_flags;

typedef struct series {
    cli *app;
    const check_flags *flags;
    check_state state;
    resume file;
    spk_context *contexts[MAX_THREADS + 1];
} series;

/* An applicable candidate of a case. */
typedef struct choice {
    char text[160];
    bool needs_finite; /* multiplies zeros it filled in */
} choice;

typedef struct choice_list {
    int count;
    choice items[MAX_CHOICES];
} choice_list;

static bool holds(const char *list, size_t list_length, const char *word, size_t length)
{
    for (const char *at = list; at < list + list_length; at += strcspn(at, ", ") + 1)
        if (strcspn(at, ", ") == length && strncmp(at, word, length) == 0)
            return true;
    return false;
}

/* Whether "NV=2 PACK=1" is a choice of "NV=2,3 PACK=0,1". */
static bool is_choice(const char *params, const char *tunables)
{
    while (*tunables && *params) {
        size_t all = strcspn(tunables, " "), name = strcspn(tunables, "=") + 1, own = strcspn(params, " ");
        if (own < name || strncmp(params, tunables, name) != 0 || !holds(tunables + name, all - name, params + name, own - name))
            return false;
        tunables += all + (tunables[all] == ' ');
        params += own + (params[own] == ' ' && params[own + 1] != 0);
    }
    return !*tunables && !*params;
}

static int check_params(const cli *app, const check_flags *f)
{
    for (int i = 0; f->params && i < spk_kernel_count(); i++) {
        spk_kernel_info info = {SPK_SIZED(spk_kernel_info)};
        if (spk_kernel_get(i, &info) != SPK_OK || !holds(f->kernel, strlen(f->kernel), info.name, strlen(info.name)))
            continue;
        const char *tunables = info.tunables ? info.tunables : "";
        if (!is_choice(f->params, tunables))
            return cli_fail(app, EXIT_USAGE, "--params: '%s' is no combination of %s, which takes %s%s", f->params, info.name,
                            tunables[0] ? "one value of each of " : "none", tunables);
    }
    return ARGS_GO;
}

static int parse(cli *app, check_flags *f, int argc, char **argv)
{
    args a = {.command = "check", .synopsis = "[options]", .about = about};
    a.examples = "sparsek check --cases 300 --seed 7\nsparsek check --kernel spmm_portable --cases 50 --all-params\n";
    *f = (check_flags){.cases = 300, .only_case = -1, .seed = UINT64_MAX};
    const args_option options[] = {
        {"cases", 0, ARGS_INT, &f->cases, "N", 1, 100000000, "random problems (default: 300)"},
        {"seed", 0, ARGS_SEED, &f->seed, NULL, 0, 0, "seed of the series (default: drawn, and printed)"},
        {"case", 0, ARGS_INT, &f->only_case, "I", 0, 100000000, "only case I of the series"},
        {"kernel", 0, ARGS_KERNELS, &f->kernel, "NAMES", 0, 0, "only these rows (the same as --only)"},
        {"params", 0, ARGS_TEXT, &f->params, "TEXT", 0, 0, "only this combination of parameters, such as \"NV=2 PACK=1\"; needs --kernel"},
        {"all-params", 0, ARGS_FLAG, &f->all_params, NULL, 0, 0, "every combination of parameters of every row"},
        {"resume", 0, ARGS_TEXT, &f->resume, "FILE", 0, 0, "keep the state in FILE, and go on from there where it exists"},
    };
    args_add(&a, "Check", options, (int)(sizeof(options) / sizeof(*options)));
    cli_common_options(&a, app);
    int code = args_parse(&a, argc, argv);
    if (code != ARGS_GO)
        return code;
    if (f->kernel && app->only)
        return cli_fail(app, EXIT_USAGE, "--kernel and --only are the same: give one");
    if (f->kernel)
        app->only = f->kernel;
    if (f->params && !f->kernel)
        return cli_fail(app, EXIT_USAGE, "--params needs --kernel");
    if (f->params && f->all_params)
        return cli_fail(app, EXIT_USAGE, "--params and --all-params exclude each other");
    if (f->only_case >= 0 && f->seed == UINT64_MAX)
        return cli_fail(app, EXIT_USAGE, "--case needs --seed");
    if (f->only_case >= 0 && f->resume)
        return cli_fail(app, EXIT_USAGE, "--case and --resume exclude each other");
    return check_params(app, f);
}

/* The context for a number of threads: the case's, unless --threads says otherwise. */
static int context_for(series *s, int threads, spk_context **context)
{
    int at = s->app->threads ? 0 : threads;
    int code = s->contexts[at] ? EXIT_DONE : cli_context(s->app, "", at, &s->contexts[at]);
    *context = s->contexts[at];
    return code;
}

/* Every candidate that can compute the case. */
static spk_status list_choices(const check_data *d, choice_list *out)
{
    spk_tune_options options = check_options(d->c, d->finite);
    spk_report *list = NULL;
    spk_report_info info = {SPK_SIZED(spk_report_info)};
    spk_status status = spk_list_spmm(d->context, d->pattern, &d->c->spmm, &options, &list);
    if (status == SPK_OK)
        status = spk_report_get_info(list, &info);
    out->count = 0;
    for (int i = 0; i < info.candidate_count && status == SPK_OK; i++) {
        spk_candidate_info c = {SPK_SIZED(spk_candidate_info)};
        status = spk_report_candidate(list, i, &c);
        if (status != SPK_OK || c.status == SPK_CANDIDATE_NOT_APPLICABLE || out->count == MAX_CHOICES)
            continue;
        choice *one = &out->items[out->count++];
        one->needs_finite = c.status == SPK_CANDIDATE_NOT_ELIGIBLE;
        snprintf(one->text, sizeof(one->text), "%s%s%s", c.name, c.params[0] ? " " : "", c.params);
    }
    spk_report_destroy(&list);
    return status;
}

static bool of_row(const choice *one, const char *row, const char *params)
{
    size_t length = strlen(row);
    if (strncmp(one->text, row, length) != 0 || (one->text[length] != ' ' && one->text[length] != 0))
        return false;
    return !params || strcmp(one->text[length] ? one->text + length + 1 : "", params) == 0;
}

/* What is being run, for the message of a crash: a kernel that faults takes the program with it. */
static char running[512];

static void on_crash(int number)
{
    static volatile sig_atomic_t crashes;
    while (crashes++) /* another thread is telling */
        pause();
    if (write(STDERR_FILENO, running, strlen(running)) < 0)
        _exit(128 + number);
    signal(number, SIG_DFL);
    raise(number);
}

static void catch_crashes(void)
{
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
    struct sigaction old;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL) /* a sanitizer's own stays */
            signal(numbers[i], on_crash);
}

/* The command that runs a candidate on a case again. */
static void replay_text(const series *s, const check_case *c, const char *text, char *out, size_t size)
{
    char threads[32] = "";
    size_t row = strcspn(text, " ");
    bool params = text[row] == ' ';
    if (s->app->threads) /* else the case has its own number */
        snprintf(threads, sizeof(threads), " --threads %lld", (long long)s->app->threads);
    snprintf(out, size, "sparsek check%s%s --kernel %.*s --seed %llu --case %lld%s%s%s%s", s->app->device ? " --device " : "", s->app->device ? s->app->device : "", (int)row, text, (unsigned long long)c->seed, (long long)c->number,
             params ? " --params \"" : "", params ? text + row + 1 : "", params ? "\"" : "", threads);
}

static void tell_failure(series *s, check_row *row, const check_case *c, const char *text, const char *why)
{
    char replay[320];
    row->failures++;
    if (s->state.failures++ >= CHECK_MAX_FAILURES)
        return;
    char *what = check_text(c);
    replay_text(s, c, text, replay, sizeof(replay));
    char *message = cli_format("case %lld, %s: %s\n  %s\n  replay: %s", (long long)c->number, text, why, what, replay);
    progress_clear();
    fprintf(stderr, "FAILED %s\n", message);
    json_push(s->state.failed, json_text(message));
    free(message);
    free(what);
}

/* The candidates of one row on one case: one of them at random, or all. */
static void check_row_on(series *s, check_row *row, const choice_list *list, const check_data *plain, const check_data *finite)
{
    const check_case *c = plain->c;
    int fitting[MAX_CHOICES], count = 0;
    for (int i = 0; i < list->count; i++)
        if (of_row(&list->items[i], row->name, s->flags->params))
            fitting[count++] = i;
    if (count == 0) {
        row->not_applicable++;
        return;
    }
    random_state r = random_for(c->seed, (uint64_t)c->number, row->name);
    int pick = (int)random_between(&r, 0, count - 1);
    bool again = random_chance(&r, 0.25);
    row->cases++;
    for (int i = 0; i < count; i++) {
        const choice *one = &list->items[fitting[i]];
        char replay[320];
        check_outcome outcome;
        if (!s->flags->all_params && i != pick)
            continue;
        replay_text(s, c, one->text, replay, sizeof(replay));
        snprintf(running, sizeof(running), "CRASHED case %lld, %s\n  replay: %s\n", (long long)c->number, one->text, replay);
        check_candidate(one->needs_finite ? finite : plain, one->text, again, &outcome);
        row->worst = outcome.error > row->worst ? outcome.error : row->worst;
        if (outcome.failed)
            tell_failure(s, row, c, one->text, outcome.why);
    }
}

static int check_case_number(series *s, int64_t number)
{
    check_case c;
    check_data plain = {0}, finite = {0};
    spk_context *context = NULL;
    check_draw(s->state.seed, number, s->app->device && strncmp(s->app->device, "cuda", 4) == 0, &c);
    choice_list *list = cli_alloc(1, sizeof(*list));
    int code = context_for(s, c.threads, &context);
    spk_status status = SPK_OK;
    if (code == EXIT_DONE)
        status = check_data_make(&c, context, c.assume_finite, &plain);
    if (code == EXIT_DONE && status == SPK_OK)
        status = list_choices(&plain, list);
    for (int i = 0; code == EXIT_DONE && status == SPK_OK && i < list->count && !finite.c; i++)
        if (list->items[i].needs_finite)
            status = check_data_make(&c, context, true, &finite);
    for (int i = 0; code == EXIT_DONE && status == SPK_OK && i < s->state.row_count; i++)
        check_row_on(s, &s->state.rows[i], list, &plain, &finite);
    if (status != SPK_OK) {
        char *text = check_text(&c), *where = cli_format("case %lld (%s)", (long long)number, text);
        code = cli_status(s->app, context, status, where);
        free(where);
        free(text);
    }
    free(list);
    check_data_release(&plain);
    check_data_release(&finite);
    check_release(&c);
    return code;
}

/* Runs the cases to come; saves now and then. */
static int run_series(series *s)
{
    const check_flags *f = s->flags;
    double saved_at = stats_now();
    int code = EXIT_DONE;
    int64_t end = f->only_case >= 0 ? f->only_case + 1 : f->cases;
    for (; s->state.next < end && code == EXIT_DONE && !cli_interrupted(); s->state.next++) {
        progress_step(s->app, s->state.next, end, "checking");
        code = check_case_number(s, s->state.next);
        if (code == EXIT_DONE && f->resume && stats_now() - saved_at > 2) {
            s->state.next++; /* this case is done */
            code = check_state_save(s->app, &s->file, &s->state);
            s->state.next--;
            saved_at = stats_now();
        }
    }
    if (f->resume && code == EXIT_DONE)
        code = check_state_save(s->app, &s->file, &s->state);
    progress_clear();
    if (code == EXIT_DONE && cli_interrupted())
        return cli_status(s->app, NULL, SPK_ERR_INTERRUPTED, NULL);
    return code;
}

static void print_summary(const series *s, double seconds)
{
    const table_column columns[] = {{"kernel", false, 0, false}, {"kind", false, 1, false}, {"cases", true, 3, false}, {"not applicable", true, 2, false}, {"failures", true, 0, false}, {"worst error / tolerance", true, 0, false}};
    table *t = table_make(columns, 6);
    for (int i = 0; i < s->state.row_count; i++) {
        const check_row *row = &s->state.rows[i];
        table_row(t, row->failures ? TABLE_BAD : row->cases ? TABLE_PLAIN : TABLE_FAINT);
        table_cell(t, 0, "%s", row->name);
        table_cell(t, 1, "%s", result_kind_name(row->kind));
        table_cell(t, 2, "%lld", (long long)row->cases);
        table_cell(t, 3, "%lld", (long long)row->not_applicable);
        table_cell(t, 4, "%lld", (long long)row->failures);
        if (row->cases)
            table_cell(t, 5, "%.3f", row->worst);
    }
    table_print(t, 0);
    table_release(&t);
    printf("\n%lld cases, seed %llu, %.1f s: %lld failures\n", (long long)(s->flags->only_case >= 0 ? 1 : s->state.next), (unsigned long long)s->state.seed, seconds,
           (long long)s->state.failures);
}

static int finish(series *s, double seconds, int code)
{
    if (cli_talks(s->app))
        print_summary(s, seconds);
    json_t *root = json_envelope(s->app, check_state_rows(&s->state));
    json_put(root, "seed", json_integer((json_int_t)s->state.seed));
    json_put(root, "cases", json_integer(s->flags->only_case >= 0 ? 1 : s->state.next));
    json_put(root, "failures", json_integer(s->state.failures));
    json_put(root, "failed", json_incref(s->state.failed));
    json_put(root, "seconds", json_number(seconds));
    return json_finish(s->app, root, code == EXIT_DONE && s->state.failures ? EXIT_SHORT : code);
}

int cmd_check(cli *app, int argc, char **argv)
{
    check_flags f;
    int code = parse(app, &f, argc, argv);
    if (code != ARGS_GO)
        return code;
    series s = {.app = app, .flags = &f};
    json_t *settings = json_object();
    json_put(settings, "only", json_text(app->only));
    json_put(settings, "exclude", json_text(app->exclude));
    json_put(settings, "params", json_text(f.params));
    json_put(settings, "all-params", json_boolean(f.all_params));
    json_put(settings, "threads", json_integer(app->threads));
    s.file = resume_make(f.resume, "sparsek check", f.seed, settings);
    check_state_make(app, s.file.seed, &s.state);
    code = f.resume ? output_check(app, f.resume) : EXIT_DONE;
    if (code == EXIT_DONE && s.state.row_count == 0)
        code = cli_fail(app, EXIT_USAGE, "--only and --exclude leave no kernel");
    if (code == EXIT_DONE && f.resume)
        code = check_state_load(app, &s.file, &s.state);
    if (code == EXIT_DONE)
        code = cli_open(app);
    if (code == EXIT_DONE) {
        double started = stats_now();
        catch_crashes();
        if (f.only_case >= 0)
            s.state.next = f.only_case;
        code = run_series(&s);
        if (code == EXIT_DONE || code == EXIT_INTERRUPTED)
            code = finish(&s, stats_now() - started, code);
    }
    for (int i = 0; i <= MAX_THREADS; i++)
        spk_context_destroy(&s.contexts[i]);
    check_state_release(&s.state);
    resume_release(&s.file);
    return code;
}
