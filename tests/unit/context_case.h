/* What unit tests of the public calls share: a context of two threads without a store, and a status that must be SPK_OK. After cmocka.h. */
#ifndef SPK_TEST_CONTEXT_CASE_H
#define SPK_TEST_CONTEXT_CASE_H

#include <stdlib.h>

#include <sparsek/sparsek.h>

static spk_context *context;

static int set_up(void **state)
{
    (void)state;
    return spk_context_create(&(spk_context_options){SPK_SIZED(spk_context_options), .store_path = "", .threads = 2}, &context) != SPK_OK;
}

static int tear_down(void **state)
{
    (void)state;
    spk_context_destroy(&context);
    return 0;
}

static void ok(spk_status status)
{
    if (status != SPK_OK)
        fail_msg("%s: %s", spk_status_name(status), spk_last_error(context));
}

/* Where each access is checked, a third of the candidates takes part, another one with each seed. */
static inline bool is_left_out(int candidate, uint64_t seed)
{
    return getenv("SPARSEK_TEST_QUICK") != NULL && ((uint64_t)candidate + seed) % 3 != 0;
}

/* What a library has only loops for on this processor it refuses when it is planned; own rows may not. */
static inline bool no_library_has_it(spk_status status, spk_kind kind)
{
    return status == SPK_ERR_UNSUPPORTED && kind != SPK_KIND_OWN && kind != SPK_KIND_REFERENCE;
}

#endif
