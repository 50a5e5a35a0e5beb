/* The CUDA backend: an NVIDIA GPU through its driver, on the device's primary context, which the host program's own CUDA code shares. */
#include "backend/cuda/remote/check_args.h"
#include "backend/cuda/remote/deferred.h"
#include "backend/cuda/host/indices/index.h"
#include "backend/cuda/remote/scan.h"
#include "backend/cuda/runtime/memory.h"
#include "backend/cuda/runtime/program.h"
#include "backend/cuda/timing/time_runs.h"
#include "backend/cuda/timing/watch.h"
#include "backend/cuda/proof/proof.h"
#include "backend/cuda/proof/proof_store.h"
#include "backend/cuda/proof/proof_table.h"
#include "backend/cuda/vendor/vendor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/environment.h"
#include "base/processors.h"

enum { MOST_DEVICES = 64, STREAM_NON_BLOCKING = 1 };
enum { /* CUdevice_attribute */
       CLOCK_KHZ = 13,
       PROCESSORS = 16,
       MEMORY_KHZ = 36,
       MEMORY_BITS = 37,
       L2_BYTES = 38,
       COMPUTE_MAJOR = 75,
       COMPUTE_MINOR = 76,
       SHARED_PROCESSOR_BYTES = 81,
       SHARED_BLOCK_BYTES = 97
};
static const double default_watchdog_s = 20;

static atomic_int lost_devices[MOST_DEVICES];

/* ------------------------------------------------------------------------------------------------ streams */

static int cuda_captures_spare(const spk_device *device)
{
    return spk_cuda_capture_relax(spk_cuda_of(device));
}

static void cuda_captures_restore(const spk_device *device, int mode)
{
    spk_cuda_capture_restore(spk_cuda_of(device), mode);
}

static spk_status cuda_synchronize(spk_device *device, void *stream)
{
    spk_cuda_scope scope;
    SPK_TRY(spk_cuda_enter(device, &scope));
    spk_status status = spk_cuda_wait_for(device, (CUstream)stream);
    spk_cuda_leave(&scope);
    return status;
}

static spk_status cuda_enter(const spk_device *device, spk_entered *entered)
{
    spk_cuda_scope scope;
    const spk_status status = spk_cuda_enter(device, &scope);
    entered->pushed = scope.pushed != 0;
    return status;
}

static void cuda_leave(const spk_device *device, spk_entered *entered)
{
    spk_cuda_scope scope = {.driver = spk_cuda_of(device)->driver, .pushed = entered->pushed};
    spk_cuda_leave(&scope);
}

static void *cuda_own_stream(spk_device *device)
{
    return spk_cuda_of(device)->stream;
}

static bool cuda_capturing(spk_device *device, void *stream)
{
    spk_cuda_scope scope;
    int capturing = 0;
    if (spk_cuda_is_lost(spk_cuda_of(device)) || spk_cuda_enter(device, &scope) != SPK_OK)
        return false;
    CUresult result = spk_cuda_of(device)->driver->stream_is_capturing((CUstream)stream, &capturing);
    spk_cuda_leave(&scope);
    return result != CUDA_SUCCESS_ || capturing != 0; /* the legacy stream while another is captured: an error */
}

/* ------------------------------------------------------------------------------------------------ open and close */

static spk_status read_ordinal(const char *name, long *wanted)
{
    char *end = NULL;
    *wanted = 0;
    if (name[4] == ':')
        *wanted = name[5] >= '0' && name[5] <= '9' ? strtol(name + 5, &end, 10) : -1;
    if (*wanted < 0 || (end && *end != '\0'))
        return spk_fail(SPK_ERR_ARGUMENT, "device = \"%s\": write \"cuda:0\", \"cuda:1\" and so on", name);
    return SPK_OK;
}

static spk_status find_device(const spk_cuda_driver *driver, const char *name, long wanted, int *ordinal)
{
    int count = 0;
    SPK_TRY(spk_cuda_try(driver, driver->device_count(&count), "cuDeviceGetCount"));
    count = count > MOST_DEVICES ? MOST_DEVICES : count;
    if (wanted >= count)
        return spk_fail(SPK_ERR_UNAVAILABLE, "device = \"%s\": the driver shows %d CUDA device%s to this process", name, count,
                        count == 1 ? "" : "s");
    *ordinal = (int)wanted;
    return SPK_OK;
}

