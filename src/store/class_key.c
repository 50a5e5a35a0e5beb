/* How far two class keys are from each other. */
#include "store/class_key.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* What one field adds to a distance: sizes by the octaves between them, classes by the steps. A block shape weighs most: kernels care
 * about it more than about anything else here. */
typedef struct field {
    const char *name;
    double weight;
    bool is_class;
} field;

static const field fields[] = {{"m", 1, false},  {"k", 1, false}, {"br", 4, false},  {"bc", 4, false},
                               {"nz", 1, false}, {"n", 1, false}, {"rs", 0.5, true}, {"ov", 0.5, true}};

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

double spk_key_distance(const char *a, const char *b)
{
    const char *bar_a = strchr(a, '|'), *bar_b = strchr(b, '|');
    if (bar_a == NULL || bar_b == NULL || bar_a - a != bar_b - b || memcmp(a, b, (size_t)(bar_a - a)) != 0)
        return INFINITY;
    double distance = 0;
    const char *rest_a = bar_a + 1, *rest_b = bar_b + 1;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        double x = 0, y = 0;
        if (!read_field(&rest_a, fields[i].name, &x) || !read_field(&rest_b, fields[i].name, &y))
            return INFINITY;
        if (x != y)
            distance += fields[i].weight * (fields[i].is_class ? fabs(x - y) : fabs(log2(x + 0.5) - log2(y + 0.5)));
    }
    double x = 0, y = 0; /* the items of batches; keys of one exact part have both or neither */
    if (read_field(&rest_a, "items", &x) && read_field(&rest_b, "items", &y))
        distance += fabs(log2(x + 0.5) - log2(y + 0.5));
    return *rest_a == '\0' && *rest_b == '\0' ? distance : INFINITY;
}
