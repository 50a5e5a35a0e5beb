/* What the CUDA backend says when the driver is missing, lacks functions or fails: against a test double of libcuda, so that no GPU is
 * needed. Each case runs in a child, as the driver is opened once in a process. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/scratch.h"
#include "backend/cuda/host/frame/launch.h"
#include "base/clock.h"
#include "cuda_double.h"
#include "nvml_double.h"
#include "op/product.h"

#define CHECK(condition)                                                                                      \
    do {                                                                                                      \
        if (!(condition)) {                                                                                   \
            fprintf(stderr, "%s:%d: %s; message \"%s\"\n", __FILE__, __LINE__, #condition, spk_error_last()); \
            _exit(1);                                                                                         \
        }                                                                                                     \
    } while (0)
#define SAYS(piece) CHECK(strstr(spk_error_last(), piece) != NULL)

static void in_child(const char *library, void (*body)(cuda_double *state))
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        setenv("SPARSEK_CUDA", library, 1);
        void *handle = library[0] == '/' ? dlopen(library, RTLD_NOW) : NULL;
        body(handle != NULL ? dlsym(handle, "cuda_double_state") : NULL);
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static spk_status open_named(const char *name, spk_device **device)
{
    spk_executor executor = {.threads = 1};
    return spk_backend_cuda.open(&spk_mem_system, name, &executor, device);
}

static spk_device *open_device(void)
{
    spk_device *device = NULL;
    CHECK(open_named("cuda:0", &device) == SPK_OK);
    return device;
}

/* Nothing of the caller's thread has changed. */
static void check_thread(const cuda_double *state)
{
    CHECK(state->depth == 0);
    CHECK(state->capture_mode == 0);
}

static void close_device(spk_device *device, const cuda_double *state)
{
    spk_backend_cuda.close(&device);
    CHECK(device == NULL);
    check_thread(state);
    CHECK(state->live_memory == 0 && state->live_streams == 0 && state->live_events == 0 && state->live_graphs == 0 &&
          state->live_contexts == 0);
}

/* ------------------------------------------------------------------------------------------------ opening */

/* The devices that a listing names, and why the last has none. */
static char listed[200], listed_why[400];

static int note_device(void *user, const spk_device_entry *entry)
{
    size_t used = strlen(listed);
    (void)user;
    snprintf(listed + used, sizeof listed - used, "%s%s%s=%s", used > 0 ? ", " : "", entry->device,
             entry->memory_bytes == (int64_t)1 << 30 ? " of 1 GiB" : "", strcmp(entry->device, "cpu") == 0 ? "" : entry->name);
    snprintf(listed_why, sizeof listed_why, "%s", entry->why);
    return 0;
}

static void check_list(const char *devices, const char *why)
{
    listed[0] = '\0';
    CHECK(spk_device_list(note_device, NULL) == SPK_OK);
    CHECK(strstr(listed, devices) != NULL && strstr(listed_why, why) != NULL && (why[0] != '\0') == (listed_why[0] != '\0'));
}

static void body_listed(cuda_double *state)
{
    check_list("cpu=, cuda:0 of 1 GiB=Double GPU, cuda:1 of 1 GiB=Double GPU", "");
    CHECK(state->live_contexts == 0);
    CHECK(spk_device_list(NULL, NULL) == SPK_ERR_ARGUMENT);
}

static void body_off(cuda_double *state)
{
    (void)state;
    check_list("cpu=, cuda=", "SPARSEK_CUDA=none");
    spk_context *context = NULL;
    CHECK(spk_context_create(&(spk_context_options){SPK_SIZED(spk_context_options), .device = "cuda", .store_path = ""}, &context) ==
          SPK_ERR_UNAVAILABLE);
    CHECK(strstr(spk_last_error(NULL), "device = \"cuda\"") != NULL && strstr(spk_last_error(NULL), "SPARSEK_CUDA=none") != NULL);
    CHECK(context == NULL);
}

static void body_relative(cuda_double *state)
{
    (void)state;
    spk_device *device = NULL;
    CHECK(open_named("cuda:0", &device) == SPK_ERR_UNAVAILABLE);
    SAYS("not used, as it is not a full path");
}

static void body_no_file(cuda_double *state)
{
    (void)state;
    spk_device *device = NULL;
    CHECK(open_named("cuda:0", &device) == SPK_ERR_UNAVAILABLE);
    SAYS("/nowhere/libcuda.so");
    CHECK(open_named("cuda:0", &device) == SPK_ERR_UNAVAILABLE); /* the same again */
    SAYS("/nowhere/libcuda.so");
}

