/* Paths that match a pattern, as glob() finds them. That of glibc ends the process where some of its allocations fail; this one makes none
 * but opendir's. */
#ifndef SPK_BASE_MATCH_H
#define SPK_BASE_MATCH_H

#include <stdbool.h>

typedef int (*spk_name_order)(const char *a, const char *b);          /* as strcmp, which is one: 0 for equal names only */
typedef bool (*spk_path_visit)(const char *path, const void *wanted); /* true: it was the last */

/* Visits what matches an absolute pattern ('*', '?', '[...]' in its components; names that begin with '.' by themselves only), in the order
 * of the paths; whether a visit was the last. A folder that cannot be read holds nothing. What comes after the last wildcard may not be
 * there. */
bool spk_match_paths(const char *pattern, spk_name_order order, spk_path_visit visit, const void *wanted);

#endif
