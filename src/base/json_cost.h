/* What a JSON text becomes in memory, before it is parsed: "[],[],..." grows fifty-fold. Counted from the text's marks: never less than
 * Jansson takes, and about twice that for texts of the usual kind. */
#ifndef SPK_BASE_JSON_COST_H
#define SPK_BASE_JSON_COST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct spk_json_cost {
    int64_t bytes;
    bool in_string, escaped;
} spk_json_cost;

/* Adds a piece of the text; the pieces of one text follow each other. Begin with {0}. */
static inline void spk_json_cost_add(spk_json_cost *cost, const char *text, size_t length)
{
    int64_t bytes = cost->bytes + 4 * (int64_t)length; /* a string, and the buffer that doubles while it is gathered */
    for (size_t i = 0; i < length; i++) {
        const char c = text[i];
        if (cost->escaped)
            cost->escaped = false;
        else if (cost->in_string && c == '\\')
            cost->escaped = true;
        else if (c == '"') {
            cost->in_string = !cost->in_string;
            bytes += 48;
        } else if (!cost->in_string)
            bytes += c == '{' ? 272 : c == '[' ? 176 : c == ':' ? 120 : c == ',' ? 72 : 0;
    }
    cost->bytes = bytes;
}

#endif
