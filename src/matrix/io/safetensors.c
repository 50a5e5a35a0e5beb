/* safetensors: one BSR matrix (three tensors, mostly with a metadata entry, see safetensors.h) or one plain dense tensor, by name. */
#include "matrix/io/safetensors.h"

#include <stdio.h>
#include <string.h>

#include "matrix/check.h"
#include "matrix/io/safetensors_names.h"

static const char *bsr_name(const char *key)
{
    size_t length = sizeof SPK_BSR_PREFIX - 1;
    return strncmp(key, SPK_BSR_PREFIX, length) == 0 ? key + length : NULL;
}

/* What there is to read: *bsr counts, the only one's name is in *only_bsr, *only_plain. The names are in the order of their letters. */
static spk_status survey(const spk_tensors *t, spk_name_list *names, const char **only_bsr, int64_t *bsr, const char **only_plain)
{
    const char *key, **all = NULL;
    json_t *entry;
    size_t count = 0;
    *bsr = 0;
    SPK_TRY(spk_alloc(t->in->mem, json_object_size(t->metadata) + (size_t)t->count, sizeof *all, &all));
    json_object_foreach(t->metadata, key, entry)
    {
        const char *name = bsr_name(key);
        if (name) {
            all[count++] = *only_bsr = name;
            ++*bsr;
        }
    }
    for (int64_t i = 0; i < t->count; i++) {
        if (t->list[i].bare) {
            all[count++] = *only_bsr = t->list[i].bare;
            ++*bsr;
        } else if (!t->list[i].in_bsr) {
            all[count++] = *only_plain = t->list[i].name;
        }
    }
    spk_names_list(t->in->tensor, all, count, names);
    spk_free(t->in->mem, all);
    return SPK_OK;
}

static const char *bsr_note(const spk_tensors *t, const char *name)
{
    const char *key;
    json_t *entry;
    json_object_foreach(t->metadata, key, entry)
    {
        const char *bsr = bsr_name(key);
        if (bsr && strcmp(bsr, name) == 0)
            return json_string_value(entry);
    }
    return NULL;
}

static bool is_bare(const spk_tensors *t, const char *name)
{
    for (int64_t i = 0; i < t->count; i++)
        if (t->list[i].bare && strcmp(t->list[i].bare, name) == 0)
            return true;
    return false;
}

/* *note is the metadata of the BSR matrix; NULL: *name is a bare triple or a plain tensor. */
static spk_status choose(const spk_tensors *t, const char **name, const char **note)
{
    spk_name_list names = {.used = 0};
    const char *only_bsr = NULL, *only_plain = NULL, *file = spk_reader_name(t->in->reader);
    int64_t bsr;
    SPK_TRY(survey(t, &names, &only_bsr, &bsr, &only_plain));
    if (names.count == 0)
        return spk_fail(SPK_ERR_FORMAT, "%s: holds no tensor", file);
    if (t->in->tensor) {
        *name = t->in->tensor;
        *note = bsr_note(t, *name);
        if (*note || is_bare(t, *name) || spk_tensors_find(t, *name))
            return SPK_OK;
        return spk_names_fail(file, *name, &names);
    }
    if (bsr > 1 || (bsr == 0 && names.count > 1))
        return spk_names_fail(file, NULL, &names);
    *name = bsr ? only_bsr : only_plain;
    *note = bsr ? bsr_note(t, *name) : NULL;
    return SPK_OK;
}

/* A piece of the file to be read as an array. */
typedef struct part {
    const spk_tensor *tensor;
    spk_array array;
    void *out;
} part;

static spk_status part_make(const spk_tensors *t, const spk_tensor *tensor, bool index, spk_dtype *dtype, part *out)
{
    const spk_type *type = spk_type_of_safetensors(tensor->dtype);
    const int64_t index_bytes = strcmp(tensor->dtype, "I32") == 0 ? 4 : strcmp(tensor->dtype, "I64") == 0 ? 8 : 0;
    if (index ? index_bytes > 0 : spk_type_holds_values(type->dtype)) {
        *out = (part){.tensor = tensor, .array.swap = __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__};
        out->array.from = index ? (spk_element){.bytes = index_bytes} : spk_element_of(type->dtype);
        out->array.to = (spk_element){.bytes = sizeof(int64_t)};
        out->array.count = (tensor->end - tensor->begin) / out->array.from.bytes;
        if (!index) {
            SPK_TRY(spk_io_dtype(t->in, type->dtype, dtype));
            out->array.to = spk_element_of(*dtype);
        }
        return SPK_OK;
    }
    char quoted[SPK_QUOTE_ROOM], its[SPK_QUOTE_ROOM];
    spk_io_quote(quoted, tensor->name, strlen(tensor->name));
    spk_io_quote(its, tensor->dtype, strlen(tensor->dtype));
    return spk_fail(SPK_ERR_UNSUPPORTED, "%s: tensor %s has the type %s, which is not supported here: %s", spk_reader_name(t->in->reader),
                    quoted, its, index ? "I32 and I64 are" : "F32, F64, F16 and BF16 are");
}

