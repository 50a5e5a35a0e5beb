/* The report: candidates and their evidence for one class, and the paragraph that explains them. Says only what was measured. */
#include "store/report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/c_locale.h"

static const double wide_spread = 0.2; /* of the median: other work of the machine was measured too */

const char spk_why_interrupted[] = "tuning was interrupted before it was decided";

bool spk_report_interrupted(const spk_report *report)
{
    for (int i = 0; i < report->count; i++)
        if (report->candidates[i].status == SPK_CANDIDATE_PRUNED && strcmp(report->candidates[i].why, spk_why_interrupted) == 0)
            return true;
    return false;
}

spk_status spk_report_make(const spk_mem *mem, const char *class_key, const char *device_text, spk_report **report)
{
    spk_report *made = NULL;
    SPK_TRY(spk_calloc(mem, 1, sizeof *made, &made));
    made->mem = *mem;
    made->chosen = -1;
    spk_status status = spk_strdup(mem, class_key, &made->class_key);
    if (status == SPK_OK)
        status = spk_strdup(mem, device_text, &made->device_text);
    if (status != SPK_OK) {
        spk_report_release(&made);
        return status;
    }
    *report = made;
    return SPK_OK;
}

void spk_report_release(spk_report **report)
{
    spk_report *old = *report;
    if (old == NULL)
        return;
    spk_mem mem = old->mem;
    for (int i = 0; i < old->count; i++)
        spk_free(&mem, old->candidates[i].samples_us);
    spk_free(&mem, old->candidates);
    spk_free(&mem, old->class_key);
    spk_free(&mem, old->device_text);
    spk_free(&mem, old->summary);
    spk_free(&mem, old);
    *report = NULL;
}

spk_status spk_report_append(spk_report *report, const spk_evidence *evidence, spk_evidence **entry)
{
    if (report->count == report->capacity) {
        int capacity = report->capacity < 16 ? 16 : 2 * report->capacity;
        SPK_TRY(spk_realloc(&report->mem, &report->candidates, (size_t)capacity, sizeof *report->candidates));
        report->capacity = capacity;
    }
    report->candidates[report->count] = *evidence;
    if (entry != NULL)
        *entry = &report->candidates[report->count];
    report->count++;
    return SPK_OK;
}

spk_status spk_report_add(spk_report *report, const spk_kernel *kernel, const spk_params *params, spk_evidence **entry)
{
    spk_evidence fresh = {.kind = kernel->kind, .status = SPK_CANDIDATE_PRUNED, .error = -1};
    snprintf(fresh.name, sizeof fresh.name, "%s", kernel->name);
    spk_params_text(kernel, params, fresh.params, sizeof fresh.params);
    spk_candidate_hash(kernel, params, fresh.hash);
    return spk_report_append(report, &fresh, entry);
}

/* ------------------------------------------------------------------------------------------------ the paragraph */

typedef struct paragraph {
    char text[2048];
    size_t used;
} paragraph;

/* Appends; what does not fit is cut. */
__attribute__((format(printf, 2, 3))) static void append_words(paragraph *out, const char *format, ...)
{
    if (out->used + 1 >= sizeof out->text)
        return;
    va_list arguments;
    va_start(arguments, format);
    int length = spk_vsnprintf(out->text + out->used, sizeof out->text - out->used, format, arguments);
    va_end(arguments);
    out->used += length > 0 ? (size_t)length : 0;
    if (out->used >= sizeof out->text)
        out->used = sizeof out->text - 1;
}

static void say_name(paragraph *out, const spk_evidence *e)
{
    append_words(out, "%s%s%s", e->name, e->params[0] != '\0' ? " " : "", e->params);
}

static void say_us(paragraph *out, double us)
{
    append_words(out, us < 100 ? "%.3g us" : "%.0f us", us);
}

static bool needs_finite(const spk_evidence *e)
{
    return e->status == SPK_CANDIDATE_NOT_ELIGIBLE && strstr(e->why, "assume_finite") != NULL;
}

/* The fastest measured entry that `wanted` accepts, or NULL. */
static const spk_evidence *fastest(const spk_report *report, bool (*wanted)(const spk_evidence *entry, const spk_evidence *chosen))
{
    const spk_evidence *chosen = report->chosen >= 0 ? &report->candidates[report->chosen] : NULL, *best = NULL;
    for (int i = 0; i < report->count; i++) {
        const spk_evidence *e = &report->candidates[i];
        if (e->median_us > 0 && wanted(e, chosen) && (best == NULL || e->median_us < best->median_us))
            best = e;
    }
    return best;
}

