/* A built-in function by its name alone, where a `fn` is expected: `reduce[n](x, fmax, -inf)`,
 * `act: fn = exp`.
 *
 * Input: the name. Output: the tree of `fn exp(a) = exp(a);`, all of it at the place of the name,
 * so that everything that takes a fn takes it. Those that work along axes, ask about memory or have
 * an effect are none: reported.
 */
#include "frontend/builtins.h"

#include <string.h>

/* How many values its fn has; 0: it is none. */
static uint32_t values_of(const Builtin *row) {
    switch (row->family) {
    case FAMILY_MATH:
    case FAMILY_POW:
    case FAMILY_FMA:
    case FAMILY_ABS:
    case FAMILY_DIVIDE:
    case FAMILY_BITS:
    case FAMILY_LOG2I:
        return row->least;
    case FAMILY_CHOOSE:
        return 2;
    case FAMILY_REDUCE:
    case FAMILY_MEAN:
    case FAMILY_VARIANCE:
    case FAMILY_ARG:
    case FAMILY_SCAN:
    case FAMILY_FOLD:
    case FAMILY_SORT:
    case FAMILY_TOPK:
    case FAMILY_EXPAND24:
    case FAMILY_DOT:
    case FAMILY_WINDOW:
    case FAMILY_INSIDE:
    case FAMILY_PRESENT:
    case FAMILY_RAND:
    case FAMILY_RANDBITS:
    case FAMILY_BITCAST:
    case FAMILY_ASM:
    case FAMILY_ATOMIC_CAS:
    case FAMILY_ASSERT:
    case FAMILY_STATIC_ASSERT:
    case FAMILY_PRINT:
        break;
    }
    return 0;
}

static Expr *name_at(Fe *fe, Str text, Span span) {
    Expr *e = ARENA_NEW(fe->arena, Expr);
    *e = (Expr){.kind = EXPR_NAME, .depth = 1, .span = span};
    e->name.name = (Name){text, span};
    return e;
}

bool builtin_fn(Fe *fe, Name name, Global *out) {
    const Builtin *row = builtin_row(name.text);
    uint32_t n = row ? values_of(row) : 0;
    if (n == 0)
        return false;
    Expr *call = ARENA_NEW(fe->arena, Expr);
    *call = (Expr){.kind = EXPR_CALL, .depth = 2, .span = name.span};
    call->call.callee = name_at(fe, name.text, name.span);
    Decl *fn = ARENA_NEW(fe->arena, Decl);
    *fn = (Decl){.kind = DECL_FN, .span = name.span, .name = name};
    fn->fn.value = call;
    for (uint32_t i = 0; i < n; i++) {
        Str text = intern_cstr(fe->interner, arena_printf(fe->arena, "%c", 'a' + (int)i));
        AstParam param = {.span = name.span, .pattern = {.span = name.span}};
        vec_push(fe->arena, &param.pattern.names, ((Name){text, name.span}));
        vec_push(fe->arena, &fn->fn.params, param);
        vec_push(fe->arena, &call->call.args,
                 ((Arg){.span = name.span, .value = name_at(fe, text, name.span)}));
    }
    *out = (Global){fe->names, fn};
    return true;
}

void builtin_report_name(Fe *fe, Name name) {
    const Builtin *row = builtin_row(name.text);
    Diag *d = fe_error(fe, DIAG_NOT_A_VALUE, name.span,
                       "`%s` is built in and no `fn`, it can only be called", name.text);
    diag_hint(fe->diags, d, "write `%s`", row->shape);
}
