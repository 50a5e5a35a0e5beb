/* sparsek info: the device, the vendor libraries, the kernels, the store. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "cli/args/command.h"
#include "cli/base/memory.h"
#include "cli/base/table.h"
#include "cli/base/text.h"
#include "cli/commands/commands.h"
#include "cli/io/json.h"
#include "cli/io/messages.h"
#include "cli/io/session.h"
#include "cli/result/result.h"

static const char about[] =
    "Shows the device (--device; the processor by default) and its facts, the devices that this machine has, the vendor\n"
    "libraries that were found (version, path) or what was tried, the operations, the table of kernels, and where the store\n"
    "is. Asking a library for its version opens it.";

/* The devices of the machine. */
enum { MOST_DEVICES = 64 };

typedef struct device_list {
    int count;
    struct {
        char device[16], name[96], why[400];
        int64_t memory_bytes;
    } all[MOST_DEVICES];
} device_list;

static int keep_device(void *user, const spk_device_entry *entry)
{
    device_list *list = user;
    snprintf(list->all[list->count].device, sizeof list->all[0].device, "%s", entry->device);
    snprintf(list->all[list->count].name, sizeof list->all[0].name, "%s", entry->name);
    snprintf(list->all[list->count].why, sizeof list->all[0].why, "%s", entry->why);
    list->all[list->count].memory_bytes = entry->memory_bytes;
    return ++list->count == MOST_DEVICES;
}

static json_t *devices_json(const device_list *devices)
{
    json_t *list = json_array();
    for (int i = 0; i < devices->count; i++) {
        json_t *o = json_object();
        json_put(o, "device", json_text(devices->all[i].device));
        json_put(o, "name", devices->all[i].name[0] ? json_text(devices->all[i].name) : json_null());
        json_put(o, "memory_bytes", devices->all[i].memory_bytes > 0 ? json_integer(devices->all[i].memory_bytes) : json_null());
        json_put(o, "why", devices->all[i].why[0] ? json_text(devices->all[i].why) : json_null());
        json_push(list, o);
    }
    return list;
}

/* The libraries of another kind of device than the context's are known by a context on one of these. NULL: there is none. */
static spk_context *other_context(const cli *app, const device_list *devices)
{
    spk_context *made = NULL;
    const bool far = app->device && strcmp(app->device, "cpu") != 0;
    for (int i = 0; i < devices->count && !made; i++) {
        bool other = far == (strcmp(devices->all[i].device, "cpu") == 0) && !devices->all[i].why[0];
        spk_context_options options = {SPK_SIZED(spk_context_options), .device = devices->all[i].device, .store_path = ""};
        if (other && spk_context_create(&options, &made) != SPK_OK)
            made = NULL;
    }
    return made;
}

static void libraries_json(spk_context *context, json_t *list)
{
    spk_device_info device = {SPK_SIZED(spk_device_info)};
    if (!context || spk_context_get_device(context, &device) != SPK_OK)
        return;
    for (int i = 0; i < spk_library_count(context); i++) {
        spk_library_info info = {SPK_SIZED(spk_library_info)};
        if (spk_context_get_library(context, i, &info) != SPK_OK)
            continue;
        json_t *o = json_object();
        json_put(o, "device", json_text(device.kind));
        json_put(o, "name", json_text(info.name));
        json_put(o, "found", json_boolean(info.found));
        json_put(o, "path", info.path && info.path[0] ? json_text(info.path) : json_null());
        json_put(o, "version", info.version && info.version[0] ? json_text(info.version) : json_null());
        json_put(o, "why", info.why && info.why[0] ? json_text(info.why) : json_null());
        json_push(list, o);
    }
}

/* "f16, bf16" as a list. */
static json_t *list_json(const char *text)
{
    json_t *list = json_array();
    for (const char *at = text != NULL ? text : ""; *at != '\0';) {
        const size_t length = strcspn(at, ",");
        json_push(list, json_stringn(at, length));
        at += length + strspn(at + length, ", ");
    }
    return list;
}