static void body_lacking(cuda_double *state)
{
    (void)state;
    spk_device *device = NULL;
    CHECK(open_named("cuda:0", &device) == SPK_ERR_UNAVAILABLE);
    SAYS("lacks cuTensorMapEncodeTiled: sparsek needs");
}

static void body_no_device(cuda_double *state)
{
    spk_device *device = NULL;
    state->init = 100;
    CHECK(open_named("cuda:0", &device) == SPK_ERR_UNAVAILABLE);
    SAYS("cuInit says CUDA_ERROR_NO_DEVICE (100)");
}

static void body_names(cuda_double *state)
{
    spk_device *device = NULL;
    CHECK(open_named("cuda:2", &device) == SPK_ERR_UNAVAILABLE);
    SAYS("shows 2 CUDA devices");
    static const char *const wrong[] = {"cuda:", "cuda:x", "cuda:1x", "cuda:-1"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK(open_named(wrong[i], &device) == SPK_ERR_ARGUMENT);
        SAYS(wrong[i]);
    }
    device = open_device();
    char key[768];
    CHECK(strcmp(spk_cuda_of(device)->arch, "sm_90a") == 0 && device->processors == 132);
    CHECK(device->isa == (SPK_ISA_SM70 | SPK_ISA_SM80 | SPK_ISA_SM90A));
    CHECK(spk_backend_cuda.key_text(device, key, sizeof key) == SPK_OK);
    CHECK(strncmp(key, "cuda:Double_GPU:sm90:132:driver13000:", 37) == 0);
    close_device(device, state);
}

static void body_processors(cuda_double *state)
{
    char key[768];
    setenv("SPARSEK_CUDA_PROCESSORS", "7", 1);
    spk_device *device = open_device();
    CHECK(device->processors == 7);
    CHECK(spk_backend_cuda.key_text(device, key, sizeof key) == SPK_OK && strncmp(key, "cuda:Double_GPU:sm90:7:", 23) == 0);
    close_device(device, state);
    setenv("SPARSEK_CUDA_PROCESSORS", "1000", 1);
    device = open_device();
    CHECK(device->processors == 132);
    close_device(device, state);
    static const char *const wrong[] = {"0", "-3", "many", "7x"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        setenv("SPARSEK_CUDA_PROCESSORS", wrong[i], 1);
        CHECK(open_named("cuda:0", &device) == SPK_ERR_ARGUMENT);
        SAYS("it must be a whole number from 1 on");
    }
}

static void test_off(void **state)
{
    (void)state;
    in_child("none", body_off);
}
static void test_no_file(void **state)
{
    (void)state;
    in_child("/nowhere/libcuda.so", body_no_file);
    in_child("libcuda.so.1", body_relative);
    in_child("./lib/libcuda.so.1", body_relative);
}
static void test_lacking(void **state)
{
    (void)state;
    in_child(DOUBLE_LACKING, body_lacking);
}
static void test_no_device(void **state)
{
    (void)state;
    in_child(DOUBLE, body_no_device);
}
static void test_listed(void **state)
{
    (void)state;
    in_child(DOUBLE, body_listed);
}
static void test_processors(void **state)
{
    (void)state;
    in_child(DOUBLE, body_processors);
}
static void test_names(void **state)
{
    (void)state;
    in_child(DOUBLE, body_names);
}

/* ------------------------------------------------------------------------------------------------ memory and pointers */

static void body_memory(cuda_double *state)
{
    spk_device *device = open_device();
    void *memory = NULL;
    state->allocate = 2;
    CHECK(spk_backend_cuda.allocate(device, 999999, &memory) == SPK_ERR_OUT_OF_MEMORY && memory == NULL);
    SAYS("999999 bytes");
    SAYS("12345678 of");
    state->allocate = 0;
    CHECK(spk_backend_cuda.allocate(device, 0, &memory) == SPK_OK);
    spk_backend_cuda.release(device, memory);
    CHECK(spk_backend_cuda.free_memory(device) == 12345678);
    state->context_push = 201;
    CHECK(spk_backend_cuda.allocate(device, 16, &memory) == SPK_ERR_INTERNAL);
    SAYS("cuCtxPushCurrent");
    state->context_push = 0;
    close_device(device, state);
}

