/* The elasticity matrix is the one that mechanics asks for: neighbourhood, symmetry, rigid bodies, patch test, definiteness. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/rng.h"
#include "matrix/elasticity.h"

static const int64_t meshes[][3] = {{1, 1, 1}, {2, 1, 1}, {1, 2, 1}, {1, 1, 3}, {3, 2, 1}, {2, 3, 4}, {4, 4, 3}};
enum { MESHES = sizeof meshes / sizeof *meshes };

static const double materials[][2] = {{1, 0.3}, {210, 0.25}, {3, -0.4}, {2, 0.49}};
enum { MATERIALS = sizeof materials / sizeof *materials };

static spk_elastic_box box_of(int mesh, int material, bool clamped)
{
    spk_elastic_box box = {.young = materials[material][0], .poisson = materials[material][1], .clamped = clamped};
    memcpy(box.cells, meshes[mesh], sizeof box.cells);
    return box;
}

static spk_matrix *assemble(const spk_elastic_box *box, spk_dtype dtype)
{
    spk_matrix *matrix = NULL;
    if (spk_elasticity_assemble(&spk_mem_system, box, dtype, &matrix) != SPK_OK)
        fail_msg("%s", spk_error_message(0));
    return matrix;
}

/* Coordinates of the node of a block row. */
static void locate(const spk_elastic_box *box, int64_t row, int64_t at[3])
{
    int64_t first = box->clamped ? 1 : 0;
    int64_t across = box->cells[0] + 1 - first, down = box->cells[1] + 1;
    at[0] = row % across + first;
    at[1] = row / across % down;
    at[2] = row / across / down;
}

/* Dense, row-major; the caller frees. */
static double *densify(const spk_matrix *matrix)
{
    int64_t n = matrix->rows;
    double *dense = calloc((size_t)(n * n), sizeof *dense);
    assert_non_null(dense);
    for (int64_t row = 0; row < n / 3; row++)
        for (int64_t p = matrix->row_offsets[row]; p < matrix->row_offsets[row + 1]; p++)
            for (int64_t i = 0; i < 9; i++)
                dense[(3 * row + i / 3) * n + 3 * matrix->col_indices[p] + i % 3] = spk_value_get(matrix->values, matrix->dtype, 9 * p + i);
    return dense;
}

static void multiply(const spk_matrix *matrix, const double *x, double *y)
{
    memset(y, 0, (size_t)matrix->rows * sizeof *y);
    for (int64_t row = 0; row < matrix->rows / 3; row++)
        for (int64_t p = matrix->row_offsets[row]; p < matrix->row_offsets[row + 1]; p++)
            for (int64_t i = 0; i < 9; i++)
                y[3 * row + i / 3] += spk_value_get(matrix->values, matrix->dtype, 9 * p + i) * x[3 * matrix->col_indices[p] + i % 3];
}

/* In place; false where a pivot is not above the floor. */
static bool cholesky(double *a, int64_t n, double floor)
{
    for (int64_t k = 0; k < n; k++) {
        double pivot = a[k * n + k];
        for (int64_t j = 0; j < k; j++)
            pivot -= a[k * n + j] * a[k * n + j];
        if (!(pivot > floor))
            return false;
        pivot = sqrt(pivot);
        a[k * n + k] = pivot;
        for (int64_t i = k + 1; i < n; i++) {
            double sum = a[i * n + k];
            for (int64_t j = 0; j < k; j++)
                sum -= a[i * n + j] * a[k * n + j];
            a[i * n + k] = sum / pivot;
        }
    }
    return true;
}

