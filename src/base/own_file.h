/* The file that this code was loaded from. */
#ifndef SPK_BASE_OWN_FILE_H
#define SPK_BASE_OWN_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

/* The file of the code that runs here, which this process trusts already: of a library as the loader has it, of a program that the library
 * is linked into as the kernel has it, never argv[0]. Only absolute names: another would mean another file wherever the process happens to
 * be. false: it cannot be told. */
bool spk_own_file(char real[PATH_MAX], struct stat *facts);

/* Whether only root, this user, or who could change the library as well can write to a file or a folder: what runs is taken from no other.
 * library: of that file; NULL: it cannot be told. */
bool spk_is_private(const struct stat *facts, const struct stat *library);

#endif
