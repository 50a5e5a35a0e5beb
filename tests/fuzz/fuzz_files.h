/* What the fuzzers of files share: a folder of their own, the input as a file in it, and what must hold. */
#ifndef FUZZ_FILES_H
#define FUZZ_FILES_H

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void fuzz_require(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "does not hold: %s (last message: %s)\n", what, spk_error_last());
    abort();
}

/* Removes the files of a folder. */
static inline void fuzz_empty_folder(const char *path)
{
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;)
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder != NULL)
        closedir(folder);
}

static char fuzz_folder_path[64];

static inline void fuzz_leave(void)
{
    char cache[96];
    snprintf(cache, sizeof cache, "%s/cubin", fuzz_folder_path);
    fuzz_empty_folder(cache);
    rmdir(cache);
    fuzz_empty_folder(fuzz_folder_path);
    rmdir(fuzz_folder_path);
}

/* A folder of this process, in memory where there is such; it goes at the end. */
static inline const char *fuzz_folder(void)
{
    if (fuzz_folder_path[0] == '\0') {
        const char *where = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
        snprintf(fuzz_folder_path, sizeof fuzz_folder_path, "%s/spk-fuzz-XXXXXX", where);
        fuzz_require(mkdtemp(fuzz_folder_path) != NULL, "a folder");
        atexit(fuzz_leave);
    }
    return fuzz_folder_path;
}

static inline void fuzz_put(int file, const void *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        const ssize_t put = write(file, (const char *)bytes + done, size - done);
        fuzz_require(put > 0, "a file is written");
        done += (size_t)put;
    }
}

/* The input as an open file without a name, at its beginning. */
static inline int fuzz_file(const void *bytes, size_t size)
{
    const int file = memfd_create("input", 0);
    fuzz_require(file >= 0, "a file in memory");
    fuzz_put(file, bytes, size);
    fuzz_require(lseek(file, 0, SEEK_SET) == 0, "a file in memory begins");
    return file;
}

static inline void fuzz_write(const char *path, const void *bytes, size_t size)
{
    const int file = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
    fuzz_require(file >= 0, "a file is made");
    fuzz_put(file, bytes, size);
    close(file);
}

#endif