static spk_status part_read(const spk_tensors *t, part *p, int64_t *reported)
{
    SPK_TRY(spk_reader_pass(t->in->reader, t->data + p->tensor->begin - spk_reader_offset(t->in->reader)));
    return spk_io_array(t->in, &p->array, reported, &p->out);
}

static spk_status read_dense(const spk_tensors *t, const spk_tensor *tensor, spk_matrix **out)
{
    part p = {.out = NULL};
    int64_t reported = 0;
    char quoted[SPK_QUOTE_ROOM];
    spk_io_quote(quoted, tensor->name, strlen(tensor->name));
    if (tensor->rank < 1 || tensor->rank > 2)
        return spk_fail(SPK_ERR_UNSUPPORTED, "%s: tensor %s has %d dimensions: 1 (a column) and 2 are supported",
                        spk_reader_name(t->in->reader), quoted, tensor->rank);
    spk_matrix fields = {
        .format = SPK_DENSE, .rows = tensor->shape[0], .cols = tensor->rank == 2 ? tensor->shape[1] : 1, .block_rows = 1, .block_cols = 1};
    SPK_TRY(part_make(t, tensor, false, &fields.dtype, &p));
    if (fields.rows > SPK_SIZE_LIMIT || fields.cols > SPK_SIZE_LIMIT)
        return spk_io_fail_at(t->in, 8, "tensor %s is %lld x %lld, the limit is %lld", quoted, (long long)fields.rows,
                              (long long)fields.cols, (long long)SPK_SIZE_LIMIT);
    SPK_TRY(spk_io_check_room(t->in, p.array.count, p.array.to.bytes, 0));
    SPK_TRY(part_read(t, &p, &reported));
    fields.nnz = p.array.count;
    fields.values = p.out;
    spk_status status = spk_io_adopt(t->in->mem, &fields, out);
    if (status != SPK_OK)
        spk_free(t->in->mem, p.out);
    return status;
}

enum { OFFSETS, COLUMNS, VALUES, PARTS };
static const char *const suffixes[PARTS] = {"row_offsets", "col_indices", "values"};

static spk_status note_size(const spk_tensors *t, const json_t *note, const char *key, int64_t least, int64_t most, int64_t *out)
{
    const json_t *size = json_object_get(note, key);
    if (!json_is_integer(size) || json_integer_value(size) < least || json_integer_value(size) > most)
        return spk_io_fail_at(t->in, 8, "the BSR metadata's %s is not an integer in %lld..%lld", key, (long long)least, (long long)most);
    *out = (int64_t)json_integer_value(size);
    return SPK_OK;
}

static spk_status parse_note(const spk_tensors *t, const char *text, spk_matrix *fields)
{
    json_t *note = NULL;
    SPK_TRY(spk_tensors_json(t->in, text, strlen(text), "the BSR metadata", -1, &note));
    const char *layout = json_string_value(json_object_get(note, "block_layout"));
    spk_status status = SPK_OK;
    SPK_GOTO(note_size(t, note, "rows", 0, SPK_SIZE_LIMIT, &fields->rows));
    SPK_GOTO(note_size(t, note, "cols", 0, SPK_SIZE_LIMIT, &fields->cols));
    SPK_GOTO(note_size(t, note, "block_rows", 1, SPK_BLOCK_LIMIT, &fields->block_rows));
    SPK_GOTO(note_size(t, note, "block_cols", 1, SPK_BLOCK_LIMIT, &fields->block_cols));
    if (!layout || (strcmp(layout, "row") != 0 && strcmp(layout, "col") != 0))
        SPK_GOTO(spk_io_fail_at(t->in, 8, "the BSR metadata's block_layout is neither row nor col"));
    fields->layout = strcmp(layout, "col") == 0 ? SPK_COL_MAJOR : SPK_ROW_MAJOR;
    fields->pattern_only = json_is_true(json_object_get(note, "pattern_only"));
done:
    json_decref(note);
    return status;
}

