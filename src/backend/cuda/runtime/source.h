/* The device sources inside the library: programs, kernels/NAME.cu and helpers/NAME.cu, as "NAME.cu"; what they include by the name that
 * they include it by, "backend/cuda/device/NAME". */
#ifndef SPK_BACKEND_CUDA_SOURCE_H
#define SPK_BACKEND_CUDA_SOURCE_H

#include <stddef.h>
#include <stdint.h>

typedef struct spk_cuda_source {
    const char *name;
    const unsigned char *text; /* NUL-terminated */
    size_t length;
    uint64_t hash; /* of it and of all that it includes */
} spk_cuda_source;

/* Generated (cmake/SparsekEmbed.cmake). */
extern const spk_cuda_source spk_cuda_sources[];
extern const int spk_cuda_source_count;

enum { SPK_CUDA_MOST_HEADERS = 128 };

const spk_cuda_source *spk_cuda_source_find(const char *name); /* NULL: there is none */
int spk_cuda_source_headers(const char **names, const char **texts);

#endif
