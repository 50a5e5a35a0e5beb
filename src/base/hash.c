/* FNV-1a over bytes, with a final mix so that all 64 bits depend on all input. */
#include "base/hash.h"

#include <string.h>

uint64_t spk_hash_bytes(uint64_t seed, const void *bytes, size_t count)
{
    const unsigned char *p = bytes;
    uint64_t hash = seed;
    for (size_t i = 0; i < count; i++) {
        hash ^= p[i];
        hash *= UINT64_C(0x100000001b3);
    }
    hash ^= hash >> 32;
    hash *= UINT64_C(0xd6e8feb86659fd93);
    hash ^= hash >> 32;
    return hash;
}

uint64_t spk_hash_text(uint64_t seed, const char *text)
{
    return spk_hash_bytes(seed, text, strlen(text));
}
