/* What rows that multiply bfloat16 by strips of A and panels of B are made of: on AMX, or with NEON by BFMMLA. The two products have the
 * same functions. */
#ifndef SPK_BACKEND_CPU_KERNELS_TILES_STRIP_TYPES_H
#define SPK_BACKEND_CPU_KERNELS_TILES_STRIP_TYPES_H

#include "backend/cpu/kernels/tiles/strip_queue.h"
#include "backend/cpu/kernels/vectors/epilogue.h"
#if ISA == NEON
#include "backend/cpu/kernels/tiles/bfmmla_product.h"
#else
#include "backend/cpu/kernels/tiles/amx_product.h"
#endif

/* The least side of blocks, and of D without any; rows of a row-major B that are copied along its lines before others. */
enum { STRIP_LEAST_SIDE = 16, STRIP_COPY_ROWS = 32 };

enum { STRIP_TILE_SIDE = 16 }; /* of the sums that costs count */

static inline void strip_finish(const spk_problem *problem, const spk_args *args, const void *sums, int64_t ld, int64_t row0, int64_t rows,
                                int64_t column0, int64_t columns)
{
    (problem->d.dtype == problem->a.dtype ? S(epilogue) : T(epilogue))(problem, args, sums, ld, row0, rows, column0, columns);
}

/* Microseconds of products of so many tiles and copies of so many bytes, on all threads. Constants of
 * 16 threads on 8 cores of an Emerald Rapids. */
static inline double strip_cost(const spk_problem *problem, const spk_device *device, double tiles, double bytes, double tasks)
{
    const cost_machine machine = cost_of_machine(device, true);
    return cost_finish(problem, device, &machine, STRIP_TILE_CYCLES * tiles + bytes / 4, tasks, 2);
}

#endif
