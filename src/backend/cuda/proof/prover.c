/* The helper process, from outside. */
#include "backend/cuda/proof/prover.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/c_locale.h"
#include "base/clock.h"
#include "base/environment.h"
#include "base/own_file.h"

enum { MOST_UNBURIED = 64, BURIAL_TRIES = 200, BURIAL_NS = 10000000 };

/* ------------------------------------------------------------------------------------------------ where it is */

/* Why a program is not used; NULL: it is. It runs with all that this user may do: nobody else may have put it there. */
static const char *what_is_wrong(const char *path, const struct stat *library)
{
    char real[PATH_MAX];
    struct stat file, folder;
    if (realpath(path, real) == NULL || stat(real, &file) != 0 || !S_ISREG(file.st_mode) || access(real, X_OK) != 0)
        return "there is no such program";
    *strrchr(real, '/') = '\0';
    if (stat(real[0] != '\0' ? real : "/", &folder) != 0 || !spk_is_private(&file, library) || !spk_is_private(&folder, library))
        return "not used, as others may write to it or its folder";
    return NULL;
}

static bool find_wished(const char *wish, const struct stat *library, char *path, size_t size, char *why, size_t why_size)
{
    const char *wrong;
    if (wish[0] != '/')
        wrong = strcmp(wish, "none") == 0 ? "not used" : "not used, as it is not a full path";
    else
        wrong = what_is_wrong(wish, library);
    if (wrong == NULL && snprintf(path, size, "%s", wish) >= (int)size)
        wrong = "there is no such program";
    if (wrong != NULL)
        snprintf(why, why_size, "SPARSEK_PROVER = \"%.120s\": %s", wish, wrong);
    return wrong == NULL;
}

bool spk_prover_find(char *path, size_t size, char *why, size_t why_size)
{
    static const char *const places[] = {"", "/../libexec/sparsek", "/../../libexec/sparsek"};
    char real[PATH_MAX];
    struct stat library;
    const char *wish = spk_environment_value("SPARSEK_PROVER"), *wrong = NULL;
    const bool found = spk_own_file(real, &library);
    if (wish != NULL && *wish != '\0')
        return find_wished(wish, found ? &library : NULL, path, size, why, why_size);
    if (found)
        *strrchr(real, '/') = '\0';
    for (size_t i = 0; found && i < sizeof places / sizeof places[0]; i++) {
        if (snprintf(path, size, "%s%s/sparsek-prover", real, places[i]) >= (int)size)
            continue;
        const char *now = what_is_wrong(path, &library);
        if (now == NULL)
            return true;
        if (access(path, F_OK) == 0 && wrong == NULL) {
            wrong = now;
            snprintf(why, why_size, "%.150s: %s", path, wrong);
        }
    }
    if (wrong == NULL)
        snprintf(why, why_size, "no sparsek-prover beside the library or in libexec/sparsek; set SPARSEK_PROVER to its full path");
    return false;
}

/* ------------------------------------------------------------------------------------------------ the dead */

/* A process whose kernel hangs may take the driver long to bury: those that were not waited for to the end, so that none stays a zombie for
 * good. */
static pthread_mutex_t unburied_lock = PTHREAD_MUTEX_INITIALIZER;
static pid_t unburied[MOST_UNBURIED];

static void bury(pid_t also)
{
    pthread_mutex_lock(&unburied_lock);
    for (int i = 0; i < MOST_UNBURIED; i++) {
        if (unburied[i] != 0 && waitpid(unburied[i], NULL, WNOHANG) != 0)
            unburied[i] = 0;
        if (unburied[i] == 0 && also != 0) {
            unburied[i] = also;
            also = 0;
        }
    }
    pthread_mutex_unlock(&unburied_lock);
}

/* Waits two seconds at most. true: it is gone, and *state is what waitpid said (0 where another waited for it: a SIGCHLD handler of the
 * host program). */
static bool wait_for_end(spk_prover *prover, bool kill_it, int *state)
{
    for (int i = 0; i < BURIAL_TRIES; i++) {
        *state = 0;
        const pid_t gone = waitpid(prover->pid, state, WNOHANG);
        if (gone < 0)
            *state = 0;
        if (gone != 0) { /* from now on the number may be another's */
            prover->pid = 0;
            return true;
        }
        if (i == 0 && kill_it)
            kill(-prover->pid, SIGKILL); /* its group: a prover may be a script */
        nanosleep(&(struct timespec){.tv_nsec = BURIAL_NS}, NULL);
    }
    return false;
}

