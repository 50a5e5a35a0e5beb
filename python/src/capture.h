/* Products on a CUDA stream that is being captured into a graph. */
#pragma once

#include "attend.h"
#include "dense.h"
#include "operands.h"

namespace sparse_autotune {

/* True where the device's current stream is captured. */
bool is_capturing(const Device &device);

/* A graph keeps pointers to what a plan holds on the device, so that a captured product has a plan of its own, kept with its pattern until
 * the process ends, and a workspace from the graph's own memory pool. What a deferred mask needs is of that pool, too: plan and pattern go
 * with the call, and its memory serves only later work of the same graph. An unknown class is refused (or estimated, where the options say
 * so): nothing can be measured now. */
template <typename Call> void run_captured(const Call &call, decltype(Call::args) args);

} // namespace sparse_autotune
