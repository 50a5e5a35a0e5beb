/* Results as JSON and as text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/args/command.h"
#include "cli/base/table.h"
#include "cli/base/term.h"
#include "cli/base/text.h"
#include "cli/io/json.h"
#include "cli/result/result.h"

static json_t *rate(double flops, double median_us)
{
    return median_us > 0 ? json_number(flops / median_us * 1e-6) : json_null();
}

static json_t *ratios_json(const result *r)
{
    json_t *o = json_object();
    for (int i = 0; i < r->ratio_count; i++) {
        json_t *ratio = json_object();
        json_put(ratio, "median", json_number(r->ratios[i].median));
        json_put(ratio, "pairs", json_integer(r->ratios[i].pairs));
        json_put(o, r->ratios[i].name, ratio);
    }
    return o;
}

/* A first look has none, unless it was at several runs. */
static bool has_spread(const result_row *row)
{
    return !result_is_first_look(row) || row->spread_us > 0;
}

static json_t *row_json(const problem *p, const result *r, int index)
{
    const result_row *row = &r->rows[index];
    const bool timed = row->median_us > 0;
    const double rated_us = r->foreign ? 0 : row->median_us;
    json_t *o = json_object();
    json_put(o, "name", json_text(row->name));
    json_put(o, "params", json_text(row->params));
    json_put(o, "hash", row->hash[0] ? json_text(row->hash) : json_null());
    json_put(o, "kind", json_string(result_kind_name(row->kind)));
    json_put(o, "status", json_string(result_status_name(row->status)));
    json_put(o, "why", json_text(row->why));
    json_put(o, "median_us", timed ? json_number(row->median_us) : json_null());
    json_put(o, "spread_us", timed && has_spread(row) ? json_number(row->spread_us) : json_null());
    json_put(o, "least_us", timed && row->least_us > 0 ? json_number(row->least_us) : json_null());
    json_put(o, "prepare_us", timed ? json_number(row->prepare_us) : json_null());
    json_put(o, "tflops", rate(problem_flops(p), rated_us));
    json_put(o, "dense_equivalent_tflops", rate(problem_dense_flops(p), rated_us));
    json_put(o, "error", row->error >= 0 ? json_number(row->error) : json_null());
    json_put(o, "tolerance", row->tolerance > 0 ? json_number(row->tolerance) : json_null());
    json_put(o, "ratios", index == r->chosen ? ratios_json(r) : json_null());
    return o;
}

json_t *result_json(const problem *p, const result *r)
{
    json_t *o = json_object(), *candidates = json_array();
    for (int i = 0; i < r->count; i++)
        json_push(candidates, row_json(p, r, i));
    json_put(o, "problem", problem_json(p));
    json_put(o, "chosen", r->chosen >= 0 ? json_text(r->rows[r->chosen].name) : json_null());
    json_put(o, "from_store", json_boolean(r->from_store));
    json_put(o, "origin", json_text(r->origin));
    json_put(o, "foreign", json_boolean(r->foreign));
    json_put(o, "provisional", r->provisional ? json_string(result_provisional(r->provisional)) : json_null());
    json_put(o, "tuning_s", json_number(r->tuning_s));
    json_put(o, "candidates", candidates);
    return o;
}

/* Rows that were not measured for one and the same reason are shown once a kernel; how many they are, 0 for one that was shown before. */
static int alike(const result *r, int index)
{
    const result_row *row = &r->rows[index];
    int count = 0;
    if (row->median_us > 0 || index == r->chosen)
        return 1;
    for (int i = 0; i < r->count; i++) {
        const result_row *other = &r->rows[i];
        bool same = other->median_us <= 0 && other->status == row->status && strcmp(other->name, row->name) == 0;
        if (!same || i == r->chosen || strcmp(other->why ? other->why : "", row->why ? row->why : "") != 0)
            continue;
        if (i < index)
            return 0;
        count++;
    }
    return count;
}

enum { NAME, PARAMS, MEDIAN, SPREAD, LEAST, GFLOPS, VERSUS, NOTE, SHOWN };

static int digits_of(double us)
{
    return us < 100 ? 2 : us < 1000 ? 1 : 0;
}

/* The least time of a row where the choice went by it, as other programs used the processors. 0: not told. */
static double least_us(const result *r, const result_row *row)
{
    return r->provisional == SPK_PROVISIONAL_LOAD ? row->least_us : 0;
}

/* Whether a row says something of its own; those that had no chance are counted in one line. */
static bool is_shown(const cli *app, const result *r, int index)
{
    const result_row *row = &r->rows[index];
    const bool ended_badly =
        row->status == SPK_CANDIDATE_WRONG || row->status == SPK_CANDIDATE_FAILED || row->status == SPK_CANDIDATE_TIMED_OUT;
    return app->all || index == r->chosen || row->median_us > 0 || ended_badly || cli_names(app, row->name);
}

