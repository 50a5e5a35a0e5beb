/* Epilogues that read C or a residual of a 16-bit D by way of the staging tile (device/finish_staged.cuh): pieces of 64, 32 and 16 rows,
 * tiles of 16 to 256 columns, one and two staging tiles, both layouts; block rows that are empty, and rows of a group that are not there.
 * And what takes the other way out: tiles at D's edge, arrays whose lines are not 16 bytes apart. Every element is compared, and what lies
 * between the lines of D stays as it was. */
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "product.h"

enum { DEPTH = 512, WHOLE_N = 512, MOST_GRID_ROWS = 29, MOST_GRID_COLS = 32, MOST_CHOICES = 4 };
typedef unsigned short half;

/* Tiles and pieces of one size. The number of block rows is no multiple of a group's. */
typedef struct shape {
    int block, grid_rows, n;
    const char *choices[MOST_CHOICES]; /* the first one in all varieties */
} shape;

static const shape shapes[] = {
    {64,
     7,
     WHOLE_N,
     {"spmm_sm90_wgmma BN=256 CONSUMERS=2 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0",
      "spmm_sm90_wgmma BN=128 CONSUMERS=2 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0",
      "spmm_sm90_wgmma BN=64 CONSUMERS=1 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0",
      "spmm_sm90_wgmma BN=256 CONSUMERS=1 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0"}},
    /* Sums of a cluster leave room for one staging tile, for two where they share it (ACROSS=1: a tile is cut). */
    {64,
     7,
     WHOLE_N,
     {"spmm_sm90_wgmma BN=256 CONSUMERS=1 CTAS=1 ACROSS=0 SPLIT=2 PINGPONG=0",
      "spmm_sm90_wgmma BN=256 CONSUMERS=2 CTAS=1 ACROSS=0 SPLIT=2 PINGPONG=0",
      "spmm_sm90_wgmma BN=256 CONSUMERS=2 CTAS=1 ACROSS=1 SPLIT=2 PINGPONG=0"}},
    /* Warpgroups in turns. */
    {64,
     7,
     WHOLE_N,
     {"spmm_sm90_wgmma BN=256 CONSUMERS=2 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=1",
      "spmm_sm90_wgmma BN=64 CONSUMERS=2 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=1"}},
    {128, 4, WHOLE_N, {"spmm_sm90_wgmma BN=128 CONSUMERS=2 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=1"}},
    {64, 7, 32, {"spmm_sm90_wgmma BN=32 CONSUMERS=1 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0"}},
    {64, 7, 16, {"spmm_sm90_wgmma BN=16 CONSUMERS=1 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0"}},
    {128,
     4,
     WHOLE_N,
     {"spmm_sm90_wgmma BN=256 CONSUMERS=2 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0",
      "spmm_sm90_wgmma BN=128 CONSUMERS=2 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0",
      "spmm_sm90_wgmma BN=64 CONSUMERS=1 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0"}},
    {64,
     7,
     WHOLE_N,
     {"spmm_sm90_groups HEIGHT=128 BN=256 PRODUCERS=1 SLOTS=1 CLUSTER=2",
      "spmm_sm90_groups HEIGHT=128 BN=256 PRODUCERS=1 SLOTS=1 CLUSTER=1",
      "spmm_sm90_groups HEIGHT=256 BN=128 PRODUCERS=4 SLOTS=1 CLUSTER=1"}},
    {32,
     15,
     WHOLE_N,
     {"spmm_sm90_groups HEIGHT=128 BN=256 PRODUCERS=1 SLOTS=2 CLUSTER=1",
      "spmm_sm90_groups HEIGHT=128 BN=256 PRODUCERS=4 SLOTS=1 CLUSTER=2",
      "spmm_sm90_groups HEIGHT=256 BN=128 PRODUCERS=1 SLOTS=2 CLUSTER=2",
      "spmm_sm90_groups HEIGHT=256 BN=128 PRODUCERS=1 SLOTS=1 CLUSTER=1"}},
    {16,
     29,
     WHOLE_N,
     {"spmm_sm90_groups HEIGHT=256 BN=128 PRODUCERS=1 SLOTS=4 CLUSTER=1",
      "spmm_sm90_groups HEIGHT=256 BN=128 PRODUCERS=4 SLOTS=2 CLUSTER=2",
      "spmm_sm90_groups HEIGHT=128 BN=256 PRODUCERS=1 SLOTS=2 CLUSTER=1",
      "spmm_sm90_groups HEIGHT=128 BN=256 PRODUCERS=4 SLOTS=4 CLUSTER=2"}},
};

/* What is read. At a beta of 0 C is full of NaN. */
typedef struct reading {
    const char *name;
    int use_c;
    double beta;
    spk_residual residual;
    spk_activation activation;
} reading;

