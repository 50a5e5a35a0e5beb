/* Buffered sequential reading. Promises: a window of up to 1 MiB in one piece, byte offsets, no seek backwards, and that a file
 * which the system fails to read, or which is damaged in its compression, is never taken for one that ends. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/c_locale.h"
#include "base/file.h"
#include "base/inflate.h"

#define WINDOW_MAX ((size_t)1 << 20)
#define BUFFER_BYTES (2 * WINDOW_MAX) /* twice the window: what is left over is moved at most once a megabyte */
#define DIRECT_MIN ((size_t)1 << 16)  /* longer pieces go straight to the caller's memory */

enum { UNPACKING = -1 }; /* for an errno: the inflater says what it was */

struct spk_reader {
    spk_mem mem;
    char *name;
    int fd;                     /* -1: memory */
    unsigned char *buffer;      /* NULL: memory */
    const unsigned char *bytes; /* unread bytes */
    size_t have;
    int64_t offset;        /* in the file, of bytes[0] */
    int64_t size;          /* -1: a pipe, or unpacked */
    bool at_end;           /* nothing follows what is buffered */
    int error;             /* errno of the read that failed */
    spk_inflate *inflate;  /* NULL: the file is read as it is */
    unsigned char *packed; /* its buffer; NULL: memory */
    int64_t packed_size;
};

static spk_status reader_make(const spk_mem *mem, const char *name, spk_reader **reader)
{
    spk_reader *r = NULL;
    SPK_TRY(spk_calloc(mem, 1, sizeof *r, &r));
    r->mem = *mem;
    r->fd = -1;
    spk_status status = spk_strdup(mem, name, &r->name);
    if (status != SPK_OK) {
        spk_free(mem, r);
        return status;
    }
    *reader = r;
    return SPK_OK;
}

