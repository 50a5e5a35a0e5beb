/* sparsek regret: how far what default tuning chooses is from the best of all candidates, on problems it has not seen; resumable. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "cli/args/command.h"
#include "cli/base/device_memory.h"
#include "cli/base/memory.h"
#include "cli/base/stats.h"
#include "cli/base/table.h"
#include "cli/commands/commands.h"
#include "cli/io/json.h"
#include "cli/io/messages.h"
#include "cli/io/output.h"
#include "cli/io/progress.h"
#include "cli/io/resume.h"
#include "cli/io/session.h"
#include "cli/io/signals.h"
#include "cli/problem/listed.h"
#include "cli/regret/draw.h"
#include "cli/regret/trial.h"
#include "cli/result/result.h"

static const char about[] =
    "Draws problems that no store has seen, tunes each at the default effort in an empty store, finds the best of all\n"
    "candidates exhaustively in another, and where the two differ races them head to head in fresh interleaved rounds.\n"
    "The regret of a problem is max(0, median of the paired ratios chosen / best - 1); 0 where both are the same.\n\n"
    "The distribution, fixed: blocks (60 % square: 1, 2, 4, 8, 16, 32, 64 or 128; else each side one of 1, 2, 3, 4, 8,\n"
    "16, 24, 32, 40, 48, 64, 96, 128); m and k log-uniform in 256 to 4096 (1024 where a block has fewer than 16\n"
    "elements), rounded to whole blocks; n log-uniform in 1 to 1024; density log-uniform in 1 % to 60 %; pattern uniform,\n"
    "bernoulli, banded, window, causal, diagonal, power-law or empty-rows alike; f32 (70 %) or f64; B column-major in\n"
    "15 %, D column-major in 15 %; A transposed in 15 %; assume-finite in half; an epilogue (bias per row or column, ReLU\n"
    "or GELU) in 20 %; operands cold. On a GPU: m and k to 8192 (2048), n to 8192; f16 (40 %), bf16 (20 %), f32 (30 %) or\n"
    "f64. With --op sddmm: X is m by 8 n, Y 8 n by k. What an operation has not, such as an epilogue, is left out.\n"
    "Attention has draws of its own: decoding, prompts with all keys, causal, in a window, in blocks of a mask; depths of\n"
    "64 to 256, shared heads. Or the problems are those of a file (--from), as of 'sparsek tune'.\n\n"
    "With --bundle nothing is tuned: the choice is that of the bundle, which ships with the library.";

typedef struct regret_flags {
    int64_t problems;
    uint64_t seed;
    regret_search search;
    const char *resume;
    const char *list; /* NULL: problems are drawn */
    int bundle;       /* the choices are the bundle's */
    int op;           /* index of operation_at */
    int64_t batch;
} regret_flags;

typedef struct regret_run {
    cli *app;
    const regret_flags *flags;
    listed_problems listed;
    int64_t problems;
    resume file;
    json_t *results;
    bool gpu;
} regret_run;

