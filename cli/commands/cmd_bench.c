/* sparsek bench: the race of every row of the table on one problem, or the stored evidence with the chosen one and dense timed again. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/args/command.h"
#include "cli/base/text.h"
#include "cli/commands/commands.h"
#include "cli/io/json.h"
#include "cli/io/messages.h"
#include "cli/io/session.h"
#include "cli/result/result.h"

typedef struct bench_flags {
    problem_flags problem;
    int fresh;
    int64_t rounds;
} bench_flags;

static const char about[] =
    "Races every row of the kernel table on one problem, and keeps the evidence in the store.\n"
    "The problem comes from the options, or from a matrix FILE (.mtx, .smtx, .safetensors, .npy) with --block and\n"
    "--n. Where the store knows the problem's class, its evidence is listed and the chosen kernel and dense are\n"
    "timed again; --fresh races again. With --only or --exclude the evidence is kept as a class of its own.\n\n"
    "Times are medians in microseconds; the spread is half the distance between the quartiles. GFLOP/s count stored\n"
    "blocks only (2 x blocks x block size x n), for dense rows too. 'x dense' is the time of the fastest dense row\n"
    "over this row's time. Rows that may not win here are measured all the same, and marked; one that is expected to\n"
    "take many times as long as the best, and seconds, is left out (--all runs it).\n\n"
    "A race measures every kernel to the end: mostly 5 to 20 s, whatever the budget of a tuning is. With --budget S it\n"
    "takes S to 2 S seconds, and leaves out what does not fit. On a busy machine it may take longer, and says so.";

static int parse(cli *app, bench_flags *f, int argc, char **argv)
{
    args a = {.command = "bench", .synopsis = "[FILE] [options]", .about = about, .max_operands = 1};
    a.often = "all m k n block density pattern dtype assume-finite cache budget fresh json";
    a.operand_kind = ARGS_MATRIX;
    a.examples = "sparsek bench --m 2048 --k 2048 --n 512 --block 64 --density 10% --assume-finite --cache warm\n"
                 "sparsek bench matrix.mtx --block 3 --n 32 --json result.json\n";
    *f = (bench_flags){.problem = problem_defaults(), .rounds = 20};
    const args_option race[] = {
        {"fresh", 0, ARGS_FLAG, &f->fresh, NULL, 0, 0, "race though the store knows the problem's class"},
        {"rounds", 0, ARGS_INT, &f->rounds, "N", 1, 10000, "interleaved rounds of the last phase (default: 20); fewer where --budget ends"},
        {"all", 0, ARGS_FLAG, &app->all, NULL, 0, 0,
         "run those too that cannot win and would take long; list those that did not run, with the reasons"},
    };
    problem_options(&a, &f->problem);
    args_add(&a, "Race", race, 3);
    cli_common_options(&a, app, HEEDS_ALL & ~HEEDS_EFFORT);
    int code = cli_parse(&a, argc, argv);
    f->problem.file = a.operand_count ? a.operands[0] : NULL;
    return code;
}

static spk_status race(cli *app, problem *p, const char *choices, int keep, int64_t rounds, spk_report **report)
{
    spk_race_options options = {SPK_SIZED(spk_race_options), .rounds = (int)rounds, .choices = choices, .keep = keep, .all = app->all != 0};
    return problem_race(app, p, &options, report);
}

static char *choice_text(const char *name, const char *params)
{
    return cli_format("%s%s%s", name, params[0] ? " " : "", params);
}

/* Whether the table has this candidate still: a store may come from another version. */
static bool is_listed(const result *list, const result_row *row)
{
    for (int i = 0; i < list->count; i++)
        if (strcmp(list->rows[i].name, row->name) == 0 && strcmp(list->rows[i].params, row->params) == 0)
            return true;
    return false;
}

/* The chosen one and the fastest stored dense row; every dense row that can compute the problem where none was measured. NULL: the chosen
 * one is no candidate any more. */
static char *rematch(cli *app, problem *p, const result *stored)
{
    spk_report *list = NULL;
    result listed = {.chosen = -1}, best = {.chosen = -1};
    char *choices = NULL;
    if (problem_list(app, p, &list) == SPK_OK) {
        (void)result_from_report(list, false, &listed);
        (void)result_from_report(list, true, &best);
    }
    spk_report_destroy(&list);
    if (is_listed(&listed, &stored->rows[stored->chosen]))
        choices = choice_text(stored->rows[stored->chosen].name, stored->rows[stored->chosen].params);
    int dense = result_best_dense(stored);
    if (dense >= 0 && !is_listed(&listed, &stored->rows[dense]))
        dense = -1;
    const result *from = dense < 0 ? &best : stored;
    for (int i = 0; choices && i < from->count; i++) {
        const result_row *row = &from->rows[i];
        bool wanted =
            dense < 0 ? row->kind == SPK_KIND_DENSE && row->status != SPK_CANDIDATE_NOT_APPLICABLE : i == dense && i != stored->chosen;
        if (!wanted)
            continue;
        char *one = choice_text(row->name, row->params), *both = cli_format("%s;%s", choices, one);
        free(one);
        free(choices);
        choices = both;
    }
    result_release(&listed);
    result_release(&best);
    return choices;
}

