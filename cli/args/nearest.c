/* What was meant: the nearest name, and other programs' words for the same thing. */
#include <string.h>

#include "base/nearest.h"
#include "cli/args/args.h"
#include "type/names.h"
#include "type/type.h"

/* The name that another word stands for, or NULL. */
static const char *alias(const char *text, const char *const (*words)[2], int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(words[i][0], text) == 0)
            return words[i][1];
    return NULL;
}

const char *args_nearest_of(const char *text, const char *list)
{
    enum { MOST_NAMES = 16, MOST_LENGTH = 32 };
    static char names[MOST_NAMES][MOST_LENGTH];
    const char *pointers[MOST_NAMES];
    int count = 0;
    for (const char *at = list; count < MOST_NAMES;) {
        size_t length = strcspn(at, "|");
        if (length < MOST_LENGTH) {
            memcpy(names[count], at, length);
            names[count][length] = 0;
            pointers[count] = names[count];
            count++;
        }
        if (!at[length])
            break;
        at += length + 1;
    }
    return spk_nearest(text, pointers, count);
}

const char *args_other_command(const char *text)
{
    static const char *const words[][2] = {
        {"prune", "convert --prune"},  {"benchmark", "bench"}, {"race", "bench"},          {"generate", "gen"},
        {"mask", "gen mask"},          {"list", "store list"}, {"export", "store export"}, {"import", "store import"},
        {"merge", "store merge"},      {"cache", "store"},     {"run", "compute"},         {"verify", "store verify"},
        {"spy", "inspect FILE --spy"},
    };
    return alias(text, words, sizeof(words) / sizeof(*words));
}

const char *args_nearest_command(const char *text, const char *const *names, int count)
{
    const char *meant = args_other_command(text);
    return meant ? meant : spk_nearest(text, names, count);
}

const char *args_nearest_key(const char *text, const char *const *names, int count)
{
    static const char *const words[][2] = {{"soft_cap", "use_softcap"}, {"soft-cap", "use-softcap"}};
    const char *meant = alias(text, words, sizeof(words) / sizeof(*words));
    for (int i = 0; meant && i < count; i++)
        if (strcmp(meant, names[i]) == 0)
            return meant;
    return spk_nearest(text, names, count);
}

const char *args_nearest_dtype(const char *text)
{
    char word[32] = ""; /* the table's words are in small letters */
    for (size_t i = 0; i < sizeof word - 1 && text[i]; i++)
        word[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] - 'A' + 'a' : text[i]);
    const spk_type *type = spk_type_meant(word);
    return type->name ? type->name : args_nearest_of(text, SPK_TYPES_OF_MATRICES);
}

int args_patterns(const char **names)
{
    int count = 0;
    while (count < ARGS_MOST_PATTERNS && spk_generator_name((spk_generator)(count + 1))) {
        names[count] = spk_generator_name((spk_generator)(count + 1));
        count++;
    }
    return count;
}

const char *args_nearest_pattern(const char *text)
{
    static const char *const words[][2] = {
        {"random", "uniform"}, {"band", "banded"},       {"tridiagonal", "banded"},    {"block-diagonal", "diagonal"},
        {"lower", "causal"},   {"triangular", "causal"}, {"sliding-window", "window"}, {"moe", "experts"},
        {"fem", "elasticity"}, {"zipf", "power-law"},
    };
    const char *names[ARGS_MOST_PATTERNS], *meant = alias(text, words, sizeof(words) / sizeof(*words));
    return meant ? meant : spk_nearest(text, names, args_patterns(names));
}

const char *args_nearest_kernel(const char *text)
{
    const char *names[256];
    int count = 0;
    for (int i = 0; i < spk_kernel_count() && count < 256; i++) {
        spk_kernel_info info = {SPK_SIZED(spk_kernel_info)};
        if (spk_kernel_get_info(i, &info) == SPK_OK)
            names[count++] = info.name;
    }
    return spk_nearest(text, names, count);
}
