/* libFuzzer: .smtx files. */
#include "fuzz/fuzz_io.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_one(data, size, NULL, spk_read_smtx, spk_write_smtx);
}
