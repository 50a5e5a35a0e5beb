/* What this processor is: model, instruction sets, caches, memory. */
#include "backend/cpu/probe.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#include <sys/syscall.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include "base/c_locale.h"
#include "base/clock.h"
#include "base/free_memory.h"

#if SPK_TILES_EMULATED /* for tests: kernels/amx_tiles.h */
static bool has_tiles(void)
{
    return true;
}

bool spk_request_tiles(void)
{
    return true;
}
#elif defined(__x86_64__) && defined(SYS_arch_prctl)
enum { XCOMP_SUPPORTED = 0x1021, XCOMP_REQUEST = 0x1023, XCOMP_TILES = 18 }; /* of Linux' asm/prctl.h, and the registers' bit */

static bool has_tiles(void)
{
    unsigned eax, ebx, ecx, edx = 0, wanted = 1u << 22 | 1u << 24; /* AMX-BF16, AMX-TILE */
    uint64_t kept = 0;
    return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (edx & wanted) == wanted &&
           syscall(SYS_arch_prctl, XCOMP_SUPPORTED, &kept) == 0 && (kept >> XCOMP_TILES & 1);
}

bool spk_request_tiles(void)
{
    return syscall(SYS_arch_prctl, XCOMP_REQUEST, XCOMP_TILES) == 0;
}
#else
static bool has_tiles(void)
{
    return false;
}

bool spk_request_tiles(void)
{
    return false;
}
#endif

unsigned spk_probe_isa(void)
{
    unsigned isa = 0;
#if defined(__x86_64__) || defined(__i386__)
    __builtin_cpu_init();
    isa |= __builtin_cpu_supports("sse2") ? SPK_ISA_SSE2 : 0;
    isa |= __builtin_cpu_supports("avx") ? SPK_ISA_AVX : 0;
    isa |= __builtin_cpu_supports("avx2") ? SPK_ISA_AVX2 : 0;
    isa |= __builtin_cpu_supports("fma") ? SPK_ISA_FMA : 0;
    /* not every compiler's __builtin_cpu_supports knows F16C; that the system keeps its registers is AVX's to say */
    unsigned eax, ebx, ecx = 0, edx;
    if ((isa & SPK_ISA_AVX) && __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C))
        isa |= SPK_ISA_F16C;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        isa |= SPK_ISA_AVX512F;
    if ((isa & SPK_ISA_AVX512F) && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) && (eax & 1u << 5))
        isa |= SPK_ISA_AVX512_BF16;
    if ((isa & SPK_ISA_AVX512F) && __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (edx & 1u << 23))
        isa |= SPK_ISA_AVX512_FP16;
#elif defined(__aarch64__)
    enum { HAS_SVE = 1u << 22, HAS_BF16 = 1u << 14 }; /* of Linux' asm/hwcap.h: in the first word, and in the second */
    isa |= SPK_ISA_NEON;                              /* of every such processor */
    isa |= getauxval(AT_HWCAP) & HAS_SVE ? SPK_ISA_SVE : 0;
    isa |= getauxval(AT_HWCAP2) & HAS_BF16 ? SPK_ISA_NEON_BF16 : 0;
#endif
    return isa & SPK_ISA_AVX512F && has_tiles() ? isa | SPK_ISA_AMX_BF16 : isa;
}

int spk_isa_names(unsigned isa, const char *names[16])
{
    static const struct {
        unsigned bit;
        const char *name;
    } all[] = {{SPK_ISA_SSE2, "sse2"},
               {SPK_ISA_AVX, "avx"},
               {SPK_ISA_AVX2, "avx2"},
               {SPK_ISA_FMA, "fma"},
               {SPK_ISA_F16C, "f16c"},
               {SPK_ISA_AVX512F, "avx512f"},
               {SPK_ISA_AVX512_BF16, "avx512_bf16"},
               {SPK_ISA_AVX512_FP16, "avx512_fp16"},
               {SPK_ISA_AMX_BF16, "amx_bf16"},
               {SPK_ISA_NEON, "neon"},
               {SPK_ISA_NEON_BF16, "neon_bf16"},
               {SPK_ISA_SVE, "sve"},
               {SPK_ISA_SM70, "sm_70"},
               {SPK_ISA_SM80, "sm_80"},
               {SPK_ISA_SM90A, "sm_90a"}};
    int count = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (isa & all[i].bit)
            names[count++] = all[i].name;
    return count;
}

/* The value after "key" and a colon in a file of such lines; "" where there is none. */
static void line_value(const char *path, const char *key, char *value, size_t size)
{
    char line[512];
    value[0] = '\0';
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return;
    while (value[0] == '\0' && fgets(line, sizeof line, file) != NULL) {
        const char *colon = strchr(line, ':');
        if (colon == NULL || strncmp(line, key, strlen(key)) != 0)
            continue;
        for (colon++; *colon == ' ' || *colon == '\t';)
            colon++;
        snprintf(value, size, "%.*s", (int)strcspn(colon, "\n"), colon);
    }
    fclose(file);
}

