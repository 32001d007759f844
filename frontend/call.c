/* Calls: a `fn` is inlined with its axes and arguments bound; everything else is a builtin.
 *
 * Input: a call of the tree. Output: the Val of the result. A fn sees its own parameters and its
 * module's top level, nothing of the caller. A tensor that is passed stays unread until it is
 * indexed, so `x[h = p + r]` in a library function is one load.
 */
#include "frontend/fe.h"

#include <string.h>

static bool is_kernel(Fe *fe, Str name, Span *span) {
    const Decl *d = module_find(fe->main, name);
    if (!d || d->kind != DECL_KERNEL)
        return false;
    *span = d->name.span;
    return true;
}

static Val not_callable(Fe *fe, const Expr *e, const char *what) {
    fe_error(fe, DIAG_NOT_CALLABLE, e->call.callee->span, "%s is not a function", what);
    return val_poison();
}

void call_unknown(Fe *fe, const Expr *callee) {
    Span span;
    Name name = callee->name.name;
    if (!is_kernel(fe, name.text, &span)) {
        const char *indexed = fe->indexed;
        fe->indexed = NULL; /* no axis is called */
        report_unknown(fe, name);
        fe->indexed = indexed;
        return;
    }
    Diag *d = fe_error(fe, DIAG_NOT_CALLABLE, callee->span,
                       "`%s` is a kernel; a kernel is not callable", name.text);
    diag_note(fe->diags, d, span, "`%s` is declared here", name.text);
    diag_hint(fe->diags, d, "put the computation into a `fn` that both use");
}

Val call_expr(Fe *fe, const Expr *e) {
    const Expr *callee = e->call.callee;
    if (callee->kind != EXPR_NAME)
        return val_poison();
    Name module = callee->name.module, name = callee->name.name;
    if (!module.text) {
        Entry *entry = scope_find(fe, name.text);
        if (entry && entry->kind == ENTRY_LET && entry->val.kind == VAL_FN)
            return fn_call(fe, entry->val.fn, e);
        if (entry && entry->kind == ENTRY_POISON)
            return val_poison();
        if (entry && entry->kind != ENTRY_LET && !builtin_exists(name.text))
            return not_callable(fe, e, arena_printf(fe->arena, "`%s`", name.text));
    }
    Global g;
    if (global_find(fe, module, name, &g)) {
        if (!g.decl)
            return val_poison();
        if (g.decl->kind == DECL_FN)
            return fn_call(fe, g, e);
        return not_callable(fe, e, arena_printf(fe->arena, "the constant `%s`", name.text));
    }
    if (builtin_exists(name.text))
        return builtin_call(fe, e);
    call_unknown(fe, callee);
    return val_poison();
}

/* --- binding a call ------------------------------------------------------------------------- */

typedef struct Call {
    Global fn;
    const Expr *e;
    uint32_t naxes, nparams;
    Axis **axes;
    Val *args;
    Span *spans; /* of the arguments */
    bool *given;
    bool ok;
} Call;

static void call_axes(Fe *fe, Call *c) {
    const NameVec *formal = &c->fn.decl->fn.axes, *actual = &c->e->call.axes;
    if (formal->len != actual->len) {
        Diag *d = fe_error(fe, DIAG_ARGUMENT_COUNT, c->e->span,
                           "`%s` takes %u axes in brackets, %u given", c->fn.decl->name.text,
                           formal->len, actual->len);
        diag_note(fe->diags, d, c->fn.decl->name.span, "`%s` is declared here",
                  c->fn.decl->name.text);
        if (formal->len && !actual->len)
            diag_hint(fe->diags, d, "write `%s[%s%s](...)`", c->fn.decl->name.text,
                      formal->data[0].text, formal->len > 1 ? ", ..." : "");
        c->ok = false;
        return;
    }
    c->axes = ARENA_ARRAY(fe->arena, Axis *, formal->len);
    c->naxes = formal->len;
    for (uint32_t i = 0; i < formal->len; i++) {
        c->axes[i] = axis_find(fe, actual->data[i]);
        c->ok &= c->axes[i] != NULL;
        for (uint32_t j = 0; j < i && c->axes[i]; j++)
            if (c->axes[i] == c->axes[j]) {
                fe_error(fe, DIAG_AXIS_TWICE, actual->data[i].span, "axis `%s` is given twice",
                         actual->data[i].text);
                c->ok = false;
            }
    }
}

static int param_index(const Decl *fn, Str name) {
    for (uint32_t i = 0; i < fn->fn.params.len; i++)
        if (!fn->fn.params.data[i].pattern.is_tuple &&
            fn->fn.params.data[i].pattern.names.data[0].text == name)
            return (int)i;
    return -1;
}