static bool is_rival(const spk_evidence *e, const spk_evidence *chosen)
{
    return e->status == SPK_CANDIDATE_OK && strcmp(e->name, chosen->name) != 0;
}

static bool is_dense(const spk_evidence *e, const spk_evidence *chosen)
{
    (void)chosen;
    return e->kind == SPK_KIND_DENSE && (e->status == SPK_CANDIDATE_OK || e->status == SPK_CANDIDATE_NOT_ELIGIBLE);
}

static bool would_win_if_finite(const spk_evidence *e, const spk_evidence *chosen)
{
    return needs_finite(e) && e->median_us < chosen->median_us;
}

static void say_against(paragraph *out, const spk_evidence *other, const spk_evidence *chosen)
{
    say_name(out, other);
    append_words(out, " at ");
    say_us(out, other->median_us);
    double ratio = other->median_us / chosen->median_us;
    if (ratio < 1)
        append_words(out, " (%.2fx the speed)", 1 / ratio);
    else
        append_words(out, " (%.2fx as long)", ratio);
}

static void say_winner(paragraph *out, const spk_report *report, const spk_evidence *chosen)
{
    say_name(out, chosen);
    if (chosen->median_us <= 0) {
        append_words(out, " was not measured");
        if (chosen->predicted_us > 0) {
            append_words(out, "; the cost model predicts ");
            say_us(out, chosen->predicted_us);
        }
        append_words(out, ".");
        return;
    }
    bool measured = chosen->sample_count > 0 || chosen->spread_us > 0;
    append_words(out, report->foreign ? measured ? " took " : " took an estimated " : measured ? " takes " : " takes an estimated ");
    say_us(out, chosen->median_us);
    if (report->foreign)
        append_words(out, " there, which says nothing of the time here");
    if (measured) {
        append_words(out, ", spread ");
        say_us(out, chosen->spread_us);
    } else {
        append_words(out, " (a first look only: %s before interleaved rounds)",
                     spk_report_interrupted(report) ? "the measuring was interrupted" : "the budget ended");
    }
    if (chosen->prepare_us > 0) {
        append_words(out, ", after ");
        say_us(out, chosen->prepare_us);
        append_words(out, " of one-off preparation");
    }
    append_words(out, ".");
    if (chosen->spread_us > wide_spread * chosen->median_us)
        append_words(
            out, " Its samples vary widely: other work may have disturbed them, and tuning afresh on an idle machine may choose another.");
    const spk_evidence *rival = fastest(report, is_rival), *dense = fastest(report, is_dense),
                       *barred = fastest(report, would_win_if_finite);
    if (rival != NULL) {
        append_words(out, " Next of the other kernels: ");
        say_against(out, rival, chosen);
        append_words(out, ".");
    } else {
        append_words(out, " No other kernel that may win was measured to the end.");
    }
    if (dense != NULL && dense != rival && dense != chosen) {
        append_words(out, " Dense: ");
        say_against(out, dense, chosen);
        append_words(out, ".");
    }
    if (barred != NULL) {
        append_words(out, " With assume_finite, ");
        say_name(out, barred);
        append_words(out, " would win, %.2fx as fast as the choice.", chosen->median_us / barred->median_us);
    }
}

/* " 2 gave wrong results (x: error 0.5 over the tolerance 1e-05; y: ...)." with at most three examples. */
static void say_refused(paragraph *out, const spk_report *report, spk_candidate_status status, const char *what)
{
    int count = 0, shown = 0;
    for (int i = 0; i < report->count; i++)
        count += report->candidates[i].status == status;
    if (count == 0)
        return;
    append_words(out, " %d %s (", count, what);
    for (int i = 0; i < report->count && shown < 3; i++) {
        const spk_evidence *e = &report->candidates[i];
        if (e->status != status)
            continue;
        append_words(out, "%s", shown++ > 0 ? "; " : "");
        say_name(out, e);
        if (e->why[0] != '\0')
            append_words(out, ": %s", e->why);
        else if (status == SPK_CANDIDATE_WRONG)
            append_words(out, ": error %.2g over the tolerance %.2g", e->error, e->tolerance);
    }
    append_words(out, "%s).", count > shown ? "; ..." : "");
}

static void say_age(paragraph *out, int64_t age_s)
{
    static const struct {
        int64_t seconds;
        const char *one, *many;
    } units[] = {{86400, "day", "days"}, {3600, "hour", "hours"}, {60, "minute", "minutes"}};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        int64_t count = age_s / units[i].seconds;
        if (count > 0) {
            append_words(out, "%" PRId64 " %s ago", count, count == 1 ? units[i].one : units[i].many);
            return;
        }
    }
    append_words(out, age_s < 0 ? "at a time that lies ahead of this clock" : "just now");
}

