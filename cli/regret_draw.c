/* The problems of `regret`: a fixed distribution. */
#include <math.h>

#include "random.h"
#include "regret.h"

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

problem_flags regret_draw(uint64_t seed, int64_t number, const regret_wish *wish)
{
    const int64_t longest = wish->gpu ? 8192 : 4096, widest = wish->gpu ? 8192 : 1024;
    static const int64_t square[] = {4, 8, 16, 32, 64, 128}, sides[] = {4, 8, 16, 24, 32, 40, 48, 64, 96, 128};
    random_state r = random_for(seed, (uint64_t)number, "regret");
    problem_flags f = problem_defaults();
    extents e;
    f.op = wish->op;
    if (random_chance(&r, 0.6)) {
        f.block.rows = f.block.cols = square[random_between(&r, 0, 5)];
    } else {
        f.block.rows = sides[random_between(&r, 0, 9)];
        f.block.cols = sides[random_between(&r, 0, 9)];
    }
    const bool turned = random_chance(&r, 0.15);
    problem_set(&f, "trans_a", turned);
    e.rows = draw_multiple(&r, turned ? f.block.cols : f.block.rows, longest);
    e.cols = draw_multiple(&r, turned ? f.block.rows : f.block.cols, longest);
    e.free = (int64_t)llround(random_log(&r, 1, (double)widest));
    f.density = random_log(&r, 0.02, 0.6);
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