static spk_pattern *make_pattern(void)
{
    static const int offsets[] = {0, 1}, columns[] = {0};
    spk_pattern *pattern = NULL;
    CHECK(spk_pattern_make(&spk_mem_system,
                           &(spk_bsr_indices){SPK_SIZED(spk_bsr_indices), .rows = 4, .cols = 4, .block_rows = 4, .block_cols = 4, .nnzb = 1,
                                              .row_offsets = offsets, .col_indices = columns},
                           &pattern) == SPK_OK);
    return pattern;
}

static void body_pointers(cuda_double *state)
{
    spk_device *device = open_device();
    spk_pattern *pattern = make_pattern();
    spk_problem problem;
    CHECK(spk_problem_read(&spk_op_spmm, pattern, &(spk_spmm){SPK_SIZED(spk_spmm), .n = 4}, NULL, &problem) == SPK_OK);
    float host[16];
    void *good = NULL;
    CHECK(spk_backend_cuda.allocate(device, 4096, &good) == SPK_OK);
    spk_args args = {.a = good, .b = good, .d = good, .alpha = 1};
    CHECK(spk_backend_cuda.check_args(device, &problem, &args) == SPK_OK);
    args.b = host;
    CHECK(spk_backend_cuda.check_args(device, &problem, &args) == SPK_ERR_ARGUMENT);
    SAYS("args.b");
    SAYS("host memory");
    args.b = good;
    args.d = state->foreign = (char *)good + 8192;
    CHECK(spk_backend_cuda.check_args(device, &problem, &args) == SPK_ERR_ARGUMENT);
    SAYS("is memory of cuda:1: this plan runs on cuda:0");
    args.d = good;
    args.workspace = host;
    CHECK(spk_backend_cuda.check_args(device, &problem, &args) == SPK_ERR_ARGUMENT);
    SAYS("args.workspace");
    spk_backend_cuda.release(device, good);
    spk_pattern_release(&pattern);
    close_device(device, state);
}

/* Indices in device memory are checked like others. */
static void body_indices(cuda_double *state)
{
    spk_context *context = NULL;
    CHECK(spk_context_create(&(spk_context_options){SPK_SIZED(spk_context_options), .device = "cuda:0", .store_path = ""}, &context) ==
          SPK_OK);
    spk_device *device = open_device();
    int offsets[] = {0, 1}, columns[] = {7};
    void *memory = NULL;
    CHECK(spk_backend_cuda.allocate(device, 512, &memory) == SPK_OK);
    CHECK(spk_backend_cuda.copy_in(device, memory, offsets, sizeof offsets) == SPK_OK);
    CHECK(spk_backend_cuda.copy_in(device, (char *)memory + 256, columns, sizeof columns) == SPK_OK);
    spk_bsr_indices indices = {SPK_SIZED(spk_bsr_indices),
                               .rows = 4,
                               .cols = 4,
                               .block_rows = 4,
                               .block_cols = 4,
                               .nnzb = 1,
                               .row_offsets = memory,
                               .col_indices = (char *)memory + 256,
                               .index_memory = SPK_DEVICE};
    spk_pattern *pattern = NULL;
    CHECK(spk_pattern_create(context, &indices, &pattern) == SPK_ERR_ARGUMENT && pattern == NULL);
    SAYS("col_indices[0] = 7");
    columns[0] = 0;
    CHECK(spk_backend_cuda.copy_in(device, (char *)memory + 256, columns, sizeof columns) == SPK_OK);
    CHECK(spk_pattern_create(context, &indices, &pattern) == SPK_OK);
    spk_pattern_destroy(&pattern);
    indices.row_offsets = offsets; /* host memory: the driver refuses to copy from there */
    CHECK(spk_pattern_create(context, &indices, &pattern) == SPK_ERR_INTERNAL);
    SAYS("cuMemcpyDtoHAsync");
    spk_context_destroy(&context);
    spk_backend_cuda.release(device, memory);
    close_device(device, state);
}

static void test_memory(void **state)
{
    (void)state;
    in_child(DOUBLE, body_memory);
}
static void test_pointers(void **state)
{
    (void)state;
    in_child(DOUBLE, body_pointers);
}
static void test_indices(void **state)
{
    (void)state;
    in_child(DOUBLE, body_indices);
}

/* ------------------------------------------------------------------------------------------------ runs that fail */

static spk_status run_one(const spk_bound *bound, const spk_args *args, void *stream)
{
    (void)args;
    return spk_cuda_launch(bound->device, NULL, 1, 32, 0, (CUstream)stream, NULL);
}

