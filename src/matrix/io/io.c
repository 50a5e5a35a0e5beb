/* Which reader or writer a file gets: reading goes by content and, for .smtx, which has no mark, by
 * extension first; writing by extension, or as the caller says. */
#include "matrix/io/io.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/c_locale.h"
#include "base/callback.h"
#include "matrix/check.h"
#include "matrix/io/safetensors_index.h"

typedef spk_status (*read_function)(const spk_read_context *in, spk_matrix **out);
typedef spk_status (*write_function)(const spk_matrix *matrix, spk_writer *writer, const spk_write_options *options);

static const struct {
    const char *extension;
    read_function read;
    write_function write;
} formats[] = {{".mtx", spk_read_mtx, spk_write_mtx},
               {".smtx", spk_read_smtx, spk_write_smtx},
               {".npy", spk_read_npy, spk_write_npy},
               {".safetensors", spk_read_safetensors, spk_write_safetensors}};

enum { FORMATS = sizeof formats / sizeof *formats };

/* Index of the path's extension in formats; -1: another. */
static int by_extension(const char *path, size_t length)
{
    for (int i = 0; i < FORMATS; i++)
        if (spk_ends_with(path, length, formats[i].extension))
            return i;
    return -1;
}

static int by_name(const char *name)
{
    int i = FORMATS - 1;
    while (i >= 0 && strcmp(name, formats[i].extension + 1) != 0)
        i--;
    return i;
}

/* The sizes of an .smtx file: "5, 7, 9". */
static bool is_list(const unsigned char *bytes, size_t have)
{
    size_t digits = 0;
    while (digits < have && bytes[digits] >= '0' && bytes[digits] <= '9')
        digits++;
    return digits > 0 && digits < have && bytes[digits] == ',';
}

/* The reader by the first bytes; NULL: they have no mark. */
static read_function by_content(const unsigned char *bytes, size_t have)
{
    static const char market[] = "%%MatrixMarket";
    if (have >= sizeof market - 1 && spk_same_letters((const char *)bytes, market, sizeof market - 1))
        return spk_read_mtx;
    if (have >= 6 && memcmp(bytes, "\x93NUMPY", 6) == 0)
        return spk_read_npy;
    if (have >= 9 && bytes[8] == '{' && memcmp(bytes + 4, "\0\0\0\0", 4) == 0)
        return spk_read_safetensors;
    return NULL;
}

static spk_status pick_reader(const spk_read_context *in, const char *path, read_function *reader)
{
    const unsigned char *bytes;
    size_t have;
    size_t length = strlen(path);
    bool packed = spk_ends_with(path, length, ".gz");
    int format = by_extension(path, packed ? length - 3 : length);
    SPK_TRY(spk_reader_window(in->reader, 16, &bytes, &have));
    *reader = by_content(bytes, have);
    if (*reader)
        return SPK_OK;
    if (have >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b)
        return spk_fail(SPK_ERR_FORMAT, "%s: is compressed twice by gzip: decompress it first", path);
    if (have >= 2 && bytes[0] == 'P' && bytes[1] == 'K')
        return spk_fail(SPK_ERR_FORMAT,
                        "%s: is a zip archive, as NumPy's .npz and SciPy's: save one array with numpy.save, or a sparse matrix with "
                        "scipy.io.mmwrite",
                        path);
    if (format < 0 && is_list(bytes, have))
        format = by_name("smtx");
    if (format < 0)
        return spk_fail(SPK_ERR_FORMAT, "%s: byte 0: is none of .mtx, .smtx, .npy, .safetensors", path);
    *reader = formats[format].read; /* it knows best what is wrong */
    return SPK_OK;
}

/* Three quarters of the machine's memory. */
static int64_t default_limit(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (int64_t)pages / 4 * 3 * page : INT64_MAX;
}

/* The matrix cast to a half, or released where a value is out of range. */
static spk_status make_half(const spk_read_context *in, spk_dtype dtype, spk_matrix **matrix)
{
    spk_matrix *whole = *matrix, *half = NULL;
    if (whole->dtype == dtype)
        return SPK_OK;
    *matrix = NULL;
    spk_status status = spk_convert_cast(in->mem, whole, dtype, &half);
    int64_t count = spk_matrix_value_count(whole);
    for (int64_t i = 0; status == SPK_OK && i < count; i++) {
        double value = spk_value_get(whole->values, whole->dtype, i);
        if (isfinite(value) && isinf(spk_value_get(half->values, dtype, i)))
            status = spk_fail(SPK_ERR_FORMAT, "%s: the value %g is out of the range of %s", spk_reader_name(in->reader), value,
                              spk_dtype_name(dtype));
    }
    spk_matrix_release(&whole);
    if (status == SPK_OK)
        *matrix = half;
    else
        spk_matrix_release(&half);
    return status;
}

