/* Masks of attention as rows: what a shape is called, what it may be told, and which keys the queries of a block row see. C, the command
 * line and Python work from these tables (docs/adding-a-mask-shape.md). */
#ifndef SPK_MATRIX_MASK_H
#define SPK_MATRIX_MASK_H

#include <stdbool.h>

#include "base/mem.h"
#include "base/rng.h"

/* A block row that is being asked. A shape's function reads what stands above the line, and calls the functions below. */
typedef struct spk_mask_row {
    const spk_generate *options; /* whole: no default is left open */
    int64_t list, index;         /* of the list, and of the block row in it */
    int64_t query, last_query;   /* the block row's own */
    int64_t shift;               /* key q + shift stands beside query q; it may be none of the keys */
    int64_t ahead;               /* a query sees no key that is more than so many behind the one beside it */
    /* ---- */
    int64_t grid_cols, words; /* blocks of keys; words of a line of a tile */
    unsigned char *marks;     /* of each block of keys, 0 at first */
    int64_t first, end;       /* all that are marked lie in between */
    uint32_t *bits;           /* a tile for each block of keys; NULL: blocks are enough */
} spk_mask_row;

enum { SPK_MASK_SOME = 1, SPK_MASK_WHOLE = 2 }; /* marks: its tile says which pairs are seen; all are */

/* All queries of the row see keys first .. last; those from .. to see them; each sees from `left` keys before the one beside it to `right`
 * behind, which may be negative: (5, -5) is the fifth one before. Queries, keys and blocks that are not there are left out, and so is what
 * is too far ahead. */
void spk_mask_see(spk_mask_row *row, int64_t first, int64_t last);
void spk_mask_see_some(spk_mask_row *row, int64_t from, int64_t to, int64_t first, int64_t last);
void spk_mask_see_near(spk_mask_row *row, int64_t left, int64_t right);

/* Random numbers of a block row, and of its whole list: the same whenever they are asked for. */
spk_rng spk_mask_numbers(const spk_mask_row *row);
spk_rng spk_mask_numbers_of_list(const spk_mask_row *row);

/* What a mask may be told: a number for each row of mask_parameters.def. */
typedef enum spk_mask_word {
#define SPK_MASK_PARAMETER(ID, ...) SPK_MASK_TAKES_##ID,
#include "matrix/mask_parameters.def"
#undef SPK_MASK_PARAMETER
    SPK_MASK_TAKES_END
} spk_mask_word;

typedef struct spk_mask_parameter {
    const char *name;  /* in the command line and in Python */
    const char *field; /* in spk_generate, where it begins at */
    size_t offset;
    spk_mask_value value;
    int64_t least, most;
    int64_t usual, usual_part; /* of a number: what 0 stands for, or which part of the keys, rounded up; both 0: itself */
    const char *usual_text;    /* NULL: it must be given */
    const char *help;
} spk_mask_parameter;

const spk_mask_parameter *spk_mask_parameter_of(spk_mask_word word);

enum { SPK_MASK_MOST_WORDS = 12 };

typedef struct spk_mask_shape_row {
    const char *name, *help;
    bool is_random;                           /* the seed changes what is seen */
    bool is_free;                             /* no query is kept from keys behind the one beside it */
    spk_mask_word words[SPK_MASK_MOST_WORDS]; /* what it may be told; SPK_MASK_TAKES_NOTHING ends them */
    void (*see)(spk_mask_row *row);
    spk_status (*check)(spk_generate *options); /* what parameters must be together, and defaults that depend on several; may be NULL */
} spk_mask_shape_row;

/* NULL where there is none; by a name: 0. */
const spk_mask_shape_row *spk_mask_shape_of(spk_mask_shape shape);

/* Refuses a count that must be given, and is not. */
spk_status spk_mask_need(const spk_mask_parameter *parameter, const spk_generate *options);

/* Checks the options, and puts what is usual where they leave it open. */
spk_status spk_mask_take(spk_generate *options);

/* What is made: lists of blocks and their tiles, as spk_mask_view shows them. */
struct spk_mask {
    spk_mem mem;
    int64_t block_rows_of_list, grid_rows, grid_cols, blocks, tiles;
    int64_t words, tile_words; /* of a line, and of a tile */
    int64_t *row_offsets, *col_indices;
    int32_t *tile_numbers; /* NULL: all blocks are whole, or nobody asked */
    uint32_t *tile_bits;
};

spk_status spk_mask_make(const spk_mem *mem, const spk_generate *options, bool with_tiles, spk_mask **out);
void spk_mask_release(spk_mask **mask); /* accepts NULL */

#endif
