/* Proofs: a device program that has never run here is run once in a helper process first, so that one that faults or hangs does no harm. */
#ifndef SPK_BACKEND_CUDA_PROOF_H
#define SPK_BACKEND_CUDA_PROOF_H

#include "backend/cuda/cuda.h"

/* spk_backend.prepare: compiles the candidates' programs on all host cores and proves those that have no proof yet. */
spk_status spk_cuda_prepare(spk_device *device, const spk_problem *problem, spk_prepared *list, int count, const atomic_int *interrupted);

/* Where the helper program is: $SPARSEK_PROVER (a full path, or "none"), beside the library, in ../libexec/sparsek of it, or in the build tree's layout.
 * false: there is none, and why says what was tried. */
bool spk_cuda_prover_find(char *path, size_t size, char *why, size_t why_size);

#endif