static const spk_kernel_ops ops = {.run = run_one};
static const spk_kernel kernel = {.name = "nothing", .backend = SPK_BACKEND_CUDA, .ops = &ops};

static spk_status time_some(spk_device *device, int runs)
{
    double us[8];
    spk_args args[2] = {{.workspace = NULL}, {.workspace = NULL}};
    spk_bound bound = {.kernel = &kernel, .device = device};
    return spk_backend_cuda.time_runs(device, &bound, args, 2, runs, us);
}

static void body_timing(cuda_double *state)
{
    spk_device *device = open_device();
    CHECK(time_some(device, 1) == SPK_OK && state->launches == 1 && state->graph_launches == 0);
    CHECK(time_some(device, 5) == SPK_OK && state->launches_captured == 5 && state->graph_launches == 1);
    state->begin_capture = 900; /* what cannot be captured is launched as it is */
    CHECK(time_some(device, 5) == SPK_OK && state->launches == 11 && state->graph_launches == 1);
    state->begin_capture = 0;
    state->launch = 1;
    CHECK(time_some(device, 5) == SPK_ERR_INTERNAL);
    SAYS("cuLaunchKernel");
    CHECK(!state->capturing);
    state->launch = 2;
    CHECK(time_some(device, 1) == SPK_ERR_OUT_OF_MEMORY);
    state->launch = 0;
    CHECK(time_some(device, 3) == SPK_OK);
    close_device(device, state);
}

static void lose(cuda_double *state, int query, const char *first, const char *later)
{
    spk_device *device = open_device();
    void *memory = NULL;
    spk_cuda_of(device)->watchdog_s = 0.05;
    state->query = query;
    CHECK(time_some(device, 1) == SPK_ERR_INTERNAL);
    SAYS(first);
    check_thread(state);
    state->query = 0;
    CHECK(spk_backend_cuda.allocate(device, 16, &memory) == SPK_ERR_UNAVAILABLE);
    SAYS(later);
    int launches = state->launches;
    CHECK(time_some(device, 1) == SPK_ERR_UNAVAILABLE && state->launches == launches);
    spk_backend_cuda.close(&device);
    CHECK(open_named("cuda:0", &device) == SPK_ERR_UNAVAILABLE);
    SAYS("cuda:0 is lost");
    CHECK(open_named("cuda:1", &device) == SPK_OK); /* the other one is not */
    spk_backend_cuda.close(&device);
}

static void body_fault(cuda_double *state)
{
    lose(state, 700, "CUDA_ERROR_ILLEGAL_ADDRESS (700): in words; the device's context", "died");
}
static void body_hang(cuda_double *state)
{
    lose(state, 600, "did not finish within 0.05 s", "did not end");
}

/* A plan may be made while its thread captures a stream: memory and copies of the library's own. */
static void body_captured(cuda_double *state)
{
    spk_device *device = open_device();
    void *memory = NULL;
    int number = 7, back = 0;
    state->capturing = 1;
    CHECK(spk_backend_cuda.allocate(device, sizeof number, &memory) == SPK_OK);
    CHECK(spk_backend_cuda.copy_in(device, memory, &number, sizeof number) == SPK_OK);
    CHECK(spk_backend_cuda.copy_out(device, &back, memory, sizeof number) == SPK_OK && back == 7);
    check_thread(state);
    spk_backend_cuda.release(device, memory);
    state->capturing = 0;
    close_device(device, state);
}

static void body_scratch(cuda_double *state)
{
    spk_device *device = open_device();
    spk_scratch *scratch = NULL;
    spk_loan one, two;
    void *streams[] = {(void *)0x100, (void *)0x200, (void *)0x300};
    CHECK(spk_scratch_make(&device->mem, device, 1000, &scratch) == SPK_OK && state->live_memory == 1);
    state->capturing = 1;
    CHECK(spk_scratch_borrow(scratch, streams[0], &one) == SPK_OK && state->live_memory == 1);
    CHECK(spk_scratch_borrow(scratch, streams[1], &two) == SPK_ERR_UNSUPPORTED);
    SAYS("while the stream is captured");
    state->capturing = 0;
    CHECK(spk_scratch_borrow(scratch, streams[1], &two) == SPK_OK && two.memory != one.memory && state->live_memory == 2);
    spk_scratch_return(scratch, &two);
    spk_scratch_return(scratch, &one);
    state->allocate = 2;
    spk_loan again;
    CHECK(spk_scratch_borrow(scratch, streams[0], &again) == SPK_OK && again.memory == one.memory);
    spk_scratch_return(scratch, &again);
    CHECK(spk_scratch_borrow(scratch, streams[2], &again) == SPK_ERR_OUT_OF_MEMORY);
    spk_scratch_release(&scratch);
    close_device(device, state);
}

