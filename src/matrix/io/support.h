/* What the readers share: limits, progress, arrays of unknown honesty, making the matrix. */
#ifndef SPK_MATRIX_IO_SUPPORT_H
#define SPK_MATRIX_IO_SUPPORT_H

#include "matrix/io/io.h"

/* 'text' for a message: at most 40 characters, what does not print as '?'. */
enum { SPK_QUOTE_ROOM = 48 };
void spk_io_quote(char out[SPK_QUOTE_ROOM], const char *text, size_t length);

/* Tells the progress every few megabytes; *reported is 0 at first. */
void spk_io_progress(const spk_read_context *in, int64_t *reported);

/* SPK_ERR_FORMAT where a result of count * size (+ more) bytes is over in->max_bytes. */
spk_status spk_io_check_room(const spk_read_context *in, int64_t count, int64_t size, int64_t more);

/* SPK_ERR_FORMAT "<name>: byte <offset>: ...". */
__attribute__((format(printf, 3, 4))) spk_status spk_io_fail_at(const spk_read_context *in, int64_t offset, const char *format, ...);

/* dtype of the result; SPK_ERR_UNSUPPORTED unless f32, f64, or the half that the file has. */
spk_status spk_io_dtype(const spk_read_context *in, spk_dtype of_file, spk_dtype *dtype);

/* A list of elements that grows with what the file has shown. Capacity and byte limit hold for one array of several. */
typedef struct spk_growth {
    int64_t capacity, most; /* elements there is room for; that there can ever be */
} spk_growth;

/* The room for `count` announced elements to begin with, where `left` bytes (-1: unknown) hold at least `least_bytes` each. */
spk_growth spk_growth_start(int64_t count, int64_t left, int64_t least_bytes);
/* The next capacity. */
int64_t spk_growth_next(const spk_growth *growth);

/* Of an array, in a file or here. */
typedef struct spk_element {
    spk_dtype dtype; /* SPK_DTYPE_DEFAULT: an integer, for indices */
    int64_t bytes;
} spk_element;
spk_element spk_element_of(spk_dtype dtype);

/* count elements of the file (swap: of the other byte order) as an array of another type: f32 and f64 from any, halves from themselves, i64
 * from integers. Integers become no floating-point numbers. */
typedef struct spk_array {
    int64_t count;
    spk_element from, to;
    bool swap;
} spk_array;
spk_status spk_io_array(const spk_read_context *in, const spk_array *array, int64_t *reported, void *out_pointer);

/* A matrix around arrays that become its own. values NULL is not allowed; arrays that the format does not have are NULL. */
spk_status spk_io_adopt(const spk_mem *mem, const spk_matrix *fields, spk_matrix **out);

#endif