/* Whether both times are of the rounds, or both of a first look. */
static bool compare(const result_row *a, const result_row *b)
{
    return result_is_first_look(a) == result_is_first_look(b);
}

static void put_times(table *t, const problem *p, const result *r, const result_row *row, int dense)
{
    const double least = least_us(r, row), gflops = problem_flops(p) / row->median_us * 1e-3;
    table_cell(t, MEDIAN, "%s%.*f", result_is_first_look(row) ? "~" : "", digits_of(row->median_us), row->median_us);
    if (least > 0)
        table_cell(t, LEAST, "%.*f", digits_of(least), least);
    if (has_spread(row))
        table_cell(t, SPREAD, "%s%.*f", term_utf8() ? "\u00b1" : "+-",
                   row->spread_us < 10    ? 2
                   : row->spread_us < 100 ? 1
                                          : 0,
                   row->spread_us);
    if (!r->foreign)
        table_cell(t, GFLOPS, "%.*f", gflops < 10 ? 2 : 1, gflops);
    if (dense >= 0 && !r->foreign && compare(row, &r->rows[dense])) {
        const double dense_us = r->renewed && !row->renewed ? r->stored_dense_us : r->rows[dense].median_us; /* of one day */
        if (dense_us > 0)
            table_cell(t, VERSUS, "%.2f", dense_us / row->median_us);
    }
    if (compare(row, &r->rows[0])) /* rows are in order: the first is the fastest */
        table_bar(t, r->rows[0].median_us / row->median_us);
}

static void put_row(table *t, const problem *p, const result *r, int index, int dense)
{
    int count = alike(r, index);
    if (count == 0)
        return;
    const result_row *row = &r->rows[index];
    bool timed = row->median_us > 0, chosen = index == r->chosen, fine = row->status == SPK_CANDIDATE_OK;
    table_row(t, chosen ? TABLE_GOOD : timed && fine ? TABLE_PLAIN : TABLE_FAINT);
    table_cell(t, NAME, "%s%s", chosen ? "> " : "  ", row->name);
    if (count > 1)
        table_cell(t, PARAMS, "%d combinations", count);
    else
        table_cell(t, PARAMS, "%s", row->params);
    if (timed)
        put_times(t, p, r, row, dense);
    else
        table_cell(t, MEDIAN, "-");
    if (row->why && (row->status == SPK_CANDIDATE_NOT_ELIGIBLE || row->status == SPK_CANDIDATE_NOT_APPLICABLE))
        table_remark(t, "%s", row->why);
    else if (!fine || row->why)
        table_remark(t, "%s%s%s", result_status_name(row->status), row->why ? ": " : "", row->why ? row->why : "");
    else if (row->renewed)
        table_remark(t, "timed again now");
}

static bool several_of_a_kernel(const result *r)
{
    for (int i = 0; i < r->count; i++)
        for (int j = 0; j < i; j++)
            if (r->rows[i].median_us > 0 && r->rows[j].median_us > 0 && strcmp(r->rows[i].name, r->rows[j].name) == 0)
                return true;
    return false;
}

static void print_heading(cli *app, const problem *p, const result *r)
{
    spk_device_info device = {SPK_SIZED(spk_device_info)};
    char *text = problem_text(p), age[48];
    term_paragraph(text, 0);
    free(text);
    result_age(r->measured_at, age, sizeof(age));
    if (spk_context_get_device(app->context, &device) != SPK_OK)
        device.name = "unknown device";
    char *when = r->foreign ? cli_format("%s: measured there %s, and no times of this problem", r->origin, age)
                 : r->from_store
                     ? cli_format("from the store, measured %s%s", age, r->renewed ? "; the chosen one and dense timed again now" : "")
                 : r->count && r->rows[0].median_us > 0 ? cli_format("measured now in %.1f s", r->tuning_s)
                                                        : cli_format("nothing was measured");
    const char *operands = r->provisional == SPK_PROVISIONAL_IN_PLACE ? "operands of the program's own runs"
                           : p->options.cache                         ? "warm operands"
                                                                      : "cold operands";
    text = cli_format("%s, %d threads, %s; %s", device.name, device.threads, operands, when);
    free(when);
    term_paragraph(text, 0);
    free(text);
    putchar('\n');
}

/* Whether each row is another kernel: of a race the best candidate of each. */
static bool is_by_kernel(const result *r)
{
    for (int i = 0; i < r->count; i++)
        for (int j = 0; j < i; j++)
            if (strcmp(r->rows[i].name, r->rows[j].name) == 0)
                return false;
    return true;
}

