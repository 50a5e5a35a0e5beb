/* In processes that the system restricts (no memory that is writable and executable, no threads, little address space), everything ends
 * with a result or a message: no library ends or hangs the process. Each case is a child, as such limits stay. */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <sparsek/sparsek.h>

#include "base/free_memory.h"
#include "base/threads.h"

enum { TROUBLE = 3, PATIENCE_S = 120 };

/* ------------------------------------------------------------------------------------------------ what each child does */

/* 4 x 4 blocks of 16, a checkerboard, times 64 columns: every kernel of f32 that can. */
static spk_status race(spk_context *context, spk_report **report)
{
    static const int32_t offsets[] = {0, 2, 4, 6, 8}, columns[] = {0, 2, 1, 3, 0, 2, 1, 3};
    const spk_bsr_indices indices = {
        SPK_SIZED(spk_bsr_indices), .rows = 64, .cols = 64, .block_rows = 16, .block_cols = 16, .nnzb = 8, .row_offsets = offsets,
        .col_indices = columns};
    const spk_spmm problem = {SPK_SIZED(spk_spmm), .n = 256, .assume_finite = 1};
    const spk_tune_options options = {SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_NOW, .budget_s = 0.2};
    const spk_race_options rounds = {SPK_SIZED(spk_race_options), .rounds = 2};
    spk_pattern *pattern = NULL;
    spk_status status = spk_pattern_create(context, &indices, &pattern);
    if (status == SPK_OK)
        status = spk_race_kernels(context, pattern, &problem, &options, &rounds, report);
    spk_pattern_destroy(&pattern);
    return status;
}

/* The status of a row, and why. */
static spk_candidate_status status_of(spk_report *report, const char *row, char *why, size_t size)
{
    spk_report_info info = {SPK_SIZED(spk_report_info)};
    spk_candidate_info c = {SPK_SIZED(spk_candidate_info)};
    why[0] = '\0';
    spk_report_get_info(report, &info);
    for (int i = 0; i < info.candidate_count; i++)
        if (spk_report_get_candidate(report, i, &c) == SPK_OK && strcmp(c.name, row) == 0) {
            snprintf(why, size, "%s", c.why != NULL ? c.why : "");
            return c.status;
        }
    return SPK_CANDIDATE_NOT_APPLICABLE;
}

/* Races all rows; own_threads: how many the context is to have. Returns an exit code. */
static int race_here(int own_threads, const char *row, const char *reason)
{
    spk_context *context = NULL;
    spk_report *report = NULL;
    spk_device_info info = {SPK_SIZED(spk_device_info)};
    char why[512] = "";
    int code = 0;
    if (spk_context_create(&(spk_context_options){SPK_SIZED(spk_context_options), .store_path = "", .threads = 2}, &context) != SPK_OK)
        return TROUBLE;
    spk_context_get_device(context, &info);
    for (int i = 0; i < spk_library_count(context); i++)
        spk_context_get_library(context, i, &(spk_library_info){SPK_SIZED(spk_library_info)});
    if (race(context, &report) != SPK_OK)
        code = TROUBLE + 1;
    else if (own_threads > 0 && info.threads != own_threads)
        code = TROUBLE + 2;
    else if (row != NULL &&
             (status_of(report, row, why, sizeof why) != SPK_CANDIDATE_NOT_APPLICABLE || (why[0] != '\0' && strstr(why, reason) == NULL)))
        code = TROUBLE + 3;
    if (code != 0)
        fprintf(stderr, "%s; %d threads; %s: %s\n", spk_last_error(context), info.threads, row != NULL ? row : "", why);
    spk_report_destroy(&report);
    spk_context_destroy(&context);
    return code;
}

static void in_child(int (*body)(void *arg), void *arg)
{
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        alarm(PATIENCE_S);
        _exit(body(arg));
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status))
        fail_msg("it ended by signal %d", WTERMSIG(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* ------------------------------------------------------------------------------------------------ no code at run time */

/* As systemd's MemoryDenyWriteExecute: mmap of what is writable and executable, and mprotect to executable, are refused. */
static bool deny_write_execute(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, PROT_WRITE | PROT_EXEC),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PROT_WRITE | PROT_EXEC, 4, 3),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 2),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1 /* EPERM */),
    };
    const struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static int race_without_code(void *arg)
{
    (void)arg;
    return deny_write_execute() ? race_here(0, "libxsmm_blocks", "writable and executable") : TROUBLE;
}

