/* Progress on stderr: "[done/total] what", drawn at most ten times a second. */
#include "cli/io/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/base/clock.h"
#include "cli/base/term.h"
#include "cli/base/text.h"

static bool drawn;
static double drawn_at;
static char part[80]; /* "problem 3 of 40, some 2 min left: " */
static double parts_begun_at;

bool progress_wanted(const cli *app)
{
    const char *term = getenv("TERM"); /* a dumb terminal cannot clear a line */
    return !app->quiet && isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
}

void progress_step(void *user, int64_t done, int64_t total, const char *what)
{
    const cli *app = user;
    double now = clock_now_s();
    if (!progress_wanted(app) || (drawn && now - drawn_at < 0.1))
        return;
    char line[256];
    int width = term_width(STDERR_FILENO);
    if (total > 0)
        snprintf(line, sizeof(line), "%s[%lld/%lld] %s", part, (long long)done, (long long)total, what ? what : "");
    else
        snprintf(line, sizeof(line), "%s%s", part, what ? what : "");
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

void progress_part(int64_t at, int64_t count)
{
    part[0] = '\0';
    if (at == 0)
        parts_begun_at = clock_now_s();
    if (count < 2 || at >= count)
        return;
    const int used = snprintf(part, sizeof(part), "problem %lld of %lld", (long long)at + 1, (long long)count);
    const double left_s = at > 0 ? (clock_now_s() - parts_begun_at) / (double)at * (double)(count - at) : 0;
    const double unit_s = left_s >= 5400 ? 3600 : left_s >= 90 ? 60 : 1;
    const char *unit = unit_s == 3600 ? "h" : unit_s == 60 ? "min" : "s";
    if (left_s > 0)
        snprintf(part + used, sizeof(part) - (size_t)used, ", some %lld %s left: ", (long long)(left_s / unit_s + 0.5) + (left_s < 0.5),
                 unit);
    else
        snprintf(part + used, sizeof(part) - (size_t)used, ": ");
}

void progress_clear(void)
{
    if (!drawn)
        return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
    drawn = false;
}
