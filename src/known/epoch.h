/* What makes old knowledge doubtful: this process wrote to a store, or something that was believed was found wrong. */
#ifndef SPK_KNOWN_EPOCH_H
#define SPK_KNOWN_EPOCH_H

#include <stdint.h>

typedef struct spk_epoch {
    uint64_t writes;      /* of this process to any store; another process's do not count */
    uint64_t refutations; /* a candidate that was chosen or proved was found wrong */
} spk_epoch;

spk_epoch spk_epoch_now(void);
void spk_epoch_written(void);
void spk_epoch_refuted(void);

#endif
