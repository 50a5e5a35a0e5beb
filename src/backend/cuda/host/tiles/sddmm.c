/* Splitting K: when it pays, its workspace, and the launch that adds the parts. */
#include "backend/cuda/host/tiles/sddmm.h"

#include "backend/cuda/host/frame/launch.h"

enum { SDDMM_REDUCE_THREADS = 256 };

bool spk_sddmm_ragged(const spk_problem *problem)
{
    return problem->m % problem->pattern->block_rows != 0 || problem->n % problem->pattern->block_cols != 0;
}

double spk_sddmm_elements(const spk_problem *problem)
{
    return (double)problem->pattern->nnzb * problem->pattern->block_rows * problem->pattern->block_cols * (double)problem->batch;
}

spk_status spk_sddmm_load(const spk_bound *bound, const spk_build *program, int parts, sddmm_functions *functions)
{
    spk_build reduce = *program;
    reduce.entry = "sddmm_reduce";
    reduce.shared_bytes = 0;
    spk_status status = spk_cuda_function(bound->device, program, &functions->multiply);
    if (status == SPK_OK && parts > 1)
        status = spk_cuda_function(bound->device, &reduce, &functions->reduce);
    return status;
}

size_t spk_sddmm_workspace(const spk_bound *bound, int parts)
{
    return parts > 1 ? (size_t)spk_sddmm_elements(&bound->problem) * (size_t)parts * (bound->problem.compute == SPK_F64 ? 8 : 4) : 0;
}

spk_status spk_sddmm_launch_reduce(const spk_bound *bound, const sddmm_functions *functions, spk_cuda_arguments *arguments, int parts,
                                   CUstream stream)
{
    void *parameters[] = {arguments, &parts};
    const int64_t elements = bound->view.nnzb * bound->view.block_stride * bound->problem.batch;
    const int64_t blocks = (elements + SDDMM_REDUCE_THREADS - 1) / SDDMM_REDUCE_THREADS, most = 1024;
    return spk_cuda_launch_early(bound->device, functions->reduce, (unsigned)(blocks < most ? blocks : most), SDDMM_REDUCE_THREADS, 0,
                                 stream, parameters);
}

double spk_sddmm_split_us(const spk_problem *problem, int parts)
{
    return parts > 1 ? 2 + 2 * spk_sddmm_elements(problem) * (problem->compute == SPK_F64 ? 8 : 4) * parts / 4.0e6 : 0;
}

bool spk_sddmm_split_fits(const spk_problem *problem, const spk_device *device, int parts, int64_t least, double tiles, const char **why)
{
    const double processors = device->processors > 0 ? device->processors : 132;
    if (parts == 1)
        return true;
    if (problem->k < least * parts)
        *why = "K is too short for so many parts";
    else if (tiles * parts / 2 > 2 * processors)
        *why = "fewer parts fill the device";
    else if (device->memory_bytes > 0 && 8 * spk_sddmm_elements(problem) * parts > (double)device->memory_bytes / 8)
        *why = "the parts' sums would take more than an eighth of the memory";
    return *why == NULL;
}
