/* Tunables: "MR=4,6 PACK=0,1" spans the candidates of a row; the last tunable varies fastest. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "kernel/kernel.h"

typedef struct tunable {
    const char *name;
    int name_length;
    const char *values; /* "4,6" up to a space or the end */
    int count;
} tunable;

static int split(const char *text, tunable out[SPK_MAX_TUNABLES])
{
    int count = 0;
    while (*text != '\0' && count < SPK_MAX_TUNABLES) {
        const char *equals = strchr(text, '=');
        if (equals == NULL)
            break;
        tunable *t = &out[count++];
        *t = (tunable){text, (int)(equals - text), equals + 1, 1};
        for (text = equals + 1; *text != '\0' && *text != ' '; text++)
            t->count += *text == ',' && t->count < SPK_MOST_VALUES;
        while (*text == ' ')
            text++;
    }
    return count;
}

static int value_at(const tunable *t, int index)
{
    const char *text = t->values;
    while (index-- > 0)
        text = strchr(text, ',') + 1;
    return atoi(text);
}

int spk_params_count(const spk_kernel *kernel)
{
    tunable tunables[SPK_MAX_TUNABLES];
    int count = split(kernel->tunables, tunables), product = 1;
    for (int i = 0; i < count; i++)
        product *= tunables[i].count;
    return product;
}

void spk_tunables_read(const spk_kernel *kernel, spk_tunables *out)
{
    tunable tunables[SPK_MAX_TUNABLES];
    *out = (spk_tunables){.count = split(kernel->tunables, tunables), .candidates = 1};
    for (int i = 0; i < out->count; i++) {
        const char *text = tunables[i].values;
        out->counts[i] = tunables[i].count;
        out->candidates *= tunables[i].count;
        for (int k = 0; k < tunables[i].count; k++, text++) { /* over the comma */
            char *end = NULL;
            out->values[i][k] = (int)strtol(text, &end, 10);
            text = end;
        }
    }
}

spk_params spk_tunables_params(const spk_tunables *tunables, int candidate)
{
    spk_params params = {{0}};
    for (int i = tunables->count - 1; i >= 0; i--) {
        params.v[i] = tunables->values[i][candidate % tunables->counts[i]];
        candidate /= tunables->counts[i];
    }
    return params;
}

void spk_params_get(const spk_kernel *kernel, int candidate, spk_params *params)
{
    spk_tunables tunables;
    spk_tunables_read(kernel, &tunables);
    *params = spk_tunables_params(&tunables, candidate);
}

/* As much as there is room for. */
static void append(char *buffer, size_t size, size_t *used, const char *text, size_t length)
{
    if (*used + 1 >= size)
        return;
    const size_t room = size - 1 - *used, taken = length < room ? length : room;
    memcpy(buffer + *used, text, taken);
    *used += taken;
    buffer[*used] = '\0';
}

void spk_params_text(const spk_kernel *kernel, const spk_params *params, char *buffer, size_t size)
{
    tunable tunables[SPK_MAX_TUNABLES];
    int count = split(kernel->tunables, tunables);
    size_t used = 0;
    if (size > 0)
        buffer[0] = '\0';
    for (int i = 0; i < count; i++) {
        char value[SPK_NUMBER_TEXT];
        const size_t digits = spk_number_text(params->v[i], value);
        append(buffer, size, &used, " ", i > 0);
        append(buffer, size, &used, tunables[i].name, (size_t)tunables[i].name_length + 1); /* with its '=' */
        append(buffer, size, &used, value, digits);
    }
}

int spk_params_index(const spk_kernel *kernel, const char *name)
{
    tunable tunables[SPK_MAX_TUNABLES];
    const int count = split(kernel->tunables, tunables), length = (int)strlen(name);
    for (int i = 0; i < count; i++)
        if (tunables[i].name_length == length && strncmp(tunables[i].name, name, (size_t)length) == 0)
            return i;
    return -1;
}

static int tunable_at(const tunable *tunables, int count, const char *text)
{
    for (int i = 0; i < count; i++)
        if (strncmp(text, tunables[i].name, (size_t)tunables[i].name_length) == 0 && text[tunables[i].name_length] == '=')
            return i;
    return -1;
}

static bool has_value(const tunable *t, long value)
{
    for (int i = 0; i < t->count; i++)
        if (value_at(t, i) == value)
            return true;
    return false;
}

spk_status spk_params_parse(const spk_kernel *kernel, const char *text, spk_params *params)
{
    tunable tunables[SPK_MAX_TUNABLES];
    bool given[SPK_MAX_TUNABLES] = {false};
    const int count = split(kernel->tunables, tunables);
    spk_params parsed;
    spk_params_get(kernel, 0, &parsed);
    for (const char *rest = text + strspn(text, " "); *rest != '\0'; rest += strspn(rest, " ")) {
        const int i = tunable_at(tunables, count, rest), word = (int)strcspn(rest, " ");
        if (i < 0)
            return spk_fail(SPK_ERR_ARGUMENT, "parameters \"%s\" of %s: \"%.*s\" is none of its tunables (%s)", text, kernel->name, word,
                            rest, count > 0 ? kernel->tunables : "it has none");
        if (given[i])
            return spk_fail(SPK_ERR_ARGUMENT, "parameters \"%s\" of %s: %.*s is given twice", text, kernel->name, tunables[i].name_length,
                            tunables[i].name);
        const char *digits = rest + tunables[i].name_length + 1;
        char *end = NULL;
        const long value = strtol(digits, &end, 10);
        if (end == digits || end != rest + word || !has_value(&tunables[i], value))
            return spk_fail(SPK_ERR_ARGUMENT, "parameters \"%s\" of %s: %.*s has no such value (tunables: %s)", text, kernel->name,
                            tunables[i].name_length, tunables[i].name, kernel->tunables);
        parsed.v[i] = (int)value;
        given[i] = true;
        rest = end;
    }
    *params = parsed;
    return SPK_OK;
}

bool spk_params_names(const char *text, const char *name)
{
    const size_t length = strlen(name);
    for (text += strspn(text, " "); *text != '\0'; text += strcspn(text, " "), text += strspn(text, " "))
        if (strncmp(text, name, length) == 0 && text[length] == '=')
            return true;
    return false;
}

void spk_candidate_hash(const spk_kernel *kernel, const spk_params *params, char out[17])
{
    char text[SPK_MAX_PARAMS_TEXT];
    spk_params_text(kernel, params, text, sizeof text);
    uint64_t hash = spk_hash_text(SPK_HASH_START, kernel->ops->source_hash);
    hash = spk_hash_text(hash, kernel->name);
    hash = spk_hash_text(hash, text);
    snprintf(out, 17, "%016llx", (unsigned long long)hash);
}
