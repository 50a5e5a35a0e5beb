#include "known/epoch.h"

#include <stdatomic.h>

static atomic_uint_fast64_t writes, refutations;

spk_epoch spk_epoch_now(void)
{
    return (spk_epoch){atomic_load(&writes), atomic_load(&refutations)};
}

void spk_epoch_written(void)
{
    atomic_fetch_add(&writes, 1);
}

void spk_epoch_refuted(void)
{
    atomic_fetch_add(&refutations, 1);
}
