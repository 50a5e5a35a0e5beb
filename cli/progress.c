/* Progress on stderr: "[done/total] what", drawn at most ten times a second. */
#include "progress.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stats.h"
#include "term.h"

static bool drawn;
static double drawn_at;

bool progress_wanted(const cli *app)
{
    const char *term = getenv("TERM"); /* a dumb terminal cannot clear a line */
    return !app->quiet && isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
}

void progress_step(void *user, int64_t done, int64_t total, const char *what)
{
    const cli *app = user;
    double now = stats_now();
    if (!progress_wanted(app) || (drawn && now - drawn_at < 0.1))
        return;
    char line[256];
    int width = term_width(STDERR_FILENO);
    if (total > 0)
        snprintf(line, sizeof(line), "[%lld/%lld] %s", (long long)done, (long long)total, what ? what : "");
    else
        snprintf(line, sizeof(line), "%s", what ? what : "");
    fprintf(stderr, "\r%.*s\033[K", width > 1 ? width - 1 : 1, line);
    fflush(stderr);
    drawn = true;
    drawn_at = now;
}

void progress_phase(const cli *app, const char *what, const char *name)
{
    char text[200];
    snprintf(text, sizeof(text), "%s%s%s", what, name[0] ? " " : "", cli_clean(name));
    drawn_at = 0; /* now, not when the last line is old enough */
    progress_step((void *)app, 0, 0, text);
}

void progress_clear(void)
{
    if (!drawn)
        return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
    drawn = false;
}
