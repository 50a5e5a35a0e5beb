/* list_tiles: the tiles of sddmm_sm90_wgmma for indices that are on the device only, without row groups: blocks are 128 or 256 rows high,
 * so that a tile's rows are those of one block row, and its columns the next SLOTS cells' columns of that row. Row i's tiles begin at
 * offsets[i] * ACROSS / SLOTS + i, which leaves room for all of them whatever the lengths are; what is over is tiles without columns. Words
 * as in sddmm_sm90_wgmma.cu. Bound: latency. The constants: list_tiles.h. */
#include "backend/cuda/helpers/list_tiles.h"

constexpr sddmm_words WORDS = sddmm_words_of(ROWS, SLOTS, TILE_ROWS, SLOTS);
constexpr int PARTS = DOWN / ROWS, AT_COLS = WORDS.at_cols, AT_BLOCKS = WORDS.at_blocks, TILE_WORDS = WORDS.count;

/* A warp a block row. */
extern "C" __global__ void __launch_bounds__(LIST_TILES_THREADS) list_tiles(const __grid_constant__ tile_list all)
{
    const int warps = gridDim.x * (blockDim.x / 32), lane = threadIdx.x % 32;
    for (int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32; row < all.grid_rows; row += warps) {
        const long long from = all.offsets[row], to = all.offsets[row + 1], cells = (to - from) * ACROSS;
        const long long first = from * ACROSS / SLOTS + row, end = to * ACROSS / SLOTS + row + 1;
        for (long long at = lane; at < (end - first) * PARTS * TILE_WORDS; at += 32) {
            const int word = (int)(at % TILE_WORDS), part = (int)(at / TILE_WORDS % PARTS);
            const int slot = word < AT_BLOCKS ? word - AT_COLS : (word - AT_BLOCKS) % SLOTS;
            const long long cell = at / TILE_WORDS / PARTS * SLOTS + slot; /* of the row */
            int value = -1;
            if (word == 0)
                value = 0;
            else if (word < AT_COLS)
                value = row * DOWN + part * ROWS + word - WORDS.at_rows;
            else if (cell < cells)
                value = word < AT_BLOCKS ? all.columns[from + cell / ACROSS] * ACROSS + (int)(cell % ACROSS) : (int)(from + cell / ACROSS);
            all.words[first * PARTS * TILE_WORDS + at] = value;
        }
    }
}
