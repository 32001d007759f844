/* `schedule { }` clauses: entries for one kernel instance.
 *
 * Input: the clauses of a declaration, the target, -D. Output: a Schedule in the list. The first
 * alternative counts; a clause for the target overrides one for every target; `-D kernel.name=v`
 * overrides both. An entry names a binder, a dim, a generic value with a default, or a known word.
 */
#include "frontend/fe.h"

#include <stdlib.h>
#include <string.h>

/* A clause for a GPU is for what runs its schedule on the host too. */
static bool clause_counts(Fe *fe, const AstSchedule *s) {
    const char *target = fe->options->target, *own = s->target.text;
    if (!own || !target)
        return !own;
    return !strcmp(target, own) || (!strncmp(target, "sim-", 4) && !strcmp(target + 4, own));
}

static int64_t alt_value(const ScheduleAlt *alt) {
    switch (alt->kind) {
    case ALT_INT:
        return alt->integer;
    case ALT_BOOL:
        return alt->boolean;
    case ALT_CALL:
        return alt->args.len && alt->args.data[0].kind == ALT_INT ? alt->args.data[0].integer : 0;
    case ALT_NAME:
        break;
    }
    return 0;
}

bool schedule_value(Fe *fe, const Decl *decl, Str name, int64_t *value) {
    bool found = false;
    for (uint32_t i = 0; i < decl->kernel.schedules.len; i++) {
        const AstSchedule *s = &decl->kernel.schedules.data[i];
        for (uint32_t k = 0; clause_counts(fe, s) && k < s->entries.len; k++) {
            const AstEntry *e = &s->entries.data[k];
            if (e->name.text != name || e->has_args)
                continue;
            *value = alt_value(&e->alts.data[0]);
            found = true;
        }
    }
    return found;
}

const char *schedule_word(Fe *fe, const Decl *decl, const char *name) {
    const char *word = NULL;
    for (int own = 0; own < 2; own++)
        for (uint32_t i = 0; i < decl->kernel.schedules.len; i++) {
            const AstSchedule *s = &decl->kernel.schedules.data[i];
            for (uint32_t k = 0; k < s->entries.len; k++) {
                const AstEntry *e = &s->entries.data[k];
                if ((s->target.text != NULL) == (own == 1) && clause_counts(fe, s) &&
                    !strcmp(e->name.text, name) && e->alts.data[0].kind == ALT_NAME)
                    word = e->alts.data[0].name.text;
            }
        }
    return word;
}

/* --- which names there are ------------------------------------------------------------------ */

static bool binders_have(const BinderVec *v, Str name) {
    for (uint32_t i = 0; i < v->len; i++)
        if (v->data[i].name.text == name)
            return true;
    return false;
}

static bool block_binds(const Block *block, Str name);

static bool stmt_binds(const Stmt *s, Str name) {
    if (!s)
        return false;
    switch (s->kind) {
    case STMT_AXIS:
        return binders_have(&s->axis, name);
    case STMT_PARALLEL:
    case STMT_FOR:
        return binders_have(&s->loop.binders, name) || block_binds(s->loop.body, name);
    case STMT_WHILE:
        return block_binds(s->while_.body, name);
    case STMT_IF:
        return block_binds(s->if_.then, name) || stmt_binds(s->if_.otherwise, name);
    case STMT_BLOCK:
        return block_binds(s->block, name);
    case STMT_LET:
    case STMT_VAR:
    case STMT_TEMP:
    case STMT_BREAK:
    case STMT_CONTINUE:
    case STMT_RETURN:
    case STMT_ASSIGN:
    case STMT_ATOMIC:
    case STMT_SCATTER:
    case STMT_EXPR:
        break;
    }
    return false;
}

static bool block_binds(const Block *block, Str name) {
    for (uint32_t i = 0; i < block->stmts.len; i++)
        if (stmt_binds(block->stmts.data[i], name))
            return true;
    return false;
}

static bool is_word(Str name, const char *word) {
    return !strcmp(name, word);
}

static bool is_known(Fe *fe, const Decl *decl, Str name) {
    static const char *const words[] = {"warps",  "stages",  "persistent", "order",
                                        "unroll", "cluster", "precision"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(words[i], name))
            return true;
    Entry *e = scope_find(fe, name);
    return (e && (e->kind == ENTRY_DIM || e->kind == ENTRY_LET || e->kind == ENTRY_POISON)) ||
           block_binds(decl->kernel.body, name);
}

