/* The names of tensors, for messages that tell which there are. */
#ifndef SPK_MATRIX_IO_SAFETENSORS_NAMES_H
#define SPK_MATRIX_IO_SAFETENSORS_NAMES_H

#include "matrix/io/support.h"

enum { SPK_NAMES_BYTES = 480 }; /* of the names in a message; each is whole, as it is to be given */

/* "'a', 'b' and 3 more" for messages. */
typedef struct spk_name_list {
    char text[SPK_NAMES_BYTES + 32];
    size_t used;
    int64_t count, shown;
    bool near; /* of those alone that hold what was asked for */
} spk_name_list;

/* Sorts the names by their letters, and lists them; where one is asked for that is a part of some, those alone: a message has no room for
 * hundreds. */
void spk_names_list(const char *asked, const char **all, size_t count, spk_name_list *names);

/* SPK_ERR_ARGUMENT "FILE: holds no tensor 'asked', but ...", or, where none was asked for, "name one of its tensors: ...". */
spk_status spk_names_fail(const char *file, const char *asked, const spk_name_list *names);

#endif
