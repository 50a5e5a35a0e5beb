/* Arrays of a run that interleave: refused where they share an element, and only there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sparsek/sparsek.h>

#include "base/rng.h"
#include "op/overlap.h"

static spk_context *context;

static int set_up(void **state)
{
    (void)state;
    return spk_context_create(&(spk_context_options){SPK_SIZED(spk_context_options), .store_path = "", .threads = 2}, &context) != SPK_OK;
}

static int tear_down(void **state)
{
    (void)state;
    spk_context_destroy(&context);
    return 0;
}

static int64_t below(spk_rng *rng, int64_t limit)
{
    return (int64_t)(spk_rng_next(rng) % (uint64_t)limit);
}

/* ------------------------------------------------------------------------------------------------ areas against their sets of bytes */

enum { SPACE = 8192 };

static void mark(const spk_area *a, unsigned char *bytes)
{
    for (int64_t i = 0; i < a->dims[0].count; i++)
        for (int64_t j = 0; j < a->dims[1].count * a->dims[2].count; j++)
            memset(bytes + a->start +
                       (uintptr_t)(i * a->dims[0].step + j % a->dims[1].count * a->dims[1].step + j / a->dims[1].count * a->dims[2].step),
                   1, (size_t)a->width);
}

static bool share_bytes(const spk_area *a, const spk_area *b)
{
    static unsigned char x[SPACE], y[SPACE];
    memset(x, 0, sizeof x);
    memset(y, 0, sizeof y);
    mark(a, x);
    mark(b, y);
    for (int i = 0; i < SPACE; i++)
        if (x[i] && y[i])
            return true;
    return false;
}

/* Steps of all sorts, often those of the other area. */
static spk_area draw_area(spk_rng *rng, const spk_area *other)
{
    spk_area a = {.start = (uintptr_t)below(rng, 300), .width = 1 + below(rng, 12)};
    for (int i = 0; i < SPK_AREA_DIMS; i++) {
        a.dims[i].count = 1 + below(rng, i < 2 ? 9 : 3);
        a.dims[i].step =
            other != NULL && below(rng, 3) > 0 ? other->dims[below(rng, SPK_AREA_DIMS)].step : below(rng, below(rng, 2) ? 40 : 160);
    }
    return a;
}

static void areas_as_sets_of_bytes(void **state)
{
    (void)state;
    int met = 0, only_ranges = 0;
    spk_rng rng;
    spk_rng_seed(&rng, 20261);
    const int cases = getenv("SPARSEK_TEST_QUICK") != NULL ? 6000 : 60000;
    for (int i = 0; i < cases; i++) {
        const spk_area a = draw_area(&rng, NULL), b = draw_area(&rng, &a);
        const bool want = share_bytes(&a, &b), got = spk_areas_meet(&a, &b);
        if (want != got || spk_areas_meet(&b, &a) != want)
            fail_msg("case %d: %d, wanted %d: %d + (%dx%d, %dx%d) wide %d and %d + (%dx%d, %dx%d) wide %d", i, got, want, (int)a.start,
                     (int)a.dims[0].count, (int)a.dims[0].step, (int)a.dims[1].count, (int)a.dims[1].step, (int)a.width, (int)b.start,
                     (int)b.dims[0].count, (int)b.dims[0].step, (int)b.dims[1].count, (int)b.dims[1].step, (int)b.width);
        met += want;
        only_ranges += !want && a.start < b.start + 40 && b.start < a.start + 40;
    }
    assert_true(met > cases / 60 && only_ranges > cases / 60);
}

/* Where steps without order would take too long to try, and where the sizes are those of no memory, the answer is the careful one. */
static void careful_areas(void **state)
{
    (void)state;
    const spk_area odd = {.start = 2, .width = 2, .dims = {{4000, 1234 * 8}, {1, 0}}},
                   other = {.start = 4, .width = 2, .dims = {{4000, 1230 * 8}, {1, 0}}};
    assert_true(spk_areas_meet(&odd, &other));
    const spk_area vast = {.start = 0, .width = 4, .dims = {{INT64_C(1) << 30, INT64_C(1) << 32}, {1, 0}}};
    const spk_area beside = {.start = 4, .width = 4, .dims = {{INT64_C(1) << 30, INT64_C(1) << 32}, {1, 0}}};
    assert_true(spk_areas_meet(&vast, &beside));
    const spk_area nothing = {.start = 0, .width = 0, .dims = {{4, 16}, {1, 0}}};
    assert_false(spk_areas_meet(&nothing, &vast) || spk_areas_meet(&vast, &nothing));
}

/* ------------------------------------------------------------------------------------------------ arguments against their sets of
 * elements */

