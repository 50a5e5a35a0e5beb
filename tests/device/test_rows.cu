/* test_fault, test_hang: what no kernel should do. */
#include "backend/cuda/device/common/arguments.h"

extern "C" __global__ void test_fault(const __grid_constant__ spk_cuda_arguments arg)
{
    *(volatile int *)16 = 1;
}

extern "C" __global__ void test_hang(const __grid_constant__ spk_cuda_arguments arg)
{
    for (;;)
        asm volatile("nanosleep.u32 1000;" ::: "memory");
}
