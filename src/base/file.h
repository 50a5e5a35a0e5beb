/* Files: buffered reading with byte offsets, and writing aside + fsync + rename. */
#ifndef SPK_BASE_FILE_H
#define SPK_BASE_FILE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/mem.h"

/* A write that replaces `path` only on commit. Nothing is left behind on abort. */
typedef struct spk_writer spk_writer;
spk_status spk_writer_open(const spk_mem *mem, const char *path, spk_writer **writer);
/* From now on the writer stops with SPK_ERR_INTERRUPTED once *interrupted is not zero. */
void spk_writer_heed(spk_writer *writer, const atomic_int *interrupted);
spk_status spk_writer_bytes(spk_writer *writer, const void *bytes, size_t count); /* buffered */
__attribute__((format(printf, 2, 3))) spk_status spk_writer_printf(spk_writer *writer, const char *format, ...);
spk_status spk_writer_commit(spk_writer **writer); /* flush, fsync, rename, fsync the folder; releases the writer either way */
void spk_writer_abort(spk_writer **writer);        /* accepts NULL */

/* Buffered sequential reading. */
typedef struct spk_reader spk_reader;
spk_status spk_reader_open(const spk_mem *mem, const char *path, spk_reader **reader);
/* The same from memory (fuzzing): the bytes are borrowed. */
spk_status spk_reader_open_memory(const spk_mem *mem, const void *bytes, size_t count, const char *name, spk_reader **reader);
/* Before anything is read: from now on the reader gives what a gzip file holds, where the file is one. Its size is then unknown. */
spk_status spk_reader_unpack(spk_reader *reader);
void spk_reader_close(spk_reader **reader);

const char *spk_reader_name(const spk_reader *reader);
int64_t spk_reader_offset(const spk_reader *reader); /* of the next byte */
int64_t spk_reader_size(const spk_reader *reader);   /* of the whole file; -1 for a pipe, and for what is unpacked */
/* How far reading is, in bytes of the file as it lies on the disk; *total -1: unknown. */
void spk_reader_progress(const spk_reader *reader, int64_t *done, int64_t *total);

/* Next byte, or -1 at the end, or -2 on a read error (spk_reader_status tells). */
int spk_reader_byte(spk_reader *reader);
int spk_reader_peek(spk_reader *reader);
spk_status spk_reader_status(const spk_reader *reader);

/* At least `want` bytes in one piece where the file has them (want <= 1 MiB); *have says how many there are. Does not consume. */
spk_status spk_reader_window(spk_reader *reader, size_t want, const unsigned char **bytes, size_t *have);
void spk_reader_skip(spk_reader *reader, size_t count); /* count <= have of the last window */

/* Exactly count bytes, else SPK_ERR_FORMAT "ends after ... bytes". */
spk_status spk_reader_bytes(spk_reader *reader, void *out, size_t count);

/* Passes over count bytes, however many; a regular file is not read for it. */
spk_status spk_reader_pass(spk_reader *reader, int64_t count);

/* The open descriptor that /dev/stdout and the like name; opening it anew would lose its position, and renaming would replace the link
 * itself. -1: the path is none of them. */
int spk_named_descriptor(const char *path);

/* Folder of a path made with its parents (mode 0700 for new ones). */
spk_status spk_make_folders(const char *path_of_file);

#endif
