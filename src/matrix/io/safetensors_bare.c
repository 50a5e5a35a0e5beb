/* The sizes of a bare triple of a safetensors file, of which the file itself tells the block and the number of block rows: a model that
 * transformers saved has them in config.json beside it, under "quantization_config". */
#include "matrix/io/safetensors.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "matrix/check.h"

static spk_status bare_fail(const spk_tensors *t, const char *name, const char *what)
{
    char quoted[SPK_QUOTE_ROOM];
    spk_io_quote(quoted, name, strlen(name));
    return spk_io_fail_at(t->in, 8, "the BSR matrix %s %s", quoted, what);
}

/* The tensors that the header found to be there. */
static const spk_tensor *part_of(const spk_tensors *t, const char *name, const char *suffix)
{
    const size_t length = strlen(name);
    for (int64_t i = 0; i < t->count; i++)
        if (strncmp(t->list[i].name, name, length) == 0 && strcmp(t->list[i].name + length, suffix) == 0)
            return &t->list[i];
    return NULL;
}

/* config.json beside the file; *json stays NULL where there is none. */
static spk_status read_config(const spk_read_context *in, json_t **json)
{
    char *path = NULL, *text = NULL;
    spk_reader *reader = NULL;
    struct stat facts;
    const char *slash = strrchr(in->path, '/');
    const size_t folder = slash ? (size_t)(slash + 1 - in->path) : 0, room = folder + sizeof "config.json";
    SPK_TRY(spk_alloc(in->mem, room, 1, &path));
    snprintf(path, room, "%.*sconfig.json", (int)folder, in->path);
    spk_status status = SPK_OK;
    if (stat(path, &facts) != 0 || !S_ISREG(facts.st_mode))
        goto done;
    if (facts.st_size > SPK_TENSORS_HEADER_MEMORY)
        SPK_GOTO(spk_fail(SPK_ERR_FORMAT, "%s: has %lld bytes; the limit is %lld", path, (long long)facts.st_size,
                          (long long)SPK_TENSORS_HEADER_MEMORY));
    SPK_GOTO(spk_alloc(in->mem, (size_t)facts.st_size, 1, &text));
    SPK_GOTO(spk_reader_open(in->mem, path, &reader));
    SPK_GOTO(spk_reader_bytes(reader, text, (size_t)facts.st_size));
    SPK_GOTO(spk_tensors_json(in, text, (size_t)facts.st_size, "config.json beside it", -1, json));
done:
    spk_reader_close(&reader);
    spk_free(in->mem, text);
    spk_free(in->mem, path);
    return status;
}

static bool whole(const json_t *object, const char *key, int64_t *out)
{
    const json_t *value = json_object_get(object, key);
    *out = json_is_integer(value) ? (int64_t)json_integer_value(value) : -1;
    return *out >= 0;
}

/* What the Python package writes, and all that it reads. Another key might change what the tensors mean. */
static const char *const known_words[] = {"loader", "needs", "layers", "quant_method", NULL};
static const char *const known_facts[] = {"in_features", "out_features", "block", "blocks", "bias", "activation", NULL};

static spk_status check_keys(const spk_tensors *t, const char *name, json_t *object, const char *const *known)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        const char *const *one = known;
        while (*one && strcmp(*one, key) != 0)
            one++;
        if (!*one) {
            char quoted[SPK_QUOTE_ROOM], what[SPK_QUOTE_ROOM + 64];
            spk_io_quote(quoted, key, strlen(key));
            snprintf(what, sizeof what, "has %s in config.json beside it, which is not known", quoted);
            return bare_fail(t, name, what);
        }
    }
    return SPK_OK;
}

static bool is_ours(const json_t *method, const char *key)
{
    const char *text = json_string_value(json_object_get(method, key));
    return text && strcmp(text, "sparse_autotune") == 0;
}

static spk_status check_method(const spk_tensors *t, const char *name, json_t *method, json_t *layer)
{
    const char *keys[] = {"loader", "quant_method"};
    for (int i = 0; i < 2; i++) {
        if (json_object_get(method, keys[i]) && !is_ours(method, keys[i]))
            return bare_fail(t, name, "has two methods in config.json beside it: loader and quant_method differ");
    }
    SPK_TRY(check_keys(t, name, method, known_words));
    return check_keys(t, name, layer, known_facts);
}

