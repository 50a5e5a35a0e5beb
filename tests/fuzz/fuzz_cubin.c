/* libFuzzer: files of the cache of device programs and proofs. The first byte says what of the rest is put right first, so that what lies
 * behind it is reached: 1 the header, 2 the key, 4 the hash. What is loaded is whole; a file that is not is removed. */
#include "fuzz/fuzz_files.h"

#include "backend/cuda/runtime/cubins.h"
#include "base/hash.h"

enum { FIX_HEADER = 1, FIX_KEY = 2, FIX_HASH = 4, HEADER_BYTES = 32 };

static const char key[] = "proof:0123456789abcdef0123456789abcdef";
static const size_t key_bytes = sizeof key - 1;

static const char *file_path(void)
{
    static char path[160];
    char folder[96];
    if (path[0] != '\0')
        return path;
    setenv("SPARSEK_CACHE_DIR", fuzz_folder(), 1);
    snprintf(folder, sizeof folder, "%s/cubin", fuzz_folder());
    fuzz_require(mkdir(folder, 0700) == 0, "a folder for the cache");
    snprintf(path, sizeof path, "%s/%016llx.cubin", folder, (unsigned long long)spk_hash_text(SPK_HASH_START, key));
    return path;
}

static void put_right(int what, uint8_t *bytes, size_t size)
{
    const uint32_t version = 1, of_key = (uint32_t)key_bytes;
    if (size < HEADER_BYTES + key_bytes)
        return;
    const uint64_t rest = size - HEADER_BYTES - key_bytes;
    if (what & FIX_HEADER) {
        memcpy(bytes, "spkcubin", 8);
        memcpy(bytes + 8, &version, sizeof version);
        memcpy(bytes + 12, &of_key, sizeof of_key);
        memcpy(bytes + 16, &rest, sizeof rest);
    }
    if (what & FIX_KEY)
        memcpy(bytes + HEADER_BYTES, key, key_bytes);
    if (what & FIX_HASH) {
        const uint64_t hash = spk_hash_bytes(spk_hash_text(SPK_HASH_START, key), bytes + HEADER_BYTES + key_bytes, rest);
        memcpy(bytes + 24, &hash, sizeof hash);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = file_path();
    void *content = NULL;
    size_t bytes = 0;
    if (size == 0)
        return 0;
    uint8_t *copy = malloc(size);
    fuzz_require(copy != NULL, "memory");
    memcpy(copy, data + 1, size - 1);
    put_right(data[0], copy, size - 1);
    fuzz_write(path, copy, size - 1);
    if (spk_cubins_load(&spk_mem_system, key, &content, &bytes)) {
        fuzz_require(bytes == size - 1 - HEADER_BYTES - key_bytes && memcmp(content, copy + HEADER_BYTES + key_bytes, bytes) == 0,
                     "the content is the file's");
        spk_free(&spk_mem_system, content);
        unlink(path);
    } else {
        fuzz_require(access(path, F_OK) != 0, "a damaged file is removed");
        fuzz_require(data[0] % 8 != 7 || size - 1 <= HEADER_BYTES + key_bytes, "a good file is loaded");
    }
    free(copy);
    return 0;
}
