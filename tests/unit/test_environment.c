/* A program that runs with more rights than its caller believes nothing of the caller's environment: no library, program or store is taken
 * from there. */
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/probe.h"
#include "backend/cuda/proof/prover.h"
#include "backend/search.h"
#include "base/cache.h"
#include "base/environment.h"
#include "store/store_internal.h"

static bool more_rights;

/* In the place of the C library's: the programs of this test run with their caller's rights. */
char *secure_getenv(const char *name)
{
    return more_rights || getauxval(AT_SECURE) != 0 ? NULL : getenv(name);
}

static int no_more_rights(void **state)
{
    (void)state;
    more_rights = false;
    return 0;
}

static void variables_are_read(void **state)
{
    (void)state;
    setenv("SPARSEK_TEST_VARIABLE", "", 1);
    assert_string_equal(spk_environment_value("SPARSEK_TEST_VARIABLE"), "");
    assert_null(spk_environment("SPARSEK_TEST_VARIABLE"));
    setenv("SPARSEK_TEST_VARIABLE", "x", 1);
    assert_string_equal(spk_environment("SPARSEK_TEST_VARIABLE"), "x");
    more_rights = true;
    assert_null(spk_environment_value("SPARSEK_TEST_VARIABLE"));
    assert_null(spk_environment("SPARSEK_TEST_VARIABLE"));
    unsetenv("SPARSEK_TEST_VARIABLE");
}

/* A file that the caller names as a library is found, then not. */
static void libraries_are_not_the_callers(void **state)
{
    (void)state;
    static const char *const files[] = {"libsparsek-test-of-search.so", NULL};
    const spk_library_names names = {"test", "SPARSEK_TEST_LIBRARY", files};
    char folder[] = "/tmp/sparsek-environment-XXXXXX", path[128];
    static spk_library_file file;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/%s", folder, files[0]);
    close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    for (int variable = 0; variable < 2; variable++) {
        const char *name = variable == 0 ? "SPARSEK_TEST_LIBRARY" : "LD_LIBRARY_PATH";
        setenv(name, variable == 0 ? path : folder, 1);
        for (int secure = 0; secure < 2; secure++) {
            more_rights = secure;
            spk_library_search(&names, &file);
            assert_int_equal(file.found, !secure);
        }
        more_rights = false;
        unsetenv(name);
    }
    unlink(path);
    rmdir(folder);
}

static void the_prover_is_not_the_callers(void **state)
{
    (void)state;
    char path[PATH_MAX], why[512];
    setenv("SPARSEK_PROVER", "/bin/true", 1);
    assert_true(spk_prover_find(path, sizeof path, why, sizeof why));
    assert_string_equal(path, "/bin/true");
    more_rights = true;
    if (spk_prover_find(path, sizeof path, why, sizeof why))
        assert_string_not_equal(path, "/bin/true");
    unsetenv("SPARSEK_PROVER");
}

static void the_store_is_not_the_callers(void **state)
{
    (void)state;
    static const char *const names[] = {"SPARSEK_STORE", "SPARSEK_CACHE_DIR", "XDG_CACHE_HOME", "HOME"};
    char *before[4];
    for (int i = 0; i < 4; i++) {
        before[i] = getenv(names[i]) != NULL ? strdup(getenv(names[i])) : NULL;
        setenv(names[i], "/tmp/of-the-caller", 1);
    }
    for (int secure = 0; secure < 2; secure++) {
        char *path = NULL, *folder = NULL;
        bool given = false;
        const char *why = NULL;
        more_rights = secure;
        assert_int_equal(spk_store_path_find(&spk_mem_system, NULL, &path, &given, &why), SPK_OK);
        assert_int_equal(spk_cache_folder(&spk_mem_system, &folder), SPK_OK);
        assert_string_equal(path, secure ? "" : "/tmp/of-the-caller");
        assert_string_equal(folder, secure ? "" : "/tmp/of-the-caller");
        spk_free(&spk_mem_system, path);
        spk_free(&spk_mem_system, folder);
    }
    for (int i = 0; i < 4; i++) {
        if (before[i] != NULL)
            setenv(names[i], before[i], 1);
        else
            unsetenv(names[i]);
        free(before[i]);
    }
}

/* With the kernel's own word: a copy of this program with the set-user-ID bit, started by another user. Only root can make one. */
static void a_set_user_id_program_reads_nothing(void **state)
{
    (void)state;
    char folder[] = "/tmp/sparsek-setuid-XXXXXX", program[64], command[PATH_MAX + 128];
    if (geteuid() != 0)
        return;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chmod(folder, 0755), 0);
    snprintf(program, sizeof program, "%s/program", folder);
    snprintf(command, sizeof command, "cp /proc/%d/exe %s && chmod 4755 %s", (int)getpid(), program, program);
    assert_int_equal(system(command), 0);
    for (int secure = 0; secure < 2; secure++) {
        const pid_t child = fork();
        if (child == 0) {
            setenv("SPARSEK_TEST_VARIABLE", "x", 1);
            if (secure && setresuid(65534, 65534, 65534) != 0)
                _exit(9);
            execl(program, program, "child", (char *)NULL);
            _exit(8);
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), secure ? 1 : 0);
    }
    unlink(program);
    rmdir(folder);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "child") == 0)
        return spk_environment("SPARSEK_TEST_VARIABLE") == NULL;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(variables_are_read, no_more_rights),
        cmocka_unit_test_teardown(libraries_are_not_the_callers, no_more_rights),
        cmocka_unit_test_teardown(the_prover_is_not_the_callers, no_more_rights),
        cmocka_unit_test_teardown(the_store_is_not_the_callers, no_more_rights),
        cmocka_unit_test(a_set_user_id_program_reads_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