/* Rows and columns by what config.json says of the layer of that name, if anything. */
static spk_status take_layer(const spk_tensors *t, const char *name, const json_t *config, spk_matrix *fields)
{
    json_t *method = json_object_get(config, "quantization_config"), *layer = json_object_get(json_object_get(method, "layers"), name);
    const json_t *block = json_object_get(layer, "block");
    int64_t rows, cols;
    if (!layer || (!is_ours(method, "loader") && !is_ours(method, "quant_method"))) /* the latter is the preview's */
        return SPK_OK;
    SPK_TRY(check_method(t, name, method, layer));
    const bool has_block = json_array_size(block) == 2 && json_integer_value(json_array_get(block, 0)) == fields->block_rows &&
                           json_integer_value(json_array_get(block, 1)) == fields->block_cols;
    if (!has_block || !whole(layer, "out_features", &rows) || !whole(layer, "in_features", &cols) || rows > fields->rows ||
        rows <= fields->rows - fields->block_rows || cols > SPK_SIZE_LIMIT)
        return bare_fail(t, name, "is another than config.json beside it describes");
    fields->rows = rows;
    fields->cols = cols;
    return SPK_OK;
}

spk_status spk_bare_sizes(const spk_tensors *t, const char *name, spk_matrix *fields)
{
    const spk_tensor *values = part_of(t, name, ".values"), *offsets = part_of(t, name, ".row_offsets");
    json_t *config = NULL;
    fields->layout = SPK_ROW_MAJOR;
    fields->block_rows = values->shape[1];
    fields->block_cols = values->shape[2];
    if (fields->block_rows < 1 || fields->block_rows > SPK_BLOCK_LIMIT || fields->block_cols < 1 || fields->block_cols > SPK_BLOCK_LIMIT)
        return spk_io_fail_at(t->in, 8, "the BSR matrix has blocks of %lld x %lld; each size is in 1..%lld", (long long)fields->block_rows,
                              (long long)fields->block_cols, (long long)SPK_BLOCK_LIMIT);
    if (offsets->shape[0] < 1)
        return bare_fail(t, name, "has no row offsets: the first is 0");
    if (__builtin_mul_overflow(offsets->shape[0] - 1, fields->block_rows, &fields->rows) || fields->rows > SPK_SIZE_LIMIT)
        return bare_fail(t, name, "has more rows than a matrix can have");
    fields->cols = t->in->cols > 0 ? t->in->cols : -1;
    if (t->in->path == NULL)
        return SPK_OK;
    spk_status status = read_config(t->in, &config);
    if (status == SPK_ERR_FORMAT) { /* it need not be a model's */
        if (t->in->remark && fields->cols < 0)
            snprintf(t->in->remark, SPK_REMARK_ROOM, "config.json beside it is passed over: %.150s", spk_error_last());
        return SPK_OK;
    }
    if (status == SPK_OK)
        status = take_layer(t, name, config, fields);
    json_decref(config);
    return status;
}

spk_status spk_bare_cols(const spk_tensors *t, const char *name, const int64_t *columns, spk_matrix *fields)
{
    int64_t last = -1;
    char quoted[SPK_QUOTE_ROOM];
    for (int64_t i = 0; i < fields->nnz; i++)
        last = columns[i] > last ? columns[i] : last;
    spk_io_quote(quoted, name, strlen(name));
    if (fields->nnz == 0)
        return spk_fail(SPK_ERR_ARGUMENT, "%s: nothing says how many columns the BSR matrix %s has: give cols (--cols)",
                        spk_reader_name(t->in->reader), quoted);
    if (last >= SPK_SIZE_LIMIT / fields->block_cols)
        return bare_fail(t, name, "has a block beyond the columns that a matrix can have");
    fields->cols = (last + 1) * fields->block_cols;
    if (t->in->remark)
        snprintf(
            t->in->remark, SPK_REMARK_ROOM,
            "nothing says how many columns the BSR matrix %s has: %lld are taken, up to its last block (give cols, --cols, for others)",
            quoted, (long long)fields->cols);
    return SPK_OK;
}
