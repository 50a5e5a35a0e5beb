/* How a decision came about. The words that people read are made of it and never compared. */
#ifndef SPK_KNOWN_ORIGIN_H
#define SPK_KNOWN_ORIGIN_H

#include <stdbool.h>

typedef enum spk_origin {
#define SPK_ORIGIN(NAME, words) SPK_ORIGIN_##NAME,
#include "known/origins.def"
#undef SPK_ORIGIN
    SPK_ORIGINS
} spk_origin;

const char *spk_origin_words(spk_origin origin);

/* Whether nothing was measured of this very problem, nor of a size of the same layer. */
bool spk_origin_is_estimate(spk_origin origin);

#endif
