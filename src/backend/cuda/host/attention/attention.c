/* The task of a problem, its tiles, and how many steps of keys each of them takes. */
#include "backend/cuda/host/attention/attention.h"

#include "op/attention/attention.h"

static int64_t up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static attention_strides strides_of(const spk_operand *o)
{
    return (attention_strides){.row = spk_operand_row_step(o), .head = o->head_stride, .item = o->stride};
}

int spk_cuda_attention_limit(const spk_problem *p, int64_t limit)
{
    return (int)(limit < p->m + p->n ? limit : 0);
}

attention_task spk_cuda_attention_task(const spk_problem *p, const spk_cuda_index *index)
{
    const spk_operand *o = p->operand;
    const int heads = (int)spk_operand_heads(&o[ATTENTION_Q]);
    attention_task task = {.q_strides = strides_of(&o[ATTENTION_Q]),
                           .k_strides = strides_of(&o[ATTENTION_K]),
                           .v_strides = strides_of(&o[ATTENTION_V]),
                           .o_strides = strides_of(&o[ATTENTION_O]),
                           .lse_strides = strides_of(&o[ATTENTION_LSE]),
                           .queries = (int)p->m,
                           .keys = (int)p->n,
                           .depth = (int)p->k,
                           .depth_v = (int)p->depth_v,
                           .heads = heads,
                           .sharing = (int)spk_attention_sharing(p),
                           .items = (int)p->batch,
                           .left = spk_cuda_attention_limit(p, p->band.left),
                           .right = spk_cuda_attention_limit(p, p->band.right),
                           .sinks = (int)(p->band.sinks < p->n ? p->band.sinks : p->n),
                           .shift = (int)(p->band.diagonal == SPK_DIAGONAL_BOTTOM_RIGHT ? p->n - p->m : 0)};
    if (p->packing.sequences > 0 || p->packing.key_lengths != 0) {
        task.sequences = (int)p->packing.sequences;
        task.bottom = p->band.diagonal == SPK_DIAGONAL_BOTTOM_RIGHT;
    }
    if (p->packing.page_keys > 0) {
        task.page_keys = (int)p->packing.page_keys;
        task.pages_of = (int)up(p->n, p->packing.page_keys);
    }
    if (p->pattern != NULL) {
        task.tile_words = (int)spk_attention_tile_words(p);
        task.block_rows = p->pattern->block_rows;
        task.block_cols = p->pattern->block_cols;
        task.list_rows = (int)spk_attention_list_rows(p);
        task.list_sharing = (int)(heads / p->lists.heads);
        task.item_lists = (int)p->lists.item_step;
        if (index != NULL) {
            task.offsets = index->arguments.offsets;
            task.columns = index->arguments.columns;
        }
    }
    return task;
}

static const int *index_of(const spk_problem *p, const spk_args *args, int operand)
{
    return p->operand[operand].dtype != SPK_DTYPE_DEFAULT ? args->at[operand] : NULL;
}

void spk_cuda_attention_fill(const spk_problem *p, const spk_args *args, attention_task *task)
{
    task->q = args->at[ATTENTION_Q];
    task->k = args->at[ATTENTION_K];
    task->v = args->at[ATTENTION_V];
    task->o = args->at[ATTENTION_O];
    task->lse = p->operand[ATTENTION_LSE].dtype != SPK_DTYPE_DEFAULT ? args->at[ATTENTION_LSE] : NULL;
    task->query_ends = index_of(p, args, ATTENTION_QUERY_ENDS);
    task->key_ends = index_of(p, args, ATTENTION_KEY_ENDS);
    task->page_table = index_of(p, args, ATTENTION_PAGE_TABLE);
    task->tile_numbers = index_of(p, args, ATTENTION_TILE_NUMBERS);
    task->tile_bits = (const unsigned *)index_of(p, args, ATTENTION_TILE_BITS);
    task->scale = args->scalar[ATTENTION_SCALE];
    task->cap = p->band.use_softcap ? args->scalar[ATTENTION_SOFTCAP] : 0;
}

int spk_cuda_attention_shared_heads(const spk_problem *p)
{
    const int sharing = (int)spk_attention_sharing(p);
    const int64_t of_list = p->pattern != NULL ? spk_operand_heads(&p->operand[ATTENTION_Q]) / p->lists.heads : sharing;
    return of_list < sharing ? (int)of_list : sharing;
}

attention_tiling spk_cuda_attention_tiling(const spk_problem *p, int rows, int heads, int step_keys)
{
    attention_tiling t = {.rows = rows, .heads = heads, .step_keys = step_keys};
    t.block_rows = p->pattern != NULL && p->pattern->block_rows < p->m ? p->pattern->block_rows : (int)p->m;
    if (t.block_rows == 0)
        return t;
    t.block_tiles = up(t.block_rows, rows);
    t.row_tiles = up(p->m, t.block_rows) * t.block_tiles;
    if (p->packing.sequences > 0) /* each ends with a tile that may not be whole */
        t.row_tiles = t.block_tiles = p->m / rows + p->packing.sequences;
    t.head_tiles = spk_operand_heads(&p->operand[ATTENTION_Q]) / heads;
    t.all = t.row_tiles * t.head_tiles * p->batch;
    return t;
}

/* Blocks of a list whose first key is below `key`. */
static int64_t blocks_below(const spk_index *index, int64_t list, int64_t width, int64_t key)
{
    int64_t low = index->offsets[list], high = index->offsets[list + 1];
    const int64_t first = low;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (index->columns[middle] * width < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low - first;
}

/* As attention_sm90's producer walks it. */
int64_t spk_cuda_attention_steps(const spk_problem *p, const attention_tiling *t, int64_t tile)
{
    const int64_t row_tile = tile % t->row_tiles, rest = tile / t->row_tiles, head = rest % t->head_tiles * t->heads,
                  item = rest / t->head_tiles, block = row_tile / t->block_tiles;
    const int64_t row = block * t->block_rows + row_tile % t->block_tiles * t->rows;
    int64_t end = (block + 1) * t->block_rows;
    end = end < p->m ? end : p->m;
    if (row >= end)
        return 0;
    end = row + t->rows < end ? row + t->rows : end;
    const spk_sequence whole = spk_attention_whole(p);
    const spk_seen upper = spk_attention_seen(p, &whole, row), lower = spk_attention_seen(p, &whole, end - 1);
    if (p->pattern == NULL) {
        const int64_t sunk = up(lower.sinks, t->step_keys), from = upper.begin / t->step_keys,
                      to = up(lower.end, t->step_keys) - (from > sunk ? from : sunk);
        return sunk + (to > 0 ? to : 0);
    }
    const spk_index *index = &p->pattern->index;
    const int64_t list = spk_attention_list_row(p, item, head, row), width = p->pattern->block_cols;
    const int64_t before = blocks_below(index, list, width, upper.begin - width + 1), within = blocks_below(index, list, width, lower.end),
                  sunk = lower.sinks > 0 ? blocks_below(index, list, width, lower.sinks) : 0;
    const int64_t from = before > sunk ? before : sunk, blocks = sunk + (within > from ? within - from : 0);
    return width >= t->step_keys ? blocks * (width / t->step_keys) : up(blocks, t->step_keys / width);
}
