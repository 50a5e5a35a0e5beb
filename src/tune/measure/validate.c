/* A candidate must be right before it may be fast: its output, poisoned beforehand, is compared with the oracle at sampled places, and
 * every element must have been written, and nothing beside them. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/callback.h"
#include "op/operation.h"
#include "matrix/matrix.h"
#include "tune/measure/measure.h"

enum { MOST_ROWS = 48 /* <= SPK_GATHER_MOST */, WINDOW = 32, WINDOWS = 3, CHUNK_ROWS = 4, MOST_RESULTS = 1 << 20 };

/* The error of a result that is no number, or that should be exact and is not. */
static const double hopeless = 1e30;

/* Oracle results for some of the sampled rows of an output and a range of its columns. */
typedef struct piece {
    int first_row, rows; /* into expected->rows */
    int64_t col0, cols;
    int64_t offset; /* into the results */
} piece;

/* What one output must be, at sampled places. */
typedef struct expected {
    int output;              /* of the operands */
    double strictness;       /* the first output's tolerance over this one's */
    int64_t rows[MOST_ROWS]; /* of all items */
    int row_count;
    piece *pieces;
    int piece_count;
    int64_t used;
    double *want, *magnitude;
} expected;

struct spk_checks {
    spk_mem mem;
    const spk_tuner *tuner;     /* borrowed */
    const spk_problem *problem; /* borrowed */
    expected *outputs;          /* that a run writes */
    int output_count;
};

void spk_checks_release(spk_checks **checks)
{
    spk_checks *old = *checks;
    *checks = NULL;
    if (old == NULL)
        return;
    spk_mem mem = old->mem;
    for (int i = 0; i < old->output_count; i++) {
        spk_free(&mem, old->outputs[i].pieces);
        spk_free(&mem, old->outputs[i].want);
        spk_free(&mem, old->outputs[i].magnitude);
    }
    spk_free(&mem, old->outputs);
    spk_free(&mem, old);
}

/* ------------------------------------------------------------------------------------------------ which places */

/* The rows where kernels go wrong first, then any. */
static spk_status choose_rows(const spk_problem *p, expected *e, spk_rng *rng)
{
    spk_row_list list = {.rows = e->rows, .limit = spk_problem_output_rows(p, e->output), .capacity = MOST_ROWS};
    if (p->op->hard_rows != NULL)
        SPK_TRY(p->op->hard_rows(p, e->output, rng, &list));
    spk_row_list_add(&list, list.limit - 1);
    spk_row_list_add(&list, 0);
    for (int tries = 0; tries < 2 * MOST_ROWS && list.count < MOST_ROWS; tries++)
        spk_row_list_add(&list, (int64_t)spk_rng_below(rng, (uint64_t)list.limit));
    e->row_count = list.count;
    return SPK_OK;
}

/* ------------------------------------------------------------------------------------------------ what must be there */

static spk_status reserve_expected(spk_checks *c, expected *e, int64_t more)
{
    const size_t capacity = (size_t)(e->used + more);
    SPK_TRY(spk_realloc(&c->mem, &e->want, capacity, sizeof(double)));
    SPK_TRY(spk_realloc(&c->mem, &e->magnitude, capacity, sizeof(double)));
    return spk_realloc(&c->mem, &e->pieces, (size_t)e->piece_count + 1, sizeof *e->pieces);
}

/* The oracle over some rows and a range of columns. */
static spk_status compute_expected(spk_checks *c, expected *e, const spk_args *host, int first_row, int rows, int64_t col0, int64_t cols)
{
    SPK_TRY(reserve_expected(c, e, rows * cols));
    const spk_oracle_ask asked = {.output = e->output,
                                  .rows = e->rows + first_row,
                                  .row_count = rows,
                                  .col0 = col0,
                                  .cols = cols,
                                  .want = e->want + e->used,
                                  .magnitude = e->magnitude + e->used};
    SPK_TRY(c->problem->op->oracle(&c->mem, c->problem, host, &asked));
    e->pieces[e->piece_count++] = (piece){first_row, rows, col0, cols, e->used};
    e->used += rows * cols;
    return SPK_OK;
}

