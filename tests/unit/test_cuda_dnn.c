/* The row cudnn_attention on the test double of libcudnn, which computes the graph that it is given: what the row asks for is attention,
 * with every limit and layout that it takes; what it refuses, it says. Needs neither a device nor NVRTC. */
#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "type/half.h"
#include "base/rng.h"
#include "cudnn_double.h"
#include "op/attention/attention.h"
#include "registry/registry.h"

static spk_device *device;

static cudnn_double *library(void)
{
    return dlsym(dlopen(CUDNN_DOUBLE, RTLD_NOW), "cudnn_double_state");
}

static spk_device *open_cuda(void)
{
    const spk_executor executor = {.threads = 1};
    spk_device *opened = NULL;
    assert_int_equal(spk_backend_cuda.open(&spk_mem_system, "cuda:0", &executor, &opened), SPK_OK);
    return opened;
}

static int set_up(void **state)
{
    (void)state;
    setenv("SPARSEK_CUDA", DOUBLE, 1);
    setenv("SPARSEK_CUDNN", CUDNN_DOUBLE, 1);
    setenv("SPARSEK_NVRTC", "none", 1);
    device = open_cuda();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    spk_backend_cuda.close(&device);
    return 0;
}

static const spk_kernel *row(void)
{
    const spk_kernel *kernel = spk_kernel_by_name("cudnn_attention");
    assert_non_null(kernel);
    return kernel;
}

static spk_problem read(const spk_attention *a)
{
    spk_attention finite = *a;
    spk_problem p;
    finite.assume_finite = 1;
    if (spk_problem_read(&spk_op_attention, NULL, &finite, NULL, &p) != SPK_OK)
        fail_msg("%s", spk_error_last());
    return p;
}

static const char *refusal(const spk_attention *a)
{
    const spk_problem p = read(a);
    const spk_params params = {{0}};
    const char *why = NULL;
    return spk_candidate_applicable(row(), &params, &p, device, &why) ? NULL : why;
}

/* ------------------------------------------------------------------------------------------------ numbers */

static void *draw(spk_rng *rng, const spk_problem *p, int i)
{
    const spk_operand *o = &p->operand[i];
    const size_t bytes = (spk_operand_bytes(o, p->batch) + 79) / 16 * 16;
    void *array = aligned_alloc(16, bytes);
    assert_non_null(array);
    memset(array, 0xff, bytes); /* NaN where nothing belongs */
    for (int64_t item = 0; i <= ATTENTION_V && item < p->batch; item++)
        for (int64_t r = 0; r < spk_operand_heads(o) * o->rows; r++)
            for (int64_t c = 0; c < o->cols; c++)
                spk_operand_set(o, (uint16_t *)array + item * o->stride, r, c, spk_rng_uniform(rng) * 2 - 1);
    return array;
}

static double at(const spk_problem *p, void *const *arrays, int i, int64_t item, int64_t head, int64_t r, int64_t c)
{
    const spk_operand *o = &p->operand[i];
    return spk_operand_get(o, (const char *)arrays[i] + (size_t)(item * o->stride) * spk_dtype_bytes(o->dtype), head * o->rows + r, c);
}

static void check_query(const spk_problem *p, void *const *arrays, double scale, int64_t item, int64_t head, int64_t query)
{
    const int64_t other = head / spk_attention_sharing(p);
    const spk_sequence whole = spk_attention_whole(p);
    const spk_seen seen = spk_attention_seen(p, &whole, query);
    double sum = 0, wanted[64] = {0};
    for (int64_t key = seen.begin; key < seen.end; key++) {
        double score = 0;
        for (int64_t d = 0; d < p->k; d++)
            score += at(p, arrays, ATTENTION_Q, item, head, query, d) * at(p, arrays, ATTENTION_K, item, other, key, d);
        sum += exp(score * scale);
        for (int64_t c = 0; c < p->depth_v; c++)
            wanted[c] += exp(score * scale) * at(p, arrays, ATTENTION_V, item, other, key, c);
    }
    for (int64_t c = 0; c < p->depth_v; c++) {
        const double got = at(p, arrays, ATTENTION_O, item, head, query, c);
        if (!(fabs(got - wanted[c] / sum) <= 0.01))
            fail_msg("O[%d,%d,%d,%d] = %g, wanted %g", (int)item, (int)head, (int)query, (int)c, got, wanted[c] / sum);
    }
    if (p->operand[ATTENTION_LSE].dtype != SPK_DTYPE_DEFAULT)
        assert_true(fabs(at(p, arrays, ATTENTION_LSE, item, head, query, 0) - log(sum)) < 1e-4);
}

static spk_status bind(const spk_problem *p, spk_bound *bound)
{
    const spk_params params = {{0}};
    return spk_bind(row(), &params, p, device, bound);
}

