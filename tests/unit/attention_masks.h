/* Drawn problems of attention, and masks of blocks for them. */
#ifndef SPK_TEST_ATTENTION_MASKS_H
#define SPK_TEST_ATTENTION_MASKS_H

#include "attention_case.h"
#include "base/rng.h"

static mask made;
static spk_rng rng;

static int64_t below(int64_t limit)
{
    return (int64_t)spk_rng_below(&rng, (uint64_t)limit);
}

/* The pattern of the blocks that are marked, as a caller gives it. */
static void make_pattern(mask *m, int64_t rows, int64_t cols, bool wide)
{
    static int64_t offsets[1 << 12], columns[1 << 14];
    static int32_t narrow_offsets[1 << 12], narrow_columns[1 << 14];
    const int64_t down = m->down * m->lists;
    int64_t count = 0;
    for (int64_t i = 0; i < down; i++) {
        offsets[i] = count;
        narrow_offsets[i] = (int32_t)count;
        for (int64_t j = 0; j < m->across; j++)
            if (m->stored[i * m->across + j]) {
                narrow_columns[count] = (int32_t)j;
                columns[count++] = j;
            }
    }
    offsets[down] = count;
    narrow_offsets[down] = (int32_t)count;
    const spk_bsr_indices indices = {SPK_SIZED(spk_bsr_indices),
                                     .rows = rows,
                                     .cols = cols,
                                     .block_rows = m->height,
                                     .block_cols = m->width,
                                     .nnzb = count,
                                     .row_offsets = wide ? (const void *)offsets : narrow_offsets,
                                     .col_indices = wide ? (const void *)columns : narrow_columns,
                                     .index_type = wide ? SPK_INDEX_I64 : SPK_INDEX_I32};
    ok(spk_pattern_create(context, &indices, &m->pattern));
}

/* Lists of a problem, of which some block rows are empty; rows of the last one may end with the queries or with a block. */
static void draw_mask(mask *m, const spk_attention *a)
{
    static const int64_t sides[] = {1, 3, 7, 16, 17, 24, 32, 48, 64, 96, 128, 200, 256};
    const int64_t of_item = a->mask_heads ? a->mask_heads : 1;
    m->height = sides[below(13)];
    m->width = below(2) ? m->height : sides[below(13)];
    m->lists = of_item * (a->mask_items > 1 ? a->mask_items : 1);
    m->down = (a->queries + m->height - 1) / m->height;
    m->across = (a->keys + m->width - 1) / m->width;
    while (m->lists * m->down * m->across > 1 << 14 || m->lists * m->down >= 1 << 12) {
        m->height = m->width = 16;
        m->down = (a->queries + 15) / 16;
        m->across = (a->keys + 15) / 16;
    }
    const int64_t chance = below(11);
    for (int64_t i = 0; i < m->lists * m->down; i++) {
        const bool empty = below(6) == 0;
        for (int64_t j = 0; j < m->across; j++)
            m->stored[i * m->across + j] = !empty && below(10) < chance;
    }
    const int64_t padded = m->lists * m->down * m->height, spare = m->down * m->height - a->queries;
    make_pattern(m, m->lists == 1 ? a->queries : padded - (below(2) ? spare : 0), a->keys, below(2) == 1);
}

static spk_attention draw_problem(void)
{
    spk_attention a = {SPK_SIZED(spk_attention), .batch = 1 + below(2), .heads_kv = 1 + below(2), .depth = 1 + below(24)};
    a.queries = 48 + below(80);
    a.keys = below(3) == 0 ? a.queries : below(150);
    a.depth_v = below(2) ? 1 + below(24) : 0;
    a.heads = a.heads_kv * (1 + below(3));
    a.want_lse = (int)below(2);
    a.use_softcap = below(4) == 0;
    const int64_t lists[] = {0, 1, a.heads_kv, a.heads};
    a.mask_heads = lists[below(4)];
    a.mask_items = below(2) ? a.batch : below(2);
    if (below(3) > 0) {
        a.diagonal = (spk_diagonal)(1 + below(2));
        a.causal = (int)below(2);
        a.window_left = below(2) * (1 + below(60));
        a.window_right = a.causal ? 0 : below(2) * (1 + below(60));
        a.sinks = a.window_left ? below(2) * (1 + below(80)) : 0;
    }
    return a;
}

#endif
