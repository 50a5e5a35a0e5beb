/* Status and message: every layer fails through spk_fail(), which keeps the message for the calling thread and the context
 * that the current API call entered with spk_error_enter(). */
#ifndef SPK_BASE_STATUS_H
#define SPK_BASE_STATUS_H

#include <sparsek/sparsek.h>

/* Stores a printf-style message for this thread and returns status, so that `return spk_fail(...)` reads well. Says which
 * argument, which value and which limit. */
__attribute__((format(printf, 2, 3))) spk_status spk_fail(spk_status status, const char *format, ...);

/* Names the context (its id; 0: none) that later failures of this thread belong to. */
void spk_error_enter(uint64_t context_id);

/* The context that failures of this thread belong to now. */
uint64_t spk_error_context(void);

/* The message of the last failure in this thread for that context, "" if none. */
const char *spk_error_message(uint64_t context_id);

/* The same for the context that this thread entered last. */
const char *spk_error_last(void);

/* Copies a caller's option struct of any version into ours: the part that the caller does not have is zero. Refuses a size that no version
 * has had, and a newer struct whose unknown tail is not zero. `name` is for the message. All public structs have fields of 4 and of 8
 * bytes, each aligned to its size, and no padding at the end: a size that is a multiple of 8 cuts no field in two. */
spk_status spk_struct_read(void *ours, size_t ours_bytes, const void *theirs, const char *name);

/* The same test of the size alone. */
spk_status spk_struct_check(size_t bytes, const char *name);

/* Copies our filled struct into a caller's of any version (the caller has set struct_size, which is kept). */
spk_status spk_struct_write(void *theirs, const void *ours, size_t ours_bytes, const char *name);

#define SPK_TRY(call)                        \
    do {                                     \
        spk_status spk_try_status_ = (call); \
        if (spk_try_status_ != SPK_OK)       \
            return spk_try_status_;          \
    } while (0)

/* For functions with one exit: needs `spk_status status` and a label `done`. */
#define SPK_GOTO(call)        \
    do {                      \
        status = (call);      \
        if (status != SPK_OK) \
            goto done;        \
    } while (0)

#endif
