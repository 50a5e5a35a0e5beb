/* What the files of the pattern share: making the shell, and what is derived from a valid index. */
#ifndef SPK_MATRIX_PATTERN_PARTS_H
#define SPK_MATRIX_PATTERN_PARTS_H

#include "matrix/pattern.h"

/* A pattern of one reference: offsets are still to be filled, columns to be allocated; sizes are already checked. */
spk_status spk_pattern_shell(const spk_mem *mem, int64_t rows, int64_t cols, int64_t block_rows, int64_t block_cols, int64_t nnzb,
                             spk_pattern **pattern);

/* Sizes, types and counts of a caller's indices (validate.c). */
spk_status spk_pattern_check_shape(const spk_bsr_indices *indices);
/* Copies the caller's arrays into a shell and checks the copy (validate.c). A false nnzb is found before memory is taken for it. */
spk_status spk_pattern_copy_indices(const spk_bsr_indices *indices, spk_pattern *shell);

/* Measures a filled index (features.c). O(nnzb) time. */
spk_status spk_pattern_measure(spk_pattern *pattern);

/* Frees what came of fetching, and remote indices (remote.c). */
void spk_pattern_remote_release(spk_pattern *pattern);

/* Frees the transposed index (transpose.c). */
void spk_pattern_lazy_release(const spk_mem *mem, struct spk_pattern_lazy *lazy);

#endif
