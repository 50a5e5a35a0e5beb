/* sparsek store: looks at the store and moves it about. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/c_locale.h"
#include "base/nearest.h"
#include "cli/args/command.h"
#include "cli/base/table.h"
#include "cli/base/term.h"
#include "cli/base/text.h"
#include "cli/commands/commands.h"
#include "cli/io/files.h"
#include "cli/io/json.h"
#include "cli/io/messages.h"
#include "cli/io/output.h"
#include "cli/io/session.h"
#include "cli/io/signals.h"
#include "cli/problem/class_words.h"
#include "cli/result/result.h"

static const char about[] =
    "The store of what was learned.\n\n"
    "  path          where it is\n"
    "  list          every class: problem, choice, time, age, and what is provisional; --long: with the keys\n"
    "  export FILE   all of it as JSON; '-': to standard output\n"
    "  import FILE   takes the classes of an export ('-': from standard input); the newer entry of a class stays\n"
    "  merge FILE    takes the classes of another store, such as another machine's, likewise\n"
    "  verify        checks the database and every entry; exits 1 where one is bad, 3 where the store cannot be read\n"
    "  clear         forgets everything (it costs time to learn again, nothing else)";

typedef struct listing {
    json_t *results;
    table *rows;
    bool print_long; /* each class in lines of its own, with its key */
} listing;

static void print_one(const spk_store_entry *entry, const char *words, const char *age)
{
    const char *choice = entry->choice[0] ? cli_clean(entry->choice) : "no choice";
    char *text = cli_format("%s: %.1f us, of %d candidates, measured %s%s%s", choice, entry->median_us, entry->candidate_count, age,
                            entry->provisional ? ", provisional: " : "", result_provisional(entry->provisional));
    puts(cli_clean(words));
    term_paragraph(text, 2);
    fputs("  ", stdout);
    term_broken(cli_clean(entry->class_key), ";|");
    free(text);
}

static int visit(void *user, const spk_store_entry *entry)
{
    listing *l = user;
    char age[48], *words = class_words(entry->class_key);
    json_t *o = json_object();
    json_put(o, "class", json_text(entry->class_key));
    json_put(o, "problem", json_text(words));
    json_put(o, "device", json_text(entry->device));
    json_put(o, "choice", json_text(entry->choice));
    json_put(o, "median_us", entry->median_us > 0 ? json_number(entry->median_us) : json_null());
    json_put(o, "candidates", json_integer(entry->candidate_count));
    json_put(o, "measured_at", json_integer(entry->measured_at));
    json_put(o, "provisional", entry->provisional ? json_string(result_provisional(entry->provisional)) : json_null());
    json_push(l->results, o);
    result_age(entry->measured_at, age, sizeof(age));
    if (l->print_long) {
        print_one(entry, words, age);
    } else {
        table_row(l->rows, entry->provisional ? TABLE_FAINT : TABLE_PLAIN);
        table_cell(l->rows, 0, "%s", words);
        table_cell(l->rows, 1, "%s", entry->choice[0] ? entry->choice : "-");
        if (entry->median_us > 0)
            table_cell(l->rows, 2, "%.1f", entry->median_us);
        else
            table_cell(l->rows, 2, "-");
        table_cell(l->rows, 3, "%d", entry->candidate_count);
        table_cell(l->rows, 4, "%s", age);
        if (entry->provisional)
            table_cell(l->rows, 5, "%s", result_provisional(entry->provisional));
    }
    free(words);
    return cli_interrupted();
}

static int list(cli *app, bool long_form, json_t *results)
{
    const table_column columns[] = {{"problem", false, 0, false},   {"choice", false, 6, false},   {"median us", true, 5, false},
                                    {"candidates", true, 1, false}, {"measured", false, 2, false}, {"provisional", false, 3, false}};
    listing l = {results, table_make(columns, 6), long_form && cli_talks(app)};
    spk_status status = spk_store_list(app->context, visit, &l);
    if (status == SPK_OK && cli_talks(app) && json_array_size(results) == 0)
        puts("The store is empty.");
    else if (status == SPK_OK && cli_talks(app) && !l.print_long)
        table_print(l.rows, 0);
    table_release(&l.rows);
    return cli_status(app, NULL, status, NULL);
}

