/* Programs by number, and the parameters of their entries. */
#include "record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_USED = 64, MOST_LAYOUTS = 256 };

static char **texts;
static int count;
static struct {
    int program;
    const char *entry;
} uses[MOST_USED];
static int used;

int record_program(const char *text)
{
    for (int i = count - 1; i >= 0; i--)
        if (strcmp(texts[i], text) == 0)
            return i;
    texts = realloc(texts, ((size_t)count + 1) * sizeof *texts);
    if (texts == NULL || (texts[count] = strdup(text)) == NULL)
        abort();
    return count++;
}

void record_programs_begin(void)
{
    used = 0;
}

int record_program_number(int program, const char *entry)
{
    for (int i = 0; i < used; i++)
        if (uses[i].program == program && strcmp(uses[i].entry, entry) == 0)
            return i;
    return -1;
}

void record_program_used(int program, const char *entry)
{
    if (record_program_number(program, entry) >= 0)
        return;
    if (used == MOST_USED)
        abort();
    uses[used].program = program;
    uses[used++].entry = entry;
}

bool record_program_at(int n, const char **text, const char **entry)
{
    if (n >= used)
        return false;
    *text = texts[uses[n].program];
    *entry = uses[n].entry;
    return true;
}

/* "0fff" */
static bool read_mask(const char *word, record_layout *to)
{
    const size_t bytes = strlen(word) / 2;
    unsigned char *mask = calloc(bytes + 1, 1);
    for (size_t i = 0; mask != NULL && i < bytes; i++) {
        unsigned value = 0;
        if (sscanf(word + 2 * i, "%2x", &value) != 1)
            return false;
        mask[i] = (unsigned char)value;
    }
    to->bytes[to->count] = bytes;
    to->masks[to->count++] = mask;
    return mask != NULL;
}

static int read_layouts(record_layout *layouts)
{
    const char *path = getenv("SPARSEK_RECORD_LAYOUTS");
    FILE *file = path != NULL ? fopen(path, "r") : NULL;
    static char line[16384];
    int made = 0;
    while (file != NULL && made < MOST_LAYOUTS && fgets(line, sizeof line, file) != NULL) {
        record_layout *to = &layouts[made++];
        char *rest = NULL, *word = strtok_r(line, " \n", &rest);
        snprintf(to->entry, sizeof to->entry, "%s", word != NULL ? word : "");
        while ((word = strtok_r(NULL, " \n", &rest)) != NULL && to->count < 16)
            if (!read_mask(word, to))
                abort();
    }
    if (file != NULL)
        fclose(file);
    return made;
}

const record_layout *record_layout_of(const char *entry)
{
    static record_layout layouts[MOST_LAYOUTS];
    static int known = -1;
    if (known < 0)
        known = read_layouts(layouts);
    for (int i = 0; i < known; i++)
        if (strcmp(layouts[i].entry, entry) == 0)
            return &layouts[i];
    return NULL;
}
