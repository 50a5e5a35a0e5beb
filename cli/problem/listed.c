/* A list of problems in a JSON file. */
#include "cli/problem/listed.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json_text.h"
#include "cli/base/memory.h"
#include "cli/base/text.h"
#include "cli/io/files.h"
#include "cli/io/json.h"
#include "cli/io/messages.h"
#include "cli/problem/problem.h"

/* The file's own array, or one gathered from the results of a bench. A new reference; NULL after a message. */
static json_t *array_of(cli *app, const char *path, int *code)
{
    *code = files_add(app, FILE_READ, "--from", path);
    json_t *root = *code ? NULL : json_read(app, path, code), *list = NULL;
    if (json_is_array(root)) {
        list = json_incref(root);
    } else if (json_is_array(json_object_get(root, "results"))) {
        list = json_array();
        size_t index;
        json_t *one;
        json_array_foreach(json_object_get(root, "results"), index, one)
        {
            json_t *asked = json_object_get(one, "problem");
            json_push(list, asked ? json_incref(asked) : json_null());
        }
    } else if (root) {
        *code = cli_fail(app, EXIT_INPUT, "%s: is neither a list of problems nor a result with \"results\"", path);
    }
    json_decref(root);
    return list;
}

int listed_read(cli *app, const char *path, const problem_flags *defaults, listed_problems *out)
{
    int code = EXIT_DONE;
    json_t *list = array_of(app, path, &code), *one;
    size_t index;
    *out = (listed_problems){.count = (int64_t)json_array_size(list), .json = list};
    out->flags = cli_alloc((size_t)out->count, sizeof(*out->flags));
    json_array_foreach(list, index, one)
    {
        char *where = cli_format("%s: problem %zu", path, index);
        out->flags[index] = *defaults;
        if (code == EXIT_DONE)
            code = problem_from_json(app, one, where, &out->flags[index]);
        const char *file = out->flags[index].file;
        if (code == EXIT_DONE && file && strcmp(file, "-") != 0) /* --json is checked against all of them, too */
            code = files_add(app, FILE_READ, "the input", file);
        free(where);
    }
    if (code == EXIT_DONE && list && out->count == 0)
        cli_note(app, "%s: the list of problems is empty", path);
    return code;
}

char *listed_mark(const listed_problems *list)
{
    char *text = spk_json_dumps(list->json, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    const uint64_t mark = text ? spk_hash_text(SPK_HASH_START, text) : 0;
    free(text);
    return cli_format("%lld problem%s, %016llx", (long long)list->count, list->count == 1 ? "" : "s", (unsigned long long)mark);
}

void listed_release(listed_problems *list)
{
    free(list->flags);
    json_decref(list->json);
    *list = (listed_problems){0};
}
