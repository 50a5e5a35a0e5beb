/* What the extension keeps between calls: a context for each device, a pattern for each pair of index tensors, the options. */
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include <sparsek/sparsek.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

/* Newer headers call it so; those of torch 2.10 have the older name. */
#ifndef STABLE_TORCH_ERROR_CODE_CHECK
#define STABLE_TORCH_ERROR_CODE_CHECK(call) TORCH_ERROR_CODE_CHECK(call)
#endif

namespace sparse_autotune {

using torch::stable::Tensor;

[[noreturn]] inline void refuse(const std::string &message)
{
    throw std::runtime_error("sparse_autotune: " + message);
}

/* The library's text, where it names what only C and the command line have. */
std::string in_python(std::string text);

struct Options {
    int effort = SPK_TUNE_MEASURE, tuning = SPK_TUNING_NOW, warm = 0;
    double budget_s = 0;
    std::string only, exclude, choice, store;
    bool has_store = false; /* false: the library's own place */
};

/* A context, and where it runs. */
struct Device {
    spk_context *context = nullptr;
    int32_t type = 0, index = 0;
    ~Device() { spk_context_destroy(&context); }
    bool is_cuda() const { return type != 0; }
    /* PyTorch's current stream; NULL on the CPU. */
    void *stream() const;
    /* Throws where a call failed, with the library's message. */
    void check(spk_status status) const;
};

struct Pattern {
    std::shared_ptr<Device> device;
    spk_pattern *handle = nullptr;
    Tensor row_offsets, col_indices; /* on CUDA held, so that no other tensor gets their addresses while the entry lives */
    std::string contents;            /* the indices: on the CPU, and of inference tensors, which count no versions */
    int64_t mark = 0;                /* differs where contents do; 0: they are not known */
    int64_t bytes = 0;               /* an estimate of what it holds, plans apart */
    bool deferred = false;           /* the host does not know the indices; for the stream alone that was the current one */
    ~Pattern() { spk_pattern_destroy(&handle); }
};

struct Shape {
    int64_t rows, cols, block_rows, block_cols;
};

/* Versions of the two index tensors, as one number; asks the dispatcher where the caller knows none. */
enum : int64_t { VERSION_UNKNOWN = -1, VERSION_NONE = -2 };

std::shared_ptr<Device> device_of(const Tensor &tensor);
/* deferred: on CUDA nothing waits, and kernels read the indices that the device has when the stream comes to them. While the stream is
 * captured, and for indices without versions, the pattern is this call's alone. */
std::shared_ptr<Pattern> pattern_of(const std::shared_ptr<Device> &device, const Tensor &row_offsets, const Tensor &col_indices,
                                    const Shape &shape, int64_t version, bool deferred = false);
/* Pattern::mark of the thread's last product; see_mark(0) before one tells whether there was one. */
int64_t last_mark();
void see_mark(int64_t mark);
std::shared_ptr<const Options> current_options();
void set_options(Options options);
/* What cached patterns may take, by an estimate from their indices; those not used for longest go first, the newest stays whatever it
 * takes. */
void limit_patterns(int64_t bytes);
/* How many are cached, and their estimate. */
std::pair<int64_t, int64_t> cached_patterns();
/* Forgets contexts and patterns; running calls keep theirs. */
void forget();
/* Another number after each forget(), and in a forked child: what was found before is of contexts that are no more. */
uint64_t generation();
/* 1: estimate what is not known, whatever the options say; counted. */
void forbid_tuning(int change);
/* In this thread sizes of known layers are tuned, too (sa.warm_up), also where others forbid tuning. */
void tune_each(int change);
spk_tune_options tune_options(const Options &options);

/* Set by module.cpp: called during tuning; returns true to stop. */
extern bool (*progress_hook)(int64_t done, int64_t total, const char *what);
/* The same for the library's warnings; from any thread. */
extern void (*warning_hook)(const char *message);

} // namespace sparse_autotune
