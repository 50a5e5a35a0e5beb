/* Looks for vendor libraries as the loader would, and in a Python environment, without opening any. */
#include "backend/search.h"

#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/environment.h"
#include "base/match.h"

static const char *const usual_folders[] = {
#if defined(__x86_64__)
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/local/lib/x86_64-linux-gnu",
#elif defined(__aarch64__)
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/local/lib/aarch64-linux-gnu",
#elif defined(__riscv)
    "/lib/riscv64-linux-gnu",
    "/usr/lib/riscv64-linux-gnu",
    "/usr/local/lib/riscv64-linux-gnu",
#elif defined(__powerpc64__)
    "/lib/powerpc64le-linux-gnu",
    "/usr/lib/powerpc64le-linux-gnu",
#elif defined(__s390x__)
    "/lib/s390x-linux-gnu", "/usr/lib/s390x-linux-gnu",
#endif
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib",
};

/* Takes the file if it is there: a regular file, known by its real path, size and time of change. Never by a relative path, wherever that
 * came from: what lies in the folder that a program happens to work in is not what anybody meant to run. */
static bool describe_library(const char *path, spk_library_file *file)
{
    struct stat facts;
    char real[PATH_MAX];
    if (path[0] != '/' || stat(path, &facts) != 0 || !S_ISREG(facts.st_mode) || realpath(path, real) == NULL)
        return false;
    memcpy(file->path, real, sizeof real);
    file->bytes = (int64_t)facts.st_size;
    file->mtime_ns = (int64_t)facts.st_mtim.tv_sec * 1000000000 + facts.st_mtim.tv_nsec;
    file->found = true;
    return true;
}

static bool search_folder(const char *folder, size_t length, const spk_library_names *names, spk_library_file *file)
{
    if (length == 0)
        return false;
    for (const char *const *name = names->files; *name != NULL; name++) {
        char path[PATH_MAX];
        int used = snprintf(path, sizeof path, "%.*s/%s", (int)length, folder, *name);
        if (used > 0 && (size_t)used < sizeof path && describe_library(path, file))
            return true;
    }
    return false;
}

/* Folders separated by ':' (LD_LIBRARY_PATH allows ';' too). An empty one means the working folder to the loader; neither it nor any
 * other relative one is searched. */
static bool search_list(const char *list, const spk_library_names *names, spk_library_file *file)
{
    while (list != NULL && *list != '\0') {
        size_t length = strcspn(list, ":;");
        if (search_folder(list, length, names, file))
            return true;
        list += length;
        list += *list != '\0';
    }
    return false;
}

enum { INCLUDE_DEPTH = 4 };

typedef struct configuration_search {
    const spk_library_names *names;
    spk_library_file *file;
    int depth; /* of includes */
} configuration_search;

static bool search_configuration(const char *path, const void *wanted);

/* What an "include" names. */
static bool search_included(const configuration_search *search, const char *pattern)
{
    char whole[PATH_MAX];
    const configuration_search inner = {search->names, search->file, search->depth + 1};
    return inner.depth < INCLUDE_DEPTH &&
           (size_t)snprintf(whole, sizeof whole, "%s%s", *pattern == '/' ? "" : "/etc/", pattern) < sizeof whole &&
           spk_match_paths(whole, strcmp, search_configuration, &inner);
}

/* The loader's configuration: folders, one a line, and "include PATTERN". */
static bool search_configuration(const char *path, const void *wanted)
{
    const configuration_search *search = wanted;
    FILE *stream = fopen(path, "re");
    if (stream == NULL)
        return false;
    char line[PATH_MAX];
    bool found = false;
    while (!found && fgets(line, sizeof line, stream) != NULL) {
        line[strcspn(line, "#\n")] = '\0';
        char *start = line + strspn(line, " \t"), *end = start + strlen(start);
        while (end > start && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '/'))
            *--end = '\0';
        if (strncmp(start, "include", 7) == 0 && (start[7] == ' ' || start[7] == '\t'))
            found = search_included(search, start + 8 + strspn(start + 8, " \t"));
        else if (*start == '/')
            found = search_folder(start, (size_t)(end - start), search->names, search->file);
    }
    fclose(stream);
    return found;
}

static bool search_usual(const spk_library_names *names, spk_library_file *file)
{
    const configuration_search configuration = {names, file, 0};
    if (search_list(spk_environment_value("LD_LIBRARY_PATH"), names, file) || search_configuration("/etc/ld.so.conf", &configuration))
        return true;
    for (size_t i = 0; i < sizeof usual_folders / sizeof usual_folders[0]; i++)
        if (search_folder(usual_folders[i], strlen(usual_folders[i]), names, file))
            return true;
    const char *environment = spk_environment_value("VIRTUAL_ENV");
    char folder[PATH_MAX];
    if (environment == NULL || *environment == '\0')
        return false;
    int used = snprintf(folder, sizeof folder, "%s/lib", environment);
    return used > 0 && (size_t)used < sizeof folder && search_folder(folder, (size_t)used, names, file);
}

typedef struct folder_search {
    const spk_library_names *names;
    spk_library_file *file;
} folder_search;

