#include "capture.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <new>
#include <tuple>
#include <vector>

/* Not there in a PyTorch without CUDA, whose library has no such symbols. */
extern "C" {
__attribute__((weak)) AOTITorchError aoti_torch_get_current_cuda_stream(int32_t device_index, void **stream);
struct CUDAStreamGuardOpaque;
__attribute__((weak)) AOTITorchError aoti_torch_create_cuda_stream_guard(void *stream, int32_t device_index, CUDAStreamGuardOpaque **guard);
__attribute__((weak)) AOTITorchError aoti_torch_delete_cuda_stream_guard(CUDAStreamGuardOpaque *guard);
}

namespace sparse_autotune {

bool (*progress_hook)(int64_t done, int64_t total, const char *what) = nullptr;
void (*warning_hook)(const char *message) = nullptr;

namespace {

constexpr size_t MOST_PATTERNS = 128, MOST_DEFERRED = 16;
constexpr int64_t MOST_BYTES = int64_t(1) << 30, DEFERRED_PART = 8; /* deferred ones take one part in so many of the bytes */

using DeviceKey = std::tuple<int32_t, int32_t, uint32_t>; /* type, index, threads */
/* device, addresses, index type, shape, blocks, versions; whether deferred, and its stream */
using PatternKey = std::tuple<const Device *, const void *, const void *, int32_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                              bool, const void *>;

struct Amount {
    size_t count = 0;
    int64_t bytes = 0;
    void add(const Pattern &pattern) { count++, bytes += pattern.bytes; }
    void take(const Pattern &pattern) { count--, bytes -= pattern.bytes; }
};

struct State {
    std::mutex lock;
    std::map<DeviceKey, std::shared_ptr<Device>> devices;
    std::list<std::pair<PatternKey, std::shared_ptr<Pattern>>> recent; /* the last used first */
    std::map<PatternKey, decltype(recent)::iterator> patterns;
    std::shared_ptr<const Options> options = std::make_shared<Options>();
    int forbidden = 0;
    Amount all, deferred;            /* of the patterns; of those that are deferred */
    int64_t most_bytes = MOST_BYTES; /* of all */
};

/* Never freed: threads and tensors may outlive static destructors. A forked child starts with none of it, as databases, devices and locks
 * must not cross a fork; only the options go along. */
std::atomic<State *> the_state{nullptr};
std::atomic<uint64_t> the_generation{1};

void before_fork()
{
    the_state.load()->lock.lock();
}
void after_fork_parent()
{
    the_state.load()->lock.unlock();
}
void after_fork_child()
{
    State *old = the_state.load(), *made = new State;
    made->options = old->options;
    made->forbidden = old->forbidden;
    made->most_bytes = old->most_bytes;
    the_state.store(made);
    the_generation++; /* what a parent remembers is not its child's */
}

State &state()
{
    static std::once_flag once;
    std::call_once(once, [] {
        the_state.store(new State);
        pthread_atfork(before_fork, after_fork_parent, after_fork_child);
    });
    return *the_state.load();
}

void parallel_for(void *, int64_t tasks, spk_parallel_body body, void *arg)
{
    torch::stable::parallel_for(0, tasks, 1, [=](int64_t begin, int64_t end) {
        for (int64_t task = begin; task < end; task++)
            body(arg, task);
    });
}

/* Makes `stream` the current one of its device, as PyTorch's allocator takes memory for the current stream. */
class StreamGuard {
    CUDAStreamGuardOpaque *guard_ = nullptr;