spk_status spk_reader_open(const spk_mem *mem, const char *path, spk_reader **reader)
{
    spk_reader *r = NULL;
    struct stat info;
    SPK_TRY(reader_make(mem, path, &r));
    spk_status status = spk_alloc(mem, BUFFER_BYTES, 1, &r->buffer);
    if (status != SPK_OK)
        goto failed;
    int descriptor = spk_named_descriptor(path);
    do
        r->fd = descriptor >= 0 ? fcntl(descriptor, F_DUPFD_CLOEXEC, 0) : open(path, O_RDONLY | O_CLOEXEC);
    while (r->fd < 0 && errno == EINTR);
    if (r->fd < 0 || fstat(r->fd, &info) != 0) {
        status = spk_fail(SPK_ERR_IO, "%s: cannot open: %s", path, spk_system_error(errno));
        goto failed;
    }
    if (S_ISDIR(info.st_mode)) {
        status = spk_fail(SPK_ERR_IO, "%s: cannot read: it is a folder", path);
        goto failed;
    }
    r->bytes = r->buffer;
    /* a descriptor may stand in the middle: what is left of it is the file */
    off_t position = descriptor >= 0 ? lseek(r->fd, 0, SEEK_CUR) : 0;
    r->size = S_ISREG(info.st_mode) && position >= 0 && position <= info.st_size ? (int64_t)(info.st_size - position) : -1;
    if (r->size > 0)
        (void)posix_fadvise(r->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    *reader = r;
    return SPK_OK;
failed:
    spk_reader_close(&r);
    return status;
}

spk_status spk_reader_open_memory(const spk_mem *mem, const void *bytes, size_t count, const char *name, spk_reader **reader)
{
    SPK_TRY(reader_make(mem, name, reader));
    (*reader)->bytes = bytes;
    (*reader)->have = count;
    (*reader)->size = (int64_t)count;
    (*reader)->at_end = true;
    return SPK_OK;
}

void spk_reader_close(spk_reader **reader)
{
    if (!reader || !*reader)
        return;
    spk_reader *r = *reader;
    *reader = NULL;
    if (r->fd >= 0)
        close(r->fd);
    spk_mem mem = r->mem;
    spk_inflate_close(&r->inflate);
    spk_free(&mem, r->packed);
    spk_free(&mem, r->buffer);
    spk_free(&mem, r->name);
    spk_free(&mem, r);
}

const char *spk_reader_name(const spk_reader *reader)
{
    return reader->name;
}

int64_t spk_reader_offset(const spk_reader *reader)
{
    return reader->offset;
}

int64_t spk_reader_size(const spk_reader *reader)
{
    return reader->size;
}

void spk_reader_progress(const spk_reader *reader, int64_t *done, int64_t *total)
{
    *done = reader->inflate ? spk_inflate_used(reader->inflate) : reader->offset;
    *total = reader->inflate ? reader->packed_size : reader->size;
}

spk_status spk_reader_status(const spk_reader *reader)
{
    if (!reader->error)
        return SPK_OK;
    if (reader->error == UNPACKING)
        SPK_TRY(spk_inflate_status(reader->inflate, reader->name));
    return spk_fail(SPK_ERR_IO, "%s: byte %lld: cannot read: %s", reader->name, (long long)(reader->offset + (int64_t)reader->have),
                    spk_system_error(reader->error));
}

/* One read that is not disturbed by signals; 0 at the end, or with r->error. */
static size_t read_file(void *user, void *out, size_t room)
{
    spk_reader *r = user;
    for (;;) {
        ssize_t got = read(r->fd, out, room);
        if (got >= 0)
            return (size_t)got;
        if (errno != EINTR) {
            r->error = errno;
            return 0;
        }
    }
}

/* Sets at_end or error where it gives 0. */
static size_t read_some(spk_reader *r, void *out, size_t room)
{
    size_t got = r->inflate ? spk_inflate_read(r->inflate, out, room) : read_file(r, out, room);
    if (got == 0 && r->inflate && !r->error && spk_inflate_status(r->inflate, r->name) != SPK_OK)
        r->error = UNPACKING;
    r->at_end = got == 0 && !r->error;
    return got;
}

spk_status spk_reader_unpack(spk_reader *reader)
{
    spk_reader *r = reader;
    const unsigned char *bytes = NULL;
    size_t have = 0;
    SPK_TRY(spk_reader_window(r, 2, &bytes, &have));
    if (!spk_inflate_knows(bytes, have))
        return SPK_OK;
    unsigned char *buffer = NULL;
    SPK_TRY(spk_alloc(&r->mem, BUFFER_BYTES, 1, &buffer));
    spk_status status = spk_inflate_open(&r->mem, bytes, have, r->fd < 0 ? NULL : read_file, r, r->buffer, BUFFER_BYTES, &r->inflate);
    if (status != SPK_OK) {
        spk_free(&r->mem, buffer);
        return status;
    }
    r->packed = r->buffer;
    r->packed_size = r->size;
    r->bytes = r->buffer = buffer;
    r->have = 0;
    r->size = -1;
    r->at_end = false;
    return SPK_OK;
}

spk_status spk_reader_window(spk_reader *reader, size_t want, const unsigned char **bytes, size_t *have)
{
    spk_reader *r = reader;
    if (want > WINDOW_MAX)
        return spk_fail(SPK_ERR_INTERNAL, "%s: a window of %zu bytes, the limit is %zu", r->name, want, WINDOW_MAX);
    if (r->have < want && !r->at_end && !r->error) {
        memmove(r->buffer, r->bytes, r->have);
        r->bytes = r->buffer;
        while (r->have < want && !r->at_end && !r->error)
            r->have += read_some(r, r->buffer + r->have, BUFFER_BYTES - r->have);
    }
    if (r->error && r->have < want)
        return spk_reader_status(r);
    *bytes = r->bytes;
    *have = r->have;
    return SPK_OK;
}

void spk_reader_skip(spk_reader *reader, size_t count)
{
    if (count > reader->have)
        count = reader->have;
    if (count == 0)
        return;
    reader->bytes += count;
    reader->have -= count;
    reader->offset += (int64_t)count;
}

int spk_reader_peek(spk_reader *reader)
{
    const unsigned char *bytes;
    size_t have;
    if (reader->have == 0 && spk_reader_window(reader, 1, &bytes, &have) != SPK_OK)
        return -2;
    return reader->have ? reader->bytes[0] : -1;
}

int spk_reader_byte(spk_reader *reader)
{
    int byte = spk_reader_peek(reader);
    if (byte >= 0)
        spk_reader_skip(reader, 1);
    return byte;
}

static spk_status ends_early(const spk_reader *r, size_t missing)
{
    return spk_fail(SPK_ERR_FORMAT, "%s: ends after %lld bytes, %zu more are needed", r->name, (long long)r->offset, missing);
}

spk_status spk_reader_bytes(spk_reader *reader, void *out, size_t count)
{
    spk_reader *r = reader;
    unsigned char *to = out;
    while (count > 0) {
        if (r->have > 0) {
            size_t piece = r->have < count ? r->have : count;
            memcpy(to, r->bytes, piece);
            spk_reader_skip(r, piece);
            to += piece;
            count -= piece;
        } else if (r->error) {
            return spk_reader_status(r);
        } else if (r->at_end) {
            return ends_early(r, count);
        } else if (count >= DIRECT_MIN) {
            size_t got = read_some(r, to, count);
            r->offset += (int64_t)got;
            to += got;
            count -= got;
        } else {
            r->bytes = r->buffer;
            r->have = read_some(r, r->buffer, BUFFER_BYTES);
        }
    }
    return SPK_OK;
}

spk_status spk_reader_pass(spk_reader *reader, int64_t count)
{
    spk_reader *r = reader;
    if (r->size >= 0 && count > r->size - r->offset)
        return ends_early(r, (size_t)(count - (r->size - r->offset)));
    while (count > 0) {
        if (r->have > 0) {
            size_t piece = (int64_t)r->have < count ? r->have : (size_t)count;
            spk_reader_skip(r, piece);
            count -= (int64_t)piece;
        } else if (r->error) {
            return spk_reader_status(r);
        } else if (r->at_end) {
            return ends_early(r, (size_t)count);
        } else if (r->size >= 0 && count > (int64_t)BUFFER_BYTES && lseek(r->fd, (off_t)count, SEEK_CUR) >= 0) {
            r->offset += count;
            count = 0;
        } else {
            r->bytes = r->buffer;
            r->have = read_some(r, r->buffer, BUFFER_BYTES);
        }
    }
    return SPK_OK;
}
