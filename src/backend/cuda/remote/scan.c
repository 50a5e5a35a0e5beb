/* Looks through an array in device memory for what was not written, is not finite, or lies where nothing should have been written, and
 * fetches elements that lie far apart: the tuner checks many candidates, and what it needs of a large output is a few rows and the word
 * that the rest is whole. */
#include <stdio.h>

#include "backend/cuda/helpers/gather_lines.h"
#include "backend/cuda/host/frame/launch.h"
#include "backend/cuda/remote/scan.h"

enum { SCAN_THREADS = 256, MOST_BLOCKS = 2048 };

_Static_assert((int)GATHER_LINES_PLACES == (int)SPK_GATHER_MOST && (int)GATHER_LINES_THREADS == (int)SCAN_THREADS, "of gather_lines");

static unsigned grid_for(int64_t elements)
{
    const int64_t blocks = (elements + SCAN_THREADS - 1) / SCAN_THREADS;
    return (unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS);
}

/* Compiles, launches and waits. */
static spk_status run(spk_device *device, const spk_build *build, int64_t elements, void **parameters)
{
    spk_cuda *cuda = spk_cuda_of(device);
    CUfunction function = NULL;
    spk_cuda_scope scope;
    SPK_TRY(spk_cuda_enter(device, &scope));
    spk_status status = spk_cuda_function(device, build, &function);
    if (status == SPK_OK) {
        pthread_mutex_lock(&cuda->stream_lock);
        status = spk_cuda_launch(device, function, grid_for(elements), SCAN_THREADS, 0, cuda->stream, parameters);
        if (status == SPK_OK)
            status = spk_cuda_wait(device);
        pthread_mutex_unlock(&cuda->stream_lock);
    }
    spk_cuda_leave(&scope);
    return status;
}

void spk_cuda_scan_build(spk_dtype dtype, spk_build *build)
{
    const spk_type *type = spk_type_of(dtype);
    *build = (spk_build){.file = "check_written.cu", .entry = "check_written"};
    if (type->use == SPK_USE_VALUES) /* no result is of another type */
        snprintf(build->options, sizeof build->options, "-DBITS=spk_u%d -DEXPONENT=0x%llx%s", 8 * (int)type->bytes,
                 (unsigned long long)spk_type_bits_beyond(dtype), type->bytes == 8 ? "ull" : "u");
}

spk_status spk_cuda_scan(spk_device *device, const spk_scan *scan, bool *clean)
{
    const spk_backend *backend = device->backend;
    spk_build build;
    void *found = NULL;
    int answer = 0;
    const void *array = scan->array;
    long long lines = scan->lines, length = scan->length, ld = scan->ld;
    spk_status status;
    *clean = true;
    if (scan->lines <= 0 || scan->length <= 0)
        return SPK_OK;
    spk_cuda_scan_build(scan->dtype, &build);
    if (build.options[0] == '\0')
        return spk_fail(SPK_ERR_UNSUPPORTED, "there is no scan of %s", spk_dtype_name(scan->dtype));
    SPK_TRY(backend->allocate(device, sizeof answer, &found));
    SPK_GOTO(backend->fill(device, found, 0, sizeof answer));
    SPK_GOTO(run(device, &build, (scan->lines - 1) * scan->ld + scan->length, (void *[]){&array, &lines, &length, &ld, &found}));
    SPK_GOTO(backend->copy_out(device, &answer, found, sizeof answer));
    *clean = answer == 0;
done:
    backend->release(device, found);
    return status;
}

spk_status spk_cuda_gather(spk_device *device, const spk_scan *scan, const int64_t *at, int count, void *to_host)
{
    const spk_backend *backend = device->backend;
    const size_t bytes = (size_t)scan->lines * (size_t)count * spk_dtype_bytes(scan->dtype);
    spk_build build;
    gather_places wanted = {{0}};
    const void *array = scan->array;
    long long lines = scan->lines, ld = scan->ld;
    void *gathered = NULL;
    spk_status status;
    if (count < 0 || count > SPK_GATHER_MOST)
        return spk_fail(SPK_ERR_INTERNAL, "count = %d: %d places are gathered at once at most", count, (int)SPK_GATHER_MOST);
    if (bytes == 0)
        return SPK_OK;
    spk_cuda_scan_build(scan->dtype, &build);
    if (build.options[0] == '\0')
        return spk_fail(SPK_ERR_UNSUPPORTED, "there is no gathering of %s", spk_dtype_name(scan->dtype));
    build.file = "gather_lines.cu";
    build.entry = "gather_lines";
    for (int i = 0; i < count; i++)
        wanted.at[i] = at[i];
    SPK_TRY(backend->allocate(device, bytes, &gathered));
    SPK_GOTO(run(device, &build, scan->lines * count, (void *[]){&array, &lines, &ld, &wanted, &count, &gathered}));
    SPK_GOTO(backend->copy_out(device, to_host, gathered, bytes));
done:
    backend->release(device, gathered);
    return status;
}
