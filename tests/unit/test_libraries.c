/* Vendor libraries are found without being opened, and one that is missing, broken or another one is only not used. */
#include <dlfcn.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/cpu/cpu.h"
#include "backend/search.h"

static spk_device *open_device(int threads)
{
    spk_executor executor = {.threads = threads};
    spk_device *device = NULL;
    assert_int_equal(spk_backend_cpu.open(&spk_mem_system, "cpu", &executor, &device), SPK_OK);
    return device;
}

typedef struct saved_environment {
    char *openblas, *blis, *mkl, *onednn, *interface, *threading;
} saved_environment;

static char *copy_variable(const char *name)
{
    const char *value = getenv(name);
    return value != NULL ? strdup(value) : NULL;
}

static void restore_variable(const char *name, char *value)
{
    if (value != NULL)
        setenv(name, value, 1);
    else
        unsetenv(name);
    free(value);
}

static int save(void **state)
{
    saved_environment *saved = malloc(sizeof *saved);
    if (saved == NULL)
        return -1;
    *saved =
        (saved_environment){copy_variable("SPARSEK_OPENBLAS"), copy_variable("SPARSEK_BLIS"),        copy_variable("SPARSEK_MKL"),
                            copy_variable("SPARSEK_ONEDNN"),   copy_variable("MKL_INTERFACE_LAYER"), copy_variable("MKL_THREADING_LAYER")};
    *state = saved;
    return 0;
}

static int restore(void **state)
{
    saved_environment *saved = *state;
    restore_variable("SPARSEK_OPENBLAS", saved->openblas);
    restore_variable("SPARSEK_BLIS", saved->blis);
    restore_variable("SPARSEK_MKL", saved->mkl);
    restore_variable("SPARSEK_ONEDNN", saved->onednn);
    restore_variable("MKL_INTERFACE_LAYER", saved->interface);
    restore_variable("MKL_THREADING_LAYER", saved->threading);
    free(saved);
    return 0;
}

static spk_library_info info_of(spk_device *device, const char *name)
{
    spk_library_info info = {SPK_SIZED(spk_library_info)};
    for (int i = 0; i < spk_backend_cpu.library_count(); i++) {
        assert_int_equal(spk_backend_cpu.library_info(device, i, &info), SPK_OK);
        if (strcmp(info.name, name) == 0)
            return info;
    }
    fail_msg("there is no library %s", name);
    return info;
}

static void info_tells_version_or_reason(void **state)
{
    (void)state;
    spk_device *device = open_device(2);
    spk_library_info info = {SPK_SIZED(spk_library_info)};
    assert_int_equal(spk_libraries_info(device->libraries, -1, &info), SPK_ERR_ARGUMENT);
    assert_int_equal(spk_libraries_info(device->libraries, spk_libraries_count(), &info), SPK_ERR_ARGUMENT);
    for (int i = 0; i < spk_libraries_count(); i++) {
        assert_int_equal(spk_libraries_info(device->libraries, i, &info), SPK_OK);
        assert_true(info.found ? info.path[0] != '\0' && (info.version[0] != '\0') != (info.why[0] != '\0')
                               : info.path[0] == '\0' && info.why[0] != '\0');
        assert_int_equal(info.found && info.why[0] == '\0', spk_library_found(device, info.name));
    }
    assert_false(spk_library_found(device, "cublas"));
    void *handle = NULL;
    assert_int_equal(spk_library_open(device, "cublas", &handle), SPK_ERR_UNAVAILABLE);
    spk_backend_cpu.close(&device);
}

