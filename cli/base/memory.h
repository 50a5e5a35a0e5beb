/* Memory of the program, which ends where there is none. */
#ifndef SPARSEK_CLI_BASE_MEMORY_H
#define SPARSEK_CLI_BASE_MEMORY_H

#include <stddef.h>

/* Zeros; exits with code 5 where there is no memory. */
void *cli_alloc(size_t count, size_t size);

#endif
