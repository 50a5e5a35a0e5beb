/* Fields of the tuning key that operations share. */
#include "op/key.h"

#include <math.h>
#include <string.h>

#include "base/text.h"

enum { MAX_ALIGNMENT = 16 };

bool spk_key_text(char *text, size_t size, const char *value)
{
    const size_t length = strlen(value);
    if (length >= size)
        return false;
    memcpy(text, value, length + 1);
    return true;
}

bool spk_key_whole(char *text, size_t size, int value)
{
    char digits[SPK_NUMBER_TEXT];
    spk_number_text(value, digits);
    return spk_key_text(text, size, digits);
}

int spk_key_alignment(int64_t steps)
{
    int class = 1;
    while (class < MAX_ALIGNMENT && steps % (2 * class) == 0)
        class *= 2;
    return class;
}

/* The powers of two are in the middle of their classes; a class is named by its middle. */
int64_t spk_key_size(int64_t n)
{
    return n <= 8 ? n : llround(exp2(round(4 * log2((double)n)) / 4));
}

bool spk_key_finite(const spk_problem *p, char *text, size_t size)
{
    return spk_key_whole(text, size, p->assume_finite);
}

bool spk_key_static(const spk_problem *p, char *text, size_t size)
{
    return spk_key_whole(text, size, p->static_values);
}

bool spk_key_cache(const spk_problem *p, char *text, size_t size)
{
    return spk_key_text(text, size, p->cache == SPK_WARM ? "warm" : "cold");
}

/* Fewer candidates take indices that only the device has. */
bool spk_key_indices(const spk_problem *p, char *text, size_t size)
{
    return p->pattern != NULL && p->pattern->device_only && spk_key_text(text, size, "device");
}

bool spk_key_batch(const spk_problem *p, char *text, size_t size)
{
    return spk_key_whole(text, size, p->batch > 1 ? 2 : 1);
}

bool spk_key_items(const spk_problem *p, int64_t *value)
{
    *value = spk_key_size(p->batch);
    return p->batch > 1;
}

bool spk_key_block_rows(const spk_problem *p, int64_t *value)
{
    *value = p->pattern != NULL ? p->pattern->block_rows : 0;
    return p->pattern != NULL;
}

bool spk_key_block_cols(const spk_problem *p, int64_t *value)
{
    *value = p->pattern != NULL ? p->pattern->block_cols : 0;
    return p->pattern != NULL;
}

/* Two classes an octave. */
bool spk_key_blocks(const spk_problem *p, int64_t *value)
{
    const int64_t blocks = p->pattern->nnzb;
    *value = blocks <= 1 ? blocks : llround(exp2(round(2 * log2((double)blocks)) / 2));
    return true;
}

bool spk_key_spread(const spk_problem *p, int64_t *value)
{
    static const double limits[] = {0.25, 0.5, 1, 2};
    if (p->pattern == NULL)
        return false;
    const double spread = p->trans_a == SPK_TRANS ? p->pattern->features.col_spread : p->pattern->features.row_spread;
    for (*value = 0; *value < 4 && spread >= limits[*value];)
        ++*value;
    return true;
}

/* How much more two neighbouring rows share than two random rows of this density would. The raw overlap of a random pattern lies at
 * its density and strays by chance, so that fresh patterns of one family would fall into different classes. */
bool spk_key_overlap(const spk_problem *p, int64_t *value)
{
    const double overlap = p->pattern->features.row_overlap, density = p->pattern->density;
    const double excess = density < 1 ? (overlap - density) / (1 - density) : 0;
    *value = excess < 0.5 ? 0 : excess < 0.75 ? 1 : 2;
    return true;
}
