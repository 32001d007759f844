/* Names: scopes of a kernel or fn body, top-level lookup through imports, axes and element types.
 *
 * Input: names of the tree. Output: entries, globals, axes. Order of search: the open scopes down
 * to the floor of the fn being inlined, the module's own top level, its imports (a name in two of
 * them needs `nn.softmax`), then the builtins. Shadowing inside a body is an error.
 */
#include "frontend/fe.h"

#include "stdlib/library.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { CALLS_SHOWN = 4 };

static const char *idiom_hint(const char *name) {
    static const char *const rows[][2] = {
#define IDIOM(name, hint) {name, hint},
#include "frontend/idioms.def"
#undef IDIOM
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i][0], name))
            return rows[i][1];
    return NULL;
}

Diag *fe_error(Fe *fe, DiagId id, Span span, const char *format, ...) {
    va_list args;
    va_start(args, format);
    bool in_library = fe->fn_level > 0 && fe->names != fe->main;
    Diag *d = diag_vadd(fe->diags, id, in_library ? fe->call_span[0] : span, format, args);
    va_end(args);
    if (fe->instance)
        diag_note(fe->diags, d, fe->decl->name.span, "in the instance `%s`", fe->instance);
    if (in_library)
        diag_note(fe->diags, d, span, "here, in `%s`", fe->active[fe->fn_level - 1]->name.text);
    for (uint32_t i = fe->fn_level; !in_library && i > 0 && i + CALLS_SHOWN > fe->fn_level; i--)
        if (fe->active[i - 1]->kind == DECL_FN && fe->call_span[i - 1].begin != span.begin)
            diag_note(fe->diags, d, fe->call_span[i - 1], "in this call of `%s`",
                      fe->active[i - 1]->name.text);
    return d;
}

bool reported_at(const Fe *fe, Span span) {
    for (uint32_t i = 0; i < diags_count(fe->diags); i++) {
        Span at = diag_span(diags_at(fe->diags, i));
        if (at.begin >= span.begin && at.begin < span.end)
            return true;
    }
    return false;
}

void scope_open(Fe *fe, uint32_t *mark) {
    *mark = fe->entries.len;
}

void scope_close(Fe *fe, uint32_t mark) {
    for (uint32_t i = mark; fe->fn_level == 0 && i < fe->entries.len; i++)
        if (fe->entries.data[i].kind != ENTRY_POISON)
            vec_push(fe->arena, &fe->ended, fe->entries.data[i]);
    fe->entries.len = mark;
}

Entry *scope_find(Fe *fe, Str name) {
    for (uint32_t i = fe->entries.len; i > fe->floor; i--)
        if (fe->entries.data[i - 1].name == name)
            return &fe->entries.data[i - 1];
    return NULL;
}

Entry *scope_add(Fe *fe, EntryKind kind, Name name) {
    Entry *old = scope_find(fe, name.text);
    if (old && old->kind == ENTRY_DIM && kind == ENTRY_LET && !fe->nest && fe->is_head) {
        Diag *d = fe_error(fe, DIAG_SHADOWED, name.span, "`%s` is a dim already", name.text);
        diag_note(fe->diags, d, old->span, "`%s` is a dim here", name.text);
        diag_hint(fe->diags, d,
                  "leave the parameter out: a dim is bound by the tensor that has it, and is a "
                  "number in expressions");
    } else if (old && old->kind != ENTRY_POISON) {
        Diag *d = fe_error(fe, DIAG_SHADOWED, name.span,
                           "`%s` is the name of something in scope already", name.text);
        diag_note(fe->diags, d, old->span, "`%s` is declared here", name.text);
        diag_hint(fe->diags, d, "pick another name, for example `%s2`", name.text);
    }
    vec_push(
        fe->arena, &fe->entries,
        ((Entry){.kind = kind, .name = name.text, .span = name.span, .in_nest = fe->nest != NULL}));
    return &vec_last(&fe->entries);
}

