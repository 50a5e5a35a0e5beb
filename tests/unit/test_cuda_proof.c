/* Proofs of device programs: what the library makes of a prover that answers, dies, hangs, talks nonsense or is not there. The prover is a
 * script that does as its environment says; the device is the test double of libcuda. Each case runs in a child. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/cuda/runtime/cubins.h"
#include "backend/cuda/proof/proof.h"
#include "backend/cuda/proof/proof_store.h"
#include "backend/cuda/proof/proof_table.h"
#include "backend/cuda/proof/prover.h"
#include "base/clock.h"
#include "registry/registry.h"
#include "op/product.h"

#define CHECK(condition)                                                                                      \
    do {                                                                                                      \
        if (!(condition)) {                                                                                   \
            fprintf(stderr, "%s:%d: %s; message \"%s\"\n", __FILE__, __LINE__, #condition, spk_error_last()); \
            tell();                                                                                           \
            _exit(1);                                                                                         \
        }                                                                                                     \
    } while (0)

enum { COUNT = 4, ODD = 1 }; /* candidates; the one that the deed befalls */

/* Of a prover: what no answer takes, however busy the machine is, and what a hanging one is given. */
static const double PATIENT_US = 300e6, HASTY_US = 3e6;

static const char script[] = "#!/bin/sh\n"
                             "echo x >>\"$DOUBLE_FOLDER/starts\"\n"
                             "list=$(tr '\\000' '\\n' | grep -a -o 'V=[0-9]*')\n"
                             "eval \"$DOUBLE_BEGIN\"\n"
                             "echo ready\n"
                             "i=0\n"
                             "for v in $list; do\n"
                             "    echo \"run $i\"\n"
                             "    echo \"made $i\"\n"
                             "    [ $v != V=1 ] || eval \"$DOUBLE_DEED\"\n"
                             "    echo \"ok $i\"\n"
                             "    i=$((i + 1))\n"
                             "done\n";

static char folder[256], prover[300];
static spk_prepared list[COUNT];
static spk_device *device;
static spk_problem problem;

static void tell(void)
{
    for (int i = 0; i < COUNT; i++)
        fprintf(stderr, "  %d: %s, \"%s\"\n", i, spk_status_name(list[i].status), list[i].why);
}

static double predicted_us;

static double predict_us(const spk_problem *of, const spk_device *on, const spk_params *params)
{
    (void)of;
    (void)on;
    (void)params;
    return predicted_us;
}

static const spk_kernel_ops ops = {.source_hash = "0123456789abcdef", .predict_us = predict_us};
static const spk_kernel kernel = {.name = "fake", .backend = SPK_BACKEND_CUDA, .tunables = "V=0,1,2,3", .ops = &ops};

/* ------------------------------------------------------------------------------------------------ around a case */

static void put_file(const char *path, const char *text, int mode)
{
    FILE *file = fopen(path, "w");
    CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0 && chmod(path, (mode_t)mode) == 0);
}

static void set_up(void)
{
    static const int offsets[] = {0, 1}, columns[] = {0};
    spk_executor executor = {.threads = 1};
    spk_pattern *pattern = NULL;
    snprintf(folder, sizeof folder, "%s/spk-proof-XXXXXX", getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp");
    CHECK(mkdtemp(folder) != NULL);
    snprintf(prover, sizeof prover, "%s/prover", folder);
    put_file(prover, script, 0755);
    setenv("SPARSEK_CUDA", DOUBLE, 1);
    setenv("SPARSEK_PROVER", prover, 1);
    setenv("SPARSEK_CACHE_DIR", folder, 1);
    setenv("DOUBLE_FOLDER", folder, 1);
    setenv("DOUBLE_BEGIN", "", 1);
    setenv("DOUBLE_DEED", "", 1);
    spk_cuda_proof_limits(PATIENT_US, PATIENT_US);
    CHECK(spk_backend_cuda.open(&spk_mem_system, "cuda:0", &executor, &device) == SPK_OK);
    CHECK(spk_pattern_make(&spk_mem_system,
                           &(spk_bsr_indices){SPK_SIZED(spk_bsr_indices), .rows = 4, .cols = 4, .block_rows = 4, .block_cols = 4, .nnzb = 1,
                                              .row_offsets = offsets, .col_indices = columns},
                           &pattern) == SPK_OK);
    CHECK(spk_problem_read(&spk_op_spmm, pattern, &(spk_spmm){SPK_SIZED(spk_spmm), .n = 4}, NULL, &problem) == SPK_OK);
}

static int open_files(void)
{
    int count = 0;
    DIR *files = opendir("/proc/self/fd");
    while (files != NULL && readdir(files) != NULL)
        count++;
    if (files != NULL)
        closedir(files);
    return count;
}

static atomic_int interrupted;
static volatile int cancelled;
static const spk_stop stop = {.all = &interrupted, .call = &cancelled};

static void prepare(void)
{
    const int files = open_files();
    for (int i = 0; i < COUNT; i++)
        list[i] = (spk_prepared){.kernel = &kernel, .params.v = {i}, .status = SPK_ERR_IO, .why = "as it was"};
    CHECK(spk_cuda_prepare(device, &problem, list, COUNT, &stop) == SPK_OK);
    CHECK(open_files() == files);
    CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD); /* nobody is left */
}

