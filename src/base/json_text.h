/* JSON's numbers, which Jansson reads and writes by the C library, in the C locale. It knows a comma for a point by itself, but ends the
 * program where the point has several bytes, or another thread changes the locale meanwhile. */
#ifndef SPK_BASE_JSON_TEXT_H
#define SPK_BASE_JSON_TEXT_H

#include <jansson.h>

/* json_load_callback and json_dump_callback. */
json_t *spk_json_load(json_load_callback_t read, void *user, size_t flags, json_error_t *error);
int spk_json_dump(const json_t *json, json_dump_callback_t take, void *user, size_t flags);

/* json_dumps: the caller frees it; NULL where there is no memory. */
char *spk_json_dumps(const json_t *json, size_t flags);

#endif
