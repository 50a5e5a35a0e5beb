/* What a declaration declares. Where that is hard to tell, a name too many: it costs an edit that seems to matter, and nothing worse. */
#include "declare.h"

#include <string.h>

/* Words that are followed by a parenthesis and are no function's name. */
static bool is_attribute(const token *t)
{
    static const char *const words[] = {"__attribute__", "__launch_bounds__", "alignas",  "_Alignas",
                                        "__align__",     "decltype",          "noexcept", "asm"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (token_is_word(t, words[i]))
            return true;
    return false;
}

/* Behind template <...>. */
static const token *past_template(const token *t)
{
    while (token_is_word(t, "template") && token_is(t->next, "<")) {
        int angles = 0;
        for (t = t->next; t != NULL; t = t->next) {
            angles += token_is(t, "<") - token_is(t, ">") - 2 * token_is(t, ">>");
            if (angles <= 0)
                break;
        }
        t = t != NULL ? t->next : NULL;
    }
    return t;
}

/* Whether the brace that follows what was read begins a function's body. */
bool declare_begins_body(const token *first)
{
    int parens = 0, groups = 0; /* of arguments: attributes have some, too */
    bool arrow = false;
    const token *last = NULL;
    for (const token *t = past_template(first); t != NULL && !(parens == 0 && token_is(t, "{")); t = t->next) {
        if (t->directive)
            continue;
        if (parens == 0 && token_is(t, "="))
            return false;
        groups += parens == 0 && token_is(t, "(") && !is_attribute(last);
        parens += token_is(t, "(") - token_is(t, ")");
        arrow = arrow || (groups > 0 && parens == 0 && token_is(t, "->"));
        last = t;
    }
    return groups > 0 && (arrow || token_is(last, ")") || token_is_word(last, "const") || token_is_word(last, "noexcept"));
}

void declare_add_name(item *i, const token *t)
{
    i->names = grown(i->names, i->name_count, sizeof *i->names);
    i->names[i->name_count++] = t->text;
}

/* The name of a function; NULL: it is none, or one that is not understood. */
static const token *function_name(const token *t)
{
    const token *name = NULL, *before = NULL;
    int parens = 0, groups = 0;
    for (; t != NULL && !token_is(t, "{") && !(parens == 0 && token_is(t, "=")); before = t, t = t->next) {
        if (parens == 0 && token_is(t, "(") && !is_attribute(before)) {
            groups++;
            name = before != NULL && before->kind == TOKEN_WORD ? before : NULL;
        }
        parens += token_is(t, "(") - token_is(t, ")");
    }
    return groups == 1 ? name : NULL;
}

static bool has_outer(const token *t, const char *word)
{
    int depth = 0;
    for (; t != NULL; t = t->next) {
        if (depth == 0 && token_is_word(t, word))
            return true;
        depth += token_is(t, "{") + token_is(t, "(") - token_is(t, "}") - token_is(t, ")");
    }
    return false;
}

static bool defines_type(const token *t)
{
    return has_outer(t, "struct") || has_outer(t, "union") || has_outer(t, "enum") || has_outer(t, "class") || has_outer(t, "typedef");
}

/* Words that declare nothing. */
static bool is_keyword(const token *t)
{
    static const char *const words[] = {
        "auto",     "bool",         "char",       "class",         "const",        "constexpr",      "double", "enum",       "extern",
        "float",    "inline",       "int",        "long",          "restrict",     "short",          "signed", "static",     "struct",
        "typedef",  "union",        "unsigned",   "using",         "void",         "volatile",       "_Bool",  "__device__", "__global__",
        "__host__", "__constant__", "__shared__", "__attribute__", "__restrict__", "__forceinline__"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (token_is_word(t, words[i]))
            return true;
    return false;
}

/* Every word outside of braces, parentheses and values, as types and attributes are hard to tell from names: one too many is no fault. All
 * words of an enumeration, and of what has a pointer to a function, whose name stands in parentheses. */
static void add_declared(item *i, const token *t)
{
    bool all = has_outer(t, "enum");
    for (const token *p = t; p != NULL; p = p->next)
        all = all || (token_is(p, "(") && (token_is(p->next, "*") || token_is(p->next, "^")));
    int depth = 0;
    bool value = false;
    for (; t != NULL; t = t->next) {
        if (t->kind == TOKEN_WORD && !is_keyword(t) && (all || (depth == 0 && !value)))
            declare_add_name(i, t);
        depth += token_is(t, "{") + token_is(t, "(") + token_is(t, "[") - token_is(t, "}") - token_is(t, ")") - token_is(t, "]");
        if (depth == 0 && (token_is(t, "=") || token_is(t, ",")))
            value = token_is(t, "=");
    }
}

/* Of a function whose name is not understood: all words before its body. */
static void add_head(item *i, const token *t)
{
    for (; t != NULL && !token_is(t, "{"); t = t->next)
        if (t->kind == TOKEN_WORD && !is_keyword(t))
            declare_add_name(i, t);
}

void declare_add_outer(item *i, const token *t)
{
    i->outer = grown(i->outer, i->outer_count, sizeof *i->outer);
    i->outer[i->outer_count++] = t->text;
}

/* Of objects: the last word before each value, bound, comma and end. */
static void add_outer_objects(item *i, const token *t)
{
    int depth = 0;
    bool value = false;
    const token *word = NULL;
    for (; t != NULL; t = t->next) {
        const bool ends = token_is(t, "=") || token_is(t, "[") || token_is(t, ",") || token_is(t, ";");
        if (depth == 0 && !value && ends && word != NULL) {
            declare_add_outer(i, word);
            word = NULL;
        }
        if (depth == 0 && t->kind == TOKEN_WORD)
            word = t;
        if (token_is(t, "{") && !value) /* a type's body: its name is not for others */
            word = NULL;
        depth += token_is(t, "{") + token_is(t, "(") + token_is(t, "[") - token_is(t, "}") - token_is(t, ")") - token_is(t, "]");
        if (depth == 0 && (token_is(t, "=") || token_is(t, ",")))
            value = token_is(t, "=");
    }
}

/* Of a function whose name is not understood. */
static void add_outer_words(item *i, const token *t)
{
    for (; t != NULL && !token_is(t, "{"); t = t->next)
        if (t->kind == TOKEN_WORD && !is_keyword(t))
            declare_add_outer(i, t);
}

/* What the linker or the loader may do with it: nobody has to mention it. */
static bool is_used_unseen(const token *t)
{
    static const char *const words[] = {"alias", "constructor", "destructor", "ifunc", "weakref", "asm", "__asm__", "__asm", "operator"};
    int braces = 0;
    for (; t != NULL; t = t->next) {
        for (size_t i = 0; braces == 0 && i < sizeof words / sizeof words[0]; i++)
            if (token_is_word(t, words[i]))
                return true;
        braces += token_is(t, "{") - token_is(t, "}");
    }
    return false;
}

/* t: without the heads of what it stands in. */
void declare_names(item *i, const token *t)
{
    const bool local = has_outer(t, "static") || token_is_word(t, "typedef");
    if (token_is_word(t, "static_assert") || token_is_word(t, "_Static_assert")) { /* it computes nothing */
        declare_add_name(i, token_new(TOKEN_WORD, intern_text("static_assert;"))); /* which nobody mentions */
        return;
    }
    if (is_used_unseen(t) || (token_is_word(t, "using") && token_is_word(t->next, "namespace"))) {
        i->always = true;
        return;
    }
    const token *first = t;
    t = past_template(t);
    const bool body = declare_begins_body(t), type = !body && defines_type(t);
    const token *function = type ? NULL : function_name(t);
    if (!local && function != NULL && body)
        declare_add_outer(i, function);
    else if (!local && body)
        add_outer_words(i, t);
    else if (!local && function == NULL)
        add_outer_objects(i, t);
    if (function != NULL && function != first)
        declare_add_name(i, function);
    else if (body)
        add_head(i, t);
    else if (function != NULL) /* a macro that is not known for sure: it may declare anything */
        i->always = true;
    else
        add_declared(i, t);
    i->always = i->always || i->name_count == 0;
}
