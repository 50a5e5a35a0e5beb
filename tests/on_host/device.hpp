/* Runs device programs on the host, so that what they do is tested without a GPU: each thread of a block is a context of its own; they take
 * turns, and meet where they would on a GPU. For programs of ordinary loads and stores, atomics, shuffles, ballots and barriers. */
#ifndef SPK_ON_HOST_DEVICE_HPP
#define SPK_ON_HOST_DEVICE_HPP

#include <csetjmp>
#include <ucontext.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
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

enum { LANES = 32, STACK_BYTES = 64 << 10, MOST_BYTES = 32 };

/* Where so many threads meet, each with a value that all of them then see. */
struct meeting {
    unsigned wanted = 0, there = 0;
    uint64_t round = 0;
    alignas(16) unsigned char given[LANES][MOST_BYTES] = {}, taken[LANES][MOST_BYTES] = {};
};

/* A thread begins by its context, and goes on by jumps, which leave the signal mask alone: that would be two calls of the system a turn. */
struct thread {
    ucontext_t context;
    jmp_buf stopped;
    unsigned number;
    bool begun, done;
};

static jmp_buf turns; /* who gives them */
static std::vector<thread> threads;
static std::vector<char> stacks;
static std::vector<meeting> warps;
static meeting block;
static thread *current;
static void (*program)(void **arguments);
static void **arguments;

template <typename... parameter, size_t... place> void call(void (*entry)(parameter...), void **from, std::index_sequence<place...>)
{
    entry(*static_cast<std::remove_const_t<parameter> *>(from[place])...);
}

inline void meet(meeting &m, unsigned place, const void *value, size_t bytes)
{
    const uint64_t round = m.round;
    memcpy(m.given[place], value, bytes);
    if (++m.there == m.wanted) {
        memcpy(m.taken, m.given, sizeof m.taken);
        m.there = 0;
        m.round++;
    }
    while (m.round == round) {
        if (_setjmp(current->stopped) == 0)
            _longjmp(turns, 1);
    }
}

/* What the warp's lanes give. */
template <typename value> struct of_lanes {
    value at[LANES];
    value operator[](unsigned lane) const { return at[lane]; }
};
template <typename value> of_lanes<value> exchange(value own)
{
    static_assert(sizeof own <= MOST_BYTES, "");
    meeting &warp = warps[threadIdx.x / LANES];
    of_lanes<value> all;
    meet(warp, threadIdx.x % LANES, &own, sizeof own);
    for (int i = 0; i < LANES; i++)
        memcpy(&all.at[i], warp.taken[i], sizeof own);
    return all;
}

inline void begin()
{
    program(arguments);
    current->done = true;
    _longjmp(turns, 1);
}

inline void take_turn(thread &t)
{
    const bool goes_on = t.begun;
    t.begun = true;
    if (_setjmp(turns) != 0)
        return;
    if (goes_on)
        _longjmp(t.stopped, 1);
    setcontext(&t.context);
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
        t.begun = t.done = false;
        makecontext(&t.context, begin, 0);
    }
    for (bool some = true; some;) {
        some = false;
        for (thread &t : threads)
            if (!t.done) {
                some = true;
                current = &t;
                threadIdx = {t.number, 0, 0};
                take_turn(t);
            }
    }
}

/* Of all blocks, one after the other. */
template <typename... parameter> void launch(void (*entry)(parameter...), void **parameters, unsigned grid, unsigned block_threads)
{
    static void (*called)(parameter...);
    called = entry;
    program = [](void **from) { call(called, from, std::index_sequence_for<parameter...>()); };
    arguments = parameters;
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
    on_host::meet(on_host::block, 0, nullptr, 0);
}
inline unsigned __ballot_sync(unsigned, bool there)
{
    const auto all = on_host::exchange(there);
    unsigned lanes = 0;
    for (int i = 0; i < on_host::LANES; i++)
        lanes |= (unsigned)all[(unsigned)i] << i;
    return lanes;
}
template <typename number> number __shfl_sync(unsigned, number own, int lane)
{
    return on_host::exchange(own)[(unsigned)lane % on_host::LANES];
}
template <typename number> number __shfl_xor_sync(unsigned, number own, int bits)
{
    const unsigned lane = threadIdx.x % on_host::LANES;
    return on_host::exchange(own)[lane ^ (unsigned)bits];
}
template <typename number> number __shfl_up_sync(unsigned, number own, int step)
{
    const unsigned lane = threadIdx.x % on_host::LANES;
    return on_host::exchange(own)[lane >= (unsigned)step ? lane - (unsigned)step : lane];
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
