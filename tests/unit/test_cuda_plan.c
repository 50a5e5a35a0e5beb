/* Plans on the test double of libcuda, with programs that NVRTC really compiles: pointers that a kernel does not take go to the plan's second candidate.
 * Where SPARSEK_NVRTC is not set, it says so and passes. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/cuda/driver.h"
#include "cuda_double.h"

static void good(spk_status status, const char *call)
{
    if (status != SPK_OK)
        fail_msg("%s: %s", call, spk_error_last());
}
#define GOOD(call) good(call, #call)

static void misaligned_goes_to_the_second(void **unused)
{
    (void)unused;
    const char *nvrtc = getenv("SPARSEK_NVRTC");
    if (nvrtc == NULL || strcmp(nvrtc, "none") == 0) {
        printf("skipped: SPARSEK_NVRTC names no NVRTC (scripts/test cuda installs one)\n");
        return;
    }
    setenv("SPARSEK_CUDA", DOUBLE, 1);
    cuda_double *state = dlsym(dlopen(DOUBLE, RTLD_NOW), "cuda_double_state");
    spk_context *context = NULL;
    spk_pattern *pattern = NULL;
    spk_plan *plan = NULL;
    const int offsets[] = {0, 1, 2}, columns[] = {0, 1};
    spk_bsr_indices indices = {SPK_SIZED(spk_bsr_indices), .rows = 128, .cols = 128, .block_rows = 64, .block_cols = 64, .nnzb = 2, .row_offsets = offsets,
                               .col_indices = columns};
    spk_spmm spmm = {SPK_SIZED(spk_spmm), .n = 64, .dtype_a = SPK_F16, .dtype_b = SPK_F16, .dtype_d = SPK_F16, .compute = SPK_F32};
    spk_tune_options options = {SPK_SIZED(spk_tune_options), .choice = "spmm_sm90_wgmma BN=64 CONSUMERS=1 CTAS=1 ACROSS=0 SPLIT=1"};
    char *memory[3];
    GOOD(spk_context_create(&(spk_context_options){SPK_SIZED(spk_context_options), .device = "cuda:0", .store_path = ""}, &context));
    GOOD(spk_pattern_create(context, &indices, &pattern));
    for (int i = 0; i < 3; i++)
        GOOD(spk_memory_allocate(context, 65536, (void **)&memory[i]));
    GOOD(spk_plan_spmm(context, pattern, &spmm, &options, &plan));
    spk_spmm_args args = {SPK_SIZED(spk_spmm_args), .values = memory[0], .b = memory[1], .d = memory[2], .alpha = 1};
    GOOD(spk_run_spmm(plan, &args, NULL));
    assert_string_equal(state->launched, "spmm_sm90_wgmma");
    args.b = memory[1] + 8;
    GOOD(spk_run_spmm(plan, &args, NULL));
    assert_string_not_equal(state->launched, "spmm_sm90_wgmma");
    args.b = memory[1];
    args.values = memory[0] + 2;
    GOOD(spk_run_spmm(plan, &args, NULL));
    assert_string_not_equal(state->launched, "spmm_sm90_wgmma");
    args.values = memory[0];
    args.d = memory[2] + 2; /* the kernel's own affair */
    GOOD(spk_run_spmm(plan, &args, NULL));
    assert_string_equal(state->launched, "spmm_sm90_wgmma");
    spk_plan_destroy(&plan);
    for (int i = 0; i < 3; i++)
        spk_memory_release(context, (void **)&memory[i]);
    spk_pattern_destroy(&pattern);
    spk_context_destroy(&context);
    assert_int_equal(state->live_memory, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(misaligned_goes_to_the_second)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