void scope_let(Fe *fe, Name name, Val val) {
    if (!strcmp(name.text, "_"))
        return;
    Entry *e = scope_add(fe, val_ok(val) ? ENTRY_LET : ENTRY_POISON, name);
    e->val = val;
}

/* --- top level ------------------------------------------------------------------------------ */

/* Names are interned: the address is the name. */
static const Decl **index_slot(const SourceModule *m, Str name) {
    uint64_t hash = (uint64_t)(uintptr_t)name * 0x9e3779b97f4a7c15u;
    uint32_t at = (uint32_t)(hash >> 32) & (m->index_size - 1);
    while (m->index[at] && m->index[at]->name.text != name)
        at = (at + 1) & (m->index_size - 1);
    return &m->index[at];
}

void module_index(Fe *fe, SourceModule *m) {
    m->index_size = 16;
    while (m->index_size < m->ast->decls.len * 2)
        m->index_size *= 2;
    m->index = ARENA_ARRAY(fe->arena, const Decl *, m->index_size);
    for (uint32_t i = 0; i < m->ast->decls.len; i++) {
        const Decl *d = m->ast->decls.data[i];
        if (d->kind == DECL_IMPORT)
            continue;
        const Decl **slot = index_slot(m, d->name.text);
        if (!*slot) {
            *slot = d;
            continue;
        }
        Diag *r =
            fe_error(fe, DIAG_DUPLICATE, d->name.span, "`%s` is declared twice", d->name.text);
        diag_note(fe->diags, r, (*slot)->name.span, "the first one is here");
    }
}

const Decl *module_find(const SourceModule *m, Str name) {
    return *index_slot(m, name);
}

static const Decl *module_decl(const SourceModule *m, Str name) {
    const Decl *d = module_find(m, name);
    return d && d->kind != DECL_KERNEL ? d : NULL;
}

static void consider(const char *name, const char *candidate, const char **best, int *distance);

static void report_not_in_module(Fe *fe, const SourceModule *m, Name name) {
    const char *best = NULL;
    int distance = strlen(name.text) > 5 ? 3 : 2;
    for (uint32_t i = 0; i < m->ast->decls.len; i++)
        if (m->ast->decls.data[i]->kind == DECL_FN || m->ast->decls.data[i]->kind == DECL_CONST)
            consider(name.text, m->ast->decls.data[i]->name.text, &best, &distance);
    Diag *d =
        fe_error(fe, DIAG_UNKNOWN_NAME, name.span, "module `%s` has no `%s`", m->dotted, name.text);
    if (best)
        diag_hint(fe->diags, d, "write `%s.%s`", m->last, best);
}

static const char *dims_of(Fe *fe, const Tensor *t) {
    const char *text = "";
    for (int d = 0; d < t->mem->rank; d++)
        text =
            arena_printf(fe->arena, "%s%s%s", text, d ? ", " : "", t->text[d] ? t->text[d] : "_");
    return text;
}

/* The last dim that is an axis by its name. */
static const char *last_dim_axis(const Tensor *t) {
    for (int d = t->mem->rank; d-- > 0;)
        if (t->dim[d])
            return t->dim[d];
    return "n";
}

static void hint_member(Fe *fe, Diag *d, const Entry *e, Str base, Str member) {
    const char *idiom = idiom_hint(member);
    bool is_size = !strcmp(member, "shape") || !strcmp(member, "size");
    if (!strcmp(member, "T"))
        diag_hint(fe->diags, d,
                  "axes have names, so there is nothing to transpose: write `%s` alone, `y = %s;`",
                  base, base);
    else if ((!strcmp(member, "to") || !strcmp(member, "astype") || !strcmp(member, "type")) &&
             e->kind != ENTRY_TYPE)
        diag_hint(fe->diags, d, "a conversion is written with `as`: `%s as f16`", base);
    else if (builtin_along(member) && e->kind == ENTRY_TENSOR && e->tensor->mem->rank > 0)
        diag_hint(fe->diags, d,
                  "nothing has members here: call a function along an axis, `%s[%s](%s)`", member,
                  last_dim_axis(e->tensor), base);
    else if (is_size && e->kind == ENTRY_TENSOR)
        diag_hint(fe->diags, d, "the sizes of `%s` are its dims, numbers in expressions: %s", base,
                  dims_of(fe, e->tensor));
    else if (idiom)
        diag_hint(fe->diags, d, "%s", idiom);
    else
        diag_hint(fe->diags, d, "nothing has members here: call a function, `%s(%s)`", member,
                  base);
}

