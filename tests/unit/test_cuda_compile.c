/* Every device program of the kernel table compiles, for every architecture its row names, without spilled registers, a stack frame (but
 * for a few bytes on those where nothing is tuned), serialised wgmma (C75xx) or a warning: over a few problems and tunables that cover as
 * many pairs of their values as so few can (SPARSEK_TEST_LONG: over many). Needs NVRTC but no device; where SPARSEK_NVRTC is not set, it
 * says so and passes. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/cuda/runtime/nvrtc.h"
#include "backend/cuda/runtime/program.h"
#include "backend/cuda/remote/deferred.h"
#include "backend/cuda/remote/scan.h"
#include "backend/cuda/timing/watch.h"
#include "base/clock.h"
#include "base/rng.h"
#include "registry/registry.h"
#include "op/product.h"

enum {
    DRAWS = 6000,
    MOST_JOBS = 8192,
    POOL = 800,
    FACTS = 16,
    FEATURES = FACTS + SPK_MAX_TUNABLES,
    PAIR_BITS = 18,
    NATIVE_LIMIT = 6,
    OTHER_LIMIT = 2,
    HELPER_LIMIT = 4,
    LONG_LIMIT = 150
};

/* Bytes that a program may spill for an architecture on which nothing is tuned, in an epilogue, in attention's producing warp, once a tile,
 * or where attention searches for infinities: outside of the loop over K they cost nothing, and each compiler has others. */
enum { FEW_BYTES = 96 };

/* What a row may spill all the same, and why. */
static const struct {
    const char *row;
    int bytes;
    const char *why;
} may_spill[] = {{"reference_cuda_attention", 1 << 20,
                  "a yardstick, in which nothing is tuned: what its calls of tanh and log may overwrite goes to the stack"},
                 {"attention_backward_sm90_two_pass", 1024,
                  "once a tile, outside of the loop over its steps: ptxas keeps some sums in local memory where those of a tile without "
                  "steps join them"}};

static const struct arch {
    const char *name;
    int compute, shared_bytes, shared_processor_bytes, processors;
    unsigned isa;
} archs[] = {
    {"sm_90a", 90, 232448, 233472, 132, SPK_ISA_SM70 | SPK_ISA_SM80 | SPK_ISA_SM90A},
    {"sm_80", 80, 166912, 167936, 108, SPK_ISA_SM70 | SPK_ISA_SM80},
    {"sm_89", 89, 101376, 102400, 128, SPK_ISA_SM70 | SPK_ISA_SM80},
    {"sm_100", 100, 232448, 233472, 148, SPK_ISA_SM70 | SPK_ISA_SM80},
};

/* A row of the table, or a program that vendor rows use around their products. */
typedef struct subject {
    const char *name;
    const spk_kernel *kernel; /* NULL: `file` alone, which takes every problem */
    const char *file, *entry;
    unsigned isa;
    const char *more;        /* of its options; NULL: those of the problem alone */
    spk_operation operation; /* of the problems, where there is no row */
} subject;

static const subject helpers[] = {{"finish", NULL, "finish.cu", "finish_product", SPK_ISA_SM70, NULL, SPK_SPMM},
                                  {"finish", NULL, "finish.cu", "finish_product", SPK_ISA_SM70, NULL, SPK_GEMM},
                                  {"fill_dense", NULL, "fill_dense.cu", "fill_dense", SPK_ISA_SM70, NULL, SPK_SPMM},
                                  {"fill_ell", NULL, "fill_ell.cu", "fill_ell", SPK_ISA_SM70, NULL, SPK_SPMM},
                                  {"gather_dense", NULL, "gather_dense.cu", "gather_dense", SPK_ISA_SM70,
                                   " -DBLOCK_ROWS=32 -DBLOCK_COLS=16 -DRAGGED=1 -DACC_IS_D=1", SPK_SDDMM},
                                  {"gather_dense", NULL, "gather_dense.cu", "gather_dense", SPK_ISA_SM70,
                                   " -DBLOCK_ROWS=3 -DBLOCK_COLS=5 -DRAGGED=0 -DACC_IS_D=0", SPK_SDDMM}};

typedef struct job {
    const char *row, *arch;
    char params[SPK_MAX_PARAMS_TEXT];
    spk_build build;
    int features[FEATURES];
    double ms;
    int registers;
    char wrong[400]; /* "": nothing */
} job;

static job jobs[MOST_JOBS], pool[POOL];
static int job_count;

/* ------------------------------------------------------------------------------------------------ problems at random */

