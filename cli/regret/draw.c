/* The problems of `regret`: a fixed distribution. */
#include <math.h>
#include <string.h>

#include "cli/base/random.h"
#include "cli/regret/draw.h"

static int64_t draw_multiple(random_state *r, int64_t side, int64_t longest)
{
    int64_t count = (int64_t)llround(random_log(r, 256, (double)longest) / (double)side);
    int64_t least = (256 + side - 1) / side, most = longest / side;
    return side * (count < least ? least : count > most ? most : count);
}

static spk_dtype draw_dtype(random_state *r, bool gpu)
{
    double share = random_unit(r);
    if (!gpu)
        return share < 0.7 ? SPK_F32 : SPK_F64;
    return share < 0.4 ? SPK_F16 : share < 0.6 ? SPK_BF16 : share < 0.9 ? SPK_F32 : SPK_F64;
}

/* Sizes, whatever they are called. */
typedef struct extents {
    int64_t rows, cols, free;
} extents;

/* Sums are longer than products are wide: where the result lies at the pattern's blocks, the free size is the sums'. */
static void set_sizes(problem_flags *f, const extents *e)
{
    const operation *op = operation_at(f->op);
    const int64_t free_size = op->operands[operation_output(op, 0)].is_values ? 8 * e->free : e->free;
    for (int i = 0; i < op->info.size_count; i++) {
        const spk_size_info *size = &op->sizes[i];
        const bool rows = size->source == SPK_SIZE_PATTERN_ROWS || (op->info.takes_pattern != SPK_PATTERN_NEEDED && size->name[0] == 'm');
        const bool cols = size->source == SPK_SIZE_PATTERN_COLS || (op->info.takes_pattern != SPK_PATTERN_NEEDED && size->name[0] == 'k');
        problem_set_size(f, size->name, rows ? e->rows : cols ? e->cols : free_size);
    }
}

/* What the operation has not is left out. */
static void leave_out(problem_flags *f)
{
    const operation *op = operation_at(f->op);
    for (int i = 0; i < settings_count(); i++)
        if (!settings_field(settings_at(i), op) && settings_at(i)->kind != SPK_FIELD_ITEMS)
            f->set[i] = (setting_value){.whole = 0};
    if (op->info.takes_pattern != SPK_PATTERN_NEEDED) {
        f->block = (args_block){0, 0};
        f->density = -1;
        f->pattern = (spk_generator)0;
    }
}

static int64_t whole(double x, int64_t step)
{
    const int64_t count = llround(x / (double)step);
    return (count > 0 ? count : 1) * step;
}

/* Attention, as models have it: a fifth decode; the rest are prompts with all keys, causal, in a window, or in blocks of a mask. */
static problem_flags draw_attention(random_state *r, const regret_wish *wish)
{
    static const int64_t depths[] = {64, 64, 80, 96, 128, 128, 128, 192, 256}, sharings[] = {1, 1, 4, 8}, sides[] = {32, 64, 64, 128, 128};
    const bool decodes = random_chance(r, 0.2);
    problem_flags f = problem_defaults();
    f.op = wish->op;
    f.density = -1;
    const int64_t longest = wish->gpu ? 16384 : 1024, queries = decodes ? 1 : whole(random_log(r, 128, (double)longest), 32),
                  keys = decodes                  ? whole(random_log(r, 512, 8.0 * (double)longest), 32)
                         : random_chance(r, 0.75) ? queries
                                                  : whole(random_log(r, 128, (double)longest), 32);
    const int64_t heads_kv = 1 + (int64_t)random_log(r, 1, wish->gpu ? 16 : 4), heads = heads_kv * sharings[random_between(r, 0, 3)];
    problem_set(&f, "dtype", !wish->gpu ? SPK_F32 : random_chance(r, 0.7) ? SPK_BF16 : SPK_F16);
    problem_set_size(&f, "queries", queries);
    problem_set_size(&f, "keys", keys);
    problem_set_size(&f, "depth", depths[random_between(r, 0, 8)]);
    problem_set(&f, "heads_kv", (int)heads_kv);
    problem_set(&f, "heads", (int)heads);
    problem_set(&f, "batch", (int)(wish->batch > 1 ? wish->batch : decodes ? random_between(r, 1, 32) : random_between(r, 1, 2)));
    problem_set(&f, "lse", random_chance(r, 0.3));
    const double kind = random_unit(r);
    if (!decodes && kind < 0.6)
        problem_set(&f, "diagonal", SPK_DIAGONAL_BOTTOM_RIGHT);
    if (!decodes && kind < 0.6)
        problem_set(&f, "causal", 1);
    if (!decodes && kind < 0.2)
        problem_set(&f, "window_left", (int)whole(random_log(r, 64, (double)longest / 4), 32));
    if (!decodes && kind > 0.45 && kind < 0.8) {
        f.block.rows = f.block.cols = sides[random_between(r, 0, 4)];
        f.density = random_log(r, 0.05, 0.6);
        f.pattern = random_chance(r, 0.7) ? SPK_GEN_UNIFORM : SPK_GEN_POWER_LAW;
        problem_set(&f, "mask_heads", random_chance(r, 0.5) ? 1 : (int)heads_kv);
    }
    f.assume_finite = random_chance(r, 0.5);
    f.seed = random_next(r) >> 33;
    return f;
}

