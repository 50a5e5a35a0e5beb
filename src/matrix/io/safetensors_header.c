/* The header of a safetensors file. Promises that every tensor's bytes lie in the file, agree with its shape, and that the tensors
 * fill the data without overlap or gap; and that no more memory is taken for the header than max_bytes allows, or a few
 * megabytes. */
#include "matrix/io/safetensors.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/free_memory.h"
#include "base/json_cost.h"
#include "base/json_text.h"

/* Bytes of an element; 0: a type that this reader does not know, which may stand in a file whose other tensors are wanted. */
static int64_t element_bytes(const char *dtype)
{
    static const struct {
        const char *name;
        int bytes;
    } others[] = {{"I64", 8}, {"I16", 2}, {"U64", 8}, {"U32", 4}, {"U16", 2}, {"U8", 1}, {"BOOL", 1}, {"C64", 8}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(dtype, others[i].name) == 0)
            return others[i].bytes;
    return (int64_t)spk_type_of_safetensors(dtype)->bytes;
}

static spk_status tensor_fail(const spk_tensors *t, const char *name, const char *what)
{
    char quoted[SPK_QUOTE_ROOM];
    spk_io_quote(quoted, name, strlen(name));
    return spk_io_fail_at(t->in, 8, "the header's tensor %s %s", quoted, what);
}

/* A JSON integer >= 0; -1 for anything else. */
static int64_t natural(const json_t *json)
{
    return json_is_integer(json) && json_integer_value(json) >= 0 ? (int64_t)json_integer_value(json) : -1;
}

static spk_status parse_tensor(const spk_tensors *t, const char *name, const json_t *json, spk_tensor *tensor)
{
    const json_t *dtype = json_object_get(json, "dtype"), *shape = json_object_get(json, "shape"),
                 *range = json_object_get(json, "data_offsets");
    if (!json_is_string(dtype) || !json_is_array(shape) || !json_is_array(range))
        return tensor_fail(t, name, "lacks dtype, shape or data_offsets");
    *tensor = (spk_tensor){.name = name,
                           .dtype = json_string_value(dtype),
                           .begin = natural(json_array_get(range, 0)),
                           .end = natural(json_array_get(range, 1))};
    if (json_array_size(range) != 2 || tensor->begin < 0 || tensor->end < tensor->begin)
        return tensor_fail(t, name, "has data_offsets that are not two rising integers");
    if (json_array_size(shape) > 64)
        return tensor_fail(t, name, "has more than 64 dimensions");
    tensor->rank = (int)json_array_size(shape);
    int64_t bytes = element_bytes(tensor->dtype);
    bool known = bytes > 0;
    for (int i = 0; i < tensor->rank; i++) {
        int64_t size = natural(json_array_get(shape, (size_t)i));
        if (size < 0)
            return tensor_fail(t, name, "has a shape that is not made of integers from 0");
        if (i < SPK_TENSOR_RANK)
            tensor->shape[i] = size;
        if (known && __builtin_mul_overflow(bytes, size, &bytes))
            return tensor_fail(t, name, "has a shape that overflows 64-bit sizes");
    }
    if (known && bytes != tensor->end - tensor->begin)
        return tensor_fail(t, name, "has data_offsets that do not agree with its shape");
    return SPK_OK;
}

static bool ends_with(const char *name, const char *suffix, size_t *stem)
{
    size_t length = strlen(name), tail = strlen(suffix);
    *stem = length - tail;
    return length >= tail && strcmp(name + *stem, suffix) == 0;
}

static const struct {
    const char *suffix;
    size_t rank;
} bsr_parts[] = {{".row_offsets", 1}, {".col_indices", 1}, {".values", 3}};
enum { BSR_PARTS = sizeof bsr_parts / sizeof *bsr_parts, BSR_VALUES = BSR_PARTS - 1 };

/* Whether all parts are there, with as many dimensions as they have in a BSR matrix. `text` has room for the longest suffix behind the
 * name. */
static bool is_triple(const spk_tensors *t, char *text, size_t room, size_t length)
{
    bool whole = true;
    for (size_t i = 0; i < BSR_PARTS && whole; i++) {
        snprintf(text + length, room - length, "%s", bsr_parts[i].suffix);
        whole = json_array_size(json_object_get(json_object_get(t->root, text), "shape")) == bsr_parts[i].rank;
    }
    text[length] = '\0';
    return whole;
}

