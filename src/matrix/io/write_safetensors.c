/* safetensors out: BSR as three tensors and a metadata entry (see safetensors.h), dense as one row-major tensor. The data begin at
 * a multiple of eight bytes, the index tensors come first, so every tensor is aligned. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json_text.h"
#include "matrix/io/io.h"
#include "matrix/io/safetensors.h"

#define PIECE_BYTES 65536

static spk_status header_fail(void)
{
    return spk_fail(SPK_ERR_OUT_OF_MEMORY, "out of memory: the header of a safetensors file");
}

/* Where Jansson's text goes: it is counted, and written where there is a writer. json_dumps would gather it, and passes over a failure
 * to. */
typedef struct header_text {
    spk_writer *writer;
    size_t length;
    spk_status status; /* the first failure */
} header_text;

static int take_text(const char *bytes, size_t count, void *user)
{
    header_text *text = user;
    text->length += count;
    if (text->writer && text->status == SPK_OK)
        text->status = spk_writer_bytes(text->writer, bytes, count);
    return text->status == SPK_OK ? 0 : -1;
}

static spk_status dump(const json_t *root, header_text *text)
{
    bool failed = spk_json_dump(root, take_text, text, JSON_COMPACT) != 0;
    return failed && text->status == SPK_OK ? header_fail() : text->status;
}

/* Length, header padded with blanks so that the data are aligned. */
static spk_status write_header(spk_writer *writer, const json_t *root)
{
    static const char blanks[8] = "        ";
    unsigned char bytes[8];
    header_text counted = {.writer = NULL}, written = {.writer = writer};
    SPK_TRY(dump(root, &counted));
    size_t padding = (8 - counted.length % 8) % 8;
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)((uint64_t)(counted.length + padding) >> (8 * i));
    SPK_TRY(spk_writer_bytes(writer, bytes, sizeof bytes));
    SPK_TRY(dump(root, &written));
    if (written.length != counted.length)
        return header_fail();
    return spk_writer_bytes(writer, blanks, padding);
}

/* Adds a tensor behind those that are there; *end is where its bytes end. Takes the reference to shape (NULL: out of memory). */
static spk_status add_tensor(const spk_matrix *m, json_t *root, const char *name, const char *suffix, const char *dtype, json_t *shape,
                             int64_t bytes, int64_t *end)
{
    size_t room = strlen(name) + strlen(suffix) + 1;
    char *full = NULL;
    json_int_t begin = *end;
    *end += bytes;
    spk_status status = spk_alloc(&m->mem, room, 1, &full);
    if (status != SPK_OK) {
        json_decref(shape);
        return status;
    }
    snprintf(full, room, "%s%s", name, suffix);
    json_t *entry = json_pack("{s:s, s:o, s:[I,I]}", "dtype", dtype, "shape", shape, "data_offsets", begin, (json_int_t)*end);
    if (!entry || json_object_set_new(root, full, entry) != 0)
        status = header_fail();
    spk_free(&m->mem, full);
    return status;
}

static spk_status describe_bsr(const spk_matrix *m, const char *name, json_t *root)
{
    char note[320];
    bool by_rows = m->layout == SPK_ROW_MAJOR;
    json_int_t offsets = spk_matrix_grid_rows(m) + 1, blocks = m->nnz, rows = m->block_rows, cols = m->block_cols;
    int64_t end = 0, size = (int64_t)spk_dtype_bytes(m->dtype);
    snprintf(note, sizeof note, "{\"rows\":%lld,\"cols\":%lld,\"block_rows\":%lld,\"block_cols\":%lld,\"block_layout\":\"%s\"%s}",
             (long long)m->rows, (long long)m->cols, (long long)rows, (long long)cols, by_rows ? "row" : "col",
             m->pattern_only ? ",\"pattern_only\":true" : "");
    char *key = NULL;
    size_t room = sizeof SPK_BSR_PREFIX + strlen(name);
    SPK_TRY(spk_alloc(&m->mem, room, 1, &key));
    snprintf(key, room, "%s%s", SPK_BSR_PREFIX, name);
    json_t *metadata = json_pack("{s:s}", key, note);
    spk_free(&m->mem, key);
    if (!metadata || json_object_set_new(root, "__metadata__", metadata) != 0)
        return header_fail();
    SPK_TRY(add_tensor(m, root, name, ".row_offsets", "I64", json_pack("[I]", offsets), offsets * 8, &end));
    SPK_TRY(add_tensor(m, root, name, ".col_indices", "I64", json_pack("[I]", blocks), blocks * 8, &end));
    if (m->pattern_only)
        return SPK_OK;
    json_t *shape = by_rows ? json_pack("[I,I,I]", blocks, rows, cols) : json_pack("[I,I,I]", blocks, cols, rows);
    return add_tensor(m, root, name, ".values", spk_type_of(m->dtype)->safetensors, shape, blocks * rows * cols * size, &end);
}