bool spk_prover_was_ended(spk_prover *prover)
{
    static const int theirs[] = {SIGKILL, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGXCPU};
    int state = 0;
    if (prover->pid == 0 || !wait_for_end(prover, false, &state) || !WIFSIGNALED(state))
        return false;
    for (size_t i = 0; i < sizeof theirs / sizeof theirs[0]; i++)
        if (WTERMSIG(state) == theirs[i])
            return true;
    return false;
}

void spk_prover_end(spk_prover *prover)
{
    int state;
    close(prover->answers);
    if (prover->pid != 0 && !wait_for_end(prover, true, &state))
        bury(prover->pid);
    prover->pid = 0;
}

/* ------------------------------------------------------------------------------------------------ starting */

/* The same file under a number that is no standard stream's: a host program may have closed its own. */
static int above_standard(int file)
{
    if (file > STDERR_FILENO)
        return file;
    const int other = fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(file);
    return other;
}

static int spawn(const char *program, int job, int answers, pid_t *pid)
{
    extern char **environ;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, defaults;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, job, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, answers, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    /* A signal to the caller's terminal group is the caller's affair: the helper is ended by us. What the host program blocks or ignores it
     * does not. */
    sigemptyset(&none);
    sigfillset(&defaults);
    sigdelset(&defaults, SIGKILL);
    sigdelset(&defaults, SIGSTOP);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    char *arguments[] = {(char *)program, NULL};
    const int error = posix_spawn(pid, program, &actions, &attributes, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return error;
}

spk_status spk_prover_start(const char *program, int job, spk_prover *prover)
{
    int pipes[2];
    *prover = (spk_prover){.answers = -1};
    bury(0);
    if (pipe2(pipes, O_CLOEXEC) != 0)
        return spk_fail(SPK_ERR_IO, "the prover cannot be started: pipe: %s", spk_system_error(errno));
    pipes[1] = above_standard(pipes[1]);
    const int error = pipes[1] < 0 ? EMFILE : spawn(program, job, pipes[1], &prover->pid);
    if (pipes[1] >= 0)
        close(pipes[1]);
    if (error != 0) {
        close(pipes[0]);
        prover->pid = 0;
        return spk_fail(SPK_ERR_UNAVAILABLE, "the prover %.120s cannot be started: %s", program, spk_system_error(error));
    }
    prover->answers = pipes[0];
    return SPK_OK;
}

/* ------------------------------------------------------------------------------------------------ its answers */

/* Takes a line out of what has been read. */
static bool take_line(spk_prover *p, char line[SPK_PROVER_LINE_BYTES])
{
    char *newline;
    while ((newline = memchr(p->line, '\n', p->used)) != NULL) {
        const size_t length = (size_t)(newline - p->line);
        const bool rest = p->skipping;
        memcpy(line, p->line, length);
        line[length] = '\0';
        p->used -= length + 1;
        memmove(p->line, newline + 1, p->used);
        p->skipping = false;
        if (!rest)
            return true;
    }
    if (p->used < SPK_PROVER_LINE_BYTES)
        return false;
    const bool rest = p->skipping;
    memcpy(line, p->line, SPK_PROVER_LINE_BYTES - 1);
    line[SPK_PROVER_LINE_BYTES - 1] = '\0';
    p->used = 0;
    p->skipping = true;
    return !rest;
}

/* Whether it has ended; it stays to be waited for. What it left behind may hold its end of the pipe open for as long as it likes. */
static bool has_ended(const spk_prover *p)
{
    siginfo_t info = {.si_pid = 0};
    if (p->pid == 0)
        return false;
    const int result = waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT);
    return result == 0 ? info.si_pid != 0 : errno == ECHILD; /* ECHILD: the host program has had it waited for */
}

spk_answer spk_prover_line(spk_prover *p, double end_us, const spk_stop *stop, char line[SPK_PROVER_LINE_BYTES])
{
    for (;;) {
        if (take_line(p, line))
            return SPK_ANSWER_LINE;
        if (spk_stop_asked(stop))
            return SPK_ANSWER_STOPPED;
        struct pollfd ready = {.fd = p->answers, .events = POLLIN};
        const bool late = spk_now_us() > end_us, ended = has_ended(p);
        if (poll(&ready, 1, late || ended ? 0 : 50) <= 0) {
            if (ended) /* and all that it said has been read */
                return SPK_ANSWER_END;
            if (late)
                return SPK_ANSWER_LATE;
            continue;
        }
        const ssize_t got = read(p->answers, p->line + p->used, SPK_PROVER_LINE_BYTES - p->used);
        if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN))
            return SPK_ANSWER_END;
        p->used += got > 0 ? (size_t)got : 0;
        if (late && (p->skipping || ended)) /* a flood without an end of line, or from one that it left behind */
            return SPK_ANSWER_LATE;
    }
}
