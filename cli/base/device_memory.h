/* Operands in the memory of a device that the host cannot read: sent there between guards, and brought back. */
#ifndef SPARSEK_CLI_BASE_DEVICE_MEMORY_H
#define SPARSEK_CLI_BASE_DEVICE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#include <sparsek/sparsek.h>

enum { DEVICE_GUARD_BYTES = 256, DEVICE_GUARD = 0xA7 };

/* One array of a run. An output's host memory has its guards around it already, which travel both ways; an input gets guards on the device,
 * and must come back as it was. */
typedef struct device_array {
    const void **pointer; /* in: the host's array, or NULL for none; after device_arrays_in: the device's */
    size_t bytes;
    void *memory; /* the device's, guards included */
    bool output;
    const void *host;
    size_t shift; /* bytes by which the device's pointer misses a multiple of 256 */
} device_array;

bool device_is_far(spk_context *context);

/* Sends all; on failure what was sent is released by device_arrays_out. */
spk_status device_arrays_in(spk_context *context, device_array *list, int count);

/* Where status is SPK_OK, brings outputs back and compares inputs (SPK_ERR_INTERNAL where one or its guards changed); releases all in any
 * case and puts the host's pointers back. Returns status, or its own failure. */
spk_status device_arrays_out(spk_context *context, device_array *list, int count, spk_status status);

#endif
