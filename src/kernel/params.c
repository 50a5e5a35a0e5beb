/* Tunables: "MR=4,6 PACK=0,1" spans the candidates of a row; the last tunable varies fastest. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
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
            t->count += *text == ',';
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

void spk_params_get(const spk_kernel *kernel, int candidate, spk_params *params)
{
    tunable tunables[SPK_MAX_TUNABLES];
    int count = split(kernel->tunables, tunables);
    *params = (spk_params){{0}};
    for (int i = count - 1; i >= 0; i--) {
        params->v[i] = value_at(&tunables[i], candidate % tunables[i].count);
        candidate /= tunables[i].count;
    }
}

void spk_params_text(const spk_kernel *kernel, const spk_params *params, char *buffer, size_t size)
{
    tunable tunables[SPK_MAX_TUNABLES];
    int count = split(kernel->tunables, tunables);
    size_t used = 0;
    if (size > 0)
        buffer[0] = '\0';
    for (int i = 0; i < count && used < size; i++)
        used += (size_t)snprintf(buffer + used, size - used, "%s%.*s=%d", i > 0 ? " " : "", tunables[i].name_length, tunables[i].name, params->v[i]);
}

static const char *skip_spaces(const char *text)
{
    while (*text == ' ')
        text++;
    return text;
}

spk_status spk_params_parse(const spk_kernel *kernel, const char *text, spk_params *params)
{
    tunable tunables[SPK_MAX_TUNABLES];
    int count = split(kernel->tunables, tunables);
    spk_params parsed = {{0}};
    const char *rest = skip_spaces(text);
    for (int i = 0; i < count; i++) {
        const tunable *t = &tunables[i];
        if (strncmp(rest, t->name, (size_t)t->name_length) != 0 || rest[t->name_length] != '=')
            return spk_fail(SPK_ERR_ARGUMENT, "parameters \"%s\" of %s: expected %.*s= at \"%s\" (tunables: %s)", text, kernel->name, t->name_length, t->name, rest,
                            kernel->tunables);
        char *end = NULL;
        long value = strtol(rest + t->name_length + 1, &end, 10);
        int known = 0;
        for (int j = 0; j < t->count; j++)
            known |= value_at(t, j) == value;
        if (end == rest + t->name_length + 1 || (*end != '\0' && *end != ' ') || !known)
            return spk_fail(SPK_ERR_ARGUMENT, "parameters \"%s\" of %s: %.*s has no such value (tunables: %s)", text, kernel->name, t->name_length, t->name,
                            kernel->tunables);
        parsed.v[i] = (int)value;
        rest = skip_spaces(end);
    }
    if (*rest != '\0')
        return spk_fail(SPK_ERR_ARGUMENT, "parameters \"%s\" of %s: \"%s\" is left over (tunables: %s)", text, kernel->name, rest, kernel->tunables);
    *params = parsed;
    return SPK_OK;
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