/* Many rows at the first, some inner and the last columns; then a few rows over all columns. Each as far as the time goes. */
static spk_status ask_all(spk_checks *c, expected *e, const spk_args *host, spk_rng *rng, double limit_us)
{
    const int64_t n = c->problem->operand[e->output].cols;
    double start = spk_work_us();
    bool whole = n <= WINDOWS * WINDOW;
    int64_t inner = whole ? 0 : WINDOW + (int64_t)spk_rng_below(rng, (uint64_t)(n - WINDOWS * WINDOW) + 1);
    int64_t starts[WINDOWS] = {0, inner, n - WINDOW};
    int rows = 0;
    while (rows < e->row_count && (rows == 0 || spk_work_us() - start < 0.6 * limit_us)) {
        int chunk = rows == 0 ? 1 : CHUNK_ROWS;
        chunk = chunk < e->row_count - rows ? chunk : e->row_count - rows;
        for (int w = 0; w < (whole ? 1 : WINDOWS); w++)
            SPK_TRY(compute_expected(c, e, host, rows, chunk, starts[w], whole ? n : WINDOW));
        rows += chunk;
    }
    double spent = spk_work_us() - start, column_us = fmax(spent, 1) / ((double)rows * WINDOWS * WINDOW);
    for (int row = 0; row < rows && !whole; row++) {
        double left = limit_us - (spk_work_us() - start);
        if (row > 0 && (left < column_us * (double)n || e->used + n > MOST_RESULTS))
            break;
        int64_t cols = left < column_us * (double)n ? (int64_t)(left / column_us) : n;
        if (cols < WINDOW)
            break;
        SPK_TRY(compute_expected(c, e, host, row, 1, cols < n ? (int64_t)spk_rng_below(rng, (uint64_t)(n - cols) + 1) : 0, cols));
    }
    return SPK_OK;
}

/* The outputs share the time. */
static spk_status expect_all(spk_checks *c, const spk_args *host, spk_rng *rng, double limit_us)
{
    const spk_problem *p = c->problem;
    const double tolerance = spk_problem_tolerance(p, spk_problem_first_output(p));
    int count = 0;
    for (int i = 0; i < p->op->operand_count; i++)
        count += spk_problem_writes(p, i);
    SPK_TRY(spk_calloc(&c->mem, (size_t)count, sizeof *c->outputs, &c->outputs));
    for (int i = 0; i < p->op->operand_count; i++)
        if (spk_problem_writes(p, i)) {
            expected *e = &c->outputs[c->output_count++];
            e->output = i;
            e->strictness = tolerance / spk_problem_tolerance(p, i);
            SPK_TRY(choose_rows(p, e, rng));
            SPK_TRY(ask_all(c, e, host, rng, limit_us / count));
        }
    return SPK_OK;
}

static spk_status make_checks(const spk_tuner *tuner, const spk_problem *problem, spk_checks **checks)
{
    SPK_TRY(spk_calloc(tuner->mem, 1, sizeof **checks, checks));
    (*checks)->mem = *tuner->mem;
    (*checks)->tuner = tuner;
    (*checks)->problem = problem;
    return SPK_OK;
}

spk_status spk_checks_make(const spk_tuner *tuner, const spk_problem *problem, spk_operands *operands, uint64_t seed, double limit_us,
                           spk_checks **checks)
{
    spk_checks *made = NULL;
    spk_status status;
    spk_rng rng;
    spk_rng_seed(&rng, seed);
    SPK_TRY(make_checks(tuner, problem, &made));
    spk_args host = spk_operands_check_args(operands);
    for (int i = 0; i < problem->op->operand_count; i++)
        if (problem->op->operands[i].role != SPK_ROLE_OUT) {
            const void *view = NULL;
            SPK_GOTO(spk_operands_view(operands, i, &view));
            host.at[i] = (void *)view;
        }
    SPK_GOTO(expect_all(made, &host, &rng, limit_us));
    *checks = made;
    return SPK_OK;
done:
    spk_checks_release(&made);
    return status;
}

/* ------------------------------------------------------------------------------------------------ comparing */

/* Poison, infinities and NaN have an exponent of ones; poison is all ones. */
static bool all_ones(const unsigned char *element, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (element[i] != 0xff)
            return false;
    return true;
}

static bool all_poison(const char *from, int64_t bytes)
{
    return bytes <= 0 || ((unsigned char)from[0] == 0xff && memcmp(from, from + 1, (size_t)bytes - 1) == 0);
}

/* What is counted in an output: `count` of it, `step` elements apart. */
typedef struct dimension {
    char of; /* 'i'tem, 'h'ead or 'l'ine */
    int64_t count, step;
} dimension;

enum { DIMENSIONS = 3 };

