#include "memo.h"

#include <cstring>
#include <utility>

#include "capture.h"

namespace sparse_autotune {

namespace {

enum : size_t { SETS = 64, WAYS = 4 };
/* so many times an entry is believed; then the pattern is looked up once, as those not used for longest are forgotten */
enum { LOOK_AGAIN = 64 };

struct Entry {
    Sight sight;
    std::weak_ptr<Pattern> pattern;
    spk_spmm problem = {};
    uint32_t threads = 0; /* of PyTorch: on the CPU they make the device */
    uint64_t generation = 0;
    int left = 0;
};

Entry entries[SETS][WAYS];
size_t next_way = 0;
thread_local const Sight *wanted = nullptr;
thread_local uint64_t wanted_generation = 0;

Entry *set_of(const Sight &sight)
{
    size_t hash = static_cast<size_t>(sight.numbers[FLAGS]);
    for (int i : {VALUES, COL_INDICES, BIAS})
        hash = (hash ^ reinterpret_cast<size_t>(sight.facts[i].data)) * 0x9E3779B97F4A7C15;
    return entries[(hash >> 48) % SETS];
}

/* Whether all but the dense operand is what it was. */
bool is_same(const Entry &entry, const Sight &sight)
{
    const Sight &then = entry.sight;
    for (int i : {VALUES, ROW_OFFSETS, COL_INDICES, BIAS})
        if (!(then.facts[i] == sight.facts[i]))
            return false;
    return then.numbers == sight.numbers && then.device == sight.device;
}

/* On the CPU indices may change without a version: they are compared. The facts say that there are as many as there were, of the same
 * type. */
bool has_indices(const Pattern &pattern, const Sight &sight)
{
    if (pattern.device->is_cuda())
        return true;
    const Facts &offsets = sight.facts[ROW_OFFSETS], &columns = sight.facts[COL_INDICES];
    const size_t count = offsets.numel() + columns.numel(), first = pattern.contents.size() / count * offsets.numel();
    return std::memcmp(pattern.contents.data(), offsets.data, first) == 0 &&
           std::memcmp(pattern.contents.data() + first, columns.data, pattern.contents.size() - first) == 0;
}

/* The product with this dense operand, which takes the place of that of the entry. */
bool fit(const Entry &entry, const Sight &sight, Known *known)
{
    const Facts &dense = sight.facts[DENSE], &values = sight.facts[VALUES];
    const bool right = sight.numbers[FLAGS] & FLAG_RIGHT, turned = ((sight.numbers[FLAGS] & FLAG_TRANS) != 0) != right;
    const int64_t inner = sight.numbers[turned ? ROWS : COLS], m = sight.numbers[turned ? COLS : ROWS];
    if (dense.dtype != values.dtype || dense.dim < 2 || (!right && dense.dim != 2) || dense.sizes[right ? dense.dim - 1 : 0] != inner)
        return false;
    spk_spmm &p = known->problem = entry.problem;
    p.n = dense.numel() / inner;
    if (!right)
        p.ldb = p.ldd = p.n;
    known->out_sizes = dense.sizes;
    known->out_sizes[right ? dense.dim - 1 : 0] = m;
    known->out_dim = dense.dim;
    spk_spmm_args &a = known->args;
    a = spk_sized<spk_spmm_args>();
    a.values = values.data;
    a.b = dense.data;
    a.bias = sight.facts[BIAS].data;
    a.alpha = 1;
    a.stream = known->pattern->device->stream();
    return true;
}

} // namespace

int64_t Facts::numel() const
{
    int64_t count = 1;
    for (int64_t i = 0; i < dim; i++)
        count *= sizes[i];
    return count;
}

bool recall(const Sight &sight, Known *known)
{
    Entry *set = set_of(sight);
    for (size_t way = 0; way < WAYS; way++) {
        Entry &entry = set[way];
        if (!is_same(entry, sight))
            continue;
        known->pattern = entry.pattern.lock();
        if (!known->pattern || entry.generation != generation() || --entry.left < 0 || !has_indices(*known->pattern, sight))
            return false;
        if (!known->pattern->device->is_cuda() && entry.threads != torch::stable::get_num_threads())
            return false;
        return !is_capturing(*known->pattern->device) && fit(entry, sight, known);
    }
    return false;
}

Recording::Recording(const Sight *sight)
{
    wanted = sight;
    wanted_generation = generation();
}

Recording::~Recording()
{
    wanted = nullptr;
}

void record(const Multiply &call)
{
    const Sight *sight = std::exchange(wanted, nullptr);
    const Device &device = *call.pattern->device;
    if (sight == nullptr || call.problem.batch > 1 || (device.is_cuda() && sight->numbers[VERSION] < 0) || call.problem.n == 0)
        return;
    Entry made;
    made.sight = *sight;
    made.pattern = call.pattern;
    made.problem = call.problem;
    made.threads = device.is_cuda() ? 0 : torch::stable::get_num_threads();
    made.generation = wanted_generation;
    made.left = LOOK_AGAIN;
    PyGILState_STATE lock = PyGILState_Ensure();
    Entry *set = set_of(*sight), *place = nullptr;
    for (size_t way = 0; way < WAYS; way++)
        if (is_same(set[way], *sight))
            place = &set[way];
    *(place != nullptr ? place : &set[next_way++ % WAYS]) = std::move(made);
    PyGILState_Release(lock);
}

} // namespace sparse_autotune
