/* Handles and descriptors of the libraries that are recorded. */
#include "record.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_THINGS = 4096, MOST_ATTRIBUTES = 16 };

typedef struct attribute {
    int number;
    size_t bytes;
    void *values;
} attribute;

struct record_thing {
    const char *kind; /* NULL: there is none here */
    int number, count;
    attribute attributes[MOST_ATTRIBUTES]; /* by number */
};

static record_thing things[MOST_THINGS];
static int ever; /* so many places have been in use */

record_thing *record_thing_make(const char *kind, int number)
{
    int at = 0;
    while (at < ever && things[at].kind != NULL)
        at++;
    if (at == MOST_THINGS)
        abort();
    ever = at == ever ? ever + 1 : ever;
    things[at] = (record_thing){.kind = kind, .number = number};
    return &things[at];
}

void record_thing_clear(record_thing *thing)
{
    while (thing->count > 0)
        free(thing->attributes[--thing->count].values);
}

int record_thing_destroy(record_thing *thing)
{
    record_thing_clear(thing);
    thing->kind = NULL;
    return 0;
}

static attribute *attribute_of(record_thing *thing, int number)
{
    int at = 0;
    while (at < thing->count && thing->attributes[at].number < number)
        at++;
    attribute *here = &thing->attributes[at];
    if (at < thing->count && here->number == number)
        return here;
    if (thing->count == MOST_ATTRIBUTES)
        abort();
    memmove(here + 1, here, (size_t)(thing->count++ - at) * sizeof *here);
    *here = (attribute){.number = number};
    return here;
}

int record_thing_set(record_thing *thing, int number, const void *values, size_t bytes)
{
    attribute *to = attribute_of(thing, number);
    free(to->values);
    to->values = malloc(bytes + 1);
    if (to->values == NULL)
        abort();
    memcpy(to->values, values, bytes);
    to->bytes = bytes;
    return 0;
}

const void *record_thing_get(const record_thing *thing, int number, size_t *bytes)
{
    for (int i = 0; i < thing->count; i++)
        if (thing->attributes[i].number == number) {
            if (bytes != NULL)
                *bytes = thing->attributes[i].bytes;
            return thing->attributes[i].values;
        }
    return NULL;
}

int record_thing_number(const record_thing *thing)
{
    return thing->number;
}

record_thing *record_thing_at(uint64_t word)
{
    const uint64_t offset = word - (uint64_t)(uintptr_t)things;
    record_thing *thing = &things[offset / sizeof *things % MOST_THINGS];
    return offset < sizeof things && offset % sizeof *things == 0 && thing->kind != NULL ? thing : NULL;
}

void record_thing_write(const record_thing *thing)
{
    record_line(" {%s %d", thing->kind, thing->number);
    for (int i = 0; i < thing->count; i++) {
        record_line(" %d:", thing->attributes[i].number);
        record_words(thing->attributes[i].values, thing->attributes[i].bytes, NULL);
    }
    record_line("}");
}

void record_things_begin(void)
{
    for (int i = 0; i < ever; i++)
        record_thing_clear(&things[i]);
}