enum { READ_C, READ_NOTHING, READ_RESIDUAL, READ_FACTOR, READINGS };
static const reading readings[READINGS] = {{.name = "C", .use_c = 1, .beta = 0.5},
                                           {.name = "C at a beta of 0", .use_c = 1},
                                           {.name = "residual", .residual = SPK_RESIDUAL_ADD},
                                           {.name = "factor", .residual = SPK_RESIDUAL_MULTIPLY, .activation = SPK_ACT_SILU}};

/* Other programs, or other sizes: what of M and N is cut off, items of a batch, a bias; of which readings (a bit each). */
typedef struct variety {
    const char *name;
    int short_m, short_n, items;
    spk_bias bias;
    unsigned readings;
} variety;

static const variety varieties[] = {
    {"whole", 0, 0, 1, SPK_BIAS_NONE, (1 << READINGS) - 1},
    {"ragged", 5, 24, 1, SPK_BIAS_NONE, 1 << READ_C | 1 << READ_FACTOR},
    /* by columns D's lines are whole 16 bytes, so that it is staged */
    {"ragged by 8", 8, 24, 1, SPK_BIAS_NONE, 1 << READ_C | 1 << READ_FACTOR},
    {"biased", 0, 0, 1, SPK_BIAS_PER_ROW, 1 << READ_RESIDUAL},
    {"batch of 2", 0, 0, 2, SPK_BIAS_NONE, 1 << READ_C | 1 << READ_NOTHING | 1 << READ_RESIDUAL},
};

/* Where the arrays lie: elements between the lines of what is read and of D, elements from an aligned address to the first. */
typedef struct placing {
    const char *name;
    int gap, gap_d, shift, in_place;
} placing;

enum { STAGED = 3, PLACINGS = 9 }; /* the first of them are aligned as the staged way wants it */
static const placing placings[PLACINGS] = {
    {"tight", 0, 0, 0, 0},          {"lines apart", 8, 16, 0, 0},   {"in place", 0, 0, 0, 1},
    {"odd lines", 1, 0, 0, 0},      {"even lines", 2, 0, 0, 0},     {"lines of 8 bytes", 4, 8, 0, 0},
    {"off by 2 bytes", 0, 0, 1, 0}, {"off by 8 bytes", 0, 0, 4, 0}, {"in place, lines apart", 8, 8, 0, 1}};

/* A problem with its answer: host arrays are row-major and tight, one item after the other. */
typedef struct asked {
    spk_context *context;
    spk_pattern *pattern;
    const shape *shape;
    const reading *read;
    const variety *of;
    spk_spmm spmm;
    int m, n;
    int64_t nnzb, elements;  /* of D, all items */
    half *other;             /* C or the residual */
    void *values, *b, *bias; /* on the device */
    double *expected, *magnitude, tolerance;
} asked;

/* Every fourth block row is empty, every seventh full, the others have a half, a third or a quarter. */
static void make_pattern(asked *p, const shape *s)
{
    int offsets[MOST_GRID_ROWS + 1] = {0}, columns[MOST_GRID_ROWS * MOST_GRID_COLS];
    for (int i = 0; i < s->grid_rows; i++) {
        offsets[i + 1] = offsets[i];
        for (int j = 0; j < DEPTH / s->block && i % 4 != 1; j++)
            if (i % 7 == 2 || (i + j) % (i % 3 + 2) == 0)
                columns[offsets[i + 1]++] = j;
    }
    p->nnzb = offsets[s->grid_rows];
    const spk_bsr_indices indices = {SPK_SIZED(spk_bsr_indices), .rows = p->m,    .cols = DEPTH,          .block_rows = s->block,
                                     .block_cols = s->block,     .nnzb = p->nnzb, .row_offsets = offsets, .col_indices = columns};
    MUST(p->context, spk_pattern_create(p->context, &indices, &p->pattern));
}

static half *random_array(const asked *p, int64_t count, uint64_t seed)
{
    half *array = malloc((size_t)count * sizeof *array);
    MUST(p->context, spk_fill_random(p->context, p->spmm.dtype_a, count, seed, array));
    return array;
}

/* pointer[0]: values, [1]: B, [2]: bias; other: C or the residual. */
static spk_spmm_args args_with(const asked *p, const void *const pointer[3], const void *other)
{
    return (spk_spmm_args){SPK_SIZED(spk_spmm_args),
                           .values = pointer[0],
                           .b = pointer[1],
                           .bias = p->of->bias != SPK_BIAS_NONE ? pointer[2] : NULL,
                           .c = p->read->use_c ? other : NULL,
                           .residual = p->read->use_c ? NULL : other,
                           .alpha = 0.75,
                           .beta = p->read->beta};
}

