/* Folders made on the way to a file. */
#include "base/file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

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
            SPK_GOTO(spk_fail(error == ENOSPC || error == EDQUOT ? SPK_ERR_NO_SPACE : SPK_ERR_IO, "%s: cannot make the folder: %s", path, strerror(error)));
        if (there && !S_ISDIR(info.st_mode))
            SPK_GOTO(spk_fail(SPK_ERR_IO, "%s: cannot make the folder: a file of that name is in the way", path));
        *slash = '/';
    }
done:
    spk_free(&spk_mem_system, path);
    return status;
}
