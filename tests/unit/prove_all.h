/* Group set-up and tear-down of tests on libcuda's double that bind kernels. */
#ifndef SPK_TEST_PROVE_ALL_H
#define SPK_TEST_PROVE_ALL_H

#include <stdlib.h>

#include "backend/cuda/proof/proof_table.h"
#include "registry/registry.h"

/* Every candidate of this build counts as proved on the double: the committed table is of the sources that a device has seen. */
static spk_proved *proved_table;
static char (*proved_hashes)[17];

static int prove_all(void **unused)
{
    (void)unused;
    const spk_kernel *rows = NULL;
    const int count = spk_kernels(&rows);
    int used = 0, candidates = 0;
    for (int r = 0; r < count; r++)
        candidates += rows[r].backend == SPK_BACKEND_CUDA ? spk_params_count(&rows[r]) : 0;
    proved_table = calloc((size_t)candidates + 1, sizeof *proved_table);
    proved_hashes = calloc((size_t)candidates + 1, sizeof *proved_hashes);
    for (int r = 0; proved_table != NULL && proved_hashes != NULL && r < count; r++)
        for (int i = 0; rows[r].backend == SPK_BACKEND_CUDA && i < spk_params_count(&rows[r]); i++, used++) {
            spk_params params;
            spk_params_get(&rows[r], i, &params);
            spk_candidate_hash(&rows[r], &params, proved_hashes[used]);
            proved_table[used] = (spk_proved){proved_hashes[used], "sm_90a", 13};
        }
    spk_proved_use(proved_table, used);
    return proved_table == NULL || proved_hashes == NULL;
}

static int forget_all(void **unused)
{
    (void)unused;
    free(proved_table);
    free(proved_hashes);
    return 0;
}

#endif
