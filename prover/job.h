/* The job as the prover reads it. */
#ifndef SPARSEK_PROVER_JOB_H
#define SPARSEK_PROVER_JOB_H

#include "backend/cuda/proof/proof_job.h"

typedef struct prover_job {
    spk_proof_job head;
    spk_proof_choice *choices;  /* head.count */
    int64_t *offsets, *columns; /* head.grid_rows + 1, head.nnzb */
} prover_job;

/* Reads a job from an open regular file, whose length must be the job's. 0, or -1: it is none, and what was read of it is for job_release
 * all the same. */
int job_read(int file, prover_job *job);
void job_release(prover_job *job);

#endif