static int parse(cli *app, regret_flags *f, int argc, char **argv)
{
    args a = {.command = "regret", .synopsis = "[options]", .about = about};
    a.often = "problems from bundle seed resume json device";
    a.examples = "sparsek regret --problems 20 --seed 1\nsparsek regret --problems 50 --seed 3 --resume regret.state --json regret.json\n"
                 "sparsek regret --device cuda:0 --problems 20 --seed 1\n"
                 "sparsek regret --from problems.json --bundle\n";
    *f = (regret_flags){.search = {.budget_s = 8, .rounds = 20}, .seed = UINT64_MAX, .batch = 1};
    const args_option options[] = {
        {"problems", 0, ARGS_INT, &f->problems, "N", 1, 1000000, "problems to draw (default: 20), or of the list (default: all)"},
        {"from", 0, ARGS_FILE, &f->list, "LIST", 0, 0,
         "the problems of a JSON file, as of tune, in place of drawn ones; '-': standard input"},
        {"bundle", 0, ARGS_FLAG, &f->bundle, NULL, 0, 0, "judge what the bundle chose; problems that it does not know are left out"},
        {"seed", 0, ARGS_SEED, &f->seed, NULL, 0, 0, "seed of the series (default: drawn, and printed)"},
        {"op", 0, ARGS_CHOICE, &f->op, operation_names(), 0, 0, "operation (default: spmm)"},
        {"batch", 0, ARGS_INT, &f->batch, NULL, 1, 100000, "products at once, each of a quarter of m and of k (default: 1)"},
        {"among", 0, ARGS_INT, &f->search.among, "N", 1, 1000,
         "find the best among so many candidates, those that the cost model prefers: all are measured (default: among all)"},
        {"best-budget", 0, ARGS_REAL, &f->search.budget_s, "S", 0.001, 86400, "seconds for finding the best of one problem (default: 8)"},
        {"rounds", 0, ARGS_INT, &f->search.rounds, "N", 1, 10000, "rounds head to head (default: 20)"},
        {"resume", 0, ARGS_FILE, &f->resume, "FILE", 0, 0, "keep the state in FILE, and go on from there where it exists"},
    };
    args_add(&a, "Regret", options, (int)(sizeof(options) / sizeof(*options)));
    cli_common_options(&a, app, HEEDS_ALL & ~HEEDS_STORE);
    int code = cli_parse(&a, argc, argv);
    if (code == ARGS_GO && f->list && (f->op || f->batch > 1))
        return cli_fail(app, EXIT_USAGE, "--from and %s exclude each other: the list says what is multiplied", f->op ? "--op" : "--batch");
    if (code == ARGS_GO && f->bundle && (app->effort != SPK_TUNE_MEASURE || app->budget_s > 0))
        return cli_fail(app, EXIT_USAGE, "--bundle and %s exclude each other: nothing is tuned",
                        app->effort != SPK_TUNE_MEASURE ? "--effort" : "--budget");
    return code;
}

static json_t *outcome_json(const problem *p, int64_t number, const tuned *chosen, const tuned *best, const duel *met)
{
    json_t *o = json_object();
    json_put(o, "number", json_integer(number));
    json_put(o, "problem", problem_json(p));
    json_put(o, "command", json_text(p->flags));
    json_put(o, "chosen", json_text(chosen->choice));
    json_put(o, "best", json_text(best->choice));
    json_put(o, "regret",
             !best->choice ? json_null() : json_number(met->ratio > 1 ? met->ratio - 1 : 0)); /* null: the bundle does not know it */
    json_put(o, "ratio_quartiles", json_pack("[f, f]", met->low, met->high));
    json_put(o, "pairs", json_integer(met->pairs));
    json_put(o, "provisional", chosen->provisional ? json_string(result_provisional(chosen->provisional)) : json_null());
    json_put(o, "candidates", json_integer(best->candidates));
    json_put(o, "measured", json_integer(chosen->measured));
    json_put(o, "measured_exhaustive", json_integer(best->measured));
    json_put(o, "tuning_s", json_number(chosen->seconds));
    json_put(o, "exhaustive_s", json_number(best->seconds));
    return o;
}

static int one_problem(regret_run *run, int64_t number)
{
    const problem_flags flags = run->flags->list
                                    ? run->listed.flags[number]
                                    : regret_draw(run->file.seed, number, &(regret_wish){run->gpu, run->flags->op, run->flags->batch});
    trial t;
    tuned chosen = {0}, best = {0};
    duel met = {0};
    int quiet = run->app->quiet;
    run->app->quiet = 1; /* that a drawn pattern has no room for a few blocks is no news */
    int code = regret_trial_begin(run->app, &flags, &t);
    run->app->quiet = quiet;
    if (code)
        return code;
    code = run->flags->bundle ? regret_trial_look_up(run->app, &t, &chosen)
                              : regret_trial_tune(run->app, &t, (spk_effort)run->app->effort, run->app->budget_s, &chosen);
    if (code == EXIT_DONE && (chosen.choice || !run->flags->bundle)) {
        spk_context *context = run->app->context;
        run->app->context = t.programs;
        run->app->quiet = 1;
        code = regret_find_best(run->app, &flags, &run->flags->search, &chosen, &best, &met);
        run->app->quiet = quiet;
        run->app->context = context;
    }
    if (code == EXIT_DONE)
        json_push(run->results, outcome_json(&t.p, number, &chosen, &best, &met));
    regret_trial_end(run->app, &t);
    free(chosen.choice);
    free(best.choice);
    return code;
}

