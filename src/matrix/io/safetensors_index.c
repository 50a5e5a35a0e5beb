#include "matrix/io/safetensors_index.h"

#include <stdio.h>
#include <string.h>

#include "base/c_locale.h"
#include "matrix/io/safetensors.h"
#include "matrix/io/safetensors_names.h"

static const char *const parts[] = {".values", ".row_offsets", ".col_indices"};
enum { PARTS = sizeof parts / sizeof *parts };

static spk_status read_index(const spk_read_context *in, json_t **root)
{
    const int64_t size = spk_reader_size(in->reader);
    char *text = NULL;
    if (size < 0 || size > SPK_TENSORS_HEADER_LIMIT)
        return spk_fail(SPK_ERR_FORMAT, "%s: an index has at most %lld bytes, and is no pipe", spk_reader_name(in->reader),
                        (long long)SPK_TENSORS_HEADER_LIMIT);
    SPK_TRY(spk_alloc(in->mem, (size_t)size, 1, &text));
    spk_status status = spk_reader_bytes(in->reader, text, (size_t)size);
    if (status == SPK_OK)
        status = spk_tensors_json(in, text, (size_t)size, "the index", 0, root);
    spk_free(in->mem, text);
    return status;
}

/* The file of part `i` of the BSR matrix of that name; NULL: there is none. `text` has room for the name and 16 more. */
static const json_t *part_file(const json_t *map, const char *name, size_t length, int i, char *text)
{
    snprintf(text, length + 16, "%.*s%s", (int)length, name, parts[i]);
    return json_object_get(map, text);
}

/* The length of the BSR matrix's name of which a tensor is a part, and which part; 0: of none. */
static size_t stem_of(const json_t *map, const char *tensor, char *text, int *which)
{
    const size_t length = strlen(tensor);
    for (*which = 0; *which < PARTS; ++*which) {
        const size_t tail = strlen(parts[*which]);
        bool all = length > tail && strcmp(tensor + length - tail, parts[*which]) == 0;
        for (int i = 0; i < PARTS && all; i++)
            all = part_file(map, tensor, length - tail, i, text) != NULL;
        if (all)
            return length - tail;
    }
    return 0;
}

/* What an index names, a BSR matrix by its own name. */
typedef struct contents {
    const char **all;
    size_t count, matrices;
    const char *matrix; /* the last of the BSR matrices */
    char *room;
} contents;

static void release_contents(const spk_mem *mem, contents *c)
{
    spk_free(mem, c->all);
    spk_free(mem, c->room);
}

static spk_status survey(const spk_read_context *in, const json_t *map, contents *c)
{
    const char *key;
    json_t *value;
    size_t bytes = 0, used = 0;
    char *text = NULL;
    json_object_foreach((json_t *)map, key, value) bytes += strlen(key) + 16;
    spk_status status = spk_alloc(in->mem, json_object_size(map) + 1, sizeof *c->all, &c->all);
    if (status == SPK_OK)
        status = spk_alloc(in->mem, bytes + 1, 1, &c->room);
    if (status == SPK_OK)
        status = spk_alloc(in->mem, bytes + 1, 1, &text);
    json_object_foreach(status == SPK_OK ? (json_t *)map : NULL, key, value)
    {
        int part;
        const size_t stem = stem_of(map, key, text, &part);
        if (stem > 0 && part > 0)
            continue; /* its values stand for it */
        const size_t length = stem > 0 ? stem : strlen(key);
        c->all[c->count] = memcpy(c->room + used, key, length);
        c->room[used + length] = '\0';
        if (stem > 0) {
            c->matrix = c->all[c->count];
            c->matrices++;
        }
        c->count++;
        used += length + 1;
    }
    spk_free(in->mem, text);
    return status;
}