static int race_forbidden_later(void *arg)
{
    (void)arg;
    spk_context *context = NULL;
    spk_report *report = NULL;
    char why[512];
    if (spk_context_create(&(spk_context_options){SPK_SIZED(spk_context_options), .store_path = ""}, &context) != SPK_OK ||
        !deny_write_execute())
        return TROUBLE;
    if (race(context, &report) != SPK_OK)
        return TROUBLE + 1;
    const spk_candidate_status status = status_of(report, "libxsmm_blocks", why, sizeof why);
    spk_report_destroy(&report);
    spk_context_destroy(&context);
    const bool passed_over = status == SPK_CANDIDATE_PRUNED && strstr(why, "budget") != NULL; /* on a busy machine */
    return status == SPK_CANDIDATE_FAILED || status == SPK_CANDIDATE_NOT_APPLICABLE || passed_over ? 0 : TROUBLE + 2;
}

static void code_that_may_not_run_is_not_made(void **state)
{
    (void)state;
    in_child(race_without_code, NULL);
    in_child(race_forbidden_later, NULL);
}

/* ------------------------------------------------------------------------------------------------ no threads */

/* Leaves this process room for `more` threads. Only another user's are counted for root. */
static bool limit_threads(int more)
{
    if (geteuid() == 0 && (setresgid(65533, 65533, 65533) != 0 || setresuid(65533, 65533, 65533) != 0))
        return false;
    struct rlimit limit;
    getrlimit(RLIMIT_NPROC, &limit);
    /* others of this user count: the least that lets `more` start */
    for (rlim_t least = 0; least <= limit.rlim_max && least < 100000; least++) {
        if (setrlimit(RLIMIT_NPROC, &(struct rlimit){least, limit.rlim_max}) != 0)
            return false;
        if (spk_threads_startable(more))
            break;
    }
    return more == 0 ? !spk_threads_startable(1) : true;
}

/* OpenBLAS says why it takes no part, unless the caller keeps it out. */
static int race_with_threads(void *more)
{
    const int threads = *(const int *)more;
    const char *openblas = getenv("SPARSEK_OPENBLAS");
    const bool has_openblas = openblas == NULL || strcmp(openblas, "none") != 0;
    if (!limit_threads(threads))
        return TROUBLE;
    return race_here(threads == 0 ? 1 : 0, threads == 0 && has_openblas ? "openblas_blocks" : NULL, "start no more");
}

static void without_threads_work_is_serial(void **state)
{
    (void)state;
    for (int more = 0; more <= 5; more++)
        in_child(race_with_threads, &more);
}

static int use_many(void *arg)
{
    (void)arg;
    return spk_threads_startable(0) && spk_threads_startable(1) && spk_threads_startable(16) ? 0 : TROUBLE;
}

static void threads_are_tried(void **state)
{
    (void)state;
    in_child(use_many, NULL);
}

/* ------------------------------------------------------------------------------------------------ little address space */

static int race_in(void *mib)
{
    const rlim_t bytes = (rlim_t) * (const int *)mib << 20;
    if (setrlimit(RLIMIT_AS, &(struct rlimit){bytes, bytes}) != 0)
        return TROUBLE;
    spk_context *context = NULL;
    spk_report *report = NULL;
    if (spk_context_create(&(spk_context_options){SPK_SIZED(spk_context_options), .store_path = "", .threads = 2}, &context) != SPK_OK)
        return 0; /* with a message */
    for (int i = 0; i < spk_library_count(context); i++)
        spk_context_get_library(context, i, &(spk_library_info){SPK_SIZED(spk_library_info)});
    race(context, &report);
    spk_report_destroy(&report);
    spk_context_destroy(&context);
    return 0;
}

static void little_address_space_ends_nothing(void **state)
{
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip(); /* the address sanitizer ends the process where it gets none for itself */
#endif
    static const int limits[] = {20, 25, 30, 35, 40, 50, 60, 80, 100, 200, 400, 700, 1000, 2000};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        in_child(race_in, (void *)(uintptr_t)&limits[i]);
}

