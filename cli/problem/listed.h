/* A list of problems in a JSON file. */
#ifndef SPARSEK_CLI_PROBLEM_LISTED_H
#define SPARSEK_CLI_PROBLEM_LISTED_H

#include <jansson.h>

#include "cli/problem/flags.h"

typedef struct listed_problems {
    problem_flags *flags;
    int64_t count;
    json_t *json; /* the flags borrow strings from it */
} listed_problems;

/* An array of problems, or the problems of what a bench wrote with --json; `defaults` holds where an object says nothing. All are read
 * before this returns, and added to the files that are read. 0, or an exit code after a message; release *out in any case. */
int listed_read(cli *app, const char *path, const problem_flags *defaults, listed_problems *out);
void listed_release(listed_problems *list);

/* "166 problems, 1f0c66a2b3d4e5f6": the same for the same problems, wherever they were read from. The caller's to free. */
char *listed_mark(const listed_problems *list);

#endif
