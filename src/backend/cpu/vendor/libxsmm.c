/* libxsmm_blocks: LIBXSMM's generated code for each stored block. One function for each shape that occurs (full and edge rows, columns and
 * panel, first and later blocks of a row), made when the plan is. */
#include <stdatomic.h>
#include <stdio.h>

#include "backend/cpu/vendor/vendor.h"

#ifdef SPK_HAVE_LIBXSMM

#include <libxsmm.h>

/* LIBXSMM is column-major. A row-major D is its transpose: D' = B' A', so B is its first operand; LIBXSMM transposes only its second. */
typedef union code {
    libxsmm_smmfunction f32;
    libxsmm_dmmfunction f64;
} code;

enum { EDGES = 2, STACK_BYTES = 192 << 10, PLANNING_BYTES = 24 << 10 /* of stack, from where candidates are looked at on */ };

typedef struct libxsmm_state {
    spk_blocks blocks;
    int m, n, k;                        /* of a full block and panel */
    code codes[EDGES][EDGES][EDGES][2]; /* by m, n, k and "adds to what is there" */
} libxsmm_state;

/* At its first use LIBXSMM sets OMP_PROC_BIND in the environment, which is the caller's, and which other threads may be reading: the linker
 * sends that call here (--wrap=putenv). */
int __wrap_putenv(char *entry);
int __wrap_putenv(char *entry)
{
    (void)entry;
    return 0;
}

const char *spk_libxsmm_version(void)
{
    return LIBXSMM_CONFIG_VERSION;
}

static atomic_bool ready;

bool spk_libxsmm_is_ready(void)
{
    return atomic_load_explicit(&ready, memory_order_acquire);
}

bool spk_libxsmm_has_stack(void)
{
    return spk_stack_suffices(STACK_BYTES + PLANNING_BYTES);
}

/* Its first call for code makes its tables, and reads them even if it got no memory for them. This call makes them too, and tells. */
bool spk_libxsmm_prepare(void *handle, const spk_opened *opened, char *why, size_t size)
{
    (void)handle, (void)opened;
    libxsmm_registry_info info;
    if (!spk_libxsmm_is_ready())
        atomic_store_explicit(&ready, libxsmm_get_registry_info(&info) == 0, memory_order_release);
    if (!spk_libxsmm_is_ready())
        snprintf(why, size, "it got no memory for its tables");
    return spk_libxsmm_is_ready();
}

static bool col_major_result(const spk_problem *problem)
{
    return spk_product_is_result(problem, false) && problem->d.layout == SPK_COL_MAJOR;
}

/* Of op(A), whose blocks are transposed by op T. */
static bool col_major_blocks(const spk_problem *problem)
{
    return (problem->block_layout == SPK_COL_MAJOR) != (problem->trans_a == SPK_TRANS);
}

static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)device, (void)params;
    *why = spk_vendor_refusal(problem);
    if (*why == NULL && problem->b.layout == SPK_COL_MAJOR && !(col_major_result(problem) && col_major_blocks(problem)))
        *why = "LIBXSMM transposes its second operand only: a column-major B needs a plain column-major result and column-major blocks";
    return *why == NULL;
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    (void)params;
    return spk_blocks_predict_us(problem, device, 0.12, 0.85);
}

static void multiply(const void *user, const spk_product *p)
{
    const libxsmm_state *state = user;
    code c = state->codes[p->m != state->m][p->n != state->n][p->k != state->k][p->beta != 0];
    bool swapped = p->layout_d == SPK_ROW_MAJOR;
    const void *first = swapped ? p->b : p->a, *second = swapped ? p->a : p->b;
    if (p->dtype == SPK_F32)
        c.f32(first, second, p->d);
    else
        c.f64(first, second, p->d);
}

static bool make_code(spk_dtype dtype, const spk_product *p, code *out)
{
    bool swapped = p->layout_d == SPK_ROW_MAJOR;
    libxsmm_blasint m = swapped ? p->n : p->m, n = swapped ? p->m : p->n, k = p->k;
    libxsmm_blasint lda = swapped ? p->ldb : p->lda, ldb = swapped ? p->lda : p->ldb, ldc = p->ldd;
    int flags = (swapped ? p->layout_a : p->layout_b) == p->layout_d ? LIBXSMM_GEMM_FLAG_NONE : LIBXSMM_GEMM_FLAG_TRANS_B,
        prefetch = LIBXSMM_GEMM_PREFETCH_NONE;
    if (dtype == SPK_F32) {
        float alpha = 1, beta = (float)p->beta;
        out->f32 = libxsmm_smmdispatch(m, n, k, &lda, &ldb, &ldc, &alpha, &beta, &flags, &prefetch);
        return out->f32 != NULL;
    }
    double alpha = 1, beta = p->beta;
    out->f64 = libxsmm_dmmdispatch(m, n, k, &lda, &ldb, &ldc, &alpha, &beta, &flags, &prefetch);
    return out->f64 != NULL;
}

