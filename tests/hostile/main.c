/* hostile [--seed S] [--cases N] [--seconds T] [--op NAME] [--case I]: see hostile.h. Exit code 1 where a case failed. The cases run in
 * a process of their own: one that dies or hangs is a failure, is told with the command that replays it, and the next process goes on
 * behind it. */
#include "hostile.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_OPERATIONS = 16, MOST_FAILURES = 10, HANGS_AFTER_S = 300, MOST_AT_ONCE_BYTES = 1 << 30 };

typedef struct series {
    uint64_t seed;
    int64_t first, cases; /* cases: behind the last */
    double seconds;
    const char *op;
    const char *program;
} series;

/* What the process of the cases tells this one. */
typedef struct shared {
    volatile int64_t next; /* the case that runs */
    volatile int failures;
    tally sum;
} shared;

static series asked = {.cases = INT64_MAX, .seconds = 30};
static shared *told;

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void tell_replay(int64_t number)
{
    printf("  replay: %s --seed %llu --case %lld%s%s\n", asked.program, (unsigned long long)asked.seed, (long long)number,
           asked.op != NULL ? " --op " : "", asked.op != NULL ? asked.op : "");
    fflush(stdout);
}

void fail(trial *t, const char *format, ...)
{
    va_list arguments;
    if (t->failures++ > 2)
        return;
    told->failures++;
    printf("FAILED case %lld, %s: ", (long long)t->number, t->op->info.name);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n");
    tell_replay(t->number);
}

void check_refused(trial *t, const char *what)
{
    const char *reason = spk_last_error(t->context);
    if (reason == NULL || reason[0] == '\0')
        fail(t, "%s is refused without a reason", what);
    else if (strncmp(reason, "internal", 8) == 0)
        fail(t, "%s is refused as an internal error: %s", what, reason);
}

static int choose_operations(operation *list)
{
    int count = operations_read(list, MOST_OPERATIONS), kept = 0;
    for (int i = 0; i < count; i++)
        if (asked.op == NULL || strcmp(asked.op, list[i].info.name) == 0)
            list[kept++] = list[i];
    return kept;
}

/* A plan of a problem too large to be run may ask for more than a shared machine has, and takes it. */
static void *allocate(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    return bytes <= MOST_AT_ONCE_BYTES ? aligned_alloc(alignment, bytes) : NULL;
}

static void release(void *user, void *memory, size_t bytes)
{
    (void)user;
    (void)bytes;
    free(memory);
}

static int run_cases(double end_s)
{
    static operation operations[MOST_OPERATIONS];
    const int count = choose_operations(operations);
    const spk_context_options options = {SPK_SIZED(spk_context_options), .store_path = "", .threads = 2, .allocate = allocate,
                                         .release = release};
    spk_context *context = NULL;
    if (count == 0 || spk_context_create(&options, &context) != SPK_OK) {
        fprintf(stderr, "hostile: %s\n", count == 0 ? "there is no such operation" : spk_last_error(NULL));
        return 2;
    }
    while (told->next < asked.cases && now_s() < end_s && told->failures < MOST_FAILURES) {
        trial t = {.seed = asked.seed, .number = told->next, .d = draw_begin(asked.seed, told->next), .context = context};
        alarm(HANGS_AFTER_S);
        t.op = &operations[draw_below(&t.d, count)];
        trial_run(&t, &told->sum);
        told->next++;
    }
    spk_context_destroy(&context);
    return 0;
}

/* The cases from told->next on, in a child. Whether the series is over. */
static bool run_in_child(double end_s)
{
    int status = -1;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody waits for a hanging case any more */
        exit(run_cases(end_s));
    }
    if (child < 0 || waitpid(child, &status, 0) != child) {
        perror("hostile");
        exit(2);
    }
    if (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 2)) {
        if (WEXITSTATUS(status) == 2)
            exit(2);
        return true;
    }
    told->failures++;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        printf("FAILED case %lld: it did not end within %d s\n", (long long)told->next, HANGS_AFTER_S);
    else
        printf("FAILED case %lld: its process died, with %s %d\n", (long long)told->next, WIFSIGNALED(status) ? "signal" : "exit code",
               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    tell_replay(told->next++);
    return told->next >= asked.cases || told->failures >= MOST_FAILURES || now_s() >= end_s;
}

static void read_options(int argc, char **argv)
{
    asked.program = argv[0];
    asked.seed = (uint64_t)time(NULL);
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *name = argv[i], *value = argv[i + 1];
        if (strcmp(name, "--seed") == 0)
            asked.seed = strtoull(value, NULL, 10);
        else if (strcmp(name, "--cases") == 0)
            asked.cases = strtoll(value, NULL, 10);
        else if (strcmp(name, "--seconds") == 0)
            asked.seconds = strtod(value, NULL);
        else if (strcmp(name, "--op") == 0)
            asked.op = value;
        else if (strcmp(name, "--case") == 0)
            asked.cases = 1 + (asked.first = strtoll(value, NULL, 10));
        else
            argc = 0;
    }
    if (argc % 2 == 0) {
        fprintf(stderr, "usage: hostile [--seed S] [--cases N] [--seconds T] [--op NAME] [--case I]\n");
        exit(2);
    }
}

int main(int argc, char **argv)
{
    read_options(argc, argv);
    told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (told == MAP_FAILED)
        return 2;
    told->next = asked.first;
    const double end_s = now_s() + asked.seconds;
    while (!run_in_child(end_s))
        ;
    const tally *sum = &told->sum;
    printf(
        "seed %llu: %lld cases, %lld refused, %lld planned, %lld of them too large to run, %lld outputs compared, %lld wrong runs refused, "
        "%d failures\n",
        (unsigned long long)asked.seed, (long long)sum->cases, (long long)sum->refused, (long long)sum->planned, (long long)sum->too_large,
        (long long)sum->compared, (long long)sum->wrong_runs, told->failures);
    return told->failures > 0;
}
