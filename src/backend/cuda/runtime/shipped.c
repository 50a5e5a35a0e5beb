/* A file of SQLite: program (key, bytes, zipped). It is opened once a process. What it holds is run, so that it must be root's, this
 * user's, or of who could change the library as well, and nobody else may write to it. */
#include "backend/cuda/runtime/shipped.h"

#include <limits.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/environment.h"
#include "base/own_file.h"

static const int64_t most_bytes = 64 << 20; /* of one program: a larger one is none of ours */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool looked, refused;
static sqlite3 *opened; /* NULL: there is none */

/* ------------------------------------------------------------------------------------------------ the file */

static bool is_trusted(const char *path, const struct stat *library)
{
    char real[PATH_MAX];
    struct stat file, folder;
    if (realpath(path, real) == NULL || stat(real, &file) != 0 || !S_ISREG(file.st_mode) || !spk_is_private(&file, library))
        return false;
    *strrchr(real, '/') = '\0';
    return stat(real[0] != '\0' ? real : "/", &folder) == 0 && spk_is_private(&folder, library);
}

/* programs.db beside the library (in a wheel), or where it is installed; or what SPARSEK_PROGRAMS names, by its full path. */
static bool find_file(char *path, size_t size)
{
    static const char *const places[] = {"", "/../share/sparsek", "/../../share/sparsek"};
    const char *wish = spk_environment_value("SPARSEK_PROGRAMS");
    char real[PATH_MAX];
    struct stat library;
    const bool found = spk_own_file(real, &library);
    if (wish != NULL)
        return wish[0] == '/' && snprintf(path, size, "%s", wish) < (int)size && is_trusted(path, found ? &library : NULL);
    if (!found)
        return false;
    *strrchr(real, '/') = '\0';
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if (snprintf(path, size, "%s%s/programs.db", real, places[i]) < (int)size && is_trusted(path, &library))
            return true;
    return false;
}

/* Under the lock. */
static sqlite3 *database(void)
{
    char path[PATH_MAX];
    if (refused)
        return NULL;
    if (!looked && find_file(path, sizeof path) &&
        sqlite3_open_v2(path, &opened, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK) {
        sqlite3_close(opened);
        opened = NULL;
    }
    looked = true;
    return opened;
}

/* ------------------------------------------------------------------------------------------------ one program */

/* Under the lock: the row of this key; NULL: there is none. The caller finalizes it. */
static sqlite3_stmt *find_row(const char *key)
{
    sqlite3 *db = database();
    sqlite3_stmt *row = NULL;
    if (db == NULL || sqlite3_prepare_v2(db, "SELECT bytes, zipped FROM program WHERE key = ?", -1, &row, NULL) != SQLITE_OK)
        return NULL;
    if (sqlite3_bind_text(row, 1, key, -1, SQLITE_STATIC) == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW)
        return row;
    sqlite3_finalize(row);
    return NULL;
}

static bool unzip(const spk_mem *mem, sqlite3_stmt *row, void **cubin, size_t *bytes)
{
    const int64_t wanted = sqlite3_column_int64(row, 0);
    const void *zipped = sqlite3_column_blob(row, 1);
    uLongf unzipped = (uLongf)wanted;
    char *made = NULL;
    if (zipped == NULL || wanted <= 0 || wanted > most_bytes || spk_alloc(mem, (size_t)wanted, 1, &made) != SPK_OK)
        return false;
    const int result = uncompress((Bytef *)made, &unzipped, zipped, (uLong)sqlite3_column_bytes(row, 1));
    if (result != Z_OK || unzipped != (uLongf)wanted) {
        spk_free(mem, made);
        return false;
    }
    *cubin = made;
    *bytes = (size_t)wanted;
    return true;
}

bool spk_shipped_load(const spk_mem *mem, const char *key, void **cubin, size_t *bytes)
{
    pthread_mutex_lock(&lock);
    sqlite3_stmt *row = find_row(key);
    const bool good = row != NULL && unzip(mem, row, cubin, bytes);
    sqlite3_finalize(row);
    pthread_mutex_unlock(&lock);
    return good;
}

bool spk_shipped_has(const char *key)
{
    pthread_mutex_lock(&lock);
    sqlite3_stmt *row = find_row(key);
    const bool there = row != NULL;
    sqlite3_finalize(row);
    pthread_mutex_unlock(&lock);
    return there;
}

void spk_shipped_refuse(void)
{
    pthread_mutex_lock(&lock);
    refused = true;
    pthread_mutex_unlock(&lock);
}

void spk_shipped_forget(void)
{
    pthread_mutex_lock(&lock);
    sqlite3_close(opened);
    opened = NULL;
    looked = refused = false;
    pthread_mutex_unlock(&lock);
}