/* What a tensor is to a BSR matrix whose name is the first `stem` characters of its own. */
static spk_status mark_part(const spk_tensors *t, spk_tensor *tensor, size_t stem, bool values)
{
    const size_t prefix = sizeof SPK_BSR_PREFIX - 1, room = stem + 16;
    char *text = NULL;
    SPK_TRY(spk_alloc(t->in->mem, prefix + room, 1, &text));
    snprintf(text, prefix + room, "%s%.*s", SPK_BSR_PREFIX, (int)stem, tensor->name);
    tensor->in_bsr = t->metadata != NULL && json_object_get(t->metadata, text) != NULL;
    memmove(text, text + prefix, stem + 1);
    const bool bare = !tensor->in_bsr && is_triple(t, text, room, stem);
    tensor->in_bsr = tensor->in_bsr || bare;
    if (bare && values)
        tensor->bare = text;
    else
        spk_free(t->in->mem, text);
    return SPK_OK;
}

/* Marks the tensors that are parts of a BSR matrix. */
static spk_status mark_parts(spk_tensors *t)
{
    for (int64_t i = 0; i < t->count; i++) {
        size_t stem;
        for (int j = 0; j < BSR_PARTS; j++)
            if (ends_with(t->list[i].name, bsr_parts[j].suffix, &stem))
                SPK_TRY(mark_part(t, &t->list[i], stem, j == BSR_VALUES));
    }
    return SPK_OK;
}

static int by_place(const void *a, const void *b)
{
    const spk_tensor *first = a, *second = b;
    if (first->begin != second->begin)
        return first->begin < second->begin ? -1 : 1;
    return (first->end > second->end) - (first->end < second->end);
}

/* The format forbids overlaps and gaps, so that no byte has two meanings or none. */
static spk_status check_places(const spk_tensors *t)
{
    int64_t size = spk_reader_size(t->in->reader), at = 0;
    for (int64_t i = 0; i < t->count; i++) {
        if (t->list[i].begin < at)
            return tensor_fail(t, t->list[i].name, "overlaps another");
        if (t->list[i].begin > at)
            return tensor_fail(t, t->list[i].name, "leaves a gap before it");
        if (size >= 0 && t->list[i].end > size - t->data)
            return tensor_fail(t, t->list[i].name, "reaches beyond the end of the file");
        at = t->list[i].end;
    }
    if (size >= 0 && at < size - t->data)
        return spk_io_fail_at(t->in, t->data + at, "%lld bytes that belong to no tensor", (long long)(size - t->data - at));
    return SPK_OK;
}

static spk_status parse_root(spk_tensors *t)
{
    const char *name;
    json_t *entry;
    if (!json_is_object(t->root))
        return spk_io_fail_at(t->in, 8, "the header is not a JSON object");
    t->metadata = json_object_get(t->root, "__metadata__");
    if (t->metadata && !json_is_object(t->metadata))
        return spk_io_fail_at(t->in, 8, "the header's __metadata__ is not an object");
    SPK_TRY(spk_alloc(t->in->mem, json_object_size(t->root), sizeof *t->list, &t->list));
    json_object_foreach(t->root, name, entry)
    {
        if (entry == t->metadata)
            continue;
        SPK_TRY(parse_tensor(t, name, entry, &t->list[t->count]));
        t->count++;
    }
    json_object_foreach(t->metadata, name, entry)
    {
        if (!json_is_string(entry))
            return spk_io_fail_at(t->in, 8, "the header's __metadata__ holds something that is not text");
    }
    if (t->count > 1)
        qsort(t->list, (size_t)t->count, sizeof *t->list, by_place);
    SPK_TRY(check_places(t));
    return mark_parts(t);
}

/* Jansson's scanner passes over an allocation that is refused while it gathers a word, and goes on with what it has. errno tells, until the
 * next number clears it: so the text is given byte by byte, and errno looked at before each. */
typedef struct text_source {
    const char *at, *end;
} text_source;

