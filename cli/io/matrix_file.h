/* Kinds of matrix files, told by how a name ends, in large letters or small. */
#ifndef SPARSEK_CLI_IO_MATRIX_FILE_H
#define SPARSEK_CLI_IO_MATRIX_FILE_H

#include <stdbool.h>

typedef enum matrix_file { MATRIX_FILE_UNKNOWN, MATRIX_FILE_MTX, MATRIX_FILE_SMTX, MATRIX_FILE_NPY, MATRIX_FILE_SAFETENSORS } matrix_file;
#define MATRIX_FORMATS "ending|mtx|smtx|npy|safetensors"

/* Of a file to be written, which is not compressed; of one to be read. */
matrix_file matrix_file_of(const char *path);
matrix_file matrix_input_file(const char *path);

/* The name is one of a matrix, compressed or not; of a compressed file. */
bool matrix_is_name(const char *path);
bool matrix_is_compressed(const char *path);

#endif
