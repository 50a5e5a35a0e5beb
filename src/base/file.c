/* Names of files: descriptors that a path names, folders made on the way to a file. */
#include "base/file.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/c_locale.h"

int spk_named_descriptor(const char *path)
{
    static const char *const streams[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr"}, *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    for (int i = 0; i <= STDERR_FILENO; i++)
        if (strcmp(path, streams[i]) == 0)
            return i;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        size_t length = strlen(folders[i]);
        if (strncmp(path, folders[i], length) == 0 && path[length] >= '0' && path[length] <= '9') {
            char *end;
            errno = 0;
            long number = strtol(path + length, &end, 10);
            return *end == '\0' && errno == 0 && number <= INT_MAX ? (int)number : -1;
        }
    }
    return -1;
}

spk_status spk_make_folders(const char *path_of_file)
{
    char *path = NULL;
    spk_status status = SPK_OK;
    SPK_TRY(spk_strdup(&spk_mem_system, path_of_file, &path));
    for (char *slash = strchr(path + (path[0] == '/'), '/'); slash; slash = strchr(slash + 1, '/')) {
        struct stat info;
        *slash = '\0';
        int error = mkdir(path, 0700) == 0 ? 0 : errno;
        bool there = stat(path, &info) == 0; /* made by somebody, now or before; a read-only file system may answer EROFS for what exists */
        if (error && !there)
            SPK_GOTO(spk_fail(error == ENOSPC || error == EDQUOT ? SPK_ERR_NO_SPACE : SPK_ERR_IO, "%s: cannot make the folder: %s", path,
                              spk_system_error(error)));
        if (there && !S_ISDIR(info.st_mode))
            SPK_GOTO(spk_fail(SPK_ERR_IO, "%s: cannot make the folder: a file of that name is in the way", path));
        *slash = '/';
    }
done:
    spk_free(&spk_mem_system, path);
    return status;
}