/* Operations with a distribution of their own. */
static const struct {
    const char *name;
    problem_flags (*draw)(random_state *r, const regret_wish *wish);
} drawn[] = {{"attention", draw_attention}};

problem_flags regret_draw(uint64_t seed, int64_t number, const regret_wish *wish)
{
    const int64_t longest = wish->gpu ? 8192 : 4096, widest = wish->gpu ? 8192 : 1024;
    static const int64_t square[] = {1, 2, 4, 8, 16, 32, 64, 128}, sides[] = {1, 2, 3, 4, 8, 16, 24, 32, 40, 48, 64, 96, 128};
    random_state r = random_for(seed, (uint64_t)number, "regret");
    problem_flags f = problem_defaults();
    extents e;
    f.op = wish->op;
    for (size_t i = 0; i < sizeof(drawn) / sizeof(*drawn); i++)
        if (strcmp(drawn[i].name, operation_at(wish->op)->info.name) == 0)
            return drawn[i].draw(&r, wish);
    if (random_chance(&r, 0.6)) {
        f.block.rows = f.block.cols = square[random_between(&r, 0, 7)];
    } else {
        f.block.rows = sides[random_between(&r, 0, 12)];
        f.block.cols = sides[random_between(&r, 0, 12)];
    }
    const bool turned = random_chance(&r, 0.15);
    problem_set(&f, "trans_a", turned);
    const int64_t most = f.block.rows * f.block.cols < 16 ? longest / 4 : longest; /* else so many blocks that a draw takes minutes */
    e.rows = draw_multiple(&r, turned ? f.block.cols : f.block.rows, most);
    e.cols = draw_multiple(&r, turned ? f.block.rows : f.block.cols, most);
    e.free = (int64_t)llround(random_log(&r, 1, (double)widest));
    f.density = random_log(&r, 0.01, 0.6);
    f.pattern = (spk_generator)random_between(&r, SPK_GEN_UNIFORM, SPK_GEN_EMPTY_ROWS);
    problem_set(&f, "dtype", (int)draw_dtype(&r, wish->gpu));
    problem_set(&f, "layout_b", random_chance(&r, 0.15));
    problem_set(&f, "layout_d", random_chance(&r, 0.15));
    f.assume_finite = random_chance(&r, 0.5);
    if (random_chance(&r, 0.2)) {
        problem_set(&f, "bias", (int)random_between(&r, 1, 2));
        problem_set(&f, "activation", random_chance(&r, 0.5) ? SPK_ACT_RELU : SPK_ACT_GELU_TANH);
    }
    f.seed = random_next(&r) >> 33;
    if (wish->batch > 1) {
        problem_set(&f, "batch", (int)wish->batch);
        e.rows = (e.rows + 3) / 4;
        e.cols = (e.cols + 3) / 4;
    }
    set_sizes(&f, &e);
    leave_out(&f);
    return f;
}