static json_t *kernels_json(void)
{
    json_t *list = json_array();
    for (int i = 0; i < spk_kernel_count(); i++) {
        spk_kernel_info info = {SPK_SIZED(spk_kernel_info)};
        if (spk_kernel_get_info(i, &info) != SPK_OK)
            continue;
        json_t *o = json_object();
        json_put(o, "name", json_text(info.name));
        json_put(o, "op", json_text(operation_at(operation_index(info.operation))->info.name));
        json_put(o, "kind", json_string(result_kind_name(info.kind)));
        json_put(o, "device", json_text(info.device));
        json_put(o, "isa", json_text(info.isa));
        json_put(o, "types", list_json(info.types));
        json_put(o, "tunables", json_text(info.tunables));
        json_push(list, o);
    }
    return list;
}

static const char *kind_name(const setting *s)
{
    switch (s->kind) {
    case SPK_FIELD_ITEMS:
        return "items";
    case SPK_FIELD_HEADS:
        return "heads";
    case SPK_FIELD_COUNT:
        return "count";
    case SPK_FIELD_GROUPS:
        return "groups";
    case SPK_FIELD_STRIDE:
        return "stride";
    case SPK_FIELD_DTYPE:
        return "dtype";
    case SPK_FIELD_REAL:
        return "real";
    case SPK_FIELD_SCALE:
        return "tile";
    case SPK_FIELD_SIZE:
    case SPK_FIELD_LAYOUT:
    case SPK_FIELD_BLOCK_LAYOUT:
    case SPK_FIELD_TRANS:
    case SPK_FIELD_PART:
    case SPK_FIELD_CHOICE:
    case SPK_FIELD_LD:
    case SPK_FIELD_HEAD_STRIDE:
    case SPK_FIELD_PROMISE:
        break;
    }
    return s->value ? "flag" : "choice";
}

/* Whether every problem of the operation says it, the default too. */
static bool is_always(const setting *s)
{
    const bool only_where_set = s->kind == SPK_FIELD_STRIDE || s->kind == SPK_FIELD_BLOCK_LAYOUT || s->kind == SPK_FIELD_COUNT ||
                                s->kind == SPK_FIELD_SCALE || (s->kind == SPK_FIELD_CHOICE && s->value == 0);
    return !only_where_set && !settings_is_of_groups(s);
}

static json_t *words_json(const char *list)
{
    json_t *words = json_array();
    for (int i = 0; list && i < operation_words(list); i++) {
        int length;
        const char *word = operation_word(list, i, &length);
        json_push(words, json_stringn(word, (size_t)length));
    }
    return words;
}

static json_t *fields_json(const operation *op)
{
    json_t *list = json_array();
    for (int i = 0; i < settings_count(); i++) {
        const setting *s = settings_at(i);
        const spk_field_info *field = settings_field(s, op);
        if (!field)
            continue;
        json_t *o = json_object();
        json_put(o, "name", json_text(s->key));
        json_put(o, "field", json_text(field->name));
        json_put(o, "kind", json_string(kind_name(s)));
        json_put(o, "values", s->value ? json_null() : words_json(field->values));
        json_put(o, "always", json_boolean(is_always(s)));
        json_put(o, "in_epilogue", json_boolean(field->terms != NULL));
        json_push(list, o);
    }
    return list;
}

static json_t *sizes_json(const operation *op)
{
    static const char *const sources[] = {"given", "rows of the pattern", "columns of the pattern", "rows of a list of the pattern",
                                          "columns of a list of the pattern"};
    json_t *list = json_array();
    for (int i = 0; i < op->info.size_count; i++) {
        json_t *o = json_object();
        json_put(o, "name", json_text(op->sizes[i].name));
        json_put(o, "from", json_string(sources[op->sizes[i].source]));
        json_put(o, "help", json_text(op->sizes[i].help));
        json_push(list, o);
    }
    return list;
}

