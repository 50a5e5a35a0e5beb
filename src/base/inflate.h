/* gzip's compression, undone piece by piece: one member or several, as gzip, pigz and bgzip write them. */
#ifndef SPK_BASE_INFLATE_H
#define SPK_BASE_INFLATE_H

#include <stdbool.h>

#include "base/mem.h"

typedef struct spk_inflate spk_inflate;

/* Gives some of the packed bytes, at most `out_bytes`; 0: there are no more, or they cannot be read, which the caller remembers. */
typedef size_t (*spk_inflate_source)(void *user, void *out, size_t out_bytes);

/* The packed bytes are first the `count` at `bytes`, which must stay, then, unless source is NULL, those of the source; `work` (work_bytes
 * bytes, may hold `bytes`) is where the source puts them. */
spk_status spk_inflate_open(const spk_mem *mem, const void *bytes, size_t count, spk_inflate_source source, void *user, void *work,
                            size_t work_bytes, spk_inflate **out);
void spk_inflate_close(spk_inflate **inflate); /* accepts NULL */

/* Some of the plain bytes, at most `out_bytes`; 0: the end, or what spk_inflate_status says. */
size_t spk_inflate_read(spk_inflate *inflate, void *out, size_t out_bytes);

/* SPK_OK, SPK_ERR_FORMAT for packed bytes that are damaged or end early, SPK_ERR_OUT_OF_MEMORY; `name` begins the message. */
spk_status spk_inflate_status(const spk_inflate *inflate, const char *name);

/* Packed bytes used so far. */
int64_t spk_inflate_used(const spk_inflate *inflate);

static inline bool spk_inflate_knows(const unsigned char *bytes, size_t have)
{
    return have >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

#endif