static void do_deed(const char *begin, const char *deed)
{
    setenv("DOUBLE_BEGIN", begin, 1);
    setenv("DOUBLE_DEED", deed, 1);
    prepare();
}

/* What is known without a prover. */
static void prepare_again(void)
{
    setenv("SPARSEK_PROVER", "none", 1);
    prepare();
    setenv("SPARSEK_PROVER", prover, 1);
}

static int starts(void)
{
    char path[300];
    struct stat facts;
    snprintf(path, sizeof path, "%s/starts", folder);
    return stat(path, &facts) == 0 ? (int)facts.st_size / 2 : 0;
}

static void check_one(int i, spk_status status, const char *why)
{
    CHECK(list[i].status == status);
    CHECK(why[0] == '\0' ? list[i].why[0] == '\0' : strstr(list[i].why, why) != NULL);
}

/* All but ODD are proved, and that stays so. ODD is as said, now and, where it is refuted, for good. */
static void check_odd(spk_status status, const char *why)
{
    for (int i = 0; i < COUNT; i++)
        check_one(i, i == ODD ? status : SPK_OK, i == ODD ? why : "");
    prepare_again();
    for (int i = 0; i < COUNT; i++)
        if (i != ODD)
            check_one(i, SPK_OK, "");
    check_one(ODD, status, status == SPK_ERR_INTERNAL ? why : status == SPK_OK ? "" : "it has no proof, and there is no prover");
}

static void check_none(const char *why, const char *rest)
{
    for (int i = 0; i < COUNT; i++)
        check_one(i, SPK_ERR_UNAVAILABLE, i == 0 ? why : rest);
    prepare_again();
    for (int i = 0; i < COUNT; i++)
        check_one(i, SPK_ERR_UNAVAILABLE, "it has no proof, and there is no prover: SPARSEK_PROVER = \"none\": not used");
}

static void in_child(void (*body)(void))
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        set_up();
        body();
        char command[300];
        snprintf(command, sizeof command, "rm -rf '%s'", folder);
        _exit(system(command) == 0 ? 0 : 2);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* ------------------------------------------------------------------------------------------------ cases */

static void body_good(void)
{
    do_deed("", "");
    CHECK(starts() == 1);
    check_odd(SPK_OK, "");
    prepare();
    CHECK(starts() == 1); /* proved already */
}

static void body_dies(void)
{
    do_deed("", "kill -SEGV $$");
    CHECK(starts() == 2);
    check_odd(SPK_ERR_INTERNAL, "it took the proving process with it");
}

static void body_exits(void)
{
    do_deed("", "exit 1");
    check_odd(SPK_ERR_INTERNAL, "it took the proving process with it");
}

static void body_ended(void)
{
    do_deed("", "kill -TERM $$");
    check_odd(SPK_ERR_UNAVAILABLE, "was ended from outside");
}

static void body_hangs(void)
{
    spk_cuda_proof_limits(PATIENT_US, HASTY_US);
    const double begun = spk_now_us();
    do_deed("", "sleep 600");
    CHECK(spk_now_us() - begun < 500e6);
    CHECK(starts() == 2);
    check_odd(SPK_ERR_INTERNAL, "it did not end in time");
}

static void body_is_slow(void)
{
    spk_cuda_proof_limits(PATIENT_US, HASTY_US);
    predicted_us = 0.1 * HASTY_US;
    do_deed("", "sleep 600");
    check_odd(SPK_ERR_UNAVAILABLE, "it is too slow on this problem to be proved");
}