/* The store that the user named; NULL: nobody named one. */
static const char *named_store(const cli *app)
{
    const char *named = app->store ? app->store : getenv("SPARSEK_STORE");
    return named && named[0] ? named : NULL;
}

/* Where there is no file: one that was named is missing, and one that nobody named is not there yet. */
static int check_file(const cli *app, const char *action)
{
    struct stat facts;
    const char *path = spk_store_path(app->context), *named = named_store(app);
    const bool export = strcmp(action, "export") == 0;
    if (path[0] == 0 && named)
        return cli_fail(app, EXIT_INPUT, "store %s does not exist, and cannot be made", named);
    if (path[0] == 0 && export)
        return cli_fail(app, EXIT_INPUT, "there is nothing to export: the store is in memory");
    if (path[0] == 0) {
        cli_note(app, "the store is in memory: it has no file");
        return EXIT_DONE;
    }
    if (stat(path, &facts) == 0 || (errno != ENOENT && errno != ENOTDIR))
        return EXIT_DONE;
    if (export || named)
        return cli_fail(app, EXIT_INPUT, "store %s does not exist%s", path, export ? ": there is nothing to export" : "");
    cli_note(app, "nothing has been learned yet: %s does not exist", path);
    return EXIT_DONE;
}

/* What comes in is to be kept. */
static int check_kept(const cli *app)
{
    if (spk_store_path(app->context)[0] != 0 || named_store(app))
        return EXIT_DONE;
    return cli_fail(app, EXIT_ABSENT, "the store is in memory, and nothing that it takes is kept");
}

static json_t *counted(const char *action, const char *path, int64_t count, const char *unit)
{
    json_t *o = json_object();
    json_put(o, "action", json_string(action));
    json_put(o, "path", json_text(path));
    json_put(o, unit, json_integer(count));
    return o;
}

static bool is_readable(const char *path)
{
    char byte;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool readable = file >= 0 && read(file, &byte, 1) >= 0;
    if (file >= 0)
        close(file);
    return readable;
}

static int visit_nothing(void *user, const spk_store_entry *entry)
{
    (void)user;
    (void)entry;
    return 0;
}

/* EXIT_DONE where the store can be listed: one that cannot is an input that is wrong. */
static int check_listed(cli *app)
{
    return cli_status(app, NULL, spk_store_list(app->context, visit_nothing, NULL), NULL);
}

/* Says why an action failed. writes: to the store or to a file, which is what failed then, unless the store cannot even be listed. */
static int fail_with(cli *app, spk_status status, bool writes)
{
    int code = check_listed(app);
    if (code == EXIT_DONE)
        code = status == SPK_ERR_IO && writes ? cli_fail(app, EXIT_RESOURCES, "%s", spk_last_error(app->context))
                                              : cli_status(app, NULL, status, NULL);
    return code;
}

/* An export is JSON: over a store it would be a loss. */
static int check_no_database(const cli *app, const char *path)
{
    static const char begin[] = "SQLite format 3";
    char text[sizeof begin] = "";
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const bool database = file >= 0 && read(file, text, sizeof text) == (ssize_t)sizeof text && memcmp(text, begin, sizeof begin) == 0;
    if (file >= 0)
        close(file);
    return database ? cli_fail(app, EXIT_USAGE, "%s is a database, as stores are: an export, which is JSON, does not replace it", path)
                    : EXIT_DONE;
}

static const char *classes(int64_t count)
{
    return count == 1 ? "class" : "classes";
}

