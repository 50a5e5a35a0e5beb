/* The file that this code was loaded from: what is installed beside the library is found from it. */
#include "base/own_file.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <unistd.h>

bool spk_own_file(char real[PATH_MAX], struct stat *facts)
{
    static const char here; /* any address of the library */
    Dl_info info;
    struct link_map *map = NULL;
    if (dladdr1(&here, &info, (void **)&map, RTLD_DL_LINKMAP) == 0 || map == NULL)
        return false;
    const char *name = map->l_name[0] == '\0' ? "/proc/self/exe" : map->l_name;
    return name[0] == '/' && realpath(name, real) != NULL && stat(real, facts) == 0;
}

bool spk_is_private(const struct stat *facts, const struct stat *library)
{
    const bool owner = facts->st_uid == 0 || facts->st_uid == geteuid() || (library != NULL && facts->st_uid == library->st_uid);
    const bool group = (facts->st_mode & S_IWGRP) == 0 || facts->st_gid == 0 || facts->st_gid == getegid();
    const bool others = (facts->st_mode & S_IWOTH) == 0 || (S_ISDIR(facts->st_mode) && (facts->st_mode & S_ISVTX) != 0);
    return owner && group && others;
}
