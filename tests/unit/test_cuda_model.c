/* The Hopper rows' predictions against times measured on an H200 (cold operands): among the three that they rank first is one that takes no
 * more than 5 % longer than the best. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/cuda/cuda.h"
#include "base/rng.h"
#include "registry/registry.h"
#include "op/product.h"

static const struct measured_problem {
    int64_t m, k, n;
    int block; /* 0: dense */
    int64_t nnzb;
    spk_dtype dtype;
    spk_layout layout; /* of B and D, of X and Y; dense: of B */
    bool sampled;      /* SDDMM */
} problems[] = {
    {4096, 4096, 4096, 32, 2048, SPK_F16, SPK_ROW_MAJOR, false}, {4096, 4096, 4096, 64, 512, SPK_F16, SPK_ROW_MAJOR, false},
    {4096, 4096, 4096, 128, 128, SPK_F16, SPK_ROW_MAJOR, false}, {4096, 4096, 4096, 32, 8192, SPK_F16, SPK_ROW_MAJOR, false},
    {4096, 4096, 4096, 64, 2048, SPK_F16, SPK_ROW_MAJOR, false}, {4096, 4096, 4096, 128, 512, SPK_F16, SPK_ROW_MAJOR, false},
    {8192, 8192, 8192, 32, 8192, SPK_F16, SPK_ROW_MAJOR, false}, {8192, 8192, 8192, 64, 2048, SPK_F16, SPK_ROW_MAJOR, false},
    {8192, 8192, 8192, 128, 512, SPK_F16, SPK_ROW_MAJOR, false}, {4096, 4096, 512, 64, 512, SPK_F16, SPK_ROW_MAJOR, false},
    {4096, 4096, 512, 128, 128, SPK_F16, SPK_ROW_MAJOR, false},  {14336, 4096, 1, 64, 1434, SPK_BF16, SPK_COL_MAJOR, false},
    {14336, 4096, 1, 128, 358, SPK_BF16, SPK_COL_MAJOR, false},  {14336, 4096, 16, 64, 1434, SPK_BF16, SPK_COL_MAJOR, false},
    {14336, 4096, 16, 128, 358, SPK_BF16, SPK_COL_MAJOR, false}, {14336, 4096, 64, 64, 1434, SPK_BF16, SPK_COL_MAJOR, false},
    {14336, 4096, 64, 128, 358, SPK_BF16, SPK_COL_MAJOR, false}, {4096, 4096, 4096, 128, 128, SPK_F16, SPK_ROW_MAJOR, true},
    {4096, 4096, 4096, 128, 512, SPK_F16, SPK_ROW_MAJOR, true},  {4096, 4096, 4096, 64, 512, SPK_F16, SPK_ROW_MAJOR, true},
    {4096, 4096, 4096, 32, 2048, SPK_F16, SPK_ROW_MAJOR, true},  {4096, 4096, 4096, 32, 2048, SPK_F16, SPK_COL_MAJOR, true},
    {1024, 65536, 1024, 64, 16, SPK_F16, SPK_ROW_MAJOR, true},   {12800, 1024, 4096, 0, 0, SPK_BF16, SPK_COL_MAJOR, false},
    {3000, 3000, 3000, 0, 0, SPK_BF16, SPK_COL_MAJOR, false},    {8192, 8192, 64, 0, 0, SPK_BF16, SPK_COL_MAJOR, false},
    {4096, 4096, 4096, 0, 0, SPK_BF16, SPK_COL_MAJOR, false},    {2048, 2048, 2048, 0, 0, SPK_BF16, SPK_COL_MAJOR, false},
    {4096, 4096, 512, 0, 0, SPK_BF16, SPK_COL_MAJOR, false},     {14336, 4096, 16, 0, 0, SPK_BF16, SPK_COL_MAJOR, false},
    {16384, 4096, 4096, 0, 0, SPK_BF16, SPK_COL_MAJOR, false},   {16896, 4096, 256, 0, 0, SPK_BF16, SPK_COL_MAJOR, false},
    {8192, 28672, 256, 0, 0, SPK_BF16, SPK_COL_MAJOR, false},    {8192, 8192, 8192, 0, 0, SPK_BF16, SPK_COL_MAJOR, false},
    {4096, 14336, 4096, 0, 0, SPK_BF16, SPK_COL_MAJOR, false},   {1024, 1024, 1024, 0, 0, SPK_BF16, SPK_COL_MAJOR, false},
};

