/* The workspaces that a plan brings for runs that give none. */
#ifndef SPK_API_SCRATCH_H
#define SPK_API_SCRATCH_H

#include "backend/backend.h"

typedef struct spk_scratch spk_scratch;

/* A workspace while one run is made (on a GPU: put on its stream). */
typedef struct spk_loan {
    void *memory;
    void *lane; /* internal */
} spk_loan;

/* bytes > 0; allocates the first. */
spk_status spk_scratch_make(const spk_mem *mem, spk_device *device, size_t bytes, spk_scratch **scratch);
void spk_scratch_release(spk_scratch **scratch); /* accepts NULL */

/* Thread safe. SPK_ERR_UNSUPPORTED where the stream is being captured and has no workspace of this plan yet. */
spk_status spk_scratch_borrow(spk_scratch *scratch, void *stream, spk_loan *loan);
void spk_scratch_return(spk_scratch *scratch, spk_loan *loan);

#endif
