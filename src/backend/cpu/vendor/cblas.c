/* The rows of a library with CBLAS: a single-threaded gemm for each stored block, or one gemm of all threads for the densified matrix,
 * SDDMM's whole product or GEMM. */
#include <stdalign.h>
#include <stddef.h>

#include "backend/cpu/vendor/vendor.h"
#include "base/processors.h"

typedef struct cblas_state {
    const spk_cblas_vendor *vendor;
    spk_blocks blocks;                   /* of a row that works by them */
    spk_dense dense;                     /* of one that makes the matrix dense */
    alignas(max_align_t) char library[]; /* vendor->library_bytes */
} cblas_state;

static spk_status make_state(spk_bound *bound, const spk_cblas_vendor *vendor)
{
    cblas_state *state = NULL;
    SPK_TRY(spk_calloc(&bound->device->mem, 1, sizeof *state + vendor->library_bytes, &state));
    state->vendor = vendor;
    bound->state = state;
    if (vendor->threads != NULL)
        spk_process_threads_watch(vendor->threads);
    SPK_TRY(vendor->open(bound->device, state->library));
    if (vendor->variant != NULL)
        state->vendor = vendor->variant(state->library);
    return SPK_OK;
}

void spk_cblas_unbind(spk_bound *bound)
{
    cblas_state *state = bound->state;
    if (state == NULL)
        return;
    spk_blocks_release(bound, &state->blocks);
    spk_dense_release(bound, &state->dense);
    spk_free(&bound->device->mem, state);
    bound->state = NULL;
}

/* ------------------------------------------------------------------------------------------------ a call for each stored block */

bool spk_cblas_blocks_applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)device, (void)params;
    *why = spk_vendor_refusal(problem);
    return *why == NULL;
}

static void multiply_block(const void *user, const spk_product *product)
{
    const cblas_state *state = user;
    spk_cblas_multiply((const spk_cblas *)state->library, product);
}

static int become_single(const void *user)
{
    const cblas_state *state = user;
    return state->vendor->set_own(state->library, 1);
}

static void restore_threads(const void *user, int before)
{
    const cblas_state *state = user;
    state->vendor->set_own(state->library, before);
}

spk_status spk_cblas_blocks_bind(spk_bound *bound, const spk_cblas_vendor *vendor)
{
    spk_status status = SPK_OK;
    SPK_GOTO(make_state(bound, vendor));
    cblas_state *state = bound->state;
    const bool own = state->vendor->set_own != NULL;
    const spk_blocks_library calls = {
        .multiply = multiply_block, .takes_alpha = true, .begin = own ? become_single : NULL, .end = own ? restore_threads : NULL};
    SPK_GOTO(spk_blocks_make(bound, &calls, state, 0, spk_product_is_result(&bound->problem, false), &state->blocks));
    return SPK_OK;
done:
    spk_cblas_unbind(bound);
    return status;
}

spk_status spk_cblas_blocks_run(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)stream;
    const cblas_state *state = bound->state;
    if (state->vendor->threads != NULL)
        spk_process_threads_enter(state->vendor->threads, state->library);
    spk_blocks_run(bound, &state->blocks, args);
    if (state->vendor->threads != NULL)
        spk_process_threads_leave(state->vendor->threads, state->library);
    return SPK_OK;
}

/* ------------------------------------------------------------------------------------------------ one call for all */

static void multiply_whole(const void *user, const spk_product *product, int threads)
{
    const cblas_state *state = user;
    const spk_cblas_vendor *vendor = state->vendor;
    const int processors = vendor->busy && threads > 1 ? spk_probe_processors() : threads;
    if (threads > processors)
        threads = processors;
    if (vendor->threads != NULL) {
        spk_process_threads_multiply(vendor->threads, state->library, product, threads);
        return;
    }
    if (vendor->alone != NULL)
        spk_process_threads_lock(vendor->alone);
    const int before = vendor->set_own(state->library, threads);
    spk_cblas_multiply((const spk_cblas *)state->library, product);
    vendor->set_own(state->library, before);
    if (vendor->alone != NULL)
        spk_process_threads_unlock(vendor->alone);
}

bool spk_cblas_dense_applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)params;
    return spk_dense_applicable(problem, device, why);
}

spk_status spk_cblas_dense_bind(spk_bound *bound, const spk_cblas_vendor *vendor)
{
    spk_status status = SPK_OK;
    SPK_GOTO(make_state(bound, vendor));
    cblas_state *state = bound->state;
    SPK_GOTO(spk_dense_make(bound, multiply_whole, state, 0, &state->dense));
    return SPK_OK;
done:
    spk_cblas_unbind(bound);
    return status;
}

spk_status spk_cblas_dense_update(spk_bound *bound, const void *values)
{
    cblas_state *state = bound->state;
    return spk_dense_update(bound, &state->dense, values);
}

spk_status spk_cblas_dense_run(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)stream;
    const cblas_state *state = bound->state;
    return spk_dense_run(bound, &state->dense, args);
}

static spk_status bind_whole(spk_bound *bound, const spk_cblas_vendor *vendor, size_t workspace_bytes)
{
    const spk_status status = make_state(bound, vendor);
    if (status != SPK_OK)
        spk_cblas_unbind(bound);
    else
        bound->workspace_bytes = workspace_bytes;
    return status;
}

bool spk_cblas_sampled_applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)params;
    return spk_sampled_applicable(problem, device, why);
}

spk_status spk_cblas_sampled_bind(spk_bound *bound, const spk_cblas_vendor *vendor)
{
    return bind_whole(bound, vendor, spk_sampled_workspace_bytes(&bound->problem));
}

spk_status spk_cblas_sampled_run(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)stream;
    spk_sampled_run(bound, args, multiply_whole, bound->state);
    return SPK_OK;
}

bool spk_cblas_gemm_applicable(const spk_problem *problem, const spk_device *device, const spk_params *params, const char **why)
{
    (void)params;
    return spk_gemm_applicable(problem, device, why);
}

spk_status spk_cblas_gemm_bind(spk_bound *bound, const spk_cblas_vendor *vendor)
{
    return bind_whole(bound, vendor, spk_gemm_acc_bytes(&bound->problem));
}

spk_status spk_cblas_gemm_run(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)stream;
    spk_gemm_run(bound, args, multiply_whole, bound->state);
    return SPK_OK;
}