static const spk_dtype dtypes[][4] = {/* A, B, D, compute */
                                      {SPK_F32, SPK_F32, SPK_F32, SPK_F32}, {SPK_F64, SPK_F64, SPK_F64, SPK_F64},
                                      {SPK_F16, SPK_F16, SPK_F16, SPK_F32}, {SPK_BF16, SPK_BF16, SPK_BF16, SPK_F32},
                                      {SPK_F16, SPK_F16, SPK_F32, SPK_F32}, {SPK_BF16, SPK_BF16, SPK_F32, SPK_F32},
                                      {SPK_F32, SPK_F32, SPK_F32, SPK_TF32}};
static const int blocks[][2] = {{1, 1},   {3, 3},   {4, 4},     {8, 8},    {16, 16}, {16, 8},    {8, 32}, {32, 32}, {48, 48},
                                {64, 64}, {64, 32}, {128, 128}, {128, 64}, {20, 12}, {256, 256}, {1, 16}, {32, 1},  {16, 4}};
enum { DTYPES = sizeof dtypes / sizeof dtypes[0], BLOCKS = sizeof blocks / sizeof blocks[0] };

static spk_pattern *patterns[BLOCKS][2]; /* sizes that are multiples of the block, and ragged ones; one long row, which clusters share */

static void make_patterns(void)
{
    for (int i = 0; i < BLOCKS; i++)
        for (int ragged = 0; ragged < 2; ragged++) {
            const int64_t down = (4096 + blocks[i][0] - 1) / blocks[i][0], across = (4096 + blocks[i][1] - 1) / blocks[i][1];
            int64_t *offsets = calloc((size_t)down + 1, sizeof *offsets), *columns = calloc((size_t)across, sizeof *columns);
            assert_true(offsets != NULL && columns != NULL);
            for (int64_t row = 0; row < down; row++)
                offsets[row + 1] = across;
            for (int64_t column = 0; column < across; column++)
                columns[column] = column;
            spk_bsr_indices indices = {SPK_SIZED(spk_bsr_indices),
                                       .rows = down * blocks[i][0] - ragged * (blocks[i][0] > 1),
                                       .cols = across * blocks[i][1] - ragged * (blocks[i][1] > 1),
                                       .block_rows = blocks[i][0],
                                       .block_cols = blocks[i][1],
                                       .nnzb = across,
                                       .row_offsets = offsets,
                                       .col_indices = columns,
                                       .index_type = SPK_INDEX_I64};
            assert_int_equal(spk_pattern_make(&spk_mem_system, &indices, &patterns[i][ragged]), SPK_OK);
            free(offsets);
            free(columns);
        }
}

static void release_patterns(void)
{
    for (int i = 0; i < BLOCKS; i++)
        for (int ragged = 0; ragged < 2; ragged++)
            spk_pattern_release(&patterns[i][ragged]);
}

typedef struct draw {
    spk_problem problem;
    int dtype, block; /* block: its number among the sizes; negative: there is none, and something else that programs differ by */
    int form;         /* of attention: packed, with lengths, pages, tiles of bits */
} draw;

static bool draw_sddmm(spk_rng *rng, draw *out)
{
    static const int64_t depths[] = {1, 8, 32, 64, 512, 4096, 37};
    const int dtype = (int)spk_rng_below(rng, DTYPES), block = (int)spk_rng_below(rng, BLOCKS);
    const spk_sddmm sddmm = {SPK_SIZED(spk_sddmm),
                             .k = depths[spk_rng_below(rng, sizeof depths / sizeof depths[0])],
                             .dtype_x = dtypes[dtype][0],
                             .dtype_y = dtypes[dtype][1],
                             .dtype_d = dtypes[dtype][2],
                             .compute = dtypes[dtype][3],
                             .block_layout = (spk_layout)spk_rng_below(rng, 2),
                             .layout_x = (spk_layout)spk_rng_below(rng, 2),
                             .layout_y = (spk_layout)spk_rng_below(rng, 2),
                             .use_c = (int)spk_rng_below(rng, 2),
                             .batch = spk_rng_below(rng, 4) == 0 ? 3 : 1};
    out->dtype = dtype;
    out->block = block;
    return spk_problem_read(&spk_op_sddmm, patterns[block][spk_rng_below(rng, 4) == 0], &sddmm, NULL, &out->problem) == SPK_OK;
}

