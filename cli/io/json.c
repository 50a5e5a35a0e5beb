/* JSON results: the envelope, and writing it to a file or to standard output. */
#include "cli/io/json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/c_locale.h"
#include "base/json_text.h"
#include "cli/base/text.h"
#include "cli/io/messages.h"
#include "cli/io/output.h"
#include "cli/io/progress.h"

static void no_memory(void)
{
    fputs("sparsek: out of memory for the JSON result\n", stderr);
    exit(EXIT_RESOURCES);
}

void json_put(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) != 0)
        no_memory();
}

void json_push(json_t *array, json_t *value)
{
    if (json_array_append_new(array, value) != 0)
        no_memory();
}

json_t *json_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *json_text(const char *text)
{
    if (!text)
        return json_null();
    json_t *string = json_string(text);
    if (string)
        return string;
    char *copy = cli_format("%s", text);
    for (char *at = copy; *at; at++)
        if ((unsigned char)*at >= 0x80)
            *at = '?';
    string = json_string(copy);
    free(copy);
    return string;
}

static json_t *device_json(cli *app)
{
    spk_device_info info = {SPK_SIZED(spk_device_info)};
    json_t *o = json_object(), *isa = json_array();
    if (!app->context || spk_context_get_device(app->context, &info) != SPK_OK)
        info.kind = info.name = "unknown";
    for (int i = 0; i < info.isa_count; i++)
        json_push(isa, json_string(info.isa[i]));
    json_put(o, "kind", json_string(info.kind));
    json_put(o, "name", json_text(info.name));
    json_put(o, "threads", json_integer(info.threads));
    json_put(o, "isa", isa);
    json_put(o, "clocks_mhz", info.clock_mhz > 0 ? json_number(info.clock_mhz) : json_null());
    json_put(o, "power_w", info.power_w > 0 ? json_number(info.power_w) : json_null());
    return o;
}

json_t *json_envelope(cli *app, json_t *results)
{
    char date[80];
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    snprintf(date, sizeof(date), "%04d-%02d-%02dT%02d:%02d:%02dZ", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min,
             utc.tm_sec);
    json_t *root = json_object();
    json_put(root, "schema", json_integer(1));
    json_put(root, "sparsek", json_string(spk_version()));
    json_put(root, "commit", json_text(spk_commit()));
    json_put(root, "date", json_string(date));
    json_put(root, "command", json_text(app->command_line));
    json_put(root, "device", device_json(app));
    json_put(root, "results", results);
    return root;
}

static int append(const char *bytes, size_t count, void *user)
{
    if (fwrite(bytes, 1, count, user) != count)
        no_memory();
    return 0;
}

/* json_dumps passes over a refused allocation where it gathers a key. */
static char *dumped(const json_t *root)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (!out || spk_json_dump(root, append, out, JSON_INDENT(1) | JSON_REAL_PRECISION(12)) != 0 || append("\n", 1, out) != 0 ||
        fclose(out) != 0 || !text) /* closing may fail to make the text, and not say so */
        no_memory();
    return text;
}

int json_save(const cli *app, const char *path, const json_t *root)
{
    char *text = dumped(root);
    int code = output_write(app, path, text, strlen(text));
    free(text);
    return code;
}

int json_finish(cli *app, json_t *root, int code)
{
    int written = EXIT_DONE;
    if (app->json && strcmp(app->json, "-") == 0) {
        char *text = dumped(root);
        progress_clear();
        fputs(text, stdout);
        free(text);
    } else if (app->json) {
        written = json_save(app, app->json, root);
    }
    json_decref(root);
    return written ? written : code;
}

/* Jansson's scanner passes over a refused allocation, and clears errno with the next number: byte by byte, it is seen. */
static size_t read_byte(void *out, size_t size, void *user)
{
    (void)size;
    if (errno == ENOMEM)
        return (size_t)-1;
    int byte = fgetc(user);
    if (byte == EOF)
        return ferror((FILE *)user) ? (size_t)-1 : 0;
    *(char *)out = (char)byte;
    return 1;
}

json_t *json_read(const cli *app, const char *path, int *code)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
    if (!file) {
        *code = cli_fail(app, EXIT_INPUT, "cannot read %s: %s", path, spk_system_error(errno));
        return NULL;
    }
    json_error_t error;
    errno = 0;
    json_t *root = spk_json_load(read_byte, file, JSON_REJECT_DUPLICATES, &error);
    const int failed = errno; /* Jansson tells it as a mistake in the text */
    const bool unread = ferror(file) != 0;
    if (file != stdin)
        fclose(file);
    if (failed == ENOMEM) {
        json_decref(root);
        root = NULL;
        *code = cli_fail(app, EXIT_RESOURCES, "%s: out of memory", path);
    } else if (unread) {
        json_decref(root);
        root = NULL;
        *code = cli_fail(app, EXIT_INPUT, "cannot read %s: %s", path, spk_system_error(failed));
    } else if (!root) {
        *code = cli_fail(app, EXIT_INPUT, "%s: line %d: %s", path, error.line, error.text);
    }
    return root;
}
