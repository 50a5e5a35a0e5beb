/* sparsek tune: tunes one problem, or the problems of a list, and keeps the answers in the store. */
#include <stdio.h>

#include "cli/args/command.h"
#include "cli/commands/commands.h"
#include "cli/io/json.h"
#include "cli/io/messages.h"
#include "cli/io/progress.h"
#include "cli/io/session.h"
#include "cli/io/signals.h"
#include "cli/problem/listed.h"
#include "cli/result/result.h"

typedef struct tune_flags {
    problem_flags problem;
    const char *list;
    int fresh;
} tune_flags;

static const char about[] =
    "Finds the fastest candidate for a problem and keeps it, with the evidence, in the store; a class that the store\n"
    "knows is not measured again without --fresh. That takes some 2 s, on a GPU 5, or --budget S; 'sparsek bench' has\n"
    "all kernels race to the end, which takes 5 to 20 s. The problem comes from the options, from a matrix FILE, or a list of\n"
    "problems from a JSON file (--from).\n\n"
    "The list is an array of objects whose keys are the options' names with '_' for '-' (\"m\", \"k\", \"n\", \"block\",\n"
    "\"density\", \"pattern\", \"dtype\", \"layout_b\", \"assume_finite\", ...; \"file\" names a matrix file), or the file that a\n"
    "bench wrote with --json: its problems are taken. Options of the command line hold where an object says nothing.";

static int parse(cli *app, tune_flags *f, int argc, char **argv)
{
    args a = {.command = "tune", .synopsis = "[FILE | --from LIST] [options]", .about = about, .max_operands = 1};
    a.often = "all m k n block density dtype from budget effort fresh json";
    a.operand_kind = ARGS_MATRIX;
    a.examples = "sparsek tune --m 4096 --k 4096 --n 128 --block 32 --density 5% --budget 5\n"
                 "sparsek tune --from problems.json --effort exhaustive --json tuned.json\n";
    *f = (tune_flags){.problem = problem_defaults()};
    const args_option tuning[] = {
        {"from", 0, ARGS_FILE, &f->list, "LIST", 0, 0, "a JSON file with a list of problems; '-': standard input"},
        {"fresh", 0, ARGS_FLAG, &f->fresh, NULL, 0, 0, "tune again though the store knows the class"},
        CLI_ALL_OPTION(app),
    };
    problem_options(&a, &f->problem);
    args_add(&a, "Tuning", tuning, 3);
    cli_common_options(&a, app, HEEDS_ALL);
    int code = cli_parse(&a, argc, argv);
    f->problem.file = a.operand_count ? a.operands[0] : NULL;
    if (code == ARGS_GO && f->list && f->problem.file)
        return cli_fail(app, EXIT_USAGE, "--from and a FILE exclude each other");
    return code;
}

/* Tunes one problem, prints it, appends it to results. Code of the tuning; what was measured is reported in any case. */
static int tune(cli *app, const problem_flags *flags, int fresh, json_t *results)
{
    problem p;
    int code = problem_make(app, flags, &p);
    if (code)
        return code;
    p.options.fresh = fresh;
    spk_report *report = NULL;
    result r = {.chosen = -1};
    spk_status status = problem_tune(app, &p, &report);
    if (report && result_from_report(report, false, &r) != SPK_OK && status == SPK_OK)
        status = SPK_ERR_INTERNAL;
    spk_report_destroy(&report);
    code = cli_status(app, NULL, status, NULL);
    if (r.count > 0) {
        json_push(results, result_json(&p, &r));
        if (cli_talks(app)) {
            result_print(app, &p, &r);
            putchar('\n');
        }
    }
    result_release(&r);
    problem_release(&p);
    return code;
}

static int tune_list(cli *app, const tune_flags *f, json_t *results)
{
    listed_problems list;
    int code = listed_read(app, f->list, &f->problem, &list);
    for (int64_t i = 0; i < list.count && code == EXIT_DONE; i++) {
        progress_part(i, list.count);
        code = cli_interrupted() ? EXIT_INTERRUPTED : tune(app, &list.flags[i], f->fresh, results);
    }
    progress_part(list.count, list.count);
    listed_release(&list);
    return code;
}

int cmd_tune(cli *app, int argc, char **argv)
{
    tune_flags f;
    int code = parse(app, &f, argc, argv);
    if (code != ARGS_GO)
        return code;
    code = cli_open(app);
    if (code)
        return code;
    json_t *results = json_array();
    code = f.list ? tune_list(app, &f, results) : tune(app, &f.problem, f.fresh, results);
    if (json_array_size(results) > 0 || code == EXIT_DONE)
        return json_finish(app, json_envelope(app, results), code);
    json_decref(results);
    return code;
}