static bool check_entry(Fe *fe, const Decl *decl, const AstEntry *e) {
    Name name = e->has_args && e->args.len ? e->args.data[0] : e->name;
    bool split = is_word(e->name.text, "split");
    if (e->has_args && ((!split && !is_word(e->name.text, "unroll")) || e->args.len != 1)) {
        Diag *d = fe_error(fe, DIAG_BAD_SCHEDULE, e->span, "`%s(...)` is not a schedule entry",
                           e->name.text);
        diag_hint(fe->diags, d, "write `split(k) = ...` or `unroll(k) = ...`");
        return false;
    }
    if (split && !e->has_args) {
        Diag *d = fe_error(fe, DIAG_BAD_SCHEDULE, e->span, "`split` does not say which loop");
        diag_hint(fe->diags, d, "write `split(k) = ...`");
        return false;
    }
    if (is_known(fe, decl, name.text))
        return true;
    Diag *d =
        fe_error(fe, DIAG_BAD_SCHEDULE, name.span,
                 "`%s` is no binder, dim or generic value of `%s`", name.text, decl->name.text);
    static const char *const words[] = {"warps",   "stages", "persistent", "order",
                                        "cluster", "unroll", "precision"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (name_distance(name.text, words[i]) <= 2) {
            diag_hint(fe->diags, d, "write `%s`", words[i]);
            return false;
        }
    const char *dims = dims_in_scope(fe);
    diag_hint(fe->diags, d,
              "name %sa binder of its loops, or one of: warps, stages, persistent, order, cluster, "
              "unroll",
              *dims ? arena_printf(fe->arena, "a dim (%s), ", dims) : "");
    return false;
}

/* --- values --------------------------------------------------------------------------------- */

enum {
    WARPS_MOST = 32,
    STAGES_MOST = 16,
    TILE_MOST = 1 << 20,
    ODD_MOST = 7,
    SPLIT_MOST = 1024,
    UNROLL_MOST = 16,
    CLUSTER_MOST = 8 /* on every GPU that has clusters */
};

static bool is_pow2(int64_t n) {
    return n > 0 && (n & (n - 1)) == 0;
}

/* A value that is a size or a count; NULL, or what is wrong. */
static const char *number_problem(Fe *fe, const AstEntry *e, int64_t n) {
    Str name = e->name.text;
    if (n <= 0)
        return "must be at least 1";
    if (is_word(name, "split"))
        return n > SPLIT_MOST ? "a loop is cut in at most 1024 parts" : NULL;
    if (is_word(name, "unroll"))
        return n > UNROLL_MOST ? "a loop's body is repeated at most 16 times" : NULL;
    if (is_word(name, "cluster"))
        return n > CLUSTER_MOST || !is_pow2(n) ? "a cluster has 1, 2, 4 or 8 programs" : NULL;
    if (is_word(name, "warps"))
        return n > WARPS_MOST ? "a program has at most 32 warps"
               : !is_pow2(n)  ? "the number of warps must be a power of two"
                              : NULL;
    if (is_word(name, "stages"))
        return n > STAGES_MOST ? "there are at most 16 stages" : NULL;
    if (n > TILE_MOST)
        return arena_printf(fe->arena, "a tile has at most %d elements along an axis", TILE_MOST);
    return n / (n & -n) <= ODD_MOST ? NULL
                                    : "a tile size is a power of two, or 3, 5 or 7 times one";
}

static bool is_generic(const Decl *decl, Str name) {
    for (uint32_t i = 0; i < decl->kernel.generics.len; i++)
        if (decl->kernel.generics.data[i].name.text == name)
            return true;
    return false;
}

/* Generics are checked where they get their value; the others are words or truth values. */
static bool takes_number(const Decl *decl, const AstEntry *e) {
    static const char *const words[] = {"persistent", "order", "precision"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (is_word(e->name.text, words[i]))
            return false;
    return e->has_args || !is_generic(decl, e->name.text);
}

static const char *entry_text(Fe *fe, const AstEntry *e) {
    return e->has_args ? arena_printf(fe->arena, "%s(%s)", e->name.text, e->args.data[0].text)
                       : e->name.text;
}

static bool bad_value(Fe *fe, const AstEntry *e, const char *problem) {
    fe_error(fe, DIAG_BAD_SCHEDULE, e->span, "`%s`: %s", entry_text(fe, e), problem);
    return false;
}

static bool check_alts(Fe *fe, const AstEntry *e) {
    for (uint32_t i = 0; i < e->alts.len; i++) {
        const ScheduleAlt *alt = &e->alts.data[i];
        const char *problem = NULL;
        switch (alt->kind) {
        case ALT_INT:
            problem = number_problem(fe, e, alt->integer);
            break;
        case ALT_NAME:
        case ALT_BOOL:
        case ALT_CALL:
            problem = "write a number";
            break;
        }
        if (problem)
            return bad_value(fe, e, problem);
    }
    return true;
}

/* The value of `-D` in place of the clause's. */
static bool check_override(Fe *fe, const Decl *decl, const AstEntry *e) {
    const char *text;
    int64_t n;
    const char *name = entry_text(fe, e);
    if (!define_find(fe, decl->name.text, name, &text))
        return true;
    const char *problem =
        define_integer(text, DT_I64, &n) ? number_problem(fe, e, n) : "write a number";
    if (!problem)
        return true;
    return bad_value(fe, e, arena_printf(fe->arena, "-D %s=%s: %s", name, text, problem));
}

static bool is_precision(const char *word) {
    static const char *const words[] = {"ieee", "tf32", "tf32x3", "fast"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(word, words[i]))
            return true;
    return false;
}

/* What is wrong with a word, a truth value or a call; NULL: nothing. */
static const char *word_problem(Str name, const ScheduleAlt *alt) {
    if (is_word(name, "persistent"))
        return alt->kind == ALT_BOOL ? NULL : "write `true` or `false`";
    if (is_word(name, "precision"))
        return alt->kind == ALT_NAME && is_precision(alt->name.text)
                   ? NULL
                   : "write `ieee`, `tf32`, `tf32x3` or `fast`";
    if (alt->kind == ALT_NAME &&
        (is_word(alt->name.text, "row") || is_word(alt->name.text, "longest")))
        return NULL;
    bool grouped = alt->kind == ALT_CALL && is_word(alt->name.text, "grouped") &&
                   alt->args.len == 1 && alt_value(alt) >= 1;
    return grouped ? NULL : "write `row`, `longest`, or `grouped(g)` with a number of at least 1";
}

static bool check_words(Fe *fe, const Decl *decl, const AstEntry *e) {
    for (uint32_t i = 0; i < e->alts.len && !is_generic(decl, e->name.text); i++) {
        const char *problem = word_problem(e->name.text, &e->alts.data[i]);
        if (problem)
            return bad_value(fe, e, problem);
    }
    return true;
}

/* What is a word or a truth value; a define has numbers and truth values only. */
static bool check_word_override(Fe *fe, const Decl *decl, const AstEntry *e) {
    const char *text;
    if (e->has_args || is_generic(decl, e->name.text) ||
        !define_find(fe, decl->name.text, e->name.text, &text))
        return true;
    const char *problem = "only a `schedule` clause chooses it";
    if (is_word(e->name.text, "persistent")) {
        if (!strcmp(text, "true") || !strcmp(text, "false"))
            return true;
        problem = "write `true` or `false`";
    }
    return bad_value(fe, e, arena_printf(fe->arena, "-D %s=%s: %s", e->name.text, text, problem));
}

static bool check_values(Fe *fe, const Decl *decl, const AstEntry *e) {
    if (!takes_number(decl, e))
        return check_words(fe, decl, e) && check_word_override(fe, decl, e);
    return check_alts(fe, e) && check_override(fe, decl, e);
}

/* --- entries -------------------------------------------------------------------------------- */

typedef VEC(ScheduleEntry) EntryList;

static ScheduleEntry make_entry(Fe *fe, const Decl *decl, const AstEntry *e) {
    const ScheduleAlt *alt = &e->alts.data[0];
    ScheduleEntry out = {.name = e->name.text,
                         .of = e->has_args ? e->args.data[0].text : NULL,
                         .value = alt_value(alt),
                         .word =
                             alt->kind == ALT_NAME || alt->kind == ALT_CALL ? alt->name.text : NULL,
                         .span = e->span};
    for (uint32_t i = 0; i < e->alts.len && i < sizeof out.alt / sizeof *out.alt; i++)
        out.alt[out.nalt++] = alt_value(&e->alts.data[i]);
    const char *text;
    if (define_find(fe, decl->name.text, entry_text(fe, e), &text)) {
        if (!define_integer(text, DT_I64, &out.value))
            out.value = !strcmp(text, "true");
        out.nalt = 0;
        out.word = NULL;
    }
    return out;
}

static void put_entry(Fe *fe, EntryList *list, ScheduleEntry entry) {
    for (uint32_t i = 0; i < list->len; i++)
        if (list->data[i].name == entry.name && list->data[i].of == entry.of) {
            list->data[i] = entry;
            return;
        }
    vec_push(fe->arena, list, entry);
}

/* Clauses without a target first, so that one with it overrides. */
void schedule_lower(Fe *fe, const Decl *decl, const char *instance) {
    EntryList list = {0};
    for (int own = 0; own < 2; own++)
        for (uint32_t i = 0; i < decl->kernel.schedules.len; i++) {
            const AstSchedule *s = &decl->kernel.schedules.data[i];
            for (uint32_t k = 0; k < s->entries.len; k++)
                if ((s->target.text != NULL) == (own == 1) &&
                    check_entry(fe, decl, &s->entries.data[k]) &&
                    check_values(fe, decl, &s->entries.data[k]) && clause_counts(fe, s))
                    put_entry(fe, &list, make_entry(fe, decl, &s->entries.data[k]));
        }
    if (list.len == 0 || !fe->schedules)
        return;
    ScheduleList *all = fe->schedules;
    Schedule *items = ARENA_ARRAY(fe->arena, Schedule, (size_t)all->n + 1);
    if (all->n)
        memcpy(items, all->items, (size_t)all->n * sizeof *items);
    items[all->n++] = (Schedule){
        .kernel = intern_cstr(fe->interner, instance), .n = (int)list.len, .entry = list.data};
    all->items = items;
}
