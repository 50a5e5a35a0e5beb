/* The constants that a program is compiled with, as the compiler's options. */
#ifndef SPK_BACKEND_CUDA_HOST_FRAME_BUILD_H
#define SPK_BACKEND_CUDA_HOST_FRAME_BUILD_H

#include "kernel/kernel.h"

/* What a problem defines for every program of its operation (device/common/problem.cuh), before what else is defined. */
void spk_build_begin(spk_build *build, const char *file, const char *entry, const spk_problem *problem);

/* " -DNAME=value" more. */
void spk_build_define(spk_build *build, const char *name, int value);

/* For the list of a kernel's constants, device/common/both.h: NAME_CONSTANTS(SPK_BUILD_DEFINE) where `build` and `constants` are. */
#define SPK_BUILD_DEFINE(NAME, member) spk_build_define(build, #NAME, constants.member);

#endif