static void a_variable_forbids_or_misleads(void **state)
{
    (void)state;
    static const struct {
        const char *value, *why;
    } cases[] = {{"none", "not used"},
                 {"", "not used"},
                 {"/nowhere/libmkl_rt.so", "/nowhere/libmkl_rt.so"},
                 {"/tmp", "no such file"},
                 {"libmkl_rt.so.2", "not a full path"},
                 {"./libmkl_rt.so.2", "not a full path"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        setenv("SPARSEK_MKL", cases[i].value, 1);
        spk_device *device = open_device(1);
        assert_false(spk_library_found(device, "mkl"));
        void *handle = NULL;
        assert_int_equal(spk_library_open(device, "mkl", &handle), SPK_ERR_UNAVAILABLE);
        assert_non_null(strstr(spk_error_message(0), cases[i].why));
        spk_library_info info = info_of(device, "mkl");
        assert_int_equal(info.found, 0);
        assert_non_null(strstr(info.why, cases[i].why));
        assert_string_equal(info.version, "");
        char key[512];
        spk_libraries_key(device->libraries, key, sizeof key);
        assert_non_null(strstr(key, "mkl:none"));
        spk_backend_cpu.close(&device);
    }
}

/* A file that is no library: found, in the key, refused at the first use, and out of the race from then on. */
static void a_broken_library_only_loses_its_rows(void **state)
{
    (void)state;
    char path[] = "/tmp/sparsek broken XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, "not a library", 13), 13);
    close(file);
    setenv("SPARSEK_OPENBLAS", path, 1);
    spk_device *device = open_device(1);
    assert_true(spk_library_found(device, "openblas"));
    char key[512], small[8];
    spk_libraries_key(device->libraries, key, sizeof key);
    assert_null(strchr(key, ' '));
    assert_non_null(strstr(key, "openblas:#"));
    spk_libraries_key(device->libraries, small, sizeof small);
    assert_int_equal(strlen(small), sizeof small - 1);
    void *handle = NULL;
    for (int i = 0; i < 2; i++)
        assert_int_equal(spk_library_open(device, "openblas", &handle), SPK_ERR_UNAVAILABLE);
    assert_null(handle);
    assert_non_null(strstr(spk_error_message(0), path));
    assert_false(spk_library_found(device, "openblas"));
    spk_library_info info = info_of(device, "openblas");
    assert_int_equal(info.found, 1);
    assert_string_equal(info.path, path);
    assert_true(info.why[0] != '\0');
    spk_backend_cpu.close(&device);
    unlink(path);
}

/* A library that opens but is another one (the C library's maths) is refused with what it lacks. */
static void another_library_is_refused(void **state)
{
    (void)state;
    static const char *const maths[] = {"/lib/x86_64-linux-gnu/libm.so.6", "/lib/aarch64-linux-gnu/libm.so.6", "/usr/lib64/libm.so.6",
                                        "/lib/libm.so.6"};
    const char *path = NULL;
    for (size_t i = 0; path == NULL && i < sizeof maths / sizeof maths[0]; i++)
        if (access(maths[i], R_OK) == 0)
            path = maths[i];
    if (path == NULL)
        skip();
    setenv("SPARSEK_OPENBLAS", path, 1);
    setenv("SPARSEK_BLIS", path, 1);
    setenv("SPARSEK_MKL", path, 1);
    setenv("SPARSEK_ONEDNN", path, 1);
    spk_device *device = open_device(1);
    void *handle = NULL;
    assert_int_equal(spk_library_open(device, "openblas", &handle), SPK_ERR_UNAVAILABLE);
    assert_non_null(strstr(spk_error_message(0), "cblas_sgemm"));
    assert_int_equal(spk_library_open(device, "blis", &handle), SPK_ERR_UNAVAILABLE);
    assert_non_null(strstr(spk_error_message(0), "bli_thread_set_num_threads"));
    assert_int_equal(spk_library_open(device, "mkl", &handle), SPK_ERR_UNAVAILABLE);
    assert_non_null(strstr(spk_error_message(0), "libmkl_rt"));
    assert_int_equal(spk_library_open(device, "onednn", &handle), SPK_ERR_UNAVAILABLE);
    assert_non_null(strstr(spk_error_message(0), "dnnl_version"));
    assert_null(handle);
    spk_backend_cpu.close(&device);
}

static bool copy_file(const char *from, const char *to)
{
    FILE *in = fopen(from, "rb"), *out = in != NULL ? fopen(to, "wb") : NULL;
    char bytes[65536];
    bool good = out != NULL;
    for (size_t count = 0; good && (count = fread(bytes, 1, sizeof bytes, in)) > 0;)
        good = fwrite(bytes, 1, count, out) == count;
    if (in != NULL)
        fclose(in);
    return (out == NULL || fclose(out) == 0) && good;
}

/* MKL ends the process where a part of it is missing: it must not come to that. */
static void an_incomplete_mkl_is_refused(void **state)
{
    (void)state;
    spk_device *device = open_device(1);
    spk_library_info info = info_of(device, "mkl");
    char folder[] = "/tmp/sparsek-mkl-XXXXXX", file[256];
    bool usable = info.found && info.why[0] == '\0' && getenv("MKL_THREADING_LAYER") == NULL && mkdtemp(folder) != NULL;
    if (usable) {
        snprintf(file, sizeof file, "%s%s", folder, strrchr(info.path, '/'));
        assert_true(copy_file(info.path, file));
        setenv("SPARSEK_MKL", file, 1);
        spk_device *other = open_device(1);
        void *handle = NULL;
        assert_int_equal(spk_library_open(other, "mkl", &handle), SPK_ERR_UNAVAILABLE);
        assert_non_null(strstr(spk_error_message(0), "a part of it is not there"));
        assert_false(spk_library_found(other, "mkl"));
        spk_backend_cpu.close(&other);
        unlink(file);
        rmdir(folder);
    }
    spk_backend_cpu.close(&device);
    if (!usable)
        skip();
}

static void expect_incomplete_mkl(void)
{
    spk_device *device = open_device(1);
    void *handle = NULL;
    assert_true(spk_library_found(device, "mkl"));
    assert_int_equal(spk_library_open(device, "mkl", &handle), SPK_ERR_UNAVAILABLE);
    assert_null(handle);
    assert_non_null(strstr(spk_error_message(0), "a part of it is not there"));
    assert_false(spk_library_found(device, "mkl"));
    spk_backend_cpu.close(&device);
}

/* A refused library stays open. That must not make it one that the program had open: not for a second context, not by another path, not
 * when the program opens it, and not when another library's name led to it first. */
static void a_refusal_holds_for_every_context(void **state)
{
    (void)state;
    char folder[] = "/tmp/sparsek-refused-XXXXXX", file[3][64];
    assert_non_null(mkdtemp(folder));
    unsetenv("MKL_INTERFACE_LAYER");
    unsetenv("MKL_THREADING_LAYER");
    static const char *const names[] = {"libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so.1"};
    for (int i = 0; i < 3; i++)
        snprintf(file[i], sizeof file[i], "%s/%s", folder, names[i]);
    assert_true(copy_file(MKL_DOUBLE, file[0]));
    assert_int_equal(link(file[0], file[1]), 0);
    assert_true(copy_file(MKL_DOUBLE, file[2]));
    setenv("SPARSEK_MKL", file[0], 1);
    for (int i = 0; i < 2; i++)
        expect_incomplete_mkl();
    setenv("SPARSEK_MKL", file[1], 1);
    expect_incomplete_mkl();
    void *by_host = dlopen(file[0], RTLD_NOW | RTLD_LOCAL);
    assert_non_null(by_host);
    expect_incomplete_mkl();
    dlclose(by_host);

    setenv("SPARSEK_OPENBLAS", file[2], 1);
    setenv("SPARSEK_MKL", file[2], 1);
    spk_device *device = open_device(1);
    void *handle = NULL;
    assert_int_equal(spk_library_open(device, "openblas", &handle), SPK_ERR_UNAVAILABLE);
    spk_backend_cpu.close(&device);
    expect_incomplete_mkl();
    for (int i = 0; i < 3; i++)
        unlink(file[i]);
    rmdir(folder);
}

/* The program chose its parts itself: it is taken as it is, by every context. */
static void what_the_program_has_open_is_taken(void **state)
{
    (void)state;
    char folder[] = "/tmp/sparsek-host-XXXXXX", file[64];
    assert_non_null(mkdtemp(folder));
    unsetenv("MKL_INTERFACE_LAYER");
    unsetenv("MKL_THREADING_LAYER");
    snprintf(file, sizeof file, "%s/libmkl_rt.so.3", folder);
    assert_true(copy_file(MKL_DOUBLE, file));
    void *by_host = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(by_host);
    setenv("SPARSEK_MKL", file, 1);
    for (int i = 0; i < 2; i++) {
        spk_device *device = open_device(1);
        void *handle = NULL;
        assert_int_equal(spk_library_open(device, "mkl", &handle), SPK_OK);
        assert_string_equal(info_of(device, "mkl").version, "double");
        spk_backend_cpu.close(&device);
    }
    dlclose(by_host);
    unlink(file);
    rmdir(folder);
}

/* A real path, not the link; any change of the file changes the key. */
static void the_key_follows_the_file(void **state)
{
    (void)state;
    char folder[] = "/tmp/sparsek-key-XXXXXX", file[64], link_path[64], key[3][512];
    assert_non_null(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/libopenblas.so.0.3", folder);
    snprintf(link_path, sizeof link_path, "%s/libopenblas.so.0", folder);
    FILE *stream = fopen(file, "w");
    assert_non_null(stream);
    fclose(stream);
    assert_int_equal(symlink(file, link_path), 0);
    setenv("SPARSEK_OPENBLAS", link_path, 1);
    for (int i = 0; i < 3; i++) {
        struct spk_libraries *libraries = NULL;
        assert_int_equal(spk_libraries_find(&spk_mem_system, 2, &libraries), SPK_OK);
        spk_libraries_key(libraries, key[i], sizeof key[i]);
        spk_libraries_release(&libraries);
        assert_null(libraries);
        if (i == 1)
            assert_int_equal(truncate(file, 77), 0);
    }
    assert_non_null(strstr(key[0], file));
    assert_string_equal(key[0], key[1]);
    assert_string_not_equal(key[1], key[2]);
    assert_non_null(strstr(key[2], ":77:"));
    char *core = copy_variable("OPENBLAS_CORETYPE");
    for (int i = 0; i < 2; i++) { /* what it takes the processor for decides how fast it is */
        struct spk_libraries *libraries = NULL;
        if (i == 0)
            setenv("OPENBLAS_CORETYPE", "Some;core", 1);
        else
            unsetenv("OPENBLAS_CORETYPE");
        assert_int_equal(spk_libraries_find(&spk_mem_system, 2, &libraries), SPK_OK);
        spk_libraries_key(libraries, key[i], sizeof key[i]);
        spk_libraries_release(&libraries);
    }
    restore_variable("OPENBLAS_CORETYPE", core);
    assert_string_not_equal(key[0], key[1]);
    assert_non_null(strstr(key[0], ":#"));
    unlink(link_path);
    unlink(file);
    rmdir(folder);
}

/* In each folder the names in their order, which may be paths; what is not found is called by its file's name. */
static void names_are_tried_in_order(void **state)
{
    (void)state;
    static const char *const files[] = {"inner/libsparsek-none.so", "libsparsek-none.so", NULL};
    const spk_library_names names = {"none", "SPARSEK_NONE", files};
    char folder[] = "/tmp/sparsek-order-XXXXXX", inner[64], paths[2][96];
    char *before = copy_variable("LD_LIBRARY_PATH");
    assert_non_null(mkdtemp(folder));
    snprintf(inner, sizeof inner, "%s/inner", folder);
    assert_int_equal(mkdir(inner, 0700), 0);
    setenv("LD_LIBRARY_PATH", folder, 1);
    spk_library_file file;
    spk_library_search(&names, &file);
    assert_false(file.found);
    assert_non_null(strstr(file.why, "no libsparsek-none.so in"));
    for (int i = 1; i >= 0; i--) { /* the second name alone, then both */
        snprintf(paths[i], sizeof paths[i], "%s/%s", folder, files[i]);
        FILE *stream = fopen(paths[i], "w");
        assert_non_null(stream);
        fclose(stream);
        spk_library_search(&names, &file);
        assert_true(file.found);
        assert_string_equal(file.path, paths[i]);
    }
    restore_variable("LD_LIBRARY_PATH", before);
    for (int i = 0; i < 2; i++)
        unlink(paths[i]);
    rmdir(inner);
    rmdir(folder);
}

static int take_loads(struct dl_phdr_info *info, size_t size, void *loads)
{
    (void)size;
    *(unsigned long long *)loads = info->dlpi_adds;
    return 1;
}

/* How many libraries this process has ever loaded. */
static unsigned long long loads(void)
{
    unsigned long long count = 0;
    dl_iterate_phdr(take_loads, &count);
    return count;
}

/* What lies in the folder that a program works in is found by its full path, and by no other. */
static void relative_paths_are_passed_over(void **state)
{
    (void)state;
    static const char *const files[] = {"libstray.so.1", NULL}, *const folders[] = {"$SPARSEK_TEST_PLACE/lib", NULL};
    static const char *const relative[] = {"", ".", "./", "lib", "./lib", "lib/..", "lib:.", "lib/../lib"};
    static const char *const variables[] = {"VIRTUAL_ENV", "LD_LIBRARY_PATH", "SPARSEK_TEST_LIBRARY", "SPARSEK_TEST_PLACE"};
    const spk_library_names names = {"stray", "SPARSEK_TEST_LIBRARY", files};
    const spk_library_places places = {.folders = folders};
    char folder[] = "/tmp/sparsek-relative-XXXXXX", here[4096], path[8192];
    char *saved[4];
    assert_non_null(getcwd(here, sizeof here));
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(mkdir("lib", 0700), 0);
    fclose(fopen("libstray.so.1", "w"));
    fclose(fopen("lib/libstray.so.1", "w"));
    for (int i = 0; i < 4; i++) {
        saved[i] = copy_variable(variables[i]);
        unsetenv(variables[i]);
    }
    for (int i = 0; i < 4; i++) {
        for (size_t j = 0; j < sizeof relative / sizeof relative[0]; j++) {
            spk_library_file file;
            setenv(variables[i], relative[j], 1);
            spk_library_search(&names, &file);
            assert_false(file.found);
            spk_library_search_places(&names, &places, &file);
            assert_false(file.found);
        }
        spk_library_file file;
        snprintf(path, sizeof path, "%s%s", folder, i == 1 ? "/lib" : i == 2 ? "/lib/libstray.so.1" : "");
        setenv(variables[i], path, 1);
        spk_library_search_places(&names, &places, &file);
        assert_true(file.found);
        snprintf(path, sizeof path, "%s/lib/libstray.so.1", folder);
        assert_string_equal(file.path, path);
        unsetenv(variables[i]);
    }
    for (int i = 0; i < 4; i++)
        restore_variable(variables[i], saved[i]);
    assert_int_equal(unlink("libstray.so.1") | unlink("lib/libstray.so.1") | rmdir("lib") | chdir(here) | rmdir(folder), 0);
}

static void finding_opens_nothing(void **state)
{
    (void)state;
    const unsigned long long before = loads();
    for (int i = 0; i < 20; i++) {
        struct spk_libraries *libraries = NULL;
        assert_int_equal(spk_libraries_find(&spk_mem_system, 2, &libraries), SPK_OK);
        spk_libraries_release(&libraries);
    }
    assert_true(before > 0 && loads() == before);
    spk_mem_fail_after(0);
    struct spk_libraries *libraries = NULL;
    spk_status status = spk_libraries_find(&spk_mem_system, 2, &libraries);
    spk_mem_fail_after(-1);
    assert_int_equal(status, SPK_ERR_OUT_OF_MEMORY);
    assert_null(libraries);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finding_opens_nothing),
        cmocka_unit_test(names_are_tried_in_order),
        cmocka_unit_test(relative_paths_are_passed_over),
        cmocka_unit_test_setup_teardown(a_variable_forbids_or_misleads, save, restore),
        cmocka_unit_test_setup_teardown(a_broken_library_only_loses_its_rows, save, restore),
        cmocka_unit_test_setup_teardown(another_library_is_refused, save, restore),
        cmocka_unit_test_setup_teardown(an_incomplete_mkl_is_refused, save, restore),
        cmocka_unit_test_setup_teardown(a_refusal_holds_for_every_context, save, restore),
        cmocka_unit_test_setup_teardown(what_the_program_has_open_is_taken, save, restore),
        cmocka_unit_test_setup_teardown(the_key_follows_the_file, save, restore),
        cmocka_unit_test(info_tells_version_or_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
