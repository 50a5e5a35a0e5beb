/* What tuning found, as JSON for the Python side. */
#pragma once

#include "dense.h"
#include "operands.h"

namespace sparse_autotune {

/* action: REPORT_TUNE, ... */
std::string report_of(const Multiply &call, int64_t action, int64_t rounds);
std::string report_of(const Sample &call, int64_t action, int64_t rounds);
std::string report_of(const Dense &call, int64_t action, int64_t rounds);
std::string inspect_of(const std::shared_ptr<Pattern> &pattern);

} // namespace sparse_autotune
