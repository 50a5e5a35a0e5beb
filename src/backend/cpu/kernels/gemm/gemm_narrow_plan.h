/* What a GEMM with few rows or columns decides, whatever the element type: the large matrix is read once, along its lines, and its elements
 * are not copied. It stands for B, so that the other has `rows` rows: the given product, or the turned one. Where B's rows are contiguous a
 * unit of work goes along K, some rows of B at a time, and adds to the sums of its columns, which stay in the first cache; where its
 * columns are, the sums of a few columns stay in registers. Where columns make too few units, K is split among several, each with sums of
 * its own, which are added in the order of K. */
#ifndef SPK_BACKEND_CPU_KERNELS_GEMM_NARROW_PLAN_H
#define SPK_BACKEND_CPU_KERNELS_GEMM_NARROW_PLAN_H

#include "backend/cpu/kernels/gemm/gemm_plan.h"

enum { NARROW_MOST_ROWS = 8, NARROW_UNIT_COLUMNS = 1024, NARROW_LEAST_COLUMNS = 256, NARROW_LEAST_DEPTH = 256 };

typedef struct narrow_gemm_state {
    spk_problem problem; /* the given one, or turned */
    bool turned, along_k;
    int64_t strips, splits; /* units: of columns, of K */
    int64_t workers;
    int64_t padded;                   /* columns of a strip's sums, whole vectors */
    int64_t a_elements, sum_elements; /* of the workspace: a worker's part of A; a unit's sums */
} narrow_gemm_state;

static inline narrow_gemm_state narrow_make_state(const spk_problem *problem, int threads, const tile_machine *machine)
{
    const int64_t lanes = machine->lanes;
    narrow_gemm_state s = {.turned = problem->n < problem->m};
    s.problem = s.turned ? gemm_turn(problem) : *problem;
    s.along_k = s.problem.b.layout == SPK_COL_MAJOR;
    const int64_t n = s.problem.n, k = s.problem.k, workers = spk_problem_flops(problem) < TILE_SERIAL_FLOPS ? 1 : threads;
    const int64_t wanted = workers > 1 ? 2 * workers : 1, by_size = n / NARROW_LEAST_COLUMNS, most = s.along_k ? n / 4 : by_size;
    s.strips = wanted < most ? wanted : most;
    if (s.strips < tile_ceil(n, NARROW_UNIT_COLUMNS))
        s.strips = tile_ceil(n, NARROW_UNIT_COLUMNS);
    s.strips = s.strips > 0 ? s.strips : 1;
    const int64_t parts = tile_ceil(wanted, s.strips), deepest = k / NARROW_LEAST_DEPTH;
    s.splits = s.strips >= workers || parts < 2 || deepest < 2 ? 1 : parts < deepest ? parts : deepest;
    s.workers = s.strips * s.splits < workers ? s.strips * s.splits : workers;
    s.padded = tile_ceil(tile_ceil(n, s.strips), lanes) * lanes + (s.along_k ? 0 : lanes);
    s.a_elements = tile_ceil(tile_ceil(tile_ceil(k, s.splits), lanes) * lanes * s.problem.m, 16) * 16;
    s.sum_elements = tile_ceil(s.padded * s.problem.m, 16) * 16;
    return s;
}

static inline bool narrow_gemm_applicable(const spk_problem *problem, const char **why)
{
    if (problem->m > NARROW_MOST_ROWS && problem->n > NARROW_MOST_ROWS)
        *why = "it is for products with 8 rows or columns at most";
    return *why == NULL;
}

static inline spk_status narrow_gemm_bind(spk_bound *bound, const tile_machine *machine)
{
    narrow_gemm_state *state = NULL;
    SPK_TRY(spk_calloc(&bound->device->mem, 1, sizeof *state, &state));
    *state = narrow_make_state(&bound->problem, bound->device->executor.threads, machine);
    const int64_t sums = state->splits > 1 ? state->strips * state->splits : state->workers;
    bound->workspace_bytes = (size_t)((state->workers * state->a_elements + sums * state->sum_elements) * machine->element_bytes);
    bound->state = state;
    return SPK_OK;
}

static inline double narrow_gemm_cost(const spk_problem *problem, const spk_device *device, const tile_machine *tiles)
{
    const cost_machine machine = cost_of_machine(device, tiles->fused);
    const narrow_gemm_state s = narrow_make_state(problem, device->executor.threads, tiles);
    const double rows = (double)s.problem.m, n = (double)s.problem.n, k = (double)s.problem.k, lanes = (double)tiles->lanes;
    if (rows == 0 || n == 0)
        return 0.1;
    const double vector = rows / machine.multiplies + (tile_converts(problem) ? 2 : 0.7) + (s.along_k ? 0.5 * rows : 0.25 * rows);
    const double stream = (double)spk_dtype_bytes(problem->a.dtype) * lanes / 8; /* a core's own limit, in cycles a vector */
    double cycles = k * ceil(n / lanes) * fmax(vector, stream);
    cycles += (double)s.strips * rows * k + rows * n / lanes * cost_of_epilogue(&s.problem, lanes) + (s.along_k ? n * rows * 4 : 0);
    return cost_finish(problem, device, &machine, cycles, (double)(s.strips * s.splits), s.splits > 1 ? 2 : 1);
}

#endif
