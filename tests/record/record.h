/* What is recorded of a candidate: the launches of its bind and its run, and what comes to the device's memory before them. */
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

/* ---- text.c: the record. Addresses in it are "name+offset", where the name is an operand's, or a number in the order of appearance */

void record_begin(void);
void record_name(const void *address, const char *name);
void record_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Adds words to the line: addresses by their names, others in hexadecimal. mask: of the bytes that count; NULL: all. */
void record_words(const void *from, size_t bytes, const unsigned char *mask);
void record_address(uint64_t address);
/* A hash over the same text, in place of it. */
void record_digest(const void *from, size_t bytes);
void record_end_line(void);
void record_hash(char out[33]);
const char *record_text(void);

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
