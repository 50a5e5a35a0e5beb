#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Noreturn void fail(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fputs("evidence: ", stderr);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    exit(1);
}

static void *cleared(size_t bytes)
{
    void *memory = calloc(1, bytes);
    if (memory == NULL)
        fail("out of memory");
    return memory;
}

/* Out of large blocks: nothing is given back, and there are millions of tokens. */
void *take(size_t bytes)
{
    enum { BLOCK = 1 << 22, ALIGNMENT = 16 };
    static char *block;
    static size_t left;
    bytes = (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
    if (bytes > BLOCK / 4)
        return cleared(bytes);
    if (bytes > left) {
        block = cleared(BLOCK);
        left = BLOCK;
    }
    void *memory = block;
    block += bytes;
    left -= bytes;
    return memory;
}

void *grown(void *array, int count, size_t element)
{
    if ((count & (count - 1)) != 0) /* room is made at each power of two */
        return array;
    void *more = realloc(array, (size_t)(count > 0 ? 2 * count : 1) * element);
    if (more == NULL)
        fail("out of memory");
    return more;
}

char *format_text(const char *format, ...)
{
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    const int length = vsnprintf(NULL, 0, format, list);
    char *text = take((size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    return text;
}

enum { SLOTS = 1 << 16 };

typedef struct entry {
    struct entry *next;
    size_t length;
    char text[];
} entry;

const char *intern(const char *text, size_t length)
{
    static entry *slots[SLOTS];
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * 16777619u;
    entry **slot = &slots[(hash ^ hash >> 16) % SLOTS];
    for (entry *e = *slot; e != NULL; e = e->next)
        if (e->length == length && memcmp(e->text, text, length) == 0)
            return e->text;
    entry *made = take(sizeof *made + length + 1);
    made->next = *slot;
    made->length = length;
    memcpy(made->text, text, length);
    *slot = made;
    return made->text;
}

const char *intern_text(const char *text)
{
    return intern(text, strlen(text));
}

char *read_file(const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return NULL;
    size_t used = 0, room = 1 << 16;
    char *text = cleared(room);
    for (size_t got; (got = fread(text + used, 1, room - used - 1, file)) > 0;) {
        used += got;
        if (room - used > 1)
            continue;
        char *more = realloc(text, room *= 2);
        if (more == NULL)
            fail("out of memory");
        text = more;
    }
    if (ferror(file))
        fail("%s cannot be read", path);
    fclose(file);
    text[used] = '\0';
    *length = used;
    return text;
}

bool file_exists(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file != NULL)
        fclose(file);
    return file != NULL;
}