  public:
    StreamGuard(void *stream, int32_t index)
    {
        if (aoti_torch_create_cuda_stream_guard != nullptr)
            aoti_torch_create_cuda_stream_guard(stream, index, &guard_);
    }
    ~StreamGuard()
    {
        if (guard_ != nullptr)
            aoti_torch_delete_cuda_stream_guard(guard_);
    }
};

/* Device memory from PyTorch's caching allocator: a tensor of bytes for each piece, found again by its address. */
std::mutex pieces_lock;
std::map<void *, AtenTensorHandle> &pieces()
{
    static auto *all = new std::map<void *, AtenTensorHandle>;
    return *all;
}

void *device_allocate(void *user, size_t bytes, void *stream)
{
    const auto *device = static_cast<const Device *>(user);
    StreamGuard guard(stream, device->index);
    const int64_t size = static_cast<int64_t>(bytes > 0 ? bytes : 1), stride = 1;
    AtenTensorHandle tensor = nullptr;
    void *memory = nullptr;
    if (aoti_torch_empty_strided(1, &size, &stride, aoti_torch_dtype_uint8(), device->type, device->index, &tensor) != AOTI_TORCH_SUCCESS)
        return nullptr;
    if (aoti_torch_get_data_ptr(tensor, &memory) != AOTI_TORCH_SUCCESS || memory == nullptr) {
        aoti_torch_delete_tensor_object(tensor);
        return nullptr;
    }
    std::lock_guard<std::mutex> hold(pieces_lock);
    pieces()[memory] = tensor;
    return memory;
}

void device_release(void *, void *memory, size_t, void *)
{
    AtenTensorHandle tensor = nullptr;
    {
        std::lock_guard<std::mutex> hold(pieces_lock);
        auto found = pieces().find(memory);
        if (found == pieces().end())
            return;
        tensor = found->second;
        pieces().erase(found);
    }
    aoti_torch_delete_tensor_object(tensor);
}

void on_progress(void *user, int64_t done, int64_t total, const char *what)
{
    if (progress_hook != nullptr && progress_hook(done, total, what))
        spk_context_interrupt(static_cast<Device *>(user)->context);
}

void on_log(void *, int level, const char *message)
{
    if (level == 1 && warning_hook != nullptr)
        warning_hook(message);
}

std::shared_ptr<Device> make_device(int32_t type, int32_t index, uint32_t threads, const Options &options)
{
    auto made = std::make_shared<Device>();
    made->type = type;
    made->index = index;
    const std::string name = type == 0 ? "cpu" : "cuda:" + std::to_string(index);
    spk_context_options o = {};
    o.struct_size = sizeof o;
    o.device = name.c_str();
    o.store_path = options.has_store ? options.store.c_str() : nullptr;
    o.threads = static_cast<int>(threads);
    o.parallel_for = parallel_for;
    o.log = on_log;
    o.progress = on_progress;
    o.progress_user = made.get();
    if (type != 0) {
        o.device_allocate = device_allocate;
        o.device_release = device_release;
        o.device_user = made.get();
    }
    if (spk_context_create(&o, &made->context) != SPK_OK)
        refuse(std::string("device ") + name + ": " + spk_last_error(nullptr));
    return made;
}

int64_t dispatched(const char *op, const Tensor &tensor)
{
    StableIValue stack[1] = {torch::stable::detail::from(tensor)};
    STABLE_TORCH_ERROR_CODE_CHECK(torch_call_dispatcher(op, "", stack, TORCH_ABI_VERSION));
    return torch::stable::detail::to<int64_t>(stack[0]);
}

bool is_inference(const Tensor &tensor)
{
    StableIValue stack[1] = {torch::stable::detail::from(tensor)};
    STABLE_TORCH_ERROR_CODE_CHECK(torch_call_dispatcher("aten::is_inference", "", stack, TORCH_ABI_VERSION));
    return torch::stable::detail::to<bool>(stack[0]);
}

int64_t version_of(const Tensor &row_offsets, const Tensor &col_indices)
{
    if (is_inference(row_offsets) || is_inference(col_indices))
        return VERSION_NONE;
    return dispatched("aten::_version", row_offsets) << 31 ^ dispatched("aten::_version", col_indices);
}

/* Indices are read on the host: what the stream was given before must be done. */
void await_indices(const Device &device)
{
    if (is_capturing(device))
        refuse("the indices are not known yet and cannot be read while the stream is captured: run the product once before the capture");
    device.check(spk_synchronize(device.context, device.stream()));
}

std::string contents_of(const Device &device, const Tensor &row_offsets, const Tensor &col_indices)
{
    const size_t width = row_offsets.element_size(), first = row_offsets.numel() * width, second = col_indices.numel() * width;
    std::string bytes(first + second, '\0');
    const spk_memory memory = device.is_cuda() ? SPK_DEVICE : SPK_HOST;
    if (device.is_cuda())
        await_indices(device);
    device.check(spk_memory_copy(device.context, &bytes[0], SPK_HOST, row_offsets.const_data_ptr(), memory, first));
    device.check(spk_memory_copy(device.context, &bytes[first], SPK_HOST, col_indices.const_data_ptr(), memory, second));
    return bytes;
}

/* Whether a pattern of known contents is that of these tensors; on the CPU without a copy of them. */
bool has_contents(const Pattern &pattern, const std::string &contents, const Tensor &row_offsets, const Tensor &col_indices)
{
    if (pattern.device->is_cuda())
        return pattern.contents == contents;
    const size_t width = row_offsets.element_size(), first = row_offsets.numel() * width, second = col_indices.numel() * width;
    return pattern.contents.size() == first + second &&
           (first == 0 || std::memcmp(pattern.contents.data(), row_offsets.const_data_ptr(), first) == 0) &&
           (second == 0 || std::memcmp(pattern.contents.data() + first, col_indices.const_data_ptr(), second) == 0);
}

std::shared_ptr<Pattern> make_pattern(const std::shared_ptr<Device> &device, const Tensor &row_offsets, const Tensor &col_indices,
                                      const Shape &shape, bool deferred)
{
    auto made = std::make_shared<Pattern>();
    made->device = device;
    made->deferred = deferred;
    if (device->is_cuda()) {
        made->row_offsets = row_offsets;
        made->col_indices = col_indices;
    }
    spk_deferred_indices waited_for = {};
    spk_bsr_indices indices = {};
    indices.struct_size = sizeof indices;
    indices.rows = shape.rows;
    indices.cols = shape.cols;
    indices.block_rows = shape.block_rows;
    indices.block_cols = shape.block_cols;
    indices.nnzb = col_indices.numel();
    indices.row_offsets = row_offsets.const_data_ptr();
    indices.col_indices = col_indices.const_data_ptr();
    indices.index_type = row_offsets.element_size() == 8 ? SPK_INDEX_I64 : SPK_INDEX_I32;
    if (device->is_cuda())
        indices.index_memory = SPK_DEVICE;
    if (deferred) { /* no longest row is given: the library takes the mean, which is right where all lists are of one length */
        waited_for.struct_size = sizeof waited_for;
        waited_for.stream = device->stream();
        indices.deferred = &waited_for;
    } else if (device->is_cuda())
        await_indices(*device);
    device->check(spk_pattern_create(device->context, &indices, &made->handle));
    /* The library's copy of them, in 64 bits with what kernels make of it, or in 32 bits on the device; the caller's tensors that are held,
     * or the contents. */
    const int64_t entries = row_offsets.numel() + col_indices.numel();
    made->bytes = entries * ((deferred ? 4 : 4 * 8) + static_cast<int64_t>(row_offsets.element_size()));
    return made;
}

std::shared_ptr<Pattern> forget_one(State &s, decltype(State::recent)::iterator entry)
{
    std::shared_ptr<Pattern> pattern = std::move(entry->second);
    s.patterns.erase(entry->first);
    s.recent.erase(entry);
    s.all.take(*pattern);
    if (pattern->deferred)
        s.deferred.take(*pattern);
    return pattern;
}

bool is_within(const Amount &amount, size_t count, int64_t bytes)
{
    return amount.count <= count && (amount.bytes <= bytes || amount.count <= 1);
}

/* Deferred ones are rarely asked for again: fewer of them are kept. */
void keep_within(State &s, std::vector<std::shared_ptr<Pattern>> *dropped)
{
    for (auto entry = s.recent.end(); !is_within(s.deferred, MOST_DEFERRED, s.most_bytes / DEFERRED_PART);)
        if ((--entry)->second->deferred)
            dropped->push_back(forget_one(s, entry++));
    while (!is_within(s.all, MOST_PATTERNS, s.most_bytes))
        dropped->push_back(forget_one(s, std::prev(s.recent.end())));
}

} // namespace

void *Device::stream() const
{
    void *stream = nullptr;
    if (type == 0)
        return nullptr;
    if (aoti_torch_get_current_cuda_stream == nullptr)
        refuse("this PyTorch has no CUDA");
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(index, &stream));
    return stream;
}

