/* Runs device programs on the host, so that what they do is tested without a GPU: each thread of a block is a context of its own; they take
 * turns, and meet where they would on a GPU. For programs of ordinary loads and stores, atomics, shuffles, ballots and barriers. */
#ifndef DEVICE_ON_HOST_HPP
#define DEVICE_ON_HOST_HPP

#include <ucontext.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

struct uint3 {
    unsigned x, y, z;
};
struct int2 {
    int x, y;
};
struct int4 {
    int x, y, z, w;
};
inline int2 make_int2(int x, int y)
{
    return {x, y};
}
inline int4 make_int4(int x, int y, int z, int w)
{
    return {x, y, z, w};
}
using std::max;
using std::min;

#define __global__
#define __device__
#define __forceinline__ inline
#define __grid_constant__
#define __launch_bounds__(...)
#define __shared__ static

static uint3 threadIdx, blockIdx, blockDim, gridDim;

namespace on_host {

enum { LANES = 32, STACK_BYTES = 64 << 10 };

/* Where so many threads meet, each with a value that all of them then see. */
struct meeting {
    unsigned wanted = 0, there = 0;
    uint64_t round = 0, given[LANES] = {}, taken[LANES] = {};
};

struct thread {
    ucontext_t context;
    unsigned number;
    bool done;
};

static ucontext_t turns; /* who gives them */
static std::vector<thread> threads;
static std::vector<char> stacks;
static std::vector<meeting> warps;
static meeting block;
static thread *current;
static void (*program)(const void *argument);
static const void *argument;

inline void meet(meeting &m, unsigned place, uint64_t value)
{
    const uint64_t round = m.round;
    m.given[place] = value;
    if (++m.there == m.wanted) {
        memcpy(m.taken, m.given, sizeof m.taken);
        m.there = 0;
        m.round++;
    }
    while (m.round == round) {
        thread *own = current;
        swapcontext(&own->context, &turns);
    }
}

/* What the warp's lanes give. */
inline const uint64_t *exchange(uint64_t value)
{
    meeting &warp = warps[threadIdx.x / LANES];
    meet(warp, threadIdx.x % LANES, value);
    return warp.taken;
}

inline void begin()
{
    program(argument);
    current->done = true;
    swapcontext(&current->context, &turns);
}

/* A block of threads, whole warps of them. */
inline void run_block()
{
    threads.resize(blockDim.x);
    stacks.resize((size_t)blockDim.x * STACK_BYTES);
    warps.assign(blockDim.x / LANES, meeting());
    for (meeting &warp : warps)
        warp.wanted = LANES;
    block = meeting();
    block.wanted = blockDim.x;
    for (unsigned i = 0; i < blockDim.x; i++) {
        thread &t = threads[i];
        getcontext(&t.context);
        t.context.uc_stack.ss_sp = stacks.data() + (size_t)i * STACK_BYTES;
        t.context.uc_stack.ss_size = STACK_BYTES;
        t.context.uc_link = nullptr;
        t.number = i;
        t.done = false;
        makecontext(&t.context, begin, 0);
    }
    for (bool some = true; some;) {
        some = false;
        for (thread &t : threads)
            if (!t.done) {
                some = true;
                current = &t;
                threadIdx = {t.number, 0, 0};
                swapcontext(&turns, &t.context);
            }
    }
}

template <typename task> void launch(void (*entry)(const task), const void *from, unsigned grid, unsigned block_threads)
{
    static void (*called)(const task);
    called = entry;
    program = [](const void *at) { called(*static_cast<const task *>(at)); };
    argument = from;
    gridDim = {grid, 1, 1};
    blockDim = {block_threads, 1, 1};
    for (unsigned i = 0; i < grid; i++) {
        blockIdx = {i, 0, 0};
        run_block();
    }
}

} // namespace on_host

/* ---- what the programs call; all lanes take part */

inline void __syncthreads()
{
    on_host::meet(on_host::block, 0, 0);
}
inline unsigned __ballot_sync(unsigned, bool there)
{
    const uint64_t *all = on_host::exchange(there);
    unsigned lanes = 0;
    for (int i = 0; i < on_host::LANES; i++)
        lanes |= (unsigned)all[i] << i;
    return lanes;
}
template <typename number> number __shfl_sync(unsigned, number own, int lane)
{
    return (number)on_host::exchange((uint64_t)own)[lane % on_host::LANES];
}
template <typename number> number __shfl_xor_sync(unsigned, number own, int bits)
{
    const unsigned lane = threadIdx.x % on_host::LANES;
    return (number)on_host::exchange((uint64_t)own)[lane ^ (unsigned)bits];
}
template <typename number> number __shfl_up_sync(unsigned, number own, int step)
{
    const unsigned lane = threadIdx.x % on_host::LANES;
    return (number)on_host::exchange((uint64_t)own)[lane >= (unsigned)step ? lane - (unsigned)step : lane];
}
inline int __popc(unsigned bits)
{
    return __builtin_popcount(bits);
}
inline int __ffs(int bits)
{
    return __builtin_ffs(bits);
}
inline int __clz(int bits)
{
    return bits != 0 ? __builtin_clz((unsigned)bits) : 32;
}
template <typename number> number atomicAdd(number *at, number more)
{
    const number before = *at;
    *at += more;
    return before;
}
inline unsigned atomicOr(unsigned *at, unsigned bits)
{
    const unsigned before = *at;
    *at |= bits;
    return before;
}
inline unsigned long long atomicMin(unsigned long long *at, unsigned long long other)
{
    const unsigned long long before = *at;
    *at = std::min(before, other);
    return before;
}

#endif