/* Of a pattern alone: no values. */
static int parts_of(const spk_matrix *fields)
{
    return fields->pattern_only ? VALUES : PARTS;
}

static spk_status find_parts(const spk_tensors *t, const char *name, spk_matrix *fields, part parts[PARTS])
{
    size_t room = strlen(name) + 16;
    char *full = NULL;
    SPK_TRY(spk_alloc(t->in->mem, room, 1, &full));
    spk_status status = SPK_OK;
    if (fields->pattern_only)
        SPK_GOTO(spk_io_dtype(t->in, SPK_F32, &fields->dtype));
    for (int i = 0; i < parts_of(fields); i++) {
        snprintf(full, room, "%s.%s", name, suffixes[i]);
        const spk_tensor *tensor = spk_tensors_find(t, full);
        if (!tensor) {
            char quoted[SPK_QUOTE_ROOM];
            spk_io_quote(quoted, name, strlen(name));
            SPK_GOTO(spk_io_fail_at(t->in, 8, "the BSR matrix %s has no tensor for its %s", quoted, suffixes[i]));
        }
        SPK_GOTO(part_make(t, tensor, i != VALUES, &fields->dtype, &parts[i]));
    }
done:
    spk_free(t->in->mem, full);
    return status;
}

static spk_status check_shapes(const spk_tensors *t, const spk_matrix *fields, const part parts[PARTS])
{
    bool by_rows = fields->layout == SPK_ROW_MAJOR;
    int64_t want[PARTS][SPK_TENSOR_RANK] = {
        {spk_matrix_grid_rows(fields) + 1},
        {fields->nnz},
        {fields->nnz, by_rows ? fields->block_rows : fields->block_cols, by_rows ? fields->block_cols : fields->block_rows}};
    for (int i = 0; i < parts_of(fields); i++) {
        const spk_tensor *tensor = parts[i].tensor;
        int rank = i == VALUES ? 3 : 1;
        char quoted[SPK_QUOTE_ROOM];
        spk_io_quote(quoted, tensor->name, strlen(tensor->name));
        if (tensor->rank != rank)
            return spk_io_fail_at(t->in, 8, "tensor %s has %d dimensions, not %d", quoted, tensor->rank, rank);
        for (int j = 0; j < rank; j++)
            if (tensor->shape[j] != want[i][j])
                return spk_io_fail_at(t->in, 8, "tensor %s has the size %lld in dimension %d, not %lld", quoted,
                                      (long long)tensor->shape[j], j, (long long)want[i][j]);
    }
    int64_t offset_bytes, column_bytes; /* sizes that the file has shown: they overflow only in a pipe */
    if (__builtin_mul_overflow(want[OFFSETS][0], (int64_t)8, &offset_bytes) ||
        __builtin_mul_overflow(fields->nnz, (int64_t)8, &column_bytes) || __builtin_add_overflow(offset_bytes, column_bytes, &offset_bytes))
        offset_bytes = INT64_MAX;
    int64_t count = parts[VALUES].array.count;
    if (fields->pattern_only && __builtin_mul_overflow(fields->nnz, fields->block_rows * fields->block_cols, &count))
        count = INT64_MAX;
    return spk_io_check_room(t->in, count, (int64_t)spk_dtype_bytes(fields->dtype), offset_bytes);
}

static spk_status index_fail(const spk_tensors *t, const part *p, int64_t i, const char *what)
{
    char quoted[SPK_QUOTE_ROOM];
    spk_io_quote(quoted, p->tensor->name, strlen(p->tensor->name));
    return spk_io_fail_at(t->in, t->data + p->tensor->begin + i * p->array.from.bytes, "%s[%lld] = %lld: %s", quoted, (long long)i,
                          (long long)((const int64_t *)p->out)[i], what);
}

static spk_status check_indices(const spk_tensors *t, const spk_matrix *fields, const part parts[PARTS])
{
    const int64_t *offsets = parts[OFFSETS].out, *columns = parts[COLUMNS].out;
    int64_t grid_rows = spk_matrix_grid_rows(fields), grid_cols = spk_matrix_grid_cols(fields);
    if (offsets[0] != 0)
        return index_fail(t, &parts[OFFSETS], 0, "the first row offset is 0");
    for (int64_t i = 0; i < grid_rows; i++)
        if (offsets[i + 1] < offsets[i])
            return index_fail(t, &parts[OFFSETS], i + 1, "row offsets do not fall");
    if (offsets[grid_rows] != fields->nnz)
        return index_fail(t, &parts[OFFSETS], grid_rows, "the last row offset is the number of stored blocks");
    for (int64_t i = 0; i < fields->nnz; i++)
        if (columns[i] < 0 || columns[i] >= grid_cols)
            return index_fail(t, &parts[COLUMNS], i, "there is no such block column");
    return SPK_OK;
}

