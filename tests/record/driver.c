/* A test double of libcuda that records: what is launched with which parameters, and what comes to its memory. It computes nothing. The
 * card that it is: SPARSEK_RECORD_CARD, "NAME:90:132:62914560" (compute capability, multiprocessors, bytes of the last cache). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/runtime/driver.h"
#include "record.h"

#define SPK_ENTRY(member, symbol, result, arguments) result double_##member arguments __asm__(symbol);
#include "backend/cuda/runtime/driver_entries.def"
#undef SPK_ENTRY

/* No committed proof is of this driver, so that a plan has no second candidate. */
enum { DRIVER_VERSION = 99000, ERROR_INVALID_DEVICE = 101 };

struct CUfunc_st {
    int program;
    char entry[64];
};
struct CUmod_st {
    int program;
};

static CUcontext current, context = (CUcontext)(void *)&current;
static char things[8];

static struct card {
    char name[64];
    int compute, processors, cache_bytes;
} card;

CUresult double_init(unsigned flags)
{
    const char *text = getenv("SPARSEK_RECORD_CARD");
    return text == NULL || sscanf(text, "%63[^:]:%d:%d:%d", card.name, &card.compute, &card.processors, &card.cache_bytes) != 4;
}
CUresult double_driver_version(int *version)
{
    return *version = DRIVER_VERSION, 0;
}
CUresult double_error_name(CUresult error, const char **name)
{
    return *name = "CUDA_ERROR", 0;
}
CUresult double_error_string(CUresult error, const char **text)
{
    return *text = "the recording double refuses it", 0;
}
CUresult double_device_count(int *count)
{
    return *count = 1, 0;
}
CUresult double_device_get(CUdevice *device, int ordinal)
{
    return *device = ordinal, ordinal == 0 ? 0 : ERROR_INVALID_DEVICE;
}
CUresult double_device_name(char *name, int size, CUdevice device)
{
    return snprintf(name, (size_t)size, "%s", card.name), 0;
}
/* Clocks and widths are rough: they only order candidates. */
CUresult double_device_attribute(int *value, int attribute, CUdevice device)
{
    const bool hopper = card.compute >= 90;
    const int facts[][2] = {{13, 1500000},
                            {16, card.processors},
                            {36, 2000000},
                            {37, 5120},
                            {38, card.cache_bytes},
                            {75, card.compute / 10},
                            {76, card.compute % 10},
                            {81, hopper ? 233472 : 167936},
                            {97, hopper ? 232448 : 166912}};
    *value = 0;
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
        *value = facts[i][0] == attribute ? facts[i][1] : *value;
    return 0;
}
CUresult double_device_memory(size_t *bytes, CUdevice device)
{
    return *bytes = (size_t)80 << 30, 0;
}
CUresult double_device_pci(char *text, int size, CUdevice device)
{
    return snprintf(text, (size_t)size, "0000:00:00.0"), 0;
}
CUresult double_context_retain(CUcontext *out, CUdevice device)
{
    return *out = context, 0;
}
CUresult double_context_release(CUdevice device)
{
    return 0;
}
CUresult double_context_push(CUcontext pushed)
{
    return current = pushed, 0;
}
CUresult double_context_pop(CUcontext *popped)
{
    return *popped = current, current = NULL, 0;
}
CUresult double_context_current(CUcontext *out)
{
    return *out = current, 0;
}
CUresult double_memory_info(size_t *free_bytes, size_t *total_bytes)
{
    return *free_bytes = *total_bytes = (size_t)80 << 30, 0;
}

/* ------------------------------------------------------------------------------------------------ memory */

CUresult double_memory_allocate(CUdeviceptr *memory, size_t bytes)
{
    *memory = (CUdeviceptr)(uintptr_t)record_allocate(bytes);
    return *memory != 0 ? 0 : CUDA_ERROR_OUT_OF_MEMORY_;
}
CUresult double_memory_release(CUdeviceptr memory)
{
    return record_release(memory) ? 0 : CUDA_ERROR_INVALID_VALUE_;
}
CUresult double_pinned_allocate(void **memory, size_t bytes, unsigned flags)
{
    return *memory = calloc(1, bytes), *memory != NULL ? 0 : CUDA_ERROR_OUT_OF_MEMORY_;
}
CUresult double_pinned_release(void *memory)
{
    return free(memory), 0;
}
CUresult double_pool_create(CUmemoryPool *pool, const spk_pool_properties *properties)
{
    return *pool = (CUmemoryPool)(void *)things, 0;
}
CUresult double_pool_destroy(CUmemoryPool pool)
{
    return 0;
}
CUresult double_pool_set_attribute(CUmemoryPool pool, int attribute, void *value)
{
    return 0;
}
CUresult double_pool_allocate(CUdeviceptr *memory, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    return double_memory_allocate(memory, bytes);
}
CUresult double_pool_release(CUdeviceptr memory, CUstream stream)
{
    return double_memory_release(memory);
}
CUresult double_copy_in(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    record_line("copy in %zu to", bytes);
    record_address(to);
    record_digest(from, bytes);
    record_end_line();
    return memcpy((void *)(uintptr_t)to, from, bytes), 0;
}
CUresult double_copy_out(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    record_line("copy out %zu from", bytes);
    record_address(from);
    record_end_line();
    return memcpy(to, (const void *)(uintptr_t)from, bytes), 0;
}
CUresult double_copy_within(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    record_line("copy %zu from, to", bytes);
    record_address(from);
    record_address(to);
    record_end_line();
    return memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes), 0;
}
CUresult double_fill_bytes(CUdeviceptr to, unsigned char value, size_t count, CUstream stream)
{
    record_line("fill %zu with %d at", count, value);
    record_address(to);
    record_end_line();
    return record_fill((void *)(uintptr_t)to, value, count), 0;
}
/* 2: device memory; of device 0 */
CUresult double_pointer_attributes(unsigned count, int *attributes, void **values, CUdeviceptr pointer)
{
    uint64_t offset = 0;
    for (unsigned i = 0; i < count; i++)
        *(int *)values[i] = attributes[i] == 2 && record_slot(pointer, &offset) >= 0 ? 2 : 0;
    return 0;
}