/* How an output of a run lies: its lines, with gaps between them. */
typedef struct output {
    int operand;
    const char *name;
    spk_dtype dtype;
    int64_t rows, length;             /* of a matrix; of a line: a row of a row-major array, else a column */
    const spk_operand *lies;          /* borrowed */
    dimension dimensions[DIMENSIONS]; /* the longest steps first: in this order lines follow one another in memory */
    int64_t items, heads;
    bool by_row, one_array, may_be_infinite;
    int64_t element;
} output;

static output output_of(const spk_problem *p, int operand)
{
    const spk_operand *o = &p->operand[operand];
    const int64_t items = spk_operand_items(o, p->batch), heads = spk_operand_heads(o);
    output made = {.operand = operand,
                   .name = p->op->operands[operand].title,
                   .dtype = o->dtype,
                   .rows = o->rows,
                   .length = spk_operand_length(o),
                   .lies = o,
                   .dimensions = {{'i', items, o->stride}, {'h', heads, o->head_stride}, {'l', spk_operand_lines(o), o->ld}},
                   .items = items,
                   .heads = heads,
                   .by_row = o->layout == SPK_ROW_MAJOR,
                   .may_be_infinite = p->op->operands[operand].may_be_infinite,
                   .one_array = spk_operand_is_one_array(o, items),
                   .element = (int64_t)spk_dtype_bytes(o->dtype)};
    for (int i = 1; i < DIMENSIONS; i++)
        for (int k = i; k > 0 && made.dimensions[k].step > made.dimensions[k - 1].step; k--) {
            const dimension before = made.dimensions[k - 1];
            made.dimensions[k - 1] = made.dimensions[k];
            made.dimensions[k] = before;
        }
    return made;
}

/* Where element (row, column) of an output lies; rows go on from head to head, and from item to item. */
static int64_t place_of(const output *o, int64_t row, int64_t col)
{
    const int64_t matrix = row / o->rows, inner = row % o->rows;
    return matrix / o->heads * o->lies->stride + matrix % o->heads * o->lies->head_stride +
           (o->by_row ? inner * o->lies->ld + col : col * o->lies->ld + inner);
}

/* A line: of which item, of which head, which one; and where it lies. */
typedef struct place {
    int64_t item, head, line, at;
} place;

/* The line at these indices of the dimensions. */
static place line_at(const output *o, const int64_t index[DIMENSIONS])
{
    place made = {0, 0, 0, 0};
    for (int i = 0; i < DIMENSIONS; i++) {
        *(o->dimensions[i].of == 'i' ? &made.item : o->dimensions[i].of == 'h' ? &made.head : &made.line) = index[i];
        made.at += index[i] * o->dimensions[i].step;
    }
    return made;
}

static int64_t lines_of(const output *o)
{
    return o->dimensions[0].count * o->dimensions[1].count * o->dimensions[2].count;
}

/* The indices of the line that follows in memory. */
static void next_line(const output *o, int64_t index[DIMENSIONS])
{
    for (int d = DIMENSIONS - 1; d >= 0 && ++index[d] == o->dimensions[d].count; d--)
        index[d] = 0;
}

/* "item 3: ", "item 3, head 1: ". */
static const char *name_matrix(const output *o, const place *of, char *text, size_t size)
{
    if (o->items > 1 && o->heads > 1)
        snprintf(text, size, "item %" PRId64 ", head %" PRId64 ": ", of->item, of->head);
    else if (o->items > 1 || o->heads > 1)
        snprintf(text, size, "%s %" PRId64 ": ", o->items > 1 ? "item" : "head", o->items > 1 ? of->item : of->head);
    else
        text[0] = '\0';
    return text;
}

/* Every element of a line written with a number. */
static bool scan_line(const output *o, const char *line, const place *of, spk_verdict *verdict)
{
    char matrix[64];
    if (spk_values_are_finite(line, o->dtype, o->length))
        return true;
    int64_t i = 0;
    while (i < o->length && (spk_values_are_finite(line + i * o->element, o->dtype, 1) ||
                             (o->may_be_infinite && !all_ones((const unsigned char *)line + i * o->element, (size_t)o->element))))
        i++;
    if (i == o->length) /* the oracle looks at infinities */
        return true;
    const char *what = all_ones((const unsigned char *)line + i * o->element, (size_t)o->element) ? "was not written" : "is not finite";
    snprintf(verdict->why, sizeof verdict->why, "%s%s[%" PRId64 ",%" PRId64 "] %s", name_matrix(o, of, matrix, sizeof matrix), o->name,
             o->by_row ? of->line : i, o->by_row ? i : of->line, what);
    return false;
}