static json_t *operands_json(const operation *op)
{
    static const char *const roles[] = {"in", "in, scaled", "out"};
    json_t *list = json_array();
    for (int i = 0; i < op->info.operand_count; i++) {
        json_t *o = json_object();
        json_put(o, "name", json_text(op->operands[i].name));
        json_put(o, "role", json_string(roles[op->operands[i].role]));
        json_put(o, "extents", json_text(op->operands[i].extents));
        json_push(list, o);
    }
    return list;
}

static json_t *operations_json(void)
{
    json_t *list = json_array();
    for (int i = 0; operation_at(i); i++) {
        const operation *op = operation_at(i);
        json_t *o = json_object();
        json_put(o, "name", json_text(op->info.name));
        json_put(o, "formula", json_text(op->info.formula));
        json_put(o, "takes_pattern", json_boolean(op->info.takes_pattern != SPK_PATTERN_NONE));
        json_put(o, "needs_pattern", json_boolean(op->info.takes_pattern == SPK_PATTERN_NEEDED));
        json_put(o, "sizes", sizes_json(op));
        json_put(o, "fields", fields_json(op));
        json_put(o, "operands", operands_json(op));
        json_push(list, o);
    }
    return list;
}

static void size_line(const char *name, int64_t bytes)
{
    if (bytes <= 0)
        printf("  %-12sunknown\n", name);
    else if (bytes >= (int64_t)1 << 30)
        spk_fprintf(stdout, "  %-12s%.1f GiB\n", name, (double)bytes / (1 << 30));
    else if (bytes >= 1 << 20)
        spk_fprintf(stdout, "  %-12s%.3g MiB\n", name, (double)bytes / (1 << 20));
    else
        spk_fprintf(stdout, "  %-12s%.3g KiB\n", name, (double)bytes / (1 << 10));
}

static void print_devices(const device_list *devices)
{
    puts("\nDevices of this machine");
    for (int i = 0; i < devices->count; i++)
        if (devices->all[i].why[0])
            printf("  %-20s%s\n", devices->all[i].device, cli_clean(devices->all[i].why));
        else
            spk_fprintf(stdout, "  %-12s%s, %.1f GiB\n", devices->all[i].device, cli_clean(devices->all[i].name),
                        (double)devices->all[i].memory_bytes / (1 << 30));
}

static void print_libraries(spk_context *context)
{
    for (int i = 0; context && i < spk_library_count(context); i++) {
        spk_library_info info = {SPK_SIZED(spk_library_info)};
        if (spk_context_get_library(context, i, &info) != SPK_OK)
            continue;
        if (info.found)
            printf("  %-12s%s%s%s%s%s\n", info.name, info.version ? info.version : "", info.version && info.version[0] ? ", " : "",
                   info.path ? cli_clean(info.path) : "", info.why && info.why[0] ? ": not used: " : "",
                   info.why ? cli_clean(info.why) : "");
        else
            printf("  %-12snot found%s%s\n", info.name, info.why && info.why[0] ? ": " : "", info.why ? cli_clean(info.why) : "");
    }
}

static void print_operations(void)
{
    puts("\nOperations");
    for (int i = 0; operation_at(i); i++)
        printf("  %-20s%s\n", operation_at(i)->info.name, operation_at(i)->info.formula);
}

static void print_kernels(void)
{
    const table_column columns[] = {{"kernel", false, 0, false},
                                    {"kind", false, 3, false},
                                    {"types", false, 1, false},
                                    {"needs", false, 2, false},
                                    {"tunables", false, 4, true}};
    table *t = table_make(columns, 5);
    for (int i = 0; i < spk_kernel_count(); i++) {
        spk_kernel_info info = {SPK_SIZED(spk_kernel_info)};
        if (spk_kernel_get_info(i, &info) != SPK_OK)
            continue;
        table_row(t, TABLE_PLAIN);
        table_cell(t, 0, "%s", info.name);
        table_cell(t, 1, "%s", result_kind_name(info.kind));
        table_cell(t, 2, "%s", info.types ? info.types : "");
        table_cell(t, 3, "%s", info.isa ? info.isa : "");
        table_cell(t, 4, "%s", info.tunables ? info.tunables : "");
    }
    puts("\nKernels");
    table_print(t, 2);
    table_release(&t);
}

