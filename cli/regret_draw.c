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

/* Problem `number` of the series; a GPU's are larger and of more types. Changing anything here changes what committed results mean. */
static problem_flags draw(uint64_t seed, int64_t number, bool gpu)
{
    const int64_t longest = gpu ? 8192 : 4096, widest = gpu ? 8192 : 1024;
    static const int64_t square[] = {4, 8, 16, 32, 64, 128}, sides[] = {4, 8, 16, 24, 32, 40, 48, 64, 96, 128};
    random_state r = random_for(seed, (uint64_t)number, "regret");
    problem_flags f = problem_defaults();
    if (random_chance(&r, 0.6)) {
        f.block.rows = f.block.cols = square[random_between(&r, 0, 5)];
    } else {
        f.block.rows = sides[random_between(&r, 0, 9)];
        f.block.cols = sides[random_between(&r, 0, 9)];
    }
    f.trans_a = random_chance(&r, 0.15);
    f.m = draw_multiple(&r, f.trans_a ? f.block.cols : f.block.rows, longest);
    f.k = draw_multiple(&r, f.trans_a ? f.block.rows : f.block.cols, longest);
    f.n = (int64_t)llround(random_log(&r, 1, (double)widest));
    f.density = random_log(&r, 0.02, 0.6);
    f.pattern = (spk_generator)random_between(&r, SPK_GEN_UNIFORM, SPK_GEN_EMPTY_ROWS);
    f.dtype = draw_dtype(&r, gpu);
    f.layout_b = random_chance(&r, 0.15);
    f.layout_d = random_chance(&r, 0.15);
    f.assume_finite = random_chance(&r, 0.5);
    if (random_chance(&r, 0.2)) {
        f.bias = (int)random_between(&r, 1, 2);
        f.activation = random_chance(&r, 0.5) ? SPK_ACT_RELU : SPK_ACT_GELU_TANH;
    }
    f.seed = random_next(&r) >> 33;
    return f;
}

/* The same for another operation, or as a batch of smaller ones. */
static problem_flags turned(problem_flags f, const regret_wish *wanted)
{
    if (wanted->batch > 1) {
        f.batch = wanted->batch;
        f.m = (f.m + 3) / 4;
        f.k = (f.k + 3) / 4;
    }
    if (wanted->op == 0)
        return f;
    const int64_t across = f.k;
    f.op = wanted->op;
    f.k = 8 * f.n; /* sums are longer than products are wide */
    f.n = across;
    f.trans_a = f.layout_d = f.bias = f.activation = 0;
    return f;
}

problem_flags regret_draw(uint64_t seed, int64_t number, const regret_wish *wish)
{
    return turned(draw(seed, number, wish->gpu), wish);
}
