/* The store: what was learned, on disk (SQLite). Losing it costs time, never correctness: every function that meets a store it cannot
 * use warns once through the log and behaves as an empty store in memory. Safe from many threads and across fork. */
#ifndef SPK_STORE_STORE_H
#define SPK_STORE_STORE_H

#include <stdatomic.h>

#include "store/class_key.h"
#include "base/stop.h"
#include "store/report.h"

typedef struct spk_store spk_store;

/* path NULL: the default path (see spk_context_options.store_path); "": in memory. Opens lazily: costs nothing until the first lookup. */
spk_status spk_store_open(const spk_mem *mem, const char *path, spk_log log, void *log_user, spk_store **store);
void spk_store_close(spk_store **store); /* accepts NULL */
const char *spk_store_where(const spk_store *store);
const char *spk_store_used(spk_store *store); /* the same; "" where none can be made, and once the file there has been refused */

/* Two more files, which are never written. Below the store: $SPARSEK_STORE_BELOW, such as one of a read-only image; what the store does not
 * know is looked up there under the same keys. The bundle: $SPARSEK_BUNDLE, else bundle.db beside the library or in share/sparsek; evidence
 * that was made elsewhere, under keys of its own (spk_key_of_bundle), for whoever asks it (spk_store_bundle). Before the store's first use.
 */
spk_status spk_store_open_layers(spk_store *store);
spk_store *spk_store_bundle(spk_store *store);       /* NULL: there is none */
const char *spk_store_below(const spk_store *store); /* its path; "": there is none */

/* From now on reading ends where *interrupted is not zero (SPK_ERR_INTERRUPTED, or "not known"). Before the store's first use. */
void spk_store_heed(spk_store *store, const atomic_int *interrupted);

/* The decision alone, for plans (prepared statement, < 50 us). *found says whether the class is known. */
typedef struct spk_decision {
    char name[48], params[SPK_MAX_PARAMS_TEXT], hash[17];
    double median_us;
    int64_t measured_at;
    spk_provisional provisional;
    double budget_s; /* of the tuning; 0: none, or unknown */
} spk_decision;
spk_status spk_store_decision(spk_store *store, const char *class_key, spk_decision *decision, bool *found);

/* Whether another process had the file to itself at the last look: what the file knows is not known then. */
bool spk_store_is_held(spk_store *store);

/* The decision of the nearest known class: same values for the fields of the key before its "|" (operation, dtypes, layouts, epilogue,
 * promises, device), least distance over those behind it. */
spk_status spk_store_nearest(spk_store *store, const char *class_key, spk_decision *decision, bool *found);

/* Known classes that calls of one layer may be in, and which differ from this one in the number of tokens alone, or by a step in what
 * strays from one pattern to the next (spk_key_size_distance), the nearest first; farther ones than `most` do not count. */
enum { SPK_STORE_SIZES = 4 };
typedef struct spk_store_sizes {
    int count;
    double distance[SPK_STORE_SIZES];
    char key[SPK_STORE_SIZES][SPK_MAX_KEY_TEXT + 32];
} spk_store_sizes;
spk_status spk_store_near_sizes(spk_store *store, const char *class_key, double most, spk_store_sizes *sizes);

/* Tells visit of each candidate that a class's evidence has as wrong (name, params, hash, why, error and tolerance are set). It must not
 * use the store. */
spk_status spk_store_wrong(spk_store *store, const char *class_key, void (*visit)(void *user, const spk_evidence *wrong), void *user);

/* All evidence; *report is NULL where the class is unknown. */
spk_status spk_store_load(spk_store *store, const char *class_key, spk_report **report);
/* the same; a file that cannot be read is an error, and *bad says that there is one which makes no sense, or under no key */
spk_status spk_store_read(spk_store *store, const char *class_key, spk_report **report, bool *bad);
spk_status spk_store_save(spk_store *store, const spk_report *report); /* one transaction; replaces the class */
/* The same without waiting for the disk or for another process that has the file: known here at once, in the file soon, at the latest when
 * the store is closed or the process exits. Evidence there that was measured at `since` (unix time) or later stays. Takes the report. */
spk_status spk_store_save_behind(spk_store *store, spk_report **report, int64_t since);

/* One tuner a class across threads and processes: waits until nobody else tunes class_key, at most limit_s, or until stop (NULL: never)
 * ends it, which is SPK_ERR_INTERRUPTED. Released by unlock or by the
 * death of the process. *token < 0: not locked (limit passed, or the store is in memory of one thread): tune all the same. */
spk_status spk_store_lock(spk_store *store, const char *class_key, double limit_s, const spk_stop *stop, int *token);
void spk_store_unlock(spk_store *store, int token);

/* Entries are gathered first: visit may use the store. SPK_ERR_IO where the file cannot be read, unless it was refused as a whole and
 * something is in memory; so does export. Neither these nor check change the file, whatever is wrong with it. */
spk_status spk_store_visit(spk_store *store, int (*visit)(void *user, const spk_store_entry *entry), void *user);
/* The rest serves explicit wishes of a user, so that a file that cannot be read or written is an error and not a warning: check, import
 * and empty return SPK_ERR_IO or SPK_ERR_NO_SPACE then. A damaged file counts as one bad entry of check. */
spk_status spk_store_export_json(spk_store *store, const char *path, int64_t *count);
spk_status spk_store_import_json(spk_store *store, const char *path, int64_t *count);
spk_status spk_store_check(spk_store *store, int64_t *good, int64_t *bad);
spk_status spk_store_empty(spk_store *store, int64_t *removed);

#endif
