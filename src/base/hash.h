/* A 64-bit hash for cache keys and source hashes (FNV-1a with a final mix): stable across machines and versions. */
#ifndef SPK_BASE_HASH_H
#define SPK_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define SPK_HASH_START UINT64_C(0xcbf29ce484222325)

uint64_t spk_hash_bytes(uint64_t seed, const void *bytes, size_t count);
uint64_t spk_hash_text(uint64_t seed, const char *text);

#endif