static size_t give_byte(void *out, size_t size, void *user)
{
    text_source *source = user;
    (void)size;
    if (errno == ENOMEM)
        return (size_t)-1;
    if (source->at == source->end)
        return 0;
    *(char *)out = *source->at++;
    return 1;
}

spk_status spk_tensors_json(const spk_read_context *in, const char *text, size_t length, const char *what, int64_t offset, json_t **json)
{
    json_error_t error;
    spk_json_cost cost = {0};
    int64_t room;
    spk_json_cost_add(&cost, text, length);
    if (cost.bytes > SPK_TENSORS_HEADER_MEMORY)
        SPK_TRY(spk_io_check_room(in, cost.bytes, 1, 0));
    if (!spk_memory_suffices((size_t)cost.bytes, &room))
        return spk_fail(SPK_ERR_OUT_OF_MEMORY, "out of memory: %zu bytes of JSON need up to %lld; %lld are free", length,
                        (long long)cost.bytes, (long long)room);
    text_source source = {text, text + length};
    errno = 0;
    json_t *parsed = spk_json_load(give_byte, &source, JSON_REJECT_DUPLICATES, &error);
    if (errno == ENOMEM) {
        json_decref(parsed);
        return spk_fail(SPK_ERR_OUT_OF_MEMORY, "out of memory: %zu bytes of JSON", length);
    }
    if (!parsed) {
        for (char *at = error.text; *at; at++)
            if (*at < ' ' || *at > '~')
                *at = '?';
        return spk_io_fail_at(in, offset < 0 ? 8 : offset + (error.position > 0 ? error.position : 0), "%s is not JSON: %s", what,
                              error.text);
    }
    *json = parsed;
    return SPK_OK;
}

static spk_status read_text(const spk_read_context *in, int64_t length, char **text)
{
    int64_t size = spk_reader_size(in->reader), done = 0;
    if (size >= 0 && length > size - 8)
        return spk_io_fail_at(in, 0, "announces a header of %lld bytes, but %lld follow", (long long)length, (long long)(size - 8));
    spk_growth growth = spk_growth_start(length, size < 0 ? -1 : size - 8, 1);
    while (done < length) {
        if (done > 0)
            growth.capacity = spk_growth_next(&growth);
        SPK_TRY(spk_realloc(in->mem, text, (size_t)growth.capacity, 1));
        SPK_TRY(spk_reader_bytes(in->reader, *text + done, (size_t)(growth.capacity - done)));
        done = growth.capacity;
    }
    return SPK_OK;
}

spk_status spk_tensors_read(const spk_read_context *in, spk_tensors *tensors)
{
    unsigned char bytes[8];
    uint64_t length = 0;
    char *text = NULL;
    *tensors = (spk_tensors){.in = in};
    SPK_TRY(spk_reader_bytes(in->reader, bytes, sizeof bytes));
    for (int i = 0; i < 8; i++)
        length |= (uint64_t)bytes[i] << (8 * i);
    if (length < 2 || length > (uint64_t)SPK_TENSORS_HEADER_LIMIT)
        return spk_io_fail_at(in, 0, "announces a header of %llu bytes: 2 to %lld are allowed", (unsigned long long)length,
                              (long long)SPK_TENSORS_HEADER_LIMIT);
    spk_status status = read_text(in, (int64_t)length, &text);
    tensors->data = 8 + (int64_t)length;
    if (status == SPK_OK && text[0] != '{')
        status = spk_io_fail_at(in, 8, "the header does not begin with '{'");
    if (status == SPK_OK)
        status = spk_tensors_json(in, text, (size_t)length, "the header", 8, &tensors->root);
    spk_free(in->mem, text);
    return status == SPK_OK ? parse_root(tensors) : status;
}

void spk_tensors_release(spk_tensors *tensors)
{
    for (int64_t i = 0; i < tensors->count; i++)
        spk_free(tensors->in->mem, tensors->list[i].bare);
    spk_free(tensors->in->mem, tensors->list);
    json_decref(tensors->root);
}

const spk_tensor *spk_tensors_find(const spk_tensors *tensors, const char *name)
{
    for (int64_t i = 0; i < tensors->count; i++)
        if (strcmp(tensors->list[i].name, name) == 0)
            return &tensors->list[i];
    return NULL;
}
