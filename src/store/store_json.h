/* What export and import have in common: the names and numbers of a candidate in JSON. */
#ifndef SPK_STORE_STORE_JSON_H
#define SPK_STORE_STORE_JSON_H

#include <stddef.h>

#include "store/store_internal.h"

enum {
    SPK_JSON_SCHEMA = 1,
    SPK_JSON_KINDS = SPK_KIND_PEER + 1,
    SPK_JSON_STATUSES = SPK_CANDIDATE_NOT_APPLICABLE + 1,
    SPK_JSON_PROVISIONALS = SPK_PROVISIONAL_IN_PLACE + 1,
    SPK_JSON_NUMBERS = 6
};

extern const char *const spk_json_kinds[SPK_JSON_KINDS]; /* by spk_kind; NULL for none */
extern const char *const spk_json_statuses[SPK_JSON_STATUSES];
extern const char *const spk_json_provisionals[SPK_JSON_PROVISIONALS]; /* NULL for a finished class, which says nothing */

typedef struct spk_json_number {
    const char *name;
    size_t offset; /* of a double in spk_evidence */
    double least;
} spk_json_number;
extern const spk_json_number spk_json_numbers[SPK_JSON_NUMBERS];

double *spk_json_number_of(spk_evidence *evidence, int number);

/* The store's own file must not be replaced by an export, nor be opened and closed beside SQLite. */
spk_status spk_json_refuse_own_file(const spk_store *store, const char *path);

#endif
