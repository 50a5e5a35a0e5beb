/* Where a vendor library lies: looks at the file system only. */
#ifndef SPK_BACKEND_SEARCH_H
#define SPK_BACKEND_SEARCH_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* What is looked for: a full path in the environment variable wins (empty or "none": the library is not used), else the first of
 * names in the first folder that has one. */
typedef struct spk_library_names {
    const char *name, *variable;
    const char *const *files; /* names, or paths below a folder; ends with NULL */
} spk_library_names;

typedef struct spk_library_file {
    bool found;
    char path[PATH_MAX]; /* real path */
    int64_t bytes, mtime_ns;
    char why[512]; /* where not found: what was tried */
} spk_library_file;

void spk_library_search(const spk_library_names *names, spk_library_file *file);

/* Where else a library may lie. */
typedef struct spk_library_places {
    bool loaded; /* one that this process has loaded already comes first */
    /* patterns as of glob(), a leading "$VAR/" from the environment; the newest version of a pattern's matches first. Ends with NULL */
    const char *const *folders;
    const char *const *neighbours; /* beginnings of names of loaded files ("libtorch"), beside which ... ends with NULL */
    const char *const *beside;     /* ... these relative folders ("../../nvidia/cublas/lib") are searched. Ends with NULL */
} spk_library_places;

/* As spk_library_search, and then in the places. */
void spk_library_search_places(const spk_library_names *names, const spk_library_places *places, spk_library_file *file);

#endif
