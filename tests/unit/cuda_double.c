/* A test double of libcuda for the error paths of the CUDA backend alone: it computes nothing. Device memory is host memory that it knows
 * again. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/runtime/driver.h"
#include "cuda_double.h"

#define SPK_ENTRY(member, symbol, result, arguments) result double_##member arguments __asm__(symbol);
#include "backend/cuda/runtime/driver_entries.def"
#undef SPK_ENTRY

enum { MOST_BLOCKS = 256, MOST_FUNCTIONS = 4096, ERROR_INVALID_DEVICE = 101, ERROR_INVALID_IMAGE = 200, ERROR_CAPTURE_INVALIDATED = 901 };

/* A program that was compiled for the host is the name of a shared object behind this. */
static const char ON_HOST[] = "on host:";
typedef void (*run_on_host)(void **parameters, unsigned grid, unsigned threads);
struct program {
    char name[64];
    run_on_host run;
};
static struct program functions[MOST_FUNCTIONS];

cuda_double cuda_double_state;
#define STATE (&cuda_double_state)

static struct {
    char *begin;
    size_t bytes;
} blocks[MOST_BLOCKS];

static struct held {
    void *to;
    CUdeviceptr from;
    size_t bytes;
} held;

static CUcontext current, context = (CUcontext)(void *)&current;
static char things[8];

static int block_of(CUdeviceptr pointer)
{
    for (int i = 0; i < MOST_BLOCKS; i++)
        if (blocks[i].begin != NULL && pointer >= (CUdeviceptr)blocks[i].begin && pointer < (CUdeviceptr)blocks[i].begin + blocks[i].bytes)
            return i;
    return -1;
}

CUresult double_init(unsigned flags)
{
    return STATE->init;
}
CUresult double_driver_version(int *version)
{
    return *version = 13000, 0;
}
CUresult double_error_name(CUresult error, const char **name)
{
    *name = error == 2     ? "CUDA_ERROR_OUT_OF_MEMORY"
            : error == 100 ? "CUDA_ERROR_NO_DEVICE"
            : error == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                           : "CUDA_ERROR_OTHER";
    return 0;
}
CUresult double_error_string(CUresult error, const char **text)
{
    return *text = "in words", 0;
}
CUresult double_device_count(int *count)
{
    return *count = 2, 0;
}
CUresult double_device_get(CUdevice *device, int ordinal)
{
    return *device = ordinal, ordinal < 2 ? 0 : ERROR_INVALID_DEVICE;
}
CUresult double_device_name(char *name, int size, CUdevice device)
{
    return strncpy(name, "Double GPU", (size_t)size), 0;
}
CUresult double_device_attribute(int *value, int attribute, CUdevice device)
{
    *value = attribute == 75 ? 9 : attribute == 76 ? 0 : attribute == 16 ? 132 : attribute == 38 ? 1 << 16 : attribute == 97 ? 232448 : 0;
    return 0;
}
CUresult double_device_memory(size_t *bytes, CUdevice device)
{
    return *bytes = (size_t)1 << 30, 0;
}
CUresult double_device_pci(char *text, int size, CUdevice device)
{
    return strncpy(text, "0000:00:00.0", (size_t)size), 0;
}
CUresult double_context_retain(CUcontext *out, CUdevice device)
{
    return *out = context, STATE->live_contexts++, 0;
}
CUresult double_context_release(CUdevice device)
{
    return STATE->live_contexts--, 0;
}
CUresult double_context_push(CUcontext pushed)
{
    if (STATE->context_push != 0)
        return STATE->context_push;
    current = pushed;
    STATE->depth++;
    return 0;
}
CUresult double_context_pop(CUcontext *popped)
{
    *popped = current;
    if (--STATE->depth == 0)
        current = NULL;
    return 0;
}
CUresult double_context_current(CUcontext *out)
{
    return *out = current, 0;
}
CUresult double_memory_info(size_t *free_bytes, size_t *total_bytes)
{
    return *free_bytes = 12345678, *total_bytes = (size_t)1 << 30, 0;
}
/* What a capture under way forbids to a thread that has not asked otherwise. */
enum { CAPTURE_RELAXED = 2, CAPTURE_UNSUPPORTED = 900 };
static bool forbidden(void)
{
    return STATE->capturing != 0 && STATE->capture_mode != CAPTURE_RELAXED;
}

