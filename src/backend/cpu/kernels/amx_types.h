/* What rows on AMX with bfloat16 are made of. */
#include "backend/cpu/kernels/amx_queue.h"
#include "backend/cpu/probe.h"
#include "base/half.h"

#define VECTOR_BYTES 64

#define REAL float
#define REAL_BITS 32
#define T(name) name##_f32
#include "backend/cpu/kernels/vector.h"

#include "backend/cpu/kernels/epilogue_body.h"
#include "backend/cpu/kernels/transpose.h"
#undef STORED
#undef S

#define STORED uint16_t
#define STORED_BF16 1
#define S(name) name##_bf16
#include "backend/cpu/kernels/stored_half.h"

#include "backend/cpu/kernels/epilogue_body.h"
#include "backend/cpu/kernels/tile_pairs.h"

#include "backend/cpu/kernels/amx_product.h"

/* The least side of blocks, and of D without any; rows of a row-major B that are copied along its lines before others. */
enum { AMX_LEAST_SIDE = 16, AMX_COPY_ROWS = 32 };

/* Asks the system for the tiles. */
static inline spk_status amx_request(void)
{
    return spk_request_tiles() ? SPK_OK : spk_fail(SPK_ERR_UNSUPPORTED, "the system does not let this process use AMX");
}

static inline void amx_finish(const spk_problem *problem, const spk_args *args, const void *sums, int64_t ld, int64_t row0, int64_t rows,
                              int64_t column0, int64_t columns)
{
    (problem->d.dtype == problem->a.dtype ? S(epilogue) : T(epilogue))(problem, args, sums, ld, row0, rows, column0, columns);
}