static void body_floods(void)
{
    spk_cuda_proof_limits(PATIENT_US, HASTY_US);
    do_deed("", "while :; do echo noise; done");
    check_odd(SPK_ERR_INTERNAL, "it did not end in time");
}

static void body_floods_without_lines(void)
{
    spk_cuda_proof_limits(20e6, 1e6);
    do_deed("", "cat /dev/zero");
    check_odd(SPK_ERR_INTERNAL, "it did not end in time");
}

static void body_fails(void)
{
    do_deed("", "echo \"failed $i internal: cuStreamQuery: CUDA_ERROR_ILLEGAL_ADDRESS\"; exit 4");
    CHECK(starts() == 2);
    check_odd(SPK_ERR_INTERNAL, "when proved: internal: cuStreamQuery: CUDA_ERROR_ILLEGAL_ADDRESS");
}

/* What its library does not take. */
static void body_passes(void)
{
    do_deed("", "echo \"failed $i unsupported: there is no ALGO=9\"; i=$((i + 1)); continue");
    for (int i = 0; i < COUNT; i++)
        check_one(i, i == ODD ? SPK_ERR_UNSUPPORTED : SPK_OK, i == ODD ? "when proved: unsupported: there is no ALGO=9" : "");
}

static void body_fails_at_length(void)
{
    do_deed("", "echo \"failed $i internal: $(head -c 5000 /dev/zero | tr '\\000' y)\"; i=$((i + 1)); continue");
    CHECK(starts() == 1 && strlen(list[ODD].why) > 150 && strlen(list[ODD].why) < sizeof list[ODD].why);
    check_odd(SPK_ERR_INTERNAL, "yyyyyyyyyyyyyy");
}

static void body_no_memory(void)
{
    do_deed("", "echo \"failed $i out of memory: 12345 bytes\"; i=$((i + 1)); continue");
    CHECK(starts() == 1);
    check_odd(SPK_ERR_UNAVAILABLE, "out of memory: 12345 bytes");
}

static void body_chatters(void)
{
    do_deed("echo hello; head -c 3000 /dev/zero | tr '\\000' x; echo",
            "echo; echo ok; echo 'ok 1 2'; head -c 700 /dev/zero; echo; echo 'run'");
    CHECK(starts() == 1);
    check_odd(SPK_OK, "");
}

static void body_out_of_turn(void)
{
    do_deed("", "echo 'ok 7'");
    check_one(0, SPK_OK, "");
    check_one(ODD, SPK_ERR_UNAVAILABLE, "the prover says \"ok 7\" out of turn");
    check_one(2, SPK_ERR_UNAVAILABLE, "it was not proved");
    CHECK(starts() == 1);
}

/* A prover that refuses the problem itself was asked wrongly: an internal error, of which nothing stays known of the candidates. */
static void body_problem_refused(void)
{
    setenv("DOUBLE_BEGIN", "echo 'refused argument: keys = 3'; exit 3", 1);
    for (int k = 0; k < COUNT; k++)
        list[k] = (spk_prepared){.kernel = &kernel, .params.v = {k}};
    CHECK(spk_cuda_prepare(device, &problem, list, COUNT, &stop) == SPK_ERR_INTERNAL);
    CHECK(strstr(spk_error_last(), "proved with is refused: argument: keys = 3") != NULL);
    CHECK(starts() == 1);
    do_deed("", "");
    check_odd(SPK_OK, "");
}

static void body_lost(void)
{
    do_deed("echo 'lost no device is to be had'; exit 4", "");
    CHECK(starts() == 1);
    check_none("it could not be proved: no device is to be had", "it was not proved: the prover ended before it");
}

static void body_leaves(void)
{
    do_deed("exit 0", "");
    check_none("it could not be proved: the prover ended early", "it was not proved");
}

static void body_never_begins(void)
{
    spk_cuda_proof_limits(HASTY_US, PATIENT_US);
    do_deed("sleep 600", "");
    CHECK(starts() == 1);
    check_none("it could not be proved: the prover did not answer", "it was not proved");
}

static void body_missing(void)
{
    setenv("SPARSEK_PROVER", "/nowhere/prover", 1);
    prepare();
    check_none("SPARSEK_PROVER = \"/nowhere/prover\": there is no such program", "/nowhere/prover");
}

