/* Host side of the reference rows: one thread an element of D. */
#ifndef SPK_BACKEND_CUDA_HOST_TILES_REFERENCE_H
#define SPK_BACKEND_CUDA_HOST_TILES_REFERENCE_H

#include "backend/cuda/runtime/program.h"

bool spk_reference_applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why);
double spk_reference_predict_us(const spk_problem *problem, const spk_device *device, const spk_params *params);

/* file, entry: of the row's program. */
void spk_reference_build(const spk_problem *problem, const char *file, const char *entry, spk_build *build);

/* bind takes what the row's ops.build names. */
spk_status spk_reference_bind(spk_bound *bound);
void spk_reference_unbind(spk_bound *bound);
spk_status spk_reference_run(const spk_bound *bound, const spk_args *args, void *stream);

#endif
