/* Calls of a row's functions, the one frame around them all: the device is current for the thread while one runs. */
#ifndef SPK_KERNEL_ROW_H
#define SPK_KERNEL_ROW_H

#include "kernel/kernel.h"

spk_status spk_row_bind(spk_bound *bound); /* SPK_OK where the row has nothing to bind */
void spk_row_unbind(spk_bound *bound);
spk_status spk_row_run(const spk_bound *bound, const spk_args *args, void *stream);

#endif