/* Says what there is. */
static spk_status tell_names(const spk_read_context *in, const contents *c)
{
    const char *file = spk_reader_name(in->reader);
    spk_name_list names = {.used = 0};
    spk_names_list(in->tensor, c->all, c->count, &names);
    return names.count == 0 ? spk_fail(SPK_ERR_FORMAT, "%s: holds no tensor", file) : spk_names_fail(file, in->tensor, &names);
}

/* The file of all parts of the BSR matrix of that name; *file stays NULL where there is none. */
static spk_status matrix_file(const spk_read_context *in, const json_t *map, const char *tensor, const json_t **file)
{
    const size_t length = strlen(tensor);
    const json_t *files[PARTS];
    char *text = NULL, quoted[SPK_QUOTE_ROOM];
    bool all = true, together = true;
    SPK_TRY(spk_alloc(in->mem, length + 16, 1, &text));
    for (int i = 0; i < PARTS; i++) {
        files[i] = part_file(map, tensor, length, i, text);
        all = all && files[i] != NULL;
        together = together && json_equal(files[i], files[0]);
    }
    spk_free(in->mem, text);
    spk_io_quote(quoted, tensor, length);
    if (all && !together)
        return spk_fail(SPK_ERR_UNSUPPORTED, "%s: the parts of %s lie in several files; save the model with a larger max_shard_size",
                        spk_reader_name(in->reader), quoted);
    *file = all ? files[0] : NULL;
    return SPK_OK;
}

/* The file that holds a tensor, or all parts of a matrix; its name stays in the index. NULL: nothing is called so. */
static spk_status pick_file(const spk_read_context *in, const json_t *map, const char *tensor, const char **name)
{
    char quoted[SPK_QUOTE_ROOM];
    const json_t *file = json_object_get(map, tensor);
    *name = NULL;
    if (!file)
        SPK_TRY(matrix_file(in, map, tensor, &file));
    if (!file)
        return SPK_OK;
    *name = json_string_value(file);
    if (*name && !strchr(*name, '/') && spk_ends_with(*name, strlen(*name), ".safetensors"))
        return SPK_OK;
    spk_io_quote(quoted, tensor, strlen(tensor));
    return spk_fail(SPK_ERR_FORMAT, "%s: the file that it names for %s is no .safetensors beside it", spk_reader_name(in->reader), quoted);
}

/* What is asked for, else the only BSR matrix, else the only tensor: as from one file. */
static spk_status pick(const spk_read_context *in, const json_t *map, const char **name, char **tensor)
{
    contents c = {.count = 0};
    const char *wanted = in->tensor, *file = NULL;
    spk_status status = SPK_OK;
    SPK_GOTO(survey(in, map, &c));
    if (!wanted && (c.matrices == 1 || c.count == 1))
        wanted = c.matrices == 1 ? c.matrix : c.all[0];
    if (wanted)
        SPK_GOTO(pick_file(in, map, wanted, &file));
    if (!file)
        SPK_GOTO(tell_names(in, &c));
    SPK_GOTO(spk_alloc(in->mem, strlen(wanted) + 1, 1, tensor));
    strcpy(*tensor, wanted);
    *name = file;
done:
    release_contents(in->mem, &c);
    return status;
}

spk_status spk_index_find(const spk_read_context *in, char **path, char **tensor)
{
    json_t *root = NULL;
    const char *name = NULL, *own = spk_reader_name(in->reader), *slash = strrchr(own, '/');
    const int folder = slash ? (int)(slash + 1 - own) : 0;
    SPK_TRY(read_index(in, &root));
    const json_t *map = json_object_get(root, "weight_map");
    spk_status status = json_is_object(map) ? pick(in, map, &name, tensor)
                                            : spk_fail(SPK_ERR_FORMAT, "%s: has no \"weight_map\" of tensors and their files", own);
    if (status == SPK_OK)
        status = spk_alloc(in->mem, (size_t)folder + strlen(name) + 1, 1, path);
    if (status == SPK_OK)
        snprintf(*path, (size_t)folder + strlen(name) + 1, "%.*s%s", folder, own, name);
    json_decref(root);
    return status;
}
