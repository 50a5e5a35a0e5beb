/* Opens the library, multiplies on two threads and closes it, again and again, also from a thread that ends then: the OpenMP runtime's
 * threads outlive each dlclose, and must not lose their code. Usage: unload LIBRARY */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <sparsek/sparsek.h>

enum { TIMES = 24 };

static const char *path;

/* 0, or what went wrong. */
static const char *multiply(void *library)
{
    spk_status (*create)(const spk_context_options *, spk_context **);
    void (*destroy)(spk_context **);
    spk_status (*pattern_create)(spk_context *, const spk_bsr_indices *, spk_pattern **);
    void (*pattern_destroy)(spk_pattern **);
    spk_status (*compute)(spk_context *, spk_pattern *, const void *, const void *, const spk_tune_options *);
    void *symbols[] = {dlsym(library, "spk_context_create"), dlsym(library, "spk_context_destroy"), dlsym(library, "spk_pattern_create"),
                       dlsym(library, "spk_pattern_destroy"), dlsym(library, "spk_compute")};
    memcpy(&create, &symbols[0], sizeof create);
    memcpy(&destroy, &symbols[1], sizeof destroy);
    memcpy(&pattern_create, &symbols[2], sizeof pattern_create);
    memcpy(&pattern_destroy, &symbols[3], sizeof pattern_destroy);
    memcpy(&compute, &symbols[4], sizeof compute);

    const int32_t offsets[] = {0, 2, 3}, columns[] = {0, 1, 1};
    const float values[] = {1, 2, 3, 4, 5, 6, /**/ 1, 0, 0, 0, 1, 0, /**/ 2, 0, 0, 0, 0, 2},
                b[6 * 2] = {1, 1, 1, 2, 1, 3, 1, 4, 1, 5, 1, 6};
    float d[4 * 2] = {0};
    spk_context *context = NULL;
    spk_pattern *pattern = NULL;
    if (create(&(spk_context_options){SPK_SIZED(spk_context_options), .store_path = "", .threads = 2}, &context) != SPK_OK)
        return "no context";
    const spk_bsr_indices indices = {
        SPK_SIZED(spk_bsr_indices), .rows = 4, .cols = 6, .block_rows = 2, .block_cols = 3, .nnzb = 3, .row_offsets = offsets,
        .col_indices = columns};
    const char *wrong = NULL;
    if (pattern_create(context, &indices, &pattern) != SPK_OK)
        wrong = "no pattern";
    else if (compute(context, pattern, &(spk_spmm){SPK_SIZED(spk_spmm), .n = 2},
                     &(spk_spmm_args){SPK_SIZED(spk_spmm_args), .values = values, .b = b, .d = d, .alpha = 1},
                     &(spk_tune_options){SPK_SIZED(spk_tune_options), .tuning = SPK_TUNING_NOW, .budget_s = 0.01}) != SPK_OK)
        wrong = "no product";
    else if (d[0] != 7 || d[7] != 12)
        wrong = "a wrong product";
    pattern_destroy(&pattern);
    destroy(&context);
    return wrong;
}

static void *once(void *unused)
{
    (void)unused;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return dlerror();
    const char *wrong = multiply(library);
    if (dlclose(library) != 0)
        wrong = "dlclose failed";
    return (void *)wrong;
}

int main(int count, char **arguments)
{
    if (count != 2)
        return 2;
    path = arguments[1];
    for (int i = 0; i < TIMES; i++) {
        void *wrong = NULL;
        pthread_t thread;
        if (i % 2 == 0)
            wrong = once(NULL);
        else if (pthread_create(&thread, NULL, once, NULL) != 0 || pthread_join(thread, &wrong) != 0)
            wrong = "no thread";
        if (wrong != NULL) {
            fprintf(stderr, "round %d: %s\n", i, (const char *)wrong);
            return 1;
        }
    }
    printf("unload: %d times opened, used and closed\n", TIMES);
    return 0;
}