/* Sizes and leading dimensions that whole vectors fit into, and others. */
static bool draw_gemm(spk_rng *rng, draw *out)
{
    static const int64_t sizes[] = {1, 8, 16, 48, 64, 100, 128, 512, 588, 4096, 37};
    enum { SIZES = sizeof sizes / sizeof sizes[0] };
    const int dtype = (int)spk_rng_below(rng, DTYPES), plain = spk_rng_below(rng, 3) == 0, apart = (int)spk_rng_below(rng, 4);
    spk_gemm gemm = {SPK_SIZED(spk_gemm),
                     .m = sizes[spk_rng_below(rng, SIZES)],
                     .n = sizes[spk_rng_below(rng, SIZES)],
                     .k = sizes[spk_rng_below(rng, SIZES)],
                     .dtype_a = dtypes[dtype][0],
                     .dtype_b = dtypes[dtype][1],
                     .dtype_d = dtypes[dtype][2],
                     .compute = dtypes[dtype][3],
                     .layout_a = (spk_layout)spk_rng_below(rng, 2),
                     .layout_b = (spk_layout)spk_rng_below(rng, 2),
                     .layout_d = (spk_layout)spk_rng_below(rng, 2)};
    if (apart < 3) {
        gemm.lda = (gemm.layout_a == SPK_ROW_MAJOR ? gemm.k : gemm.m) + apart;
        gemm.ldb = (gemm.layout_b == SPK_ROW_MAJOR ? gemm.n : gemm.k) + apart;
    }
    if (!plain) {
        gemm.use_c = (int)spk_rng_below(rng, 2);
        gemm.bias = (spk_bias)spk_rng_below(rng, 3);
        gemm.activation = (spk_activation)spk_rng_below(rng, 5);
        gemm.residual = (spk_residual)spk_rng_below(rng, 3);
        gemm.keep_preact = (int)spk_rng_below(rng, 2);
    }
    const int items = (int)spk_rng_below(rng, 5);
    if (items == 0) {
        gemm.batch = 3;
    } else if (items < 3) {
        gemm.group_axis = (spk_group_axis)(SPK_GROUP_ROWS + (int)spk_rng_below(rng, 3));
        gemm.groups = 1 + 4 * (int)spk_rng_below(rng, 2);
    }
    gemm.assume_finite = (int)spk_rng_below(rng, 2);
    out->dtype = dtype;
    if (spk_problem_read(&spk_op_gemm, NULL, &gemm, NULL, &out->problem) != SPK_OK)
        return false;
    out->block = -1 - (int)(out->problem.a.ld % 8 * 8 + out->problem.b.ld % 8) - 64 * (int)gemm.group_axis; /* how lines begin */
    return true;
}

/* With a mask of blocks and without, tiles of bits, packed sequences, lengths and pages of keys, limits, depths that fill lines of 64 and
 * others, lines of K that begin at whole vectors and others. */
static bool draw_attention_of(const spk_op *op, spk_rng *rng, draw *out)
{
    static const int64_t depths[] = {64, 128, 256, 16, 72, 80, 96, 192};
    enum { DEPTHS = sizeof depths / sizeof depths[0] };
    const int which = (int)spk_rng_below(rng, DEPTHS), dtype = (int)spk_rng_below(rng, 4), block = (int)spk_rng_below(rng, BLOCKS),
              masked = (int)spk_rng_below(rng, 2), band = (int)spk_rng_below(rng, 4), flags = (int)spk_rng_below(rng, 8);
    const enum { SEQUENCES = 1, LENGTHS, PAGES, TILES, PLAIN } form = (int)spk_rng_below(rng, 8);
    spk_pattern *mask = masked ? patterns[block][0] : NULL;
    static const spk_dtype types[] = {SPK_BF16, SPK_F16, SPK_F32, SPK_F64};
    static const int64_t apart[] = {0, 0, 8, 4, 2, 1}; /* lines of K; without a mask */
    const spk_attention attention = {SPK_SIZED(spk_attention),
                                     .dtype = types[dtype],
                                     .queries = mask != NULL ? mask->rows : 4096,
                                     .keys = mask != NULL ? mask->cols : 4096,
                                     .depth = depths[which],
                                     .depth_v = spk_rng_below(rng, 3) == 0 ? depths[spk_rng_below(rng, DEPTHS)] : 0,
                                     .heads = 8,
                                     .heads_kv = spk_rng_below(rng, 2) == 0 ? 2 : 8,
                                     .ldk = depths[which] + (masked ? 0 : apart[block % 6]),
                                     .diagonal = SPK_DIAGONAL_TOP_LEFT,
                                     .causal = band & 1,
                                     .window_left = band & 2 ? 512 : 0,
                                     .use_softcap = flags & 1,
                                     .want_lse = flags >> 1 & 1,
                                     .sequences = form == SEQUENCES ? 5 : 0,
                                     .key_lengths = form == LENGTHS || form == PAGES,
                                     .page_keys = form == PAGES ? 64 : 0,
                                     .pages = form == PAGES ? 100 : 0,
                                     .tiles = form == TILES && masked ? 3 : 0,
                                     .assume_finite = flags >> 2};
    out->dtype = dtype + 8 * which;
    out->block = masked ? block + 64 * band : -1 - band;
    out->form = form < PLAIN ? form : PLAIN;
    const spk_attention_backward backward = {SPK_SIZED(spk_attention_backward),
                                             .dtype = attention.dtype,
                                             .queries = attention.queries,
                                             .keys = attention.keys,
                                             .depth = attention.depth,
                                             .depth_v = attention.depth_v,
                                             .heads = attention.heads,
                                             .heads_kv = attention.heads_kv,
                                             .ldk = attention.ldk,
                                             .diagonal = attention.diagonal,
                                             .causal = attention.causal,
                                             .window_left = attention.window_left,
                                             .use_softcap = attention.use_softcap,
                                             .use_grad_lse = attention.want_lse,
                                             .sequences = attention.sequences,
                                             .key_lengths = attention.key_lengths,
                                             .tiles = attention.tiles,
                                             .assume_finite = attention.assume_finite};
    return spk_problem_read(op, mask, op == &spk_op_attention ? (const void *)&attention : &backward, NULL, &out->problem) == SPK_OK;
}

