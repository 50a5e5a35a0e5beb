/* A memory: a table from bytes to a value of a fixed size, one of those in memories.def, which says what ends an entry. All of them may be
 * used from any thread. */
#ifndef SPK_KNOWN_KNOWN_H
#define SPK_KNOWN_KNOWN_H

#include <stdbool.h>

#include "base/mem.h"
#include "known/epoch.h"

enum { SPK_UNTIL_WRITE = 1, SPK_UNTIL_REFUTED = 2 };

typedef enum spk_known_kind {
#define SPK_KNOWN(NAME, most, until, seconds) SPK_KNOWN_##NAME,
#include "known/memories.def"
#undef SPK_KNOWN
    SPK_KNOWN_KINDS
} spk_known_kind;

typedef struct spk_known spk_known;

/* What is done with values that point to something: one that is found is held for the caller, one that is forgotten is released, outside of
 * the memory's lock. NULL: nothing. */
typedef struct spk_known_calls {
    void (*hold)(void *value);
    void (*release)(void *value);
} spk_known_calls;

spk_status spk_known_make(const spk_mem *mem, spk_known_kind kind, const spk_known_calls *calls, spk_known **known);
void spk_known_release(spk_known **known);

/* The one that the process has of this kind. */
spk_known *spk_known_of_process(spk_known_kind kind);

/* Whether there is an entry that still holds; value (may be NULL) gets it. */
bool spk_known_find(spk_known *known, const void *key, size_t key_bytes, void *value, size_t value_bytes);

/* Adds an entry, or puts it in the place of the one that is there. since: the epoch before the value was found out. until_write: it ends
 * with a write, whatever the memory's rule. Does nothing where memory is short. The value that is kept is held. */
void spk_known_add(spk_known *known, const void *key, size_t key_bytes, const void *value, size_t value_bytes, spk_epoch since,
                   bool until_write);

/* The same without a value; whether it is new. */
bool spk_known_first(spk_known *known, const void *key, size_t key_bytes);

void spk_known_drop(spk_known *known, const void *key, size_t key_bytes);
/* Those that match. */
void spk_known_drop_where(spk_known *known, bool (*matches)(const void *key, const void *what), const void *what);
void spk_known_forget(spk_known *known);

#endif
