#include "type/tile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *word;
    spk_scale tile;
} words[] = {{"tensor", {SPK_SCALE_ALL, SPK_SCALE_ALL}},
             {"row", {1, SPK_SCALE_ALL}},
             {"col", {SPK_SCALE_ALL, 1}},
             {"block", {SPK_SCALE_BLOCK, SPK_SCALE_BLOCK}}};

enum { WORDS = sizeof words / sizeof words[0] };

/* "128" or "all", up to `end`. */
static bool read_side(const char *text, const char *end, int64_t *side)
{
    char *behind = NULL;
    if (end - text == 3 && strncmp(text, "all", 3) == 0) {
        *side = SPK_SCALE_ALL;
        return true;
    }
    if (text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    *side = strtoll(text, &behind, 10);
    return errno == 0 && behind == end && *side >= 1;
}

bool spk_tile_read(const char *text, spk_scale *tile)
{
    spk_scale read;
    const char *times = strchr(text, 'x');
    for (int i = 0; i < WORDS; i++)
        if (strcmp(text, words[i].word) == 0) {
            *tile = words[i].tile;
            return true;
        }
    if (times == NULL || !read_side(text, times, &read.rows) || !read_side(times + 1, times + strlen(times), &read.cols))
        return false;
    *tile = read;
    return true;
}

const char *spk_tile_side_text(int64_t side, char *text, size_t size)
{
    if (side == SPK_SCALE_BLOCK || side == SPK_SCALE_ALL)
        snprintf(text, size, "%s", side == SPK_SCALE_ALL ? "all" : "block");
    else
        snprintf(text, size, "%lld", (long long)side);
    return text;
}

const char *spk_tile_text(spk_scale tile, char *text, size_t size)
{
    char rows[SPK_TILE_SIDE_TEXT], cols[SPK_TILE_SIDE_TEXT];
    for (int i = 0; i < WORDS; i++)
        if (tile.rows == words[i].tile.rows && tile.cols == words[i].tile.cols) {
            snprintf(text, size, "%s", words[i].word);
            return text;
        }
    snprintf(text, size, "%sx%s", spk_tile_side_text(tile.rows, rows, sizeof rows), spk_tile_side_text(tile.cols, cols, sizeof cols));
    return text;
}

const char *spk_tile_words(const char *quote, char *text, size_t size)
{
    size_t at = 0;
    text[0] = '\0';
    for (int i = 0; i < WORDS && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%s%s%s", i == 0 ? "" : i == WORDS - 1 ? " or " : ", ", quote, words[i].word, quote);
    return text;
}
