/* libFuzzer: Matrix Market files, as they are (gzip's among them), and what a compressed one becomes. */
#include <zlib.h>

#include "fuzz/fuzz_io.h"

/* The same bytes through gzip, in two members, are read alike: the same matrix, or the same kind of refusal. */
static void check_packed(const uint8_t *data, size_t size)
{
    size_t room = size + size / 100 + 256, cut = size / 3, used = 0;
    unsigned char *packed = malloc(room);
    spk_matrix *plain = NULL, *unpacked = NULL;
    fuzz_require(packed != NULL, "there is memory");
    for (int member = 0; member < 2; member++) {
        z_stream z = {.zalloc = Z_NULL};
        fuzz_require(deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK, "zlib begins");
        z.next_in = (Bytef *)(uintptr_t)(data + (member ? cut : 0));
        z.avail_in = (uInt)(member ? size - cut : cut);
        z.next_out = packed + used;
        z.avail_out = (uInt)(room - used);
        fuzz_require(deflate(&z, Z_FINISH) == Z_STREAM_END, "zlib packs");
        used += z.total_out;
        deflateEnd(&z);
    }
    spk_status status = fuzz_read_bytes(spk_read_mtx, data, size, SPK_DTYPE_DEFAULT, NULL, &plain);
    spk_status again = fuzz_read_bytes(spk_read_mtx, packed, used, SPK_DTYPE_DEFAULT, NULL, &unpacked);
    fuzz_require(status == again, "what was packed is read alike");
    if (status == SPK_OK)
        fuzz_check_equal(plain, unpacked);
    spk_matrix_release(&plain);
    spk_matrix_release(&unpacked);
    free(packed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool is_packed = size >= 2 && data[0] == 0x1f && data[1] == 0x8b;
    if (size % 8 == 1 && !is_packed)
        check_packed(data, size);
    return fuzz_one(data, size, NULL, spk_read_mtx, spk_write_mtx);
}
