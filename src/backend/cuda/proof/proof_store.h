/* Proofs on disk: one small file each, in the folder of the compiled programs. */
#ifndef SPK_BACKEND_CUDA_PROOF_STORE_H
#define SPK_BACKEND_CUDA_PROOF_STORE_H

#include "backend/cuda/runtime/device.h"

enum { SPK_PROOF_KEY_BYTES = SPK_PROOF_NAME_BYTES };

/* Of the candidate's source and options (a vendor row: its parameters and its library), the device's model and the driver: what the proof
 * holds for. */
void spk_proof_key(const spk_device *device, const spk_problem *problem, const spk_kernel *kernel, const spk_params *params,
                   char key[SPK_PROOF_KEY_BYTES]);

/* What is known. why gets the reason of a refutation. */
spk_proof spk_proof_find(const spk_device *device, const char *key, char *why, size_t size);

/* Keeps a proof (why NULL) or a refutation of the candidate. Where it cannot be written it is found out anew next time. */
void spk_proof_keep(const spk_device *device, const spk_prepared *candidate, const char *key, const char *why);

/* What this process knows: that the proof under this key is good. stands: spk_backend.proof_stands. forget is for tests. */
bool spk_proof_remembered(const char *key);
bool spk_cuda_proof_stands(const spk_device *device, const char *key);
void spk_proof_remember(const char *key, bool is_good);
void spk_proofs_forget(void);

#endif