enum { BUFFER = 6000, BLOCK = 2, LARGEST = 4 };

typedef struct array {
    int64_t rows, cols, ld, stride, batch, at;
    spk_layout layout;
    bool there;
} array;

static void mark_elements(const array *a, unsigned char bit, unsigned char *marks)
{
    for (int64_t i = 0; a->there && i < a->batch; i++)
        for (int64_t r = 0; r < a->rows; r++)
            for (int64_t c = 0; c < a->cols; c++)
                marks[a->at + i * a->stride + (a->layout == SPK_ROW_MAJOR ? r * a->ld + c : c * a->ld + r)] |= bit;
}

static array draw_array(spk_rng *rng, int64_t rows, int64_t cols, spk_layout layout, int64_t batch, int64_t ld, bool there)
{
    array a = {.rows = rows, .cols = cols, .layout = layout, .batch = batch, .there = there, .ld = ld};
    const int64_t length = layout == SPK_ROW_MAJOR ? cols : rows, lines = layout == SPK_ROW_MAJOR ? rows : cols,
                  extent = ld * (lines - 1) + length;
    a.stride = below(rng, 2) && (batch - 1) * length + length <= ld ? length : extent + below(rng, 2) * below(rng, 60);
    a.at = below(rng, 24) + below(rng, 2) * below(rng, 200);
    return a;
}

static void arguments_as_sets_of_elements(void **state)
{
    (void)state;
    static float buffer[BUFFER], values[64];
    static unsigned char marks[BUFFER];
    const int32_t offsets[] = {0, 1, 2}, columns[] = {0, 1};
    const spk_bsr_indices indices = {
        SPK_SIZED(spk_bsr_indices), .rows = 4, .cols = 4, .block_rows = BLOCK, .block_cols = BLOCK, .nnzb = 2, .row_offsets = offsets,
        .col_indices = columns};
    const spk_tune_options options = {SPK_SIZED(spk_tune_options), .choice = "reference_spmm"};
    spk_pattern *pattern = NULL;
    assert_int_equal(spk_pattern_create(context, &indices, &pattern), SPK_OK);
    int refused = 0, allowed = 0;
    spk_rng rng;
    spk_rng_seed(&rng, 20262);
    const int cases = getenv("SPARSEK_TEST_QUICK") != NULL ? 2000 : 20000;
    for (int i = 0; i < cases; i++) {
        const int64_t n = 1 + below(&rng, LARGEST), batch = 1 + below(&rng, 3);
        const bool keep = below(&rng, 2);
        const spk_layout layout_b = (spk_layout)below(&rng, 2), layout_d = (spk_layout)below(&rng, 2);
        const int64_t ld = 4 + below(&rng, 20), ldd = below(&rng, 4) ? ld : 4 + below(&rng, 20);
        const array b = draw_array(&rng, 4, n, layout_b, batch, ld, true), d = draw_array(&rng, 4, n, layout_d, batch, ldd, true);
        const array p = draw_array(&rng, 4, n, layout_d, batch, below(&rng, 4) ? ldd : 4 + below(&rng, 20), keep);
        const spk_spmm problem = {
            SPK_SIZED(spk_spmm), .n = n,         .layout_b = layout_b, .layout_d = layout_d, .ldb = b.ld,         .ldd = d.ld, .ldp = p.ld,
            .keep_preact = keep, .batch = batch, .stride_b = b.stride, .stride_d = d.stride, .stride_p = p.stride};
        const spk_spmm_args args = {SPK_SIZED(spk_spmm_args),
                                    .values = values,
                                    .b = buffer + b.at,
                                    .d = buffer + d.at,
                                    .preact = keep ? buffer + p.at : NULL,
                                    .alpha = 1};
        memset(marks, 0, sizeof marks);
        mark_elements(&b, 1, marks);
        mark_elements(&d, 2, marks);
        mark_elements(&p, 4, marks);
        bool want = false;
        for (int j = 0; j < BUFFER; j++)
            want = want || (marks[j] & (marks[j] - 1)) != 0;
        const spk_status status = spk_compute_spmm(context, pattern, &problem, &args, &options);
        const bool got = status == SPK_ERR_ARGUMENT && strstr(spk_last_error(context), "overlaps") != NULL;
        if ((status != SPK_OK && !got) || got != want)
            fail_msg("case %d: %s (%s), wanted %s", i, spk_status_name(status), status != SPK_OK ? spk_last_error(context) : "",
                     want ? "refused" : "ok");
        refused += want;
        allowed += !want;
    }
    spk_pattern_destroy(&pattern);
    assert_true(refused > cases / 10 && allowed > cases / 10);
}

/* ------------------------------------------------------------------------------------------------ every kernel on interleaved arrays */