static void make_asked(spk_context *context, const shape *s, const reading *read, const variety *of, spk_dtype dtype, asked *p)
{
    *p = (asked){
        .context = context, .shape = s, .read = read, .of = of, .m = s->block * s->grid_rows - of->short_m, .n = s->n - of->short_n};
    p->spmm = (spk_spmm){SPK_SIZED(spk_spmm),        .n = p->n,
                         .dtype_a = dtype,           .use_c = read->use_c,
                         .residual = read->residual, .activation = read->activation,
                         .bias = of->bias,           .batch = of->items};
    make_pattern(p, s);
    p->elements = (int64_t)of->items * p->m * p->n;
    const int64_t values = p->nnzb * s->block * s->block, b = (int64_t)of->items * DEPTH * p->n;
    half *host[] = {random_array(p, values, 1), random_array(p, b, 2), random_array(p, p->m, 3)};
    p->other = random_array(p, p->elements, 4);
    memset(p->other, 0xff, read->use_c && read->beta == 0 ? (size_t)p->elements * sizeof *p->other : 0);
    p->expected = malloc((size_t)p->elements * sizeof *p->expected);
    p->magnitude = malloc((size_t)p->elements * sizeof *p->magnitude);
    const spk_spmm_args args = args_with(p, (const void *const[]){host[0], host[1], host[2]}, p->other);
    MUST(context, spk_oracle(context, p->pattern, &p->spmm, &args, SPK_FIRST_OUTPUT, NULL, 0, p->expected, p->magnitude));
    MUST(context, spk_default_tolerance(context, p->pattern, &p->spmm, SPK_FIRST_OUTPUT, &p->tolerance));
    p->values = device_copy(context, host[0], (size_t)values * sizeof(half));
    p->b = device_copy(context, host[1], (size_t)b * sizeof(half));
    p->bias = device_copy(context, host[2], (size_t)p->m * sizeof(half));
    for (int i = 0; i < 3; i++)
        free(host[i]);
}

static void release_asked(asked *p)
{
    spk_memory_release(p->context, &p->values);
    spk_memory_release(p->context, &p->b);
    spk_memory_release(p->context, &p->bias);
    spk_pattern_destroy(&p->pattern);
    free(p->other);
    free(p->expected);
    free(p->magnitude);
}

/* An array as it lies on the device: `shift` elements, then lines `ld` apart. */
typedef struct placed {
    const asked *of;
    spk_layout layout;
    int64_t ld, shift;
} placed;

static int64_t elements_of(const placed *a)
{
    return a->shift + a->of->of->items * a->ld * (a->layout == SPK_ROW_MAJOR ? a->of->m : a->of->n);
}

/* Of the element that is number `at` of the tight, row-major arrays. */
static int64_t index_of(const placed *a, int64_t at)
{
    const int64_t n = a->of->n, i = at / n % a->of->m, j = at % n, item = at / n / a->of->m;
    const int rows = a->layout == SPK_ROW_MAJOR;
    return a->shift + item * a->ld * (rows ? a->of->m : n) + (rows ? i * a->ld + j : j * a->ld + i);
}

/* Full of NaN, but for what `from` (if any) holds. */
static half *new_array(const placed *a, const half *from)
{
    const size_t bytes = (size_t)elements_of(a) * sizeof(half);
    half *array = malloc(bytes);
    memset(array, 0xff, bytes);
    for (int64_t at = 0; from != NULL && at < a->of->elements; at++)
        array[index_of(a, at)] = from[at];
    return array;
}

/* before: D's memory before the run. */
static void check_d(const placed *a, half *before, const void *device, const char *what)
{
    const asked *p = a->of;
    const int64_t count = elements_of(a);
    half *raw = malloc((size_t)count * sizeof *raw);
    float *got = malloc((size_t)count * sizeof *got);
    MUST(p->context, spk_memory_copy(p->context, raw, SPK_HOST, device, SPK_DEVICE, (size_t)count * sizeof *raw));
    MUST(p->context, spk_cast_values(p->context, SPK_F32, got, p->spmm.dtype_a, raw, count));
    const double least = p->spmm.dtype_a == SPK_F16 ? 0x1p-25 : 0; /* half of f16's smallest number: rounding where there is C alone */
    for (int64_t at = 0, wrong = 0; at < p->elements; at++) {
        const int64_t index = index_of(a, at);
        if (!(fabs((double)got[index] - p->expected[at]) <= p->tolerance * p->magnitude[at] + least) && wrong++ == 0)
            FAIL("%s: item %d, D[%d, %d] = %.9g; right is %.9g", what, (int)(at / p->n / p->m), (int)(at / p->n % p->m), (int)(at % p->n),
                 (double)got[index], p->expected[at]);
        before[index] = raw[index];
    }
    if (memcmp(raw, before, (size_t)count * sizeof *raw) != 0)
        FAIL("%s: writes between the lines of D", what);
    free(raw);
    free(got);
}

