/* Files that are written aside, beside the file they will replace. */
#ifndef SPK_BASE_TEMPORARY_H
#define SPK_BASE_TEMPORARY_H

#include <stddef.h>
#include <sys/types.h>

/* A new file in target's folder, its name written to `name` (strlen(target) + 64 bytes are enough). -1 with errno. */
int spk_temporary_open(char *name, size_t room, const char *target, mode_t mode);

/* Removes the temporaries in target's folder whose writers are dead. */
void spk_temporary_sweep(const char *target);

#endif
