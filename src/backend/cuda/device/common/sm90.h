/* What the host sides and the programs of the Hopper rows both derive. */
#ifndef SPK_CUDA_SM90_H
#define SPK_CUDA_SM90_H

#include "backend/cuda/device/common/both.h"

enum {
    SM90_SHARED_BYTES = 232448,     /* dynamic shared memory that one block may ask for */
    SM90_PROCESSOR_BYTES = 233472,  /* of a multiprocessor: what its blocks share, */
    SM90_BLOCK_BYTES = 1024,        /* of which each takes so much beside what it asks for */
    SM90_SHARED_SLACK = 1024 + 256, /* to reach a multiple of 1024, and the barriers */
    SM90_ALIGNMENT_BYTES = 1024,    /* of them, that are asked for */
    SM90_STAGING_BYTES = 8192,      /* of 64 columns */
    SM90_MOST_STAGES = 8
};

/* Columns of a stage: TMA writes rows of up to 128 bytes. */
SPK_BOTH int sm90_chunk(int block_cols)
{
    return block_cols % 64 == 0 ? 64 : block_cols % 32 == 0 ? 32 : 16;
}

/* Stages that fit into `room` bytes. */
SPK_BOTH int sm90_stages(int room, int stage_bytes, int most)
{
    return room / stage_bytes < most ? room / stage_bytes : most;
}

/* Blocks of a cluster that add their sums (cluster.cuh): sums of a thread in fours, of which a block owns so many neighbours; bytes of one
 * four of all threads of so many warpgroups. */
SPK_BOTH int cluster_fours(int tiles, int columns)
{
    return tiles * columns / 8;
}
SPK_BOTH int cluster_owned(int fours, int blocks)
{
    return (fours + blocks - 1) / blocks;
}
SPK_BOTH int cluster_line_bytes(int groups)
{
    return groups * 128 * 16;
}

#endif