/* 0 where the driver does not say. */
static int attribute(const spk_cuda *cuda, int which)
{
    int value = 0;
    return cuda->driver->device_attribute(&value, which, cuda->handle) == CUDA_SUCCESS_ ? value : 0;
}

/* Rough guesses for the cost models, from clocks and widths. */
static void guess_speed(spk_device *device, const spk_cuda *cuda)
{
    double ghz = attribute(cuda, CLOCK_KHZ) * 1e-6, memory_ghz = attribute(cuda, MEMORY_KHZ) * 1e-6;
    int lanes = cuda->compute <= 80 ? 64 : 128; /* f32 operations of a multiprocessor and cycle */
    device->peak_gflops_f32 = 2.0 * lanes * cuda->processors * (ghz > 0.1 ? ghz : 1.5);
    device->stream_gbs = 0.9 * 2 * memory_ghz * attribute(cuda, MEMORY_BITS) / 8;
    if (device->stream_gbs < 10)
        device->stream_gbs = 500;
}

/* Fewer multiprocessors than there are, where the user wants some for other work, or a test many tiles on each. */
static spk_status limit_processors(spk_cuda *cuda)
{
    const char *wish = spk_environment("SPARSEK_CUDA_PROCESSORS");
    if (wish == NULL)
        return SPK_OK;
    char *end = NULL;
    const long most = strtol(wish, &end, 10);
    if (*end != '\0' || most < 1)
        return spk_fail(SPK_ERR_ARGUMENT, "SPARSEK_CUDA_PROCESSORS = \"%.40s\": it must be a whole number from 1 on", wish);
    cuda->processors = most < cuda->processors ? (int)most : cuda->processors;
    return SPK_OK;
}

static spk_status read_facts(spk_device *device, spk_cuda *cuda)
{
    size_t bytes = 0;
    SPK_TRY(spk_cuda_try(cuda->driver, cuda->driver->device_name(device->name, sizeof device->name, cuda->handle), "cuDeviceGetName"));
    SPK_TRY(spk_cuda_try(cuda->driver, cuda->driver->driver_version(&cuda->driver_version), "cuDriverGetVersion"));
    SPK_TRY(spk_cuda_try(cuda->driver, cuda->driver->device_memory(&bytes, cuda->handle), "cuDeviceTotalMem"));
    device->name[sizeof device->name - 1] = '\0';
    device->memory_bytes = (int64_t)bytes;
    cuda->compute = 10 * attribute(cuda, COMPUTE_MAJOR) + attribute(cuda, COMPUTE_MINOR);
    snprintf(cuda->arch, sizeof cuda->arch, "sm_%d%s", cuda->compute, cuda->compute == 90 ? "a" : "");
    cuda->processors = attribute(cuda, PROCESSORS);
    SPK_TRY(limit_processors(cuda));
    cuda->l2_bytes = attribute(cuda, L2_BYTES);
    cuda->shared_bytes = attribute(cuda, SHARED_BLOCK_BYTES);
    cuda->shared_processor_bytes = attribute(cuda, SHARED_PROCESSOR_BYTES);
    device->l1_bytes = cuda->shared_processor_bytes;
    device->l2_bytes = cuda->l2_bytes;
    device->processors = cuda->processors;
    device->isa =
        (cuda->compute >= 70 ? SPK_ISA_SM70 : 0) | (cuda->compute >= 80 ? SPK_ISA_SM80 : 0) | (cuda->compute == 90 ? SPK_ISA_SM90A : 0);
    guess_speed(device, cuda);
    return SPK_OK;
}

static spk_status make_stream(spk_device *device, spk_cuda *cuda)
{
    spk_cuda_scope scope;
    SPK_TRY(spk_cuda_enter(device, &scope));
    int mode = spk_cuda_capture_relax(cuda);
    spk_status status = spk_cuda_check(device, cuda->driver->stream_create(&cuda->stream, STREAM_NON_BLOCKING), "cuStreamCreate");
    spk_cuda_capture_restore(cuda, mode);
    spk_cuda_leave(&scope);
    return status;
}