static void test_pattern_is_the_neighbourhood(void **state)
{
    (void)state;
    for (int mesh = 0; mesh < MESHES; mesh++)
        for (int clamped = 0; clamped < 2; clamped++) {
            spk_elastic_box box = box_of(mesh, 0, clamped);
            spk_matrix *matrix = assemble(&box, SPK_F64);
            int64_t nodes = (box.cells[0] + 1 - clamped) * (box.cells[1] + 1) * (box.cells[2] + 1);
            assert_int_equal(matrix->format, SPK_BSR);
            assert_true(matrix->rows == 3 * nodes && matrix->cols == 3 * nodes && matrix->block_rows == 3 && matrix->block_cols == 3);
            int64_t p = 0;
            for (int64_t row = 0; row < nodes; row++) {
                assert_int_equal(matrix->row_offsets[row], p);
                int64_t a[3], b[3];
                locate(&box, row, a);
                for (int64_t col = 0; col < nodes; col++) {
                    locate(&box, col, b);
                    if (llabs(a[0] - b[0]) > 1 || llabs(a[1] - b[1]) > 1 || llabs(a[2] - b[2]) > 1)
                        continue;
                    assert_true(p < matrix->nnz);
                    assert_int_equal(matrix->col_indices[p], col);
                    p++;
                }
            }
            assert_int_equal(matrix->row_offsets[nodes], p);
            assert_int_equal(matrix->nnz, p);
            spk_matrix_release(&matrix);
        }
}

static void test_exactly_symmetric(void **state)
{
    (void)state;
    for (int mesh = 0; mesh < MESHES; mesh++)
        for (int material = 0; material < MATERIALS; material++)
            for (int dtype = SPK_F32; dtype <= (int)SPK_F64; dtype++) {
                spk_elastic_box box = box_of(mesh, material, material % 2);
                spk_matrix *matrix = assemble(&box, (spk_dtype)dtype);
                double *dense = densify(matrix);
                for (int64_t i = 0; i < matrix->rows; i++)
                    for (int64_t j = 0; j < i; j++)
                        assert_true(dense[i * matrix->rows + j] == dense[j * matrix->rows + i]);
                free(dense);
                spk_matrix_release(&matrix);
            }
}

/* Clamping takes rows and columns away and changes nothing else; f32 is the rounded f64. */
static void test_clamping_and_rounding(void **state)
{
    (void)state;
    for (int mesh = 0; mesh < MESHES; mesh++) {
        spk_elastic_box held = box_of(mesh, 1, true), free_box = box_of(mesh, 1, false);
        spk_matrix *clamped = assemble(&held, SPK_F64), *whole = assemble(&free_box, SPK_F64), *rounded = assemble(&held, SPK_F32);
        for (int64_t i = 0; i < 9 * clamped->nnz; i++)
            assert_true(((const float *)rounded->values)[i] == (float)((const double *)clamped->values)[i]);
        int64_t p = 0;
        for (int64_t row = 0; row < whole->rows / 3; row++) {
            int64_t a[3], b[3];
            locate(&free_box, row, a);
            for (int64_t q = whole->row_offsets[row]; a[0] > 0 && q < whole->row_offsets[row + 1]; q++) {
                locate(&free_box, whole->col_indices[q], b);
                if (b[0] == 0)
                    continue;
                assert_memory_equal((double *)whole->values + 9 * q, (double *)clamped->values + 9 * p, 9 * sizeof(double));
                p++;
            }
        }
        assert_int_equal(p, clamped->nnz);
        spk_matrix_release(&clamped);
        spk_matrix_release(&whole);
        spk_matrix_release(&rounded);
    }
}

/* Three translations and three rotations about the middle of the box, scaled to unit length. */
static void rigid_mode(const spk_elastic_box *box, int mode, int64_t nodes, double *u)
{
    double length = 0;
    for (int64_t row = 0; row < nodes; row++) {
        int64_t at[3];
        locate(box, row, at);
        double *v = u + 3 * row;
        v[0] = v[1] = v[2] = 0;
        if (mode < 3) {
            v[mode] = 1;
        } else {
            int i = (mode + 1) % 3, j = (mode + 2) % 3;
            v[i] = (double)at[j] - (double)box->cells[j] / 2;
            v[j] = (double)box->cells[i] / 2 - (double)at[i];
        }
        length += v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
    }
    for (int64_t i = 0; i < 3 * nodes; i++)
        u[i] /= sqrt(length);
}