static void print_facts(const spk_device_info *d)
{
    const bool gpu = d->processors > 0;
    printf("sparsek %s (%s)\n\nDevice\n  %-12s%s\n  %-12s%s\n", spk_version(), spk_commit(), "kind", d->kind, "name", d->name);
    if (gpu)
        printf("  %-12s%d\n", "processors", d->processors);
    printf("  %-12s%d\n  %-12s", gpu ? "host threads" : "threads", d->threads, "isa");
    for (int i = 0; i < d->isa_count; i++)
        printf("%s%s", i ? ", " : "", d->isa[i]);
    putchar('\n');
    size_line(gpu ? "L1, shared" : "L1 data", d->l1_bytes);
    size_line("L2", d->l2_bytes);
    if (!gpu)
        size_line("L3", d->l3_bytes);
    size_line("memory", d->memory_bytes);
    if (d->clock_mhz > 0)
        spk_fprintf(stdout, "  %-12s%.0f MHz\n", "clock", d->clock_mhz);
    if (d->power_w > 0)
        spk_fprintf(stdout, "  %-12s%.0f W\n", "power", d->power_w);
    if (gpu)
        printf("  %-12s%d candidates, for where there is no prover\n", "proved", d->proved_candidates);
}

static json_t *info_json(cli *app, const spk_device_info *device, const device_list *devices, spk_context *other)
{
    json_t *results = json_array(), *o = json_object(), *libraries = json_array();
    libraries_json(app->context, libraries);
    libraries_json(other, libraries);
    json_put(o, "devices", devices_json(devices));
    json_put(o, "libraries", libraries);
    json_put(o, "operations", operations_json());
    json_put(o, "kernels", kernels_json());
    json_put(o, "store", json_text(spk_store_path(app->context)));
    json_put(o, "l1_bytes", json_integer(device->l1_bytes));
    json_put(o, "l2_bytes", json_integer(device->l2_bytes));
    json_put(o, "l3_bytes", json_integer(device->l3_bytes));
    json_put(o, "memory_bytes", json_integer(device->memory_bytes));
    json_put(o, "processors", device->processors > 0 ? json_integer(device->processors) : json_null());
    json_put(o, "proved_candidates", device->processors > 0 ? json_integer(device->proved_candidates) : json_null());
    json_push(results, o);
    return results;
}

static int show(cli *app, const spk_device_info *device)
{
    device_list *devices = cli_alloc(1, sizeof(*devices));
    devices->count = 0;
    (void)spk_device_list(keep_device, devices);
    spk_context *other = other_context(app, devices);
    int code = json_finish(app, json_envelope(app, info_json(app, device, devices, other)), EXIT_DONE);
    if (code == EXIT_DONE && cli_talks(app)) {
        print_facts(device);
        print_devices(devices);
        puts("\nVendor libraries");
        print_libraries(app->context);
        print_libraries(other);
        print_operations();
        print_kernels();
        const char *store = spk_store_path(app->context);
        printf("\nStore\n  %s\n", store[0] ? cli_clean(store) : "in memory");
    }
    spk_context_destroy(&other);
    free(devices);
    return code;
}

int cmd_info(cli *app, int argc, char **argv)
{
    args a = {.command = "info",
              .synopsis = "[options]",
              .about = about,
              .examples = "sparsek info\nsparsek info --device cuda:0\nsparsek info --json -\n"};
    a.often = "device json";
    cli_common_options(&a, app, HEEDS_THREADS | HEEDS_DEVICE | HEEDS_STORE);
    int code = cli_parse(&a, argc, argv);
    if (code != ARGS_GO)
        return code;
    code = cli_open(app);
    if (code)
        return code;
    spk_device_info device = {SPK_SIZED(spk_device_info)};
    spk_status status = spk_context_get_device(app->context, &device);
    return status != SPK_OK ? cli_status(app, NULL, status, NULL) : show(app, &device);
}
