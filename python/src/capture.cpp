#include "capture.h"

#include <dlfcn.h>

#include <map>
#include <memory>
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
    std::shared_ptr<const void> kept;
    spk_plan *plan;
};

struct Plans {
    std::mutex lock;
    std::map<std::string, Pinned> all; /* by what it is of and the bytes of the problem */
};

Plans &plans()
{
    static auto *made = new Plans; /* never freed: a graph may outlive every other thing here */
    return *made;
}

template <typename Call> spk_plan *make_plan(const Call &call)
{
    const Device &device = *call.device();
    const auto options = current_options();
    spk_tune_options tune = tune_options(*options);
    if (tune.tuning == SPK_TUNING_IN_PLACE)
        tune.tuning = SPK_TUNING_NEVER; /* the calls before may have come to no decision yet */
    if ((tune.tuning == SPK_TUNING_NOW || tune.tuning == SPK_TUNING_NOW_EACH) && tune.effort != SPK_TUNE_ESTIMATE && tune.choice == nullptr)
        tune.tuning = SPK_TUNING_AHEAD; /* as a call before the capture was answered */
    spk_plan *plan = nullptr;
    const spk_status status = spk_plan_create(device.context, call.handle(), &call.problem, &tune, &plan);
    if (status == SPK_ERR_UNKNOWN_CLASS)
        refuse("nothing can be measured while the stream is captured: run the product once before the capture, or "
               "sa.set_options(tuning=\"never\")");
    device.check(status);
    return plan;
}

std::string key_of(const void *of)
{
    return std::string(reinterpret_cast<const char *>(&of), sizeof of);
}

template <typename Call> spk_plan *pinned_plan(const Call &call)
{
    const std::shared_ptr<const void> kept = call.kept();
    std::string key = key_of(kept.get());
    key.append(reinterpret_cast<const char *>(&call.problem), sizeof call.problem);
    std::lock_guard<std::mutex> hold(plans().lock);
    auto found = plans().all.find(key);
    if (found != plans().all.end())
        return found->second.plan;
    spk_plan *plan = make_plan(call);
    plans().all[key] = Pinned{kept, plan};
    return plan;
}

/* The graph runs programs that the device holds. */
void pin_device(const std::shared_ptr<Device> &device)
{
    std::lock_guard<std::mutex> hold(plans().lock);
    plans().all[key_of(device.get())] = Pinned{device, nullptr};
}

/* Whether the mask is that of each replay. */
bool is_of_replay(const Attend &call)
{
    return call.mask && call.mask->deferred;
}
template <typename Call> bool is_of_replay(const Call &)
{
    return false;
}

struct DestroyPlan {
    void operator()(spk_plan *plan) const { spk_plan_destroy(&plan); }
};

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

template <typename Call> void run_captured(const Call &call, decltype(Call::args) args)
{
    std::unique_ptr<spk_plan, DestroyPlan> own;
    if (is_of_replay(call)) {
        pin_device(call.device());
        own.reset(make_plan(call));
    }
    const spk_plan *plan = own ? own.get() : pinned_plan(call);
    const Tensor workspace = workspace_of(call.like(), plan);
    args.workspace_bytes = spk_plan_workspace_bytes(plan);
    args.workspace = args.workspace_bytes > 0 ? workspace.mutable_data_ptr() : nullptr;
    call.device()->check(spk_plan_run(plan, &args, args.stream));
}

template void run_captured(const Multiply &call, spk_spmm_args args);
template void run_captured(const Sample &call, spk_sddmm_args args);
template void run_captured(const Dense &call, spk_gemm_args args);
template void run_captured(const Attend &call, spk_attention_args args);
template void run_captured(const AttendBackward &call, spk_attention_backward_args args);

} // namespace sparse_autotune