void spk_probe_name(char *name, size_t size)
{
    line_value("/proc/cpuinfo", "model name", name, size);
    if (name[0] == '\0')
        line_value("/proc/cpuinfo", "CPU part", name, size);
    if (name[0] == '\0')
        snprintf(name, size, "unknown processor");
}

void spk_probe_design(char *design, size_t size)
{
    char family[16], model[16];
    line_value("/proc/cpuinfo", "cpu family", family, sizeof family);
    line_value("/proc/cpuinfo", "model", model, sizeof model);
    design[0] = '\0';
    if (family[0] != '\0' && model[0] != '\0')
        snprintf(design, size, "f%.12sm%.12s", family, model);
}

#if defined(__x86_64__) || defined(__aarch64__)
/* Additions that wait for each other: one a cycle. Eight a turn, so that the loop itself hides behind them. */
static double chained_adds_ghz(void)
{
    enum { TURNS = 12500, ADDS = 8 * TURNS }; /* some 30 us */
    uint64_t sum = 0;
    double start = spk_now_us();
    for (int i = 0; i < TURNS; i++) {
#if defined(__x86_64__)
        __asm__ volatile("add %1, %0\n\tadd %1, %0\n\tadd %1, %0\n\tadd %1, %0\n\t"
                         "add %1, %0\n\tadd %1, %0\n\tadd %1, %0\n\tadd %1, %0"
                         : "+r"(sum)
                         : "r"((uint64_t)i)
                         : "cc");
#else
        __asm__ volatile("add %0, %0, %1\n\tadd %0, %0, %1\n\tadd %0, %0, %1\n\tadd %0, %0, %1\n\t"
                         "add %0, %0, %1\n\tadd %0, %0, %1\n\tadd %0, %0, %1\n\tadd %0, %0, %1"
                         : "+r"(sum)
                         : "r"((uint64_t)i));
#endif
    }
    return ADDS / (spk_now_us() - start) * 1e-3;
}
#endif

/* What the file says of a clock may be the nominal one, or that of an idle core: so it is measured, the best of some milliseconds, as a
 * core takes a while to speed up and other work only slows it down. */
static double measured_ghz(void)
{
    double best = 0;
#if defined(__x86_64__) || defined(__aarch64__)
    for (double end = spk_now_us() + 2000; spk_now_us() < end;) {
        double ghz = chained_adds_ghz();
        best = ghz > best ? ghz : best;
    }
#endif
    return best;
}

static pthread_once_t ghz_once = PTHREAD_ONCE_INIT;
static double ghz_found;

static void find_ghz(void)
{
    char text[64];
    line_value("/proc/cpuinfo", "cpu MHz", text, sizeof text);
    double told = spk_real(text, NULL) / 1000, measured = measured_ghz();
    ghz_found = measured > 0.5 && measured < 8 ? measured : told > 0.1 ? told : 2.5;
}

double spk_probe_ghz(void)
{
    pthread_once(&ghz_once, find_ghz);
    return ghz_found;
}

/* A file of one number with an optional K or M behind it; 0 where there is none. */
static int64_t file_bytes(const char *path)
{
    char text[32] = "", *unit = NULL;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    bool read = fgets(text, sizeof text, file) != NULL;
    fclose(file);
    int64_t value = read ? strtoll(text, &unit, 10) : 0;
    return unit == NULL || value <= 0 ? 0 : *unit == 'K' ? value << 10 : *unit == 'M' ? value << 20 : value;
}

int64_t spk_probe_cache_bytes(int level)
{
    /* The kernel's files first: they know which share of the last cache this processor sees; the C library may add up all of a socket. */
    for (int index = 0; index < 8; index++) {
        char path[96], type[16] = "";
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/type", index);
        FILE *file = fopen(path, "re");
        if (file == NULL)
            break;
        bool is_data = fgets(type, sizeof type, file) != NULL && strncmp(type, "Instruction", 11) != 0;
        fclose(file);
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/level", index);
        if (!is_data || file_bytes(path) != level)
            continue;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", index);
        return file_bytes(path);
    }
    static const int names[] = {0, _SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE};
    long bytes = sysconf(names[level]);
    return bytes > 0 ? bytes : 0;
}

int64_t spk_probe_memory_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGE_SIZE);
    return pages > 0 && bytes > 0 ? (int64_t)pages * bytes : 0;
}

int64_t spk_probe_free_bytes(void)
{
    const int64_t bytes = spk_free_memory();
    return bytes > 0 ? bytes : spk_probe_memory_bytes() / 2;
}
