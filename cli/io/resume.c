/* Files from which a series goes on: what they hold belongs to one seed and one set of options. */
#include "cli/io/resume.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json_text.h"
#include "cli/base/random.h"
#include "cli/base/text.h"
#include "cli/io/json.h"
#include "cli/io/messages.h"

resume resume_make(const char *path, const char *what, uint64_t seed, json_t *settings)
{
    bool given = seed != UINT64_MAX;
    return (resume){.path = path, .what = what, .seed = given ? seed : random_seed(), .seed_given = given, .settings = settings};
}

void resume_release(resume *r)
{
    json_decref(r->settings);
    r->settings = NULL;
}

int resume_save(const cli *app, const resume *r, json_t *fields)
{
    json_put(fields, "schema", json_integer(1));
    json_put(fields, "what", json_string(r->what));
    json_put(fields, "seed", json_integer((json_int_t)r->seed));
    json_put(fields, "settings", json_incref(r->settings));
    int code = json_save(app, r->path, fields);
    json_decref(fields);
    return code;
}

/* A setting as the file has it, and as a message says it. */
static char *value_text(const json_t *value)
{
    char *text = value && !json_is_null(value) ? spk_json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(12)) : NULL;
    char *copy = cli_format("%s", text ? text : "not given");
    free(text);
    return copy;
}

static int check_settings(const cli *app, const resume *r, const json_t *stored)
{
    int code = EXIT_DONE;
    const char *name;
    json_t *value;
    json_object_foreach(r->settings, name, value)
    {
        char *now = value_text(value), *then = value_text(json_object_get(stored, name));
        if (code == EXIT_DONE && strcmp(now, then) != 0)
            code = cli_fail(app, EXIT_USAGE, "%s: is of a run with another --%s: there %s, here %s", r->path, name, then, now);
        free(now);
        free(then);
    }
    return code;
}

int resume_load(const cli *app, resume *r, json_t **root)
{
    int code = EXIT_DONE;
    *root = NULL;
    if (access(r->path, F_OK) != 0)
        return EXIT_DONE;
    json_t *read = json_read(app, r->path, &code);
    if (!read)
        return code;
    const char *what = json_string_value(json_object_get(read, "what"));
    json_t *seed = json_object_get(read, "seed"), *settings = json_object_get(read, "settings");
    if (!what || strcmp(what, r->what) != 0 || !json_is_integer(seed) || !json_is_object(settings))
        code = what && strcmp(what, r->what) != 0
                   ? cli_fail(app, EXIT_INPUT, "%s: is a state of '%.40s', not of '%s'", r->path, what, r->what)
                   : cli_fail(app, EXIT_INPUT, "%s: is no state of '%s': \"%s\" is missing or of the wrong type", r->path, r->what,
                              !what                    ? "what"
                              : !json_is_integer(seed) ? "seed"
                                                       : "settings");
    else if (r->seed_given && json_integer_value(seed) != (json_int_t)r->seed)
        code = cli_fail(app, EXIT_USAGE, "%s: is of a run with another --seed: there %lld, here %lld", r->path,
                        (long long)json_integer_value(seed), (long long)r->seed);
    else
        code = check_settings(app, r, settings);
    if (code == EXIT_DONE) {
        r->seed = (uint64_t)json_integer_value(seed);
        *root = json_incref(read);
    }
    json_decref(read);
    return code;
}