static void cuda_close(spk_device **out)
{
    spk_device *device = *out;
    *out = NULL;
    if (device == NULL)
        return;
    spk_cuda *cuda = spk_cuda_of(device);
    spk_mem mem = device->mem;
    spk_cuda_scope scope = {.pushed = 0};
    bool there = cuda->context != NULL && !spk_cuda_is_lost(cuda) && spk_cuda_enter(device, &scope) == SPK_OK;
    int mode = there ? spk_cuda_capture_relax(cuda) : 0;
    spk_cuda_deferrals_release(there ? cuda->driver : NULL, &mem, &cuda->deferrals);
    spk_cuda_shared_indices_release(device, &cuda->shared_indices);
    spk_cuda_programs_release(there ? cuda->driver : NULL, &cuda->programs);
    spk_cuda_libraries_release(&cuda->libraries);
    if (there && cuda->stream != NULL)
        cuda->driver->stream_destroy(cuda->stream);
    if (there)
        spk_cuda_capture_restore(cuda, mode);
    spk_cuda_leave(&scope);
    if (there)
        cuda->driver->context_release(cuda->handle);
    pthread_mutex_destroy(&cuda->stream_lock);
    pthread_mutex_destroy(&cuda->deferrals_lock);
    spk_free(&mem, cuda);
    spk_free(&mem, device);
}

static spk_status cuda_open(const spk_mem *mem, const char *name, const spk_executor *executor, spk_device **out)
{
    const spk_cuda_driver *driver = NULL;
    long wanted = 0;
    int ordinal = 0;
    SPK_TRY(read_ordinal(name, &wanted));
    spk_status status = spk_cuda_driver_get(&driver);
    if (status != SPK_OK) {
        char why[400];
        snprintf(why, sizeof why, "%s", spk_error_last());
        return spk_fail(status, "device = \"%s\": %s", name, why);
    }
    SPK_TRY(find_device(driver, name, wanted, &ordinal));
    spk_device *device = NULL;
    spk_cuda *cuda = NULL;
    SPK_TRY(spk_calloc(mem, 1, sizeof *device, &device));
    status = spk_calloc(mem, 1, sizeof *cuda, &cuda);
    if (status != SPK_OK) {
        spk_free(mem, device);
        return status;
    }
    *device = (spk_device){.backend = &spk_backend_cuda, .mem = *mem, .executor = *executor, .state = cuda};
    if (device->executor.threads == 0)
        device->executor.threads = spk_probe_threads();
    cuda->driver = driver;
    cuda->ordinal = ordinal;
    cuda->lost = &lost_devices[ordinal];
    cuda->watchdog_s = default_watchdog_s;
    pthread_mutex_init(&cuda->stream_lock, NULL);
    pthread_mutex_init(&cuda->deferrals_lock, NULL);
    SPK_GOTO(spk_cuda_refuse_lost(cuda));
    SPK_GOTO(spk_cuda_try(driver, driver->device_get(&cuda->handle, ordinal), "cuDeviceGet"));
    SPK_GOTO(read_facts(device, cuda));
    SPK_GOTO(spk_cuda_try(driver, driver->context_retain(&cuda->context, cuda->handle), "cuDevicePrimaryCtxRetain"));
    SPK_GOTO(make_stream(device, cuda));
    SPK_GOTO(spk_cuda_programs_make(mem, &cuda->programs));
    SPK_GOTO(spk_cuda_shared_indices_make(mem, &cuda->shared_indices));
    SPK_GOTO(spk_cuda_libraries_find(mem, &cuda->libraries));
    *out = device;
    return SPK_OK;
done:
    cuda_close(&device);
    return status;
}

static bool cuda_ready(spk_device *device, const spk_problem *problem, const spk_kernel *kernel, const spk_params *params)
{
    spk_build build = {0};
    char why[8];
    if (kernel->ops->build != NULL)
        kernel->ops->build(problem, device, params, &build);
    if (kernel->ops->build != NULL && !spk_cuda_compiled(&device->mem, &build, spk_cuda_of(device)->arch))
        return false;
    const spk_proof proof = spk_cuda_proof(device, problem, kernel, params, why, sizeof why);
    return proof == SPK_PROOF_GOOD || (proof == SPK_PROOF_NONE && spk_proved_elsewhere(device, kernel, params));
}

/* ------------------------------------------------------------------------------------------------ the table */