CUresult double_memory_allocate(CUdeviceptr *memory, size_t bytes)
{
    if (forbidden())
        return CAPTURE_UNSUPPORTED;
    if (STATE->allocate != 0)
        return STATE->allocate;
    for (int i = 0; i < MOST_BLOCKS; i++) {
        if (blocks[i].begin != NULL)
            continue;
        blocks[i].begin = aligned_alloc(256, (bytes + 255) / 256 * 256);
        blocks[i].bytes = bytes;
        *memory = (CUdeviceptr)blocks[i].begin;
        STATE->live_memory++;
        return 0;
    }
    return 2;
}
CUresult double_memory_release(CUdeviceptr memory)
{
    int i = block_of(memory);
    if (i < 0)
        return 1;
    if (held.to != NULL && block_of(held.from) == i)
        held.to = NULL;
    free(blocks[i].begin);
    blocks[i].begin = NULL;
    STATE->live_memory--;
    return 0;
}
CUresult double_pinned_allocate(void **memory, size_t bytes, unsigned flags)
{
    if (STATE->allocate != 0)
        return STATE->allocate;
    STATE->live_memory++;
    return *memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096), 0;
}
CUresult double_pinned_release(void *memory)
{
    return free(memory), STATE->live_memory--, 0;
}
CUresult double_pool_create(CUmemoryPool *pool, const spk_pool_properties *properties)
{
    return *pool = (CUmemoryPool)(void *)(things + 5), STATE->live_pools++,
           properties->allocation == 1 && properties->location_kind == 1 ? 0 : 1;
}
CUresult double_pool_destroy(CUmemoryPool pool)
{
    return STATE->live_pools--, 0;
}
CUresult double_pool_set_attribute(CUmemoryPool pool, int attribute, void *value)
{
    return attribute == 4 ? 0 : 1;
}
CUresult double_pool_allocate(CUdeviceptr *memory, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    return double_memory_allocate(memory, bytes);
}
CUresult double_pool_release(CUdeviceptr memory, CUstream stream)
{
    return STATE->released_on = stream, double_memory_release(memory);
}
CUresult double_copy_in(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    return block_of(to) < 0 ? 1 : (memcpy((void *)to, from, bytes), 0);
}
CUresult double_copy_out(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    if (stream == STATE->held_stream && stream != NULL) { /* the work on it is not done yet */
        held = (struct held){to, from, bytes};
        return 0;
    }
    return block_of(from) < 0 ? 1 : (memcpy(to, (void *)from, bytes), 0);
}
CUresult double_copy_within(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return memmove((void *)to, (void *)from, bytes), 0;
}
CUresult double_fill_bytes(CUdeviceptr to, unsigned char value, size_t count, CUstream stream)
{
    return memset((void *)to, value, count), 0;
}
static CUresult say(void *value, int attribute, CUdeviceptr pointer)
{
    int foreign = (void *)pointer == STATE->foreign, ours = block_of(pointer) >= 0;
    *(int *)value = attribute == 2 ? (ours || foreign ? 2 : 0) : foreign ? 1 : 0;
    return 0;
}
CUresult double_pointer_attributes(unsigned count, int *attributes, void **values, CUdeviceptr pointer)
{
    for (unsigned i = 0; i < count; i++)
        say(values[i], attributes[i], pointer);
    return 0;
}
CUresult double_module_load(CUmodule *module, const void *image)
{
    *module = (CUmodule)(void *)things;
    if (memcmp(image, ON_HOST, sizeof ON_HOST - 1) == 0)
        *module = dlopen((const char *)image + sizeof ON_HOST - 1, RTLD_NOW | RTLD_LOCAL);
    return *module != NULL ? 0 : ERROR_INVALID_IMAGE;
}
CUresult double_module_unload(CUmodule module)
{
    return 0;
}
/* A function is its name, and how it runs on the host, where it does. */
CUresult double_module_function(CUfunction *function, CUmodule module, const char *name)
{
    char runner[80];
    snprintf(runner, sizeof runner, "run_%s", name);
    const run_on_host run = module != (CUmodule)(void *)things ? (run_on_host)dlsym(module, runner) : NULL;
    int at = 0;
    while (at < MOST_FUNCTIONS - 1 && functions[at].name[0] != '\0' && (strcmp(functions[at].name, name) != 0 || functions[at].run != run))
        at++;
    strncpy(functions[at].name, name, sizeof functions[at].name - 1);
    functions[at].run = run;
    *function = (CUfunction)(void *)&functions[at];
    return 0;
}
CUresult double_function_set_attribute(CUfunction function, int attribute, int value)
{
    return 0;
}
CUresult double_launch(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                       unsigned block_z, unsigned shared_bytes, CUstream stream, void **parameters, void **extra)
{
    STATE->launches++;
    if (STATE->run != NULL)
        STATE->run((const char *)function, parameters, grid_x * grid_y * grid_z, block_x);
    const struct program *program = (const void *)function; /* some tests launch what is none */
    if (program >= functions && program < functions + MOST_FUNCTIONS && program->run != NULL)
        program->run(parameters, grid_x * grid_y * grid_z, block_x);
    STATE->launched = (const char *)function;
    STATE->grid = grid_x * grid_y * grid_z;
    STATE->launches_captured += STATE->capturing;
    return STATE->launch;
}
CUresult double_launch_extended(const spk_launch_config *config, CUfunction function, void **parameters, void **extra)
{
    return double_launch(function, config->grid_x, 1, 1, config->block_x, 1, 1, config->shared_bytes, config->stream, parameters, extra);
}
CUresult double_active_clusters(int *clusters, CUfunction function, const spk_launch_config *config)
{
    return *clusters = 132 / config->attributes->value[0], 0;
}
#ifndef DOUBLE_LACKS_TENSOR_MAPS
CUresult double_tensor_map_tiled(CUtensorMap *map, int dtype, uint32_t rank, void *address, const uint64_t *sizes,
                                 const uint64_t *strides_bytes, const uint32_t *box, const uint32_t *element_strides, int interleave,
                                 int swizzle, int l2_promotion, int fill)
{
    memset(map, 0, sizeof *map);
    map->words[0] = (uint64_t)dtype;
    map->words[1] = rank > 1 ? strides_bytes[0] : 0;
    map->words[2] = (uint64_t)swizzle;
    return 0;
}
#endif
CUresult double_stream_create(CUstream *stream, unsigned flags)
{
    return *stream = (CUstream)(void *)(things + 1), STATE->live_streams++, 0;
}
CUresult double_stream_destroy(CUstream stream)
{
    return STATE->live_streams--, 0;
}
CUresult double_stream_synchronize(CUstream stream)
{
    return STATE->query;
}
CUresult double_stream_query(CUstream stream)
{
    STATE->queries++;
    if (forbidden())
        return CAPTURE_UNSUPPORTED;
    if (held.to != NULL && STATE->held_stream == NULL)
        memcpy(held.to, (void *)held.from, held.bytes);
    held.to = STATE->held_stream == NULL ? NULL : held.to;
    return STATE->query;
}
CUresult double_stream_is_capturing(CUstream stream, int *status)
{
    return *status = STATE->capturing, 0;
}
CUresult double_stream_begin_capture(CUstream stream, int mode)
{
    if (STATE->begin_capture == 0)
        STATE->capturing = 1;
    return STATE->begin_capture;
}
CUresult double_stream_end_capture(CUstream stream, CUgraph *graph)
{
    STATE->capturing = 0;
    if (STATE->launch != 0) {
        *graph = NULL;
        return ERROR_CAPTURE_INVALIDATED;
    }
    *graph = (CUgraph)(void *)(things + 2);
    STATE->live_graphs++;
    return 0;
}
CUresult double_capture_mode(int *mode)
{
    int old = STATE->capture_mode;
    STATE->capture_mode = *mode;
    *mode = old;
    return 0;
}
CUresult double_graph_instantiate(CUgraphExec *executable, CUgraph graph, unsigned long long flags)
{
    *executable = (CUgraphExec)(void *)(things + 3);
    STATE->live_graphs++;
    return 0;
}
CUresult double_graph_launch(CUgraphExec executable, CUstream stream)
{
    return STATE->graph_launches++, 0;
}
CUresult double_graph_upload(CUgraphExec executable, CUstream stream)
{
    return 0;
}
CUresult double_graph_executable_destroy(CUgraphExec executable)
{
    return STATE->live_graphs--, 0;
}
CUresult double_graph_destroy(CUgraph graph)
{
    return STATE->live_graphs--, 0;
}
CUresult double_event_create(CUevent *event, unsigned flags)
{
    return *event = (CUevent)(void *)(things + 4), STATE->live_events++, 0;
}
CUresult double_event_destroy(CUevent event)
{
    return STATE->live_events--, 0;
}
CUresult double_event_record(CUevent event, CUstream stream)
{
    return 0;
}
CUresult double_event_record_flags(CUevent event, CUstream stream, unsigned flags)
{
    return 0;
}
CUresult double_event_elapsed(float *ms, CUevent from, CUevent to)
{
    return *ms = 1, 0;
}