static int argument_place(Fe *fe, Call *c, const Arg *arg, uint32_t position) {
    const Decl *fn = c->fn.decl;
    if (!arg->name.text) {
        if (position < c->nparams)
            return (int)position;
        Diag *d = fe_error(fe, DIAG_ARGUMENT_COUNT, arg->span, "`%s` takes %u argument%s",
                           fn->name.text, c->nparams, c->nparams == 1 ? "" : "s");
        diag_note(fe->diags, d, fn->name.span, "`%s` is declared here", fn->name.text);
        return -1;
    }
    int at = param_index(fn, arg->name.text);
    if (at < 0) {
        Diag *d = fe_error(fe, DIAG_UNKNOWN_NAME, arg->name.span, "`%s` has no parameter `%s`",
                           fn->name.text, arg->name.text);
        diag_note(fe->diags, d, fn->name.span, "`%s` is declared here", fn->name.text);
    }
    return at;
}

static void call_args(Fe *fe, Call *c) {
    const ArgVec *args = &c->e->call.args;
    bool full = false;
    for (uint32_t i = 0; i < args->len; i++) {
        const Arg *arg = &args->data[i];
        bool late = !arg->name.text && i > 0 && args->data[i - 1].name.text;
        if (late && !full) {
            Diag *d = fe_error(fe, DIAG_ARGUMENT_COUNT, arg->span,
                               "an argument by position behind one by name");
            diag_note(fe->diags, d, args->data[i - 1].span, "this one has a name");
            diag_hint(fe->diags, d, "give this one a name too, or put it in front");
        }
        full |= late;
        int at = full && !arg->name.text ? -1 : argument_place(fe, c, arg, i);
        Val v = expr_any(fe, arg->value);
        if (at < 0) {
            full = true;
            c->ok = false;
            continue;
        }
        if (c->given[at]) {
            Diag *d = fe_error(fe, DIAG_ARGUMENT_COUNT, arg->span, "`%s` of `%s` is given twice",
                               span_text(fe, c->fn.decl->fn.params.data[at].pattern.span),
                               c->fn.decl->name.text);
            diag_note(fe->diags, d, c->spans[at], "it has this one already");
            c->ok = false;
        }
        c->given[at] = true;
        c->spans[at] = arg->span;
        c->args[at] = v;
        c->ok &= val_ok(v);
    }
}

static void bind_generic(Fe *fe, const Decl *fn, Str name, Val arg) {
    for (uint32_t i = 0; i < fn->fn.generics.len; i++) {
        const Generic *g = &fn->fn.generics.data[i];
        if (g->kind != GENERIC_TYPE || g->name.text != name || scope_find(fe, name))
            continue;
        Entry *e = scope_add(fe, ENTRY_TYPE, g->name);
        Val settled = val_settle(fe, arg);
        e->dtype = val_dtype(settled);
    }
}

static Val typed_argument(Fe *fe, const Decl *fn, const AstParam *p, Val v, Span span) {
    if (!p->type || !val_ok(v) || v.kind == VAL_TUPLE || v.kind == VAL_FN)
        return v;
    if (p->type->dtype == DT_NONE)
        bind_generic(fe, fn, p->type->name.text, v);
    DType to = type_find(fe, p->type);
    if (to == DT_NONE)
        return val_poison();
    if (v.kind == VAL_TENSOR && val_dtype(v) == to)
        return v;
    return val_coerce(fe, v, to, false, span,
                      arena_printf(fe->arena, "`%s` of `%s`", param_name(p).text, fn->name.text));
}

static bool is_missing(const Call *c, uint32_t i) {
    return !c->given[i] && !c->fn.decl->fn.params.data[i].value;
}

/* "`lo`, `hi`": the parameters from `first` on that have neither an argument nor a default. */
static const char *missing_text(Fe *fe, const Call *c, uint32_t first) {
    const char *text = "";
    for (uint32_t i = first; i < c->nparams; i++)
        if (is_missing(c, i))
            text = arena_printf(fe->arena, "%s%s`%s`", text, *text ? ", " : "",
                                span_text(fe, c->fn.decl->fn.params.data[i].pattern.span));
    return text;
}