/* Leaves so much address space after what the process has. */
static bool leave_kib(int kib)
{
    long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    const bool read = file != NULL && fscanf(file, "%lld", &pages) == 1;
    if (file != NULL)
        fclose(file);
    const rlim_t bytes = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + (rlim_t)kib * 1024;
    return read && setrlimit(RLIMIT_AS, &(struct rlimit){bytes, bytes}) == 0;
}

/* The limit comes once the context is there, which found LIBXSMM: its row takes no part for want of memory, and may where it has it. */
static int make_code_within(void *kib)
{
    spk_context *context = NULL;
    spk_report *report = NULL;
    const spk_context_options options = {SPK_SIZED(spk_context_options), .store_path = "", .threads = 1};
    char why[512] = "";
    setenv("SPARSEK_OPENBLAS", "none", 1);
    setenv("SPARSEK_BLIS", "none", 1);
    setenv("SPARSEK_MKL", "none", 1);
    setenv("SPARSEK_ONEDNN", "none", 1);
    if (spk_context_create(&options, &context) != SPK_OK || !leave_kib(*(const int *)kib))
        return TROUBLE;
    const spk_status status = race(context, &report);
    const bool applies = status == SPK_OK && status_of(report, "libxsmm_blocks", why, sizeof why) != SPK_CANDIDATE_NOT_APPLICABLE;
    fprintf(stderr, "%d KiB left: %s; libxsmm_blocks: %s\n", *(const int *)kib, spk_status_name(status), why);
    spk_report_destroy(&report);
    spk_context_destroy(&context);
    const bool told = !applies && (strstr(why, "address space") != NULL || strstr(why, "made without") != NULL);
    return status != SPK_OK || told || *(const int *)kib > 13 * 1024 ? 0 : TROUBLE + 1;
}

static void little_address_space_makes_no_code(void **state)
{
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip(); /* as above */
#endif
    static const int rooms[] = {2000, 4000, 8000, 10000, 10500, 10600, 11000, 12000, 13000, 14000, 16000, 24000};
    for (size_t i = 0; i < sizeof rooms / sizeof rooms[0]; i++)
        in_child(make_code_within, (void *)(uintptr_t)&rooms[i]);
}

static int count_address_space(void *arg)
{
    (void)arg;
    if (spk_address_space_left() != INT64_MAX)
        return TROUBLE;
    setrlimit(RLIMIT_AS, &(struct rlimit){(rlim_t)1 << 30, RLIM_INFINITY});
    const int64_t left = spk_address_space_left();
    if (left <= 0 || left >= (int64_t)1 << 30 || spk_free_memory() > left)
        return TROUBLE + 1;
    void *more = malloc((size_t)256 << 20);
    const int64_t now = spk_address_space_left();
    free(more);
    return more != NULL && now <= left - ((int64_t)256 << 20) && now > left - ((int64_t)300 << 20) ? 0 : TROUBLE + 2;
}

static void address_space_counts_as_memory(void **state)
{
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip(); /* the address sanitizer reserves terabytes of address space */
#endif
    in_child(count_address_space, NULL);
}

/* ------------------------------------------------------------------------------------------------ little stack */

static void *race_in_thread(void *code)
{
    *(int *)code = race_here(0, NULL, NULL);
    return NULL;
}

static int race_on_small_stack(void *arg)
{
    (void)arg;
#ifdef __SANITIZE_ADDRESS__
    const size_t size = 512 << 10; /* a frame of a tile is 45 KB there, less than 1 KB else */
#else
    const size_t size = 128 << 10;
#endif
    pthread_attr_t attributes;
    pthread_t thread;
    int code = TROUBLE;
    pthread_attr_init(&attributes);
    if (pthread_attr_setstacksize(&attributes, size) != 0 || pthread_create(&thread, &attributes, race_in_thread, &code) != 0)
        return TROUBLE;
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    return code;
}

static void a_small_stack_will_do(void **state)
{
    (void)state;
    in_child(race_on_small_stack, NULL);
}

/* ------------------------------------------------------------------------------------------------ control groups */