static int transfer(cli *app, const char *action, const char *path, json_t *results)
{
    bool out = strcmp(action, "export") == 0;
    int64_t count = 0;
    int code = out ? output_check(app, "export", path) : files_add(app, FILE_READ, "import", path);
    if (code == EXIT_DONE && out && strcmp(path, "-") != 0)
        code = check_no_database(app, path);
    if (code == EXIT_DONE)
        code = out ? check_file(app, action) : check_kept(app);
    if (code)
        return code;
    const char *file = out ? files_output(path) : files_input(path);
    spk_status status = out ? spk_store_export(app->context, file, &count) : spk_store_import(app->context, file, &count);
    if (status != SPK_OK)
        return fail_with(app, status, out || is_readable(file)); /* what is to be written: the file, or the store */
    json_push(results, counted(action, path, count, "classes"));
    if (cli_talks(app))
        printf("%lld %s %s %s\n", (long long)count, classes(count), out ? "written to" : "taken from", cli_clean(path));
    return EXIT_DONE;
}

/* Out of the other store as JSON into `file`, which lies in memory, and from there into ours, with the checks of both ways. */
static int take_classes(cli *app, spk_context *other, const char *path, int file, int64_t *count)
{
    char name[32];
    snprintf(name, sizeof(name), "/proc/self/fd/%d", file); /* the library knows a descriptor by that */
    spk_status status = spk_store_export(other, name, count);
    if (status == SPK_ERR_NO_SPACE)
        return cli_fail(app, EXIT_RESOURCES, "there is no room for the classes of %s on their way: %s", path, spk_last_error(other));
    if (status != SPK_OK)
        return cli_status(app, other, status, NULL);
    if (lseek(file, 0, SEEK_SET) != 0)
        return cli_fail(app, EXIT_RESOURCES, "the classes of %s cannot be read back: %s", path, spk_system_error(errno));
    status = spk_store_import(app->context, name, count);
    return status == SPK_OK ? EXIT_DONE : fail_with(app, status, true);
}

/* The classes of another store. */
static int merge(cli *app, const char *path, json_t *results)
{
    spk_context *other = NULL;
    int64_t count = 0;
    struct stat facts;
    int code = files_add(app, FILE_READ, "merge", path);
    if (code == EXIT_DONE)
        code = check_kept(app);
    if (code == EXIT_DONE && stat(path, &facts) != 0)
        code = cli_fail(app, EXIT_INPUT, "store %s does not exist", path);
    if (code)
        return code;
    const int file = memfd_create("sparsek-merge", MFD_CLOEXEC);
    if (file < 0)
        return cli_fail(app, EXIT_RESOURCES, "there is no room for the classes of %s on their way: %s", path, spk_system_error(errno));
    code = cli_context(app, path, 1, &other);
    if (code == EXIT_DONE)
        code = take_classes(app, other, path, file, &count);
    spk_context_destroy(&other);
    close(file);
    if (code)
        return code;
    json_push(results, counted("merge", path, count, "classes"));
    if (cli_talks(app))
        printf("%lld %s taken from %s\n", (long long)count, classes(count), cli_clean(path));
    return EXIT_DONE;
}

/* A store that cannot even be listed fails as `list` does; one that can be has bad entries. */
static int judge(cli *app, int64_t bad)
{
    if (bad == 0)
        return EXIT_DONE;
    const int code = check_listed(app);
    return code ? code : EXIT_SHORT;
}

static int verify(cli *app, json_t *results)
{
    int64_t good = 0, bad = 0;
    spk_status status = spk_store_verify(app->context, &good, &bad);
    if (status != SPK_OK)
        return cli_status(app, NULL, status, NULL);
    json_t *o = counted("verify", spk_store_path(app->context), good, "good");
    json_put(o, "bad", json_integer(bad));
    json_push(results, o);
    if (cli_talks(app))
        printf("%lld good entries, %lld bad\n", (long long)good, (long long)bad);
    return judge(app, bad);
}

static int path_of(cli *app, json_t *results)
{
    const char *path = spk_store_path(app->context);
    const char *named = named_store(app);
    if (path[0] == 0 && named)
        return cli_fail(app, EXIT_ABSENT, "the store has no path: %s does not exist, and cannot be made", named);
    if (path[0] == 0)
        return cli_fail(app, EXIT_ABSENT, "the store has no path: it is in memory");
    json_t *o = json_object();
    json_put(o, "path", json_text(path));
    json_push(results, o);
    if (cli_talks(app))
        puts(cli_clean(path));
    return EXIT_DONE;
}

