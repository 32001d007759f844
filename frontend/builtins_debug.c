/* Built-in functions for debugging: assert, static_assert, print.
 *
 * Input: a call with its values evaluated. Output: an op without a result, or a report; what is
 * known at compile time is decided here.
 */
#include "frontend/builtins.h"

#include "ir/format.h"

#include <string.h>

void program_open(Fe *fe, Program *p, Span span) {
    p->opened = fe->nest == NULL;
    p->outer = fe->b;
    if (!p->opened)
        return;
    fe->b.span = span;
    fe->nest = ir_parallel(&fe->b, 0, NULL);
    p->outer = fe->b;
    fe->b = ir_builder_at_end(fe->kernel, fe->nest->region[0]);
    fe->b.span = span;
}

void program_close(Fe *fe, Program *p) {
    if (!p->opened)
        return;
    if (!fe->nest->region[0]->first)
        ir_op_unlink(fe->nest);
    fe->nest = NULL;
    fe->b = p->outer;
    fe->accesses.len = 0;
}

/* What a statement gives: no value, which is no error by itself. */
static Val nothing(void) {
    return (Val){.kind = VAL_TUPLE};
}

static const char *string_of(Fe *fe, const Expr *e) {
    return arena_strndup(fe->arena, e->string.data, e->string.len);
}

static const char *message_of(Fe *fe, BuiltinCall *c) {
    if (c->n < 2)
        return span_text(fe, builtin_span(c, 0));
    const Expr *e = c->e->call.args.data[1].value;
    return e->kind == EXPR_STRING ? string_of(fe, e) : span_text(fe, e->span);
}

Val builtin_assert(Fe *fe, BuiltinCall *c, bool is_static) {
    Val v = c->arg[0];
    if (val_dtype(v) != DT_BOOL) {
        Diag *d = fe_error(fe, DIAG_TYPE_MISMATCH, builtin_span(c, 0),
                           "`%s` needs a bool, this is %s", c->row->name, val_text(fe, v));
        diag_hint(fe->diags, d, "compare: `%s != 0`", span_text(fe, builtin_span(c, 0)));
        return val_poison();
    }
    bool known;
    const char *message = message_of(fe, c);
    if (val_const_bool(v, &known)) {
        if (!known)
            fe_error(fe, DIAG_ASSERT, c->e->span, "assertion failed: %s", message);
        return nothing();
    }
    if (is_static) {
        Diag *d = fe_error(fe, DIAG_NOT_CONSTANT, builtin_span(c, 0),
                           "this is not known at compile time");
        diag_hint(fe->diags, d, "what is about dims and arguments is checked at launch by `where`");
        return val_poison();
    }
    Value *spread = val_spread(fe, v, c->e->span);
    fe->b.span = c->e->span;
    Op *op = ir_build(&fe->b, &(OpInit){.kind = OP_ASSERT, .nin = 1, .in = &spread});
    op_set_str(fe->kernel, op, ATTR_msg, message);
    return nothing();
}

static bool check_format(Fe *fe, BuiltinCall *c, const Expr *e) {
    if (e->kind != EXPR_STRING) {
        Diag *d = fe_error(fe, DIAG_TYPE_MISMATCH, e->span, "`print` begins with a string");
        diag_hint(fe->diags, d, "write `print(\"{}\", %s)`", span_text(fe, e->span));
        return false;
    }
    const char *text = string_of(fe, e);
    int holes = format_count(text);
    if (strlen(text) != e->string.len || holes < 0) {
        Diag *d = fe_error(fe, DIAG_ARGUMENT_COUNT, e->span,
                           "a brace or NUL stands alone in the text of `print`");
        diag_hint(fe->diags, d, "write `{}` for a value, `{{` and `}}` for braces");
        return false;
    }
    if ((uint32_t)holes != c->n - 1) {
        fe_error(fe, DIAG_ARGUMENT_COUNT, c->e->span,
                 "the text of `print` has %d `{}`, there are %u values", holes, c->n - 1);
        return false;
    }
    return true;
}

Val builtin_print(Fe *fe, BuiltinCall *c) {
    const Expr *text = c->e->call.args.data[0].value;
    if (!check_format(fe, c, text))
        return val_poison();
    Value *in[ARGS_MAX];
    AxisSet all = axes_none();
    for (uint32_t i = 1; i < c->n; i++) {
        Val v = val_settle(fe, c->arg[i]);
        if (!val_union(fe, v, (Val){.kind = VAL_VALUE, .axes = all}, c->e->span, &all))
            return val_poison();
        in[i - 1] = val_spread(fe, v, c->e->span);
    }
    fe->b.span = c->e->span;
    Op *op = ir_build(&fe->b, &(OpInit){.kind = OP_PRINT, .nin = (uint16_t)(c->n - 1), .in = in});
    op_set_str(fe->kernel, op, ATTR_msg, string_of(fe, text));
    return nothing();
}