/* What was interrupted is finished first; what was measured under load is measured again, some minutes later at the earliest. */
static bool is_to_be_raced_again(const result *stored)
{
    enum { PATIENCE_S = 300 };
    const int64_t age_s = (int64_t)time(NULL) - stored->measured_at;
    return stored->provisional == SPK_PROVISIONAL_INTERRUPTED ||
           (stored->provisional == SPK_PROVISIONAL_LOAD && (age_s < 0 || age_s >= PATIENCE_S));
}

/* The stored evidence of the problem with the rematch laid over it; *known says whether there was any. */
static spk_status from_store(cli *app, problem *p, int64_t rounds, result *out, bool *known)
{
    spk_report *report = NULL;
    spk_status status = problem_explain(app, p, &report);
    *known = status == SPK_OK;
    if (status != SPK_OK)
        return status == SPK_ERR_UNKNOWN_CLASS ? SPK_OK : status;
    status = result_from_report(report, true, out);
    spk_report_destroy(&report);
    /* another class's evidence is none of this one */
    bool whole = status == SPK_OK && out->from_store && !out->foreign && !is_to_be_raced_again(out);
    char *choices = whole && out->chosen >= 0 ? rematch(app, p, out) : NULL;
    *known = choices != NULL;
    if (!*known) {
        result_release(out);
        return status;
    }
    out->from_store = true;
    status = race(app, p, choices, 0, rounds, &report);
    free(choices);
    if (report) {
        spk_status renewed = result_renew(out, report);
        status = status == SPK_OK ? renewed : status;
    }
    spk_report_destroy(&report);
    return status;
}

static spk_status measured(cli *app, problem *p, int64_t rounds, result *out)
{
    spk_report *report = NULL;
    spk_status status = race(app, p, NULL, 1, rounds, &report);
    if (report && result_from_report(report, true, out) != SPK_OK && status == SPK_OK)
        status = SPK_ERR_INTERNAL;
    spk_report_destroy(&report);
    return status;
}

/* EXIT_ABSENT, after a message with the reasons, where no kernel was timed that --only and --exclude leave. */
static int check_ran(const cli *app, const problem *p, const result *r)
{
    char *reasons = cli_format("%s", "");
    bool ran = p->is_empty; /* then there is nothing to time */
    for (int i = 0; i < r->count; i++) {
        const result_row *row = &r->rows[i];
        if (!cli_leaves(app, row->name))
            continue;
        ran = ran || row->median_us > 0;
        char *longer =
            cli_format("%s%s%s: %s", reasons, reasons[0] ? "; " : "", row->name, row->why ? row->why : result_status_name(row->status));
        free(reasons);
        reasons = longer;
    }
    int code = ran ? EXIT_DONE : cli_fail(app, EXIT_ABSENT, "no kernel is left%s%s", reasons[0] ? ": " : "", reasons);
    free(reasons);
    return code;
}

static int bench(cli *app, const bench_flags *f, problem *p)
{
    result r = {.chosen = -1};
    bool known = false;
    spk_status status = SPK_OK;
    if (!f->fresh)
        status = from_store(app, p, f->rounds, &r, &known);
    if (status == SPK_OK && !known)
        status = measured(app, p, f->rounds, &r);
    int code = cli_status(app, NULL, status, NULL);
    if (r.count > 0) { /* after Ctrl-C too */
        json_t *results = json_array();
        json_push(results, result_json(p, &r));
        code = json_finish(app, json_envelope(app, results), code);
        if (cli_talks(app))
            result_print(app, p, &r);
        if (code == EXIT_DONE)
            code = check_ran(app, p, &r);
    }
    result_release(&r);
    return code;
}

int cmd_bench(cli *app, int argc, char **argv)
{
    bench_flags f;
    int code = parse(app, &f, argc, argv);
    if (code != ARGS_GO)
        return code;
    problem p;
    code = cli_open(app);
    cli_interrupt_ends(app, true);
    if (code == EXIT_DONE)
        code = problem_make(app, &f.problem, &p);
    cli_interrupt_ends(app, false);
    if (code != EXIT_DONE)
        return code;
    code = bench(app, &f, &p);
    problem_release(&p);
    return code;
}