static bool find_in_module(Fe *fe, Name module, Name name, Global *out) {
    for (uint32_t i = 0; i < fe->names->imports.len; i++) {
        SourceModule *m = fe->names->imports.data[i];
        if (m->last == module.text) {
            const Decl *d = module_decl(m, name.text);
            *out = (Global){m, d};
            if (!d)
                report_not_in_module(fe, m, name);
            return true;
        }
    }
    *out = (Global){0};
    const Entry *e = scope_find(fe, module.text);
    if (e) {
        Diag *d = fe_error(fe, DIAG_UNKNOWN_NAME, name.span, "`%s` has no `.%s`: it is no module",
                           module.text, name.text);
        hint_member(fe, d, e, module.text, name.text);
        return true;
    }
    if (fe->incomplete)
        return true;
    Diag *d =
        fe_error(fe, DIAG_UNKNOWN_NAME, module.span, "no module `%s` is imported", module.text);
    const char *text, *dotted = arena_printf(fe->arena, "std.%s", module.text);
    size_t len;
    if (library_find(dotted, &text, &len))
        diag_hint(fe->diags, d, "write `import %s;` at the top of the file", dotted);
    else if (idiom_hint(name.text))
        diag_hint(fe->diags, d, "%s", idiom_hint(name.text));
    else if (builtin_shape(name.text))
        diag_hint(fe->diags, d, "it is built in: write `%s`", builtin_shape(name.text));
    return true;
}

bool global_find(Fe *fe, Name module, Name name, Global *out) {
    *out = (Global){0};
    if (module.text)
        return find_in_module(fe, module, name, out);
    const Decl *d = module_decl(fe->names, name.text);
    if (d) {
        *out = (Global){fe->names, d};
        return true;
    }
    SourceModule *first = NULL;
    for (uint32_t i = 0; i < fe->names->imports.len; i++) {
        SourceModule *m = fe->names->imports.data[i];
        const Decl *found = module_decl(m, name.text);
        if (!found)
            continue;
        if (first) {
            Diag *e = fe_error(fe, DIAG_AMBIGUOUS, name.span, "`%s` is in `%s` and in `%s`",
                               name.text, first->dotted, m->dotted);
            diag_note(fe->diags, e, out->decl->name.span, "one is here");
            diag_note(fe->diags, e, found->name.span, "the other is here");
            diag_hint(fe->diags, e, "write `%s.%s`", first->last, name.text);
            out->decl = NULL;
            return true;
        }
        first = m;
        *out = (Global){m, found};
    }
    return first != NULL;
}

/* --- unknown names -------------------------------------------------------------------------- */

static int min3(int a, int b, int c) {
    int m = a < b ? a : b;
    return m < c ? m : c;
}

/* Edits between two names (insert, delete, replace), at most 64 bytes of each. */
int name_distance(const char *a, const char *b) {
    int row[65], la = (int)strlen(a), lb = (int)strlen(b);
    if (la > 64 || lb > 64)
        return 99;
    for (int j = 0; j <= lb; j++)
        row[j] = j;
    for (int i = 1; i <= la; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= lb; j++) {
            int old = row[j];
            row[j] = min3(old + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = old;
        }
    }
    return row[lb];
}