/* One report for all parameters of a call that have no value. */
static bool check_missing(Fe *fe, const Call *c, Span span) {
    const Decl *fn = c->fn.decl;
    uint32_t first = 0, count = 0;
    for (uint32_t i = c->nparams; i-- > 0;)
        if (is_missing(c, i)) {
            first = i;
            count++;
        }
    if (!count)
        return true;
    Diag *d = fe_error(fe, DIAG_ARGUMENT_COUNT, span, "`%s` needs %s for %s", fn->name.text,
                       count == 1 ? "an argument" : "arguments", missing_text(fe, c, first));
    diag_note(fe->diags, d, fn->fn.params.data[first].span, "the %sparameter is here",
              count == 1 ? "" : "first such ");
    return false;
}

/* One parameter: what was given, or its default in the fn's own scope. */
static bool bind_param(Fe *fe, Call *c, uint32_t i, Span span) {
    const Decl *fn = c->fn.decl;
    const AstParam *p = &fn->fn.params.data[i];
    Val v = c->given[i] ? c->args[i] : p->value ? expr_any(fe, p->value) : val_poison();
    v = typed_argument(fe, fn, p, v, c->given[i] ? c->spans[i] : span);
    bind_pattern(fe, &p->pattern, v);
    return val_ok(v);
}

bool fn_returns(Fe *fe, const Decl *fn) {
    const StmtVec *stmts = &fn->fn.body->stmts;
    if (stmts->len > 0 && vec_last(stmts)->kind == STMT_RETURN)
        return true;
    if (fe->incomplete)
        return false;
    Diag *d = fe_error(fe, DIAG_BAD_RETURN, fn->name.span, "`%s` does not end in `return`",
                       fn->name.text);
    diag_hint(fe->diags, d, "its last statement gives its value: `return x;`");
    return false;
}

static Val return_value(Fe *fe, const Decl *fn, const char *hint) {
    if (fn->fn.value) {
        fe->hint = hint;
        return expr_any(fe, fn->fn.value);
    }
    if (!fn_returns(fe, fn))
        return val_poison();
    const StmtVec *stmts = &fn->fn.body->stmts;
    uint32_t n = stmts->len;
    for (uint32_t i = 0; i + 1 < n; i++)
        stmt_any(fe, stmts->data[i]);
    fe->hint = hint;
    return expr_any(fe, stmts->data[n - 1]->value);
}

/* Axes that the fn made must not be in what it returns. */
static bool check_escape(Fe *fe, const Decl *fn, Val v, Span span) {
    if (v.kind == VAL_TUPLE) {
        for (uint32_t i = 0; i < v.n; i++)
            if (!check_escape(fe, fn, v.items[i], span))
                return false;
        return true;
    }
    if (v.kind != VAL_VALUE)
        return true;
    for (int i = 0; i < v.axes.n; i++) {
        Axis *axis = axis_by_id(fe, v.axes.id[i]);
        if (axis_info(fe, axis)->fn_level <= fe->fn_level)
            continue;
        Diag *d =
            fe_error(fe, DIAG_AXIS_ESCAPES, span, "axis `%s` is made in `%s` and would leave it",
                     axis->name, fn->name.text);
        diag_note(fe->diags, d, fn->name.span, "`%s` is declared here", fn->name.text);
        diag_hint(fe->diags, d, "reduce over `%s`, or make it a parameter: `fn %s[%s](...)`",
                  axis->name, fn->name.text, axis->name);
        return false;
    }
    return true;
}

bool kernel_has_room(Fe *fe, Span span) {
    const Kernel *k = fe->kernel;
    if (fe->too_large)
        return false;
    bool names = fe->entries.len <= NAMES_MAX && k->naxis <= NAMES_MAX && k->nmem <= NAMES_MAX;
    if (names && ++fe->work <= WORK_MAX && k->nvalue <= VALUES_MAX)
        return true;
    fe->too_large = true;
    Diag *d = fe_error(fe, DIAG_TOO_MANY, span, "the kernel `%s` becomes too large here: %s",
                       fe->decl->name.text,
                       names ? "too many operations, with those of what it calls"
                             : "too many names, axes or tensors at once");
    if (fe->fn_level > 0)
        diag_hint(fe->diags, d,
                  "functions that call others twice double with each level: keep "
                  "the result of a call with `let`");
    return false;
}

void report_recursion(Fe *fe, const Decl *decl, Span span) {
    Diag *d = fe_error(fe, DIAG_RECURSION, span, "`%s` needs itself", decl->name.text);
    diag_note(fe->diags, d, decl->name.span, "`%s` is declared here", decl->name.text);
    if (decl->kind == DECL_FN)
        diag_hint(fe->diags, d, "functions are inlined: write a loop, `for i in 0..n { }`");
}