/* The `gap` elements behind a line left alone. */
static bool scan_gap(const output *o, const char *behind, int64_t gap, const place *of, spk_verdict *verdict)
{
    char matrix[64];
    const char *line = o->by_row ? "row" : "column";
    if (all_poison(behind, gap * o->element))
        return true;
    snprintf(verdict->why, sizeof verdict->why, "%sit wrote between the %ss of %s, after %s %" PRId64,
             name_matrix(o, of, matrix, sizeof matrix), line, o->name, line, of->line);
    return false;
}

/* The whole output, with the gaps between lines. An interruption ends it: who asked for it looks. */
static bool scan(const spk_checks *c, const output *o, const void *array, spk_verdict *verdict)
{
    int64_t index[DIMENSIONS] = {0}, end = 0;
    place before = {0, 0, 0, 0};
    for (int64_t left = lines_of(o); left > 0 && !spk_interrupted(c->tuner); left--) {
        const place now = line_at(o, index);
        const char *line = (const char *)array + now.at * o->element;
        if (!scan_gap(o, (const char *)array + end * o->element, now.at - end, &before, verdict) || !scan_line(o, line, &now, verdict))
            return false;
        end = now.at + o->length;
        before = now;
        next_line(o, index);
    }
    return true;
}

static double relative_error(spk_dtype dtype, double got, double want, double magnitude)
{
    if (isnan(magnitude)) /* nothing can be said of the element */
        return 0;
    if (isnan(got) || isnan(want))
        return isnan(got) && isnan(want) ? 0 : hopeless;
    double difference = spk_type_difference(dtype, got, want);
    return difference == 0 ? 0 : magnitude > 0 ? fmin(difference / magnitude, hopeless) : hopeless;
}

/* Compares one output with the oracle's. tolerance: of the first output, in whose measure errors are. */
static void compare(const expected *e, const output *o, const void *array, double tolerance, spk_verdict *verdict)
{
    for (int k = 0; k < e->piece_count; k++) {
        const piece *part = &e->pieces[k];
        for (int64_t at = 0; at < part->rows * part->cols; at++) {
            const int64_t row = e->rows[part->first_row + at / part->cols], col = part->col0 + at % part->cols, i = part->offset + at;
            const double got = spk_value_get(array, o->dtype, place_of(o, row, col)), want = e->want[i],
                         error = e->strictness * relative_error(o->dtype, got, want, e->magnitude[i]);
            if (error <= verdict->error)
                continue;
            verdict->error = error;
            if (error > tolerance)
                spk_snprintf(verdict->why, sizeof verdict->why,
                             "%s[%" PRId64 ",%" PRId64 "] is %.9g, the oracle says %.9g: error %.3g, tolerance %.3g", o->name, row, col,
                             got, want, error / e->strictness, tolerance / e->strictness);
        }
    }
    verdict->wrong |= verdict->error > tolerance;
}

/* On a device that can, it says whether an output is whole, and the sampled rows alone come to the host. Where it says no, the host looks
 * for itself. */
static spk_status look_through(const spk_checks *c, const expected *e, spk_operands *operands, const output *o, const void **view,
                               spk_verdict *verdict)
{
    spk_device *device = operands->device;
    const bool one = o->one_array && (o->by_row || o->items * o->heads == 1);
    bool clean = false;
    if (operands->bytes[o->operand] == 0)
        return SPK_OK;
    if (one && device->backend->scan != NULL) {
        const void *array = operands->args[0].at[o->operand];
        const spk_scan whole = {.dtype = o->dtype,
                                .array = array,
                                .lines = o->items * o->heads * spk_operand_lines(o->lies),
                                .length = o->length,
                                .ld = o->lies->ld};
        if (device->backend->scan(device, &whole, &clean) != SPK_OK) /* without a compiler, say */
            clean = false;
    }
    if (clean)
        return spk_operands_view_rows(operands, o->operand, e->rows, e->row_count, view);
    SPK_TRY(spk_operands_view(operands, o->operand, view));
    verdict->wrong = !scan(c, o, *view, verdict);
    return SPK_OK;
}

