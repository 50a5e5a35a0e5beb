/* gzip through zlib. Promises: memory of a fixed size whatever the packed bytes say, and that bytes which end within a member, or go on as
 * none, are never taken for a whole file. */
#include "base/inflate.h"

#include <zlib.h>

#define FEED_BYTES ((size_t)1 << 30) /* zlib counts in 32 bits */

struct spk_inflate {
    spk_mem mem;
    z_stream stream;
    bool open;               /* stream is to be ended */
    const unsigned char *at; /* packed bytes at hand, beyond those in stream */
    size_t left;
    spk_inflate_source source; /* NULL: no more */
    void *user, *work;
    size_t work_bytes;
    int64_t used;       /* by members before, and zeros */
    bool between;       /* a member has ended */
    bool padded;        /* zeros follow the last member, as on tapes */
    const char *damage; /* NULL: none */
    bool no_memory;
};

static void *allocate(void *user, unsigned count, unsigned size)
{
    void *memory = NULL;
    return spk_alloc(user, count, size, &memory) == SPK_OK ? memory : Z_NULL;
}

static void release(void *user, void *memory)
{
    spk_free(user, memory);
}

spk_status spk_inflate_open(const spk_mem *mem, const void *bytes, size_t count, spk_inflate_source source, void *user, void *work,
                            size_t work_bytes, spk_inflate **out)
{
    spk_inflate *f = NULL;
    SPK_TRY(spk_calloc(mem, 1, sizeof *f, &f));
    f->mem = *mem;
    f->at = bytes;
    f->left = count;
    f->source = source;
    f->user = user;
    f->work = work;
    f->work_bytes = work_bytes;
    f->stream = (z_stream){.zalloc = allocate, .zfree = release, .opaque = &f->mem};
    if (inflateInit2(&f->stream, 15 + 16) != Z_OK) { /* any window, gzip's header */
        spk_free(mem, f);
        return spk_fail(SPK_ERR_OUT_OF_MEMORY, "out of memory: the state of decompression");
    }
    f->open = true;
    *out = f;
    return SPK_OK;
}

void spk_inflate_close(spk_inflate **inflate)
{
    spk_inflate *f = *inflate;
    if (!f)
        return;
    if (f->open)
        inflateEnd(&f->stream);
    spk_mem mem = f->mem;
    spk_free(&mem, f);
    *inflate = NULL;
}

/* Packed bytes into the stream where it has none; false: there are no more. */
static bool feed(spk_inflate *f)
{
    if (f->stream.avail_in > 0)
        return true;
    if (f->left == 0 && f->source) {
        f->at = f->work;
        f->left = f->source(f->user, f->work, f->work_bytes);
        if (f->left == 0)
            f->source = NULL;
    }
    size_t piece = f->left < FEED_BYTES ? f->left : FEED_BYTES;
    f->stream.next_in = (Bytef *)(uintptr_t)f->at; /* zlib only reads there */
    f->stream.avail_in = (uInt)piece;
    f->at += piece;
    f->left -= piece;
    return piece > 0;
}

/* Behind a member: the end, zeros up to it, or the next member, which inflate checks. False: there is nothing more to unpack. */
static bool begin_member(spk_inflate *f)
{
    while (feed(f)) {
        while (f->stream.avail_in > 0 && *f->stream.next_in == 0) {
            f->padded = true;
            f->stream.next_in++;
            f->stream.avail_in--;
            f->used++;
        }
        if (f->stream.avail_in == 0)
            continue;
        if (f->padded || *f->stream.next_in != 0x1f) {
            f->damage = "something follows the compressed data";
            return false;
        }
        f->used += (int64_t)f->stream.total_in;
        f->between = false;
        return inflateReset(&f->stream) == Z_OK;
    }
    return false;
}

/* One step of zlib; false: an end of some kind. */
static bool step(spk_inflate *f)
{
    if (f->between)
        return begin_member(f);
    bool fed = feed(f);
    int code = inflate(&f->stream, Z_NO_FLUSH);
    if (code == Z_STREAM_END)
        f->between = true;
    else if (code == Z_MEM_ERROR)
        f->no_memory = true;
    else if (code != Z_OK && code != Z_BUF_ERROR)
        f->damage = f->stream.msg ? f->stream.msg : "damaged data";
    else if (!fed && code == Z_BUF_ERROR)
        f->damage = "ends early";
    return !f->damage && !f->no_memory;
}

size_t spk_inflate_read(spk_inflate *inflate, void *out, size_t out_bytes)
{
    spk_inflate *f = inflate;
    size_t piece = out_bytes < FEED_BYTES ? out_bytes : FEED_BYTES;
    f->stream.next_out = out;
    f->stream.avail_out = (uInt)piece;
    if (f->damage || f->no_memory)
        return 0;
    while (f->stream.avail_out == piece && step(f))
        continue;
    return piece - f->stream.avail_out;
}

spk_status spk_inflate_status(const spk_inflate *inflate, const char *name)
{
    if (inflate->no_memory)
        return spk_fail(SPK_ERR_OUT_OF_MEMORY, "out of memory: the state of decompression");
    if (inflate->damage)
        return spk_fail(SPK_ERR_FORMAT, "%s: compressed byte %lld: %s", name, (long long)spk_inflate_used(inflate), inflate->damage);
    return SPK_OK;
}

int64_t spk_inflate_used(const spk_inflate *inflate)
{
    return inflate->used + (int64_t)inflate->stream.total_in;
}