static bool draw_attention(spk_rng *rng, draw *out)
{
    return draw_attention_of(&spk_op_attention, rng, out);
}

static bool draw_attention_backward(spk_rng *rng, draw *out)
{
    return draw_attention_of(&spk_op_attention_backward, rng, out);
}

static bool draw_spmm(spk_rng *rng, draw *out)
{
    static const int64_t widths[] = {1, 4, 8, 16, 32, 64, 128, 512, 4096, 37};
    const int dtype = (int)spk_rng_below(rng, DTYPES), block = (int)spk_rng_below(rng, BLOCKS), plain = spk_rng_below(rng, 3) == 0;
    spk_spmm spmm = {SPK_SIZED(spk_spmm),
                     .n = widths[spk_rng_below(rng, sizeof widths / sizeof widths[0])],
                     .dtype_a = dtypes[dtype][0],
                     .dtype_b = dtypes[dtype][1],
                     .dtype_d = dtypes[dtype][2],
                     .compute = dtypes[dtype][3],
                     .trans_a = (spk_trans)spk_rng_below(rng, 2),
                     .block_layout = (spk_layout)spk_rng_below(rng, 2),
                     .layout_b = (spk_layout)spk_rng_below(rng, 2),
                     .layout_d = (spk_layout)spk_rng_below(rng, 2)};
    if (!plain) {
        spmm.use_c = (int)spk_rng_below(rng, 2);
        spmm.bias = (spk_bias)spk_rng_below(rng, 3);
        spmm.activation = (spk_activation)spk_rng_below(rng, 5);
        spmm.residual = (spk_residual)spk_rng_below(rng, 3);
        spmm.keep_preact = (int)spk_rng_below(rng, 2);
    }
    if (spk_rng_below(rng, 4) == 0)
        spmm.batch = 3;
    spmm.assume_finite = (int)spk_rng_below(rng, 2);
    spmm.static_values = (int)spk_rng_below(rng, 2);
    out->dtype = dtype;
    out->block = block;
    return spk_problem_read(&spk_op_spmm, patterns[block][spk_rng_below(rng, 4) == 0], &spmm, NULL, &out->problem) == SPK_OK;
}

/* ------------------------------------------------------------------------------------------------ which to compile */

static void describe(job *one, const draw *drawn, const spk_params *params)
{
    const spk_problem *p = &drawn->problem;
    const spk_epilogue *e = &p->epilogue;
    const int facts[FACTS] = {drawn->dtype,     drawn->block,       p->batch > 1,     p->op == &spk_op_sddmm,
                              p->a.layout,      p->b.layout,        p->d.layout,      p->block_layout,
                              p->trans_a,       (int)e->activation, (int)e->bias,     e->use_c,
                              (int)e->residual, e->keep_preact,     p->assume_finite, drawn->form};
    memcpy(one->features, facts, sizeof facts);
    memcpy(one->features + FACTS, params->v, sizeof params->v);
}

static unsigned char seen[1 << PAIR_BITS];

