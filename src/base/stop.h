/* What ends long work early, from another thread or a signal handler: at the next place where it is asked for. */
#ifndef SPK_BASE_STOP_H
#define SPK_BASE_STOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct spk_stop {
    const atomic_int *all;    /* of all calls of a context, as spk_context_interrupt sets it; NULL: never */
    const volatile int *call; /* of this call alone, spk_tune_options.cancel; NULL: never */
} spk_stop;

/* stop NULL: never. */
static inline bool spk_stop_asked(const spk_stop *stop)
{
    if (stop == NULL)
        return false;
    return (stop->all != NULL && atomic_load_explicit(stop->all, memory_order_relaxed) != 0) ||
           (stop->call != NULL && __atomic_load_n(stop->call, __ATOMIC_RELAXED) != 0); /* theirs is of a type that C++ has, too */
}

#endif
