/* Signals: the first asks the work to end, the second ends the program, and so does the first where nothing has heeded it in time: a
 * single run of a large problem cannot be stopped. */
#include "cli/io/signals.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/base/cli.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__SANITIZE_UNDEFINED__)
enum { GRACE_S = 15 }; /* the instrumented builds of the tests are slow */
#else
enum { GRACE_S = 1 };
#endif

/* Written by the program, read by the signal handlers: only whole pointers and small numbers, which are lock free. */
static spk_context *volatile watched[2];
static volatile sig_atomic_t interruptions, ends_at_once, says_so = 1;
static const char *volatile aside;                        /* a file of this program's own that is being written */
static const char *volatile aside_folders[ASIDE_FOLDERS]; /* where one is being made: its name holds this process's number */

/* What getdents64 gives. */
typedef struct entry {
    uint64_t inode;
    int64_t next;
    unsigned short length;
    unsigned char kind;
    char name[];
} entry;

/* ".sparsek-<process>-"; by hand, since no printf is safe here. */
static size_t own_prefix(char *out)
{
    char digits[24];
    int count = 0;
    size_t length = strlen(strcpy(out, ".sparsek-"));
    for (long process = (long)getpid(); process > 0; process /= 10)
        digits[count++] = (char)('0' + process % 10);
    while (count > 0)
        out[length++] = digits[--count];
    out[length++] = '-';
    out[length] = 0;
    return length;
}

/* Only calls that a handler may make: opendir and readdir allocate. */
static void remove_in(const char *folder)
{
    _Alignas(entry) char list[4096];
    char prefix[64];
    size_t prefix_length = own_prefix(prefix);
    int directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return;
    for (long bytes; (bytes = syscall(SYS_getdents64, directory, list, sizeof(list))) > 0;)
        for (long at = 0; at < bytes;) {
            const entry *one = (const entry *)(list + at);
            if (strncmp(one->name, prefix, prefix_length) == 0)
                unlinkat(directory, one->name, 0);
            at += one->length;
        }
    close(directory);
}

static void remove_unfinished(void)
{
    const char *name = aside;
    if (name)
        unlink(name);
    for (int i = 0; i < ASIDE_FOLDERS; i++)
        if (aside_folders[i])
            remove_in(aside_folders[i]);
}

static _Noreturn void leave(int code)
{
    remove_unfinished();
    _exit(code);
}

static void on_signal(int number)
{
    static const char note[] = "sparsek: note: interrupted\n";
    if (interruptions++) /* the second Ctrl-C means it */
        leave(128 + number);
    if (ends_at_once) {
        ssize_t told = says_so ? write(STDERR_FILENO, note, sizeof(note) - 1) : 0;
        (void)told; /* nobody could be told that this failed */
        leave(EXIT_INTERRUPTED);
    }
    for (int i = 0; i < 2; i++)
        if (watched[i])
            spk_context_interrupt(watched[i]);
    alarm(GRACE_S);
}

static void on_alarm(int number)
{
    static const char note[] = "sparsek: note: interrupted; a long run was cut off\n";
    (void)number;
    if (!interruptions)
        return;
    ssize_t told = says_so ? write(STDERR_FILENO, note, sizeof(note) - 1) : 0;
    (void)told;
    leave(EXIT_INTERRUPTED);
}

/* Quits as the signal would have done, without leaving a file half written. */
static void on_quit(int number)
{
    remove_unfinished();
    signal(number, SIG_DFL);
    raise(number);
}

static void catch (int number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    sigaction(number, &action, NULL);
}

void cli_catch_signals(void)
{
    struct sigaction hangup, quit;
    catch (SIGINT, on_signal);
    catch (SIGTERM, on_signal);
    if (sigaction(SIGQUIT, NULL, &quit) == 0 && quit.sa_handler != SIG_IGN)
        catch (SIGQUIT, on_quit);
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN) /* nohup's wish stands */
        catch (SIGHUP, on_signal);
    catch (SIGALRM, on_alarm);
    signal(SIGPIPE, SIG_IGN); /* a reader that goes away is noticed at the end, so that a --json file is still written */
    signal(SIGXFSZ, SIG_IGN); /* a file that grows too large is a failed write */
}

bool cli_signal_ends(bool at_once, bool says)
{
    says_so = says;
    ends_at_once = at_once;
    return interruptions != 0;
}

bool cli_interrupted(void)
{
    if (interruptions)
        alarm(0);
    return interruptions != 0;
}

void cli_watch(int place, spk_context *context)
{
    watched[place] = context;
    if (context && interruptions)
        spk_context_interrupt(context);
}

void cli_writes_aside(const char *name)
{
    aside = name;
}

void cli_writes_in_folder_of(aside_writer writer, const char *target)
{
    static char folders[ASIDE_FOLDERS][4096];
    char *folder = folders[writer];
    const char *slash = target ? strrchr(target, '/') : NULL;
    size_t length = slash ? (size_t)(slash + 1 - target) : 1;
    aside_folders[writer] = NULL;
    if (!target || length >= sizeof(folders[writer]))
        return;
    memcpy(folder, slash ? target : ".", length);
    folder[length] = 0;
    aside_folders[writer] = folder;
}