static int act(cli *app, const args *a, bool long_form, json_t *results)
{
    const char *action = a->operands[0];
    if (strcmp(action, "path") == 0)
        return path_of(app, results);
    if (strcmp(action, "list") == 0 || strcmp(action, "verify") == 0) {
        int code = check_file(app, action);
        if (code)
            return code;
    }
    if (strcmp(action, "list") == 0)
        return list(app, long_form, results);
    if (strcmp(action, "export") == 0 || strcmp(action, "import") == 0)
        return transfer(app, action, a->operands[1], results);
    if (strcmp(action, "merge") == 0)
        return merge(app, a->operands[1], results);
    if (strcmp(action, "verify") == 0)
        return verify(app, results);
    const char *path = spk_store_path(app->context);
    int64_t removed = 0;
    spk_status status = spk_store_clear(app->context, &removed);
    if (status != SPK_OK)
        return fail_with(app, status, true);
    json_push(results, counted("clear", path, removed, "removed"));
    if (cli_talks(app))
        printf("%lld %s removed\n", (long long)removed, classes(removed));
    return EXIT_DONE;
}

enum { ACTIONS = 7 };

static int check_operands(const cli *app, const args *a)
{
    static const char *const actions[ACTIONS] = {"path", "list", "verify", "clear", "export", "import", "merge"};
    int at = 0;
    while (at < ACTIONS && strcmp(actions[at], a->operands[0]) != 0)
        at++;
    if (at == ACTIONS) {
        const char *near = spk_nearest(a->operands[0], actions, ACTIONS);
        return near ? cli_fail(app, EXIT_USAGE, "unknown action '%s'; did you mean '%s'?", a->operands[0], near)
                    : cli_fail(app, EXIT_USAGE, "unknown action '%s': path, list, export, import, merge, verify or clear", a->operands[0]);
    }
    if (at >= 4 && a->operand_count < 2)
        return cli_fail(app, EXIT_USAGE, "%s needs a FILE", a->operands[0]);
    if (at < 4 && a->operand_count > 1)
        return cli_fail(app, EXIT_USAGE, "%s takes no FILE", a->operands[0]);
    return EXIT_DONE;
}

int cmd_store(cli *app, int argc, char **argv)
{
    args a = {.command = "store",
              .synopsis = "path|list|export FILE|import FILE|merge FILE|verify|clear [options]",
              .about = about,
              .min_operands = 1,
              .max_operands = 2};
    a.often = "store json";
    a.operand_kind = ARGS_CHOICE;
    a.operand_values = "path|list|export|import|merge|verify|clear";
    a.examples = "sparsek store list\nsparsek store export choices.json\n";
    a.operand_names = "an action: path, list, export, import, merge, verify or clear";
    int long_form = 0;
    const args_option listed[] = {{"long", 0, ARGS_FLAG, &long_form, NULL, 0, 0, "list: each class with its key, as the store has it"}};
    args_add(&a, "Listing", listed, 1);
    cli_common_options(&a, app, HEEDS_STORE);
    int code = cli_parse(&a, argc, argv);
    if (code != ARGS_GO)
        return code;
    code = check_operands(app, &a);
    if (code == EXIT_DONE && long_form && strcmp(a.operands[0], "list") != 0)
        code = cli_fail(app, EXIT_USAGE, "--long is for 'store list'");
    if (code == EXIT_DONE)
        code = cli_open(app);
    if (code)
        return code;
    cli_interrupt_ends(app, true); /* the store is whole at every moment, and so is a file that was there */
    if (strcmp(a.operands[0], "export") == 0)
        cli_writes_in_folder_of(ASIDE_BY_LIBRARY, a.operands[1]);
    json_t *results = json_array();
    code = act(app, &a, long_form, results);
    if (code == EXIT_DONE || code == EXIT_SHORT)
        return json_finish(app, json_envelope(app, results), code);
    json_decref(results);
    return code;
}
