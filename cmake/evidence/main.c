/* What evidence about kernels is keyed by: a hash of each file of rows, over the tokens of what its rows use. Comments, white space, the
 * names and places of files, the order of declarations, what no row uses and cost models change nothing.
 *
 *     evidence ROOT                    "row NAME HASH PATH" for each file with rows under ROOT/backend/, "program NAME.cu HASH" for each
 * device program, "file PATH" for each file that was read evidence ROOT --why NAME         which declarations the hash of that file of rows
 * is over, and which it is not evidence ROOT --program PATH [-DNAME=VALUE ...]   the hash of one device program, compiled with these
 *     evidence ROOT --tokens PATH [-DNAME=VALUE ...]    its tokens, a line each
 *
 * Built by cmake/SparsekClosure.cmake with the compiler of the machine that builds. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "preprocess.h"
#include "reach.h"

/* ------------------------------------------------------------------------------------------------ which names the compiler defines */

typedef struct facts {
    bool all;         /* everything that is defined is given: what is not is none */
    bool device;      /* the host defines what a device program is specialised for: any name may be one */
    const char *none; /* a prefix: of these names none is defined */
} facts;

static bool begins_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static macros own; /* all that some source of rows defines */

static bool is_none(const void *pointer, const char *name)
{
    const facts *f = pointer;
    if (name[0] == '?')
        return false;
    if (f->all || strcmp(name, "__cplusplus") == 0)
        return true;
    if (f->device)
        return false;
    if (f->none != NULL && begins_with(name, f->none))
        return true;
    return macro_find(&own, name) != NULL; /* else the compiler, a system header or the build may define it */
}

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

/* The instruction sets that a file of rows is compiled with stand in its name (SparsekRows.cmake). */
static void define_isa(source *s, facts *f, const char *stem)
{
    static const char *const avx2[] = {"__AVX2__", "__FMA__"};
    static const char *const avx512[] = {"__AVX2__", "__FMA__", "__AVX512F__", "__AVX512BW__", "__AVX512DQ__", "__AVX512VL__"};
    const bool wide = ends_with(stem, "_avx512") || ends_with(stem, "_amx");
    if (wide)
        for (size_t i = 0; i < sizeof avx512 / sizeof avx512[0]; i++)
            macro_define_as(s->names.macros, intern_text(avx512[i]), "1");
    else if (ends_with(stem, "_avx2"))
        for (size_t i = 0; i < sizeof avx2 / sizeof avx2[0]; i++)
            macro_define_as(s->names.macros, intern_text(avx2[i]), "1");
    f->none = ends_with(stem, "_avx2") ? "__AVX512" : ends_with(stem, "_neon") ? "__AVX" : wide ? "__ARM" : NULL;
}

/* ------------------------------------------------------------------------------------------------ sources */

/* Of backend/cpu and backend/cuda: what lies in a folder, but for models, which say what is tried and not what runs, and for what compiles
 * and proves programs whatever they are, or looks over a caller's memory before. What lies beside the folders is no row's. */
static bool is_followed(const char *name)
{
    static const char *const also[] = {"backend/cpu/epilogue.c", "backend/cpu/partition.c", "type/half.h"}; /* rows compute with them */
    for (size_t i = 0; i < sizeof also / sizeof also[0]; i++)
        if (strcmp(name, also[i]) == 0)
            return true;
    if (!begins_with(name, "backend/cpu/") && !begins_with(name, "backend/cuda/"))
        return false;
    const char *rest = strchr(name + strlen("backend/"), '/') + 1;
    static const char *const nor[] = {"model/", "runtime/", "proof/", "remote/"};
    for (size_t i = 0; i < sizeof nor / sizeof nor[0]; i++)
        if (begins_with(rest, nor[i]))
            return false;
    return strchr(rest, '/') != NULL;
}

static const char *stem_of(const char *path)
{
    const char *base = strrchr(path, '/');
    base = base != NULL ? base + 1 : path;
    return intern(base, strcspn(base, "."));
}

static const char **read_files; /* of all sources */
static int read_count;

static void note_files(const source *s)
{
    for (int i = 0; i < s->file_count; i++) {
        bool there = false;
        for (int j = 0; j < read_count && !there; j++)
            there = read_files[j] == s->files[i];
        if (there)
            continue;
        read_files = grown(read_files, read_count, sizeof *read_files);
        read_files[read_count++] = s->files[i];
    }
}

/* defines: NULL, or all that the program is compiled with, ended by NULL. */
static token *read_source(const char *root, const char *path, char *const *defines, bool tokens_alone)
{
    macros *all = take(sizeof *all);
    facts *f = take(sizeof *f);
    source s = {.root = root, .path = path, .names = {all, is_none, f}, .is_followed = is_followed, .tokens_alone = tokens_alone};
    *f = (facts){.all = defines != NULL, .device = ends_with(path, ".cu")};
    if (f->device)
        macro_define_as(all, intern_text("__cplusplus"), "201703");
    else
        define_isa(&s, f, stem_of(path));
    for (; defines != NULL && *defines != NULL; defines++) {
        const char *given = begins_with(*defines, "-D") ? *defines + 2 : *defines, *value = strchr(given, '=');
        macro_define_as(all, intern(given, value != NULL ? (size_t)(value - given) : strlen(given)), value != NULL ? value + 1 : "1");
    }
    token *tokens = preprocess(&s);
    note_files(&s);
    return tokens;
}

