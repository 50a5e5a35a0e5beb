/* A kernel that faults takes the program with it: says which one it was, and how to run it again. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/check/check.h"

/* What each thread of the check runs. Others, such as OpenMP's, work for the first. */
static char running[CHECK_MOST_PLACES][512];
static _Thread_local int here;

void check_running(int place, const char *text)
{
    here = place;
    snprintf(running[place], sizeof(running[place]), "%s", text);
}

static void on_crash(int number)
{
    static volatile sig_atomic_t crashes;
    while (crashes++) /* another thread is telling */
        pause();
    if (write(STDERR_FILENO, running[here], strlen(running[here])) < 0)
        _exit(128 + number);
    signal(number, SIG_DFL);
    raise(number);
}

void check_catch_crashes(void)
{
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
    struct sigaction old;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL) /* a sanitizer's own stays */
            signal(numbers[i], on_crash);
}