static int cuda_list(int (*visit)(void *user, const spk_device_entry *entry), void *user)
{
    const spk_cuda_driver *driver = NULL;
    int count = 0, ended = 0;
    char why[400] = "";
    spk_device_entry entry = {SPK_SIZED(spk_device_entry), .device = "cuda", .name = "", .why = why};
    spk_status status = spk_cuda_driver_get(&driver);
    if (status == SPK_OK)
        status = spk_cuda_try(driver, driver->device_count(&count), "cuDeviceGetCount");
    if (status != SPK_OK || count == 0) {
        snprintf(why, sizeof why, "%s", status != SPK_OK ? spk_error_last() : "the driver shows no device to this process");
        return visit(user, &entry);
    }
    for (int i = 0; i < count && i < MOST_DEVICES && ended == 0; i++) {
        char device[32], name[96] = "";
        CUdevice handle = 0;
        size_t bytes = 0;
        snprintf(device, sizeof device, "cuda:%d", i);
        status = spk_cuda_try(driver, driver->device_get(&handle, i), "cuDeviceGet");
        if (status == SPK_OK)
            status = spk_cuda_try(driver, driver->device_name(name, sizeof name, handle), "cuDeviceGetName");
        if (status == SPK_OK)
            status = spk_cuda_try(driver, driver->device_memory(&bytes, handle), "cuDeviceTotalMem");
        snprintf(why, sizeof why, "%s", status != SPK_OK ? spk_error_last() : "");
        name[sizeof name - 1] = '\0';
        entry.device = device;
        entry.name = name;
        entry.memory_bytes = (int64_t)bytes;
        ended = visit(user, &entry);
    }
    return ended;
}

static void make_printable(char *text)
{
    for (char *c = text; *c != '\0'; c++)
        if (*c == ' ' || *c == '|' || *c == ';')
            *c = '_';
}

static void cuda_model_text(spk_device *device, char *buffer, size_t size)
{
    const spk_cuda *cuda = spk_cuda_of(device);
    snprintf(buffer, size, "cuda:%s:sm%d:%d:driver%d", device->name, cuda->compute, cuda->processors, cuda->driver_version / 1000);
    make_printable(buffer);
}

static spk_status cuda_key_text(spk_device *device, char *buffer, size_t size)
{
    const spk_cuda *cuda = spk_cuda_of(device);
    int used = snprintf(buffer, size, "cuda:%s:sm%d:%d:driver%d:", device->name, cuda->compute, cuda->processors, cuda->driver_version);
    if (used > 0 && (size_t)used < size)
        spk_cuda_libraries_key(cuda->libraries, buffer + used, size - (size_t)used);
    make_printable(buffer);
    return SPK_OK;
}

static spk_status cuda_library_info(spk_device *device, int index, spk_library_info *info)
{
    return spk_cuda_libraries_info(spk_cuda_of(device)->libraries, index, info);
}

const spk_backend spk_backend_cuda = {
    .id = SPK_BACKEND_CUDA,
    .kind = "cuda",
    .budget_s = 5,
    .settle_us = 100e3, /* an H200's clock falls 40 to 75 ms after it began to draw 700 W */
    .tiles_fit_sizes = true,
    .open = cuda_open,
    .close = cuda_close,
    .list = cuda_list,
    .allocate = spk_cuda_allocate,
    .release = spk_cuda_release,
    .copy_in = spk_cuda_copy_in,
    .copy_out = spk_cuda_copy_out,
    .copy_within = spk_cuda_copy_within,
    .fill = spk_cuda_fill,
    .scan = spk_cuda_scan,
    .gather = spk_cuda_gather,
    .own_stream = cuda_own_stream,
    .synchronize = cuda_synchronize,
    .free_memory = spk_cuda_free_memory,
    .defer = spk_cuda_defer,
    .check_args = spk_cuda_check_args,
    .capturing = cuda_capturing,
    .captures_spare = cuda_captures_spare,
    .captures_restore = cuda_captures_restore,
    .enter = cuda_enter,
    .leave = cuda_leave,
    .time_runs = spk_cuda_time_runs,
    .watch_make = spk_cuda_watch_make,
    .watch_release = spk_cuda_watch_release,
    .watch_start = spk_cuda_watch_start,
    .watch_stop = spk_cuda_watch_stop,
    .watch_read = spk_cuda_watch_read,
    .facts = spk_nvml_facts,
    .proved = spk_proved_count,
    .key_text = cuda_key_text,
    .model_text = cuda_model_text,
    .prepare = spk_cuda_prepare,
    .proof = spk_cuda_proof,
    .ready = cuda_ready,
    .proof_name = spk_proof_key,
    .proof_stands = spk_cuda_proof_stands,
    .library_found = spk_cuda_library_found,
    .library_count = spk_cuda_libraries_count,
    .library_info = cuda_library_info,
};