static void check(const spk_attention *a, uint64_t seed)
{
    const spk_problem p = read(a);
    double scale = 0.3;
    void *arrays[ATTENTION_LSE + 1], *stream = &scale, *workspace = NULL;
    spk_rng rng;
    spk_bound bound;
    spk_args args = {.scalar = {[ATTENTION_SCALE] = scale}};
    spk_rng_seed(&rng, seed);
    if (refusal(a) != NULL)
        fail_msg("refused: %s", refusal(a));
    if (bind(&p, &bound) != SPK_OK)
        fail_msg("%s", spk_error_last());
    assert_int_equal(bound.workspace_bytes, library()->workspace);
    for (int i = ATTENTION_Q; i <= ATTENTION_LSE; i++)
        args.at[i] = arrays[i] = draw(&rng, &p, i);
    args.workspace = workspace = malloc(bound.workspace_bytes);
    assert_true(row()->ops->accepts(&bound, &args));
    for (int run = 0; run < 2; run++)
        assert_int_equal(spk_bound_run(&bound, &args, stream), SPK_OK);
    assert_ptr_equal(library()->stream, stream);
    assert_ptr_equal(library()->workspace_at, workspace);
    for (int64_t item = 0; item < p.batch; item++)
        for (int64_t head = 0; head < spk_operand_heads(&p.operand[ATTENTION_Q]); head++)
            for (int64_t query = 0; query < p.m; query++)
                check_query(&p, arrays, scale, item, head, query);
    args.at[ATTENTION_V] = (char *)args.at[ATTENTION_V] + 8;
    assert_false(row()->ops->accepts(&bound, &args));
    spk_unbind(&bound);
    assert_int_equal(library()->live, 0);
    free(workspace);
    for (int i = ATTENTION_Q; i <= ATTENTION_LSE; i++)
        free(arrays[i]);
}

/* ------------------------------------------------------------------------------------------------ tests */

/* The library would end the process. */
static void what_the_library_needs_is_there_first(void **state)
{
    (void)state;
    const spk_attention a = {SPK_SIZED(spk_attention), .dtype = SPK_F16, .queries = 8, .keys = 8, .depth = 16};
    const spk_problem p = read(&a);
    spk_bound bound;
    assert_int_equal(bind(&p, &bound), SPK_ERR_UNSUPPORTED);
    assert_non_null(strstr(spk_error_last(), "cuDNN needs libcublasLt.so.99, which does not open"));
    assert_non_null(dlopen(NEEDED_CUBLASLT, RTLD_NOW | RTLD_LOCAL));
    assert_int_equal(bind(&p, &bound), SPK_ERR_UNSUPPORTED);
    assert_non_null(strstr(spk_error_last(), "cuDNN needs libnvrtc.so.99, which does not open"));
    assert_non_null(dlopen(NEEDED_NVRTC, RTLD_NOW | RTLD_LOCAL));
    assert_int_equal(library()->handles, 0);
}

static void the_graph_is_attention(void **state)
{
    (void)state;
    for (unsigned which = 0; which < 256; which++) {
        const bool by_row = which & 1, causal = which & 2, left = which & 4, right = which & 8, bottom = which & 16, grouped = which & 32;
        spk_attention a = {SPK_SIZED(spk_attention),
                           .dtype = which & 64 ? SPK_F16 : SPK_BF16,
                           .queries = 13,
                           .keys = bottom ? 21 : 13,
                           .depth = 16,
                           .depth_v = 24,
                           .batch = which % 3 == 0 ? 1 : 2,
                           .heads = 4,
                           .heads_kv = grouped ? 2 : 4,
                           .diagonal = bottom ? SPK_DIAGONAL_BOTTOM_RIGHT : SPK_DIAGONAL_TOP_LEFT,
                           .causal = causal,
                           .window_left = left ? 5 : 0,
                           .window_right = right && !causal ? 3 : 0,
                           .want_lse = which & 128 ? 1 : 0};
        if (by_row) {
            a.ldq = a.heads * a.depth;
            a.ldk = a.heads_kv * a.depth;
            a.ldv = a.heads_kv * a.depth_v;
            a.ldo = a.heads * a.depth_v;
            a.head_stride_q = a.head_stride_k = a.depth;
            a.head_stride_v = a.head_stride_o = a.depth_v;
        }
        check(&a, which);
    }
    assert_int_equal(library()->handles, 1); /* one, lent again and again */
}

