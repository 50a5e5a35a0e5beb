/* Memory of the device that is recorded: the host's, at addresses that no other memory of the process has, and that tell the allocation. */
#include "record.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

static const uint64_t base = UINT64_C(1) << 44, slot_bytes = UINT64_C(1) << 32;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t sizes[RECORD_MOST_SLOTS]; /* 0: free */

static size_t pages(size_t bytes)
{
    return (bytes + 4095) / 4096 * 4096;
}

void *record_allocate(size_t bytes)
{
    void *made = NULL;
    bytes = bytes > 0 ? bytes : 1;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < RECORD_MOST_SLOTS && made == NULL && bytes < slot_bytes; i++) {
        if (sizes[i] != 0)
            continue;
        void *wanted = (void *)(uintptr_t)(base + (uint64_t)i * slot_bytes);
        made = mmap(wanted, pages(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        if (made != wanted)
            break;
        sizes[i] = bytes;
    }
    pthread_mutex_unlock(&lock);
    return made == MAP_FAILED ? NULL : made;
}

int record_slot(uint64_t word, uint64_t *offset)
{
    const uint64_t slot = (word - base) / slot_bytes;
    *offset = (word - base) % slot_bytes;
    return word >= base && slot < RECORD_MOST_SLOTS && sizes[slot] != 0 && *offset <= sizes[slot] ? (int)slot : -1;
}

size_t record_bytes(int slot)
{
    return sizes[slot];
}

bool record_release(uint64_t address)
{
    uint64_t offset = 0;
    const int slot = record_slot(address, &offset);
    if (slot < 0 || offset != 0)
        return false;
    pthread_mutex_lock(&lock);
    munmap((void *)(uintptr_t)address, pages(sizes[slot]));
    sizes[slot] = 0;
    pthread_mutex_unlock(&lock);
    return true;
}

/* Pages that are given back are zeros: a dense matrix is cleared in no time. */
void record_fill(void *from, int value, size_t bytes)
{
    char *begin = from, *end = begin + bytes, *first = (char *)pages((uintptr_t)begin), *last = end - (uintptr_t)end % 4096;
    if (value != 0 || first >= last || madvise(first, (size_t)(last - first), MADV_DONTNEED) != 0) {
        memset(from, value, bytes);
        return;
    }
    memset(begin, 0, (size_t)(first - begin));
    memset(last, 0, (size_t)(end - last));
}
