/* What a row uses: from the table of its functions on, every declaration that is mentioned, in its own source or where it is defined, and
 * the device programs that it names. */
#ifndef EVIDENCE_REACH_H
#define EVIDENCE_REACH_H

#include "item.h"

typedef struct room { /* the sources of a backend */
    unit **hosts, **programs;
    int host_count, program_count;
} room;

/* Whether the source has a row: a table with a hash (SPK_SOURCE_HASH). */
bool has_row(const unit *u);

/* 16 hex digits over what the rows of the source use. */
const char *hash_of_row(const room *r, unit *u);
/* Over what the kernels of a device program use. */
const char *hash_of_program(unit *u);

/* Prints what the last hash was over, and what of its sources it was not. */
void print_reached(const room *r);
void print_program(const unit *u);

#endif