static void run_placed(const asked *p, const char *choice, spk_layout layout, const placing *at)
{
    const int64_t line = layout == SPK_ROW_MAJOR ? p->n : p->m;
    const placed read = {p, layout, line + at->gap, at->shift}, d = {p, layout, line + (at->in_place ? at->gap : at->gap_d), 0};
    spk_spmm spmm = p->spmm;
    spk_plan *plan = NULL;
    char what[300];
    snprintf(what, sizeof what, "%s: %s, D %s-major, %s, %s, %s, blocks of %d", choice, p->read->name,
             layout == SPK_ROW_MAJOR ? "row" : "column", spk_dtype_name(spmm.dtype_a), p->of->name, at->name, p->shape->block);
    spmm.layout_d = layout;
    spmm.ldd = d.ld;
    *(p->read->use_c ? &spmm.ldc : &spmm.ldr) = read.ld;
    spmm.assume_finite = 1;
    if (spk_plan_create_spmm(p->context, p->pattern, &spmm, &(spk_tune_options){SPK_SIZED(spk_tune_options), .choice = choice}, &plan) !=
        SPK_OK) {
        FAIL("%s: %s", what, spk_last_error(p->context));
        return;
    }
    half *host_read = new_array(&read, p->other), *host_d = new_array(&d, at->in_place ? p->other : NULL);
    void *device_read = device_copy(p->context, host_read, (size_t)elements_of(&read) * sizeof(half));
    void *device_d = at->in_place ? device_read : device_copy(p->context, host_d, (size_t)elements_of(&d) * sizeof(half));
    spk_spmm_args args = args_with(p, (const void *const[]){p->values, p->b, p->bias}, (half *)device_read + at->shift);
    args.d = device_d;
    MUST(p->context, spk_plan_run_spmm(plan, &args, NULL));
    MUST(p->context, spk_synchronize(p->context, NULL));
    check_d(&d, host_d, device_d, what);
    spk_plan_destroy(&plan);
    if (!at->in_place)
        spk_memory_release(p->context, &device_d);
    spk_memory_release(p->context, &device_read);
    free(host_read);
    free(host_d);
}

/* The first choice of a shape with the arrays anywhere, the others where they are aligned. */
static void run_choices(const shape *s, const asked *p, int first)
{
    for (int c = 0; c < MOST_CHOICES && s->choices[c] != NULL; c++)
        for (int layout = SPK_ROW_MAJOR; layout <= SPK_COL_MAJOR; layout++)
            for (int at = 0; at < PLACINGS && (p->of != varieties || (c + layout) % 2 == first); at++)
                if (at < STAGED || (c == 0 && p->of == varieties))
                    run_placed(p, s->choices[c], (spk_layout)layout, &placings[at]);
}

/* Choices and layouts take turns with the two dtypes, varieties have one. */
static void run_reading(spk_context *context, const shape *s, const variety *of, int reading_at)
{
    static const spk_dtype dtypes[] = {SPK_F16, SPK_BF16};
    for (int t = 0; t < 2; t++) {
        asked p;
        if (of != varieties && t != (reading_at + (int)(of - varieties)) % 2)
            continue;
        make_asked(context, s, &readings[reading_at], of, dtypes[t], &p);
        run_choices(s, &p, (t + reading_at) % 2);
        release_asked(&p);
    }
}

static void *run_shape(void *at)
{
    const shape *s = at, first = {s->block, s->grid_rows, s->n, {s->choices[0]}};
    spk_context *context = new_context();
    for (const variety *of = varieties; of < varieties + sizeof varieties / sizeof varieties[0]; of++) {
        if (of != varieties && (s->n < WHOLE_N || (of->items > 1 && strstr(first.choices[0], "groups") != NULL))) /* which take no batch */
            continue;
        for (int r = 0; r < READINGS; r++)
            if (of->readings >> r & 1)
                run_reading(context, of != varieties ? &first : s, of, r);
    }
    spk_context_destroy(&context);
    return NULL;
}

/* A thread for each shape: compiling takes longest. */
void epilogues(void)
{
    enum { SHAPES = sizeof shapes / sizeof shapes[0] };
    pthread_t threads[SHAPES];
    for (int i = 0; i < SHAPES; i++)
        DRIVER(pthread_create(&threads[i], NULL, run_shape, (void *)(uintptr_t)&shapes[i]));
    for (int i = 0; i < SHAPES; i++)
        pthread_join(threads[i], NULL);
}
