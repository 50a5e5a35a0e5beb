/* What the vendor rows of the GPU share: the libraries' functions, and the device programs around their products. */
#ifndef SPK_BACKEND_CUDA_VENDOR_VENDOR_H
#define SPK_BACKEND_CUDA_VENDOR_VENDOR_H

#include "backend/cuda/host/indices/index.h"

/* ------------------------------------------------------------------------------------------------ libraries (library.c) */

struct spk_cuda_libraries;
spk_status spk_cuda_libraries_find(const spk_mem *mem, struct spk_cuda_libraries **libraries); /* looks at the file system only */
void spk_cuda_libraries_release(struct spk_cuda_libraries **libraries);
int spk_cuda_libraries_count(void);
spk_status spk_cuda_libraries_info(struct spk_cuda_libraries *libraries, int index, spk_library_info *info); /* may open */
bool spk_cuda_library_found(const spk_device *device, const char *name);
void spk_cuda_libraries_key(const struct spk_cuda_libraries *libraries, char *buffer, size_t size);

/* The handle of dlopen, opened at first use and never closed; SPK_ERR_UNAVAILABLE with what was tried. */
spk_status spk_cuda_library_open(const spk_device *device, const char *name, void **handle);

/* Takes `count` functions of a library: names[i] into functions[i]. Names the one that is missing. */
spk_status spk_cuda_library_functions(void *handle, const char *library, const char *const *names, void **functions, int count);

/* cudaDataType of the sums of such elements. */
static inline int spk_cuda_type_of_sums(spk_dtype dtype)
{
    return spk_type_of(spk_type_of(dtype)->sums)->cuda;
}

/* ------------------------------------------------------------------------------------------------ NVML (nvml.c) */

/* After a sample: whether heat or the power supply slows the device down, so that the sample is worth taking again. False where that is not
 * known, and when it has been true often in this process: such a device stays as it is. */
bool spk_nvml_disturbed(const spk_device *device);

/* The clock of the multiprocessors and the power at one of the last samples, or now. 0: unknown. */
void spk_nvml_facts(spk_device *device, double *clock_mhz, double *power_w);

/* ------------------------------------------------------------------------------------------------ around a product (library_epilogue.c) */

/* A product that a library writes either straight to D or, where more than alpha and beta is asked for, to an array of its own in D's
 * layout, which a program of ours then takes through the epilogue. */
typedef struct spk_around {
    spk_cuda_index index;
    bool direct;      /* the library writes D */
    spk_operand acc;  /* the library's result: D, or an array of f32 (f64) */
    size_t acc_bytes; /* of the workspace, 256-byte aligned; 0 where direct */
    CUfunction finish;
} spk_around;

/* Whether D is alpha A B + beta C and no more. */
bool spk_around_is_plain(const spk_problem *problem);
/* direct: the library does all that the problem asks for. */
spk_status spk_around_make(const spk_bound *bound, bool direct, spk_around *around);
/* Where not direct: the library's result in the workspace, of all items, and its bytes. */
spk_operand spk_around_operand(const spk_problem *problem);
size_t spk_around_bytes(const spk_problem *problem);
/* For a library that adds piece after piece to what it wrote: only an array of f32 (f64) is written directly, and C is the epilogue's. */
spk_status spk_around_make_summing(const spk_bound *bound, bool may_be_direct, spk_around *around);
void spk_around_release(const spk_bound *bound, spk_around *around);
/* Whether alpha is 0 in the type of the sums. */
static inline bool spk_vendor_alpha_vanishes(const spk_problem *problem, const spk_args *args)
{
    return problem->a.dtype == SPK_F64 ? args->alpha == 0 : (float)args->alpha == 0;
}

/* spk_kernel_ops.accepts: libraries read nothing where alpha is 0, and would lose the NaN of 0 * inf that every kernel of ours gives. */
bool spk_around_takes(const spk_bound *bound, const spk_around *around, const spk_args *args);
/* acc -> D. Inside spk_cuda_enter. */
spk_status spk_around_finish(const spk_bound *bound, const spk_around *around, const spk_args *args, const void *acc, CUstream stream);

/* NULL, or why no vendor row takes the problem. */
const char *spk_cuda_vendor_refusal(const spk_problem *problem);

/* A rough time: dense products at the tensor cores' rate for the dtype. */
double spk_cuda_dense_us(const spk_problem *problem, const spk_device *device);

#endif
