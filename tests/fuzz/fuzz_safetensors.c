/* libFuzzer: safetensors files: the only tensor, or one named "w". */
#include "fuzz/fuzz_io.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_one(data, size, size % 4 == 0 ? "w" : NULL, spk_read_safetensors, spk_write_safetensors);
}
