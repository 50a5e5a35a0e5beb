/* The CUDA driver API, opened at run time: the few types and entry points that sparsek uses. Nothing of CUDA is needed to build. */
#ifndef SPK_BACKEND_CUDA_DRIVER_H
#define SPK_BACKEND_CUDA_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef int CUresult; /* 0: success */
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUmemPoolHandle_st *CUmemoryPool;

/* CUmemPoolProps, as far as it is used. */
typedef struct spk_pool_properties {
    int allocation, handles;     /* 1: pinned, the only one; 0: not for other processes */
    int location_kind, location; /* 1: a device; its ordinal */
    void *security;
    size_t most_bytes; /* 0: the system's limit */
    unsigned char reserved[56];
} spk_pool_properties;

/* A TMA descriptor, made by cuTensorMapEncodeTiled and passed by value to kernels. */
typedef struct CUtensorMap {
    _Alignas(64) uint64_t words[16];
} CUtensorMap;

/* CUlaunchAttribute and CUlaunchConfig, as far as they are used. */
typedef struct spk_launch_attribute {
    int id, pad;
    int value[16];
} spk_launch_attribute;
typedef struct spk_launch_config {
    unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
    CUstream stream;
    spk_launch_attribute *attributes;
    unsigned attribute_count;
} spk_launch_config;

enum { CUDA_SUCCESS_ = 0, CUDA_ERROR_INVALID_VALUE_ = 1, CUDA_ERROR_OUT_OF_MEMORY_ = 2, CUDA_ERROR_NOT_READY_ = 600 };

/* Every entry point the backend uses: one row each (driver_entries.def: SPK_ENTRY(member, "symbol", result, arguments)). */
#define SPK_ENTRY(member, symbol, result, arguments) result(*member) arguments;
typedef struct spk_cuda_driver {
#include "backend/cuda/runtime/driver_entries.def"
} spk_cuda_driver;
#undef SPK_ENTRY

/* Opens libcuda once in the process and initialises it. SPK_ERR_UNAVAILABLE with what was tried: SPARSEK_CUDA (a full path, or "none"),
 * then the loader. Thread safe; costs < 1 ms where there is no driver. */
spk_status spk_cuda_driver_get(const spk_cuda_driver **driver);

/* SPK_OK for success; else a failure that names the call and the driver's own name of the error (out of memory: SPK_ERR_OUT_OF_MEMORY). */
spk_status spk_cuda_try(const spk_cuda_driver *driver, CUresult result, const char *call);

/* Whether an error means that a kernel died and took its context with it: every later call in the process fails too. */
bool spk_cuda_is_sticky(CUresult result);

#endif