/* What bench/proved.py reads. */
static void body_kept_text(void)
{
    static const char expected[] = "good\ndriver 13000\narch sm_90a\ndevice Double GPU\nchoice fake V=2\n";
    char key[SPK_PROOF_KEY_BYTES];
    void *text = NULL;
    size_t bytes = 0;
    prepare();
    spk_proof_key(device, &problem, list[2].kernel, &list[2].params, key);
    CHECK(spk_cubins_load(&spk_mem_system, key, &text, &bytes) && bytes == sizeof expected && memcmp(text, expected, bytes) == 0);
    spk_free(&spk_mem_system, text);
}

/* Without a prover, what was proved on such a device and driver runs; what was on another, or with another source, does not. */
static void body_proved_elsewhere(void)
{
    char hashes[COUNT][17];
    for (int i = 0; i < COUNT; i++)
        spk_candidate_hash(&kernel, &(spk_params){.v = {i}}, hashes[i]);
    const spk_proved table[] = {
        {hashes[0], "sm_90a", 13}, {hashes[1], "sm_90a", 12}, {hashes[2], "sm_80", 13}, {"0123456789abcdef", "sm_90a", 13}};
    spk_proved_use(table, COUNT);
    prepare_again();
    check_one(0, SPK_OK, "");
    for (int i = 1; i < COUNT; i++)
        check_one(i, SPK_ERR_UNAVAILABLE, "it has no proof, and there is no prover");
    do_deed("", "exit 1"); /* a prover has the last word */
    check_odd(SPK_ERR_INTERNAL, "it took the proving process with it");
    const spk_kernel *kernels = NULL;
    spk_params params;
    const int rows = spk_kernels(&kernels);
    int row = rows - 1;
    while (kernels[row].backend != SPK_BACKEND_CUDA)
        row--;
    spk_params_get(&kernels[row], 0, &params);
    spk_candidate_hash(&kernels[row], &params, hashes[0]);
    CHECK(spk_proved_count(device, kernels, rows) == 1);
}

/* With a prover that comes to no end, likewise: in this process, and nothing is kept. */
static void body_proved_elsewhere_unanswered(void)
{
    char hashes[COUNT][17];
    for (int i = 0; i < COUNT; i++)
        spk_candidate_hash(&kernel, &(spk_params){.v = {i}}, hashes[i]);
    const spk_proved table[] = {{hashes[0], "sm_90a", 13}, {hashes[ODD], "sm_90a", 13}};
    spk_proved_use(table, 2);
    do_deed("echo lost no memory; exit", "");
    check_one(0, SPK_OK, "");
    check_one(ODD, SPK_OK, "");
    check_one(2, SPK_ERR_UNAVAILABLE, "it was not proved: the prover ended before it");
    CHECK(spk_cuda_proof(device, &problem, &kernel, &list[0].params, (char[8]){0}, 8) == SPK_PROOF_GOOD);
    CHECK(spk_cuda_proof(device, &problem, &kernel, &list[2].params, (char[8]){0}, 8) == SPK_PROOF_NONE);
    do_deed("", "echo \"failed $i argument: the shape\"; i=9"); /* an answer */
    check_one(ODD, SPK_ERR_UNAVAILABLE, "when proved: argument: the shape");
    do_deed("", "exit 1");
    check_odd(SPK_ERR_INTERNAL, "it took the proving process with it");
}

static void body_not_a_program(void)
{
    CHECK(chmod(prover, 0644) == 0);
    prepare();
    check_one(0, SPK_ERR_UNAVAILABLE, "there is no such program");
    put_file(prover, "this is no program", 0755);
    prepare();
    check_none("cannot be started: Exec format error", "it was not proved");
    CHECK(setenv("SPARSEK_PROVER", folder, 1) == 0);
    prepare();
    check_none("there is no such program", "there is no such program");
}

static void *interrupt_the_prover(void *by_call)
{
    while (starts() == 0)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    if (by_call)
        __atomic_store_n(&cancelled, 1, __ATOMIC_RELAXED);
    else
        atomic_store(&interrupted, 1);
    return NULL;
}

