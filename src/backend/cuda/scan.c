/* Looks through an array in device memory for what was not written, is not finite, or lies where nothing should have been written: the tuner checks many
 * candidates, and what it needs of a large output is a few rows and the word that the rest is whole. */
#include <stdio.h>

#include "backend/cuda/cuda.h"

enum { SCAN_THREADS = 256, MOST_BLOCKS = 2048 };

void spk_cuda_scan_build(spk_dtype dtype, spk_build *build)
{
    static const struct {
        spk_dtype dtype;
        const char *bits, *exponent;
    } types[] = {{SPK_F32, "spk_u32", "0x7f800000u"},
                 {SPK_F64, "spk_u64", "0x7ff0000000000000ull"},
                 {SPK_F16, "spk_u16", "0x7c00u"},
                 {SPK_BF16, "spk_u16", "0x7f80u"}};
    *build = (spk_build){.file = "check_written.cu", .entry = "check_written"};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (types[i].dtype == dtype)
            snprintf(build->options, sizeof build->options, "-DBITS=%s -DEXPONENT=%s", types[i].bits, types[i].exponent);
}

/* found: device memory of an int that is 0. */
static spk_status launch(spk_device *device, const spk_build *build, const spk_scan *scan, void *found)
{
    spk_cuda *cuda = spk_cuda_of(device);
    CUfunction function = NULL;
    spk_cuda_scope scope;
    SPK_TRY(spk_cuda_enter(device, &scope));
    spk_status status = spk_cuda_function(device, build, &function);
    if (status == SPK_OK) {
        const void *array = scan->array;
        long long lines = scan->lines, length = scan->length, ld = scan->ld;
        void *parameters[] = {&array, &lines, &length, &ld, &found};
        const int64_t blocks = ((scan->lines - 1) * scan->ld + scan->length + SCAN_THREADS - 1) / SCAN_THREADS;
        pthread_mutex_lock(&cuda->stream_lock);
        status = spk_cuda_launch(device, function, (unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS), SCAN_THREADS, 0, cuda->stream, parameters);
        if (status == SPK_OK)
            status = spk_cuda_wait(device);
        pthread_mutex_unlock(&cuda->stream_lock);
    }
    spk_cuda_leave(&scope);
    return status;
}

spk_status spk_cuda_scan(spk_device *device, const spk_scan *scan, bool *clean)
{
    const spk_backend *backend = device->backend;
    spk_build build;
    void *found = NULL;
    int answer = 0;
    spk_status status;
    *clean = true;
    if (scan->lines <= 0 || scan->length <= 0)
        return SPK_OK;
    spk_cuda_scan_build(scan->dtype, &build);
    if (build.options[0] == '\0')
        return spk_fail(SPK_ERR_UNSUPPORTED, "there is no scan of %s", spk_dtype_name(scan->dtype));
    SPK_TRY(backend->allocate(device, sizeof answer, &found));
    SPK_GOTO(backend->fill(device, found, 0, sizeof answer));
    SPK_GOTO(launch(device, &build, scan, found));
    SPK_GOTO(backend->copy_out(device, &answer, found, sizeof answer));
    *clean = answer == 0;
done:
    backend->release(device, found);
    return status;
}
