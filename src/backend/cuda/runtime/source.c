/* Looks device sources up by name. */
#include "backend/cuda/runtime/source.h"

#include <string.h>

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
