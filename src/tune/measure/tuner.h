/* What every part of the tuner works with: the device, the store, the caller's callbacks, the table of kernels. */
#ifndef SPK_TUNE_MEASURE_TUNER_H
#define SPK_TUNE_MEASURE_TUNER_H

#include "base/load.h"
#include "base/stop.h"
#include "registry/registry.h"
#include "store/store.h"

typedef struct spk_tuner {
    const spk_mem *mem;
    spk_device *device;
    spk_store *store;
    spk_stop stop; /* at the next sample */
    spk_log log;
    void *log_user;
    spk_progress progress;
    void *progress_user;
    const spk_kernel *table; /* NULL: spk_kernels() */
    int table_count;
    spk_load (*load_now)(void);    /* NULL: spk_load_now */
    bool (*busy_now)(int threads); /* NULL: spk_load_busy */
} spk_tuner;

#endif
