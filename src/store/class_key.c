/* The distance between classes, from the text of their keys (tune/choose/key.c). */
#include "store/class_key.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "op/operation.h"

/* Reads "name=number" and the ';' behind it; false where the text differs. */
static bool read_field(const char **text, const char *name, double *value)
{
    size_t length = strlen(name);
    if (strncmp(*text, name, length) != 0 || (*text)[length] != '=')
        return false;
    const char *digits = *text + length + 1;
    char *end = NULL;
    long long number = strtoll(digits, &end, 10);
    if (end == digits || number < 0 || (*end != ';' && *end != '\0'))
        return false;
    *text = *end == ';' ? end + 1 : end;
    *value = (double)number;
    return true;
}

/* The operation of a key, whose text begins "v=...;op=NAME;". NULL: none of this version. */
static const spk_op *operation_of(const char *key)
{
    const char *name = strstr(key, ";op=");
    if (name == NULL)
        return NULL;
    name += strlen(";op=");
    const size_t length = strcspn(name, ";|");
    for (int i = 0; spk_op_at(i) != NULL; i++)
        if (strlen(spk_op_at(i)->name) == length && strncmp(spk_op_at(i)->name, name, length) == 0)
            return spk_op_at(i);
    return NULL;
}

/* Whether a text is a key at all: one bar, and numbers behind it, each with a name. */
static bool is_shaped(const char *key)
{
    const char *rest = strchr(key, '|');
    if (rest == NULL || *++rest == '\0')
        return false;
    while (*rest != '\0') {
        const size_t name = strspn(rest, "abcdefghijklmnopqrstuvwxyz"),
                     digits = rest[name] == '=' ? strspn(rest + name + 1, "0123456789") : 0;
        const char end = digits > 0 ? rest[name + 1 + digits] : '|';
        if (name == 0 || (end != ';' && end != '\0'))
            return false;
        rest += name + 1 + digits + (end == ';');
    }
    return true;
}

/* Sizes by the octaves between them, classes by the steps. A class of an operation that this version does not know is near to none but
 * itself. */
double spk_key_distance(const char *a, const char *b)
{
    const char *bar_a = strchr(a, '|'), *bar_b = strchr(b, '|');
    const spk_op *op = operation_of(a);
    if (op == NULL)
        return strcmp(a, b) == 0 && is_shaped(a) ? 0 : INFINITY;
    if (bar_a == NULL || bar_b == NULL || bar_a - a != bar_b - b || memcmp(a, b, (size_t)(bar_a - a)) != 0)
        return INFINITY;
    double distance = 0;
    const char *rest_a = bar_a + 1, *rest_b = bar_b + 1;
    for (const spk_key_row *row = op->key; row->name != NULL; row++) {
        double x = 0, y = 0;
        if (row->near == NULL)
            continue;
        const bool in_a = read_field(&rest_a, row->name, &x), in_b = read_field(&rest_b, row->name, &y);
        if (in_a != in_b || (!in_a && !row->optional))
            return INFINITY;
        if (x != y)
            distance += row->weight * (row->is_class ? fabs(x - y) : fabs(log2(x + 0.5) - log2(y + 0.5)));
    }
    return *rest_a == '\0' && *rest_b == '\0' ? distance : INFINITY;
}