static const struct measured {
    int problem;
    const char *row, *params;
    double us;
} times[] = {
    {0, "spmm_sm90_groups", "HEIGHT=128 BN=256 PRODUCERS=4 SLOTS=1 CLUSTER=1", 65.52},
    {0, "spmm_sm90_groups", "HEIGHT=128 BN=256 PRODUCERS=4 SLOTS=1 CLUSTER=2", 66.08},
    {0, "spmm_sm90_groups", "HEIGHT=256 BN=128 PRODUCERS=4 SLOTS=1 CLUSTER=1", 84.28},
    {0, "spmm_sm90_groups", "HEIGHT=256 BN=128 PRODUCERS=4 SLOTS=1 CLUSTER=2", 90.44},
    {1, "spmm_sm90_groups", "HEIGHT=128 BN=256 PRODUCERS=4 SLOTS=1 CLUSTER=2", 43.76},
    {1, "spmm_sm90_groups", "HEIGHT=128 BN=256 PRODUCERS=1 SLOTS=1 CLUSTER=1", 44.31},
    {1, "spmm_sm90_groups", "HEIGHT=128 BN=256 PRODUCERS=4 SLOTS=1 CLUSTER=1", 44.51},
    {1, "spmm_sm90_groups", "HEIGHT=256 BN=128 PRODUCERS=4 SLOTS=1 CLUSTER=2", 46.9},
    {1, "spmm_sm90_wgmma", "BN=256 CONSUMERS=2 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 47.19},
    {1, "spmm_sm90_groups", "HEIGHT=256 BN=128 PRODUCERS=4 SLOTS=1 CLUSTER=1", 48.03},
    {1, "spmm_sm90_wgmma", "BN=256 CONSUMERS=1 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 48.18},
    {1, "spmm_sm90_groups", "HEIGHT=128 BN=128 PRODUCERS=4 SLOTS=1 CLUSTER=1", 49.93},
    {1, "spmm_sm90_wgmma", "BN=256 CONSUMERS=1 CTAS=2 ACROSS=0 SPLIT=1 PINGPONG=0", 50.42},
    {1, "spmm_sm90_groups", "HEIGHT=128 BN=128 PRODUCERS=1 SLOTS=1 CLUSTER=1", 53.32},
    {1, "spmm_sm90_wgmma", "BN=128 CONSUMERS=1 CTAS=2 ACROSS=0 SPLIT=1 PINGPONG=0", 54.47},
    {1, "spmm_sm90_wgmma", "BN=128 CONSUMERS=1 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 54.66},
    {1, "spmm_sm90_wgmma", "BN=128 CONSUMERS=2 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 54.85},
    {1, "spmm_sm90_wgmma", "BN=128 CONSUMERS=2 CTAS=2 ACROSS=0 SPLIT=1 PINGPONG=0", 55.04},
    {1, "spmm_sm90_wgmma", "BN=64 CONSUMERS=1 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 68.21},
    {1, "spmm_sm90_wgmma", "BN=64 CONSUMERS=1 CTAS=2 ACROSS=0 SPLIT=1 PINGPONG=0", 68.92},
    {2, "spmm_sm90_wgmma", "BN=256 CONSUMERS=2 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 35.75},
    {2, "spmm_sm90_wgmma", "BN=128 CONSUMERS=1 CTAS=2 ACROSS=0 SPLIT=1 PINGPONG=0", 40.11},
    {2, "spmm_sm90_wgmma", "BN=128 CONSUMERS=2 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 40.44},
    {2, "spmm_sm90_wgmma", "BN=128 CONSUMERS=1 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 41.9},
    {2, "spmm_sm90_wgmma", "BN=64 CONSUMERS=2 CTAS=2 ACROSS=0 SPLIT=1 PINGPONG=0", 53.54},
    {2, "spmm_sm90_wgmma", "BN=64 CONSUMERS=1 CTAS=2 ACROSS=0 SPLIT=1 PINGPONG=0", 53.73},
    {2, "spmm_sm90_wgmma", "BN=64 CONSUMERS=2 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 54.16},
    {2, "spmm_sm90_wgmma", "BN=64 CONSUMERS=1 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 54.87},
    {3, "spmm_sm90_groups", "HEIGHT=128 BN=256 PRODUCERS=4 SLOTS=1 CLUSTER=2", 162.8},
    {3, "spmm_sm90_groups", "HEIGHT=128 BN=256 PRODUCERS=4 SLOTS=1 CLUSTER=1", 165.8},
    {3, "spmm_sm90_groups", "HEIGHT=256 BN=128 PRODUCERS=4 SLOTS=1 CLUSTER=1", 179.4},
    {3, "spmm_sm90_groups", "HEIGHT=256 BN=128 PRODUCERS=4 SLOTS=1 CLUSTER=2", 182.8},
    {4, "spmm_sm90_groups", "HEIGHT=128 BN=256 PRODUCERS=4 SLOTS=1 CLUSTER=2", 125.1},
    {4, "spmm_sm90_groups", "HEIGHT=256 BN=128 PRODUCERS=4 SLOTS=1 CLUSTER=2", 125.6},
    {4, "spmm_sm90_groups", "HEIGHT=256 BN=128 PRODUCERS=4 SLOTS=1 CLUSTER=1", 130.4},
    {4, "spmm_sm90_groups", "HEIGHT=128 BN=256 PRODUCERS=4 SLOTS=1 CLUSTER=1", 131.1},
    {4, "spmm_sm90_groups", "HEIGHT=128 BN=128 PRODUCERS=4 SLOTS=1 CLUSTER=1", 150.8},
    {4, "spmm_sm90_wgmma", "BN=256 CONSUMERS=2 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 164.6},
    {4, "spmm_sm90_wgmma", "BN=256 CONSUMERS=1 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 168.4},
    {4, "spmm_sm90_wgmma", "BN=256 CONSUMERS=1 CTAS=2 ACROSS=0 SPLIT=1 PINGPONG=0", 176.3},
    {4, "spmm_sm90_wgmma", "BN=128 CONSUMERS=2 CTAS=2 ACROSS=0 SPLIT=1 PINGPONG=0", 181.7},
    {4, "spmm_sm90_wgmma", "BN=128 CONSUMERS=1 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 183.2},
    {4, "spmm_sm90_wgmma", "BN=128 CONSUMERS=1 CTAS=2 ACROSS=0 SPLIT=1 PINGPONG=0", 187.9},
    {4, "spmm_sm90_wgmma", "BN=128 CONSUMERS=2 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 193.4},
    {4, "spmm_sm90_wgmma", "BN=64 CONSUMERS=1 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 226},
    {4, "spmm_sm90_wgmma", "BN=64 CONSUMERS=1 CTAS=2 ACROSS=0 SPLIT=1 PINGPONG=0", 238},
    {5, "spmm_sm90_wgmma", "BN=256 CONSUMERS=2 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 105},
    {5, "spmm_sm90_wgmma", "BN=128 CONSUMERS=1 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 128.6},
    {5, "spmm_sm90_wgmma", "BN=128 CONSUMERS=2 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 129.2},
    {5, "spmm_sm90_wgmma", "BN=128 CONSUMERS=1 CTAS=2 ACROSS=0 SPLIT=1 PINGPONG=0", 129.8},
    {5, "spmm_sm90_wgmma", "BN=64 CONSUMERS=1 CTAS=2 ACROSS=0 SPLIT=1 PINGPONG=0", 181.7},
    {5, "spmm_sm90_wgmma", "BN=64 CONSUMERS=1 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 184.5},
    {5, "spmm_sm90_wgmma", "BN=64 CONSUMERS=2 CTAS=2 ACROSS=0 SPLIT=1 PINGPONG=0", 184.7},
    {5, "spmm_sm90_wgmma", "BN=64 CONSUMERS=2 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 185.2},
    {6, "spmm_sm90_groups", "HEIGHT=128 BN=256 PRODUCERS=4 SLOTS=1 CLUSTER=2", 523.8},
    {6, "spmm_sm90_groups", "HEIGHT=128 BN=256 PRODUCERS=4 SLOTS=1 CLUSTER=1", 551.4},
    {6, "spmm_sm90_groups", "HEIGHT=256 BN=128 PRODUCERS=4 SLOTS=1 CLUSTER=1", 614.1},
    {6, "spmm_sm90_groups", "HEIGHT=256 BN=128 PRODUCERS=4 SLOTS=1 CLUSTER=2", 642.9},
    {7, "spmm_sm90_groups", "HEIGHT=128 BN=256 PRODUCERS=4 SLOTS=1 CLUSTER=2", 297.3},
    {7, "spmm_sm90_groups", "HEIGHT=128 BN=256 PRODUCERS=4 SLOTS=1 CLUSTER=1", 311.7},
    {7, "spmm_sm90_wgmma", "BN=256 CONSUMERS=2 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 336.8},
    {7, "spmm_sm90_groups", "HEIGHT=256 BN=128 PRODUCERS=4 SLOTS=1 CLUSTER=2", 337.7},
    {7, "spmm_sm90_wgmma", "BN=256 CONSUMERS=1 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 343.6},
    {7, "spmm_sm90_groups", "HEIGHT=256 BN=128 PRODUCERS=4 SLOTS=1 CLUSTER=1", 349.7},
    {7, "spmm_sm90_wgmma", "BN=256 CONSUMERS=1 CTAS=2 ACROSS=0 SPLIT=1 PINGPONG=0", 355.1},
    {7, "spmm_sm90_groups", "HEIGHT=128 BN=128 PRODUCERS=4 SLOTS=1 CLUSTER=1", 362.6},
    {7, "spmm_sm90_wgmma", "BN=128 CONSUMERS=2 CTAS=2 ACROSS=0 SPLIT=1 PINGPONG=0", 393.5},
    {7, "spmm_sm90_wgmma", "BN=128 CONSUMERS=2 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 393.7},
    {7, "spmm_sm90_wgmma", "BN=128 CONSUMERS=1 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 394.4},
    {7, "spmm_sm90_wgmma", "BN=128 CONSUMERS=1 CTAS=2 ACROSS=0 SPLIT=1 PINGPONG=0", 398.7},
    {7, "spmm_sm90_wgmma", "BN=64 CONSUMERS=1 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 496.9},
    {7, "spmm_sm90_wgmma", "BN=64 CONSUMERS=1 CTAS=2 ACROSS=0 SPLIT=1 PINGPONG=0", 512.7},
    {8, "spmm_sm90_wgmma", "BN=256 CONSUMERS=2 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 231.5},
    {8, "spmm_sm90_wgmma", "BN=128 CONSUMERS=1 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 277.9},
    {8, "spmm_sm90_wgmma", "BN=128 CONSUMERS=2 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 279.1},
    {8, "spmm_sm90_wgmma", "BN=128 CONSUMERS=1 CTAS=2 ACROSS=0 SPLIT=1 PINGPONG=0", 283.4},
    {8, "spmm_sm90_wgmma", "BN=64 CONSUMERS=2 CTAS=2 ACROSS=0 SPLIT=1 PINGPONG=0", 387.8},
    {8, "spmm_sm90_wgmma", "BN=64 CONSUMERS=1 CTAS=2 ACROSS=0 SPLIT=1 PINGPONG=0", 389},
    {8, "spmm_sm90_wgmma", "BN=64 CONSUMERS=1 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 392.8},
    {8, "spmm_sm90_wgmma", "BN=64 CONSUMERS=2 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 393.9},
    {9, "spmm_sm90_wgmma", "BN=256 CONSUMERS=2 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 8.242},
    {9, "spmm_sm90_wgmma", "BN=256 CONSUMERS=1 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 8.407},
    {9, "spmm_sm90_wgmma", "BN=128 CONSUMERS=1 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 8.939},
    {9, "spmm_sm90_wgmma", "BN=128 CONSUMERS=2 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 9.067},
    {9, "spmm_sm90_groups", "HEIGHT=128 BN=128 PRODUCERS=4 SLOTS=1 CLUSTER=1", 9.07},
    {9, "spmm_sm90_wgmma", "BN=128 CONSUMERS=2 CTAS=2 ACROSS=0 SPLIT=1 PINGPONG=0", 9.16},
    {9, "spmm_sm90_wgmma", "BN=128 CONSUMERS=1 CTAS=2 ACROSS=0 SPLIT=1 PINGPONG=0", 9.177},
    {9, "spmm_sm90_groups", "HEIGHT=128 BN=128 PRODUCERS=1 SLOTS=1 CLUSTER=1", 9.205},
    {9, "spmm_sm90_groups", "HEIGHT=128 BN=256 PRODUCERS=1 SLOTS=1 CLUSTER=1", 10.35},
    {9, "spmm_sm90_groups", "HEIGHT=128 BN=256 PRODUCERS=4 SLOTS=1 CLUSTER=1", 10.63},
    {9, "spmm_sm90_wgmma", "BN=64 CONSUMERS=1 CTAS=2 ACROSS=0 SPLIT=1 PINGPONG=0", 10.79},
    {9, "spmm_sm90_wgmma", "BN=256 CONSUMERS=1 CTAS=2 ACROSS=0 SPLIT=1 PINGPONG=0", 11.11},
    {9, "spmm_sm90_wgmma", "BN=64 CONSUMERS=1 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 11.13},
    {10, "spmm_sm90_wgmma", "BN=128 CONSUMERS=2 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 7.71},
    {10, "spmm_sm90_wgmma", "BN=128 CONSUMERS=1 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 7.78},
    {10, "spmm_sm90_wgmma", "BN=64 CONSUMERS=2 CTAS=2 ACROSS=0 SPLIT=1 PINGPONG=0", 8.802},
    {10, "spmm_sm90_wgmma", "BN=64 CONSUMERS=1 CTAS=2 ACROSS=0 SPLIT=1 PINGPONG=0", 8.822},
    {10, "spmm_sm90_wgmma", "BN=256 CONSUMERS=2 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 9.161},
    {10, "spmm_sm90_wgmma", "BN=64 CONSUMERS=2 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 9.307},
    {10, "spmm_sm90_wgmma", "BN=64 CONSUMERS=1 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 9.435},
    {10, "spmm_sm90_wgmma", "BN=128 CONSUMERS=1 CTAS=2 ACROSS=0 SPLIT=1 PINGPONG=0", 9.601},
    {11, "spmm_cuda_narrow", "ROWS=4 SPLIT=4 AHEAD=4", 4.816},
    {11, "spmm_cuda_narrow", "ROWS=4 SPLIT=2 AHEAD=4", 5.405},
    {11, "spmm_cuda_narrow", "ROWS=2 SPLIT=2 AHEAD=4", 5.557},
    {11, "spmm_cuda_narrow", "ROWS=4 SPLIT=2 AHEAD=8", 5.919},
    {11, "spmm_cuda_narrow", "ROWS=1 SPLIT=1 AHEAD=4", 6.187},
    {11, "spmm_cuda_narrow", "ROWS=4 SPLIT=8 AHEAD=4", 6.279},
    {11, "spmm_cuda_narrow", "ROWS=2 SPLIT=1 AHEAD=8", 6.305},
    {11, "spmm_cuda_narrow", "ROWS=4 SPLIT=4 AHEAD=8", 6.419},
    {11, "spmm_cuda_narrow", "ROWS=2 SPLIT=4 AHEAD=4", 6.524},
    {11, "spmm_cuda_narrow", "ROWS=4 SPLIT=1 AHEAD=4", 6.718},
    {11, "spmm_cuda_narrow", "ROWS=2 SPLIT=1 AHEAD=4", 6.747},
    {11, "spmm_cuda_narrow", "ROWS=4 SPLIT=1 AHEAD=8", 6.885},
    {11, "spmm_cuda_narrow", "ROWS=2 SPLIT=2 AHEAD=8", 7.169},
    {11, "spmm_cuda_narrow", "ROWS=1 SPLIT=2 AHEAD=4", 7.246},
    {12, "spmm_cuda_narrow", "ROWS=4 SPLIT=4 AHEAD=4", 5.04},
    {12, "spmm_cuda_narrow", "ROWS=2 SPLIT=2 AHEAD=4", 5.803},
    {12, "spmm_cuda_narrow", "ROWS=4 SPLIT=2 AHEAD=4", 5.935},
    {12, "spmm_cuda_narrow", "ROWS=4 SPLIT=2 AHEAD=8", 6.134},
    {12, "spmm_cuda_narrow", "ROWS=1 SPLIT=1 AHEAD=4", 6.513},
    {12, "spmm_cuda_narrow", "ROWS=4 SPLIT=4 AHEAD=8", 6.638},
    {12, "spmm_cuda_narrow", "ROWS=4 SPLIT=8 AHEAD=4", 6.77},
    {12, "spmm_cuda_narrow", "ROWS=2 SPLIT=1 AHEAD=8", 6.891},
    {12, "spmm_cuda_narrow", "ROWS=2 SPLIT=4 AHEAD=4", 6.909},
    {12, "spmm_cuda_narrow", "ROWS=2 SPLIT=1 AHEAD=4", 7.217},
    {12, "spmm_cuda_narrow", "ROWS=2 SPLIT=2 AHEAD=8", 7.239},
    {12, "spmm_cuda_narrow", "ROWS=4 SPLIT=1 AHEAD=8", 7.285},
    {12, "spmm_cuda_narrow", "ROWS=1 SPLIT=2 AHEAD=4", 7.565},
    {12, "spmm_cuda_narrow", "ROWS=4 SPLIT=1 AHEAD=4", 7.863},
    {13, "spmm_cuda_narrow", "ROWS=1 SPLIT=2 AHEAD=4", 7.128},
    {13, "spmm_cuda_narrow", "ROWS=2 SPLIT=4 AHEAD=8", 7.849},
    {13, "spmm_cuda_narrow", "ROWS=1 SPLIT=4 AHEAD=4", 8.161},
    {13, "spmm_cuda_narrow", "ROWS=1 SPLIT=1 AHEAD=8", 8.391},
    {13, "spmm_cuda_narrow", "ROWS=2 SPLIT=4 AHEAD=4", 8.499},
    {13, "spmm_cuda_narrow", "ROWS=1 SPLIT=2 AHEAD=8", 8.76},
    {13, "spmm_cuda_narrow", "ROWS=2 SPLIT=2 AHEAD=8", 8.98},
    {13, "spmm_cuda_narrow", "ROWS=1 SPLIT=1 AHEAD=4", 9.341},
    {13, "spmm_cuda_narrow", "ROWS=1 SPLIT=4 AHEAD=8", 9.557},
    {13, "spmm_cuda_narrow", "ROWS=4 SPLIT=4 AHEAD=8", 9.611},
    {13, "spmm_cuda_narrow", "ROWS=2 SPLIT=2 AHEAD=4", 10.05},
    {13, "spmm_sm90_groups", "HEIGHT=128 BN=128 PRODUCERS=4 SLOTS=1 CLUSTER=1", 10.37},
    {13, "spmm_cuda_narrow", "ROWS=2 SPLIT=1 AHEAD=8", 10.93},
    {13, "spmm_cuda_narrow", "ROWS=2 SPLIT=8 AHEAD=8", 11.1},
    {13, "spmm_sm90_groups", "HEIGHT=128 BN=128 PRODUCERS=1 SLOTS=1 CLUSTER=1", 11.13},
    {13, "spmm_cuda_narrow", "ROWS=2 SPLIT=8 AHEAD=4", 11.24},
    {13, "spmm_cuda_narrow", "ROWS=1 SPLIT=8 AHEAD=4", 11.25},
    {14, "spmm_cuda_narrow", "ROWS=1 SPLIT=2 AHEAD=4", 7.48},
    {14, "spmm_cuda_narrow", "ROWS=2 SPLIT=4 AHEAD=8", 8.334},
    {14, "spmm_cuda_narrow", "ROWS=1 SPLIT=4 AHEAD=4", 8.456},
    {14, "spmm_cuda_narrow", "ROWS=1 SPLIT=1 AHEAD=8", 8.605},
    {14, "spmm_cuda_narrow", "ROWS=2 SPLIT=4 AHEAD=4", 8.994},
    {14, "spmm_cuda_narrow", "ROWS=1 SPLIT=2 AHEAD=8", 9.24},
    {14, "spmm_cuda_narrow", "ROWS=2 SPLIT=2 AHEAD=8", 9.672},
    {14, "spmm_cuda_narrow", "ROWS=1 SPLIT=4 AHEAD=8", 9.739},
    {14, "spmm_cuda_narrow", "ROWS=1 SPLIT=1 AHEAD=4", 10.08},
    {15, "spmm_sm90_wgmma", "BN=64 CONSUMERS=1 CTAS=2 ACROSS=0 SPLIT=1 PINGPONG=0", 6.361},
    {15, "spmm_sm90_wgmma", "BN=64 CONSUMERS=1 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 6.537},
    {15, "spmm_sm90_groups", "HEIGHT=128 BN=128 PRODUCERS=4 SLOTS=1 CLUSTER=1", 9.485},
    {15, "spmm_sm90_groups", "HEIGHT=128 BN=128 PRODUCERS=1 SLOTS=1 CLUSTER=1", 9.964},
    {16, "spmm_sm90_wgmma", "BN=64 CONSUMERS=1 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 6.415},
    {16, "spmm_sm90_wgmma", "BN=64 CONSUMERS=2 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0", 6.446},
    {16, "spmm_sm90_wgmma", "BN=64 CONSUMERS=1 CTAS=2 ACROSS=0 SPLIT=1 PINGPONG=0", 7.034},
    {16, "spmm_sm90_wgmma", "BN=64 CONSUMERS=2 CTAS=2 ACROSS=0 SPLIT=1 PINGPONG=0", 7.73},
    {17, "sddmm_sm90_wgmma", "HEIGHT=128 WIDTH=128 EXTRA=0 CLUSTER=1 SHARE=2 SPLIT=1", 31.5},
    {17, "sddmm_sm90_wgmma", "HEIGHT=128 WIDTH=128 EXTRA=0 CLUSTER=1 SHARE=1 SPLIT=1", 34.5},
    {17, "sddmm_sm90_wgmma", "HEIGHT=128 WIDTH=256 EXTRA=0 CLUSTER=2 SHARE=1 SPLIT=1", 34.5},
    {17, "sddmm_sm90_wgmma", "HEIGHT=64 WIDTH=128 EXTRA=2 CLUSTER=1 SHARE=1 SPLIT=1", 38.2},
    {17, "sddmm_sm90_wgmma", "HEIGHT=128 WIDTH=128 EXTRA=0 CLUSTER=2 SHARE=1 SPLIT=1", 42.3},
    {17, "sddmm_sm90_wgmma", "HEIGHT=64 WIDTH=128 EXTRA=2 CLUSTER=2 SHARE=1 SPLIT=1", 45.8},
    {17, "sddmm_sm90_wgmma", "HEIGHT=128 WIDTH=256 EXTRA=0 CLUSTER=1 SHARE=1 SPLIT=1", 46.5},
    {17, "sddmm_sm90_wgmma", "HEIGHT=128 WIDTH=256 EXTRA=0 CLUSTER=1 SHARE=1 SPLIT=4", 50.1},
    {17, "sddmm_sm90_wgmma", "HEIGHT=128 WIDTH=128 EXTRA=0 CLUSTER=1 SHARE=1 SPLIT=4", 52.8},
    {17, "sddmm_sm90_wgmma", "HEIGHT=64 WIDTH=128 EXTRA=2 CLUSTER=1 SHARE=1 SPLIT=4", 55.5},
    {17, "sddmm_sm90_wgmma", "HEIGHT=128 WIDTH=256 EXTRA=0 CLUSTER=4 SHARE=1 SPLIT=1", 73.8},
    {18, "sddmm_sm90_wgmma", "HEIGHT=128 WIDTH=256 EXTRA=0 CLUSTER=1 SHARE=1 SPLIT=1", 97.8},
    {18, "sddmm_sm90_wgmma", "HEIGHT=128 WIDTH=256 EXTRA=0 CLUSTER=1 SHARE=2 SPLIT=1", 98.0},
    {18, "sddmm_sm90_wgmma", "HEIGHT=128 WIDTH=128 EXTRA=0 CLUSTER=1 SHARE=1 SPLIT=1", 113.4},
    {18, "sddmm_sm90_wgmma", "HEIGHT=64 WIDTH=128 EXTRA=2 CLUSTER=1 SHARE=1 SPLIT=1", 147.5},
    {19, "sddmm_sm90_wgmma", "HEIGHT=64 WIDTH=128 EXTRA=2 CLUSTER=1 SHARE=1 SPLIT=1", 36.9},
    {19, "sddmm_sm90_wgmma", "HEIGHT=128 WIDTH=128 EXTRA=2 CLUSTER=1 SHARE=1 SPLIT=1", 44.4},
    {19, "sddmm_sm90_wgmma", "HEIGHT=64 WIDTH=128 EXTRA=2 CLUSTER=2 SHARE=1 SPLIT=1", 47.2},
    {19, "sddmm_sm90_wgmma", "HEIGHT=128 WIDTH=128 EXTRA=2 CLUSTER=2 SHARE=1 SPLIT=1", 50.0},
    {19, "sddmm_sm90_wgmma", "HEIGHT=128 WIDTH=256 EXTRA=0 CLUSTER=1 SHARE=1 SPLIT=1", 50.6},
    {19, "sddmm_sm90_wgmma", "HEIGHT=64 WIDTH=128 EXTRA=2 CLUSTER=1 SHARE=1 SPLIT=4", 55.4},
    {19, "sddmm_sm90_wgmma", "HEIGHT=128 WIDTH=128 EXTRA=0 CLUSTER=1 SHARE=1 SPLIT=1", 57.5},
    {19, "sddmm_sm90_wgmma", "HEIGHT=128 WIDTH=128 EXTRA=2 CLUSTER=1 SHARE=1 SPLIT=4", 59.8},
    {19, "sddmm_sm90_wgmma", "HEIGHT=128 WIDTH=256 EXTRA=0 CLUSTER=2 SHARE=1 SPLIT=1", 59.9},
    {19, "sddmm_sm90_wgmma", "HEIGHT=128 WIDTH=256 EXTRA=1 CLUSTER=1 SHARE=2 SPLIT=1", 47.6},
    {19, "sddmm_sm90_wgmma", "HEIGHT=128 WIDTH=256 EXTRA=1 CLUSTER=1 SHARE=1 SPLIT=1", 48.7},
    {20, "sddmm_sm90_wgmma", "HEIGHT=128 WIDTH=256 EXTRA=1 CLUSTER=1 SHARE=2 SPLIT=1", 64.2},
    {20, "sddmm_sm90_wgmma", "HEIGHT=128 WIDTH=256 EXTRA=1 CLUSTER=1 SHARE=1 SPLIT=1", 68.4},
    {20, "sddmm_sm90_wgmma", "HEIGHT=64 WIDTH=128 EXTRA=2 CLUSTER=1 SHARE=1 SPLIT=1", 81.2},
    {20, "sddmm_sm90_wgmma", "HEIGHT=128 WIDTH=128 EXTRA=1 CLUSTER=1 SHARE=1 SPLIT=1", 83.7},
    {20, "sddmm_sm90_wgmma", "HEIGHT=128 WIDTH=128 EXTRA=2 CLUSTER=1 SHARE=1 SPLIT=1", 87.7},
    {20, "sddmm_sm90_wgmma", "HEIGHT=128 WIDTH=128 EXTRA=0 CLUSTER=1 SHARE=1 SPLIT=1", 94.1},
    {20, "sddmm_sm90_wgmma", "HEIGHT=128 WIDTH=256 EXTRA=0 CLUSTER=1 SHARE=1 SPLIT=1", 99.8},
    {21, "sddmm_sm90_wgmma", "HEIGHT=128 WIDTH=256 EXTRA=1 CLUSTER=1 SHARE=1 SPLIT=1", 63.6},
    {21, "sddmm_sm90_wgmma", "HEIGHT=64 WIDTH=128 EXTRA=2 CLUSTER=1 SHARE=1 SPLIT=1", 70.8},
    {21, "sddmm_sm90_wgmma", "HEIGHT=128 WIDTH=128 EXTRA=1 CLUSTER=1 SHARE=1 SPLIT=1", 78.7},
    {21, "sddmm_sm90_wgmma", "HEIGHT=128 WIDTH=128 EXTRA=2 CLUSTER=1 SHARE=1 SPLIT=1", 85.1},
    {21, "sddmm_sm90_wgmma", "HEIGHT=128 WIDTH=256 EXTRA=0 CLUSTER=1 SHARE=1 SPLIT=1", 91.5},
    {21, "sddmm_sm90_wgmma", "HEIGHT=128 WIDTH=128 EXTRA=0 CLUSTER=1 SHARE=1 SPLIT=1", 92.5},
    {22, "sddmm_sm90_wgmma", "HEIGHT=128 WIDTH=128 EXTRA=0 CLUSTER=1 SHARE=1 SPLIT=4", 82.3},
    {22, "sddmm_sm90_wgmma", "HEIGHT=64 WIDTH=128 EXTRA=2 CLUSTER=1 SHARE=1 SPLIT=4", 83.9},
    {22, "sddmm_sm90_wgmma", "HEIGHT=128 WIDTH=128 EXTRA=0 CLUSTER=4 SHARE=1 SPLIT=1", 84.2},
    {22, "sddmm_sm90_wgmma", "HEIGHT=64 WIDTH=128 EXTRA=2 CLUSTER=4 SHARE=1 SPLIT=1", 91.1},
    {22, "sddmm_sm90_wgmma", "HEIGHT=128 WIDTH=128 EXTRA=1 CLUSTER=4 SHARE=1 SPLIT=1", 92.0},
    {22, "sddmm_sm90_wgmma", "HEIGHT=128 WIDTH=128 EXTRA=1 CLUSTER=1 SHARE=1 SPLIT=4", 98.4},
    {22, "sddmm_sm90_wgmma", "HEIGHT=128 WIDTH=128 EXTRA=2 CLUSTER=4 SHARE=1 SPLIT=1", 101.4},
    {22, "sddmm_sm90_wgmma", "HEIGHT=128 WIDTH=128 EXTRA=2 CLUSTER=1 SHARE=1 SPLIT=4", 108.4},
    {22, "sddmm_sm90_wgmma", "HEIGHT=128 WIDTH=128 EXTRA=0 CLUSTER=2 SHARE=1 SPLIT=1", 151.1},
    {22, "sddmm_sm90_wgmma", "HEIGHT=64 WIDTH=128 EXTRA=2 CLUSTER=2 SHARE=1 SPLIT=1", 151.4},
    {23, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=184 PINGPONG=1 CLUSTER=0 SPLIT=1 SWAP=1", 159.92},
    {23, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=184 PINGPONG=1 CLUSTER=2 SPLIT=1 SWAP=1", 160.71},
    {23, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=176 PINGPONG=1 CLUSTER=2 SPLIT=1 SWAP=1", 163.37},
    {23, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=176 PINGPONG=1 CLUSTER=0 SPLIT=1 SWAP=1", 163.42},
    {23, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=168 PINGPONG=1 CLUSTER=0 SPLIT=1 SWAP=1", 164.25},
    {23, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=144 PINGPONG=1 CLUSTER=0 SPLIT=1 SWAP=0", 164.81},
    {23, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=160 PINGPONG=1 CLUSTER=1 SPLIT=1 SWAP=0", 165.61},
    {23, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=192 PINGPONG=1 CLUSTER=2 SPLIT=1 SWAP=0", 167.1},
    {23, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=168 PINGPONG=1 CLUSTER=0 SPLIT=1 SWAP=0", 168.24},
    {23, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=112 PINGPONG=1 CLUSTER=2 SPLIT=1 SWAP=1", 176.64},
    {23, "gemm_sm90_wgmma", "HEIGHT=256 WIDTH=144 PINGPONG=0 CLUSTER=0 SPLIT=1 SWAP=1", 209.23},
    {24, "gemm_sm90_wgmma", "HEIGHT=192 WIDTH=192 PINGPONG=0 CLUSTER=2 SPLIT=1 SWAP=0", 86.277},
    {24, "gemm_sm90_wgmma", "HEIGHT=256 WIDTH=144 PINGPONG=0 CLUSTER=2 SPLIT=1 SWAP=0", 86.605},
    {24, "gemm_sm90_wgmma", "HEIGHT=192 WIDTH=192 PINGPONG=0 CLUSTER=1 SPLIT=1 SWAP=0", 86.763},
    {24, "gemm_sm90_wgmma", "HEIGHT=256 WIDTH=152 PINGPONG=0 CLUSTER=2 SPLIT=1 SWAP=0", 89.763},
    {24, "gemm_sm90_wgmma", "HEIGHT=256 WIDTH=160 PINGPONG=0 CLUSTER=2 SPLIT=1 SWAP=0", 92.365},
    {24, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=192 PINGPONG=1 CLUSTER=1 SPLIT=1 SWAP=0", 96.317},
    {24, "gemm_sm90_wgmma", "HEIGHT=192 WIDTH=136 PINGPONG=0 CLUSTER=2 SPLIT=1 SWAP=0", 102.55},
    {24, "gemm_sm90_wgmma", "HEIGHT=192 WIDTH=128 PINGPONG=0 CLUSTER=1 SPLIT=1 SWAP=0", 107.54},
    {24, "gemm_sm90_wgmma", "HEIGHT=256 WIDTH=160 PINGPONG=0 CLUSTER=0 SPLIT=1 SWAP=0", 111.53},
    {24, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=256 PINGPONG=0 CLUSTER=0 SPLIT=1 SWAP=0", 141.65},
    {24, "gemm_sm90_wgmma", "HEIGHT=64 WIDTH=144 PINGPONG=1 CLUSTER=0 SPLIT=1 SWAP=0", 217.86},
    {25, "gemm_sm90_wgmma", "HEIGHT=64 WIDTH=64 PINGPONG=1 CLUSTER=1 SPLIT=1 SWAP=0", 35.77},
    {25, "gemm_sm90_wgmma", "HEIGHT=64 WIDTH=64 PINGPONG=1 CLUSTER=0 SPLIT=1 SWAP=0", 35.825},
    {25, "gemm_sm90_wgmma", "HEIGHT=64 WIDTH=64 PINGPONG=0 CLUSTER=1 SPLIT=1 SWAP=0", 35.842},
    {25, "gemm_sm90_wgmma", "HEIGHT=64 WIDTH=64 PINGPONG=0 CLUSTER=0 SPLIT=1 SWAP=0", 35.931},
    {25, "gemm_sm90_wgmma", "HEIGHT=64 WIDTH=64 PINGPONG=1 CLUSTER=0 SPLIT=1 SWAP=1", 36.46},
    {25, "gemm_sm90_wgmma", "HEIGHT=64 WIDTH=64 PINGPONG=0 CLUSTER=0 SPLIT=1 SWAP=1", 36.61},
    {25, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=32 PINGPONG=1 CLUSTER=2 SPLIT=1 SWAP=0", 37.026},
    {25, "gemm_sm90_wgmma", "HEIGHT=64 WIDTH=144 PINGPONG=1 CLUSTER=0 SPLIT=1 SWAP=1", 38.098},
    {25, "gemm_sm90_wgmma", "HEIGHT=64 WIDTH=112 PINGPONG=0 CLUSTER=2 SPLIT=1 SWAP=1", 38.753},
    {25, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=112 PINGPONG=1 CLUSTER=0 SPLIT=1 SWAP=0", 46.118},
    {25, "gemm_sm90_wgmma", "HEIGHT=192 WIDTH=16 PINGPONG=0 CLUSTER=0 SPLIT=1 SWAP=0", 90.906},
    {26, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=112 PINGPONG=1 CLUSTER=0 SPLIT=1 SWAP=0", 206.34},
    {26, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=128 PINGPONG=1 CLUSTER=0 SPLIT=1 SWAP=0", 206.99},
    {26, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=128 PINGPONG=1 CLUSTER=1 SPLIT=1 SWAP=0", 207.37},
    {26, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=128 PINGPONG=1 CLUSTER=2 SPLIT=1 SWAP=0", 207.44},
    {26, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=112 PINGPONG=1 CLUSTER=1 SPLIT=1 SWAP=0", 209.09},
    {26, "gemm_sm90_wgmma", "HEIGHT=256 WIDTH=128 PINGPONG=0 CLUSTER=0 SPLIT=1 SWAP=0", 211.74},
    {26, "gemm_sm90_wgmma", "HEIGHT=256 WIDTH=128 PINGPONG=0 CLUSTER=1 SPLIT=1 SWAP=0", 214.92},
    {26, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=208 PINGPONG=0 CLUSTER=1 SPLIT=1 SWAP=0", 218.27},
    {26, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=184 PINGPONG=1 CLUSTER=0 SPLIT=1 SWAP=0", 221.06},
    {26, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=144 PINGPONG=1 CLUSTER=0 SPLIT=1 SWAP=0", 229.36},
    {26, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=192 PINGPONG=0 CLUSTER=0 SPLIT=1 SWAP=0", 237.75},
    {27, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=128 PINGPONG=1 CLUSTER=0 SPLIT=1 SWAP=0", 26.877},
    {27, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=128 PINGPONG=1 CLUSTER=2 SPLIT=1 SWAP=0", 26.968},
    {27, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=256 PINGPONG=0 CLUSTER=0 SPLIT=1 SWAP=0", 27.099},
    {27, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=256 PINGPONG=0 CLUSTER=1 SPLIT=1 SWAP=0", 27.109},
    {27, "gemm_sm90_wgmma", "HEIGHT=256 WIDTH=128 PINGPONG=0 CLUSTER=0 SPLIT=1 SWAP=0", 27.179},
    {27, "gemm_sm90_wgmma", "HEIGHT=256 WIDTH=128 PINGPONG=0 CLUSTER=2 SPLIT=1 SWAP=0", 27.41},
    {27, "gemm_sm90_wgmma", "HEIGHT=64 WIDTH=256 PINGPONG=0 CLUSTER=0 SPLIT=1 SWAP=0", 28.285},
    {27, "gemm_sm90_wgmma", "HEIGHT=192 WIDTH=184 PINGPONG=0 CLUSTER=0 SPLIT=1 SWAP=0", 29.667},
    {27, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=144 PINGPONG=1 CLUSTER=1 SPLIT=1 SWAP=0", 30.282},
    {27, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=160 PINGPONG=0 CLUSTER=0 SPLIT=1 SWAP=0", 33.798},
    {27, "gemm_sm90_wgmma", "HEIGHT=192 WIDTH=176 PINGPONG=0 CLUSTER=1 SPLIT=1 SWAP=0", 51.408},
    {28, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=128 PINGPONG=0 CLUSTER=0 SPLIT=1 SWAP=0", 27.581},
    {28, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=128 PINGPONG=0 CLUSTER=0 SPLIT=1 SWAP=1", 27.584},
    {28, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=128 PINGPONG=0 CLUSTER=2 SPLIT=1 SWAP=1", 27.872},
    {28, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=128 PINGPONG=0 CLUSTER=1 SPLIT=1 SWAP=0", 27.894},
    {28, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=128 PINGPONG=0 CLUSTER=2 SPLIT=1 SWAP=0", 27.907},
    {28, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=128 PINGPONG=0 CLUSTER=1 SPLIT=1 SWAP=1", 28.029},
    {28, "gemm_sm90_wgmma", "HEIGHT=64 WIDTH=256 PINGPONG=0 CLUSTER=2 SPLIT=1 SWAP=0", 28.603},
    {28, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=136 PINGPONG=1 CLUSTER=0 SPLIT=1 SWAP=0", 29.754},
    {28, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=144 PINGPONG=0 CLUSTER=0 SPLIT=1 SWAP=0", 30.587},
    {28, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=152 PINGPONG=0 CLUSTER=2 SPLIT=1 SWAP=0", 32.906},
    {28, "gemm_sm90_wgmma", "HEIGHT=64 WIDTH=256 PINGPONG=0 CLUSTER=0 SPLIT=1 SWAP=1", 39.142},
    {29, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=16 PINGPONG=0 CLUSTER=0 SPLIT=1 SWAP=0", 30.856},
    {29, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=16 PINGPONG=0 CLUSTER=1 SPLIT=1 SWAP=0", 30.861},
    {29, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=16 PINGPONG=1 CLUSTER=0 SPLIT=1 SWAP=0", 30.868},
    {29, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=16 PINGPONG=1 CLUSTER=1 SPLIT=1 SWAP=0", 30.947},
    {29, "gemm_sm90_wgmma", "HEIGHT=64 WIDTH=16 PINGPONG=1 CLUSTER=1 SPLIT=1 SWAP=0", 31.143},
    {29, "gemm_sm90_wgmma", "HEIGHT=64 WIDTH=16 PINGPONG=0 CLUSTER=0 SPLIT=1 SWAP=0", 32.666},
    {29, "gemm_sm90_wgmma", "HEIGHT=64 WIDTH=128 PINGPONG=0 CLUSTER=0 SPLIT=1 SWAP=1", 33.138},
    {29, "gemm_sm90_wgmma", "HEIGHT=64 WIDTH=176 PINGPONG=1 CLUSTER=0 SPLIT=1 SWAP=1", 33.334},
    {29, "gemm_sm90_wgmma", "HEIGHT=64 WIDTH=160 PINGPONG=1 CLUSTER=0 SPLIT=1 SWAP=1", 33.467},
    {29, "gemm_sm90_wgmma", "HEIGHT=64 WIDTH=152 PINGPONG=1 CLUSTER=0 SPLIT=1 SWAP=1", 35.488},
    {29, "gemm_sm90_wgmma", "HEIGHT=64 WIDTH=64 PINGPONG=0 CLUSTER=0 SPLIT=1 SWAP=1", 54.655},
    {30, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=168 PINGPONG=1 CLUSTER=0 SPLIT=1 SWAP=1", 807.96},
    {30, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=160 PINGPONG=1 CLUSTER=0 SPLIT=1 SWAP=1", 810.1},
    {30, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=160 PINGPONG=1 CLUSTER=1 SPLIT=1 SWAP=1", 811.3},
    {30, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=168 PINGPONG=1 CLUSTER=2 SPLIT=1 SWAP=1", 816.16},
    {30, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=192 PINGPONG=1 CLUSTER=0 SPLIT=1 SWAP=1", 816.25},
    {30, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=176 PINGPONG=1 CLUSTER=0 SPLIT=1 SWAP=1", 819.47},
    {30, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=184 PINGPONG=1 CLUSTER=0 SPLIT=1 SWAP=1", 824.92},
    {30, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=160 PINGPONG=1 CLUSTER=1 SPLIT=1 SWAP=0", 846.48},
    {30, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=160 PINGPONG=0 CLUSTER=0 SPLIT=1 SWAP=1", 857.35},
    {30, "gemm_sm90_wgmma", "HEIGHT=192 WIDTH=184 PINGPONG=0 CLUSTER=0 SPLIT=1 SWAP=1", 878.42},
    {30, "gemm_sm90_wgmma", "HEIGHT=192 WIDTH=184 PINGPONG=0 CLUSTER=0 SPLIT=1 SWAP=0", 930.29},
    {31, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=128 PINGPONG=1 CLUSTER=0 SPLIT=1 SWAP=0", 58.04},
    {31, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=128 PINGPONG=1 CLUSTER=2 SPLIT=1 SWAP=0", 58.499},
    {31, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=256 PINGPONG=0 CLUSTER=2 SPLIT=1 SWAP=1", 58.523},
    {31, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=256 PINGPONG=0 CLUSTER=0 SPLIT=1 SWAP=0", 58.552},
    {31, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=128 PINGPONG=0 CLUSTER=0 SPLIT=1 SWAP=0", 58.571},
    {31, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=128 PINGPONG=1 CLUSTER=2 SPLIT=1 SWAP=1", 58.595},
    {31, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=256 PINGPONG=0 CLUSTER=1 SPLIT=1 SWAP=0", 58.941},
    {31, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=128 PINGPONG=0 CLUSTER=2 SPLIT=1 SWAP=1", 59.387},
    {31, "gemm_sm90_wgmma", "HEIGHT=256 WIDTH=136 PINGPONG=0 CLUSTER=0 SPLIT=1 SWAP=1", 62.723},
    {31, "gemm_sm90_wgmma", "HEIGHT=64 WIDTH=256 PINGPONG=1 CLUSTER=1 SPLIT=1 SWAP=0", 66.4},
    {31, "gemm_sm90_wgmma", "HEIGHT=64 WIDTH=256 PINGPONG=1 CLUSTER=1 SPLIT=1 SWAP=1", 68.757},
    {32, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=128 PINGPONG=1 CLUSTER=0 SPLIT=1 SWAP=0", 188.58},
    {32, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=128 PINGPONG=0 CLUSTER=0 SPLIT=1 SWAP=0", 188.73},
    {32, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=128 PINGPONG=1 CLUSTER=1 SPLIT=1 SWAP=0", 189.37},
    {32, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=128 PINGPONG=0 CLUSTER=2 SPLIT=1 SWAP=0", 189.38},
    {32, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=128 PINGPONG=0 CLUSTER=1 SPLIT=1 SWAP=1", 189.44},
    {32, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=128 PINGPONG=1 CLUSTER=2 SPLIT=1 SWAP=0", 189.52},
    {32, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=136 PINGPONG=0 CLUSTER=0 SPLIT=1 SWAP=1", 201.17},
    {32, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=136 PINGPONG=0 CLUSTER=2 SPLIT=1 SWAP=0", 201.81},
    {32, "gemm_sm90_wgmma", "HEIGHT=64 WIDTH=256 PINGPONG=1 CLUSTER=1 SPLIT=1 SWAP=1", 223.63},
    {33, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=168 PINGPONG=1 CLUSTER=0 SPLIT=1 SWAP=0", 1621},
    {33, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=192 PINGPONG=1 CLUSTER=0 SPLIT=1 SWAP=0", 1624.2},
    {33, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=176 PINGPONG=1 CLUSTER=1 SPLIT=1 SWAP=0", 1625.3},
    {33, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=192 PINGPONG=1 CLUSTER=1 SPLIT=1 SWAP=0", 1626.1},
    {33, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=144 PINGPONG=1 CLUSTER=0 SPLIT=1 SWAP=0", 1628.3},
    {33, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=184 PINGPONG=1 CLUSTER=0 SPLIT=1 SWAP=0", 1634.5},
    {33, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=224 PINGPONG=0 CLUSTER=0 SPLIT=1 SWAP=0", 1672.1},
    {33, "gemm_sm90_wgmma", "HEIGHT=192 WIDTH=136 PINGPONG=0 CLUSTER=0 SPLIT=1 SWAP=0", 1690.6},
    {33, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=184 PINGPONG=1 CLUSTER=2 SPLIT=1 SWAP=0", 1713},
    {34, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=128 PINGPONG=1 CLUSTER=1 SPLIT=1 SWAP=0", 710.63},
    {34, "gemm_sm90_wgmma", "HEIGHT=256 WIDTH=128 PINGPONG=0 CLUSTER=2 SPLIT=1 SWAP=0", 712.32},
    {34, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=128 PINGPONG=1 CLUSTER=2 SPLIT=1 SWAP=0", 718.51},
    {34, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=128 PINGPONG=0 CLUSTER=1 SPLIT=1 SWAP=0", 718.53},
    {34, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=128 PINGPONG=1 CLUSTER=0 SPLIT=1 SWAP=0", 719.42},
    {34, "gemm_sm90_wgmma", "HEIGHT=256 WIDTH=128 PINGPONG=0 CLUSTER=0 SPLIT=1 SWAP=0", 725.45},
    {34, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=176 PINGPONG=1 CLUSTER=2 SPLIT=1 SWAP=0", 734.96},
    {34, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=152 PINGPONG=0 CLUSTER=0 SPLIT=1 SWAP=0", 747.68},
    {35, "gemm_sm90_wgmma", "HEIGHT=64 WIDTH=128 PINGPONG=1 CLUSTER=0 SPLIT=1 SWAP=0", 5.882},
    {35, "gemm_sm90_wgmma", "HEIGHT=64 WIDTH=128 PINGPONG=0 CLUSTER=2 SPLIT=1 SWAP=0", 5.897},
    {35, "gemm_sm90_wgmma", "HEIGHT=64 WIDTH=128 PINGPONG=0 CLUSTER=0 SPLIT=1 SWAP=0", 5.902},
    {35, "gemm_sm90_wgmma", "HEIGHT=64 WIDTH=128 PINGPONG=1 CLUSTER=2 SPLIT=1 SWAP=0", 6.018},
    {35, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=64 PINGPONG=0 CLUSTER=0 SPLIT=1 SWAP=0", 6.115},
    {35, "gemm_sm90_wgmma", "HEIGHT=128 WIDTH=64 PINGPONG=0 CLUSTER=2 SPLIT=1 SWAP=0", 6.335},
    {35, "gemm_sm90_wgmma", "HEIGHT=64 WIDTH=176 PINGPONG=1 CLUSTER=2 SPLIT=1 SWAP=0", 7.079},
    {35, "gemm_sm90_wgmma", "HEIGHT=64 WIDTH=160 PINGPONG=1 CLUSTER=1 SPLIT=1 SWAP=0", 7.433},
    {35, "gemm_sm90_wgmma", "HEIGHT=64 WIDTH=152 PINGPONG=1 CLUSTER=2 SPLIT=1 SWAP=0", 8.979},
};
enum { PROBLEMS = sizeof problems / sizeof problems[0], TIMES = sizeof times / sizeof times[0], FIRST = 3 };

/* Block rows of one length, or two that differ by one; columns at random. */
static spk_pattern *pattern_of(const struct measured_problem *p)
{
    const int64_t cols = p->sampled ? p->n : p->k, down = p->m / p->block, across = cols / p->block;
    int64_t *offsets = calloc((size_t)down + 1, sizeof *offsets), *columns = calloc((size_t)p->nnzb, sizeof *columns), count = 0;
    spk_pattern *pattern = NULL;
    spk_rng rng;
    assert_true(offsets != NULL && columns != NULL);
    spk_rng_seed(&rng, 1);
    for (int64_t i = 0; i < down; i++) {
        int64_t wanted = p->nnzb * (i + 1) / down - count;
        for (int64_t j = 0; j < across; j++)
            if ((int64_t)spk_rng_below(&rng, (uint64_t)(across - j)) < wanted) {
                columns[count++] = j;
                wanted--;
            }
        offsets[i + 1] = count;
    }
    spk_bsr_indices indices = {SPK_SIZED(spk_bsr_indices), .rows = p->m,           .cols = cols,
                               .block_rows = p->block,     .block_cols = p->block, .nnzb = p->nnzb,
                               .row_offsets = offsets,     .col_indices = columns, .index_type = SPK_I64};
    assert_int_equal(spk_pattern_make(&spk_mem_system, &indices, &pattern), SPK_OK);
    free(offsets);
    free(columns);
    return pattern;
}

static const spk_kernel *row_of(const char *name)
{
    const spk_kernel *table;
    const int rows = spk_kernels(&table);
    for (int i = 0; i < rows; i++)
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    fail_msg("no row %s", name);
    return NULL;
}

static double predicted(const struct measured *at, const spk_problem *problem, const spk_device *device)
{
    const spk_kernel *kernel = row_of(at->row);
    spk_params params;
    const char *why = NULL;
    if (spk_params_parse(kernel, at->params, &params) != SPK_OK)
        fail_msg("%s: %s", at->params, spk_error_message(0));
    if (!kernel->ops->applicable(problem, device, &params, &why))
        fail_msg("%s %s: %s", at->row, at->params, why);
    return kernel->ops->predict_us(problem, device, &params);
}

/* Returns the best measured time of the FIRST that are predicted best, and the best of all. */
static double best_of_first(int which, const spk_problem *problem, const spk_device *device, double *best)
{
    double forecast[TIMES], chosen = 1e30;
    *best = 1e30;
    for (int i = 0; i < TIMES; i++)
        if (times[i].problem == which) {
            forecast[i] = predicted(&times[i], problem, device);
            *best = times[i].us < *best ? times[i].us : *best;
        }
    for (int i = 0; i < TIMES; i++) {
        int ahead = 0;
        if (times[i].problem != which)
            continue;
        for (int j = 0; j < TIMES; j++)
            ahead += times[j].problem == which && (forecast[j] < forecast[i] || (forecast[j] == forecast[i] && j < i));
        if (getenv("SPARSEK_TEST_TABLE") != NULL)
            printf("%-18s %-50s %7.2f us, predicted %7.2f (%d)\n", times[i].row, times[i].params, times[i].us, forecast[i], ahead + 1);
        if (ahead < FIRST && times[i].us < chosen)
            chosen = times[i].us;
    }
    return chosen;
}

static void the_best_are_ranked_first(void **state)
{
    (void)state;
    spk_cuda cuda = {.compute = 90,
                     .shared_bytes = 232448,
                     .shared_processor_bytes = 233472,
                     .processors = 132,
                     .l2_bytes = 50 << 20,
                     .driver_version = 13000};
    const spk_device device = {.backend = &spk_backend_cuda,
                               .mem = spk_mem_system,
                               .processors = 132,
                               .peak_gflops_f32 = 6e4,
                               .stream_gbs = 4300,
                               .l2_bytes = 50 << 20,
                               .state = &cuda};
    int wrong = 0;
    for (int i = 0; i < PROBLEMS; i++) {
        const struct measured_problem *p = &problems[i];
        spk_pattern *pattern = p->block > 0 ? pattern_of(p) : NULL;
        spk_spmm spmm = {SPK_SIZED(spk_spmm), .n = p->n,          .dtype_a = p->dtype,   .dtype_b = p->dtype,
                         .dtype_d = p->dtype, .compute = SPK_F32, .layout_b = p->layout, .layout_d = p->layout};
        spk_tune_options options = {SPK_SIZED(spk_tune_options), .assume_finite = 1};
        spk_problem problem;
        const spk_sddmm sddmm = {SPK_SIZED(spk_sddmm), .k = p->k,          .dtype_x = p->dtype,   .dtype_y = p->dtype,
                                 .dtype_d = p->dtype,  .compute = SPK_F32, .layout_x = p->layout, .layout_y = p->layout};
        const spk_gemm gemm = {SPK_SIZED(spk_gemm), .m = p->m,           .n = p->n,
                               .k = p->k,           .dtype_a = p->dtype, .dtype_b = p->dtype,
                               .dtype_d = p->dtype, .compute = SPK_F32,  .layout_b = p->layout};
        assert_int_equal(p->block == 0 ? spk_problem_read(&spk_op_gemm, NULL, &gemm, &options, &problem)
                         : p->sampled  ? spk_problem_read(&spk_op_sddmm, pattern, &sddmm, &options, &problem)
                                       : spk_problem_read(&spk_op_spmm, pattern, &spmm, &options, &problem),
                         SPK_OK);
        double best, chosen = best_of_first(i, &problem, &device, &best);
        if (chosen > 1.05 * best && ++wrong)
            printf("%lld x %lld x %lld, blocks of %d, %lld: %.2f us of the first %d, the best is %.2f us\n", (long long)p->m,
                   (long long)p->k, (long long)p->n, p->block, (long long)p->nnzb, chosen, FIRST, best);
        if (pattern != NULL)
            spk_pattern_release(&pattern);
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_best_are_ranked_first)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