static bool search_match(const char *path, const void *wanted)
{
    const folder_search *search = wanted;
    return search_folder(path, strlen(path), search->names, search->file);
}

static int newest_first(const char *a, const char *b)
{
    return strverscmp(b, a);
}

/* Matches of a pattern, the newest version first: /usr/local/cuda-13.0 before /usr/local/cuda-12.6. */
static bool search_pattern(const char *pattern, const spk_library_names *names, spk_library_file *file)
{
    char whole[PATH_MAX];
    const char *slash = strchr(pattern, '/');
    if (pattern[0] == '$' && slash != NULL && (size_t)(slash - pattern) < 64) {
        char variable[64];
        snprintf(variable, sizeof variable, "%.*s", (int)(slash - pattern - 1), pattern + 1);
        const char *value = spk_environment_value(variable);
        if (value == NULL || *value != '/' || (size_t)snprintf(whole, sizeof whole, "%s%s", value, slash) >= sizeof whole)
            return false;
        pattern = whole;
    }
    return spk_match_paths(pattern, newest_first, search_match, &(folder_search){names, file});
}

typedef struct loaded_search {
    const spk_library_names *names;
    const spk_library_places *places;
    spk_library_file *file;
} loaded_search;

static bool begins_with_one_of(const char *text, const char *const *beginnings)
{
    for (; beginnings != NULL && *beginnings != NULL; beginnings++)
        if (strncmp(text, *beginnings, strlen(*beginnings)) == 0)
            return true;
    return false;
}

/* dl_iterate_phdr: is this the library itself? */
static int visit_itself(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    const loaded_search *search = arg;
    const char *slash = info->dlpi_name != NULL ? strrchr(info->dlpi_name, '/') : NULL;
    if (slash == NULL)
        return 0;
    for (const char *const *name = search->names->files; *name != NULL; name++)
        if (strcmp(slash + 1, *name) == 0 && describe_library(info->dlpi_name, search->file))
            return 1;
    return 0;
}

/* dl_iterate_phdr: is this a library that it may lie beside? */
static int visit_neighbour(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    const loaded_search *search = arg;
    const char *slash = info->dlpi_name != NULL ? strrchr(info->dlpi_name, '/') : NULL;
    if (slash == NULL || !begins_with_one_of(slash + 1, search->places->neighbours))
        return 0;
    for (const char *const *beside = search->places->beside; beside != NULL && *beside != NULL; beside++) {
        char folder[PATH_MAX];
        int used = snprintf(folder, sizeof folder, "%.*s/%s", (int)(slash - info->dlpi_name), info->dlpi_name, *beside);
        if (used > 0 && (size_t)used < sizeof folder && search_folder(folder, (size_t)used, search->names, search->file))
            return 1;
    }
    return 0;
}

static bool search_places(const spk_library_names *names, const spk_library_places *places, spk_library_file *file)
{
    loaded_search search = {names, places, file};
    if (dl_iterate_phdr(visit_neighbour, &search) != 0)
        return true;
    for (const char *const *pattern = places->folders; pattern != NULL && *pattern != NULL; pattern++)
        if (search_pattern(*pattern, names, file))
            return true;
    return false;
}

/* Whether the environment names a file, or forbids one. */
static bool decided_by_wish(const spk_library_names *names, spk_library_file *file)
{
    const char *wish = spk_environment_value(names->variable);
    if (wish == NULL)
        return false;
    if (*wish == '\0' || strcmp(wish, "none") == 0)
        snprintf(file->why, sizeof file->why, "%s = \"%s\": not used", names->variable, wish);
    else if (*wish != '/')
        snprintf(file->why, sizeof file->why, "%s = \"%s\": not used, as it is not a full path", names->variable, wish);
    else if (!describe_library(wish, file))
        snprintf(file->why, sizeof file->why, "%s = \"%s\": there is no such file", names->variable, wish);
    return true;
}

void spk_library_search(const spk_library_names *names, spk_library_file *file)
{
    memset(file, 0, sizeof *file);
    const char *slash = strrchr(names->files[0] != NULL ? names->files[0] : "", '/');
    if (!decided_by_wish(names, file) && !search_usual(names, file))
        snprintf(file->why, sizeof file->why, "no %s in LD_LIBRARY_PATH, the loader's folders or $VIRTUAL_ENV/lib; set %s to its full path",
                 slash != NULL ? slash + 1 : names->files[0], names->variable);
}

void spk_library_search_places(const spk_library_names *names, const spk_library_places *places, spk_library_file *file)
{
    memset(file, 0, sizeof *file);
    loaded_search search = {names, places, file};
    if (decided_by_wish(names, file) || (places->loaded && dl_iterate_phdr(visit_itself, &search) != 0) || search_usual(names, file) ||
        search_places(names, places, file))
        return;
    int used = snprintf(file->why, sizeof file->why, "no %s in LD_LIBRARY_PATH, the loader's folders", names->files[0]);
    for (const char *const *pattern = places->folders; pattern != NULL && *pattern != NULL && used < 300; pattern++)
        used += snprintf(file->why + used, sizeof file->why - (size_t)used, ", %s", *pattern);
    snprintf(file->why + used, sizeof file->why - (size_t)used, "; set %s to its full path", names->variable);
}
