/* What `check` has seen so far; kept in a file where the run shall be resumable. */
#include "cli/check/state.h"

#include <stdio.h>
#include <string.h>

#include "cli/io/json.h"
#include "cli/io/messages.h"
#include "cli/result/result.h"

static bool listed(const char *names, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = names; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strcspn(at, ",") == length && strncmp(at, name, length) == 0)
            return true;
    return false;
}

void check_state_make(const cli *app, uint64_t seed, spk_operation wanted, check_state *s)
{
    *s = (check_state){.seed = seed, .failed = json_array()};
    for (int i = 0; i < spk_kernel_count() && s->row_count < CHECK_MAX_ROWS; i++) {
        spk_kernel_info info = {SPK_SIZED(spk_kernel_info)};
        if (spk_kernel_get_info(i, &info) != SPK_OK || (wanted != 0 && info.operation != wanted))
            continue;
        const char *device = app->device ? app->device : "cpu";
        if (strncmp(device, info.device, strlen(info.device)) != 0) /* "cuda" and "cuda:0" */
            continue;
        if ((app->only && !listed(app->only, info.name)) || (app->exclude && listed(app->exclude, info.name)))
            continue;
        s->rows[s->row_count++] = (check_row){.name = info.name, .isa = info.isa, .kind = info.kind, .operation = info.operation};
    }
}

static bool offers(const spk_device_info *device, const char *name, size_t length)
{
    for (int i = 0; i < device->isa_count; i++)
        if (strlen(device->isa[i]) == length && strncmp(device->isa[i], name, length) == 0)
            return true;
    return false;
}

/* "this device does not offer avx512_bf16, amx_bf16"; as it was where it offers all. */
static void find_absent_isa(const spk_device_info *device, const char *isa, char *absent, size_t size)
{
    for (const char *at = isa; *at; at += strcspn(at, ","), at += *at == ',') {
        const int length = (int)strcspn(at, ","), used = (int)strlen(absent);
        if (!offers(device, at, (size_t)length))
            snprintf(absent + used, size - (size_t)used, "%s%.*s", used ? ", " : "this device does not offer ", length, at);
    }
}

/* A vendor's rows begin with the library's name. */
static void find_absent_library(spk_context *context, check_row *row)
{
    if (row->kind != SPK_KIND_VENDOR && row->kind != SPK_KIND_DENSE)
        return;
    for (int i = 0; i < spk_library_count(context); i++) {
        spk_library_info library = {SPK_SIZED(spk_library_info)};
        if (spk_context_get_library(context, i, &library) != SPK_OK || library.found)
            continue;
        const size_t length = strlen(library.name);
        if (strncmp(row->name, library.name, length) == 0 && row->name[length] == '_')
            snprintf(row->absent, sizeof(row->absent), "%s was not found", library.name);
    }
}

void check_state_find_absent(spk_context *context, check_state *s)
{
    spk_device_info device = {SPK_SIZED(spk_device_info)};
    if (spk_context_get_device(context, &device) != SPK_OK)
        return;
    for (int i = 0; i < s->row_count; i++) {
        check_row *row = &s->rows[i];
        find_absent_isa(&device, row->isa, row->absent, sizeof(row->absent));
        if (!row->absent[0])
            find_absent_library(context, row);
    }
}

unsigned check_state_operations(const check_state *s)
{
    unsigned all = 0;
    for (int i = 0; i < s->row_count; i++)
        all |= 1u << operation_index(s->rows[i].operation);
    return all;
}

void check_state_release(check_state *s)
{
    json_decref(s->failed);
    s->failed = NULL;
}

bool check_row_skipped(const check_row *row)
{
    return row->cases == 0 && row->absent[0];
}

json_t *check_state_rows(const check_state *s)
{
    json_t *list = json_array();
    for (int i = 0; i < s->row_count; i++) {
        const check_row *row = &s->rows[i];
        json_t *o = json_object();
        json_put(o, "name", json_text(row->name));
        json_put(o, "kind", json_string(result_kind_name(row->kind)));
        json_put(o, "cases", json_integer(row->cases));
        json_put(o, "not_applicable", json_integer(row->not_applicable));
        json_put(o, "failures", json_integer(row->failures));
        json_put(o, "inf_nan", json_integer(row->hostile));
        json_put(o, "overhang", json_integer(row->overhang));
        json_put(o, "shifted", json_integer(row->shifted));
        json_put(o, "worst", json_number(row->worst));
        json_put(o, "skipped", check_row_skipped(row) ? json_text(row->absent) : json_null());
        json_push(list, o);
    }
    return list;
}

int check_state_save(const cli *app, const resume *file, const check_state *s)
{
    json_t *root = json_object();
    json_put(root, "next", json_integer(s->next));
    json_put(root, "failures", json_integer(s->failures));
    json_put(root, "failed", json_incref(s->failed));
    json_put(root, "rows", check_state_rows(s));
    return resume_save(app, file, root);
}

static bool load_rows(const json_t *rows, check_state *s)
{
    size_t index;
    json_t *one;
    json_array_foreach((json_t *)rows, index, one)
    {
        const char *name = json_string_value(json_object_get(one, "name"));
        int at = 0;
        while (at < s->row_count && name && strcmp(s->rows[at].name, name) != 0)
            at++;
        if (!name || at == s->row_count)
            return false;
        s->rows[at].cases = json_integer_value(json_object_get(one, "cases"));
        s->rows[at].not_applicable = json_integer_value(json_object_get(one, "not_applicable"));
        s->rows[at].failures = json_integer_value(json_object_get(one, "failures"));
        s->rows[at].hostile = json_integer_value(json_object_get(one, "inf_nan"));
        s->rows[at].overhang = json_integer_value(json_object_get(one, "overhang"));
        s->rows[at].shifted = json_integer_value(json_object_get(one, "shifted"));
        s->rows[at].worst = json_number_value(json_object_get(one, "worst"));
    }
    return json_array_size(rows) == (size_t)s->row_count;
}

int check_state_load(const cli *app, resume *file, check_state *s)
{
    json_t *root = NULL;
    int code = resume_load(app, file, &root);
    if (!root)
        return code;
    json_t *next = json_object_get(root, "next"), *failed = json_object_get(root, "failed");
    if (!json_is_integer(next) || json_integer_value(next) < 0 || !json_is_array(failed))
        code = cli_fail(app, EXIT_INPUT, "%s: is no state of '%s'", file->path, file->what);
    else if (!load_rows(json_object_get(root, "rows"), s))
        code = cli_fail(app, EXIT_INPUT, "%s: is of a run over other kernels", file->path);
    if (code == EXIT_DONE) {
        s->seed = file->seed;
        s->next = json_integer_value(next);
        s->failures = json_integer_value(json_object_get(root, "failures"));
        json_decref(s->failed);
        s->failed = json_incref(failed);
    }
    json_decref(root);
    return code;
}
