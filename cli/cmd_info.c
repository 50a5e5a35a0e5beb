/* sparsek info: the device, the vendor libraries, the kernels, the store. */
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "result.h"
#include "table.h"
#include "term.h"

static const char about[] = "Shows the processor, its instruction sets and caches, the vendor libraries that were found (version, path), the\n"
                            "table of kernels, and where the store is. Asking a library for its version opens it.";

static json_t *libraries_json(cli *app)
{
    json_t *list = json_array();
    for (int i = 0; i < spk_library_count(app->context); i++) {
        spk_library_info info = {SPK_SIZED(spk_library_info)};
        if (spk_context_library(app->context, i, &info) != SPK_OK)
            continue;
        json_t *o = json_object();
        json_put(o, "name", json_text(info.name));
        json_put(o, "found", json_boolean(info.found));
        json_put(o, "path", info.path && info.path[0] ? json_text(info.path) : json_null());
        json_put(o, "version", info.version && info.version[0] ? json_text(info.version) : json_null());
        json_put(o, "why", info.why && info.why[0] ? json_text(info.why) : json_null());
        json_push(list, o);
    }
    return list;
}

static json_t *kernels_json(void)
{
    json_t *list = json_array();
    for (int i = 0; i < spk_kernel_count(); i++) {
        spk_kernel_info info = {SPK_SIZED(spk_kernel_info)};
        if (spk_kernel_get(i, &info) != SPK_OK)
            continue;
        json_t *o = json_object();
        json_put(o, "name", json_text(info.name));
        json_put(o, "op", json_string(info.operation == SPK_SPMM ? "spmm" : "other"));
        json_put(o, "kind", json_string(result_kind_name(info.kind)));
        json_put(o, "device", json_text(info.device));
        json_put(o, "isa", json_text(info.isa));
        json_put(o, "tunables", json_text(info.tunables));
        json_push(list, o);
    }
    return list;
}

static void size_line(const char *name, int64_t bytes)
{
    if (bytes <= 0)
        printf("  %-12sunknown\n", name);
    else if (bytes >= (int64_t)1 << 30)
        printf("  %-12s%.1f GiB\n", name, (double)bytes / (1 << 30));
    else if (bytes >= 1 << 20)
        printf("  %-12s%.3g MiB\n", name, (double)bytes / (1 << 20));
    else
        printf("  %-12s%.3g KiB\n", name, (double)bytes / (1 << 10));
}

static void print_libraries(cli *app)
{
    puts("\nVendor libraries");
    for (int i = 0; i < spk_library_count(app->context); i++) {
        spk_library_info info = {SPK_SIZED(spk_library_info)};
        if (spk_context_library(app->context, i, &info) != SPK_OK)
            continue;
        if (info.found)
            printf("  %-12s%s%s%s\n", info.name, info.version ? info.version : "", info.version && info.version[0] ? ", " : "", info.path ? cli_clean(info.path) : "");
        else
            printf("  %-12snot found%s%s\n", info.name, info.why && info.why[0] ? ": " : "", info.why ? cli_clean(info.why) : "");
    }
}

static void print_kernels(void)
{
    const table_column columns[] = {{"kernel", false, 0, false}, {"kind", false, 2, false}, {"needs", false, 1, false}, {"tunables", false, 3, true}};
    table *t = table_make(columns, 4);
    for (int i = 0; i < spk_kernel_count(); i++) {
        spk_kernel_info info = {SPK_SIZED(spk_kernel_info)};
        if (spk_kernel_get(i, &info) != SPK_OK)
            continue;
        table_row(t, TABLE_PLAIN);
        table_cell(t, 0, "%s", info.name);
        table_cell(t, 1, "%s", result_kind_name(info.kind));
        table_cell(t, 2, "%s", info.isa ? info.isa : "");
        table_cell(t, 3, "%s", info.tunables ? info.tunables : "");
    }
    puts("\nKernels");
    table_print(t, 2);
    table_release(&t);
}

static void print_info(cli *app, const spk_device_info *d)
{
    printf("sparsek %s (%s)\n\nDevice\n  %-12s%s\n  %-12s%s\n  %-12s%d\n  %-12s", spk_version(), spk_commit(), "kind", d->kind, "name", d->name, "threads",
           d->threads, "isa");
    for (int i = 0; i < d->isa_count; i++)
        printf("%s%s", i ? ", " : "", d->isa[i]);
    putchar('\n');
    size_line("L1 data", d->l1_bytes);
    size_line("L2", d->l2_bytes);
    size_line("L3", d->l3_bytes);
    size_line("memory", d->memory_bytes);
    print_libraries(app);
    print_kernels();
    const char *store = spk_store_path(app->context);
    printf("\nStore\n  %s\n", store[0] ? cli_clean(store) : "in memory");
}

int cmd_info(cli *app, int argc, char **argv)
{
    args a = {.command = "info", .synopsis = "[options]", .about = about, .examples = "sparsek info\nsparsek info --json -\n"};
    cli_common_options(&a, app);
    int code = args_parse(&a, argc, argv);
    if (code != ARGS_GO)
        return code;
    code = cli_open(app);
    if (code)
        return code;
    spk_device_info device = {SPK_SIZED(spk_device_info)};
    spk_status status = spk_context_device(app->context, &device);
    if (status != SPK_OK)
        return cli_status(app, NULL, status, NULL);
    json_t *results = json_array(), *o = json_object();
    json_put(o, "libraries", libraries_json(app));
    json_put(o, "kernels", kernels_json());
    json_put(o, "store", json_text(spk_store_path(app->context)));
    json_put(o, "l1_bytes", json_integer(device.l1_bytes));
    json_put(o, "l2_bytes", json_integer(device.l2_bytes));
    json_put(o, "l3_bytes", json_integer(device.l3_bytes));
    json_put(o, "memory_bytes", json_integer(device.memory_bytes));
    json_push(results, o);
    code = json_finish(app, json_envelope(app, results), EXIT_DONE);
    if (code == EXIT_DONE && cli_talks(app))
        print_info(app, &device);
    return code;
}
