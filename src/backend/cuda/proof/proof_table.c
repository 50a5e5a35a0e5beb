/* The table of proved candidates: proof_table.def, which bench/proved.py makes of bench/results. */
#include "backend/cuda/proof/proof_table.h"

#include <string.h>

static const spk_proved committed[] = {
#define SPK_PROVED(hash, arch, driver_major) {hash, arch, driver_major},
#include "backend/cuda/proof/proof_table.def"
#undef SPK_PROVED
    {"", "", 0}, /* a table is never empty in C */
};

static const spk_proved *table = committed;
static int table_count = sizeof committed / sizeof committed[0] - 1;

void spk_proved_use(const spk_proved *entries, int count)
{
    table = entries;
    table_count = count;
}

bool spk_proved_elsewhere(const spk_device *device, const spk_kernel *kernel, const spk_params *params)
{
    const spk_cuda *cuda = spk_cuda_of(device);
    char hash[17];
    spk_candidate_hash(kernel, params, hash);
    for (int i = 0; i < table_count; i++) /* most differ in their last digit already: a call for each would take longer than all else */
        if (table[i].hash[15] == hash[15] && strcmp(table[i].hash, hash) == 0 && strcmp(table[i].arch, cuda->arch) == 0 &&
            table[i].driver_major == cuda->driver_version / 1000)
            return true;
    return false;
}

int spk_proved_count(const spk_device *device, const spk_kernel *rows, int row_count)
{
    int count = 0;
    for (int r = 0; r < row_count; r++) {
        spk_tunables tunables;
        if (rows[r].backend != SPK_BACKEND_CUDA)
            continue;
        spk_tunables_read(&rows[r], &tunables);
        for (int i = 0; i < tunables.candidates; i++) {
            const spk_params params = spk_tunables_params(&tunables, i);
            count += spk_proved_elsewhere(device, &rows[r], &params);
        }
    }
    return count;
}