/* The free body resists every motion but the six rigid ones: they give no force, and with them added the matrix is definite. */
static void test_null_space_is_the_rigid_bodies(void **state)
{
    (void)state;
    for (int mesh = 0; mesh < MESHES; mesh++)
        for (int material = 0; material < MATERIALS; material++) {
            spk_elastic_box box = box_of(mesh, material, false);
            spk_matrix *matrix = assemble(&box, SPK_F64);
            int64_t n = matrix->rows;
            double *u = malloc((size_t)n * sizeof *u), *force = malloc((size_t)n * sizeof *force), *dense = densify(matrix);
            assert_true(u && force);
            double stiff = dense[0];
            for (int mode = 0; mode < 6; mode++) {
                rigid_mode(&box, mode, n / 3, u);
                multiply(matrix, u, force);
                for (int64_t i = 0; i < n; i++) {
                    if (fabs(force[i]) > 1e-13 * stiff)
                        fail_msg("mesh %d material %d mode %d: force %g", mesh, material, mode, force[i]);
                    for (int64_t j = 0; j < n; j++)
                        dense[i * n + j] += stiff * u[i] * u[j];
                }
            }
            assert_true(cholesky(dense, n, 1e-6 * stiff));
            free(u);
            free(force);
            free(dense);
            spk_matrix_release(&matrix);
        }
}

/* Area of the box's surface with outward normal along an axis that a node carries: a quarter of each face of a cell it is on.
 * Signed by the normal; nothing inside. */
static double carried_area(const spk_elastic_box *box, const int64_t at[3], int axis)
{
    if (at[axis] != 0 && at[axis] != box->cells[axis])
        return 0;
    double area = at[axis] == 0 ? -1 : 1;
    for (int other = 0; other < 3; other++)
        if (other != axis && (at[other] == 0 || at[other] == box->cells[other]))
            area /= 2;
    return area;
}

/* A linear displacement has constant strain and stress: no force inside, stress times area on the surface, and the energy of the
 * volume. */
static void test_patch(void **state)
{
    (void)state;
    spk_rng rng;
    spk_rng_seed(&rng, 7);
    for (int mesh = 0; mesh < MESHES; mesh++)
        for (int material = 0; material < MATERIALS; material++) {
            spk_elastic_box box = box_of(mesh, material, false);
            spk_matrix *matrix = assemble(&box, SPK_F64);
            double gradient[3][3], stress[3][3], trace = 0, density = 0, energy = 0;
            double mu = box.young / (2 + 2 * box.poisson), lambda = 2 * mu * box.poisson / (1 - 2 * box.poisson);
            for (int i = 0; i < 9; i++)
                gradient[i / 3][i % 3] = spk_rng_normal(&rng);
            for (int i = 0; i < 3; i++)
                trace += gradient[i][i];
            for (int i = 0; i < 3; i++)
                for (int j = 0; j < 3; j++) {
                    stress[i][j] = mu * (gradient[i][j] + gradient[j][i]) + (i == j ? lambda * trace : 0);
                    density += stress[i][j] * gradient[i][j] / 2;
                }
            double *u = malloc((size_t)matrix->rows * sizeof *u), *force = malloc((size_t)matrix->rows * sizeof *force);
            assert_true(u && force);
            int64_t at[3];
            for (int64_t row = 0; row < matrix->rows / 3; row++) {
                locate(&box, row, at);
                for (int i = 0; i < 3; i++)
                    u[3 * row + i] = gradient[i][0] * (double)at[0] + gradient[i][1] * (double)at[1] + gradient[i][2] * (double)at[2];
            }
            multiply(matrix, u, force);
            double scale = 100 * (mu + fabs(lambda));
            for (int64_t row = 0; row < matrix->rows / 3; row++) {
                locate(&box, row, at);
                for (int i = 0; i < 3; i++) {
                    double expected = 0;
                    for (int axis = 0; axis < 3; axis++)
                        expected += stress[i][axis] * carried_area(&box, at, axis);
                    if (fabs(force[3 * row + i] - expected) > 1e-14 * scale)
                        fail_msg("mesh %d material %d node %d: force %.17g, expected %.17g", mesh, material, (int)row, force[3 * row + i],
                                 expected);
                    energy += force[3 * row + i] * u[3 * row + i] / 2;
                }
            }
            double volume = (double)(box.cells[0] * box.cells[1] * box.cells[2]);
            assert_true(fabs(energy - density * volume) <= 1e-13 * scale * volume);
            free(u);
            free(force);
            spk_matrix_release(&matrix);
        }
}

