/* Candidates that committed runs on a device have proved: what counts where there is no prover. */
#ifndef SPK_BACKEND_CUDA_PROOF_TABLE_H
#define SPK_BACKEND_CUDA_PROOF_TABLE_H

#include "backend/cuda/runtime/device.h"

typedef struct spk_proved {
    const char *hash; /* of the candidate (spk_candidate_hash): with another source it is another's, and the entry stands for nothing */
    const char *arch; /* "sm_90a" */
    int driver_major; /* 13 */
} spk_proved;

bool spk_proved_elsewhere(const spk_device *device, const spk_kernel *kernel, const spk_params *params);

/* Of the rows' candidates for this kind of device, how many. */
int spk_proved_count(const spk_device *device, const spk_kernel *rows, int row_count);

/* For tests: this table instead of the committed one. */
void spk_proved_use(const spk_proved *table, int count);

#endif
