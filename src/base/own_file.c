/* The file that this code was loaded from: what is installed beside the library is found from it. */
#include "base/own_file.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>

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
