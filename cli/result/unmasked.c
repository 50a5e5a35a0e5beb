/* What a mask costs against the same problem without one: as the store knows both, else as the cost model has them. */
#include "cli/result/unmasked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/term.h"
#include "cli/base/text.h"
#include "cli/io/json.h"

/* The least predicted time of what may win; 0: none has one. */
static double predicted(const cli *app, const problem *p)
{
    spk_report *list = NULL;
    spk_report_info info = {SPK_SIZED(spk_report_info)};
    double least = 0;
    spk_status status = problem_list(app, p, &list);
    if (status == SPK_OK)
        status = spk_report_get_info(list, &info);
    for (int i = 0; status == SPK_OK && i < info.candidate_count; i++) {
        spk_candidate_info c = {SPK_SIZED(spk_candidate_info)};
        status = spk_report_get_candidate(list, i, &c);
        if (status == SPK_OK && c.predicted_us > 0 && c.status != SPK_CANDIDATE_NOT_APPLICABLE && (least == 0 || c.predicted_us < least))
            least = c.predicted_us;
    }
    spk_report_destroy(&list);
    return least;
}

/* The time of a result's choice; 0: there is none. *shaky: whether that says little. */
static double time_of(const result *r, bool *shaky)
{
    const result_row *chosen = r->chosen >= 0 ? &r->rows[r->chosen] : NULL;
    *shaky = *shaky || r->provisional != SPK_PROVISIONAL_NO || (chosen && result_is_first_look(chosen));
    return chosen && !r->foreign ? chosen->median_us : 0;
}

/* The time of the stored choice; 0: there is none. */
static double measured(const cli *app, const problem *p, bool *shaky)
{
    spk_report *report = NULL;
    result r = {.chosen = -1};
    double us = 0;
    if (problem_explain(app, p, &report) == SPK_OK && result_from_report(report, false, &r) == SPK_OK) {
        us = time_of(&r, shaky);
        result_release(&r);
    }
    spk_report_destroy(&report);
    return us;
}

/* The same problem without its pattern. */
static bool without(const cli *app, const problem *p, problem *out)
{
    *out = *p;
    out->pattern = NULL;
    for (int i = 0; i < p->op->info.field_count; i++)
        if (p->op->fields[i].kind == SPK_FIELD_COUNT &&
            (strncmp(p->op->fields[i].name, "mask_", 5) == 0 || strcmp(p->op->fields[i].name, "tiles") == 0))
            operation_put(&p->op->fields[i], &out->given, 0);
    out->numbers = (spk_problem_info){SPK_SIZED(spk_problem_info)};
    return spk_problem_get_info(app->context, NULL, &out->given, &out->numbers) == SPK_OK;
}

bool unmasked_find(const cli *app, const problem *p, const result *r, unmasked *out)
{
    problem whole;
    unmasked u = {.is_measured = true};
    if (!p->pattern || p->op->info.takes_pattern != SPK_PATTERN_OPTIONAL || !without(app, p, &whole) || !(whole.numbers.flops > 0))
        return false;
    u.kept = p->numbers.flops / whole.numbers.flops;
    u.masked_us = time_of(r, &u.is_shaky);
    u.whole_us = measured(app, &whole, &u.is_shaky);
    if (u.masked_us <= 0 || u.whole_us <= 0) {
        u.is_measured = u.is_shaky = false;
        u.masked_us = predicted(app, p);
        u.whole_us = predicted(app, &whole);
    }
    *out = u;
    return u.masked_us > 0 && u.whole_us > 0;
}

static const char *source_of(const unmasked *u)
{
    if (!u->is_measured)
        return "both are the cost model's estimates and no times of the table, as the store does not know the attention without the mask";
    return u->is_shaky ? "both measured, but on a busy machine or for too short a time: the ratio says little" : "both measured";
}

void unmasked_print(const unmasked *u)
{
    const double ratio = u->masked_us / u->whole_us;
    char *text = cli_format("The mask keeps %.3g %% of the pairs and takes %.2f of the time of the same attention without it, %.0f us for "
                            "%.0f us (%s).%s",
                            100 * u->kept, ratio, u->masked_us, u->whole_us, source_of(u),
                            ratio >= 1 ? " Without the mask it is faster: the mask saves nothing." : "");
    putchar('\n');
    term_paragraph(text, 0);
    free(text);
}

json_t *unmasked_json(const unmasked *u)
{
    json_t *o = json_object();
    json_put(o, "kept", json_number(u->kept));
    json_put(o, "masked_us", json_number(u->masked_us));
    json_put(o, "whole_us", json_number(u->whole_us));
    json_put(o, "measured", json_boolean(u->is_measured));
    json_put(o, "provisional", json_boolean(u->is_shaky));
    return o;
}