/* How many pairs of values a program has that none before it had; with `keep` they count as had from now on. */
static int new_pairs(const job *one, bool keep)
{
    int fresh = 0;
    for (int i = 0; i < FEATURES; i++)
        for (int j = i; j < FEATURES; j++) { /* i = j: a value by itself weighs more */
            const uint32_t mixed = ((uint32_t)(i * FEATURES + j) * 2654435761u) ^ ((uint32_t)one->features[i] * 40503u << 8) ^
                                   ((uint32_t)one->features[j] * 2246822519u);
            unsigned char *at = &seen[(mixed ^ mixed >> 15) & ((1 << PAIR_BITS) - 1)];
            fresh += *at != 0 ? 0 : i == j ? 12 : 1;
            *at |= keep;
        }
    return fresh;
}

static bool have(const job *list, int count, const spk_build *build)
{
    for (int i = 0; i < count; i++)
        if (strcmp(list[i].build.options, build->options) == 0 && strcmp(list[i].build.entry, build->entry) == 0)
            return true;
    return false;
}

static bool draw_job(const subject *row, const spk_device *device, spk_rng *rng, job *one)
{
    draw drawn = {.form = 0};
    spk_params params = {{0}};
    const char *why = NULL;
    const spk_operation operation = row->kernel != NULL ? row->kernel->operation : row->operation;
    if (!(operation == SPK_SDDMM                ? draw_sddmm
          : operation == SPK_GEMM               ? draw_gemm
          : operation == SPK_ATTENTION          ? draw_attention
          : operation == SPK_ATTENTION_BACKWARD ? draw_attention_backward
                                                : draw_spmm)(rng, &drawn))
        return false;
    *one = (job){.row = row->name, .arch = spk_cuda_of(device)->arch};
    if (row->kernel != NULL) {
        spk_params_get(row->kernel, (int)spk_rng_below(rng, (uint64_t)spk_params_count(row->kernel)), &params);
        if (drawn.problem.group_axis != SPK_GROUP_NONE && !row->kernel->ops->grouped)
            return false;
        if (drawn.problem.batch > 1 && !row->kernel->ops->batched)
            drawn.problem = spk_problem_item(&drawn.problem);
        if (!row->kernel->ops->applicable(&drawn.problem, device, &params, &why))
            return false;
        row->kernel->ops->build(&drawn.problem, device, &params, &one->build);
        spk_params_text(row->kernel, &params, one->params, sizeof one->params);
    } else {
        one->build = (spk_build){.file = row->file, .entry = row->entry};
        const int used = spk_problem_device_defines(&drawn.problem, one->build.options, sizeof one->build.options);
        snprintf(one->build.options + used, sizeof one->build.options - (size_t)used, "%s", row->more != NULL ? row->more : "");
    }
    describe(one, &drawn, &params);
    return true;
}

/* The candidates that keep most in registers, with the epilogues that do: what is drawn seldom has all of it at once. */
static const struct {
    const char *row, *params;
    int block; /* square */
} heavy[] = {{"spmm_sm90_wgmma", "BN=256 CONSUMERS=2 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 128},
             {"spmm_sm90_groups", "HEIGHT=256 BN=128 PRODUCERS=4 SLOTS=2 CLUSTER=2", 32}};

static spk_pattern *square_pattern(int block)
{
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i][0] == block && blocks[i][1] == block)
            return patterns[i][0];
    fail_msg("there are no blocks of %d", block);
    return NULL;
}

static bool set_params(const spk_kernel *kernel, const char *text, spk_params *params)
{
    char found[SPK_MAX_PARAMS_TEXT];
    for (int i = 0; i < spk_params_count(kernel); i++) {
        spk_params_get(kernel, i, params);
        spk_params_text(kernel, params, found, sizeof found);
        if (strcmp(found, text) == 0)
            return true;
    }
    return false;
}

static void add_heavy_one(const subject *row, const spk_device *device, int which, const spk_spmm *spmm)
{
    spk_params params = {{0}};
    spk_problem problem;
    const char *why = NULL;
    job *one = &jobs[job_count++];
    *one = (job){.row = row->name};
    assert_int_equal(spk_problem_read(&spk_op_spmm, square_pattern(heavy[which].block), spmm, NULL, &problem), SPK_OK);
    assert_true(set_params(row->kernel, heavy[which].params, &params));
    if (problem.batch > 1 && !row->kernel->ops->batched)
        problem = spk_problem_item(&problem);
    if (!row->kernel->ops->applicable(&problem, device, &params, &why))
        fail_msg("%s %s: %s", row->name, heavy[which].params, why);
    row->kernel->ops->build(&problem, device, &params, &one->build);
    spk_params_text(row->kernel, &params, one->params, sizeof one->params);
}

