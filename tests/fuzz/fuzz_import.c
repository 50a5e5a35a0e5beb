/* libFuzzer: import of decisions from JSON. What is imported is good, and the same when it is exported and imported again. */
#include "fuzz/fuzz_files.h"

#include "base/mem.h"
#include "store/store.h"

static int visit(void *user, const spk_store_entry *entry)
{
    (void)user;
    fuzz_require(entry->class_key != NULL && entry->device != NULL && entry->choice != NULL, "an entry is whole");
    return 0;
}

static spk_store *open_store(void)
{
    spk_store *store = NULL;
    fuzz_require(spk_store_open(&spk_mem_system, "", NULL, NULL, &store) == SPK_OK, "a store in memory opens");
    return store;
}

static spk_status import(spk_store *store, int file, int64_t *count)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    return spk_store_import_json(store, path, count);
}

static void come_back(spk_store *store)
{
    char path[96];
    int64_t exported = 0, imported = 0;
    snprintf(path, sizeof path, "%s/export.json", fuzz_folder());
    fuzz_require(spk_store_export_json(store, path, &exported) == SPK_OK, "what was imported is exported");
    spk_store *again = open_store();
    const spk_status status = spk_store_import_json(again, path, &imported);
    fuzz_require(status == SPK_OK && imported == exported, "what was exported is imported");
    spk_store_close(&again);
    unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int file = fuzz_file(data, size);
    spk_store *store = open_store();
    int64_t count = -1, good = 0, bad = 0;
    spk_error_enter(0);
    if (import(store, file, &count) == SPK_OK) {
        fuzz_require(count >= 0, "a count");
        fuzz_require(spk_store_check(store, &good, &bad) == SPK_OK && bad == 0, "what was imported is good");
        spk_store_visit(store, visit, NULL);
        come_back(store);
    } else {
        fuzz_require(spk_error_last()[0] != '\0', "a refusal says why");
    }
    spk_store_close(&store);
    close(file);
    return 0;
}