std::string in_python(std::string text)
{
    static const std::pair<const char *, const char *> words[] = {
        {"spk_matrix_canonicalize sums duplicates", "sa.BSR.from_scipy sums duplicates"},
        {"spk_matrix_canonicalize sorts them", "sa.BSR.from_scipy sorts them"},
        {"args.offsets", "offs"},
        {"--fresh (options.fresh)", "sa.tune(..., fresh=True)"},
    };
    for (const auto &[theirs, ours] : words)
        if (const size_t at = text.find(theirs); at != std::string::npos)
            text.replace(at, std::strlen(theirs), ours);
    for (size_t at; (at = text.find("args.")) != std::string::npos;) /* of C's structs; operators and fronts have the same words */
        text.erase(at, std::strlen("args."));
    for (size_t at; (at = text.find(" [0x")) != std::string::npos;) { /* addresses of overlapping arrays */
        const size_t end = text.find(']', at);
        text.erase(at, end == std::string::npos ? end : end - at + 1);
    }
    return text;
}

void Device::check(spk_status status) const
{
    if (status == SPK_OK)
        return;
    const std::string message = spk_last_error(context);
    if (status == SPK_ERR_INTERRUPTED)
        spk_context_resume(context);
    refuse(message.empty() ? spk_status_name(status) : in_python(message));
}