static void interrupt_by(void *call)
{
    pthread_t thread;
    const double begun = spk_now_us();
    CHECK(pthread_create(&thread, NULL, interrupt_the_prover, call) == 0);
    do_deed("sleep 600", "");
    pthread_join(thread, NULL);
    CHECK(spk_now_us() - begun < 500e6);
    for (int i = 0; i < COUNT; i++)
        check_one(i, SPK_ERR_INTERRUPTED, "interrupted before it was proved");
    atomic_store(&interrupted, 0);
    cancelled = 0;
    do_deed("", "");
    check_odd(SPK_OK, ""); /* nothing of it was kept */
}

static void body_interrupted(void)
{
    interrupt_by(NULL);
}

static void body_cancelled(void)
{
    interrupt_by((void *)&cancelled);
}

/* A host program that has closed its standard streams, blocks signals and has its children waited for by the system. */
static void body_odd_host(void)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    signal(SIGCHLD, SIG_IGN);
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    do_deed("", "kill -SEGV $$");
    for (int i = 0; i < COUNT; i++)
        CHECK(list[i].status == (i == ODD ? SPK_ERR_INTERNAL : SPK_OK));
    signal(SIGCHLD, SIG_DFL);
}

static void any_build(const spk_problem *p, const spk_device *where, const spk_params *params, spk_build *build)
{
    (void)p, (void)where, (void)params;
    *build = (spk_build){.file = "reference_cuda_spmm.cu", .entry = "reference_cuda_spmm"};
}

/* Without the compiler what is to be compiled is out, and libraries are not. */
static void body_no_compiler(void)
{
    static const spk_kernel_ops compiled_ops = {.source_hash = "0123456789abcdef", .build = any_build};
    const spk_kernel compiled = {.name = "compiled", .backend = SPK_BACKEND_CUDA, .tunables = "V=0,1,2,3", .ops = &compiled_ops};
    setenv("SPARSEK_NVRTC", "none", 1);
    for (int i = 0; i < COUNT; i++)
        list[i] = (spk_prepared){.kernel = i == ODD ? &compiled : &kernel, .params.v = {i}, .status = SPK_ERR_IO, .why = "as it was"};
    CHECK(spk_cuda_prepare(device, &problem, list, COUNT, &stop) == SPK_OK);
    for (int i = 0; i < COUNT; i++)
        check_one(i, i == ODD ? SPK_ERR_UNAVAILABLE : SPK_OK, i == ODD ? "NVRTC, which compiles device programs, was not found" : "");
}

/* The prover of this build on the double: there is no row named "fake", and it keeps nothing of ours open. */
static void body_real(void)
{
    int pipes[2];
    char byte;
    CHECK(pipe(pipes) == 0); /* without O_CLOEXEC */
    setenv("SPARSEK_PROVER", PROVER, 1);
    prepare();
    for (int i = 0; i < COUNT; i++)
        check_one(i, SPK_ERR_UNAVAILABLE, "when proved: argument: choice");
    close(pipes[1]);
    CHECK(read(pipes[0], &byte, 1) == 0);
}

/* ------------------------------------------------------------------------------------------------ what no prover can be made for */

static int spawn_error;

/* In the place of the C library's. */
int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
                char *const arguments[], char *const environment[])
{
    typedef int spawn_function(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const[],
                               char *const[]);
    spawn_function *real = NULL;
    *(void **)&real = dlsym(RTLD_NEXT, "posix_spawn");
    return spawn_error != 0 ? spawn_error : real(pid, path, actions, attributes, arguments, environment);
}

