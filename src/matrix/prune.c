/* Block pruning: the blocks of largest norm are kept, in linear time, the same ones on every machine and from every format.
 * A sparse source has no more blocks than its entries touch: where fewer are there than the density asks for, all of them are kept. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "matrix/blocks.h"
#include "matrix/check.h"

/* Largest magnitude of all entries; refuses the first that is not finite. */
static spk_status largest_entry(spk_entries *entries, double *out)
{
    double largest = 0;
    for (int64_t row = 0; row < entries->matrix->rows; row++) {
        spk_entries_load(entries, row, true);
        for (int64_t i = 0; i < entries->count; i++) {
            if (!isfinite(entries->values[i]))
                return spk_fail(SPK_ERR_ARGUMENT, "the element in row %" PRId64 ", column %" PRId64 " is %g: norms need finite values", row,
                                entries->cols[i], entries->values[i]);
            largest = fmax(largest, fabs(entries->values[i]));
        }
    }
    *out = largest;
    return SPK_OK;
}

/* A power of two that brings the largest entry near one, so that no sum of squares overflows; what such scaling makes vanish (a factor of
 * 1e-154 below the largest) counts as zero. */
static double scale_for(double largest)
{
    int exponent = 0;
    frexp(largest, &exponent);
    return ldexp(1, exponent > 1000 ? -1000 : exponent < -1000 ? 1000 : -exponent);
}

/* norms[p]: the L1 or max norm, or the square of the L2 norm, all of scaled values: same order. */
static void measure_blocks(spk_blocks *blocks, spk_entries *entries, spk_norm norm, double scale, double *norms)
{
    spk_divider by_cols = spk_divider_make(blocks->block_cols);
    memset(norms, 0, (size_t)blocks->nnzb * sizeof *norms);
    for (int64_t block_row = 0; block_row < blocks->grid_rows; block_row++) {
        spk_blocks_enter(blocks, block_row);
        int64_t first = block_row * blocks->block_rows, end = spk_min_i64(first + blocks->block_rows, blocks->rows);
        for (int64_t row = first; row < end; row++) {
            spk_entries_load(entries, row, true);
            for (int64_t i = 0; i < entries->count; i++) {
                double *sum = &norms[spk_blocks_at(blocks, block_row, spk_divide(by_cols, entries->cols[i]))];
                double value = fabs(entries->values[i] * scale);
                if (norm == SPK_NORM_MAX)
                    *sum = fmax(*sum, value);
                else
                    *sum += norm == SPK_NORM_L1 ? value : value * value;
            }
        }
    }
}

/* The bits of a double >= 0 order as it does. */
static uint64_t order_of(double norm)
{
    uint64_t bits = 0;
    memcpy(&bits, &norm, sizeof bits);
    return bits;
}

/* keep[p] = 1 for the `wanted` largest norms, the lower index first among equals: the order of the wanted-th largest is found byte by
 * byte. */
static void choose(const double *norms, int64_t count, int64_t wanted, unsigned char *keep)
{
    uint64_t threshold = 0, fixed = 0; /* the bits found so far, and which they are */
    int64_t left = wanted;             /* to be taken from those that agree with the threshold in the fixed bits */
    for (int shift = 56; shift >= 0; shift -= 8) {
        int64_t histogram[256] = {0};
        for (int64_t p = 0; p < count; p++)
            if ((order_of(norms[p]) & fixed) == threshold)
                histogram[order_of(norms[p]) >> shift & 255]++;
        int digit = 255;
        while (digit > 0 && histogram[digit] < left)
            left -= histogram[digit--];
        threshold |= (uint64_t)digit << shift;
        fixed |= UINT64_C(255) << shift;
    }
    for (int64_t p = 0; p < count; p++) {
        uint64_t order = order_of(norms[p]);
        keep[p] = order > threshold || (order == threshold && left-- > 0);
    }
}

static spk_status drop_small(const spk_mem *mem, spk_blocks *blocks, spk_entries *entries, spk_norm norm, double scale, int64_t wanted)
{
    spk_status status = SPK_OK;
    double *norms = NULL;
    unsigned char *keep = NULL;
    SPK_GOTO(spk_alloc(mem, (size_t)blocks->nnzb, sizeof *norms, &norms));
    SPK_GOTO(spk_alloc(mem, (size_t)blocks->nnzb, sizeof *keep, &keep));
    measure_blocks(blocks, entries, norm, scale, norms);
    choose(norms, blocks->nnzb, wanted, keep);
    spk_blocks_select(blocks, keep);
done:
    spk_free(mem, norms);
    spk_free(mem, keep);
    return status;
}

/* The source with each element once: duplicates count by their sum. NULL where it is so already. */
static spk_status sum_first(const spk_mem *mem, const spk_matrix *in, spk_matrix **summed)
{
    return in->format == SPK_DENSE ? SPK_OK : spk_convert_to_csr(mem, in, summed);
}

spk_status spk_convert_prune(const spk_mem *mem, const spk_matrix *in, int64_t block_rows, int64_t block_cols, double density,
                             spk_norm norm, spk_matrix **out)
{
    if (!(density >= 0 && density <= 1))
        return spk_fail(SPK_ERR_ARGUMENT, "density = %g is not in [0, 1]", density);
    if (norm < SPK_NORM_L1 || norm > SPK_NORM_MAX)
        return spk_fail(SPK_ERR_ARGUMENT, "norm = %d is none of SPK_NORM_L1 (%d), SPK_NORM_L2 (%d), SPK_NORM_MAX (%d)", (int)norm,
                        SPK_NORM_L1, SPK_NORM_L2, SPK_NORM_MAX);
    SPK_TRY(spk_check_block(block_rows, block_cols));
    spk_status status = SPK_OK;
    spk_matrix *summed = NULL;
    spk_entries entries = {0};
    spk_blocks blocks = {0};
    double largest = 0;
    SPK_GOTO(sum_first(mem, in, &summed));
    SPK_GOTO(spk_entries_open(mem, summed != NULL ? summed : in, &entries));
    SPK_GOTO(largest_entry(&entries, &largest));
    SPK_GOTO(spk_blocks_find(mem, &entries, block_rows, block_cols, in->format == SPK_DENSE, &blocks));
    double grid = (double)spk_ceil_div(in->rows, block_rows) * (double)spk_ceil_div(in->cols, block_cols), wanted = round(density * grid);
    if (wanted < (double)blocks.nnzb)
        SPK_GOTO(drop_small(mem, &blocks, &entries, norm, scale_for(largest), (int64_t)wanted));
    SPK_GOTO(spk_blocks_to_bsr(mem, &blocks, &entries, in->format == SPK_BSR ? in->layout : SPK_ROW_MAJOR, out));
done:
    spk_blocks_free(mem, &blocks);
    spk_entries_close(mem, &entries);
    spk_matrix_release(&summed);
    return status;
}
