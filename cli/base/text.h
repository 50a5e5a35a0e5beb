/* Texts in memory of their own, which the caller frees: formatted, quoted for a shell, clean for a terminal. */
#ifndef SPARSEK_CLI_BASE_TEXT_H
#define SPARSEK_CLI_BASE_TEXT_H

#include <stdarg.h>

/* Exits with code 5 where there is no memory; cli_vformat returns NULL. */
__attribute__((format(printf, 1, 2))) char *cli_format(const char *format, ...);
__attribute__((format(printf, 1, 0))) char *cli_vformat(const char *format, va_list list);
char *cli_dashed(const char *name, int length); /* as options have it: "depth-v" of "depth_v" */
char *cli_quoted(const char *word);             /* as a shell reads it as one word */

/* A text of unknown origin (a file's name, a file's content) as it may reach a terminal: control characters as \x1b. Valid for the next
 * few calls, and not the caller's to free. */
const char *cli_clean(const char *text);

#endif