static spk_status write_rows(const spk_matrix *m, spk_writer *writer)
{
    uint64_t piece[PIECE_BYTES / 8];
    size_t size = spk_dtype_bytes(m->dtype), used = 0;
    if (m->layout == SPK_ROW_MAJOR || m->nnz == 0)
        return spk_writer_bytes(writer, m->values, (size_t)m->nnz * size);
    for (int64_t row = 0; row < m->rows; row++) {
        for (int64_t col = 0; col < m->cols; col++) {
            memcpy((char *)piece + used, (const char *)m->values + (size_t)(row + col * m->rows) * size, size);
            used += size;
            if (used == sizeof piece) {
                SPK_TRY(spk_writer_bytes(writer, piece, used));
                used = 0;
            }
        }
    }
    return spk_writer_bytes(writer, piece, used);
}

static spk_status write_data(const spk_matrix *m, spk_writer *writer)
{
    if (m->format == SPK_DENSE)
        return write_rows(m, writer);
    SPK_TRY(spk_writer_bytes(writer, m->row_offsets, (size_t)(spk_matrix_grid_rows(m) + 1) * 8));
    SPK_TRY(spk_writer_bytes(writer, m->col_indices, (size_t)m->nnz * 8));
    if (m->pattern_only)
        return SPK_OK;
    return spk_writer_bytes(writer, m->values, (size_t)spk_matrix_value_count(m) * spk_dtype_bytes(m->dtype));
}

static spk_status check_name(const char *name)
{
    errno = 0;
    json_t *text = json_string(name); /* NULL where it is not UTF-8 */
    if (!text && errno == ENOMEM)
        return header_fail();
    bool good = text && *name && strcmp(name, "__metadata__") != 0;
    json_decref(text);
    return good ? SPK_OK : spk_fail(SPK_ERR_ARGUMENT, "tensor = '%s' is no name: text in UTF-8, not empty, not __metadata__", name);
}

spk_status spk_write_safetensors(const spk_matrix *matrix, spk_writer *writer, const spk_write_options *options)
{
    const char *name = options && options->tensor ? options->tensor : "matrix";
    int64_t end = 0;
    if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
        return spk_fail(SPK_ERR_UNSUPPORTED, "safetensors files are written on little-endian machines only");
    if (matrix->format != SPK_DENSE && matrix->format != SPK_BSR)
        return spk_fail(SPK_ERR_ARGUMENT, "safetensors holds BSR and dense matrices, and this one is neither: convert it first");
    SPK_TRY(check_name(name));
    json_t *root = json_object();
    if (!root)
        return header_fail();
    spk_status status = matrix->format == SPK_BSR ? describe_bsr(matrix, name, root)
                                                  : add_tensor(matrix, root, name, "", spk_type_of(matrix->dtype)->safetensors,
                                                               json_pack("[I,I]", (json_int_t)matrix->rows, (json_int_t)matrix->cols),
                                                               matrix->nnz * (int64_t)spk_dtype_bytes(matrix->dtype), &end);
    if (status == SPK_OK)
        status = write_header(writer, root);
    json_decref(root);
    return status == SPK_OK ? write_data(matrix, writer) : status;
}
