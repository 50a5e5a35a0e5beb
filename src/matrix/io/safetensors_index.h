/* Models in several safetensors files: NAME.safetensors.index.json says in its "weight_map" in which file beside it each tensor lies. */
#ifndef SPK_MATRIX_IO_SAFETENSORS_INDEX_H
#define SPK_MATRIX_IO_SAFETENSORS_INDEX_H

#include "matrix/io/io.h"

#define SPK_INDEX_ENDING ".safetensors.index.json"

/* The path of the file that holds the tensor, or all parts of the BSR matrix, in->tensor; where that is NULL, of the only matrix, or the
 * only tensor. *tensor: its name. The reader is at the begin of the index. Both are the caller's to free, also after a failure. */
spk_status spk_index_find(const spk_read_context *in, char **path, char **tensor);

#endif
