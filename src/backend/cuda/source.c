/* Looks device sources up by name. */
#include "backend/cuda/source.h"

#include <string.h>

#include "base/hash.h"

static int is_header(const spk_cuda_source *source)
{
    return strncmp(source->name, "backend/", 8) == 0;
}

const spk_cuda_source *spk_cuda_source_find(const char *name)
{
    for (int i = 0; i < spk_cuda_source_count; i++)
        if (strcmp(spk_cuda_sources[i].name, name) == 0)
            return &spk_cuda_sources[i];
    return NULL;
}

int spk_cuda_source_headers(const char **names, const char **texts)
{
    int count = 0;
    for (int i = 0; i < spk_cuda_source_count && count < SPK_CUDA_MOST_HEADERS; i++)
        if (is_header(&spk_cuda_sources[i])) {
            names[count] = spk_cuda_sources[i].name;
            texts[count++] = (const char *)spk_cuda_sources[i].text;
        }
    return count;
}

uint64_t spk_cuda_source_hash(const spk_cuda_source *source)
{
    uint64_t hash = spk_hash_bytes(SPK_HASH_START, &source->hash, sizeof source->hash);
    for (int i = 0; i < spk_cuda_source_count; i++)
        if (is_header(&spk_cuda_sources[i]))
            hash =
                spk_hash_bytes(spk_hash_text(hash, spk_cuda_sources[i].name), &spk_cuda_sources[i].hash, sizeof spk_cuda_sources[i].hash);
    return hash;
}
