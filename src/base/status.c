/* Messages live in thread-local storage, one slot for each of the last few contexts a thread has used: no allocation, no lock. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/c_locale.h"

enum { SLOTS = 4, MESSAGE_BYTES = 768 };

typedef struct slot {
    uint64_t context_id;
    uint64_t used_at; /* 0: free */
    char text[MESSAGE_BYTES];
} slot;

static _Thread_local slot slots[SLOTS];
static _Thread_local uint64_t current_context, last_context; /* last: the one entered last that is none of 0 */
static _Thread_local uint64_t use_counter;

void spk_error_enter(uint64_t context_id)
{
    current_context = context_id;
    last_context = context_id != 0 ? context_id : last_context;
}

uint64_t spk_error_context(void)
{
    return current_context;
}

static slot *find_slot(uint64_t context_id)
{
    for (int i = 0; i < SLOTS; i++)
        if (slots[i].used_at != 0 && slots[i].context_id == context_id)
            return &slots[i];
    return NULL;
}

spk_status spk_fail(spk_status status, const char *format, ...)
{
    slot *place = find_slot(current_context);
    for (int i = 0; place == NULL && i < SLOTS; i++)
        if (slots[i].used_at == 0)
            place = &slots[i];
    if (place == NULL) {
        place = &slots[0];
        for (int i = 1; i < SLOTS; i++)
            if (slots[i].used_at < place->used_at)
                place = &slots[i];
    }
    /* The arguments may point into the slot itself (a message that wraps an older one). */
    char text[MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    spk_vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    memcpy(place->text, text, sizeof text);
    place->context_id = current_context;
    place->used_at = ++use_counter;
    /* A call without a context (a NULL plan) fails: an older message must not pass for its own. */
    slot *older = current_context == 0 ? find_slot(last_context) : NULL;
    if (older != NULL)
        memcpy(older->text, text, sizeof text);
    return status;
}

const char *spk_error_message(uint64_t context_id)
{
    const slot *place = find_slot(context_id);
    return place != NULL ? place->text : "";
}

const char *spk_error_last(void)
{
    return spk_error_message(current_context);
}

spk_status spk_struct_check(size_t bytes, const char *name)
{
    if (bytes <= sizeof bytes) /* no field at all: the size of something else */
        return spk_fail(SPK_ERR_ARGUMENT, "%s.struct_size is %zu: initialise it with SPK_SIZED(%s)", name, bytes, name);
    if (bytes > 4096)
        return spk_fail(SPK_ERR_ARGUMENT, "%s.struct_size is %zu, the limit is 4096: the struct is not initialised", name, bytes);
    if (bytes % sizeof(uint64_t) != 0)
        return spk_fail(SPK_ERR_ARGUMENT, "%s.struct_size is %zu, which is no multiple of 8: initialise it with SPK_SIZED(%s)", name, bytes,
                        name);
    return SPK_OK;
}

spk_status spk_struct_read(void *ours, size_t ours_bytes, const void *theirs, const char *name)
{
    size_t their_bytes = 0;
    memcpy(&their_bytes, theirs, sizeof their_bytes);
    SPK_TRY(spk_struct_check(their_bytes, name));
    for (size_t i = ours_bytes; i < their_bytes; i++)
        if (((const unsigned char *)theirs)[i] != 0)
            return spk_fail(SPK_ERR_UNSUPPORTED, "%s sets a field at byte %zu that this version of sparsek (%zu bytes) does not know", name,
                            i, ours_bytes);
    memset(ours, 0, ours_bytes);
    memcpy(ours, theirs, their_bytes < ours_bytes ? their_bytes : ours_bytes);
    memcpy(ours, &ours_bytes, sizeof ours_bytes);
    return SPK_OK;
}

spk_status spk_struct_write(void *theirs, const void *ours, size_t ours_bytes, const char *name)
{
    size_t their_bytes = 0;
    memcpy(&their_bytes, theirs, sizeof their_bytes);
    SPK_TRY(spk_struct_check(their_bytes, name));
    size_t common = their_bytes < ours_bytes ? their_bytes : ours_bytes;
    memcpy((char *)theirs + sizeof(size_t), (const char *)ours + sizeof(size_t), common - sizeof(size_t));
    if (their_bytes > ours_bytes)
        memset((char *)theirs + ours_bytes, 0, their_bytes - ours_bytes);
    return SPK_OK;
}

const char *spk_status_name(spk_status status)
{
    switch (status) {
    case SPK_OK:
        return "ok";
    case SPK_ERR_ARGUMENT:
        return "argument";
    case SPK_ERR_OUT_OF_MEMORY:
        return "out of memory";
    case SPK_ERR_UNSUPPORTED:
        return "unsupported";
    case SPK_ERR_UNAVAILABLE:
        return "unavailable";
    case SPK_ERR_IO:
        return "input/output";
    case SPK_ERR_FORMAT:
        return "format";
    case SPK_ERR_NO_CANDIDATE:
        return "no candidate";
    case SPK_ERR_UNKNOWN_CLASS:
        return "unknown class";
    case SPK_ERR_INTERRUPTED:
        return "interrupted";
    case SPK_ERR_NO_SPACE:
        return "no space";
    case SPK_ERR_INTERNAL:
        return "internal";
    }
    return "unknown status";
}