static int save(const regret_run *run)
{
    json_t *root = json_object();
    json_put(root, "results", json_incref(run->results));
    return resume_save(run->app, &run->file, root);
}

static int load(regret_run *run)
{
    json_t *root = NULL;
    int code = resume_load(run->app, &run->file, &root);
    json_t *results = json_object_get(root, "results");
    if (root && !json_is_array(results))
        code = cli_fail(run->app, EXIT_INPUT, "%s: is no state of '%s'", run->file.path, run->file.what);
    if (json_is_array(results)) {
        json_decref(run->results);
        run->results = json_incref(results);
    }
    json_decref(root);
    return code;
}

static int run_series(regret_run *run)
{
    int code = EXIT_DONE;
    for (int64_t i = (int64_t)json_array_size(run->results); i < run->problems && code == EXIT_DONE; i++) {
        if (cli_interrupted())
            return EXIT_INTERRUPTED;
        progress_step(run->app, i, run->problems, "problems");
        code = one_problem(run, i);
        if (code == EXIT_DONE && run->flags->resume)
            code = save(run);
    }
    progress_clear();
    return cli_interrupted() ? EXIT_INTERRUPTED : code;
}

/* What an interrupted series leaves. */
static void tell_kept(const regret_run *run)
{
    size_t done = json_array_size(run->results);
    if (run->flags->resume)
        cli_note(run->app, "%zu problems are kept in %s", done, run->flags->resume);
    else
        cli_note(run->app, "the %zu problems that were finished are reported; --resume FILE would keep them for a later run", done);
}

static double sum_of(const json_t *results, const char *key)
{
    double sum = 0;
    size_t index;
    json_t *one;
    json_array_foreach((json_t *)results, index, one) sum += json_number_value(json_object_get(one, key));
    return sum;
}

static void print_outcomes(const json_t *results)
{
    const table_column columns[] = {{"#", true, 0, false},
                                    {"regret %", true, 0, false},
                                    {"chosen", false, 4, false},
                                    {"best", false, 3, false},
                                    {"problem", false, 1, true}};
    table *t = table_make(columns, 5);
    size_t index;
    json_t *one;
    json_array_foreach((json_t *)results, index, one)
    {
        const bool known = !json_is_null(json_object_get(one, "regret"));
        double regret = json_number_value(json_object_get(one, "regret"));
        const char *chosen = json_string_value(json_object_get(one, "chosen")), *best = json_string_value(json_object_get(one, "best"));
        table_row(t, regret > 0.08 ? TABLE_BAD : TABLE_PLAIN);
        table_cell(t, 0, "%zu", index);
        if (known)
            table_cell(t, 1, "%.2f", 100 * regret);
        table_cell(t, 2, "%s", known ? chosen : "the bundle does not know it");
        table_cell(t, 3, "%s", chosen && best && strcmp(chosen, best) == 0 ? "the same" : best ? best : "");
        table_cell(t, 4, "%s", json_string_value(json_object_get(one, "command")));
    }
    table_print(t, 0);
    table_release(&t);
}