/* Memory of the caller's: each piece remembers its stream and size in the 256 bytes before it. */
static int given, misplace;

static void *give(void *user, size_t bytes, void *stream)
{
    CHECK(user == &given);
    if (given == 2)
        return NULL;
    given++;
    char *memory = aligned_alloc(256, 512 + (bytes + 255) / 256 * 256);
    memcpy(memory, &stream, sizeof stream);
    memcpy(memory + 64, &bytes, sizeof bytes);
    return memory + 256 + misplace;
}

static void take(void *user, void *memory, size_t bytes, void *stream)
{
    char *at = (char *)memory - 256 - misplace;
    CHECK(user == &given && memcmp(at, &stream, sizeof stream) == 0 && memcmp(at + 64, &bytes, sizeof bytes) == 0);
    given--;
    free(at);
}

static void body_given(cuda_double *state)
{
    spk_device *device = open_device();
    spk_scratch *scratch = NULL;
    spk_loan one, two, again;
    void *streams[] = {(void *)0x100, (void *)0x200, (void *)0x300};
    device->device_mem = (spk_device_mem){give, take, &given};
    CHECK(spk_scratch_make(&device->mem, device, 1000, &scratch) == SPK_OK && given == 0); /* the stream is not known yet */
    state->capturing = 1;
    CHECK(spk_scratch_borrow(scratch, streams[0], &one) == SPK_ERR_UNSUPPORTED && given == 0);
    SAYS("run the plan on the stream once before");
    state->capturing = 0;
    CHECK(spk_scratch_borrow(scratch, streams[0], &one) == SPK_OK && given == 1);
    CHECK(spk_scratch_borrow(scratch, streams[1], &two) == SPK_OK && two.memory != one.memory && given == 2);
    spk_scratch_return(scratch, &one);
    spk_scratch_return(scratch, &two);
    state->capturing = 1;
    CHECK(spk_scratch_borrow(scratch, streams[0], &again) == SPK_OK && again.memory == one.memory && given == 2);
    spk_scratch_return(scratch, &again);
    state->capturing = 0;
    CHECK(spk_scratch_borrow(scratch, streams[2], &again) == SPK_ERR_OUT_OF_MEMORY);
    SAYS("device_allocate gave no 1000 bytes");
    spk_scratch_release(&scratch);
    CHECK(given == 0);
    misplace = 64;
    CHECK(spk_scratch_make(&device->mem, device, 1000, &scratch) == SPK_OK);
    CHECK(spk_scratch_borrow(scratch, streams[0], &one) == SPK_ERR_ARGUMENT && given == 0);
    SAYS("not aligned to 256 bytes");
    spk_scratch_release(&scratch);
    CHECK(state->live_memory == 0); /* the driver's: none */
    close_device(device, state);
}

static void test_given(void **state)
{
    (void)state;
    in_child(DOUBLE, body_given);
}

/* ------------------------------------------------------------------------------------------------ clocks and power */

static nvml_double *open_nvml(void)
{
    setenv("SPARSEK_NVML", NVML_DOUBLE, 1);
    void *handle = dlopen(NVML_DOUBLE, RTLD_NOW);
    CHECK(handle != NULL);
    return dlsym(handle, "nvml_double_state");
}

static void body_clocks(cuda_double *state)
{
    nvml_double *nvml = open_nvml();
    spk_context *context = NULL;
    spk_device_info info = {SPK_SIZED(spk_device_info)};
    CHECK(spk_context_create(&(spk_context_options){SPK_SIZED(spk_context_options), .device = "cuda:0", .store_path = ""}, &context) ==
          SPK_OK);
    CHECK(spk_context_get_device(context, &info) == SPK_OK && info.clock_mhz == 1755 && info.power_w == 612.5);
    spk_device *device = open_device();
    nvml->reasons = 4; /* the power cap: as always */
    CHECK(time_some(device, 1) == SPK_OK && state->launches == 1 && nvml->asked == 1);
    spk_context_destroy(&context);
    close_device(device, state);
}