typedef struct paths {
    const char **list;
    int count;
} paths;

static void find_sources(paths *p, const char *root, const char *folder, const char *ending)
{
    DIR *dir = opendir(format_text("%s/%s", root, folder));
    if (dir == NULL)
        fail("%s/%s: there is no such folder", root, folder);
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        const char *path = intern_text(format_text("%s/%s", folder, e->d_name));
        struct stat about;
        if (e->d_name[0] == '.' || stat(format_text("%s/%s", root, path), &about) != 0)
            continue;
        if (S_ISDIR(about.st_mode)) {
            find_sources(p, root, path, ending);
        } else if (ends_with(path, ending) && is_followed(path)) {
            p->list = grown(p->list, p->count, sizeof *p->list);
            p->list[p->count++] = path;
        }
    }
    closedir(dir);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void note_names(const paths *p, const char *root)
{
    for (int i = 0; i < p->count; i++) {
        size_t length = 0;
        const char *text = read_file(format_text("%s/%s", root, p->list[i]), &length);
        for (const token *t = text != NULL ? tokens_of(text, length, p->list[i]) : NULL; t != NULL; t = t->next)
            if (t->begins_line && token_is(t, "#") && token_is(t->next, "define") && t->next->next != NULL)
                macro_undefine(&own, t->next->next->text);
    }
}

static void read_names(const char *root)
{
    static const char *const folders[] = {"backend/cpu", "backend/cuda"}, *const endings[] = {".c", ".h"};
    for (int f = 0; f < 2; f++)
        for (int e = 0; e < 2; e++) {
            paths p = {0};
            find_sources(&p, root, folders[f], endings[e]);
            note_names(&p, root);
        }
}

static unit **read_units(const char *root, const char *folder, const char *ending, int *count)
{
    paths p = {0};
    find_sources(&p, root, folder, ending);
    if (p.count > 0)
        qsort(p.list, (size_t)p.count, sizeof *p.list, by_text);
    unit **units = take((size_t)(p.count + 1) * sizeof *units);
    for (int i = 0; i < p.count; i++)
        units[i] = unit_of(p.list[i], read_source(root, p.list[i], NULL, false));
    *count = p.count;
    return units;
}

/* ------------------------------------------------------------------------------------------------ commands */

static void print_rows(const room *r, const char *why)
{
    for (int i = 0; i < r->host_count; i++) {
        const char *name = stem_of(r->hosts[i]->path);
        if (!has_row(r->hosts[i]) || (why != NULL && strcmp(why, name) != 0))
            continue;
        printf("row %s %s %s\n", name, hash_of_row(r, r->hosts[i]), r->hosts[i]->path);
        if (why != NULL)
            print_reached(r);
    }
    for (int i = 0; why != NULL && i < r->program_count; i++)
        if (strcmp(why, format_text("%s.cu", stem_of(r->programs[i]->path))) == 0) {
            printf("program %s %s\n", why, hash_of_program(r->programs[i]));
            print_program(r->programs[i]);
        }
}

static void print_all(const char *root, const char *why)
{
    static const char *const folders[] = {"backend/cpu", "backend/cuda"};
    read_names(root);
    for (int b = 0; b < 2; b++) {
        room r = {0};
        r.hosts = read_units(root, folders[b], ".c", &r.host_count);
        r.programs = read_units(root, folders[b], ".cu", &r.program_count);
        print_rows(&r, why);
        for (int i = 0; why == NULL && i < r.program_count; i++)
            printf("program %s.cu %s\n", stem_of(r.programs[i]->path), r.programs[i]->hash);
    }
    for (int i = 0; why == NULL && i < read_count; i++)
        printf("file %s\n", read_files[i]);
}

int main(int count, char **arguments)
{
    if (count < 2)
        fail("usage: evidence ROOT [--why NAME | --program PATH [-DNAME=VALUE ...] | --tokens PATH [-DNAME=VALUE ...]]");
    const char *root = arguments[1], *option = count > 2 ? arguments[2] : NULL;
    if (option == NULL) {
        print_all(root, NULL);
    } else if (count > 3 && strcmp(option, "--why") == 0) {
        print_all(root, arguments[3]);
    } else if (count > 3 && strcmp(option, "--program") == 0) {
        printf("%s\n", hash_of_program(unit_of(arguments[3], read_source(root, arguments[3], arguments + 4, false))));
    } else if (count > 3 && strcmp(option, "--tokens") == 0) {
        for (const token *t = read_source(root, arguments[3], arguments + 4, true); t != NULL; t = t->next)
            puts(t->text);
    } else {
        fail("%s is not known, or lacks what follows", option);
    }
    return 0;
}