spk_status spk_checks_run(const spk_checks *checks, spk_operands *operands, const spk_bound *bound, double tolerance, spk_verdict *verdict)
{
    const void *views[SPK_MAX_OPERANDS] = {NULL};
    *verdict = (spk_verdict){.error = 0};
    SPK_TRY(spk_operands_poison(operands));
    spk_args args = spk_operands_check_args(operands);
    SPK_TRY(operands->device->backend->time_runs(operands->device, bound, &args, 1, 1, &verdict->run_us));
    for (int i = 0; i < checks->output_count && !verdict->wrong; i++) {
        const expected *e = &checks->outputs[i];
        const output out = output_of(checks->problem, e->output);
        SPK_TRY(look_through(checks, e, operands, &out, &views[i], verdict));
    }
    if (spk_interrupted(checks->tuner))
        return spk_fail(SPK_ERR_INTERRUPTED, "tuning was interrupted");
    if (verdict->wrong) {
        verdict->error = hopeless;
        return SPK_OK;
    }
    for (int i = 0; i < checks->output_count; i++)
        if (views[i] != NULL) {
            const output out = output_of(checks->problem, checks->outputs[i].output);
            compare(&checks->outputs[i], &out, views[i], tolerance, verdict);
        }
    return SPK_OK;
}

/* ------------------------------------------------------------------------------------------------ a run of the caller's */

void spk_poison_outputs(const spk_problem *problem, const spk_args *args)
{
    for (int i = 0; i < problem->op->operand_count; i++) {
        if (!spk_problem_writes(problem, i) || spk_problem_operand_elements(problem, i) == 0)
            continue;
        const output out = output_of(problem, i);
        int64_t index[DIMENSIONS] = {0};
        for (int64_t left = lines_of(&out); left > 0; left--, next_line(&out, index))
            memset((char *)args->at[i] + line_at(&out, index).at * out.element, 0xff, (size_t)(out.length * out.element));
    }
}

/* Whether the oracle has no number there either: a NaN of the caller's may be all ones. */
static bool may_be_nan(const spk_checks *c, const output *o, const spk_args *args, const place *of, int64_t at)
{
    const int64_t row = (of->item * o->heads + of->head) * o->rows + (o->by_row ? of->line : at);
    double want = 0, magnitude = 0;
    const spk_oracle_ask asked = {.output = o->operand,
                                  .rows = &row,
                                  .row_count = 1,
                                  .col0 = o->by_row ? at : of->line,
                                  .cols = 1,
                                  .want = &want,
                                  .magnitude = &magnitude};
    return c->problem->op->oracle(&c->mem, c->problem, args, &asked) != SPK_OK || isnan(want) || !isfinite(magnitude);
}

/* The first element that is all ones decides. */
static bool is_written(const spk_checks *c, const output *o, const spk_args *args, spk_verdict *verdict)
{
    const char *array = args->at[o->operand];
    int64_t index[DIMENSIONS] = {0};
    for (int64_t left = lines_of(o); left > 0; left--, next_line(o, index)) {
        const place now = line_at(o, index);
        const char *line = array + now.at * o->element;
        for (int64_t i = 0; i < o->length; i++) {
            char matrix[64];
            if (!all_ones((const unsigned char *)line + i * o->element, (size_t)o->element))
                continue;
            if (may_be_nan(c, o, args, &now, i))
                return true;
            snprintf(verdict->why, sizeof verdict->why, "%s%s[%" PRId64 ",%" PRId64 "] was not written",
                     name_matrix(o, &now, matrix, sizeof matrix), o->name, o->by_row ? now.line : i, o->by_row ? i : now.line);
            return false;
        }
    }
    return true;
}

spk_status spk_check_run(const spk_tuner *tuner, const spk_problem *problem, const spk_args *args, uint64_t seed, double limit_us,
                         double tolerance, spk_verdict *verdict)
{
    spk_checks *made = NULL;
    spk_rng rng;
    *verdict = (spk_verdict){.error = 0};
    spk_rng_seed(&rng, seed);
    SPK_TRY(make_checks(tuner, problem, &made));
    spk_status status = expect_all(made, args, &rng, limit_us);
    for (int i = 0; i < made->output_count && status == SPK_OK; i++) {
        const output out = output_of(problem, made->outputs[i].output);
        if (spk_problem_operand_elements(problem, out.operand) == 0)
            continue;
        compare(&made->outputs[i], &out, args->at[out.operand], tolerance, verdict);
        verdict->wrong = verdict->wrong || !is_written(made, &out, args, verdict);
    }
    spk_checks_release(&made);
    return status;
}
