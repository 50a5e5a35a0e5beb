/* sparsek explain: the stored evidence of a problem's class; runs nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/args/command.h"
#include "cli/base/term.h"
#include "cli/base/text.h"
#include "cli/commands/commands.h"
#include "cli/io/json.h"
#include "cli/io/messages.h"
#include "cli/io/session.h"
#include "cli/result/unmasked.h"

static const char about[] =
    "Shows why the stored choice for a problem's class won: every candidate with its time, what lost and by how much,\n"
    "what was refused and why, how old the evidence is. Runs nothing; exits 1 where the store does not know the class.\n"
    "Of attention with a mask also what that keeps, and its time against the same attention's without it: measured where\n"
    "the store knows both, else estimated. A time with ~ is a first look, which does not compare with those of the rounds.";

int cmd_explain(cli *app, int argc, char **argv)
{
    args a = {.command = "explain", .synopsis = "[FILE] [options]", .about = about, .max_operands = 1};
    a.often = "all m k n block density dtype json";
    a.operand_kind = ARGS_MATRIX;
    a.examples = "sparsek explain --m 2048 --k 2048 --n 512 --block 64 --density 10%\n"
                 "sparsek explain matrix.mtx --block 3 --n 32\n";
    problem_flags flags = problem_defaults();
    const args_option evidence[] = {CLI_ALL_OPTION(app)};
    problem_options(&a, &flags);
    args_add(&a, "Evidence", evidence, 1);
    cli_common_options(&a, app, HEEDS_THREADS | HEEDS_DEVICE | HEEDS_STORE | HEEDS_KERNELS);
    int code = cli_parse(&a, argc, argv);
    if (code != ARGS_GO)
        return code;
    flags.file = a.operand_count ? a.operands[0] : NULL;
    problem p;
    code = cli_open(app);
    cli_interrupt_ends(app, true);
    if (code == EXIT_DONE)
        code = problem_make(app, &flags, &p);
    if (code)
        return code;
    spk_report *report = NULL;
    result r = {.chosen = -1};
    spk_status status = problem_explain(app, &p, &report);
    if (status == SPK_OK)
        status = result_from_report(report, false, &r);
    spk_report_destroy(&report);
    if (status == SPK_ERR_UNKNOWN_CLASS) {
        char *common = cli_common_text(app);
        code = cli_fail(app, EXIT_SHORT, "the store does not know this problem's class; 'sparsek tune %s%s' measures it", p.flags, common);
        free(common);
    } else
        code = cli_status(app, NULL, status, NULL);
    if (code == EXIT_DONE) {
        json_t *results = json_array(), *one = result_json(&p, &r);
        unmasked full;
        const bool is_mask = unmasked_find(app, &p, &r, &full);
        if (is_mask)
            json_put(one, "unmasked", unmasked_json(&full));
        json_push(results, one);
        code = json_finish(app, json_envelope(app, results), code);
        if (cli_talks(app)) {
            result_print(app, &p, &r);
            if (is_mask)
                unmasked_print(&full);
            char *class = cli_format("class: %s", r.class_key);
            putchar('\n');
            term_broken(cli_clean(class), ";|");
            free(class);
        }
    }
    result_release(&r);
    problem_release(&p);
    return code;
}