spk_status spk_read_matrix(const spk_mem *mem, const char *path, const spk_read_options *options, spk_progress progress,
                           void *progress_user, spk_matrix **out)
{
    return spk_read_matrix_remarking(mem, path, options, progress, progress_user, NULL, out);
}

/* A matrix of as many columns as the caller said. */
static spk_status check_cols(const spk_read_context *in, spk_matrix **matrix)
{
    const int64_t cols = (*matrix)->cols;
    if (in->cols == 0 || in->cols == cols)
        return SPK_OK;
    spk_matrix_release(matrix);
    return spk_fail(SPK_ERR_ARGUMENT, "%s: the matrix has %lld columns, and cols = %lld", spk_reader_name(in->reader), (long long)cols,
                    (long long)in->cols);
}

/* From one of a model's files, none of which is an index itself. */
static spk_status read_by_index(spk_read_context *in, const spk_read_options *options, char *remark, spk_matrix **out)
{
    char *file = NULL, *tensor = NULL;
    spk_read_options of_file = options ? *options : (spk_read_options){SPK_SIZED(spk_read_options)};
    spk_status status = spk_index_find(in, &file, &tensor);
    spk_reader_close(&in->reader);
    of_file.tensor = tensor;
    if (status == SPK_OK)
        status = spk_read_matrix_remarking(in->mem, file, &of_file, in->progress, in->progress_user, remark, out);
    spk_free(in->mem, file);
    spk_free(in->mem, tensor);
    return status;
}

spk_status spk_read_matrix_remarking(const spk_mem *mem, const char *path, const spk_read_options *options, spk_progress progress,
                                     void *progress_user, char *remark, spk_matrix **out)
{
    spk_read_context in = {.mem = mem, .progress = progress, .progress_user = progress_user, .remark = remark};
    in.path = spk_named_descriptor(path) < 0 ? path : NULL;
    read_function read = NULL;
    if (options) {
        in.tensor = options->tensor;
        in.dtype = options->dtype;
        in.max_bytes = options->max_bytes;
        in.cols = options->cols;
    }
    if (in.cols < 0 || in.cols > SPK_SIZE_LIMIT)
        return spk_fail(SPK_ERR_ARGUMENT, "cols = %lld: the limits are 0 and %lld", (long long)in.cols, (long long)SPK_SIZE_LIMIT);
    if (in.max_bytes < 0)
        return spk_fail(SPK_ERR_ARGUMENT, "max_bytes = %lld is negative", (long long)in.max_bytes);
    if (in.max_bytes == 0)
        in.max_bytes = default_limit();
    spk_dtype half = spk_type_holds_values(in.dtype) && spk_type_is_narrow(in.dtype) ? in.dtype : SPK_DTYPE_DEFAULT;
    if (half != SPK_DTYPE_DEFAULT)
        in.dtype = SPK_DTYPE_DEFAULT; /* as the file has it first, so that values are rounded once */
    SPK_TRY(spk_reader_open(mem, path, &in.reader));
    if (spk_ends_with(path, strlen(path), SPK_INDEX_ENDING))
        return read_by_index(&in, options, remark, out);
    spk_status status = spk_reader_unpack(in.reader);
    if (status == SPK_OK)
        status = pick_reader(&in, path, &read);
    spk_matrix *made = NULL;
    if (status == SPK_OK)
        status = read(&in, &made);
    if (status == SPK_OK)
        status = check_cols(&in, &made);
    if (status == SPK_OK && half != SPK_DTYPE_DEFAULT)
        status = make_half(&in, half, &made);
    if (status == SPK_OK)
        *out = made;
    if (status == SPK_OK) {
        int64_t done, total;
        spk_reader_progress(in.reader, &done, &total);
        spk_tell_progress(progress, progress_user, done, done, "reading");
    }
    spk_reader_close(&in.reader);
    return status;
}

spk_status spk_write_matrix(const spk_mem *mem, const spk_matrix *matrix, const char *path, const spk_write_options *options)
{
    return spk_write_matrix_until(mem, matrix, path, options, NULL);
}

spk_status spk_write_matrix_until(const spk_mem *mem, const spk_matrix *matrix, const char *path, const spk_write_options *options,
                                  const atomic_int *interrupted)
{
    spk_writer *writer = NULL;
    const char *name = options ? options->format : NULL;
    int format = name ? by_name(name) : by_extension(path, strlen(path));
    if (format < 0 && name)
        return spk_fail(SPK_ERR_ARGUMENT, "format = '%s' is none of mtx, smtx, npy, safetensors", name);
    if (format < 0)
        return spk_fail(SPK_ERR_ARGUMENT, "path = '%s' has none of the extensions .mtx, .smtx, .npy, .safetensors", path);
    SPK_TRY(spk_writer_open(mem, path, &writer));
    spk_writer_heed(writer, interrupted);
    spk_status status = formats[format].write(matrix, writer, options);
    if (status != SPK_OK) {
        spk_writer_abort(&writer);
        return status;
    }
    return spk_writer_commit(&writer);
}
