/* Readers and writers, one file a format. A reader takes a spk_reader (file or memory, so that it can be fuzzed), a limit on the
 * memory it may ask for, and gives a matrix or an error with a line or byte offset: SPK_ERR_FORMAT for a malformed file,
 * SPK_ERR_UNSUPPORTED for a good one of a kind that is not read, SPK_ERR_ARGUMENT where it does not say which of several tensors. It
 * never trusts a count in the file before the file has shown that it holds as much. */
#ifndef SPK_MATRIX_IO_H
#define SPK_MATRIX_IO_H

#include "base/file.h"
#include "matrix/matrix.h"

enum { SPK_REMARK_ROOM = 400 };

typedef struct spk_read_context {
    const spk_mem *mem;
    spk_reader *reader;
    const char *tensor; /* safetensors, or NULL */
    int64_t cols;     /* of a BSR matrix of which the file does not tell; 0: as config.json beside `path` says, else up to the last block */
    const char *path; /* of a file beside which others may lie; NULL: of none */
    char *remark;     /* NULL, or SPK_REMARK_ROOM bytes: what was assumed of a matrix that was read */
    spk_dtype dtype;  /* wanted; SPK_DTYPE_DEFAULT: the file's */
    int64_t max_bytes;     /* of memory for the result; a file that needs more is refused with SPK_ERR_FORMAT */
    spk_progress progress; /* may be NULL: bytes read of bytes in all */
    void *progress_user;
} spk_read_context;

spk_status spk_read_mtx(const spk_read_context *in, spk_matrix **out);
spk_status spk_read_smtx(const spk_read_context *in, spk_matrix **out);
spk_status spk_read_npy(const spk_read_context *in, spk_matrix **out);
spk_status spk_read_safetensors(const spk_read_context *in, spk_matrix **out);

spk_status spk_write_mtx(const spk_matrix *matrix, spk_writer *writer, const spk_write_options *options);
spk_status spk_write_smtx(const spk_matrix *matrix, spk_writer *writer, const spk_write_options *options);
spk_status spk_write_npy(const spk_matrix *matrix, spk_writer *writer, const spk_write_options *options);
spk_status spk_write_safetensors(const spk_matrix *matrix, spk_writer *writer, const spk_write_options *options);

/* Dispatch by content and extension (io.c). remark: as in spk_read_context. */
spk_status spk_read_matrix_remarking(const spk_mem *mem, const char *path, const spk_read_options *options, spk_progress progress,
                                     void *progress_user, char *remark, spk_matrix **out);
spk_status spk_read_matrix(const spk_mem *mem, const char *path, const spk_read_options *options, spk_progress progress,
                           void *progress_user, spk_matrix **out);
spk_status spk_write_matrix(const spk_mem *mem, const spk_matrix *matrix, const char *path, const spk_write_options *options);
/* Stops with SPK_ERR_INTERRUPTED once *interrupted (NULL: never) is not zero. */
spk_status spk_write_matrix_until(const spk_mem *mem, const spk_matrix *matrix, const char *path, const spk_write_options *options,
                                  const atomic_int *interrupted);

#endif
