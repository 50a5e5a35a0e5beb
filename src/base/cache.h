/* The folder that sparsek keeps things in between runs. */
#ifndef SPK_BASE_CACHE_H
#define SPK_BASE_CACHE_H

#include "base/mem.h"

/* $SPARSEK_CACHE_DIR, else sparsek in the user's cache folder (XDG_CACHE_HOME, HOME/.cache): an absolute path, which need not exist; ""
 * where the environment names none. */
spk_status spk_cache_folder(const spk_mem *mem, char **folder);

spk_status spk_path_join(const spk_mem *mem, const char *folder, const char *tail, char **out);
spk_status spk_path_absolute(const spk_mem *mem, const char *path, char **out); /* at once, as the program may change its folder */

#endif