static int finish(regret_run *run, int code)
{
    const size_t all = json_array_size(run->results);
    size_t count = 0, index;
    json_t *one;
    size_t provisional = 0;
    double *regrets = cli_alloc(all, sizeof(*regrets));
    json_array_foreach(run->results, index, one)
    {
        if (!json_is_null(json_object_get(one, "regret")))
            regrets[count++] = json_number_value(json_object_get(one, "regret"));
        provisional += json_is_string(json_object_get(one, "provisional"));
    }
    double median = stats_quantile(regrets, (int64_t)count, 0.5), p95 = stats_quantile(regrets, (int64_t)count, 0.95),
           worst = stats_quantile(regrets, (int64_t)count, 1);
    double candidates = count ? sum_of(run->results, "candidates") / (double)count : 0;
    double tuning_s = sum_of(run->results, "tuning_s"), seconds = tuning_s + sum_of(run->results, "exhaustive_s");
    free(regrets);
    if (all && cli_talks(run->app)) {
        print_outcomes(run->results);
        printf("\n%zu problem%s", count, count == 1 ? "" : "s");
        if (!run->flags->list)
            printf(", seed %llu", (unsigned long long)run->file.seed);
        if (count)
            spk_fprintf(stdout, ": regret median %.2f %%, 95th percentile %.2f %%, worst %.2f %%", 100 * median, 100 * p95, 100 * worst);
        putchar('\n');
        if (run->flags->bundle)
            printf("%zu more that the bundle does not know\n", all - count);
        spk_fprintf(stdout, "%.1f candidates a problem; %.1f s of tuning, %.1f s in all\n", candidates, tuning_s, seconds);
        if (provisional > 0)
            printf("%zu provisional, for instance as other programs used the processors\n", provisional);
    }
    json_t *root = json_envelope(run->app, json_incref(run->results));
    json_put(root, "seed", json_integer((json_int_t)run->file.seed));
    json_put(root, "problems", json_integer((json_int_t)count));
    if (run->flags->bundle)
        json_put(root, "unknown_to_the_bundle", json_integer((json_int_t)(all - count)));
    if (run->flags->search.among)
        json_put(root, "among", json_integer(run->flags->search.among));
    json_put(root, "median_regret", count ? json_number(median) : json_null());
    json_put(root, "p95_regret", count ? json_number(p95) : json_null());
    json_put(root, "worst_regret", count ? json_number(worst) : json_null());
    json_put(root, "candidates_per_problem", json_number(candidates));
    json_put(root, "tuning_s", json_number(tuning_s));
    json_put(root, "seconds", json_number(seconds));
    if (code == EXIT_DONE && run->flags->bundle && all && !count)
        code = cli_fail(run->app, EXIT_SHORT,
                        "no bundle knows any of the problems; SPARSEK_BUNDLE may name its file, else it is looked for beside the library");
    return json_finish(run->app, root, code);
}

static json_t *listed_setting(const listed_problems *list)
{
    char *mark = listed_mark(list);
    json_t *made = json_text(mark);
    free(mark);
    return made;
}

int cmd_regret(cli *app, int argc, char **argv)
{
    regret_flags f;
    int code = parse(app, &f, argc, argv);
    if (code != ARGS_GO)
        return code;
    listed_problems listed = {0};
    const problem_flags defaults = problem_defaults();
    code = f.list ? listed_read(app, f.list, &defaults, &listed) : EXIT_DONE;
    if (code) {
        listed_release(&listed);
        return code;
    }
    json_t *settings = json_object();
    json_put(settings, "effort", json_integer(app->effort));
    json_put(settings, "budget", json_number(app->budget_s));
    json_put(settings, "best-budget", json_number(f.search.budget_s));
    if (f.op || f.batch > 1) { /* states of before have neither */
        json_put(settings, "op", json_integer(f.op));
        json_put(settings, "batch", json_integer(f.batch));
    }
    if (f.search.among)
        json_put(settings, "among", json_integer(f.search.among));
    if (f.list)
        json_put(settings, "from", listed_setting(&listed));
    if (f.bundle)
        json_put(settings, "bundle", json_true());
    json_put(settings, "rounds", json_integer(f.search.rounds));
    json_put(settings, "only", json_text(app->only));
    json_put(settings, "exclude", json_text(app->exclude));
    json_put(settings, "threads", json_integer(app->threads));
    json_put(settings, "device", app->device && strcmp(app->device, "cpu") != 0 ? json_text(app->device) : json_null());
    regret_run run = {.app = app,
                      .flags = &f,
                      .file = resume_make(f.resume, "sparsek regret", f.seed, settings),
                      .results = json_array(),
                      .listed = listed,
                      .problems = f.problems ? f.problems : 20};
    if (f.list && (!f.problems || f.problems > listed.count))
        run.problems = listed.count;
    code = f.resume ? output_check(app, "--resume", f.resume) : EXIT_DONE;
    if (code == EXIT_DONE && f.resume)
        code = load(&run);
    if (code == EXIT_DONE)
        code = cli_open(app);
    if (code == EXIT_DONE) {
        run.gpu = device_is_far(app->context);
        code = run_series(&run);
        if (code == EXIT_INTERRUPTED)
            tell_kept(&run);
        code = code == EXIT_DONE || code == EXIT_INTERRUPTED ? finish(&run, code) : code;
    }
    json_decref(run.results);
    listed_release(&run.listed);
    resume_release(&run.file);
    return code;
}
