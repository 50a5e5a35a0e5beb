#include "capture.h"

#include <dlfcn.h>

#include <map>
#include <mutex>

namespace sparse_autotune {

namespace {

using IsCapturing = int (*)(void *stream, int *status); /* cuStreamIsCapturing */

IsCapturing find_is_capturing()
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    return driver != nullptr ? reinterpret_cast<IsCapturing>(dlsym(driver, "cuStreamIsCapturing")) : nullptr;
}

struct Pinned {
    std::shared_ptr<Pattern> pattern;
    spk_plan *plan;
};

struct Plans {
    std::mutex lock;
    std::map<std::string, Pinned> all; /* by the bytes of pattern and problem */
};

Plans &plans()
{
    static auto *made = new Plans; /* never freed: a graph may outlive every other thing here */
    return *made;
}

template <typename Problem> spk_plan *pinned_plan(const std::shared_ptr<Pattern> &pattern, const Problem &problem, bool assume_finite)
{
    const Device &device = *pattern->device;
    const spk_pattern *handle = pattern->handle;
    std::string key(reinterpret_cast<const char *>(&handle), sizeof handle);
    key.append(reinterpret_cast<const char *>(&problem), sizeof problem).push_back(assume_finite ? 1 : 0);
    std::lock_guard<std::mutex> hold(plans().lock);
    auto found = plans().all.find(key);
    if (found != plans().all.end())
        return found->second.plan;
    const auto options = current_options();
    spk_tune_options tune = tune_options(*options, assume_finite);
    if (tune.unknown == SPK_UNKNOWN_TUNE && tune.effort != SPK_TUNE_ESTIMATE && tune.choice == nullptr)
        tune.unknown = SPK_UNKNOWN_FAIL;
    spk_plan *plan = nullptr;
    const spk_status status = spk_plan_create(device.context, pattern->handle, &problem, &tune, &plan);
    if (status == SPK_ERR_UNKNOWN_CLASS)
        refuse("nothing can be measured while the stream is captured: run the product once before the capture, or "
               "sa.set_options(unknown=\"estimate\")");
    device.check(status);
    plans().all[key] = Pinned{pattern, plan};
    return plan;
}

/* Lives until the call returns: in a capture its memory is the graph's, and goes to none but later work of the same graph. */
Tensor workspace_of(const Tensor &like, const spk_plan *plan)
{
    return empty_like(like, {static_cast<int64_t>(spk_plan_workspace_bytes(plan))}, aoti_torch_dtype_uint8());
}

} // namespace

bool is_capturing(const Device &device)
{
    if (!device.is_cuda())
        return false;
    static const IsCapturing ask = find_is_capturing();
    int status = 0;
    return ask != nullptr && ask(device.stream(), &status) == 0 && status != 0;
}

void run_captured(const Multiply &call, spk_spmm_args args)
{
    const Device &device = *call.pattern->device;
    const spk_plan *plan = pinned_plan(call.pattern, call.problem, call.assume_finite);
    const Tensor workspace = workspace_of(call.dense.tensor, plan);
    args.workspace_bytes = spk_plan_workspace_bytes(plan);
    args.workspace = args.workspace_bytes > 0 ? workspace.mutable_data_ptr() : nullptr;
    device.check(spk_run(plan, &args, args.stream));
}

void run_captured(const Sample &call, spk_sddmm_args args)
{
    const Device &device = *call.pattern->device;
    const spk_plan *plan = pinned_plan(call.pattern, call.problem, call.assume_finite);
    const Tensor workspace = workspace_of(call.x.tensor, plan);
    args.workspace_bytes = spk_plan_workspace_bytes(plan);
    args.workspace = args.workspace_bytes > 0 ? workspace.mutable_data_ptr() : nullptr;
    device.check(spk_run(plan, &args, args.stream));
}

} // namespace sparse_autotune