/* "14 of 17 kernels did not run (9 cannot compute this here, 5 were passed over); --all lists them with the reasons." */
static void print_left_out(const cli *app, const result *r, int count)
{
    static const struct {
        spk_candidate_status status;
        const char *words;
    } kinds[] = {{SPK_CANDIDATE_NOT_APPLICABLE, "cannot compute this here"},
                 {SPK_CANDIDATE_NOT_ELIGIBLE, "may not win here"},
                 {SPK_CANDIDATE_PRUNED, "were passed over"}};
    char *text = cli_format("%d of %d %s did not run (", count, r->count, is_by_kernel(r) ? "kernels" : "candidates");
    bool first = true;
    for (int k = 0; k < 3; k++) {
        int of_kind = 0;
        for (int i = 0; i < r->count; i++)
            of_kind += !is_shown(app, r, i) && r->rows[i].status == kinds[k].status;
        if (of_kind == 0)
            continue;
        char *longer = cli_format("%s%s%d %s", text, first ? "" : ", ", of_kind, kinds[k].words);
        free(text);
        text = longer;
        first = false;
    }
    char *whole = cli_format("%s); --all lists them with the reasons.", text);
    putchar('\n');
    term_paragraph(whole, 0);
    free(whole);
    free(text);
}

/* What "~" means, where it stands. */
static void print_first_looks(const cli *app, const result *r)
{
    int looks = 0, of_rounds = 0;
    for (int i = 0; i < r->count; i++) {
        looks += is_shown(app, r, i) && result_is_first_look(&r->rows[i]);
        of_rounds += r->rows[i].median_us > 0 && !result_is_first_look(&r->rows[i]);
    }
    if (looks == 0)
        return;
    char *text = cli_format("~: a first look, at a few runs or at a part of the work%s",
                            of_rounds > 0 ? ". It does not compare with the times of the interleaved rounds, which came later: the "
                                            "machine's pace changes meanwhile."
                                          : "; there were no interleaved rounds.");
    putchar('\n');
    term_paragraph(text, 0);
    free(text);
}

/* Evidence of a busy machine may have a row ahead of the chosen one. While it is fresh, the table has the least times. */
static void print_choice_by_least(const result *r)
{
    const result_row *chosen = r->chosen >= 0 ? &r->rows[r->chosen] : NULL;
    if (!chosen || r->provisional != SPK_PROVISIONAL_LOAD || r->renewed || least_us(r, chosen) > 0 || result_is_first_look(chosen))
        return;
    for (int i = 0; i < r->count; i++) {
        const result_row *row = &r->rows[i];
        if (row->status != SPK_CANDIDATE_OK || row->median_us >= chosen->median_us || row->median_us <= 0 || result_is_first_look(row))
            continue;
        putchar('\n');
        term_paragraph("A smaller median than the chosen one's is no mistake: other programs used the processors, so that the choice went "
                       "by the least time of each, which the store does not keep.",
                       0);
        return;
    }
}

void result_print(cli *app, const problem *p, const result *r)
{
    table_column columns[SHOWN] = {
        [NAME] = {"  kernel", false, 0, false}, [PARAMS] = {"params", false, 1, false}, [MEDIAN] = {"median us", true, 0, false},
        [SPREAD] = {"spread", true, 2, false},  [LEAST] = {"least us", true, 6, false}, [GFLOPS] = {"GFLOP/s", true, 5, false},
        [VERSUS] = {"x dense", true, 4, false}, [NOTE] = {"speed", false, 3, true},
    };
    if (several_of_a_kernel(r)) /* then the parameters tell them apart: they stay */
        columns[PARAMS].keep = 0;
    int dense = result_best_dense(r);
    print_heading(app, p, r);
    table *t = table_make(columns, SHOWN);
    int left_out = 0, shown = 0;
    bool has_least = false;
    for (int i = 0; i < r->count; i++) {
        shown += is_shown(app, r, i);
        has_least = has_least || least_us(r, &r->rows[i]) > 0;
        left_out += !is_shown(app, r, i);
        if (is_shown(app, r, i))
            put_row(t, p, r, i, dense);
    }
    if (!has_least)
        table_hide(t, LEAST);
    if (r->foreign) {
        table_hide(t, GFLOPS);
        table_hide(t, VERSUS);
    }
    if (shown > 0)
        table_print(t, 0);
    table_release(&t);
    print_first_looks(app, r);
    print_choice_by_least(r);
    if (left_out > 0)
        print_left_out(app, r, left_out);
    if (r->summary[0]) {
        char *told = cli_format("%s%s", r->renewed ? "As it was measured then: " : "", r->summary);
        putchar('\n');
        term_paragraph(told, 0);
        free(told);
    }
    if (r->disturbed)
        term_paragraph("Other programs used the processors when the chosen one and dense were timed again: those times say little.", 0);
}