static void test_clamped_is_definite(void **state)
{
    (void)state;
    for (int mesh = 0; mesh < MESHES; mesh++)
        for (int material = 0; material < MATERIALS; material++)
            for (int dtype = SPK_F32; dtype <= (int)SPK_F64; dtype++) {
                spk_elastic_box box = box_of(mesh, material, true);
                spk_matrix *matrix = assemble(&box, (spk_dtype)dtype);
                double *dense = densify(matrix);
                assert_true(cholesky(dense, matrix->rows, 1e-6 * box.young));
                free(dense);
                spk_matrix_release(&matrix);
            }
}

/* One cube: the integrals by hand. With g = gradient of a corner's shape function, the integral of gx^2 is 1/9. */
static void test_one_cube(void **state)
{
    (void)state;
    spk_elastic_box box = box_of(0, 0, false);
    spk_matrix *matrix = assemble(&box, SPK_F64);
    double lambda = 0.3 / (1.3 * 0.4), mu = 1 / 2.6;
    const double *first = matrix->values;
    assert_true(fabs(first[0] - (lambda + 4 * mu) / 9) < 1e-15);
    assert_true(fabs(first[1] - (lambda + mu) / 12) < 1e-15);
    assert_true(fabs(first[9] + (lambda + 2 * mu) / 9 - mu / 9) < 1e-15); /* along x to corner 1: -(lambda + 2 mu) / 9 + 2 mu / 18 */
    spk_matrix_release(&matrix);
}

/* What a caller leaves out, and what does not apply to elasticity. */
static void test_defaults(void **state)
{
    (void)state;
    spk_generate options = {.generator = SPK_GEN_ELASTICITY, .cells_x = 2, .cells_y = 3, .cells_z = 4, .rows = -5, .density = 7};
    spk_elastic_box box = {.cells = {2, 3, 4}, .young = 1, .poisson = 0.3, .clamped = true};
    spk_matrix *made = NULL, *expected = assemble(&box, SPK_F64);
    int64_t shortfall = -1;
    assert_int_equal(spk_generate_matrix(&spk_mem_system, &options, &made, &shortfall), SPK_OK);
    assert_int_equal(shortfall, 0);
    assert_int_equal(made->dtype, SPK_F64);
    assert_int_equal(made->nnz, expected->nnz);
    assert_memory_equal(made->values, expected->values, (size_t)made->nnz * 9 * sizeof(double));
    spk_matrix_release(&made);
    options.dtype = SPK_F32;
    assert_int_equal(spk_generate_matrix(&spk_mem_system, &options, &made, NULL), SPK_OK);
    assert_int_equal(made->dtype, SPK_F32);
    spk_matrix_release(&made);
    spk_matrix_release(&expected);
}

static void test_golden(void **state)
{
    (void)state;
    static const uint64_t expected[] = {UINT64_C(0xd61fed209ae38f26), UINT64_C(0xac0a8d61173ca06d)};
    for (int dtype = SPK_F32; dtype <= (int)SPK_F64; dtype++) {
        spk_elastic_box box = {.cells = {5, 4, 3}, .young = 210, .poisson = 0.29, .clamped = true};
        spk_matrix *matrix = assemble(&box, (spk_dtype)dtype);
        uint64_t hash = spk_hash_bytes(SPK_HASH_START, matrix->row_offsets, (size_t)(matrix->rows / 3 + 1) * sizeof(int64_t));
        hash = spk_hash_bytes(hash, matrix->col_indices, (size_t)matrix->nnz * sizeof(int64_t));
        hash = spk_hash_bytes(hash, matrix->values, (size_t)matrix->nnz * 9 * (dtype == (int)SPK_F32 ? 4 : 8));
        if (hash != expected[dtype - SPK_F32])
            fail_msg("%s: hash 0x%016llx", dtype == (int)SPK_F32 ? "f32" : "f64", (unsigned long long)hash);
        spk_matrix_release(&matrix);
    }
}

static void refuse(spk_generate options, spk_status expected, const char *message)
{
    spk_matrix *matrix = (spk_matrix *)&options; /* any address: it must stay */
    options.generator = SPK_GEN_ELASTICITY;
    spk_status status = spk_generate_matrix(&spk_mem_system, &options, &matrix, NULL);
    assert_string_equal(spk_error_message(0), message);
    assert_int_equal(status, expected);
    assert_ptr_equal(matrix, &options);
}

