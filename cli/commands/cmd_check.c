/* sparsek check: every kernel row against the oracle on random problems; resumable. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "cli/args/command.h"
#include "cli/base/clock.h"
#include "cli/base/ordered.h"
#include "cli/base/table.h"
#include "cli/base/term.h"
#include "cli/base/text.h"
#include "cli/check/check.h"
#include "cli/commands/commands.h"
#include "cli/io/json.h"
#include "cli/io/messages.h"
#include "cli/io/output.h"
#include "cli/io/progress.h"
#include "cli/io/session.h"
#include "cli/io/signals.h"
#include "cli/result/result.h"

static const char about[] =
    "Differential test: draws random problems and runs every row of the kernel table that can compute them, with one\n"
    "random combination of its parameters each, into poisoned memory between guards, and compares with the oracle at\n"
    "the default tolerance. The problems: sizes 0 to 300, blocks 1 to 64 (rarely 256) square and not, ragged edges, empty\n"
    "rows and matrices, n from 0 to 200, all dtypes, op N and T, all layouts and leading dimensions, all epilogues,\n"
    "alpha and beta with 0, D that is C, int32 and int64 indices, 1 to 4 threads, inf and NaN where no result may see\n"
    "them; on a GPU larger ones too, and pointers of little alignment. They are of the\n"
    "operations that the rows compute, most of them SpMM; a fifth are batches of 2 to 20 items, half of attention's have masks of blocks. "
    "A failure prints the command that replays "
    "it; exit code 1.";

typedef struct check_flags {
    int64_t cases, each, only_case, alike; /* only_case: -1, or the one to run */
    uint64_t seed;
    const char *kernel, *params, *resume;
    int all_params, op; /* op: of the operations, 0: all */
} check_flags;

typedef struct series {
    cli *app;
    const check_flags *flags;
    check_state state;
    check_setup setup;
    resume file;
    double saved_at;
    int64_t unproved;
    int code;
    bool lost;
} series;

static bool holds(const char *list, size_t list_length, const char *word, size_t length)
{
    for (const char *at = list; at < list + list_length; at += strcspn(at, ", ") + 1)
        if (strcspn(at, ", ") == length && strncmp(at, word, length) == 0)
            return true;
    return false;
}

/* Whether "PACK=1" is one of "NV=2,3 PACK=0,1". */
static bool is_value(const char *word, size_t length, const char *tunables)
{
    for (; *tunables; tunables += strcspn(tunables, " "), tunables += strspn(tunables, " ")) {
        size_t all = strcspn(tunables, " "), name = strcspn(tunables, "=") + 1;
        if (length > name && strncmp(word, tunables, name) == 0)
            return holds(tunables + name, all - name, word + name, length - name);
    }
    return false;
}

/* Whether "NV=2 PACK=1" names values of "NV=2,3 PACK=0,1 GROUP=1,4", some of them or all; of none, "" does. */
static bool is_choice(const char *params, const char *tunables)
{
    if (!params[strspn(params, " ")])
        return !*tunables;
    for (params += strspn(params, " "); *params; params += strcspn(params, " "), params += strspn(params, " "))
        if (!is_value(params, strcspn(params, " "), tunables))
            return false;
    return true;
}

