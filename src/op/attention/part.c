/* A part of a large problem of attention: fewer heads, then fewer queries and keys, and of a mask the lists that are left. */
#include <math.h>
#include <stdlib.h>

#include "op/attention/attention.h"
#include "op/part.h"

static int by_value(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* The columns of a block row, folded into the first `width` block columns, so that about as many stay in it as there were; each once. */
static int64_t fold_row(const spk_index *index, int64_t row, int64_t width, int64_t *out)
{
    const int64_t begin = index->offsets[row], count = index->offsets[row + 1] - begin;
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++)
        out[i] = index->columns[begin + i] % width;
    qsort(out, (size_t)count, sizeof *out, by_value);
    for (int64_t i = 0; i < count; i++)
        if (i == 0 || out[i] != out[i - 1])
            out[kept++] = out[i];
    return kept;
}

/* What is left of the lists: of each item's first heads, and of each of these the first block rows. */
typedef struct lists {
    int64_t items, heads, rows, width; /* width: block columns */
} lists;

static int64_t row_of(const spk_problem *whole, const lists *left, int64_t row)
{
    const int64_t list = row / left->rows;
    return (list / left->heads * whole->lists.item_step + list % left->heads) * spk_attention_list_rows(whole) + row % left->rows;
}

static spk_status make_mask(const spk_mem *mem, const spk_problem *whole, const lists *left, const spk_problem *part, spk_pattern **made)
{
    const spk_pattern *mask = whole->pattern;
    const int64_t count = left->items * left->heads, rows = count * left->rows;
    int64_t nnzb = 0, *offsets = NULL, *columns = NULL;
    for (int64_t row = 0; row < rows; row++) {
        const int64_t from = row_of(whole, left, row);
        nnzb += mask->index.offsets[from + 1] - mask->index.offsets[from];
    }
    spk_status status = spk_calloc(mem, (size_t)rows + 1, sizeof *offsets, &offsets);
    if (status == SPK_OK)
        status = spk_alloc(mem, (size_t)nnzb + 1, sizeof *columns, &columns);
    for (int64_t row = 0; status == SPK_OK && row < rows; row++)
        offsets[row + 1] = offsets[row] + fold_row(&mask->index, row_of(whole, left, row), left->width, columns + offsets[row]);
    if (status == SPK_OK) {
        const spk_bsr_indices indices = {SPK_SIZED(spk_bsr_indices),
                                         .rows = count > 1 ? rows * mask->block_rows : part->m,
                                         .cols = part->n,
                                         .block_rows = mask->block_rows,
                                         .block_cols = mask->block_cols,
                                         .nnzb = offsets[rows],
                                         .row_offsets = offsets,
                                         .col_indices = columns,
                                         .index_type = SPK_INDEX_I64};
        status = spk_pattern_make(mem, &indices, made);
    }
    spk_free(mem, offsets);
    spk_free(mem, columns);
    return status;
}

/* Two heads of K at least, as strides between them count. */
static void cut_heads(spk_problem *p, int64_t heads_kv)
{
    const int64_t had = spk_operand_heads(&p->operand[ATTENTION_K]);
    for (int i = 0; i < p->op->operand_count; i++)
        if (p->operand[i].heads > 0)
            p->operand[i].heads = p->operand[i].heads / had * heads_kv;
    if (p->lists.heads > 1)
        p->lists.heads = p->lists.heads / had * heads_kv;
    if (p->lists.item_step > 0)
        p->lists.item_step = p->lists.heads;
}

spk_status spk_attention_part(const spk_mem *mem, const spk_problem *whole, double share, spk_problem *part, spk_pattern **pattern)
{
    const int64_t had = spk_operand_heads(&whole->operand[ATTENTION_K]),
                  heads = share >= 1 || had <= 2 ? had : (int64_t)fmin(fmax(floor((double)had * share), 2), (double)had);
    const double left = share * (double)had / (double)heads;
    cut_heads(part, heads);
    part->m = spk_part_of_size(whole->m, left);
    part->n = spk_part_of_size(whole->n, left);
    if (whole->packing.pages > 0)
        part->packing.pages = (int64_t)fmax(ceil((double)whole->packing.pages * fmin(left, 1)), 1);
    if (whole->pattern != NULL) {
        const int64_t width = whole->pattern->block_cols, height = whole->pattern->block_rows;
        const lists kept = {.items = part->lists.item_step > 0 ? part->batch : 1,
                            .heads = part->lists.heads,
                            .rows = (part->m + height - 1) / height,
                            .width = (part->n + width - 1) / width};
        SPK_TRY(make_mask(mem, whole, &kept, part, pattern));
        part->pattern = *pattern;
    }
    part->op->fit(part);
    return SPK_OK;
}
