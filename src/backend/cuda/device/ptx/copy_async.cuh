/* Copies into shared memory that go on in the background (cp.async, sm_80 on). */
#ifndef SPK_DEVICE_COPY_ASYNC_CUH
#define SPK_DEVICE_COPY_ASYNC_CUH

/* W elements, 2, 4, 8 or 16 bytes that are aligned to their size; zeros where they do not exist, and nothing is read then. Two bytes come
 * at once. */
template <int W, class T> inline void copy_async(unsigned to, const T *from, bool exist)
{
    constexpr int BYTES = W * (int)sizeof(T);
    static_assert(BYTES == 2 || BYTES == 4 || BYTES == 8 || BYTES == 16, "no such copy");
    if constexpr (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(exist ? 16 : 0) : "memory");
    else if constexpr (BYTES > 2)
        asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(to), "l"(from), "r"(exist ? BYTES : 0), "n"(BYTES) : "memory");
    else
        asm volatile("st.shared.b16 [%0], %1;" ::"r"(to), "h"(exist ? *(const unsigned short *)from : (unsigned short)0) : "memory");
}

inline void copies_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* All but the last PENDING groups of the thread's own are there. */
template <int PENDING> inline void copies_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

#endif