static int check_params(const cli *app, const check_flags *f)
{
    for (int i = 0; f->params && i < spk_kernel_count(); i++) {
        spk_kernel_info info = {SPK_SIZED(spk_kernel_info)};
        if (spk_kernel_get_info(i, &info) != SPK_OK || !holds(f->kernel, strlen(f->kernel), info.name, strlen(info.name)))
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
    a.often = "cases seed op kernel resume device";
    a.examples = "sparsek check --cases 300 --seed 7\nsparsek check --kernel spmm_portable --cases 50 --all-params\n";
    char *operations = cli_format("all|%s", operation_names());
    *f = (check_flags){.cases = -1, .only_case = -1, .alike = CHECK_ALIKE, .seed = UINT64_MAX};
    const args_option options[] = {
        {"cases", 0, ARGS_INT, &f->cases, "N", 1, 100000000, "random problems (default: 300)"},
        {"each", 0, ARGS_INT, &f->each, "N", 1, 1000000,
         "end once every row that can run here ran on N cases (--cases still ends it: then 100000 by default)"},
        {"seed", 0, ARGS_SEED, &f->seed, NULL, 0, 0, "seed of the series (default: drawn, and printed)"},
        {"case", 0, ARGS_INT, &f->only_case, "I", 0, 100000000, "only case I of the series"},
        {"alike", 0, ARGS_INT, &f->alike, "N", 1, 1000,
         "on a GPU: so many cases have types, layouts and parameters in common, and the compiled programs (default: 2)"},
        {"op", 0, ARGS_CHOICE, &f->op, operations, 0, 0, "operations (default: all that the rows compute)"},
        {"kernel", 0, ARGS_KERNELS, &f->kernel, "NAMES", 0, 0, "only these rows (the same as --only)"},
        {"params", 0, ARGS_TEXT, &f->params, "TEXT", 0, 0, "only with these parameters, such as \"NV=2 PACK=1\"; needs --kernel"},
        {"all-params", 0, ARGS_FLAG, &f->all_params, NULL, 0, 0, "every combination of parameters of every row"},
        {"resume", 0, ARGS_FILE, &f->resume, "FILE", 0, 0, "keep the state in FILE, and go on from there where it exists"},
    };
    args_add(&a, "Check", options, (int)(sizeof(options) / sizeof(*options)));
    cli_common_options(&a, app, HEEDS_THREADS | HEEDS_DEVICE | HEEDS_KERNELS);
    int code = cli_parse(&a, argc, argv);
    free(operations);
    if (code != ARGS_GO)
        return code;
    if (f->cases < 0)
        f->cases = f->each ? 100000 : 300;
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
    if (f->only_case >= 0 && f->each)
        return cli_fail(app, EXIT_USAGE, "--case and --each exclude each other");
    if (f->only_case >= 0 && f->resume)
        return cli_fail(app, EXIT_USAGE, "--case and --resume exclude each other");
    return check_params(app, f);
}

static void tell_failures(series *s, const check_result *given)
{
    for (int i = 0; i < s->state.row_count; i++)
        s->state.failures += given->rows[i].failures;
    for (int i = 0; i < given->message_count && json_array_size(s->state.failed) < CHECK_MAX_FAILURES; i++) {
        progress_clear();
        fprintf(stderr, "FAILED %s\n", given->messages[i]);
        json_push(s->state.failed, json_text(given->messages[i]));
    }
}

static void add_rows(series *s, const check_result *given)
{
    for (int i = 0; i < s->state.row_count; i++) {
        const check_result_row *from = &given->rows[i];
        check_row *row = &s->state.rows[i];
        row->cases += from->ran;
        row->not_applicable += !from->ran;
        row->failures += from->failures;
        row->hostile += from->ran && from->hostile;
        row->overhang += from->ran && given->overhang;
        row->shifted += from->ran && given->shifted;
        row->worst = from->worst > row->worst ? from->worst : row->worst;
        row->no_room += from->no_room;
        if (from->no_room)
            snprintf(row->why, sizeof(row->why), "%s", from->why);
    }
}

enum { MOST_UNSUITED = 1000 };

static int64_t end_of(const series *s)
{
    return s->flags->only_case >= 0 ? s->flags->only_case + 1 : s->flags->cases;
}

/* Whether a case may come that the row lacks. One that cannot run here is not waited for, nor is one that none of many cases suited: its
 * parameters may exclude each other, or limits on memory may leave its library none. */
static bool is_waited_for(const series *s, const check_row *row)
{
    return row->cases < s->flags->each && !row->absent[0] && (row->cases > 0 || s->state.next < MOST_UNSUITED);
}

/* Whether every row ran on as many cases as --each asks for. */
static bool is_enough(const series *s)
{
    bool enough = s->flags->each > 0;
    for (int i = 0; i < s->state.row_count && enough; i++)
        enough = !is_waited_for(s, &s->state.rows[i]);
    return enough;
}

static bool is_wanted(void *user)
{
    const series *s = user;
    return !cli_interrupted() && !is_enough(s);
}

static void *make_case(void *user, int worker, int64_t number, const atomic_bool *stop)
{
    const series *s = user;
    return check_one(&s->setup, worker, number, stop);
}

/* The next case into the state, which is saved now and then. */
static bool take_case(void *user, int64_t number, void *piece)
{
    series *s = user;
    check_result *given = piece;
    s->code = given->code;
    if (given->trouble) {
        progress_clear();
        cli_fail(s->app, given->code, "%s", given->trouble);
    }
    tell_failures(s, given);
    s->lost = given->lost;
    if (given->whole) {
        add_rows(s, given);
        s->unproved += given->unproved;
        s->state.next = number + 1;
        progress_step(s->app, number + 1, end_of(s), "checking");
    }
    const bool goes_on = given->whole;
    check_result_release(&given);
    if (goes_on && s->flags->resume && clock_now_s() - s->saved_at > 2) {
        s->code = check_state_save(s->app, &s->file, &s->state);
        s->saved_at = clock_now_s();
    }
    return goes_on && s->code == EXIT_DONE;
}

/* A case whose turn did not come. Where the device was lost, one of them may be the reason. */
static void drop_case(void *user, int64_t number, void *piece)
{
    series *s = user;
    check_result *given = piece;
    (void)number;
    s->lost = s->lost || given->lost;
    if (s->lost)
        tell_failures(s, given);
    check_result_release(&given);
}

/* Runs the cases to come. */
static int run_series(series *s)
{
    ordered_work work = {
        .user = s, .begin = s->state.next, .end = end_of(s), .make = make_case, .take = take_case, .drop = drop_case, .wanted = is_wanted};
    s->saved_at = clock_now_s();
    s->code = check_setup_workers(&s->setup, &work.threads);
    if (s->code == EXIT_DONE)
        ordered_run(&work);
    if (s->flags->resume && s->code == EXIT_DONE)
        s->code = check_state_save(s->app, &s->file, &s->state);
    progress_clear();
    if (s->lost)
        return cli_fail(s->app, EXIT_SHORT, "a run died or hung, and the device is lost to this process, at case %lld of the series",
                        (long long)s->state.next);
    if (s->code == EXIT_DONE && cli_interrupted())
        return cli_status(s->app, NULL, SPK_ERR_INTERRUPTED, NULL);
    return s->code;
}

static void print_want_of_room(const series *s)
{
    for (int i = 0; i < s->state.row_count; i++) {
        const check_row *row = &s->state.rows[i];
        if (row->no_room)
            printf("%s: not applicable %lld time%s for want of memory (%s)\n", row->name, (long long)row->no_room,
                   row->no_room == 1 ? "" : "s", row->why);
    }
}

/* "skipped: gemm_bf16_amx, spmm_bf16_amx: this device does not offer amx_bf16": a line for each reason. */
static void print_skipped(const check_state *state)
{
    for (int i = 0; i < state->row_count; i++) {
        const check_row *first = &state->rows[i];
        bool told = !check_row_skipped(first);
        for (int j = 0; j < i && !told; j++)
            told = check_row_skipped(&state->rows[j]) && strcmp(state->rows[j].absent, first->absent) == 0;
        if (told)
            continue;
        char *text = cli_format("skipped: %s", first->name);
        for (int j = i + 1; j < state->row_count; j++) {
            if (!check_row_skipped(&state->rows[j]) || strcmp(state->rows[j].absent, first->absent) != 0)
                continue;
            char *longer = cli_format("%s, %s", text, state->rows[j].name);
            free(text);
            text = longer;
        }
        char *whole = cli_format("%s: %s", text, first->absent);
        term_paragraph(whole, 0);
        free(whole);
        free(text);
    }
}

/* The rows that were named, can run here, and ran in no case: who named them believes that they were checked. Without --params one of
 * several may want more cases than there were. NULL: none. */
static char *unchecked(const series *s)
{
    char *names = NULL;
    bool ran = false;
    for (int i = 0; i < s->state.row_count && s->app->only && s->state.next > 0; i++) {
        const check_row *row = &s->state.rows[i];
        ran = ran || row->cases > 0;
        if (row->cases > 0 || check_row_skipped(row))
            continue;
        char *longer = cli_format("%s%s%s", names ? names : "", names ? ", " : "", row->name);
        free(names);
        names = longer;
    }
    if (!ran || s->flags->params)
        return names;
    free(names);
    return NULL;
}

static void print_summary(const series *s, double seconds)
{
    const table_column columns[] = {{"kernel", false, 0, false},  {"kind", false, 1, false},
                                    {"cases", true, 3, false},    {"not applicable", true, 2, false},
                                    {"failures", true, 0, false}, {"worst error / tolerance", true, 0, false}};
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
    spk_fprintf(stdout, "\n%lld cases, seed %llu, %.1f s: %lld failures\n", (long long)(s->flags->only_case >= 0 ? 1 : s->state.next),
                (unsigned long long)s->state.seed, seconds, (long long)s->state.failures);
    print_skipped(&s->state);
    print_want_of_room(s);
    if (s->unproved)
        printf(
            "%lld times a candidate did not run, as it could not be proved (the row is not applicable then): is there a sparsek-prover?\n",
            (long long)s->unproved);
}

static int finish(series *s, double seconds, int code)
{
    if (cli_talks(s->app))
        print_summary(s, seconds);
    json_t *root = json_envelope(s->app, check_state_rows(&s->state));
    json_put(root, "kind", json_string("check"));
    json_put(root, "seed", json_integer((json_int_t)s->state.seed));
    json_put(root, "cases", json_integer(s->flags->only_case >= 0 ? 1 : s->state.next));
    json_put(root, "failures", json_integer(s->state.failures));
    json_put(root, "failed", json_incref(s->state.failed));
    json_put(root, "seconds", json_number(seconds));
    code = json_finish(s->app, root, code == EXIT_DONE && s->state.failures ? EXIT_SHORT : code);
    char *names = code == EXIT_DONE ? unchecked(s) : NULL;
    if (names && s->flags->params)
        code = cli_fail(s->app, EXIT_SHORT, "--params: '%s' of %s was applicable in none of the cases: nothing was checked",
                        s->flags->params, names);
    else if (names)
        code = cli_fail(s->app, EXIT_SHORT, "%s: applicable in none of the cases: nothing was checked", names);
    free(names);
    return code;
}

int cmd_check(cli *app, int argc, char **argv)
{
    check_flags f;
    int code = parse(app, &f, argc, argv);
    if (code != ARGS_GO)
        return code;
    static series s; /* its rows are more than a small stack holds */
    s.app = app;
    s.flags = &f;
    json_t *settings = json_object();
    json_put(settings, "only", json_text(app->only));
    json_put(settings, "exclude", json_text(app->exclude));
    json_put(settings, "op", json_integer(f.op));
    json_put(settings, "params", json_text(f.params));
    json_put(settings, "all-params", json_boolean(f.all_params));
    json_put(settings, "threads", json_integer(app->threads));
    if (f.alike != CHECK_ALIKE) /* states of before have none */
        json_put(settings, "alike", json_integer(f.alike));
    s.file = resume_make(f.resume, "sparsek check", f.seed, settings);
    check_state_make(app, s.file.seed, f.op ? operation_at(f.op - 1)->info.operation : (spk_operation)0, &s.state);
    code = f.resume ? output_check(app, "--resume", f.resume) : EXIT_DONE;
    if (code == EXIT_DONE && s.state.row_count == 0)
        code = cli_fail(app, EXIT_USAGE, "--only and --exclude leave no kernel");
    if (code == EXIT_DONE && f.resume)
        code = check_state_load(app, &s.file, &s.state);
    if (code == EXIT_DONE)
        code = cli_open(app);
    if (code == EXIT_DONE) {
        double started = clock_now_s();
        check_state_find_absent(app->context, &s.state);
        check_catch_crashes();
        if (f.only_case >= 0)
            s.state.next = f.only_case;
        s.setup = (check_setup){.app = app, .seed = s.state.seed, .params = f.params};
        s.setup.wish = (check_wish){
            .gpu = app->device && strncmp(app->device, "cuda", 4) == 0, .operations = check_state_operations(&s.state), .alike = f.alike};
        s.setup.all_params = f.all_params;
        s.setup.rows = s.state.rows;
        s.setup.row_count = s.state.row_count;
        code = run_series(&s);
        if (code == EXIT_DONE || code == EXIT_INTERRUPTED || s.lost)
            code = finish(&s, clock_now_s() - started, code);
    }
    check_setup_release(&s.setup);
    check_state_release(&s.state);
    resume_release(&s.file);
    return code;
}