static void consider(const char *name, const char *candidate, const char **best, int *distance) {
    int d = name_distance(name, candidate);
    if (d < *distance) {
        *distance = d;
        *best = candidate;
    }
}

static const char *nearest_entry(Fe *fe, const char *name, int *distance) {
    const char *best = NULL;
    size_t len = strlen(name);
    *distance = len > 4 ? 3 : len > 2 ? 2 : 1;
    for (uint32_t i = fe->floor; i < fe->entries.len; i++)
        if (fe->entries.data[i].kind != ENTRY_POISON && fe->entries.data[i].name[0] != '$')
            consider(name, fe->entries.data[i].name, &best, distance);
    return best;
}

static const char *nearest_name(Fe *fe, const char *name) {
    int distance;
    const char *best = nearest_entry(fe, name, &distance);
    for (uint32_t i = 0; i < fe->modules.len; i++) {
        const AstFile *ast = fe->modules.data[i]->ast;
        for (uint32_t k = 0; k < ast->decls.len; k++)
            if (ast->decls.data[k]->kind == DECL_FN || ast->decls.data[k]->kind == DECL_CONST)
                consider(name, ast->decls.data[k]->name.text, &best, &distance);
    }
    const char *builtin = builtin_nearest(name, &distance);
    return builtin ? builtin : best;
}

/* A function of the library, imported or not. */
typedef struct LibraryName {
    const char *module, *name;
} LibraryName;

static void consider_module(Fe *fe, const char *name, const char *module, const char *text,
                            size_t len, LibraryName *best, int *distance) {
    for (size_t at = 0; at + 4 < len; at++) {
        if (memcmp(text + at, "\nfn ", 4) != 0)
            continue;
        size_t n = at + 4;
        while (n < len && (isalnum((unsigned char)text[n]) || text[n] == '_'))
            n++;
        const char *candidate = arena_strndup(fe->arena, text + at + 4, n - at - 4);
        int d = name_distance(name, candidate);
        if (d < *distance) {
            *distance = d;
            *best = (LibraryName){module, candidate};
        }
    }
}

/* The one whose name has fewer than `distance` edits, or nothing. */
static LibraryName nearest_in_library(Fe *fe, const char *name, int distance) {
    LibraryName best = {0};
    const char *dotted, *text;
    size_t len;
    for (size_t i = 0; library_at(i, &dotted, &text, &len); i++)
        consider_module(fe, name, dotted, text, len, &best, &distance);
    return best;
}

/* The library module that has `name`. */
static const char *known_in_library(Fe *fe, const char *name) {
    return nearest_in_library(fe, name, 1).module;
}

/* Where the name is known, but not here; false where it is not. */
static bool hint_elsewhere(Fe *fe, Diag *d, Str name, bool is_axis) {
    for (uint32_t i = 0; fe->fn_level > 0 && i < fe->floor; i++)
        if (fe->entries.data[i].name == name && fe->entries.data[i].kind != ENTRY_POISON) {
            diag_note(fe->diags, d, fe->entries.data[i].span, "the caller's `%s` is here", name);
            const char *fn = fe->active[fe->fn_level - 1]->name.text;
            if (is_axis)
                diag_hint(fe->diags, d,
                          "a `fn` takes axes in brackets: `fn %s[a](...)`, called `%s[%s](...)`",
                          fn, fn, name);
            else
                diag_hint(fe->diags, d,
                          "a `fn` sees its parameters and the top level: pass `%s` as an argument",
                          name);
            return true;
        }
    for (uint32_t i = fe->ended.len; i > 0; i--)
        if (fe->ended.data[i - 1].name == name) {
            diag_note(fe->diags, d, fe->ended.data[i - 1].span,
                      "`%s` is declared here, in a block that has ended", name);
            return true;
        }
    const char *idiom = idiom_hint(name);
    if (idiom && !known_in_library(fe, name)) {
        diag_hint(fe->diags, d, "%s", idiom);
        return true;
    }
    return false;
}