static void add_heavy(const subject *row, const spk_device *device)
{
    for (int which = 0; which < (int)(sizeof heavy / sizeof heavy[0]); which++)
        for (int way = 0; way < 4 && strcmp(heavy[which].row, row->name) == 0; way++) {
            spk_spmm spmm = {
                SPK_SIZED(spk_spmm),    .n = 4096,         .dtype_a = SPK_F16, .bias = SPK_BIAS_PER_ROW, .activation = SPK_ACT_GELU_ERF,
                .keep_preact = way < 2, .assume_finite = 1};
            if (way % 2 == 0) {
                spmm.residual = SPK_RESIDUAL_ADD;
                spmm.layout_d = way < 2 ? SPK_ROW_MAJOR : SPK_COL_MAJOR;
            } else {
                spmm.use_c = 1;
                spmm.batch = 3;
                spmm.dtype_a = SPK_BF16;
            }
            add_heavy_one(row, device, which, &spmm);
        }
}

static void add_jobs(const subject *row, const struct arch *arch, int limit)
{
    spk_cuda cuda = {.compute = arch->compute,
                     .shared_bytes = arch->shared_bytes,
                     .shared_processor_bytes = arch->shared_processor_bytes,
                     .processors = arch->processors,
                     .l2_bytes = 50 << 20,
                     .driver_version = 13000};
    snprintf(cuda.arch, sizeof cuda.arch, "%s", arch->name);
    spk_device device = {.backend = &spk_backend_cuda,
                         .mem = spk_mem_system,
                         .isa = arch->isa,
                         .processors = arch->processors,
                         .peak_gflops_f32 = 6e4,
                         .stream_gbs = 4000,
                         .l2_bytes = 50 << 20,
                         .memory_bytes = (int64_t)80 << 30,
                         .state = &cuda};
    spk_rng rng;
    const int before = job_count;
    int pooled = 0;
    spk_rng_seed(&rng, 1);
    add_heavy(row, &device);
    for (int i = before; i < job_count; i++)
        jobs[i].arch = arch->name;
    for (int i = 0; i < DRAWS && pooled < POOL; i++) {
        job *one = &pool[pooled];
        if (!draw_job(row, &device, &rng, one) || have(pool, pooled, &one->build))
            continue;
        if (one->build.shared_bytes > arch->shared_bytes)
            fail_msg("%s %s on %s asks for %d bytes of shared memory; the limit is %d", row->name, one->params, arch->name,
                     one->build.shared_bytes, arch->shared_bytes);
        one->arch = arch->name;
        pooled++;
    }
    if (pooled == 0)
        fail_msg("%s: no problem was found that it computes on %s", row->name, arch->name);
    memset(seen, 0, sizeof seen);
    for (int taken = 0; taken < limit && taken < pooled && job_count < MOST_JOBS; taken++) { /* each time the one that adds most */
        int best = -1, most = -1;
        for (int i = 0; i < pooled; i++) {
            const int fresh = pool[i].row == NULL ? -1 : new_pairs(&pool[i], false);
            if (fresh > most) {
                most = fresh;
                best = i;
            }
        }
        new_pairs(&pool[best], true);
        jobs[job_count++] = pool[best];
        pool[best].row = NULL;
    }
}

/* ------------------------------------------------------------------------------------------------ compiling, on all cores */

static int spilling_allowed(const char *row)
{
    for (size_t i = 0; i < sizeof may_spill / sizeof may_spill[0]; i++)
        if (strcmp(may_spill[i].row, row) == 0)
            return may_spill[i].bytes;
    return 0;
}

static bool may_spill_a_little(const char *options)
{
    static const char *const parts[] = {
        "-DUSE_C=", "-DBIAS=", "-DACTIVATION=", "-DRESIDUAL=", "-DKEEP_PREACT=", "-DSTEP_KEYS=", "-DSCRUB=", "-DTILED="};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const char *at = strstr(options, parts[i]);
        if (at != NULL && at[strlen(parts[i])] != '0')
            return true;
    }
    return false;
}

