/* libFuzzer: any bytes as the store's file: opened, listed, decided from, loaded, saved to, verified, exported, emptied. */
#include "fuzz/fuzz_files.h"

#include "base/mem.h"
#include "store/store.h"

enum { MOST_KEYS = 8, KEY_BYTES = 2048 };

typedef struct keys {
    int count;
    char text[MOST_KEYS][KEY_BYTES];
} keys;

static int visit(void *user, const spk_store_entry *entry)
{
    keys *all = user;
    fuzz_require(entry->class_key != NULL && entry->device != NULL && entry->choice != NULL, "an entry is whole");
    if (all->count < MOST_KEYS)
        snprintf(all->text[all->count++], KEY_BYTES, "%s", entry->class_key);
    return 0;
}

static void check_decision(const spk_decision *decision)
{
    fuzz_require(memchr(decision->name, 0, sizeof decision->name) != NULL, "a name ends");
    fuzz_require(memchr(decision->params, 0, sizeof decision->params) != NULL, "parameters end");
    fuzz_require(memchr(decision->hash, 0, sizeof decision->hash) != NULL, "a hash ends");
}

static void use_class(spk_store *store, const char *key)
{
    spk_decision decision;
    spk_report *report = NULL;
    bool found = false;
    if (spk_store_decision(store, key, &decision, &found) == SPK_OK && found)
        check_decision(&decision);
    found = false;
    if (spk_store_nearest(store, key, &decision, &found) == SPK_OK && found)
        check_decision(&decision);
    if (spk_store_load(store, key, &report) != SPK_OK || report == NULL)
        return;
    fuzz_require(report->chosen < report->count, "the choice is among the candidates");
    spk_store_save(store, report);
    spk_report_release(&report);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static keys all;
    char path[96], export[96];
    spk_store *store = NULL;
    int64_t count = 0, good = 0, bad = 0;
    fuzz_empty_folder(fuzz_folder());
    snprintf(path, sizeof path, "%s/store.db", fuzz_folder());
    snprintf(export, sizeof export, "%s/export.json", fuzz_folder());
    fuzz_write(path, data, size);
    fuzz_require(spk_store_open(&spk_mem_system, path, NULL, NULL, &store) == SPK_OK, "a store opens whatever its file holds");
    all.count = 0;
    spk_store_visit(store, visit, &all);
    for (int i = 0; i < all.count; i++)
        use_class(store, all.text[i]);
    spk_store_check(store, &good, &bad);
    spk_store_export_json(store, export, &count);
    spk_store_empty(store, &count);
    spk_store_close(&store);
    return 0;
}
