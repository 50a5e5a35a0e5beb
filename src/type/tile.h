/* What a scale factor covers (spk_scale), as text: a word, or the rows and columns of a tile, "1x128" or "allx128". The command line, its
 * lists of problems and Python's reports say it so; keys of the store have the sides alone. */
#ifndef SPK_TYPE_TILE_H
#define SPK_TYPE_TILE_H

#include <stdbool.h>
#include <stddef.h>

#include <sparsek/sparsek.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SPK_TILE_TEXT = 48, SPK_TILE_SIDE_TEXT = 24, SPK_TILE_LIST_TEXT = 64 };

/* False: the text says no tile. */
bool spk_tile_read(const char *text, spk_scale *tile);

/* What spk_tile_read reads; and of one side, "128", "all" or "block". */
const char *spk_tile_text(spk_scale tile, char *text, size_t size);
const char *spk_tile_side_text(int64_t side, char *text, size_t size);

/* "tensor, row, col or block", for messages, each in quotes, if any. */
const char *spk_tile_words(const char *quote, char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