/* The dim in scope that has this name in the other case, or NULL. */
static const char *dim_in_other_case(Fe *fe, const char *name) {
    for (uint32_t i = fe->floor; i < fe->entries.len; i++)
        if (fe->entries.data[i].kind == ENTRY_DIM && !strcasecmp(fe->entries.data[i].name, name))
            return fe->entries.data[i].name;
    return NULL;
}

const char *dims_in_scope(Fe *fe) {
    const char *text = "";
    for (uint32_t i = fe->floor; i < fe->entries.len; i++)
        if (fe->entries.data[i].kind == ENTRY_DIM)
            text = arena_printf(fe->arena, "%s%s`%s`", text, *text ? ", " : "",
                                fe->entries.data[i].name);
    return text;
}

/* An axis that nobody made, in an index or in the brackets of a call. */
static bool hint_axis(Fe *fe, Diag *d, const char *name, bool is_axis) {
    int distance;
    if (!is_axis && !fe->indexed)
        return false;
    const char *dim = dim_in_other_case(fe, name), *near = nearest_entry(fe, name, &distance);
    if (is_axis && dim)
        diag_hint(fe->diags, d,
                  "`%s` is a dim: write `%s`, or make an axis of it: `axis %s in %s;`", dim, dim,
                  name, dim);
    else if (!dim && near)
        diag_hint(fe->diags, d, "write `%s`", near);
    else if (!is_axis)
        diag_hint(fe->diags, d, "make an axis: `axis %s in %s;`", name, fe->indexed);
    else if (*dims_in_scope(fe))
        diag_hint(fe->diags, d, "a dim is an axis (here %s); others are made: `axis %s in ...;`",
                  dims_in_scope(fe), name);
    else if (fe->fn_level > 0)
        diag_hint(fe->diags, d, "a `fn` takes axes in brackets: `fn %s[%s](...)`",
                  fe->active[fe->fn_level - 1]->name.text, name);
    else
        return false;
    return true;
}

/* A dim that only expressions have: `N` of `off: i32[N + 1]`. */
static bool hint_head_dim(Fe *fe, Diag *d, const char *name) {
    const Expr *e = fe->head_dim;
    if (!e)
        return false;
    bool is_sum =
        e->kind == EXPR_BINARY && (e->binary.op == BINARY_ADD || e->binary.op == BINARY_SUB);
    bool by_number =
        is_sum && e->binary.left->kind == EXPR_NAME && e->binary.right->kind == EXPR_INT;
    if (by_number)
        diag_hint(
            fe->diags, d,
            "only a dim that is a plain name is bound by its tensor: write `%s1` for `%s`, and "
            "`where %s == %s1 %s %s`",
            name, span_text(fe, e->span), name, name, e->binary.op == BINARY_ADD ? "-" : "+",
            span_text(fe, e->binary.right->span));
    else
        diag_hint(
            fe->diags, d,
            "only a dim that is a plain name is bound by its tensor: write `%s1` for `%s`, and "
            "`where %s == ...` with what `%s` is then",
            name, span_text(fe, e->span), name, name);
    return true;
}