static void read_log(job *one, char *log)
{
    const bool native = strcmp(one->arch, archs[0].name) == 0;
    const int few = native && !may_spill_a_little(one->build.options) ? 0 : FEW_BYTES, allowed = spilling_allowed(one->row),
              most = allowed > few ? allowed : few;
    char *rest = NULL;
    for (char *line = strtok_r(log, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        int stack = 0, stores = 0, loads = 0, registers = 0;
        const char *bytes = strstr(line, "bytes stack frame"), *c75 = strstr(line, "C75"), *used = strstr(line, "Used ");
        if (bytes != NULL) {
            while (bytes > line && (bytes[-1] == ' ' || (bytes[-1] >= '0' && bytes[-1] <= '9')))
                bytes--;
            sscanf(bytes, " %d bytes stack frame, %d bytes spill stores, %d bytes spill loads", &stack, &stores, &loads);
        }
        if (used != NULL && sscanf(used, "Used %d registers", &registers) == 1 && registers > one->registers)
            one->registers = registers; /* a program may have several functions */
        const bool spills = stores > most || loads > most || stack > most;
        if ((c75 != NULL || strstr(line, "warning") != NULL || spills) && one->wrong[0] == '\0')
            snprintf(one->wrong, sizeof one->wrong, "%s", line);
    }
}

static atomic_int next_job;

static void *work(void *unused)
{
    for (int i; (i = atomic_fetch_add(&next_job, 1)) < job_count;) {
        job *one = &jobs[i];
        void *cubin = NULL;
        size_t bytes = 0;
        char *log = NULL;
        const double begun = spk_now_us();
        if (spk_cuda_compile(&spk_mem_system, &one->build, one->arch, &cubin, &bytes, &log) != SPK_OK)
            snprintf(one->wrong, sizeof one->wrong, "%s", spk_error_message(0));
        else
            read_log(one, log);
        one->ms = (spk_now_us() - begun) / 1e3;
        spk_free(&spk_mem_system, cubin);
        spk_free(&spk_mem_system, log);
    }
    return unused;
}

static void compile_all(void)
{
    cpu_set_t set;
    pthread_t threads[64];
    int wanted = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1, begun = 0;
    atomic_store(&next_job, 0);
    wanted = wanted < 64 ? wanted : 64;
    while (begun < wanted - 1 && pthread_create(&threads[begun], NULL, work, NULL) == 0)
        begun++;
    work(NULL);
    for (int i = 0; i < begun; i++)
        pthread_join(threads[i], NULL);
}

/* One line a row and architecture; returns how many were wrong. */
static int report(void)
{
    int wrong = 0;
    for (int i = 0; i < job_count;) {
        const int first = i;
        double total = 0, most = 0;
        int registers = 0;
        for (; i < job_count && jobs[i].row == jobs[first].row && jobs[i].arch == jobs[first].arch; i++) {
            total += jobs[i].ms;
            most = jobs[i].ms > most ? jobs[i].ms : most;
            registers = jobs[i].registers > registers ? jobs[i].registers : registers;
            if (jobs[i].wrong[0] != '\0' && wrong++ < 20)
                printf("WRONG %s %s for %s: %s\n  options: %s\n", jobs[i].row, jobs[i].params, jobs[i].arch, jobs[i].wrong,
                       jobs[i].build.options);
        }
        printf("%-24s %-7s %4d programs, %.0f ms each, %.0f at most, %d registers at most\n", jobs[first].row, jobs[first].arch, i - first,
               total / (i - first), most, registers);
    }
    return wrong;
}

/* Minutes of compiling: only where it is asked for by name. */
static bool have_nvrtc(void)
{
    char version[32];
    const char *wish = getenv("SPARSEK_NVRTC");
    if (wish == NULL || strcmp(wish, "none") == 0) {
        printf("skipped: SPARSEK_NVRTC names no NVRTC (scripts/test cuda installs one)\n");
        return false;
    }
    if (spk_cuda_nvrtc_open(version, sizeof version) != SPK_OK)
        fail_msg("%s", spk_error_message(0));
    printf("NVRTC %s\n", version);
    return true;
}

static void add_row(const subject *row, int native, int other)
{
    const char *only = getenv("SPARSEK_TEST_ROW");
    const bool all = getenv("SPARSEK_TEST_LONG") != NULL;
    if (only != NULL && strcmp(only, row->name) != 0)
        return;
    for (size_t a = 0; a < sizeof archs / sizeof archs[0]; a++)
        if ((row->isa & ~archs[a].isa) == 0)
            add_jobs(row, &archs[a], all ? LONG_LIMIT : a == 0 ? native : other);
}

static void every_row_compiles(void **state)
{
    (void)state;
    const spk_kernel *table;
    const int rows = spk_kernels(&table);
    if (!have_nvrtc())
        return;
    make_patterns();
    for (int r = 0; r < rows; r++)
        if (table[r].backend == SPK_BACKEND_CUDA && table[r].ops->build != NULL &&
            (strncmp(table[r].name, "test_", 5) != 0 || getenv("SPARSEK_TEST_ROWS") != NULL))
            add_row(&(subject){table[r].name, &table[r], NULL, NULL, table[r].isa, NULL, table[r].operation}, NATIVE_LIMIT, OTHER_LIMIT);
    for (size_t i = 0; i < sizeof helpers / sizeof helpers[0]; i++)
        add_row(&helpers[i], HELPER_LIMIT, 1);
    compile_all();
    release_patterns();
    int wrong = report();
    if (wrong != 0)
        fail_msg("%d programs of %d", wrong, job_count);
}

static void what_has_no_row_compiles(void **state)
{
    (void)state;
    static const spk_dtype types[] = {SPK_F32, SPK_F64, SPK_F16, SPK_BF16};
    if (!have_nvrtc())
        return;
    job_count = 0;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        jobs[job_count] = (job){.row = "check_written", .arch = "sm_80"};
        spk_cuda_scan_build(types[i], &jobs[job_count++].build);
        jobs[job_count] = jobs[job_count - 1];
        jobs[job_count].row = jobs[job_count].build.entry = "gather_lines";
        jobs[job_count++].build.file = "gather_lines.cu";
    }
    for (int i = 0; i < 4; i++) {
        jobs[job_count] = (job){.row = "list_tiles", .arch = "sm_90a"};
        spk_cuda_list_tiles_build(i % 2 == 0 ? 128 : 256, i % 2 == 0 ? 128 : 16, i / 2 == 0 ? 128 : 256, &jobs[job_count++].build);
    }
    for (int i = 0; i < 4; i++) {
        jobs[job_count] = (job){.row = "check_indices", .arch = "sm_80"};
        spk_cuda_deferred_build(i % 2 == 0 ? SPK_INDEX_I32 : SPK_INDEX_I64, i / 2 == 1, &jobs[job_count].build);
        jobs[job_count].row = jobs[job_count].build.entry;
        job_count++;
    }
    jobs[job_count] = (job){.row = "delay", .arch = "sm_80"};
    spk_cuda_delay_build(&jobs[job_count++].build);
    jobs[job_count++] = (job){.row = "block_pointers", .arch = "sm_80", .build = {.file = "block_pointers.cu", .entry = "block_pointers"}};
    static const char *const gradients[][2] = {{"attention_delta", " -DROWS=64 -DDEPTH_V=128 -DPACKED=0 -DKEYS=128"},
                                               {"attention_delta", " -DROWS=128 -DDEPTH_V=40 -DPACKED=1 -DKEYS=64"},
                                               {"attention_delta", " -DROWS=80 -DDEPTH_V=64 -DPACKED=1 -DKEYS=128"},
                                               {"attention_grad_q", " -DROWS=64 -DDEPTH=96 -DACROSS=2 -DCOLUMNS=64 -DTRANSPOSED=0"},
                                               {"attention_grad_q", " -DROWS=80 -DDEPTH=96 -DACROSS=2 -DCOLUMNS=64 -DTRANSPOSED=1"},
                                               {"attention_grad_q", " -DROWS=128 -DDEPTH=40 -DACROSS=1 -DCOLUMNS=48 -DTRANSPOSED=0"}};
    for (size_t i = 0; i < 2 * sizeof gradients / sizeof gradients[0]; i++) {
        const char *const *one = gradients[i / 2];
        job *made = &jobs[job_count++];
        *made = (job){.row = one[0], .arch = "sm_90a", .build = {.entry = one[0]}};
        made->build.file = strcmp(one[0], "attention_delta") == 0 ? "attention_delta.cu" : "attention_grad_q.cu";
        snprintf(made->build.options, sizeof made->build.options, " -DDTYPE_A=%d%s", i % 2 == 0 ? SPK_F16 : SPK_BF16, one[1]);
    }
    static const char *const of_attention[][2] = {{"attention_join", "attention_join.cu"},   {"attention_longest", "attention_longest.cu"},
                                                  {"attention_merge", "attention_merge.cu"}, {"mark_seen_blocks", "attention_steps.cu"},
                                                  {"list_seen_steps", "attention_steps.cu"}, {"sort_seen_tiles", "attention_steps.cu"}};
    for (size_t i = 0; i < sizeof of_attention / sizeof of_attention[0]; i++)
        jobs[job_count++] = (job){.row = of_attention[i][0],
                                  .arch = "sm_90a",
                                  .build = {.entry = of_attention[i][0], .file = of_attention[i][1], .options = " -DDTYPE_A=4"}};
    compile_all();
    assert_int_equal(report(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_row_compiles), cmocka_unit_test(what_has_no_row_compiles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