std::shared_ptr<Device> device_of(const Tensor &tensor)
{
    int32_t type = 0, index = 0;
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(tensor.get(), &type));
    if (type == aoti_torch_device_type_cpu())
        type = index = 0;
    else
        STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_index(tensor.get(), &index));
    const uint32_t threads = type == 0 ? torch::stable::get_num_threads() : 0;
    State &s = state();
    std::lock_guard<std::mutex> hold(s.lock);
    std::shared_ptr<Device> &device = s.devices[DeviceKey(type, index, threads)];
    if (!device)
        device = make_device(type, index, threads, *s.options);
    return device;
}

namespace {

PatternKey key_of(const Device &device, const Tensor &row_offsets, const Tensor &col_indices, const Shape &shape, int64_t version,
                  bool deferred)
{
    return PatternKey(&device, row_offsets.const_data_ptr(), col_indices.const_data_ptr(), static_cast<int32_t>(row_offsets.element_size()),
                      shape.rows, shape.cols, shape.block_rows, shape.block_cols, col_indices.numel(), version, deferred,
                      deferred ? device.stream() : nullptr);
}

std::shared_ptr<Pattern> find_kept(const PatternKey &key)
{
    State &s = state();
    std::lock_guard<std::mutex> hold(s.lock);
    auto found = s.patterns.find(key);
    if (found == s.patterns.end())
        return nullptr;
    s.recent.splice(s.recent.begin(), s.recent, found->second);
    return found->second->second;
}

void keep(const PatternKey &key, const std::shared_ptr<Pattern> &made)
{
    State &s = state();
    std::vector<std::shared_ptr<Pattern>> dropped; /* destroyed after the lock is given back */
    std::lock_guard<std::mutex> hold(s.lock);
    auto found = s.patterns.find(key);
    if (found != s.patterns.end())
        dropped.push_back(forget_one(s, found->second));
    s.recent.emplace_front(key, made);
    s.patterns[key] = s.recent.begin();
    s.all.add(*made);
    if (made->deferred)
        s.deferred.add(*made);
    keep_within(s, &dropped);
}

/* Another stream gets a pattern of its own: it need not wait for what the first one still has to do. */
std::shared_ptr<Pattern> find_deferred(const std::shared_ptr<Device> &device, const Tensor &row_offsets, const Tensor &col_indices,
                                       const Shape &shape, int64_t version)
{
    if (version == VERSION_UNKNOWN)
        version = version_of(row_offsets, col_indices);
    if (version == VERSION_NONE || is_capturing(*device)) /* nobody counts changes; at a replay there may be others */
        return make_pattern(device, row_offsets, col_indices, shape, true);
    const PatternKey key = key_of(*device, row_offsets, col_indices, shape, version, true);
    std::shared_ptr<Pattern> pattern = find_kept(key);
    if (!pattern) {
        pattern = make_pattern(device, row_offsets, col_indices, shape, true);
        keep(key, pattern);
    }
    return pattern;
}

std::shared_ptr<Pattern> find_pattern(const std::shared_ptr<Device> &device, const Tensor &row_offsets, const Tensor &col_indices,
                                      const Shape &shape, int64_t version)
{
    /* Versions miss what is written by way of NumPy, DLPack or a collective: on the CPU the indices themselves are compared, which costs
     * next to nothing. */
    if (!device->is_cuda())
        version = VERSION_NONE;
    else if (version == VERSION_UNKNOWN)
        version = version_of(row_offsets, col_indices);
    std::string contents = version == VERSION_NONE && device->is_cuda() ? contents_of(*device, row_offsets, col_indices) : std::string();
    const PatternKey key = key_of(*device, row_offsets, col_indices, shape, version, false);
    const std::shared_ptr<Pattern> known = find_kept(key);
    if (known && has_contents(*known, contents, row_offsets, col_indices)) /* without the lock: there may be many indices */
        return known;
    if (!device->is_cuda())
        contents = contents_of(*device, row_offsets, col_indices);
    auto made = make_pattern(device, row_offsets, col_indices, shape, false);
    made->mark = contents.empty() ? 0 : static_cast<int64_t>(std::hash<std::string>()(contents) >> 1 | 1);
    made->contents = std::move(contents);
    keep(key, made);
    return made;
}

thread_local int64_t the_mark = 0;

} // namespace

