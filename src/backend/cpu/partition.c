/* Block rows cut into parts of nearly equal work. */
#include "backend/cpu/cpu.h"

/* What a block row costs besides its blocks, in blocks: an empty row still writes its rows of D. */
static const double ROW_COST = 0.5;

static double work_before(const spk_bsr_view *view, int64_t row)
{
    return (double)view->offsets[row] + ROW_COST * (double)row;
}

spk_status spk_partition_rows(const spk_mem *mem, const spk_bsr_view *view, int parts, int64_t **bounds)
{
    if (parts < 1)
        return spk_fail(SPK_ERR_ARGUMENT, "parts = %d: at least one is needed", parts);
    int64_t *made = NULL;
    SPK_TRY(spk_alloc(mem, (size_t)parts + 1, sizeof *made, &made));
    double total = work_before(view, view->grid_rows);
    int64_t row = 0;
    made[0] = 0;
    for (int part = 1; part < parts; part++) {
        /* The row boundary nearest to the ideal cut. */
        double cut = total * part / parts;
        while (row < view->grid_rows && work_before(view, row + 1) <= cut)
            row++;
        if (row < view->grid_rows && work_before(view, row + 1) - cut < cut - work_before(view, row))
            row++;
        made[part] = row;
    }
    made[parts] = view->grid_rows;
    *bounds = made;
    return SPK_OK;
}

spk_status spk_partition_cuts(const spk_mem *mem, const spk_bsr_view *view, int parts, double **cuts)
{
    if (parts < 1)
        return spk_fail(SPK_ERR_ARGUMENT, "parts = %d: at least one is needed", parts);
    double *made = NULL;
    SPK_TRY(spk_alloc(mem, (size_t)parts + 1, sizeof *made, &made));
    const double total = work_before(view, view->grid_rows);
    int64_t row = 0;
    made[0] = 0;
    for (int part = 1; part < parts; part++) {
        const double cut = total * part / parts;
        while (row < view->grid_rows && work_before(view, row + 1) <= cut)
            row++;
        made[part] = (double)row;
        if (row < view->grid_rows)
            made[part] += (cut - work_before(view, row)) / (work_before(view, row + 1) - work_before(view, row));
    }
    made[parts] = (double)view->grid_rows;
    *cuts = made;
    return SPK_OK;
}