enum { ROWS = 64, N = 24, LD = 3 * N };

/* B, D and preact as three column slices of one array: what stands beside each is left alone, and the result is that of arrays apart. */
static void run_interleaved(spk_pattern *pattern, const float *values, const char *choice)
{
    static float together[ROWS * LD], b[ROWS * N], d[ROWS * N], preact[ROWS * N];
    const spk_tune_options options = {SPK_SIZED(spk_tune_options), .choice = choice};
    for (int i = 0; i < ROWS * LD; i++)
        together[i] = (float)(i % 17) - 8;
    for (int r = 0; r < ROWS; r++)
        memcpy(b + r * N, together + r * LD, sizeof(float) * N);
    spk_spmm problem = {SPK_SIZED(spk_spmm), .n = N, .activation = SPK_ACT_SILU, .keep_preact = 1, .assume_finite = 1};
    const spk_spmm_args apart = {SPK_SIZED(spk_spmm_args), .values = values, .b = b, .d = d, .preact = preact, .alpha = 1};
    spk_status status = spk_compute_spmm(context, pattern, &problem, &apart, &options);
    if (status == SPK_ERR_ARGUMENT || status == SPK_ERR_NO_CANDIDATE || status == SPK_ERR_UNSUPPORTED || status == SPK_ERR_UNAVAILABLE)
        return; /* not a kernel of this problem, or of this machine */
    assert_int_equal(status, SPK_OK);
    problem.ldb = problem.ldd = problem.ldp = LD;
    const spk_spmm_args args = {SPK_SIZED(spk_spmm_args), .values = values,           .b = together,
                                .d = together + N,        .preact = together + 2 * N, .alpha = 1};
    status = spk_compute_spmm(context, pattern, &problem, &args, &options);
    if (status != SPK_OK)
        fail_msg("%s: %s", choice, spk_last_error(context));
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < N; c++) {
            const float *line = together + r * LD, want = d[r * N + c];
            const float error = line[N + c] - want, preact_error = line[2 * N + c] - preact[r * N + c];
            if (line[c] != b[r * N + c] || error * error > 1e-6f || preact_error * preact_error > 1e-6f)
                fail_msg("%s, row %d, column %d: B %g (was %g), D %g (apart %g), preact %g (apart %g)", choice, r, c, (double)line[c],
                         (double)b[r * N + c], (double)line[N + c], (double)want, (double)line[2 * N + c], (double)preact[r * N + c]);
        }
}

static void every_kernel(void **state)
{
    (void)state;
    const spk_generate made = {SPK_SIZED(spk_generate),
                               .generator = SPK_GEN_UNIFORM,
                               .rows = ROWS,
                               .cols = ROWS,
                               .block_rows = 8,
                               .block_cols = 8,
                               .density = 0.4,
                               .seed = 3};
    spk_matrix *matrix = NULL;
    spk_pattern *pattern = NULL;
    spk_report *report = NULL;
    spk_matrix_desc desc = {SPK_SIZED(spk_matrix_desc)};
    spk_report_info info = {SPK_SIZED(spk_report_info)};
    assert_int_equal(spk_matrix_generate(context, &made, &matrix, NULL), SPK_OK);
    assert_int_equal(spk_matrix_view(matrix, &desc), SPK_OK);
    assert_int_equal(spk_pattern_from_matrix(context, matrix, &pattern), SPK_OK);
    const spk_spmm problem = {SPK_SIZED(spk_spmm), .n = N,    .activation = SPK_ACT_SILU, .keep_preact = 1, .ldb = LD,
                              .ldd = LD,           .ldp = LD, .assume_finite = 1};
    assert_int_equal(spk_list_candidates(context, pattern, &problem, NULL, &report), SPK_OK);
    assert_int_equal(spk_report_get_info(report, &info), SPK_OK);
    int run = 0;
    for (int i = 0; i < info.candidate_count; i++) {
        spk_candidate_info candidate = {SPK_SIZED(spk_candidate_info)};
        char choice[256];
        assert_int_equal(spk_report_get_candidate(report, i, &candidate), SPK_OK);
        if (candidate.status == SPK_CANDIDATE_NOT_APPLICABLE)
            continue;
        snprintf(choice, sizeof choice, "%s %s", candidate.name, candidate.params);
        run_interleaved(pattern, desc.values, choice);
        run++;
    }
    assert_true(run > 10);
    spk_report_destroy(&report);
    spk_pattern_destroy(&pattern);
    spk_matrix_destroy(&matrix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(areas_as_sets_of_bytes),
        cmocka_unit_test(careful_areas),
        cmocka_unit_test(arguments_as_sets_of_elements),
        cmocka_unit_test(every_kernel),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
