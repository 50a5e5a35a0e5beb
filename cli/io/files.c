/* Which files a command reads and writes: two names are one file where device and inode agree, or, for files that are still to be made,
 * where folder and name do. */
#include "cli/io/files.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/base/memory.h"
#include "cli/base/text.h"
#include "cli/io/matrix_file.h"
#include "cli/io/messages.h"

typedef struct used_file {
    file_use use;
    char *option, *path;
} used_file;

static used_file *files;
static size_t count;

static bool is_stream(const char *path)
{
    return strcmp(path, "-") == 0 || strcmp(path, "/dev/stdin") == 0 || strcmp(path, "/dev/stdout") == 0;
}

static bool same_name(const char *a, const char *b)
{
    struct stat one, other;
    const char *a_slash = strrchr(a, '/'), *b_slash = strrchr(b, '/');
    if (strcmp(a_slash ? a_slash + 1 : a, b_slash ? b_slash + 1 : b) != 0)
        return false;
    char *a_folder = a_slash ? cli_format("%.*s/", (int)(a_slash - a), a) : cli_format(".");
    char *b_folder = b_slash ? cli_format("%.*s/", (int)(b_slash - b), b) : cli_format(".");
    bool same = stat(a_folder, &one) == 0 && stat(b_folder, &other) == 0 && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
    free(a_folder);
    free(b_folder);
    return same;
}

/* Devices and pipes are nobody's: what is written there destroys nothing. */
static bool same_file(const char *a, const char *b)
{
    struct stat one, other;
    bool a_there = stat(a, &one) == 0, b_there = stat(b, &other) == 0;
    if (a_there && b_there)
        return S_ISREG(one.st_mode) && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
    return !a_there && !b_there && same_name(a, b);
}

static bool is_output(file_use use)
{
    return use == FILE_MATRIX || use == FILE_RESULT;
}

/* An output, and what it must leave alone. */
static int check_pair(const cli *app, const used_file *a, const used_file *b)
{
    static const char *const what[] = {"which this command reads", "which only the store may be", "which this command writes",
                                       "which this command writes"};
    if (is_stream(a->path) && is_stream(b->path) && is_output(a->use) == is_output(b->use))
        return cli_fail(app, EXIT_USAGE, "%s and %s: there is one standard %s", b->option, a->option,
                        is_output(a->use) ? "output" : "input");
    const used_file *output = a->use > b->use ? a : b, *other = output == a ? b : a; /* in the order of the uses: what writes more freely */
    bool may_agree = output->use <= FILE_STORE || (output->use == FILE_MATRIX && other->use == FILE_READ);
    if (may_agree || is_stream(a->path) || is_stream(b->path) || !same_file(a->path, b->path))
        return EXIT_DONE;
    return cli_fail(app, EXIT_USAGE, "%s %s: is the same file as %s %s, %s", output->option, output->path, other->option, other->path,
                    what[other->use]);
}

int files_add(const cli *app, file_use use, const char *option, const char *path)
{
    used_file added = {use, (char *)option, (char *)path};
    if (use == FILE_RESULT && matrix_is_name(path))
        return cli_fail(app, EXIT_USAGE, "%s %s: has a matrix's ending; %s takes the name of the file that it writes", option, path,
                        option);
    struct stat status;
    if (use == FILE_RESULT && stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        return cli_fail(app, EXIT_USAGE, "%s %s: is a folder", option, path);
    for (size_t i = 0; i < count; i++) {
        int code = check_pair(app, &files[i], &added);
        if (code)
            return code;
    }
    used_file *more = cli_alloc(count + 1, sizeof *more);
    if (count)
        memcpy(more, files, count * sizeof *more);
    free(files);
    files = more;
    files[count++] = (used_file){use, cli_format("%s", option), cli_format("%s", path)};
    if (is_output(use) && is_stream(path))
        cli_takes_stdout();
    return EXIT_DONE;
}

bool files_same(const char *a, const char *b)
{
    return !is_stream(a) && !is_stream(b) && same_file(a, b);
}

const char *files_input(const char *path)
{
    return strcmp(path, "-") == 0 ? "/dev/stdin" : path;
}

const char *files_output(const char *path)
{
    return strcmp(path, "-") == 0 ? "/dev/stdout" : path;
}

bool files_is_stdout(const char *path)
{
    return strcmp(files_output(path), "/dev/stdout") == 0;
}
