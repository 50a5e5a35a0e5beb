/* The device's memory: on the device's own stream, which is waited for, whatever a caller captures meanwhile. */
#include "backend/cuda/runtime/memory.h"

static spk_status allocate_here(spk_device *device, size_t bytes, void **memory)
{
    const spk_cuda *cuda = spk_cuda_of(device);
    CUdeviceptr made = 0;
    CUresult result = cuda->driver->memory_allocate(&made, bytes > 0 ? bytes : 1);
    if (result == CUDA_ERROR_OUT_OF_MEMORY_) {
        size_t free_bytes = 0, total_bytes = 0;
        cuda->driver->memory_info(&free_bytes, &total_bytes);
        return spk_fail(SPK_ERR_OUT_OF_MEMORY, "cuda:%d has no %zu bytes for the asking: %zu of %zu bytes are free", cuda->ordinal, bytes,
                        free_bytes, total_bytes);
    }
    SPK_TRY(spk_cuda_check(device, result, "cuMemAlloc"));
    *memory = (void *)(uintptr_t)made; /* aligned to 256 bytes, as the driver promises */
    return SPK_OK;
}

spk_status spk_cuda_allocate(spk_device *device, size_t bytes, void **memory)
{
    spk_cuda_scope scope;
    SPK_TRY(spk_cuda_enter(device, &scope));
    int mode = spk_cuda_capture_relax(spk_cuda_of(device));
    spk_status status = allocate_here(device, bytes, memory);
    spk_cuda_capture_restore(spk_cuda_of(device), mode);
    spk_cuda_leave(&scope);
    return status;
}

/* Whatever the present message is, it survives: memory is released on the way out of failures. */
void spk_cuda_release(spk_device *device, void *memory)
{
    spk_cuda *cuda = spk_cuda_of(device);
    spk_cuda_scope scope;
    if (memory == NULL || spk_cuda_is_lost(cuda) || spk_cuda_enter(device, &scope) != SPK_OK)
        return; /* a lost device: its memory goes with the process */
    int mode = spk_cuda_capture_relax(cuda);
    cuda->driver->memory_release((CUdeviceptr)(uintptr_t)memory);
    spk_cuda_capture_restore(cuda, mode);
    spk_cuda_leave(&scope);
}

typedef enum copy_kind { COPY_IN, COPY_OUT, COPY_WITHIN, FILL } copy_kind;

static CUresult start_copy(const spk_cuda *cuda, void *to, const void *from, size_t bytes, copy_kind kind, unsigned char byte)
{
    CUdeviceptr there = (CUdeviceptr)(uintptr_t)to, origin = (CUdeviceptr)(uintptr_t)from;
    switch (kind) {
    case COPY_IN:
        return cuda->driver->copy_in(there, from, bytes, cuda->stream);
    case COPY_OUT:
        return cuda->driver->copy_out(to, origin, bytes, cuda->stream);
    case COPY_WITHIN:
        return cuda->driver->copy_within(there, origin, bytes, cuda->stream);
    case FILL:
        break;
    }
    return cuda->driver->fill_bytes(there, byte, bytes, cuda->stream);
}

static spk_status copy(spk_device *device, void *to, const void *from, size_t bytes, copy_kind kind, unsigned char byte)
{
    static const char *const calls[] = {"cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuMemcpyDtoDAsync", "cuMemsetD8Async"};
    spk_cuda *cuda = spk_cuda_of(device);
    spk_cuda_scope scope;
    if (bytes == 0)
        return SPK_OK;
    SPK_TRY(spk_cuda_enter(device, &scope));
    pthread_mutex_lock(&cuda->stream_lock);
    int mode = spk_cuda_capture_relax(cuda);
    spk_status status = spk_cuda_check(device, start_copy(cuda, to, from, bytes, kind, byte), calls[kind]);
    if (status == SPK_OK)
        status = spk_cuda_wait(device);
    spk_cuda_capture_restore(cuda, mode);
    pthread_mutex_unlock(&cuda->stream_lock);
    spk_cuda_leave(&scope);
    return status;
}

spk_status spk_cuda_copy_in(spk_device *device, void *to, const void *from_host, size_t bytes)
{
    return copy(device, to, from_host, bytes, COPY_IN, 0);
}

spk_status spk_cuda_copy_out(spk_device *device, void *to_host, const void *from, size_t bytes)
{
    return copy(device, to_host, from, bytes, COPY_OUT, 0);
}

spk_status spk_cuda_copy_within(spk_device *device, void *to, const void *from, size_t bytes)
{
    return copy(device, to, from, bytes, COPY_WITHIN, 0);
}

spk_status spk_cuda_fill(spk_device *device, void *to, unsigned char byte, size_t bytes)
{
    return copy(device, to, NULL, bytes, FILL, byte);
}

int64_t spk_cuda_free_memory(spk_device *device)
{
    size_t free_bytes = 0, total_bytes = 0;
    spk_cuda_scope scope;
    if (spk_cuda_is_lost(spk_cuda_of(device)) || spk_cuda_enter(device, &scope) != SPK_OK)
        return 0;
    CUresult result = spk_cuda_of(device)->driver->memory_info(&free_bytes, &total_bytes);
    spk_cuda_leave(&scope);
    return result == CUDA_SUCCESS_ ? (int64_t)free_bytes : 0;
}
