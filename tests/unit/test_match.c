/* Paths that match a pattern: those that glob() finds, in its order, and the newest version first where that is asked for. */
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/match.h"

static char folder[] = "/tmp/sparsek-match-XXXXXX";

static void add(const char *path)
{
    char whole[PATH_MAX];
    snprintf(whole, sizeof whole, "%s/%s", folder, path);
    for (char *slash = whole + strlen(folder) + 1; (slash = strchr(slash, '/')) != NULL; *slash++ = '/') {
        *slash = '\0';
        mkdir(whole, 0700);
    }
    const int file = open(whole, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    close(file);
}

static int make(void **state)
{
    (void)state;
    static const char *const files[] = {"cuda-12.6/lib64/x",
                                        "cuda-13.0/lib64/x",
                                        "cuda-9.2/lib64/x",
                                        "cuda/lib64/x",
                                        "cuda-13/y/x",
                                        ".cuda-14/lib64/x",
                                        "lib/python3.9/a/x",
                                        "lib/python3.11/a/x",
                                        "lib/python3.11/b/x",
                                        "lib/pyt/a",
                                        "a[b]c",
                                        "a.conf",
                                        "b.conf",
                                        ".c.conf",
                                        "B.conf",
                                        "10.conf",
                                        "9.conf",
                                        "a-b/x",
                                        "a/x",
                                        "a+/x"};
    if (mkdtemp(folder) == NULL)
        return -1;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        add(files[i]);
    return 0;
}

static int drop(void **state)
{
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

typedef struct found {
    char text[4096]; /* of the paths, each without the folder, and with a space behind */
    int left;        /* visits until the last */
} found;

static bool note(const char *path, const void *wanted)
{
    found *f = *(found *const *)wanted;
    if (access(path, F_OK) != 0)
        return false; /* what comes after the last wildcard is not looked for */
    const size_t used = strlen(f->text);
    snprintf(f->text + used, sizeof f->text - used, "%s ", path + strlen(folder) + 1);
    return --f->left == 0;
}

static bool matches(const char *pattern, spk_name_order order, int most, found *f)
{
    char whole[PATH_MAX];
    *f = (found){.left = most};
    snprintf(whole, sizeof whole, "%s/%s", folder, pattern);
    return spk_match_paths(whole, order, note, &(found *){f});
}

static void as_glob_does(void **state)
{
    (void)state;
    static const char *const patterns[] = {"*.conf",          ".*.conf",    "*",       "cuda*/lib64", "cuda-1?*",       "cuda-[0-9]*/*/x",
                                           "lib/python*/a/x", "lib/*/[!b]", "*/x",     "*/*/*",       "a\\[*",          "a?b?c",
                                           "nothing*",        "nothing/*",  "*/",      "a*/x",        "?.conf",         "[",
                                           "lib//*",          "cuda",       "*conf/*", "a.conf/*",    "lib/python3.*/*"};
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        char whole[PATH_MAX], wanted[4096] = "";
        found f;
        glob_t all;
        snprintf(whole, sizeof whole, "%s/%s", folder, patterns[i]);
        if (glob(whole, 0, NULL, &all) == 0) {
            for (size_t k = 0, used = 0; k < all.gl_pathc; k++)
                used += (size_t)snprintf(wanted + used, sizeof wanted - used, "%s ", all.gl_pathv[k] + strlen(folder) + 1);
            globfree(&all);
        }
        assert_false(matches(patterns[i], strcmp, 0, &f));
        if (strcmp(f.text, wanted) != 0)
            fail_msg("%s: \"%s\", where glob finds \"%s\"", patterns[i], f.text, wanted);
    }
}

static int newest_first(const char *a, const char *b)
{
    return strverscmp(b, a);
}

static void in_another_order(void **state)
{
    (void)state;
    found f;
    assert_false(matches("cuda*/lib64", newest_first, 0, &f));
    assert_string_equal(f.text, "cuda/lib64 cuda-13.0/lib64 cuda-12.6/lib64 cuda-9.2/lib64 ");
    assert_false(matches("lib/python*/*", newest_first, 0, &f));
    assert_string_equal(f.text, "lib/python3.11/b lib/python3.11/a lib/python3.9/a ");
}

static void a_visit_may_be_the_last(void **state)
{
    (void)state;
    found f;
    assert_true(matches("lib/python*/*", newest_first, 2, &f));
    assert_string_equal(f.text, "lib/python3.11/b lib/python3.11/a ");
    assert_true(matches("cuda", strcmp, 1, &f));
    assert_string_equal(f.text, "cuda ");
}

/* No more than a path's length, a name's, or so many folders in each other. */
static void patterns_too_long(void **state)
{
    (void)state;
    char pattern[2 * PATH_MAX];
    found f;
    for (int kind = 0; kind < 3; kind++) {
        size_t used = 0;
        while (used < sizeof pattern - 8)
            used += (size_t)snprintf(pattern + used, sizeof pattern - used, "%s", kind == 0 ? "*/" : kind == 1 ? "*a" : "lib/../");
        f = (found){.left = 0};
        assert_false(spk_match_paths(pattern, strcmp, note, &(found *){&f}));
        char whole[3 * PATH_MAX];
        snprintf(whole, sizeof whole, "%s/%s", folder, pattern);
        assert_false(spk_match_paths(whole, strcmp, note, &(found *){&f}));
        assert_string_equal(f.text, "");
    }
    assert_false(spk_match_paths("relative/*", strcmp, note, &(found *){&f}));
    assert_false(spk_match_paths("", strcmp, note, &(found *){&f}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_glob_does),
        cmocka_unit_test(in_another_order),
        cmocka_unit_test(a_visit_may_be_the_last),
        cmocka_unit_test(patterns_too_long),
    };
    return cmocka_run_group_tests(tests, make, drop);
}
