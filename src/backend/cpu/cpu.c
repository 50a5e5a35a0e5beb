/* The CPU backend: host memory, the caller's or OpenMP's threads, the monotonic clock. */
#include "backend/cpu/cpu.h"

#include <stdio.h>
#include <string.h>

#include "backend/cpu/probe.h"
#include "backend/cpu/time.h"
#include "base/processors.h"

enum { KEY_BYTES = 1024 };

static spk_status cpu_open(const spk_mem *mem, const char *name, const spk_executor *executor, spk_device **out)
{
    (void)name; /* there is one CPU */
    spk_device *device = NULL;
    char *key = NULL;
    SPK_TRY(spk_calloc(mem, 1, sizeof *device, &device));
    spk_status status = SPK_OK;
    device->backend = &spk_backend_cpu;
    device->mem = *mem;
    device->executor = *executor;
    if (device->executor.threads == 0)
        device->executor.threads = spk_probe_threads();
    if (!spk_executor_usable(&device->executor))
        device->executor.threads = 1;
    spk_probe_name(device->name, sizeof device->name);
    device->isa = spk_probe_isa();
    device->l1_bytes = spk_probe_cache_bytes(1);
    device->l2_bytes = spk_probe_cache_bytes(2);
    device->l3_bytes = spk_probe_cache_bytes(3);
    device->memory_bytes = spk_probe_memory_bytes();
    int flops_a_cycle = device->isa & SPK_ISA_AVX512F ? 64 : device->isa & SPK_ISA_FMA ? 32 : 8;
    device->peak_gflops_f32 = spk_probe_ghz() * flops_a_cycle * device->executor.threads;
    device->stream_gbs = device->executor.threads < 8 ? 8.0 + 6.0 * device->executor.threads : 56.0 + 2.0 * device->executor.threads;
    SPK_GOTO(spk_libraries_find(mem, device->executor.threads, &device->libraries));
    SPK_GOTO(spk_calloc(mem, KEY_BYTES, 1, &key));
    int used = snprintf(key, KEY_BYTES, "cpu:%s:t%d:isa%x:", device->name, device->executor.threads, device->isa);
    spk_libraries_key(device->libraries, key + used, KEY_BYTES - (size_t)used);
    for (char *c = key; *c != '\0'; c++)
        if (*c == ' ' || *c == '|' || *c == ';')
            *c = '_';
    device->state = key;
    *out = device;
    return SPK_OK;
done:
    spk_libraries_release(&device->libraries);
    spk_free(mem, device);
    return status;
}

static void cpu_close(spk_device **device)
{
    if (*device == NULL)
        return;
    spk_mem mem = (*device)->mem;
    spk_libraries_release(&(*device)->libraries);
    spk_free(&mem, (*device)->state);
    spk_free(&mem, *device);
    *device = NULL;
}

static spk_status cpu_allocate(spk_device *device, size_t bytes, void **memory)
{
    return spk_alloc(&device->mem, bytes, 1, memory);
}

static void cpu_release(spk_device *device, void *memory)
{
    spk_free(&device->mem, memory);
}

static spk_status cpu_copy(spk_device *device, void *to, const void *from, size_t bytes)
{
    (void)device;
    if (bytes > 0)
        memcpy(to, from, bytes);
    return SPK_OK;
}

static spk_status cpu_fill(spk_device *device, void *to, unsigned char byte, size_t bytes)
{
    (void)device;
    if (bytes > 0)
        memset(to, byte, bytes);
    return SPK_OK;
}

static int cpu_list(int (*visit)(void *user, const spk_device_entry *entry), void *user)
{
    char name[96];
    spk_probe_name(name, sizeof name);
    return visit(user, &(spk_device_entry){SPK_SIZED(spk_device_entry), .device = "cpu", .name = name,
                                           .memory_bytes = spk_probe_memory_bytes(), .why = ""});
}

static int64_t cpu_free_memory(spk_device *device)
{
    (void)device;
    return spk_probe_free_bytes();
}

/* A thread with little stack goes without a library, and its evidence is not for others: nor is theirs for it. */
static spk_status cpu_key_text(spk_device *device, char *buffer, size_t size)
{
    snprintf(buffer, size, "%s%s", (const char *)device->state, spk_libraries_lack_stack(device->libraries) ? ":little-stack" : "");
    return SPK_OK;
}

/* "cpu:NAME:t2:isa7f:f26m2": the first four words of the key's text, and the design of the processor, which a virtual machine's name hides.
 */
static void cpu_model_text(spk_device *device, char *buffer, size_t size)
{
    const char *key = device->state, *end = key;
    char design[32];
    spk_probe_design(design, sizeof design);
    for (int words = 0; words < 4 && *end != '\0'; words++)
        end += words > 0 ? 1 + strcspn(end + 1, ":") : strcspn(end, ":");
    snprintf(buffer, size, "%.*s%s%s", (int)(end - key), key, design[0] != '\0' ? ":" : "", design);
}

static spk_status cpu_library_info(spk_device *device, int index, spk_library_info *info)
{
    return spk_libraries_info(device->libraries, index, info);
}

const spk_backend spk_backend_cpu = {
    .id = SPK_BACKEND_CPU,
    .kind = "cpu",
    .budget_s = 2,
    .host_memory = true,
    .shares_processors = true,
    .splits_batches = true,
    .open = cpu_open,
    .close = cpu_close,
    .list = cpu_list,
    .allocate = cpu_allocate,
    .release = cpu_release,
    .copy_in = cpu_copy,
    .copy_out = cpu_copy,
    .copy_within = cpu_copy,
    .fill = cpu_fill,
    .free_memory = cpu_free_memory,
    .time_runs = spk_cpu_time_runs,
    .key_text = cpu_key_text,
    .model_text = cpu_model_text,
    .library_found = spk_library_found,
    .library_why = spk_library_why,
    .library_count = spk_libraries_count,
    .library_info = cpu_library_info,
};