bool fn_enter(Fe *fe, const Decl *decl, Span span) {
    for (uint32_t i = 0; i < fe->fn_level; i++)
        if (fe->active[i] == decl) {
            report_recursion(fe, decl, span);
            return false;
        }
    if (fe->fn_level == FN_DEPTH) {
        if (!fe->too_large)
            fe_error(fe, DIAG_TOO_DEEP, span, "calls of `%s` are nested too deeply",
                     decl->name.text);
        fe->too_large = true;
        return false;
    }
    fe->call_span[fe->fn_level] = span;
    fe->active[fe->fn_level++] = decl;
    if (!fn_was_entered(fe, decl))
        vec_push(fe->arena, &fe->entered, decl);
    return true;
}

bool fn_was_entered(const Fe *fe, const Decl *decl) {
    for (uint32_t i = 0; i < fe->entered.len; i++)
        if (fe->entered.data[i] == decl)
            return true;
    return false;
}

void fn_leave(Fe *fe) {
    fe->fn_level--;
}

static Val fn_inline(Fe *fe, Call *c, Span span, const char *hint) {
    const Decl *fn = c->fn.decl;
    if (!fn_enter(fe, fn, span))
        return val_poison();
    uint32_t mark, floor = fe->floor;
    SourceModule *names = fe->names;
    const char *indexed = fe->indexed;
    scope_open(fe, &mark);
    fe->floor = mark;
    fe->names = c->fn.module;
    fe->indexed = NULL;
    for (uint32_t i = 0; i < c->naxes; i++) {
        Entry *e = scope_add(fe, ENTRY_AXIS, fn->fn.axes.data[i]);
        e->axis = c->axes[i];
    }
    bool ok = check_missing(fe, c, span);
    for (uint32_t i = 0; i < c->nparams; i++)
        ok &= bind_param(fe, c, i, span);
    Val r = ok ? return_value(fe, fn, hint) : val_poison();
    if (fn->fn.result && val_ok(r)) {
        DType to = type_find(fe, fn->fn.result);
        r = val_coerce(fe, r, to, false, fn->fn.result->span, "the result");
    }
    fn_leave(fe);
    fe->names = names;
    fe->floor = floor;
    fe->indexed = indexed;
    scope_close(fe, mark);
    return check_escape(fe, fn, r, span) ? r : val_poison();
}

/* Nothing gives a fn's generics a value but the types of its arguments. */
bool fn_generics_known(Fe *fe, const Decl *fn) {
    for (uint32_t i = 0; i < fn->fn.generics.len; i++) {
        const Generic *g = &fn->fn.generics.data[i];
        if (g->kind == GENERIC_TYPE)
            continue;
        if (reported_at(fe, g->span))
            return false;
        Diag *d = fe_error(fe, DIAG_UNBOUND_GENERIC, g->span,
                           "nothing gives `%s` of `%s` a value: a `fn` has generics of types only",
                           g->name.text, fn->name.text);
        diag_hint(fe->diags, d, "make it a parameter: `fn %s(..., %s)`", fn->name.text,
                  g->name.text);
        return false;
    }
    return true;
}

Val fn_call(Fe *fe, Global fn, const Expr *e) {
    const char *hint = hint_take(fe);
    if (!fn_generics_known(fe, fn.decl))
        return val_poison();
    uint32_t n = fn.decl->fn.params.len;
    Call c = {.fn = fn,
              .e = e,
              .nparams = n,
              .ok = true,
              .args = ARENA_ARRAY(fe->arena, Val, n),
              .spans = ARENA_ARRAY(fe->arena, Span, n),
              .given = ARENA_ARRAY(fe->arena, bool, n)};
    call_axes(fe, &c);
    call_args(fe, &c);
    return c.ok ? fn_inline(fe, &c, e->span, hint) : val_poison();
}

Val fn_apply(Fe *fe, Global fn, uint32_t n, const Val *args, Span span) {
    if (fn.decl->fn.params.len != n || fn.decl->fn.axes.len) {
        fe_error(fe, DIAG_ARGUMENT_COUNT, span, "`%s` is given %u arguments and no axes here",
                 fn.decl->name.text, n);
        return val_poison();
    }
    Call c = {.fn = fn,
              .nparams = n,
              .ok = true,
              .args = ARENA_ARRAY(fe->arena, Val, n),
              .spans = ARENA_ARRAY(fe->arena, Span, n),
              .given = ARENA_ARRAY(fe->arena, bool, n)};
    for (uint32_t i = 0; i < n; i++) {
        c.args[i] = args[i];
        c.spans[i] = span;
        c.given[i] = true;
    }
    return fn_inline(fe, &c, span, NULL);
}