static void what_it_refuses_it_says(void **state)
{
    (void)state;
    const spk_attention good = {SPK_SIZED(spk_attention), .dtype = SPK_F16, .queries = 8, .keys = 8, .depth = 16, .batch = 2, .heads = 2};
    struct {
        spk_attention a;
        const char *why;
    } all[] = {{good, "f16, bf16"},         {good, "multiples of 8 up to 256"}, {good, "no soft cap"},
               {good, "no sinks"},          {good, "8 elements apart"},         {good, "between items"},
               {good, "without gaps"},      {good, "no more queries"},          {good, "no more queries"},
               {good, "nothing to compute"}};
    assert_null(refusal(&good));
    all[0].a.dtype = SPK_F32;
    all[1].a.depth = 20;
    all[2].a.use_softcap = 1;
    all[3].a.window_left = 2, all[3].a.sinks = 1;
    all[4].a.ldk = 20;
    all[5].a.stride_v = SPK_STRIDE_SHARED;
    all[6].a.want_lse = 1, all[6].a.head_stride_lse = 12;
    all[7].a.diagonal = SPK_DIAGONAL_BOTTOM_RIGHT, all[7].a.causal = 1, all[7].a.queries = 9;
    all[8].a.diagonal = SPK_DIAGONAL_TOP_LEFT, all[8].a.window_left = 3, all[8].a.queries = 9;
    all[9].a.keys = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const char *why = refusal(&all[i].a);
        if (why == NULL || strstr(why, all[i].why) == NULL)
            fail_msg("case %zu: %s, not: %s", i, why != NULL ? why : "taken", all[i].why);
    }
}

/* Why bind refuses; NULL: it does not. */
static const char *bind_refusal(const spk_attention *a)
{
    const spk_problem p = read(a);
    spk_bound bound;
    const spk_status status = bind(&p, &bound);
    assert_true(status == SPK_OK || status == SPK_ERR_UNSUPPORTED);
    if (status == SPK_OK)
        spk_unbind(&bound);
    assert_int_equal(library()->live, 0);
    return status == SPK_OK ? NULL : spk_error_last();
}

static void versions_and_engines(void **state)
{
    (void)state;
    const spk_attention full = {SPK_SIZED(spk_attention), .dtype = SPK_F16, .queries = 8, .keys = 16, .depth = 16};
    spk_attention window = full, bottom = full;
    window.diagonal = SPK_DIAGONAL_TOP_LEFT;
    window.window_left = 3;
    bottom.diagonal = SPK_DIAGONAL_BOTTOM_RIGHT;
    bottom.causal = 1;
    cudnn_double *dnn = library();
    const cudnn_double was = *dnn;
    dnn->version = 91001;
    assert_string_equal(bind_refusal(&full), "cuDNN 9.10.1: its attention is wrong");
    dnn->version = 90501;
    assert_null(bind_refusal(&full));
    assert_string_equal(bind_refusal(&window), "cuDNN 9.5.1: it has windows only with causal");
    assert_string_equal(bind_refusal(&bottom), "cuDNN 9.5.1: its diagonal begins at the first key");
    dnn->version = 91002;
    assert_null(bind_refusal(&window));
    dnn->broken = 1; /* the second is taken */
    assert_null(bind_refusal(&full));
    dnn->broken = 2;
    assert_string_equal(bind_refusal(&full), "cuDNN 9.10.2 has no engine for this attention: CUDNN_STATUS_NOT_SUPPORTED");
    dnn->engines = 0;
    assert_string_equal(bind_refusal(&full), "cuDNN 9.10.2 has no engine for this attention");
    dnn->engines = was.engines, dnn->broken = was.broken, dnn->version = was.version;
}

static void failures_leave_nothing_behind(void **state)
{
    (void)state;
    const spk_attention a = {SPK_SIZED(spk_attention),
                             .dtype = SPK_F16,
                             .queries = 8,
                             .keys = 16,
                             .depth = 16,
                             .causal = 1,
                             .diagonal = SPK_DIAGONAL_BOTTOM_RIGHT,
                             .window_left = 4,
                             .want_lse = 1};
    const spk_problem p = read(&a);
    spk_bound bound;
    spk_status status;
    int call = 0;
    do {
        library()->fails_at = ++call;
        status = bind(&p, &bound);
        if (status == SPK_OK)
            spk_unbind(&bound);
        assert_int_equal(library()->live, 0);
    } while (library()->fails_at == 0); /* it came to that call */
    library()->fails_at = 0;
    assert_int_equal(status, SPK_OK);
    assert_true(call > 300);
}

static void a_missing_library_is_a_refusal(void **state)
{
    (void)state;
    const spk_attention a = {SPK_SIZED(spk_attention), .dtype = SPK_F16, .queries = 8, .keys = 8, .depth = 16};
    setenv("SPARSEK_CUDNN", "none", 1);
    spk_device *with = device;
    device = open_cuda();
    assert_non_null(strstr(refusal(&a), "library"));
    spk_backend_cuda.close(&device);
    device = with;
    setenv("SPARSEK_CUDNN", CUDNN_DOUBLE, 1);
    assert_null(refusal(&a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_the_library_needs_is_there_first),
                                       cmocka_unit_test(the_graph_is_attention),
                                       cmocka_unit_test(what_it_refuses_it_says),
                                       cmocka_unit_test(versions_and_engines),
                                       cmocka_unit_test(failures_leave_nothing_behind),
                                       cmocka_unit_test(a_missing_library_is_a_refusal)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
