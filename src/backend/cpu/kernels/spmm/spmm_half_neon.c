/* spmm_half_neon: D = epilogue(A_bsr B) in float16 and bfloat16 with float32 sums, with NEON. Any block, layout, orientation, N and
 * epilogue. Values are copied as float32, a block row or a tile's rows at a time; B is copied, too, or with PACK=0 converted by the tiles
 * where it lies. The register tiles are those of spmm_f32_neon. PACK=2 lays the values out as the tiles read them. PACK=5
 * converts a few rows of B at a time into the first cache (tile_near.h). Bound: the FMA units from 16 x 16 blocks on; where N is small,
 * the conversion. */
#define ROW spmm_half_neon
#define ISA NEON
#include "backend/cpu/kernels/spmm/tile_half_row.h"

const spk_kernel_ops spmm_half_neon_ops = TILE_OPS;