static void say_unchosen(paragraph *out, const spk_report *report)
{
    const spk_evidence *first = NULL;
    int able = 0;
    if (report->empty) {
        append_words(out, "The product has no element: there is nothing to choose or to measure.");
        return;
    }
    for (int i = 0; i < report->count; i++) {
        const spk_evidence *e = &report->candidates[i];
        if (e->status == SPK_CANDIDATE_NOT_APPLICABLE)
            continue;
        able++;
        bool may_win = e->status == SPK_CANDIDATE_OK || e->status == SPK_CANDIDATE_PRUNED;
        if (may_win && e->predicted_us > 0 && (first == NULL || e->predicted_us < first->predicted_us))
            first = e;
    }
    append_words(out, "Nothing was chosen: %d of %d candidates can compute this problem here.", able, report->count);
    if (first != NULL) {
        append_words(out, " The cost model puts ");
        say_name(out, first);
        append_words(out, " first, at ");
        say_us(out, first->predicted_us);
        append_words(out, ".");
    }
}

static void say_provisional(paragraph *out, const spk_report *report)
{
    const char *later = "";
    if (report->provisional == SPK_PROVISIONAL_INTERRUPTED || spk_report_interrupted(report)) {
        append_words(out, " Provisional: the measuring was interrupted");
        later = "; what is left is measured with the next tuning";
    } else if (report->provisional == SPK_PROVISIONAL_BUDGET) {
        append_words(out, " Provisional: the budget of %.3g s ended before interleaved rounds could decide", report->budget_s);
        later = "; a tuning with half as much again measures anew";
    } else if (report->provisional == SPK_PROVISIONAL_IN_PLACE) {
        append_words(out, " Provisional: the program's own runs tried a few candidates");
        later = "; a tuning measures more of them";
    } else if (report->provisional == SPK_PROVISIONAL_LOAD) {
        append_words(out, " Provisional: other programs used the processors while this was measured");
        if (report->crowded)
            append_words(out, ", so that the choice goes by the least time of each and not by the medians");
        later = "; it is measured anew when the machine is quieter, or at once with --fresh (options.fresh)";
    } else {
        return;
    }
    if (report->kept_out)
        later = ". The store has better evidence of this class, and keeps that";
    append_words(out, "%s.", later);
}

static void say_trying(paragraph *out, const spk_report *report)
{
    append_words(out, "This class is %s.", report->origin);
    if (report->chosen >= 0) {
        append_words(out, " The fastest of them was ");
        say_name(out, &report->candidates[report->chosen]);
        append_words(out, ", at ");
        say_us(out, report->candidates[report->chosen].median_us);
        append_words(out, ".");
    }
    append_words(out, " It is decided by 20 to 100 runs; a tuning measures at once.");
}

spk_status spk_report_summarise(spk_report *report, int64_t now)
{
    paragraph out = {.used = 0};
    if (report->how == SPK_ORIGIN_TRYING)
        say_trying(&out, report);
    else if (report->origin[0] != '\0')
        append_words(&out, "Of this class nothing was measured: %s%s. ", report->origin,
                     report->how == SPK_ORIGIN_NEAREST ? " is known, and decides" : "");
    if (report->chosen >= 0 && report->how != SPK_ORIGIN_TRYING)
        say_winner(&out, report, &report->candidates[report->chosen]);
    else if (report->how != SPK_ORIGIN_TRYING)
        say_unchosen(&out, report);
    say_refused(&out, report, SPK_CANDIDATE_WRONG, "gave wrong results");
    say_refused(&out, report, SPK_CANDIDATE_FAILED, "failed");
    say_refused(&out, report, SPK_CANDIDATE_TIMED_OUT, "timed out");
    int measured = 0;
    for (int i = 0; i < report->count; i++)
        measured += report->candidates[i].median_us > 0;
    if (report->how == SPK_ORIGIN_TRYING)
        measured = 0;
    if (measured > 0)
        append_words(&out, " %d of %d candidates were measured, in %.2f s", report->by_kernel ? report->tried : measured,
                     report->by_kernel ? report->known : report->count, report->tuning_s);
    if (measured > 0 && report->measured_at > 0) {
        append_words(&out, ", ");
        say_age(&out, now - report->measured_at);
    }
    if (measured > 0)
        append_words(&out, ".");
    say_provisional(&out, report);
    char *summary = NULL;
    SPK_TRY(spk_strdup(&report->mem, out.text, &summary));
    spk_free(&report->mem, report->summary);
    report->summary = summary;
    return SPK_OK;
}