static Diag *report_unknown_as(Fe *fe, Name name, bool is_axis) {
    vec_push(fe->arena, &fe->entries,
             ((Entry){.kind = ENTRY_POISON, .name = name.text, .span = name.span}));
    if (fe->incomplete)
        return NULL; /* it may have stood where the text is wrong */
    Diag *d =
        fe_error(fe, DIAG_UNKNOWN_NAME, name.span, "nothing in scope is named `%s`", name.text);
    if (hint_elsewhere(fe, d, name.text, is_axis))
        return NULL;
    const char *module = known_in_library(fe, name.text);
    if (module) {
        diag_hint(fe->diags, d, "write `import %s;` at the top of the file", module);
        return NULL;
    }
    if (hint_axis(fe, d, name.text, is_axis) || hint_head_dim(fe, d, name.text))
        return NULL;
    const char *near = nearest_name(fe, name.text);
    LibraryName library = {0};
    if (!near && !is_axis && strlen(name.text) > 4)
        library = nearest_in_library(fe, name.text, 2);
    if (near)
        diag_hint(fe->diags, d, "write `%s`", near);
    else if (library.name)
        diag_hint(fe->diags, d, "write `%s`, and `import %s;` at the top of the file", library.name,
                  library.module);
    else if (fe->is_head && isupper((unsigned char)name.text[0]))
        diag_hint(fe->diags, d,
                  "a dim is bound by a tensor that has it, or defined by `where %s == ...`",
                  name.text);
    else
        return d;
    return NULL;
}

/* Reported once: the name is then in scope as something wrong. */
Diag *report_unknown(Fe *fe, Name name) {
    return report_unknown_as(fe, name, false);
}

/* --- axes and types ------------------------------------------------------------------------- */

AxisInfo *axis_info(Fe *fe, const Axis *axis) {
    while (fe->axis_info.len <= axis->id)
        vec_push(fe->arena, &fe->axis_info, (AxisInfo){0});
    return &fe->axis_info.data[axis->id];
}

Axis *axis_by_id(Fe *fe, uint16_t id) {
    return fe->kernel->axis[id];
}

/* The default axis of a dim that is no parameter (a `where` or a generic value), at its first use:
 * declared behind the ops that define the dims, so that every nest sees it. */
static Axis *dim_axis_late(Fe *fe, Entry *entry) {
    Builder b = fe->prologue && fe->prologue->next
                    ? ir_builder_before(fe->kernel, fe->prologue->next)
                : fe->prologue || !fe->kernel->body->first
                    ? ir_builder_at_end(fe->kernel, fe->kernel->body)
                    : ir_builder_before(fe->kernel, fe->kernel->body->first);
    b.span = entry->span;
    Value *hi = val_cast(fe, entry->val, DT_INDEX, entry->span);
    Axis *axis = ir_axis_window(&b, entry->name, NULL, ir_index(fe->kernel, 0), hi, 0);
    fe->prologue = fe->prologue ? fe->prologue->next : fe->kernel->body->first;
    AxisInfo *info = axis_info(fe, axis);
    info->axis = axis;
    info->lo = ir_index(fe->kernel, 0);
    info->hi = hi;
    return axis;
}

Axis *entry_axis(Fe *fe, Entry *entry) {
    if (entry->kind == ENTRY_DIM && !entry->axis && val_ok(entry->val))
        entry->axis = dim_axis_late(fe, entry);
    return entry->axis;
}

static const char *entry_word(const Entry *e) {
    switch (e->kind) {
    case ENTRY_LET:
        return "a value";
    case ENTRY_VAR:
        return "a `var`";
    case ENTRY_AXIS:
        return "an axis";
    case ENTRY_DIM:
        return "a dim";
    case ENTRY_TENSOR:
        return "a tensor";
    case ENTRY_TYPE:
        return "a type";
    case ENTRY_POISON:
        break;
    }
    return "something wrong";
}

Axis *axis_find(Fe *fe, Name name) {
    Entry *e = scope_find(fe, name.text);
    if (!e) {
        report_unknown_as(fe, name, true);
        return NULL;
    }
    if (e->kind == ENTRY_AXIS || e->kind == ENTRY_DIM)
        return entry_axis(fe, e);
    if (e->kind == ENTRY_POISON)
        return NULL;
    Diag *d = fe_error(fe, DIAG_NOT_AN_AXIS, name.span, "`%s` is %s, not an axis", name.text,
                       entry_word(e));
    diag_note(fe->diags, d, e->span, "`%s` is declared here", name.text);
    if (e->kind == ENTRY_LET && e->val.kind == VAL_VALUE && e->val.v->kind == VALUE_ARG)
        diag_hint(fe->diags, d, "bind it by `%s in tiles(...)` to make it an axis", name.text);
    return NULL;
}

