/* Memory and text of the evidence tool. It runs for a moment and frees nothing; what goes wrong ends it. */
#ifndef EVIDENCE_TEXT_H
#define EVIDENCE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

_Noreturn void fail(const char *format, ...);
void *take(size_t bytes);                            /* zeroed */
void *grown(void *array, int count, size_t element); /* room for one element more than `count`; where there is room, the same */
char *format_text(const char *format, ...);

/* Equal texts have one address. */
const char *intern(const char *text, size_t length);
const char *intern_text(const char *text);

char *read_file(const char *path, size_t *length); /* NUL-terminated; NULL: there is none */
bool file_exists(const char *path);

#endif
