/* What `inspect` finds out about a matrix: structure from CSR, gain from the cost model. */
#include "cli/commands/inspect.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/args/command.h"
#include "cli/base/memory.h"
#include "cli/base/text.h"
#include "cli/base/values.h"
#include "cli/io/messages.h"
#include "cli/matrix/matrix.h"

static double value_at(const spk_matrix_desc *d, int64_t i)
{
    if (!d->values)
        return 1;
    return value_get(d->dtype, d->values, i);
}

/* Compares a canonical CSR matrix with its transpose. */
static const char *compare_transposed(const spk_matrix_desc *a, const spk_matrix_desc *t)
{
    const int64_t *ao = a->row_offsets, *to = t->row_offsets, *ac = a->col_indices, *tc = t->col_indices;
    if (a->nnz != t->nnz || memcmp(ao, to, (size_t)(a->rows + 1) * sizeof(*ao)) != 0)
        return "unsymmetric";
    if (a->nnz > 0 && memcmp(ac, tc, (size_t)a->nnz * sizeof(*ac)) != 0)
        return "unsymmetric";
    bool same = true, opposite = true;
    for (int64_t i = 0; i < a->nnz && (same || opposite); i++) {
        double x = value_at(a, i), y = value_at(t, i);
        same = same && x == y;
        opposite = opposite && x == -y;
    }
    return same ? "symmetric" : opposite ? "skew-symmetric" : "symmetric positions, unsymmetric values";
}

static spk_status find_symmetry(cli *app, const spk_matrix *csr, const char **name)
{
    spk_matrix *sorted = NULL, *transposed = NULL, *sorted_t = NULL;
    spk_status status = spk_matrix_canonicalize(app->context, csr, &sorted);
    if (status == SPK_OK)
        status = spk_matrix_transpose(app->context, sorted, &transposed);
    if (status == SPK_OK)
        status = spk_matrix_to_csr(app->context, transposed, &sorted_t);
    if (status == SPK_OK) {
        spk_matrix_desc a = matrix_view(sorted), t = matrix_view(sorted_t);
        *name = compare_transposed(&a, &t);
    }
    spk_matrix_destroy(&sorted);
    spk_matrix_destroy(&transposed);
    spk_matrix_destroy(&sorted_t);
    return status;
}

/* The length of the middle row (the mean of two where their number is even), from how many rows there are of each length: a matrix may have
 * far more rows than entries. */
static double median_length(const spk_matrix_desc *d, int64_t longest)
{
    const int64_t *offsets = d->row_offsets;
    int64_t *counts = cli_alloc((size_t)longest + 1, sizeof(*counts)), low = -1, high = -1, seen = 0;
    for (int64_t i = 0; i < d->rows; i++)
        counts[offsets[i + 1] - offsets[i]]++;
    for (int64_t length = 0; length <= longest && high < 0; length++) {
        seen += counts[length];
        low = low < 0 && seen > (d->rows - 1) / 2 ? length : low;
        high = seen > d->rows / 2 ? length : high;
    }
    free(counts);
    return d->rows ? 0.5 * (double)(low + high) : 0;
}

