/* What tuning found, as JSON for the Python side. */
#pragma once

#include "dense.h"
#include "operands.h"

namespace sparse_autotune {

enum : int64_t { REPORT_TUNE = 0, REPORT_EXPLAIN = 1, REPORT_LIST = 2, REPORT_RACE = 3, REPORT_TUNE_FRESH = 4 };

std::string report_of(const Multiply &call, int64_t action, int64_t rounds);
std::string report_of(const Sample &call, int64_t action, int64_t rounds);
std::string report_of(const Dense &call, int64_t action, int64_t rounds);
std::string inspect_of(const std::shared_ptr<Pattern> &pattern);

} // namespace sparse_autotune