std::shared_ptr<Pattern> pattern_of(const std::shared_ptr<Device> &device, const Tensor &row_offsets, const Tensor &col_indices,
                                    const Shape &shape, int64_t version, bool deferred)
{
    const auto find = deferred && device->is_cuda() ? find_deferred : find_pattern;
    const std::shared_ptr<Pattern> pattern = find(device, row_offsets, col_indices, shape, version);
    the_mark = pattern->mark;
    return pattern;
}

int64_t last_mark()
{
    return the_mark;
}

void see_mark(int64_t mark)
{
    the_mark = mark;
}

void limit_patterns(int64_t bytes)
{
    State &s = state();
    std::vector<std::shared_ptr<Pattern>> dropped;
    std::lock_guard<std::mutex> hold(s.lock);
    s.most_bytes = bytes;
    keep_within(s, &dropped);
}

std::pair<int64_t, int64_t> cached_patterns()
{
    State &s = state();
    std::lock_guard<std::mutex> hold(s.lock);
    return {static_cast<int64_t>(s.all.count), s.all.bytes};
}

static thread_local int tuning_each = 0; /* contexts of warm_up in this thread */

/* torch.use_deterministic_algorithms. The stable ABI does not tell of it, so that the two functions are looked for by name; where they are
 * not found nobody asks for equal bits. */
static bool wants_equal_bits()
{
    using Global = void *(*)();
    using Asks = bool (*)(const void *);
    static const auto global = reinterpret_cast<Global>(dlsym(RTLD_DEFAULT, "_ZN2at13globalContextEv"));
    static const auto asks = reinterpret_cast<Asks>(dlsym(RTLD_DEFAULT, "_ZNK2at7Context23deterministicAlgorithmsEv"));
    return global != nullptr && asks != nullptr && asks(global());
}

/* When an unknown class is tuned, as things are now. In place the bits of a result may change from call to call. */
static int tuning_now(int tuning, bool forbidden)
{
    const bool tunes = tuning == SPK_TUNING_NOW || tuning == SPK_TUNING_NOW_EACH || tuning == SPK_TUNING_IN_PLACE;
    if (tuning_each > 0)
        return SPK_TUNING_NOW_EACH;
    if (tunes && forbidden)
        return SPK_TUNING_NEVER;
    return tuning == SPK_TUNING_IN_PLACE && wants_equal_bits() ? SPK_TUNING_NOW : tuning;
}

std::shared_ptr<const Options> current_options()
{
    State &s = state();
    std::lock_guard<std::mutex> hold(s.lock);
    const int tuning = tuning_now(s.options->tuning, s.forbidden != 0);
    if (tuning == s.options->tuning)
        return s.options;
    auto changed = std::make_shared<Options>(*s.options);
    changed->tuning = tuning;
    return changed;
}

void set_options(Options options)
{
    State &s = state();
    bool moved = false;
    {
        std::lock_guard<std::mutex> hold(s.lock);
        moved = options.has_store != s.options->has_store || options.store != s.options->store;
        s.options = std::make_shared<Options>(std::move(options));
    }
    if (moved)
        forget();
}

uint64_t generation()
{
    return the_generation.load();
}

void forget()
{
    State &s = state();
    decltype(s.recent) recent;
    decltype(s.devices) devices;
    std::lock_guard<std::mutex> hold(s.lock);
    the_generation++;
    s.patterns.clear();
    s.all = s.deferred = Amount();
    recent.swap(s.recent);
    devices.swap(s.devices);
}

void tune_each(int change)
{
    tuning_each += change;
}

void forbid_tuning(int change)
{
    State &s = state();
    std::lock_guard<std::mutex> hold(s.lock);
    s.forbidden += change;
}

spk_tune_options tune_options(const Options &options)
{
    spk_tune_options tune = {};
    tune.struct_size = sizeof tune;
    tune.effort = static_cast<spk_effort>(options.effort);
    tune.tuning = static_cast<spk_tuning>(options.tuning);
    tune.cache = options.warm ? SPK_WARM : SPK_COLD;
    tune.budget_s = options.budget_s;
    tune.only = options.only.empty() ? nullptr : options.only.c_str();
    tune.exclude = options.exclude.empty() ? nullptr : options.exclude.c_str();
    tune.choice = options.choice.empty() ? nullptr : options.choice.c_str();
    return tune;
}

} // namespace sparse_autotune