/* The element type that has this name in other languages; NULL: none. */
static const char *type_elsewhere(const char *name) {
    static const char *const rows[][2] = {
        {"float32", "f32"},      {"fp32", "f32"},      {"single", "f32"},
        {"float16", "f16"},      {"fp16", "f16"},      {"half", "f16"},
        {"bfloat16", "bf16"},    {"float64", "f64"},   {"double", "f64"},
        {"fp64", "f64"},         {"int", "i32"},       {"int32", "i32"},
        {"int64", "i64"},        {"long", "i64"},      {"int16", "i16"},
        {"short", "i16"},        {"int8", "i8"},       {"char", "i8"},
        {"int4", "i4"},          {"uint8", "u8"},      {"uint16", "u16"},
        {"uint32", "u32"},       {"uint64", "u64"},    {"uint4", "u4"},
        {"unsigned", "u32"},     {"size_t", "index"},  {"float8_e4m3fn", "e4m3"},
        {"fp8e4", "e4m3"},       {"float8e4", "e4m3"}, {"fp8e5", "e5m2"},
        {"float8_e5m2", "e5m2"}, {"boolean", "bool"},  {"int1", "bool"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i][0], name))
            return rows[i][1];
    return NULL;
}

DType type_find(Fe *fe, const TypeRef *type) {
    if (type->dtype != DT_NONE)
        return type->dtype;
    Entry *e = scope_find(fe, type->name.text);
    if (e && e->kind == ENTRY_TYPE)
        return e->dtype;
    if (e && e->kind == ENTRY_POISON)
        return DT_NONE;
    Diag *d = fe_error(fe, DIAG_UNKNOWN_TYPE, type->name.span, "`%s` is not an element type",
                       type->name.text);
    const char *known = type_elsewhere(type->name.text);
    bool is_class = !strcmp(type->name.text, "float") || !strcmp(type->name.text, "integer") ||
                    !strcmp(type->name.text, "numeric") || !strcmp(type->name.text, "fp8");
    if (e)
        diag_note(fe->diags, d, e->span, "`%s` is declared here as %s", type->name.text,
                  entry_word(e));
    else if (is_class)
        diag_hint(fe->diags, d,
                  "it is a class of types: declare a type of it, `<T: %s>`, and "
                  "write `T`",
                  type->name.text);
    else if (!strcmp(type->name.text, "constexpr"))
        diag_hint(fe->diags, d,
                  "what is known at compile time is a generic: `<BLOCK: i32>` behind the "
                  "kernel's name");
    else if (known)
        diag_hint(fe->diags, d, "write `%s`", known);
    else
        diag_hint(fe->diags, d, "declare it as a generic: `<%s: float>`", type->name.text);
    return DT_NONE;
}

bool type_axes(Fe *fe, const TypeRef *type, AxisSet *out) {
    bool ok = true;
    *out = axes_none();
    for (uint32_t i = 0; i < type->dims.len; i++) {
        const Expr *e = type->dims.data[i];
        if (e->kind != EXPR_NAME || e->name.module.text) {
            if (e->kind != EXPR_ERROR)
                fe_error(fe, DIAG_NOT_AN_AXIS, e->span,
                         "a tile's type names axes; this is an expression");
            ok = false;
            continue;
        }
        Axis *axis = axis_find(fe, e->name.name);
        if (!axis) {
            ok = false;
            continue;
        }
        if (axes_has(*out, axis->id))
            fe_error(fe, DIAG_AXIS_TWICE, e->span, "axis `%s` is named twice", axis->name);
        if (!axes_add(out, axis->id)) {
            fe_error(fe, DIAG_TOO_MANY_AXES, e->span, "a value has at most %d axes", AXES_MAX);
            ok = false;
        }
    }
    return ok;
}
