/* What is recorded of a candidate: the launches of its bind and its run, the vendors' libraries' calls that compute or that choose how, and
 * what comes to the device's memory before them. */
#ifndef RECORD_H
#define RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- memory.c: a device's memory, each allocation at the beginning of a slot of its own: a word that is an address tells which one */

enum { RECORD_MOST_SLOTS = 4096 };
void *record_allocate(size_t bytes); /* NULL: there is no room */
bool record_release(uint64_t address);
int record_slot(uint64_t word, uint64_t *offset); /* of the allocation that the word points into; -1: it is no address */
size_t record_bytes(int slot);
void record_fill(void *from, int value, size_t bytes);

/* ---- text.c: the record. Addresses in it are "name+offset", where the name is an operand's, or a number in the order of appearance */

void record_begin(void);
void record_name(const void *address, const char *name);
void record_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Adds words to the line: addresses by their names, others in hexadecimal. mask: of the bytes that count; NULL: all. */
void record_words(const void *from, size_t bytes, const unsigned char *mask);
void record_address(uint64_t address);
void record_addresses(int count, const void *const *addresses);
/* A hash over the same text, in place of it. */
void record_digest(const void *from, size_t bytes);
uint64_t record_line_hash(void); /* of the line up to here */
void record_end_line(void);
void record_hash(char out[33]);
const char *record_text(void);

/* ---- things.c: handles and descriptors of the libraries. In the record one stands for what it was made of and given, whenever that was:
 * in the order of the attributes' numbers, with what it refers to in place */

typedef struct record_thing record_thing;
record_thing *record_thing_make(const char *kind, int number); /* number: of the kind */
int record_thing_destroy(record_thing *thing);                 /* 0, as the libraries return */
int record_thing_set(record_thing *thing, int attribute, const void *values, size_t bytes);
const void *record_thing_get(const record_thing *thing, int attribute, size_t *bytes); /* NULL: it is not set; bytes may be NULL */
void record_thing_clear(record_thing *thing);
int record_thing_number(const record_thing *thing); /* of its kind */
record_thing *record_thing_at(uint64_t word);       /* NULL: the word is no thing that is there */
void record_thing_write(const record_thing *thing);
/* Handles outlive candidates, and forget what those gave them. */
void record_things_begin(void);

/* ---- programs.c: what was compiled and loaded */

typedef struct record_layout {
    char entry[64];
    int count; /* parameters */
    size_t bytes[16];
    unsigned char *masks[16]; /* the bytes that are no padding */
} record_layout;

/* Of the file that SPARSEK_RECORD_LAYOUTS names; NULL: it has none of this entry. */
const record_layout *record_layout_of(const char *entry);

/* A program is what NVRTC was given: its file and its options, "FILE\nOPTION OPTION"; numbers begin at 0. */
int record_program(const char *text);
void record_programs_begin(void);
void record_program_used(int program, const char *entry);
int record_program_number(int program, const char *entry); /* among those used */
/* The n-th that was used: its text and entry; false: there are fewer. */
bool record_program_at(int n, const char **text, const char **entry);

#endif
