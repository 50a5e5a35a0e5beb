/* Proofs: a device program that has never run here is run once in a helper process first, so that one that faults or hangs does no harm. */
#ifndef SPK_BACKEND_CUDA_PROOF_H
#define SPK_BACKEND_CUDA_PROOF_H

#include "backend/cuda/runtime/device.h"

/* spk_backend.prepare: compiles the candidates' programs on all host cores and proves those that have no proof yet. */
spk_status spk_cuda_prepare(spk_device *device, const spk_problem *problem, spk_prepared *list, int count, const spk_stop *stop);

/* spk_backend.proof: from the record, of what this process has seen from memory; where there is no prover, what committed runs proved is
 * good. */
spk_proof spk_cuda_proof(spk_device *device, const spk_problem *problem, const spk_kernel *kernel, const spk_params *params, char *why,
                         size_t size);

/* For tests: the bytes of operands from which on a part of the problem is proved. */
void spk_cuda_proof_bytes(double bytes);

/* For tests: how long a prover may take to begin and to make a plan, and for one run. */
void spk_cuda_proof_limits(double start_us, double run_us);

#endif