int inspect_find_structure(cli *app, const spk_matrix *csr, inspect_structure *out)
{
    spk_matrix_desc d = matrix_view(csr);
    const int64_t *offsets = d.row_offsets, *columns = d.col_indices;
    inspect_structure s = {.rows = d.rows, .cols = d.cols, .entries = d.nnz, .row_min = d.rows ? INT64_MAX : 0, .symmetry = "not square"};
    double squares = 0;
    s.density = d.rows && d.cols ? (double)d.nnz / ((double)d.rows * (double)d.cols) : 0;
    s.row_mean = d.rows ? (double)d.nnz / (double)d.rows : 0;
    for (int64_t i = 0; i < d.rows; i++) {
        int64_t length = offsets[i + 1] - offsets[i];
        squares += ((double)length - s.row_mean) * ((double)length - s.row_mean);
        s.empty_rows += length == 0;
        s.row_min = length < s.row_min ? length : s.row_min;
        s.row_max = length > s.row_max ? length : s.row_max;
        for (int64_t e = offsets[i]; e < offsets[i + 1]; e++) {
            int64_t off = columns[e] > i ? columns[e] - i : i - columns[e];
            s.bandwidth = off > s.bandwidth ? off : s.bandwidth;
        }
    }
    s.row_median = median_length(&d, s.row_max);
    s.row_spread = s.row_mean > 0 ? sqrt(squares / (double)d.rows) / s.row_mean : 0;
    int code = d.rows == d.cols ? cli_status(app, NULL, find_symmetry(app, csr, &s.symmetry), "transposing") : EXIT_DONE;
    if (code == EXIT_DONE)
        *out = s;
    return code;
}

/* The least predicted times of the list: of what may win, and of dense rows. */
static spk_status least_times(const spk_report *list, inspect_estimate *e)
{
    spk_report_info info = {SPK_SIZED(spk_report_info)};
    spk_status status = spk_report_get_info(list, &info);
    for (int i = 0; i < info.candidate_count && status == SPK_OK; i++) {
        spk_candidate_info c = {SPK_SIZED(spk_candidate_info)};
        status = spk_report_get_candidate(list, i, &c);
        if (status != SPK_OK || c.predicted_us <= 0 || c.status == SPK_CANDIDATE_NOT_APPLICABLE)
            continue;
        bool dense = c.kind == SPK_KIND_DENSE;
        double *least = dense ? &e->dense_us : &e->sparse_us;
        if (*least == 0 || c.predicted_us < *least) {
            *least = c.predicted_us;
            snprintf(dense ? e->dense_name : e->sparse_name, sizeof(e->dense_name), "%s", c.name);
        }
    }
    return status;
}

int inspect_make_estimate(cli *app, const spk_matrix *matrix, const char *path, const char *tensor, int64_t cols, args_block block,
                          int64_t n, spk_dtype dtype, inspect_estimate *out)
{
    inspect_estimate e = {.block_rows = block.rows, .block_cols = block.cols, .n = n, .dtype = dtype};
    spk_matrix *bsr = NULL;
    spk_pattern *pattern = NULL;
    spk_report *list = NULL;
    const spk_spmm spmm = {SPK_SIZED(spk_spmm), .n = n, .dtype_a = dtype, .dtype_b = dtype,
                           .assume_finite = 1}; /* dense is the yardstick */
    spk_tune_options options;
    cli_tune_options(app, &options);
    spk_status status = spk_matrix_to_bsr(app->context, matrix, block.rows, block.cols, SPK_ROW_MAJOR, &bsr);
    if (status == SPK_OK)
        status = matrix_pattern(app->context, bsr, &pattern);
    if (status == SPK_OK)
        status = spk_list_candidates(app->context, pattern, &spmm, &options, &list);
    if (status == SPK_OK)
        status = least_times(list, &e);
    spk_report_destroy(&list);
    spk_pattern_destroy(&pattern);
    spk_matrix_destroy(&bsr);
    if (status != SPK_OK)
        return cli_status(app, NULL, status, "estimate");
    char text[24];
    char *file = cli_quoted(path), *name = cli_quoted(tensor ? tensor : "");
    char *sized = cols ? cli_format(" --cols %lld", (long long)cols) : cli_format("%s", "");
    e.command = cli_format("sparsek bench %s%s%s%s --block %s --n %lld --dtype %s --assume-finite", file, tensor ? " --tensor " : "",
                           tensor ? name : "", sized, matrix_block_text(text, block.rows, block.cols), (long long)n, spk_dtype_name(dtype));
    free(sized);
    free(file);
    free(name);
    *out = e;
    return EXIT_DONE;
}