/* The file is read forwards only: the parts in the order of their places. */
static spk_status read_in_order(const spk_tensors *t, int count, part parts[PARTS])
{
    int64_t reported = 0;
    bool done[PARTS] = {false};
    for (int round = 0; round < count; round++) {
        int next = -1;
        for (int i = 0; i < count; i++)
            if (!done[i] && (next < 0 || parts[i].tensor < parts[next].tensor)) /* the list is sorted by place */
                next = i;
        SPK_TRY(part_read(t, &parts[next], &reported));
        done[next] = true;
    }
    return SPK_OK;
}

/* The values that a pattern alone stands for. */
static spk_status make_ones(const spk_tensors *t, const spk_matrix *fields, void **out)
{
    const int64_t count = spk_matrix_value_count(fields);
    SPK_TRY(spk_alloc(t->in->mem, (size_t)count, spk_dtype_bytes(fields->dtype), out));
    for (int64_t i = 0; i < count; i++)
        spk_value_set(*out, fields->dtype, i, 1);
    return SPK_OK;
}

/* note NULL: a bare triple. */
static spk_status read_bsr(const spk_tensors *t, const char *name, const char *note, spk_matrix **out)
{
    spk_matrix fields = {.format = SPK_BSR};
    part parts[PARTS] = {{.out = NULL}};
    spk_status status = SPK_OK;
    SPK_TRY(note ? parse_note(t, note, &fields) : spk_bare_sizes(t, name, &fields));
    SPK_TRY(find_parts(t, name, &fields, parts));
    fields.nnz = parts[COLUMNS].array.count;
    SPK_TRY(check_shapes(t, &fields, parts));
    SPK_GOTO(read_in_order(t, parts_of(&fields), parts));
    if (fields.cols < 0)
        SPK_GOTO(spk_bare_cols(t, name, parts[COLUMNS].out, &fields));
    SPK_GOTO(check_indices(t, &fields, parts));
    if (fields.pattern_only)
        SPK_GOTO(make_ones(t, &fields, &parts[VALUES].out));
    fields.row_offsets = parts[OFFSETS].out;
    fields.col_indices = parts[COLUMNS].out;
    fields.values = parts[VALUES].out;
    SPK_GOTO(spk_io_adopt(t->in->mem, &fields, out));
    return SPK_OK;
done:
    for (int i = 0; i < PARTS; i++)
        spk_free(t->in->mem, parts[i].out);
    return status;
}

/* A file whose size is known was checked against the header. Of a pipe or a compressed file the rest is seen now. */
static spk_status check_end(const spk_tensors *t)
{
    spk_reader *reader = t->in->reader;
    if (spk_reader_size(reader) >= 0)
        return SPK_OK;
    int64_t end = t->data + (t->count > 0 ? t->list[t->count - 1].end : 0);
    SPK_TRY(spk_reader_pass(reader, end - spk_reader_offset(reader)));
    int next = spk_reader_peek(reader);
    return next == -1 ? SPK_OK : next == -2 ? spk_reader_status(reader) : spk_io_fail_at(t->in, end, "bytes that belong to no tensor");
}

spk_status spk_read_safetensors(const spk_read_context *in, spk_matrix **out)
{
    spk_tensors tensors;
    spk_matrix *made = NULL;
    const char *name = NULL, *note = NULL;
    const spk_tensor *plain = NULL;
    spk_status status = spk_tensors_read(in, &tensors);
    if (status == SPK_OK)
        status = choose(&tensors, &name, &note);
    if (status == SPK_OK)
        plain = note || is_bare(&tensors, name) ? NULL : spk_tensors_find(&tensors, name);
    if (status == SPK_OK)
        status = plain ? read_dense(&tensors, plain, &made) : read_bsr(&tensors, name, note, &made);
    if (status == SPK_OK)
        status = check_end(&tensors);
    spk_tensors_release(&tensors);
    if (status == SPK_OK)
        *out = made;
    else
        spk_matrix_release(&made);
    return status;
}