/* ------------------------------------------------------------------------------------------------ programs and launches */

CUresult double_module_load(CUmodule *module, const void *image)
{
    *module = malloc(sizeof **module);
    if (*module == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY_;
    (*module)->program = record_program(image);
    return 0;
}
CUresult double_module_unload(CUmodule module)
{
    return free(module), 0;
}
/* Functions stay: a program used names its entry. */
CUresult double_module_function(CUfunction *function, CUmodule module, const char *name)
{
    *function = calloc(1, sizeof **function);
    if (*function == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY_;
    (*function)->program = module->program;
    snprintf((*function)->entry, sizeof(*function)->entry, "%s", name);
    return 0;
}
CUresult double_function_set_attribute(CUfunction function, int attribute, int value)
{
    return 0; /* once a process and program: the launch says how much shared memory it wants */
}

static CUresult record_parameters(CUfunction function, void **parameters)
{
    const record_layout *layout = record_layout_of(function->entry);
    if (layout == NULL) {
        fprintf(stderr, "record: no layout of the parameters of %s\n", function->entry);
        return CUDA_ERROR_INVALID_VALUE_;
    }
    for (int i = 0; i < layout->count; i++) {
        record_line(" (");
        record_words(parameters[i], layout->bytes[i], layout->masks[i]);
        record_line(" )");
    }
    record_end_line();
    return 0;
}
CUresult double_launch(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                       unsigned block_z, unsigned shared_bytes, CUstream stream, void **parameters, void **extra)
{
    const spk_launch_config config = {grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, NULL, 0};
    return double_launch_extended(&config, function, parameters, extra);
}
CUresult double_launch_extended(const spk_launch_config *config, CUfunction function, void **parameters, void **extra)
{
    record_program_used(function->program, function->entry);
    record_line("launch of program %d, grid %u %u %u block %u %u %u shared %u stream %d",
                record_program_number(function->program, function->entry), config->grid_x, config->grid_y, config->grid_z, config->block_x,
                config->block_y, config->block_z, config->shared_bytes, config->stream != NULL);
    for (unsigned i = 0; i < config->attribute_count; i++)
        record_line(" attribute %d %d %d %d", config->attributes[i].id, config->attributes[i].value[0], config->attributes[i].value[1],
                    config->attributes[i].value[2]);
    return record_parameters(function, parameters);
}
CUresult double_active_clusters(int *clusters, CUfunction function, const spk_launch_config *config)
{
    return *clusters = card.processors / config->attributes->value[0], 0;
}
/* A map is what it was made of; the address is a word of its own, which a record names. */
CUresult double_tensor_map_tiled(CUtensorMap *map, int dtype, uint32_t rank, void *address, const uint64_t *sizes,
                                 const uint64_t *strides_bytes, const uint32_t *box, const uint32_t *element_strides, int interleave,
                                 int swizzle, int l2_promotion, int fill)
{
    const uint64_t number = UINT64_C(1) << 63; /* no address */
    const uint64_t first = number | (uint64_t)dtype << 40 | (uint64_t)rank << 32 | (uint64_t)interleave << 24 | (uint64_t)swizzle << 16 |
                           (uint64_t)l2_promotion << 8 | (uint64_t)fill;
    *map = (CUtensorMap){{(uint64_t)(uintptr_t)address, first}};
    for (uint32_t i = 0; i < rank; i++) { /* at most 5 dimensions; strides are below 2^40, boxes and steps up to 256 */
        map->words[2 + i] = number | sizes[i];
        map->words[7 + i] = number | (i + 1 < rank ? strides_bytes[i] : 0) << 18 | (uint64_t)box[i] << 9 | element_strides[i];
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------------ streams, graphs, events */

CUresult double_stream_create(CUstream *stream, unsigned flags)
{
    return *stream = (CUstream)(void *)(things + 1), 0;
}
CUresult double_stream_destroy(CUstream stream)
{
    return 0;
}
CUresult double_stream_synchronize(CUstream stream)
{
    return 0;
}
CUresult double_stream_query(CUstream stream)
{
    return 0;
}
CUresult double_stream_is_capturing(CUstream stream, int *status)
{
    return *status = 0, 0;
}
CUresult double_stream_begin_capture(CUstream stream, int mode)
{
    return CUDA_ERROR_INVALID_VALUE_;
}
CUresult double_stream_end_capture(CUstream stream, CUgraph *graph)
{
    return CUDA_ERROR_INVALID_VALUE_;
}
CUresult double_capture_mode(int *mode)
{
    return 0;
}
CUresult double_graph_instantiate(CUgraphExec *executable, CUgraph graph, unsigned long long flags)
{
    return CUDA_ERROR_INVALID_VALUE_;
}
CUresult double_graph_launch(CUgraphExec executable, CUstream stream)
{
    return CUDA_ERROR_INVALID_VALUE_;
}
CUresult double_graph_upload(CUgraphExec executable, CUstream stream)
{
    return CUDA_ERROR_INVALID_VALUE_;
}
CUresult double_graph_executable_destroy(CUgraphExec executable)
{
    return 0;
}
CUresult double_graph_destroy(CUgraph graph)
{
    return 0;
}
CUresult double_event_create(CUevent *event, unsigned flags)
{
    return *event = (CUevent)(void *)(things + 2), 0;
}
CUresult double_event_destroy(CUevent event)
{
    return 0;
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