static void write_file(const char *root, const char *path, const char *text)
{
    char whole[512], command[600];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    snprintf(command, sizeof command, "mkdir -p $(dirname %s)", whole);
    assert_int_equal(system(command), 0);
    FILE *file = fopen(whole, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void limits_of_both_versions_are_seen(void **state)
{
    (void)state;
    char root[] = "/tmp/sparsek-cgroup-XXXXXX", command[64];
    assert_non_null(mkdtemp(root));
    assert_int_equal(spk_free_memory_of(root), 0);
    write_file(root, "/proc/meminfo", "MemTotal: 9000 kB\nMemAvailable: 4000 kB\nSwapFree: 100 kB\n");
    assert_int_equal(spk_free_memory_of(root), 4100 * 1024);
    /* Version 1: the group's own folder, the top as a container sees it, and the unlimited number. */
    write_file(root, "/proc/self/cgroup", "5:cpu,cpuacct:/other\n4:memory:/box/inner\n3:memoryless:/no\n0::/unified\n");
    write_file(root, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    write_file(root, "/sys/fs/cgroup/memory/box/memory.limit_in_bytes", "3000000\n");
    write_file(root, "/sys/fs/cgroup/memory/box/memory.usage_in_bytes", "1500000\n");
    write_file(root, "/sys/fs/cgroup/memory/box/memory.stat", "cache 7\ntotal_inactive_file 200000\ntotal_active_file 100000\n");
    assert_int_equal(spk_free_memory_of(root), 3000000 - 1500000 + 300000);
    write_file(root, "/sys/fs/cgroup/memory/box/inner/memory.limit_in_bytes", "1000000\n");
    assert_int_equal(spk_free_memory_of(root), 1000000);
    write_file(root, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "500000\n");
    assert_int_equal(spk_free_memory_of(root), 500000);
    /* Version 2. */
    write_file(root, "/sys/fs/cgroup/unified/memory.max", "400000\n");
    write_file(root, "/sys/fs/cgroup/unified/memory.current", "150000\n");
    assert_int_equal(spk_free_memory_of(root), 250000);
    write_file(root, "/sys/fs/cgroup/unified/memory.max", "max\n");
    assert_int_equal(spk_free_memory_of(root), 500000);
    snprintf(command, sizeof command, "rm -r %s", root);
    assert_int_equal(system(command), 0);
}

/* ------------------------------------------------------------------------------------------------ the environment of other threads */

static void *open_libraries(void *done)
{
    spk_context *context = NULL;
    if (spk_context_create(&(spk_context_options){SPK_SIZED(spk_context_options), .store_path = "", .threads = 2}, &context) == SPK_OK)
        for (int i = 0; i < spk_library_count(context); i++)
            spk_context_get_library(context, i, &(spk_library_info){SPK_SIZED(spk_library_info)});
    spk_context_destroy(&context);
    __atomic_store_n((int *)done, 1, __ATOMIC_RELEASE);
    return NULL;
}

/* One thread alone reads `environ` and its strings while libraries are opened in another: they stay as they were. */
static int watch_environment(void *arg)
{
    (void)arg;
    extern char **environ;
    char **const list = environ;
    pthread_t opener;
    int done = 0, changes = 0;
    unsetenv("OPENBLAS_THREAD_TIMEOUT");
    if (pthread_create(&opener, NULL, open_libraries, &done) != 0)
        return TROUBLE;
    while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE))
        changes += __atomic_load_n(&environ, __ATOMIC_RELAXED) != list || getenv("OPENBLAS_THREAD_TIMEOUT") != NULL;
    pthread_join(opener, NULL);
    return changes == 0 ? 0 : TROUBLE + 1;
}

static void the_environment_stays_as_it_is(void **state)
{
    (void)state;
    in_child(watch_environment, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_environment_stays_as_it_is),     cmocka_unit_test(code_that_may_not_run_is_not_made),
        cmocka_unit_test(without_threads_work_is_serial),     cmocka_unit_test(threads_are_tried),
        cmocka_unit_test(little_address_space_ends_nothing),  cmocka_unit_test(address_space_counts_as_memory),
        cmocka_unit_test(limits_of_both_versions_are_seen),   cmocka_unit_test(a_small_stack_will_do),
        cmocka_unit_test(little_address_space_makes_no_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
