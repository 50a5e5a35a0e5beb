#include "known/origin.h"

const char *spk_origin_words(spk_origin origin)
{
    static const char *const words[] = {
#define SPK_ORIGIN(NAME, words) words,
#include "known/origins.def"
#undef SPK_ORIGIN
    };
    return words[origin];
}

bool spk_origin_is_estimate(spk_origin origin)
{
    return origin == SPK_ORIGIN_MODEL || origin == SPK_ORIGIN_MODEL_NEAREST || origin == SPK_ORIGIN_MODEL_BUSY;
}
