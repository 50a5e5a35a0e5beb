/* delay: nothing, for so many nanoseconds. It keeps a stream busy while the host puts the next launches on it, so that the time between
 * two events is that of the launches alone. */
extern "C" __global__ void delay(long long ns)
{
    unsigned long long begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while ((long long)(now - begin) < ns);
}