static void body_slowed(cuda_double *state)
{
    nvml_double *nvml = open_nvml();
    spk_device *device = open_device();
    nvml->reasons = 0x40;
    nvml->slow_for = 1;
    CHECK(time_some(device, 1) == SPK_OK && state->launches == 2 && nvml->asked == 2);
    nvml->slow_for = 0; /* for good: three times more, and not for ever */
    usleep(25000);
    CHECK(time_some(device, 1) == SPK_OK && state->launches == 6);
    for (int i = 0; i < 30; i++)
        CHECK(time_some(device, 1) == SPK_OK);
    int launches = state->launches;
    CHECK(time_some(device, 1) == SPK_OK && state->launches == launches + 1);
    close_device(device, state);
}

static void body_no_nvml(cuda_double *state)
{
    nvml_double *nvml = open_nvml();
    double clock_mhz = 1, power_w = 1;
    nvml->init = 9;
    spk_device *device = open_device();
    spk_backend_cuda.facts(device, &clock_mhz, &power_w);
    CHECK(clock_mhz == 0 && power_w == 0);
    CHECK(time_some(device, 1) == SPK_OK && state->launches == 1 && nvml->asked == 0);
    close_device(device, state);
}

static void test_clocks(void **state)
{
    (void)state;
    in_child(DOUBLE, body_clocks);
}
static void test_slowed(void **state)
{
    (void)state;
    in_child(DOUBLE, body_slowed);
}
static void test_no_nvml(void **state)
{
    (void)state;
    in_child(DOUBLE, body_no_nvml);
}

static void test_timing(void **state)
{
    (void)state;
    in_child(DOUBLE, body_timing);
}
static void test_fault(void **state)
{
    (void)state;
    in_child(DOUBLE, body_fault);
}
static void test_hang(void **state)
{
    (void)state;
    in_child(DOUBLE, body_hang);
}
static void test_captured(void **state)
{
    (void)state;
    in_child(DOUBLE, body_captured);
}
static void test_scratch(void **state)
{
    (void)state;
    in_child(DOUBLE, body_scratch);
}

/* ------------------------------------------------------------------------------------------------ tensor maps */

static void body_maps(cuda_double *state)
{
    (void)state;
    const spk_cuda_driver *driver = NULL;
    CHECK(spk_cuda_driver_get(&driver) == SPK_OK);
    const spk_tensor_map_desc good = {.dtype = SPK_F16,
                                      .rank = 2,
                                      .swizzle_bytes = 128,
                                      .address = (void *)0x1000,
                                      .sizes = {256, 64},
                                      .strides = {1, 256},
                                      .box = {64, 64}};
    spk_tensor_map_desc desc = good;
    CUtensorMap map;
    CHECK(spk_cuda_tensor_map(driver, &desc, &map) == SPK_OK);
    CHECK(map.words[0] == 6 && map.words[1] == 512 && map.words[2] == 3);
    desc.address = (void *)0x1008;
    CHECK(spk_cuda_tensor_map(driver, &desc, &map) == SPK_ERR_ARGUMENT);
    SAYS("aligned to 16 bytes");
    desc = good;
    desc.strides[1] = 257;
    CHECK(spk_cuda_tensor_map(driver, &desc, &map) == SPK_ERR_ARGUMENT);
    SAYS("strides[1] = 257");
    desc = good;
    desc.box[0] = 128;
    CHECK(spk_cuda_tensor_map(driver, &desc, &map) == SPK_ERR_INTERNAL);
    SAYS("box[0] = 128");
    desc = good;
    desc.box[1] = 257;
    CHECK(spk_cuda_tensor_map(driver, &desc, &map) == SPK_ERR_INTERNAL);
}

static void test_maps(void **state)
{
    (void)state;
    in_child(DOUBLE, body_maps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_off),        cmocka_unit_test(test_no_file),  cmocka_unit_test(test_lacking),
        cmocka_unit_test(test_no_device),  cmocka_unit_test(test_listed),   cmocka_unit_test(test_names),
        cmocka_unit_test(test_processors), cmocka_unit_test(test_memory),   cmocka_unit_test(test_pointers),
        cmocka_unit_test(test_indices),    cmocka_unit_test(test_timing),   cmocka_unit_test(test_fault),
        cmocka_unit_test(test_hang),       cmocka_unit_test(test_captured), cmocka_unit_test(test_scratch),
        cmocka_unit_test(test_given),      cmocka_unit_test(test_maps),     cmocka_unit_test(test_clocks),
        cmocka_unit_test(test_slowed),     cmocka_unit_test(test_no_nvml),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
