/* Kinds of matrix files, by the endings of their names. */
#include "cli/io/matrix_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "cli/base/text.h"

matrix_file matrix_file_of(const char *path)
{
    static const char *const endings[] = {"", ".mtx", ".smtx", ".npy", ".safetensors"};
    size_t length = strlen(path);
    for (int i = 1; i < 5; i++)
        if (spk_ends_with(path, length, endings[i]))
            return (matrix_file)i;
    return MATRIX_FILE_UNKNOWN;
}

bool matrix_is_compressed(const char *path)
{
    return spk_ends_with(path, strlen(path), ".gz");
}

matrix_file matrix_input_file(const char *path)
{
    char *name = cli_format("%.*s", (int)strlen(path) - (matrix_is_compressed(path) ? 3 : 0), path);
    const matrix_file file = matrix_file_of(name);
    free(name);
    return file;
}

bool matrix_is_name(const char *path)
{
    return matrix_input_file(path) != MATRIX_FILE_UNKNOWN;
}
