/* The types that rows state are those that they take: each row is asked about many problems of every type. Rows of instruction sets that
 * this processor lacks are not asked: their files are compiled for those. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/context.h"
#include "backend/cuda/host/frame/rows.h"
#include "matrix/matrix.h"
#include "registry/registry.h"
#include "type/type.h"

enum { MASKS = 5, SIZES = 5, MOST_ASKED = 60 };

static const int64_t sides[MASKS] = {8, 16, 32, 64, 128}, widths[SIZES] = {1, 4, 16, 64, 256};
static spk_context *context;
static spk_pattern *patterns[MASKS];
static spk_cuda cuda = {.compute = 90,
                        .shared_bytes = 232448,
                        .shared_processor_bytes = 233472,
                        .processors = 132,
                        .l2_bytes = 50 << 20,
                        .driver_version = 13000};
static spk_device gpu = {.backend = &spk_backend_cuda,
                         .mem = {NULL, NULL, NULL},
                         .processors = 132,
                         .peak_gflops_f32 = 6e4,
                         .stream_gbs = 4300,
                         .l2_bytes = 50 << 20,
                         .memory_bytes = INT64_C(80) << 30,
                         .state = &cuda,
                         .isa = ~0u};

static int open_all(void **state)
{
    (void)state;
    gpu.mem = spk_mem_system;
    assert_int_equal(spk_context_create(&(spk_context_options){SPK_SIZED(spk_context_options), .store_path = ""}, &context), SPK_OK);
    for (int i = 0; i < MASKS; i++) {
        const spk_generate how = {SPK_SIZED(spk_generate), .generator = SPK_GEN_UNIFORM, .rows = 1024,   .cols = 1024,
                                  .block_rows = sides[i],  .block_cols = sides[i],       .density = 0.1, .seed = 1,
                                  .dtype = SPK_F32};
        spk_matrix *made = NULL;
        assert_int_equal(spk_generate_matrix(&spk_mem_system, &how, &made, NULL), SPK_OK);
        const spk_bsr_indices indices = {SPK_SIZED(spk_bsr_indices),
                                         .rows = 1024,
                                         .cols = 1024,
                                         .block_rows = sides[i],
                                         .block_cols = sides[i],
                                         .nnzb = made->nnz,
                                         .row_offsets = made->row_offsets,
                                         .col_indices = made->col_indices,
                                         .index_type = SPK_INDEX_I64};
        assert_int_equal(spk_pattern_make(&spk_mem_system, &indices, &patterns[i]), SPK_OK);
        spk_matrix_release(&made);
    }
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    for (int i = 0; i < MASKS; i++)
        spk_pattern_release(&patterns[i]);
    spk_context_destroy(&context);
    return 0;
}

/* What a problem of a row is made of. */
typedef struct asked {
    spk_dtype factors, output, compute;
    int side, width;
    spk_layout layout;
    bool masked;
} asked;

/* False: there is no such problem. */
static bool read_problem(const spk_op *op, const asked *a, spk_problem *problem)
{
    const int64_t n = widths[a->width];
    const spk_spmm spmm = {SPK_SIZED(spk_spmm),   .n = n,
                           .dtype_a = a->factors, .dtype_b = a->factors,
                           .dtype_d = a->output,  .compute = a->compute,
                           .layout_b = a->layout, .layout_d = a->layout,
                           .assume_finite = 1};
    const spk_sddmm sddmm = {SPK_SIZED(spk_sddmm),  .k = n,
                             .dtype_x = a->factors, .dtype_y = a->factors,
                             .dtype_d = a->output,  .compute = a->compute,
                             .layout_y = a->layout, .assume_finite = 1};
    const spk_gemm gemm = {SPK_SIZED(spk_gemm),
                           .m = 8 * sides[a->side],
                           .n = n,
                           .k = 512,
                           .dtype_a = a->factors,
                           .dtype_b = a->factors,
                           .dtype_d = a->output,
                           .compute = a->compute,
                           .layout_b = a->layout,
                           .assume_finite = 1};
    const spk_attention attention = {
        SPK_SIZED(spk_attention), .queries = 1024,   .keys = 1024, .depth = n < 16 ? 64 : n > 128 ? 128 : n, .heads = 2, .heads_kv = 2,
        .dtype = a->factors,      .assume_finite = 1};
    const spk_attention_backward backward = {SPK_SIZED(spk_attention_backward),
                                             .queries = 1024,
                                             .keys = 1024,
                                             .depth = attention.depth,
                                             .heads = 2,
                                             .heads_kv = 2,
                                             .dtype = a->factors,
                                             .assume_finite = 1};
    const void *const given[] = {
        [SPK_SPMM] = &spmm, [SPK_SDDMM] = &sddmm, [SPK_GEMM] = &gemm, [SPK_ATTENTION] = &attention, [SPK_ATTENTION_BACKWARD] = &backward};
    const bool products = op->takes_pattern != SPK_PATTERN_OPTIONAL;
    if (!products && (a->compute != SPK_DTYPE_DEFAULT || a->output != a->factors))
        return false;
    spk_pattern *pattern = op->takes_pattern == SPK_PATTERN_NONE || (!products && !a->masked) ? NULL : patterns[a->side];
    return spk_problem_read(op, pattern, given[op->id], NULL, problem) == SPK_OK;
}