/* No process, or no file, can be made: nothing is proved, nothing is kept, and the next time all is well. */
static void body_no_process(void)
{
    static const struct {
        int error;
        const char *why;
    } cases[] = {{EAGAIN, "cannot be started: Resource temporarily unavailable"}, {ENOMEM, "cannot be started: Cannot allocate memory"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        spawn_error = cases[i].error;
        prepare();
        check_none(cases[i].why, "it was not proved");
        for (int k = 0; k < COUNT; k++)
            CHECK(spk_cuda_proof(device, &problem, &kernel, &list[k].params, (char[200]){0}, 200) == SPK_PROOF_NONE);
    }
    CHECK(starts() == 0);
    spawn_error = 0;
    struct rlimit files, none = {0};
    CHECK(getrlimit(RLIMIT_NOFILE, &files) == 0);
    const int taken = dup(STDERR_FILENO); /* the lowest number that was free */
    none = (struct rlimit){(rlim_t)taken + 1, files.rlim_max};
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    for (int i = 0; i < COUNT; i++)
        list[i] = (spk_prepared){.kernel = &kernel, .params.v = {i}};
    const spk_status status = spk_cuda_prepare(device, &problem, list, COUNT, &stop);
    CHECK(setrlimit(RLIMIT_NOFILE, &files) == 0 && close(taken) == 0);
    CHECK(status == SPK_OK);
    check_none("the job for the prover cannot be written: Too many open files", "it was not proved");
    prepare();
    for (int i = 0; i < COUNT; i++)
        check_one(i, SPK_OK, "");
}

/* ------------------------------------------------------------------------------------------------ what never ends */

static void end_those_left_behind(void)
{
    char command[400];
    snprintf(command, sizeof command, "kill $(cat '%s/left')", folder);
    CHECK(system(command) == 0);
}

/* A child that has left the group and keeps the pipe open is not waited for. */
static void body_left_behind(void)
{
    const char *leave = "setsid sleep 600 & echo $! >>\"$DOUBLE_FOLDER/left\"; exit 0";
    const double begun = spk_now_us();
    do_deed(leave, "");
    check_none("it could not be proved: the prover ended early", "it was not proved");
    do_deed("", leave);
    CHECK(spk_now_us() - begun < 500e6);
    end_those_left_behind();
    check_odd(SPK_ERR_INTERNAL, "it took the proving process with it");
}

static void body_late_again(void)
{
    spk_cuda_proof_limits(HASTY_US, PATIENT_US);
    const double begun = spk_now_us();
    do_deed("echo ready; echo run 0; sleep 600", "");
    CHECK(spk_now_us() - begun < 500e6);
    CHECK(starts() == 2);
    check_one(0, SPK_ERR_UNAVAILABLE, "it was not ready within the time for its proof");
    check_one(1, SPK_ERR_UNAVAILABLE, "it was not ready within the time for its proof");
    check_one(2, SPK_ERR_UNAVAILABLE, "it was not proved");
}

/* ------------------------------------------------------------------------------------------------ where it is looked for */

static void check_refused(const char *wish, const char *why)
{
    setenv("SPARSEK_PROVER", wish, 1);
    prepare();
    for (int i = 0; i < COUNT; i++)
        check_one(i, SPK_ERR_UNAVAILABLE, why);
    CHECK(starts() == 0);
}

static void body_names(void)
{
    CHECK(chdir(folder) == 0);
    check_refused("prover", "SPARSEK_PROVER = \"prover\": not used, as it is not a full path");
    check_refused("./prover", "SPARSEK_PROVER = \"./prover\": not used, as it is not a full path");
    check_refused(folder, "there is no such program");
    CHECK(chmod(prover, 0757) == 0);
    check_refused(prover, "not used, as others may write to it or its folder");
    CHECK(chmod(prover, 0755) == 0 && chmod(folder, 0777) == 0);
    check_refused(prover, "not used, as others may write to it or its folder");
    CHECK(chmod(folder, 01777) == 0);
    if (geteuid() == 0) {
        CHECK(chown(prover, 12345, 12345) == 0);
        check_refused(prover, "not used, as others may write to it or its folder");
        CHECK(chown(prover, 0, 12345) == 0 && chmod(prover, 0775) == 0);
        check_refused(prover, "not used, as others may write to it or its folder");
        CHECK(chown(prover, 0, 0) == 0);
    }
    setenv("SPARSEK_PROVER", prover, 1);
    prepare();
    for (int i = 0; i < COUNT; i++)
        check_one(i, SPK_OK, "");
}

/* Linked into a program the library looks beside that program's file, whatever name it was started with. */
static void body_name_of_the_program(void)
{
    char path[400], why[200] = "";
    CHECK(chdir(folder) == 0);
    snprintf(path, sizeof path, "%s/sparsek-prover", folder);
    put_file(path, script, 0755);
    snprintf(path, sizeof path, "%s/program", folder);
    put_file(path, "", 0755);
    unsetenv("SPARSEK_PROVER");
    CHECK(!spk_prover_find(path, sizeof path, why, sizeof why));
    CHECK(strstr(why, "no sparsek-prover beside the library") != NULL);
    const pid_t child = fork();
    int status = -1;
    if (child == 0) {
        execl("/proc/self/exe", "program", "--find", (char *)NULL);
        _exit(9);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static int find(void)
{
    char path[PATH_MAX], why[200];
    return spk_prover_find(path, sizeof path, why, sizeof why) ? 1 : 0;
}

/* ------------------------------------------------------------------------------------------------ looking up */

static spk_proof look(int i, char *why)
{
    return spk_cuda_proof(device, &problem, &kernel, &(spk_params){.v = {i}}, why, 200);
}

static void body_looks(void)
{
    char why[200], hash[17];
    spk_candidate_hash(&kernel, &(spk_params){.v = {0}}, hash);
    const spk_proved table[] = {{hash, "sm_90a", 13}};
    spk_proved_use(table, 1);
    CHECK(look(0, why) == SPK_PROOF_NONE && why[0] == '\0'); /* a prover has the last word */
    setenv("SPARSEK_PROVER", "none", 1);
    CHECK(look(0, why) == SPK_PROOF_GOOD);
    CHECK(look(2, why) == SPK_PROOF_NONE && strstr(why, "SPARSEK_PROVER = \"none\"") != NULL);
    setenv("SPARSEK_PROVER", prover, 1);
    do_deed("", "exit 1");
    CHECK(look(0, why) == SPK_PROOF_GOOD && look(2, why) == SPK_PROOF_GOOD);
    CHECK(look(ODD, why) == SPK_PROOF_REFUTED && strcmp(why, "it took the proving process with it") == 0);
    CHECK(starts() == 2);
    setenv("SPARSEK_CACHE_DIR", "/nowhere", 1); /* what was good is remembered without the disk, and forgotten without it */
    CHECK(look(2, why) == SPK_PROOF_GOOD);
    spk_proofs_forget();
    CHECK(look(2, why) == SPK_PROOF_NONE);
    setenv("SPARSEK_CACHE_DIR", folder, 1);
    CHECK(look(2, why) == SPK_PROOF_GOOD);
    char key[SPK_PROOF_KEY_BYTES];
    spk_proof_key(device, &problem, &kernel, &(spk_params){.v = {2}}, key);
    spk_proof_keep(device, &list[2], key, "it hung");
    CHECK(look(2, why) == SPK_PROOF_REFUTED && strcmp(why, "it hung") == 0);
}

#define TEST(name)                        \
    static void test_##name(void **state) \
    {                                     \
        (void)state;                      \
        in_child(body_##name);            \
    }
TEST(good)
TEST(kept_text)
TEST(proved_elsewhere)
TEST(proved_elsewhere_unanswered)
TEST(dies)
TEST(exits)
TEST(ended)
TEST(hangs)
TEST(is_slow)
TEST(floods)
TEST(floods_without_lines)
TEST(fails)
TEST(passes)
TEST(fails_at_length)
TEST(no_memory)
TEST(chatters)
TEST(out_of_turn)
TEST(problem_refused)
TEST(lost)
TEST(leaves)
TEST(never_begins)
TEST(missing)
TEST(not_a_program)
TEST(interrupted)
TEST(cancelled)
TEST(odd_host)
TEST(no_compiler)
TEST(real)
TEST(no_process)
TEST(left_behind)
TEST(late_again)
TEST(names)
TEST(name_of_the_program)
TEST(looks)

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--find") == 0)
        return find();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_proved_elsewhere),
        cmocka_unit_test(test_proved_elsewhere_unanswered),
        cmocka_unit_test(test_kept_text),
        cmocka_unit_test(test_dies),
        cmocka_unit_test(test_exits),
        cmocka_unit_test(test_ended),
        cmocka_unit_test(test_hangs),
        cmocka_unit_test(test_is_slow),
        cmocka_unit_test(test_floods),
        cmocka_unit_test(test_floods_without_lines),
        cmocka_unit_test(test_fails),
        cmocka_unit_test(test_passes),
        cmocka_unit_test(test_fails_at_length),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_chatters),
        cmocka_unit_test(test_out_of_turn),
        cmocka_unit_test(test_problem_refused),
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_leaves),
        cmocka_unit_test(test_never_begins),
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_not_a_program),
        cmocka_unit_test(test_interrupted),
        cmocka_unit_test(test_cancelled),
        cmocka_unit_test(test_odd_host),
        cmocka_unit_test(test_no_compiler),
        cmocka_unit_test(test_real),
        cmocka_unit_test(test_no_process),
        cmocka_unit_test(test_left_behind),
        cmocka_unit_test(test_late_again),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_name_of_the_program),
        cmocka_unit_test(test_looks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