static spk_status make_codes(const spk_bound *bound, libxsmm_state *state)
{
    const spk_problem *p = &bound->problem;
    const spk_blocks *blocks = &state->blocks;
    /* 0: does not occur. */
    const int m[EDGES] = {p->m >= state->m ? state->m : 0, (int)(p->m % state->m)},
              k[EDGES] = {p->k >= state->k ? state->k : 0, (int)(p->k % state->k)};
    const int n[EDGES] = {state->n, (int)(p->n % state->n)};
    for (int i = 0; i < EDGES * EDGES * EDGES * 2; i++) {
        int mi = i & 1, ni = i >> 1 & 1, ki = i >> 2 & 1, beta = i >> 3;
        if (m[mi] == 0 || n[ni] == 0 || k[ki] == 0)
            continue;
        spk_product product = {.m = m[mi],
                               .n = n[ni],
                               .k = k[ki],
                               .layout_a = blocks->layout_a,
                               .layout_b = p->b.layout,
                               .layout_d = blocks->layout,
                               .lda = blocks->lda,
                               .ldb = (int)p->b.ld,
                               .ldd = blocks->direct ? (int)p->d.ld : (int)blocks->panel,
                               .beta = beta};
        if (!make_code(p->a.dtype, &product, &state->codes[mi][ni][ki][beta]))
            return spk_fail(SPK_ERR_UNSUPPORTED, "libxsmm: it makes no code for a product of %d x %d x %d", m[mi], n[ni], k[ki]);
        /* Where it got no memory that is executable, LIBXSMM takes other memory without a word. */
        if (!spk_is_executable((uintptr_t)state->codes[mi][ni][ki][beta].f32))
            return spk_fail(SPK_ERR_UNAVAILABLE, "libxsmm: it got no executable memory for its code");
    }
    return SPK_OK;
}

static void unbind(spk_bound *bound)
{
    libxsmm_state *state = bound->state;
    if (state == NULL)
        return;
    spk_blocks_release(bound, &state->blocks);
    spk_free(&bound->device->mem, state);
    bound->state = NULL;
}

/* It may make code here and now: limits may have changed, and memory been used, since the device was opened. */
static spk_status check_room(const spk_device *device)
{
    char why[200];
    void *handle = NULL;
    if (!spk_code_may_be_made())
        return spk_fail(SPK_ERR_UNAVAILABLE, "libxsmm: %s", spk_no_code);
    if (!spk_stack_suffices(STACK_BYTES))
        return spk_fail(SPK_ERR_UNAVAILABLE, "libxsmm: %s", spk_no_stack);
    SPK_TRY(spk_library_open(device, "libxsmm", &handle));
    if (!spk_libxsmm_fits(1, 1, why, sizeof why))
        return spk_fail(SPK_ERR_UNAVAILABLE, "libxsmm: %s", why);
    return SPK_OK;
}

static spk_status bind(spk_bound *bound)
{
    static const spk_blocks_library calls = {.multiply = multiply};
    const spk_problem *p = &bound->problem;
    libxsmm_state *state = NULL;
    spk_status status = SPK_OK;
    SPK_TRY(check_room(bound->device));
    bool direct = spk_product_is_result(p, false) && (p->d.layout == SPK_ROW_MAJOR || col_major_blocks(p));
    SPK_TRY(spk_calloc(&bound->device->mem, 1, sizeof *state, &state));
    bound->state = state;
    SPK_GOTO(spk_blocks_make(bound, &calls, state, 0, direct, &state->blocks));
    state->m = bound->view.block_rows;
    state->n = (int)state->blocks.panel;
    state->k = bound->view.block_cols;
    SPK_GOTO(make_codes(bound, state));
    return SPK_OK;
done:
    unbind(bound);
    return status;
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)stream;
    const libxsmm_state *state = bound->state;
    spk_blocks_run(bound, &state->blocks, args);
    return SPK_OK;
}

const spk_kernel_ops libxsmm_blocks_ops = {
    .applicable = applicable,
    .predict_us = predict_us,
    .bind = bind,
    .unbind = unbind,
    .run = run,
    .source_hash = SPK_SOURCE_HASH,
};

#else

/* A build without LIBXSMM: the row stays in the table, and its library is never found. */
static bool applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)problem, (void)device, (void)params;
    *why = "this build was made without LIBXSMM";
    return false;
}

static double predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params)
{
    (void)problem, (void)device, (void)params;
    return 0;
}

static spk_status run(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)bound, (void)args, (void)stream;
    return spk_fail(SPK_ERR_UNAVAILABLE, "libxsmm: this build was made without it");
}

const spk_kernel_ops libxsmm_blocks_ops = {.applicable = applicable, .predict_us = predict_us, .run = run, .source_hash = SPK_SOURCE_HASH};

#endif