static void test_refusals(void **state)
{
    (void)state;
    const spk_generate good = {.cells_x = 2, .cells_y = 2, .cells_z = 2};
    spk_generate bad = good;
    bad.cells_x = 0;
    refuse(bad, SPK_ERR_ARGUMENT, "cells_x = 0: must be at least 1");
    bad = good;
    bad.cells_z = -3;
    refuse(bad, SPK_ERR_ARGUMENT, "cells_z = -3: must be at least 1");
    bad = good;
    bad.cells_y = INT64_MAX;
    refuse(bad, SPK_ERR_ARGUMENT, "cells_y = 9223372036854775807: the mesh would have more than 1073741824 nodes");
    bad = (spk_generate){.cells_x = 1024, .cells_y = 1023, .cells_z = 1024};
    refuse(bad, SPK_ERR_ARGUMENT, "cells_z = 1024: the mesh would have more than 1073741824 nodes");
    bad = good;
    bad.young = -1;
    refuse(bad, SPK_ERR_ARGUMENT, "young = -1: must be in 1e-20 .. 1e+20");
    bad.young = INFINITY;
    refuse(bad, SPK_ERR_ARGUMENT, "young = inf: must be in 1e-20 .. 1e+20");
    bad = good;
    bad.poisson = 0.5;
    refuse(bad, SPK_ERR_ARGUMENT, "poisson = 0.5: must be above -1 and below 0.5");
    bad.poisson = -1;
    refuse(bad, SPK_ERR_ARGUMENT, "poisson = -1: must be above -1 and below 0.5");
    bad.poisson = fabs((double)NAN);
    refuse(bad, SPK_ERR_ARGUMENT, "poisson = nan: must be above -1 and below 0.5");
    bad = good;
    bad.dtype = SPK_INT32;
    refuse(bad, SPK_ERR_UNSUPPORTED, "dtype = 8: matrices are generated as f32, f64, f16, bf16, f8e4m3, f8e5m2 or i8");
}

static void test_extreme_materials_stay_finite(void **state)
{
    (void)state;
    static const double extremes[][2] = {
        {1e20, 0.49999999999999994}, {1e-20, 0.49999999999999994}, {1e20, -0.9999999999999999}, {1e-20, 1e-300}};
    for (int i = 0; i < 4; i++) {
        spk_elastic_box box = {.cells = {2, 2, 2}, .young = extremes[i][0], .poisson = extremes[i][1], .clamped = true};
        spk_matrix *matrix = assemble(&box, SPK_F32);
        for (int64_t k = 0; k < 9 * matrix->nnz; k++)
            assert_true(isfinite(((const float *)matrix->values)[k]));
        for (int64_t row = 0; row < matrix->rows / 3; row++)
            for (int64_t p = matrix->row_offsets[row]; p < matrix->row_offsets[row + 1]; p++)
                assert_true(matrix->col_indices[p] != row || ((const float *)matrix->values)[9 * p] > 0);
        spk_matrix_release(&matrix);
    }
}

static void test_allocation_failures(void **state)
{
    (void)state;
    spk_generate options = {.generator = SPK_GEN_ELASTICITY, .cells_x = 2, .cells_y = 2, .cells_z = 2};
    for (int64_t allowed = 0;; allowed++) {
        assert_true(allowed < 20);
        spk_matrix *matrix = NULL;
        int64_t shortfall = 77;
        spk_mem_fail_after(allowed);
        spk_status status = spk_generate_matrix(&spk_mem_system, &options, &matrix, &shortfall);
        spk_mem_fail_after(-1);
        if (status == SPK_OK) {
            assert_true(allowed >= 5);
            spk_matrix_release(&matrix);
            return;
        }
        assert_int_equal(status, SPK_ERR_OUT_OF_MEMORY);
        assert_null(matrix);
        assert_int_equal(shortfall, 77);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pattern_is_the_neighbourhood),
        cmocka_unit_test(test_exactly_symmetric),
        cmocka_unit_test(test_clamping_and_rounding),
        cmocka_unit_test(test_null_space_is_the_rigid_bodies),
        cmocka_unit_test(test_patch),
        cmocka_unit_test(test_clamped_is_definite),
        cmocka_unit_test(test_one_cube),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_extreme_materials_stay_finite),
        cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
