/* Register tiles that read B as REAL (tile_micro_body.h): T(tiles). Types of 16 bits share those of float32. */
#include "backend/cpu/kernels/vectors/instance.h"

#ifndef TILE_MICRO_H
#define TILE_MICRO_H
#include "backend/cpu/kernels/vectors/as_real.h"
#include "backend/cpu/kernels/tiles/tile_micro_body.h"
#include "backend/cpu/kernels/vectors/as_stored.h"
#endif
