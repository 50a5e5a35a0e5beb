/* The record as text, the same whatever the addresses are. */
#include "record.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *text;
static size_t used, room, line_begin;
static int names[RECORD_MOST_SLOTS], named;  /* by slot: the number it appeared as, from 1 on */
static char operands[RECORD_MOST_SLOTS][24]; /* by slot: an operand's name, or "" */
static uint64_t digest[2];
static bool digesting;

static const uint64_t seeds[2] = {UINT64_C(0xCBF29CE484222325), UINT64_C(0x84222325CBF29CE4)};

/* FNV-1a twice, from two beginnings. */
static void hash(uint64_t state[2], const char *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (int j = 0; j < 2; j++)
            state[j] = (state[j] ^ (unsigned char)from[i]) * UINT64_C(0x100000001B3);
}

static void add(const char *from, size_t count)
{
    if (digesting) {
        hash(digest, from, count);
        return;
    }
    if (used + count + 1 > room) {
        room = (used + count + 1) * 2;
        text = realloc(text, room);
        if (text == NULL)
            abort();
    }
    memcpy(text + used, from, count);
    used += count;
    text[used] = '\0';
}

void record_begin(void)
{
    used = line_begin = 0;
    add("", 0);
    named = 0;
    memset(names, 0, sizeof names);
    memset(operands, 0, sizeof operands);
}

void record_name(const void *address, const char *name)
{
    uint64_t offset = 0;
    const int slot = record_slot((uint64_t)(uintptr_t)address, &offset);
    if (slot >= 0)
        snprintf(operands[slot], sizeof operands[slot], "%s", name);
}

void record_line(const char *format, ...)
{
    char line[400];
    va_list arguments;
    va_start(arguments, format);
    const int count = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (count < 0 || (size_t)count >= sizeof line)
        abort();
    add(line, (size_t)count);
}

/* What a kernel may reach behind an address is as much a part of a launch as the address. */
void record_address(uint64_t address)
{
    uint64_t offset = 0;
    const int slot = record_slot(address, &offset);
    if (slot < 0 && record_thing_at(address) != NULL) {
        record_thing_write(record_thing_at(address));
        return;
    }
    if (slot < 0) {
        record_line(" %llx", (unsigned long long)address);
        return;
    }
    if (names[slot] == 0)
        names[slot] = ++named;
    if (operands[slot][0] != '\0')
        record_line(" %s+%llu", operands[slot], (unsigned long long)offset);
    else
        record_line(" m%d(%zu)+%llu", names[slot], record_bytes(slot), (unsigned long long)offset);
}

void record_addresses(int count, const void *const *addresses)
{
    for (int i = 0; i < count; i++)
        record_address((uint64_t)(uintptr_t)addresses[i]);
}

void record_words(const void *from, size_t bytes, const unsigned char *mask)
{
    const unsigned char *at = from;
    for (size_t i = 0; i < bytes; i += 8) {
        const size_t count = bytes - i < 8 ? bytes - i : 8;
        uint64_t word = 0;
        for (size_t j = 0; j < count; j++)
            word |= (uint64_t)(at[i + j] & (mask != NULL ? mask[i + j] : 0xFF)) << 8 * j;
        record_address(word);
    }
}

void record_digest(const void *from, size_t bytes)
{
    memcpy(digest, seeds, sizeof digest);
    digesting = true;
    record_words(from, bytes, NULL);
    digesting = false;
    record_line(" %016llx%016llx", (unsigned long long)digest[0], (unsigned long long)digest[1]);
}

uint64_t record_line_hash(void)
{
    uint64_t state[2];
    memcpy(state, seeds, sizeof state);
    hash(state, text + line_begin, used - line_begin);
    return state[0];
}

void record_end_line(void)
{
    add("\n", 1);
    line_begin = used;
}

void record_hash(char out[33])
{
    uint64_t state[2];
    memcpy(state, seeds, sizeof state);
    hash(state, text, used);
    snprintf(out, 33, "%016llx%016llx", (unsigned long long)state[0], (unsigned long long)state[1]);
}

const char *record_text(void)
{
    return text;
}
