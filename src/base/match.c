/* A walk through the folders of a pattern, component by component. A folder is read once for each of its matches, to find the next one:
 * they are few, and need no list. */
#include "base/match.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/c_locale.h"

enum { MOST_WILDCARDS = 8 }; /* components with some */

typedef struct walk {
    spk_name_order order;
    spk_path_visit visit;
    const void *wanted;
    char path[PATH_MAX]; /* up to the present component */
} walk;

/* A match in a folder, with the '/' that follows it, which counts in the order of paths: cuda-13/lib comes before cuda/lib. */
typedef struct match {
    char name[NAME_MAX + 2];
} match;

static bool comes_first(const walk *w, const match *a, const match *b)
{
    return b->name[0] == '\0' || w->order(a->name, b->name) < 0;
}

/* The first match after `last` (an empty one: the first of all) in the folder w->path, into `last`. */
static bool find_next(const walk *w, const char *component, bool more, match *last)
{
    match next = {""};
    DIR *folder = opendir(w->path);
    if (folder == NULL)
        return false;
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        match now;
        if (!spk_name_matches(component, entry->d_name) ||
            snprintf(now.name, sizeof now.name, "%s%s", entry->d_name, more ? "/" : "") >= (int)sizeof now.name)
            continue;
        if ((last->name[0] == '\0' || w->order(now.name, last->name) > 0) && comes_first(w, &now, &next))
            next = now;
    }
    closedir(folder);
    *last = next;
    return next.name[0] != '\0';
}

static bool append(walk *w, size_t *length, const char *text, size_t bytes)
{
    if (bytes >= sizeof w->path - *length)
        return false;
    memcpy(w->path + *length, text, bytes);
    *length += bytes;
    w->path[*length] = '\0';
    return true;
}

/* The components of a pattern from here on; w->path ends with '/'. */
static bool walk_on(walk *w, size_t length, const char *pattern, int wildcards)
{
    size_t bytes = strcspn(pattern, "/");
    for (; strcspn(pattern, "*?[\\") >= bytes; bytes = strcspn(pattern, "/")) {
        const bool more = pattern[bytes] == '/';
        if (!append(w, &length, pattern, bytes + more))
            return false;
        if (!more)
            return w->visit(w->path, w->wanted);
        pattern += bytes + 1;
    }
    const bool more = pattern[bytes] == '/';
    char component[NAME_MAX + 1];
    match last = {""};
    if (bytes >= sizeof component || wildcards == MOST_WILDCARDS)
        return false;
    memcpy(component, pattern, bytes);
    component[bytes] = '\0';
    while (find_next(w, component, more, &last)) {
        size_t end = length;
        if (append(w, &end, last.name, strlen(last.name)) &&
            (more ? walk_on(w, end, pattern + bytes + 1, wildcards + 1) : w->visit(w->path, w->wanted)))
            return true;
        w->path[length] = '\0';
    }
    return false;
}

bool spk_match_paths(const char *pattern, spk_name_order order, spk_path_visit visit, const void *wanted)
{
    walk w = {.order = order, .visit = visit, .wanted = wanted, .path = "/"};
    return pattern[0] == '/' && walk_on(&w, 1, pattern + 1, 0);
}
