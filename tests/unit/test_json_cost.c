/* The estimate of what a JSON text becomes in memory: never too little, and not far too much for a file's header. */
#include "unit/io_case.h"

#include <jansson.h>
#include <malloc.h>

#include "base/json_cost.h"

static int64_t live, most;

static void *count_malloc(size_t bytes)
{
    void *memory = malloc(bytes);
    live += memory ? (int64_t)malloc_usable_size(memory) + 8 : 0;
    most = live > most ? live : most;
    return memory;
}

static void count_free(void *memory)
{
    live -= memory ? (int64_t)malloc_usable_size(memory) + 8 : 0;
    free(memory);
}

static int64_t taken(const char *text, size_t length)
{
    json_error_t error;
    live = most = 0;
    json_t *root = json_loadb(text, length, 0, &error);
    if (!root)
        fail_msg("%.40s: %s", text, error.text);
    json_decref(root);
    return most;
}

static int64_t cost_of(const char *text, size_t length, size_t piece)
{
    spk_json_cost cost = {0};
    for (size_t at = 0; at < length; at += piece)
        spk_json_cost_add(&cost, text + at, length - at < piece ? length - at : piece);
    return cost.bytes;
}

static void test_never_too_little(void **state)
{
    (void)state;
    static const struct {
        const char *before, *repeated, *after;
    } texts[] = {{"[", "[],", "0]"},
                 {"[", "{},", "0]"},
                 {"[", "1,", "0]"},
                 {"[", "1.5,", "0]"},
                 {"[", "\"\",", "0]"},
                 {"[", "\"a\\\"]\\\\\",", "0]"},
                 {"[\"", "a", "\"]"},
                 {"[\"", "{[,:", "\"]"},
                 {"[", "{\"a\":{\"b\":[]}},", "0]"},
                 {"[", "{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]},", "0]"}};
    static const int counts[] = {0, 1, 7, 1000, 33000};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (size_t j = 0; j < sizeof counts / sizeof *counts; j++) {
            char *text = calloc((size_t)counts[j] * strlen(texts[i].repeated) + 20, 1), *at = text;
            assert_non_null(text);
            at = stpcpy(at, texts[i].before);
            for (int k = 0; k < counts[j]; k++)
                at = stpcpy(at, texts[i].repeated);
            at = stpcpy(at, texts[i].after);
            size_t length = (size_t)(at - text);
            int64_t cost = cost_of(text, length, length), used = taken(text, length);
            if (used > cost + 512) /* the parser's own */
                fail_msg("%s x %d: %lld estimated, %lld used", texts[i].repeated, counts[j], (long long)cost, (long long)used);
            assert_int_equal(cost, cost_of(text, length, 3));
            free(text);
        }
}

/* Objects of many keys, as a header of many tensors is. */
static void test_many_keys(void **state)
{
    (void)state;
    for (int count = 1; count <= 40000; count = count * 5 / 2 + 1) {
        char *text = malloc((size_t)count * 100 + 20), *at = text;
        assert_non_null(text);
        *at++ = '{';
        for (int i = 0; i < count; i++)
            at += sprintf(at, "%s\"layers.%d.weight\":{\"dtype\":\"F32\",\"shape\":[4,2],\"data_offsets\":[%d,%d]}", i ? "," : "", i,
                          32 * i, 32 * i + 32);
        *at++ = '}';
        *at = '\0';
        int64_t cost = cost_of(text, (size_t)(at - text), 4096), used = taken(text, (size_t)(at - text));
        assert_true(used <= cost + 512);
        assert_true(count < 10 || cost <= 3 * used);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_never_too_little), cmocka_unit_test(test_many_keys)};
    json_set_alloc_funcs(count_malloc, count_free);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
