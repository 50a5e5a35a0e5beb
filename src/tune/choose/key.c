/* The tuning key: the class of a problem on a device, as text. It holds everything that changes which candidate is fastest, and
 * nothing that changes from one pattern of a family to the next. Exact part, "|", then what the nearest class may differ in. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "op/operation.h"
#include "tune/choose/tune.h"

/* Raised whenever the meaning of a field changes: old classes are then simply unknown. */
#define KEY_VERSION "v=1"

enum { MAX_DEVICE_TEXT = 448, MAX_FIELD_TEXT = 96 };

/* The device's own text, fit for a field: printable, no separator of ours, and folded to a hash where it is long. */
static spk_status device_text(spk_device *device, char out[MAX_DEVICE_TEXT])
{
    char text[4096] = "";
    SPK_TRY(device->backend->key_text(device, text, sizeof text));
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++)
        if (text[i] <= ' ' || text[i] > '~' || text[i] == '|')
            text[i] = '_';
    if (length >= MAX_DEVICE_TEXT)
        snprintf(text + MAX_DEVICE_TEXT - 32, 32, "...#%016" PRIx64, spk_hash_text(SPK_HASH_START, text));
    memcpy(out, text, MAX_DEVICE_TEXT);
    return SPK_OK;
}

spk_status spk_key_of_bundle(const char *key, spk_device *device, char *buffer, size_t size)
{
    char model[MAX_DEVICE_TEXT] = "";
    const char *begin = strstr(key, ";dev="), *bar = strchr(key, '|');
    device->backend->model_text(device, model, sizeof model);
    if (begin == NULL || bar == NULL || (size_t)snprintf(buffer, size, "%.*s;dev=%s%s", (int)(begin - key), key, model, bar) >= size)
        return spk_fail(SPK_ERR_INTERNAL, "the tuning key \"%s\" has no room for a model", key);
    return SPK_OK;
}

/* Text that grows to a limit; `needed` says what there would have been. */
typedef struct key_text {
    char *buffer;
    size_t size, needed;
} key_text;

static void append_bytes(key_text *key, const char *text, size_t length)
{
    if (key->needed + length < key->size) {
        memcpy(key->buffer + key->needed, text, length);
        key->buffer[key->needed + length] = '\0';
    }
    key->needed += length;
}

static void append_field(key_text *key, char separator, const char *name, const char *value)
{
    append_bytes(key, &separator, 1);
    append_bytes(key, name, strlen(name));
    append_bytes(key, "=", 1);
    append_bytes(key, value, strlen(value));
}

spk_status spk_key_make(const spk_problem *problem, spk_device *device, char *buffer, size_t size)
{
    char where[MAX_DEVICE_TEXT], value[MAX_FIELD_TEXT];
    key_text key = {buffer, size < SPK_MAX_KEY_TEXT ? size : SPK_MAX_KEY_TEXT, 0};
    SPK_TRY(device_text(device, where));
    append_bytes(&key, KEY_VERSION, strlen(KEY_VERSION));
    append_field(&key, ';', "op", problem->op->name);
    for (const spk_key_row *row = problem->op->key; row->name != NULL; row++)
        if (row->exact != NULL && row->exact(problem, value, sizeof value))
            append_field(&key, ';', row->name, value);
    append_field(&key, ';', "dev", where);
    char separator = '|';
    for (const spk_key_row *row = problem->op->key; row->name != NULL; row++) {
        int64_t number = 0;
        if (row->near == NULL || !row->near(problem, &number))
            continue;
        spk_number_text(number, value);
        append_field(&key, separator, row->name, value);
        separator = ';';
    }
    if (key.needed >= key.size)
        return spk_fail(SPK_ERR_INTERNAL, "the tuning key needs %zu bytes, the limit is %zu", key.needed, key.size);
    return SPK_OK;
}
