#include "base/json_text.h"

#include "base/c_locale.h"

json_t *spk_json_load(json_load_callback_t read, void *user, size_t flags, json_error_t *error)
{
    const locale_t before = spk_c_locale_enter();
    json_t *json = json_load_callback(read, user, flags, error);
    spk_c_locale_leave(before);
    return json;
}

int spk_json_dump(const json_t *json, json_dump_callback_t take, void *user, size_t flags)
{
    const locale_t before = spk_c_locale_enter();
    const int failed = json_dump_callback(json, take, user, flags);
    spk_c_locale_leave(before);
    return failed;
}

char *spk_json_dumps(const json_t *json, size_t flags)
{
    const locale_t before = spk_c_locale_enter();
    char *text = json_dumps(json, flags);
    spk_c_locale_leave(before);
    return text;
}
