/* Launches that overlap (programmatic dependent launch, sm_90 on): a kernel's blocks may start while the last ones of the launch before it
 * still run, do what touches no operand, and wait. The host launches with spk_cuda_launch_early only kernels that call
 * previous_launch_done. */
#ifndef SPK_DEVICE_LAUNCH_CUH
#define SPK_DEVICE_LAUNCH_CUH

/* Returns when the launches before this one on the stream are done and what they wrote can be seen. By every thread, before it touches an
 * operand, the workspace or D. Indices of the plan may be read before. */
inline void previous_launch_done()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* The line that holds *from comes to L2: of the plan's indices, before previous_launch_done. */
inline void prefetch_l2(const void *from)
{
    asm volatile("prefetch.global.L2 [%0];" ::"l"(from));
}

/* The blocks of the next launch may start where there is room for them. */
inline void next_launch_may_start()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

#endif