/* Whether one of the row's candidates, or of a sample of many, takes the problem. */
static bool is_taken(const spk_kernel *row, const spk_problem *problem)
{
    spk_device able = *context->device; /* what libraries compute on one processor alone they state, too */
    able.isa = ~0u;
    const spk_device *device = row->backend == SPK_BACKEND_CUDA ? &gpu : &able;
    const int count = spk_params_count(row), step = count > MOST_ASKED ? count / MOST_ASKED : 1;
    for (int i = 0; i < count; i += step) {
        spk_params params;
        const char *why = NULL;
        spk_params_get(row, i, &params);
        if (row->ops->applicable == NULL || row->ops->applicable(problem, device, &params, &why))
            return true;
    }
    return false;
}

static bool takes(const spk_kernel *row, spk_dtype type)
{
    const spk_op *op = spk_op_get(row->operation);
    const bool reduced = spk_type_of(type)->use == SPK_USE_PRODUCTS;
    const spk_dtype factors = reduced ? spk_type_of(type)->sums : type;
    for (int side = 0; side < MASKS; side++)
        for (int width = 0; width < SIZES; width++)
            for (int more = 0; more < 8; more++) {
                const asked a = {.factors = factors,
                                 .output = more & 1 ? spk_type_of(factors)->sums : spk_type_of(factors)->results[0],
                                 .compute = reduced ? type : SPK_DTYPE_DEFAULT,
                                 .side = side,
                                 .width = width,
                                 .layout = more & 2 ? SPK_COL_MAJOR : SPK_ROW_MAJOR,
                                 .masked = (more & 4) != 0};
                spk_problem problem;
                if (read_problem(op, &a, &problem) && is_taken(row, &problem))
                    return true;
            }
    return false;
}

static void rows_take_the_types_they_state(void **state)
{
    (void)state;
    const spk_kernel *table;
    const int count = spk_kernels(&table);
    for (int i = 0; i < count; i++) {
        unsigned bits = 0;
        if (table[i].backend == SPK_BACKEND_CPU && (table[i].isa & ~context->device->isa) != 0)
            continue;
        for (int type = 1; type < 32; type++)
            /* of types that few rows know the list is asked first, as it is for every problem */
            if (spk_type_of((spk_dtype)type)->use == SPK_USE_VALUES || spk_type_of((spk_dtype)type)->use == SPK_USE_PRODUCTS ||
                (spk_type_is_scaled((spk_dtype)type) && (table[i].types.bits >> type & 1) != 0))
                bits |= takes(&table[i], (spk_dtype)type) ? 1u << type : 0;
        if (bits != table[i].types.bits)
            fail_msg("%s states (%s), 0x%x, and takes 0x%x", table[i].name, table[i].types.text, table[i].types.bits, bits);
    }
}

/* The text of a row names the types of its bits, as types.def does. */
static void texts_are_of_the_bits(void **state)
{
    (void)state;
    for (int i = 0; i < spk_kernel_count(); i++) {
        spk_kernel_info info = {SPK_SIZED(spk_kernel_info)};
        const spk_kernel *table;
        unsigned bits = 0;
        (void)spk_kernels(&table);
        assert_int_equal(spk_kernel_get_info(i, &info), SPK_OK);
        char *text = strdup(info.types), *rest = text;
        for (char *word = strtok_r(text, ", ", &rest); word != NULL; word = strtok_r(NULL, ", ", &rest)) {
            assert_int_not_equal(spk_dtype_from_name(word), SPK_DTYPE_DEFAULT);
            bits |= 1u << spk_dtype_from_name(word);
        }
        free(text);
        assert_int_equal(bits, table[i].types.bits);
    }
}

/* A type that a row does not state is refused in the words of the row, before it is asked. */
static void others_are_refused(void **state)
{
    (void)state;
    const spk_kernel *row = spk_kernel_by_name("spmm_f64_avx2");
    if (row == NULL)
        skip();
    const asked a = {.factors = SPK_F32, .output = SPK_F32, .side = 1, .width = 2};
    spk_problem problem;
    spk_params params;
    const char *why = NULL;
    assert_true(read_problem(&spk_op_spmm, &a, &problem));
    spk_params_get(row, 0, &params);
    assert_false(spk_candidate_applicable(row, &params, &problem, context->device, &why));
    assert_string_equal(why, "it is for f64");
    row = spk_kernel_by_name("spmm_half_avx2");
    assert_non_null(row);
    spk_params_get(row, 0, &params);
    assert_false(spk_candidate_applicable(row, &params, &problem, context->device, &why));
    assert_string_equal(why, "it is for f16, bf16");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_take_the_types_they_state), cmocka_unit_test(texts_are_of_the_bits),
                                       cmocka_unit_test(others_are_refused)};
    return cmocka_run_group_tests(tests, open_all, close_all);
}
