/* sparsek: block-sparse times dense matrix multiplication, chosen by measurement.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Conventions
 * - Every function that can fail returns spk_status; outputs are written only on success. spk_last_error() gives the
 *   message with the offending argument, value and limit. Nothing in the library prints or aborts.
 * - Handles (spk_context, spk_pattern, spk_plan, spk_matrix, spk_report, spk_mask) are opaque. create/destroy own; destroy takes
 *   the address of the handle, accepts NULL and clears it. Destroy patterns, plans, matrices, masks and reports before their context.
 * - Option structs begin with struct_size; initialise them with SPK_SIZED(type) so that they may grow. All-zero is the
 *   default of every other field. A struct_size that no version of the struct has had, as it is no multiple of 8 or less than 16,
 *   is refused. `reserved` must be 0.
 * - A string or an array that the library returns lives as long as the object that was asked for it: a context, plan, matrix or report.
 * Where none was asked, as of tables, it is static; in a callback it lives until that returns; spk_last_error's until the thread's next
 * failure.
 * - Sizes and leading dimensions count elements, never bytes, unless the name says bytes. Times carry their unit in the name.
 * - Threads: a context may be used from many threads at once. Patterns and matrices are immutable. A plan may run in
 *   several threads at once if each brings its own workspace. A report belongs to one thread at a time.
 */
#ifndef SPARSEK_H
#define SPARSEK_H

#include "core.h"
#include "operations.h"
#include "tune.h"
#include "matrix.h"
#include "experimental.h"

#endif /* SPARSEK_H */
