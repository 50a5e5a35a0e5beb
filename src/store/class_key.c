/* The distance between classes, from the text of their keys (tune/choose/key.c). */
#include "store/class_key.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
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
    if (!is_shaped(a))
        return INFINITY;
    if (op == NULL)
        return strcmp(a, b) == 0 ? 0 : INFINITY;
    if (bar_a == NULL || bar_b == NULL || bar_a - a != bar_b - b || memcmp(a, b, (size_t)(bar_a - a)) != 0)
        return INFINITY;
    double distance = 0;
    const char *rest_a = bar_a + 1, *rest_b = bar_b + 1;
    for (const spk_key_row *row = op->key; row->name != NULL; row++) {
        double x = 0, y = 0;
        if (row->near == NULL)
            continue;
        if (read_field(&rest_a, row->name, &x) != read_field(&rest_b, row->name, &y))
            return INFINITY;
        if (x != y)
            distance += row->weight * (row->is_class_number ? fabs(x - y) : fabs(log2(x + 0.5) - log2(y + 0.5)));
    }
    return *rest_a == '\0' && *rest_b == '\0' ? distance : INFINITY;
}

/* The row of an exact field with a token_group, and where its number begins; NULL for another field. */
static const spk_key_row *moving_exact(const spk_op *op, const char *field, const char **number)
{
    for (const spk_key_row *row = op->key; row->name != NULL; row++) {
        const size_t length = strlen(row->name);
        if (row->exact != NULL && row->token_group != 0 && strncmp(field, row->name, length) == 0 && field[length] == '=') {
            *number = field + length + 1;
            return row;
        }
    }
    return NULL;
}

/* A whole number that ends a field; -1 for another text. */
static long long number_of(const char *text)
{
    char *end = NULL;
    const long long number = strtoll(text, &end, 10);
    return end != text && number > 0 && (*end == ';' || *end == '|') ? number : -1;
}

/* Of the parts before the bar, field by field. *layouts: they differ in one. */
static double exact_distance(const spk_op *op, const char *a, const char *b, bool *layouts)
{
    double distance = 0;
    while (*a != '|' && *b != '|') {
        const size_t length_a = strcspn(a, ";|"), length_b = strcspn(b, ";|");
        if (length_a != length_b || memcmp(a, b, length_a) != 0) {
            const char *text_a = NULL, *text_b = NULL;
            if (moving_exact(op, a, &text_a) == NULL || moving_exact(op, a, &text_a) != moving_exact(op, b, &text_b))
                return INFINITY;
            const long long x = number_of(text_a), y = number_of(text_b);
            if (x < 0 || y < 0)
                *layouts = true;
            else
                distance += SPK_KEY_ALIGNMENT_WEIGHT * fabs(log2((double)x) - log2((double)y));
        }
        a += length_a + (a[length_a] == ';');
        b += length_b + (b[length_b] == ';');
    }
    return *a == '|' && *b == '|' ? distance : INFINITY;
}

/* A few tokens and many are computed in different ways: kernels for up to eight columns, and decoding. Those kernels are made for 1, 2, 4
 * or 8, and what is the fastest for one of these may take twice as long as another for the next. 0: many. */
static int few_of(double size)
{
    return size <= 1 ? 1 : size <= 2 ? 2 : size <= 4 ? 4 : size <= 8 ? 8 : 0;
}

double spk_key_size_distance(const char *a, const char *b)
{
    const char *bar_a = strchr(a, '|'), *bar_b = strchr(b, '|');
    const spk_op *op = operation_of(a);
    if (op == NULL || bar_a == NULL || bar_b == NULL)
        return INFINITY;
    bool layouts = false;
    double distance = exact_distance(op, a, b, &layouts);
    int moved = 0;
    const char *rest_a = bar_a + 1, *rest_b = bar_b + 1;
    for (const spk_key_row *row = op->key; row->name != NULL && isfinite(distance); row++) {
        double x = 0, y = 0;
        if (row->near == NULL)
            continue;
        if (read_field(&rest_a, row->name, &x) != read_field(&rest_b, row->name, &y))
            return INFINITY;
        if (x == y)
            continue;
        if (fmax(x, y) <= row->step_tolerance && fabs(x - y) <= 1) {
            distance += SPK_KEY_STEP_WEIGHT;
            continue;
        }
        if (row->token_group == 0 || (moved != 0 && moved != row->token_group) || (!row->is_smooth && few_of(x) != few_of(y)))
            return INFINITY;
        moved = row->token_group;
        distance += row->weight * fabs(log2(x + 0.5) - log2(y + 0.5));
    }
    return *rest_a == '\0' && *rest_b == '\0' && !layouts ? distance : INFINITY;
}

size_t spk_key_size_prefix(const char *key)
{
    const spk_op *op = operation_of(key);
    const char *field = key, *number = NULL;
    while (op != NULL && *field != '|' && moving_exact(op, field, &number) == NULL) {
        field += strcspn(field, ";|");
        field += *field == ';';
    }
    return (size_t)(field - key);
}

/* What a field of another class says where it tolerates a step; NULL for another field. */
static const char *straying_words(const spk_op *op, const char *own, const char *other)
{
    const size_t length = strcspn(own, "=");
    for (const spk_key_row *row = op == NULL ? NULL : op->key; row != NULL && row->name != NULL; row++)
        if (row->step_tolerance != 0 && strlen(row->name) == length && strncmp(row->name, own, length) == 0)
            return atoi(other + length + 1) < atoi(own + length + 1) ? "a pattern with more even rows" : "a pattern with less even rows";
    return NULL;
}

void spk_key_size_words(const char *key, const char *other, char *words, size_t size)
{
    size_t used = 0;
    const char *bar = strchr(other, '|'), *bar_key = strchr(key, '|');
    words[0] = '\0';
    for (int near = 1; near >= 0 && used == 0; near--) { /* alignments only where the sizes are the same */
        const char *a = near ? bar_key + 1 : key, *b = near ? bar + 1 : other;
        while (*a != '\0' && *b != '\0' && *a != '|' && *b != '|') {
            const size_t length_a = strcspn(a, ";|"), length_b = strcspn(b, ";|");
            const bool differs = length_a != length_b || memcmp(a, b, length_a) != 0;
            const char *straying = differs && near ? straying_words(operation_of(key), a, b) : NULL,
                       *text = straying != NULL ? straying : b;
            const size_t length = straying != NULL ? strlen(straying) : length_b;
            if (differs && used + length + 3 < size)
                used += (size_t)snprintf(words + used, size - used, "%s%.*s", used > 0 ? ", " : "", (int)length, text);
            a += length_a + (a[length_a] == ';');
            b += length_b + (b[length_b] == ';');
        }
    }
}
