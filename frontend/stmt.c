/* Statements without regions: let, var, assignment, axis, expression statements, and dispatch.
 *
 * Input: the tree. Output: scope entries and ops. Variables are in SSA form from the start: an
 * assignment replaces the entry's value, loops and ifs carry what they assign (control.c).
 */
#include "frontend/fe.h"

#include <string.h>

void bind_pattern(Fe *fe, const Pattern *p, Val v) {
    if (!p->is_tuple) {
        scope_let(fe, p->names.data[0], v);
        return;
    }
    bool ok = v.kind == VAL_TUPLE && v.n == p->names.len;
    if (!ok && val_ok(v))
        fe_error(fe, DIAG_TUPLE, p->span,
                 v.kind == VAL_TUPLE ? "%u names for %s" : "%u names, but the value is one: %s",
                 p->names.len, val_text(fe, v));
    for (uint32_t i = 0; i < p->names.len; i++)
        scope_let(fe, p->names.data[i], ok ? v.items[i] : val_poison());
}

/* A let has its value here and now: a tensor is read. */
static Val let_value(Fe *fe, Val v, Span span) {
    if (v.kind == VAL_TENSOR)
        return val_force(fe, v, span);
    if (v.kind == VAL_TUPLE)
        for (uint32_t i = 0; i < v.n; i++)
            v.items[i] = let_value(fe, v.items[i], span);
    return val_settle(fe, v);
}

static void stmt_let(Fe *fe, const LetItem *item) {
    fe->hint = item->pattern.is_tuple ? NULL : item->pattern.names.data[0].text;
    Val v;
    if (item->target) {
        v = stmt_atomic(fe, item->target, item->op, item->value, item->span, true);
    } else {
        v = expr_any(fe, item->value);
    }
    fe->hint = item->pattern.is_tuple ? NULL : item->pattern.names.data[0].text;
    v = let_value(fe, v, item->value->span);
    fe->hint = NULL;
    bind_pattern(fe, &item->pattern, v);
}

/* --- variables ------------------------------------------------------------------------------ */

static bool check_axes(Fe *fe, const char *name, AxisSet have, Val v, Span span, Span declared) {
    if (axes_subset(v.axes, have))
        return true;
    AxisSet extra = axes_minus(v.axes, have);
    Diag *d = fe_error(fe, DIAG_AXES_MISMATCH, span, "`%s` has %s, the value has %s", name,
                       axes_text(fe, have), axes_text(fe, v.axes));
    diag_note(fe->diags, d, declared, "`%s` is declared here", name);
    if (axes_hint(fe, d, extra, have, name))
        return false;
    diag_hint(fe->diags, d, "reduce the value, for example `sum%s(...)`, or declare `%s` with `%s`",
              axes_text(fe, extra), name, axis_by_id(fe, extra.id[0])->name);
    return false;
}

static void stmt_var(Fe *fe, const VarItem *item) {
    DType type = DT_NONE;
    AxisSet axes = axes_none();
    bool ok = true;
    if (item->type) {
        type = type_find(fe, item->type);
        ok = type_axes(fe, item->type, &axes) && type != DT_NONE;
    }
    fe->hint = item->name.text;
    Val v = expr_value(fe, item->value);
    fe->hint = NULL;
    if (item->type && ok)
        v = val_coerce(fe, v, type, false, item->value->span,
                       arena_printf(fe->arena, "`%s`", item->name.text));
    else
        v = val_settle(fe, v);
    if (!item->type && fe->in_index && val_ok(v) && dtype_is_integer(val_dtype(v)))
        v = val_with_axes(val_cast(fe, v, DT_INDEX, item->value->span), v.axes);
    ok = ok && val_ok(v);
    if (ok && item->type)
        ok = check_axes(fe, item->name.text, axes, v, item->value->span, item->name.span);
    Entry *e = scope_add(fe, ok ? ENTRY_VAR : ENTRY_POISON, item->name);
    if (!ok)
        return;
    e->dtype = val_dtype(v);
    e->axes = item->type ? axes : v.axes;
    e->val = v;
}

void var_set(Fe *fe, Entry *e, Val v, Span span) {
    if (!val_ok(v))
        return;
    v = val_coerce(fe, v, e->dtype, false, span, arena_printf(fe->arena, "`%s`", e->name));
    if (val_ok(v) && check_axes(fe, e->name, e->axes, v, span, e->span))
        e->val = val_with_axes(v.v, e->axes);
}

static void assign_var(Fe *fe, const Stmt *s, Entry *entry) {
    if (fe->nest && !entry->in_nest) {
        Diag *d =
            fe_error(fe, DIAG_PARALLEL_ASSIGN, s->assign.target->span,
                     "`%s` is declared outside this `parallel`: its iterations are independent",
                     entry->name);
        diag_note(fe->diags, d, entry->span, "`%s` is declared here", entry->name);
        diag_hint(fe->diags, d, "declare it inside, or store to a `temp`");
        return;
    }
    BinaryOp op = assign_op_binary(s->assign.op);
    ptrdiff_t at = entry - fe->entries.data; /* the vector may move */
    Str name = entry->name;
    Val old = val_with_axes(entry->val.v, entry->axes);
    if (op == BINARY_NONE)
        fe->hint = name;
    Val v = expr_value(fe, s->assign.value);
    fe->hint = NULL;
    if (op != BINARY_NONE && val_ok(v)) {
        bool done = false;
        fe->hint = name;
        if (op == BINARY_ADD)
            v = op_accumulate(fe, old, v, s->assign.value, s->span, &done);
        if (!done)
            v = op_apply(fe, op, old, v, s->span);
        fe->hint = NULL;
    }
    var_set(fe, &fe->entries.data[at], v, s->assign.value->span);
}

static const Expr *target_name(const Expr *target) {
    const Expr *base = target->kind == EXPR_INDEX ? target->index.base : target;
    return base->kind == EXPR_NAME ? base : NULL;
}

/* A name that nothing declares, as a target. */
static void report_target(Fe *fe, const Stmt *s, Name name) {
    Global g;
    if (global_find(fe, (Name){0}, name, &g) && g.decl) {
        Diag *d = fe_error(fe, DIAG_NOT_ASSIGNABLE, s->assign.target->span,
                           "`%s` cannot be assigned", name.text);
        diag_note(fe->diags, d, g.decl->name.span, "`%s` is declared here, at the top level",
                  name.text);
        return;
    }
    Diag *d = report_unknown(fe, name);
    if (d && s->assign.target->kind == EXPR_NAME)
        diag_hint(fe->diags, d, "a new name is declared: `let %s = ...;`, or `var` to change it",
                  name.text);
}

static void hint_assign(Fe *fe, Diag *d, const Entry *e, bool is_element) {
    const char *name = e->name;
    bool is_value = e->kind == ENTRY_LET && e->val.kind == VAL_VALUE;
    if (e->kind == ENTRY_DIM)
        diag_hint(fe->diags, d, "a dim is the size of its tensors; name another number by `let`");
    else if (e->kind == ENTRY_AXIS)
        diag_hint(fe->diags, d, "an axis is its own indices; name others by `let`");
    else if (is_element && (e->kind == ENTRY_VAR || e->val.axes.n > 0))
        diag_hint(fe->diags, d, "assign the whole `var`: `%s = cond ? new : %s`", name, name);
    else if (is_value && (e->val.v->kind == VALUE_PARAM || e->val.v->kind == VALUE_ARG))
        diag_hint(fe->diags, d, "copy it: `var %s2 = %s;`", name, name);
    else if (e->kind == ENTRY_LET)
        diag_hint(fe->diags, d, "declare it by `var %s = ...`", name);
}

void stmt_assign(Fe *fe, const Stmt *s) {
    const Expr *base = target_name(s->assign.target);
    if (!base) {
        if (s->assign.target->kind != EXPR_ERROR)
            fe_error(fe, DIAG_NOT_ASSIGNABLE, s->assign.target->span,
                     "only a `var` or a tensor's elements can be assigned");
        return;
    }
    Name name = base->name.name;
    Entry *e = scope_find(fe, name.text);
    if (!e) {
        expr_any(fe, s->assign.value);
        report_target(fe, s, name);
        return;
    }
    if (e->kind == ENTRY_POISON) {
        expr_any(fe, s->assign.value); /* for its own errors */
        return;
    }
    if (e->kind == ENTRY_TENSOR) {
        stmt_store(fe, s, e->tensor);
        return;
    }
    if (fe->fn_level > 0 && s->assign.target->kind == EXPR_INDEX && e->kind == ENTRY_LET) {
        Diag *d = fe_error(fe, DIAG_IMPURE_FN, s->assign.target->span,
                           "a `fn` is pure: it writes no tensor");
        diag_hint(fe->diags, d, "give the value by `return`, and store it in the kernel");
        return;
    }
    if (e->kind == ENTRY_VAR && s->assign.target->kind == EXPR_NAME) {
        assign_var(fe, s, e);
        return;
    }
    Diag *d = fe_error(fe, DIAG_NOT_ASSIGNABLE, s->assign.target->span, "`%s` cannot be assigned",
                       span_text(fe, s->assign.target->span));
    diag_note(fe->diags, d, e->span, "`%s` is declared here", name.text);
    hint_assign(fe, d, e, s->assign.target->kind == EXPR_INDEX);
}

/* --- axes ----------------------------------------------------------------------------------- */

bool range_bound(Fe *fe, const Expr *e, Value **out) {
    *out = expr_integer(fe, e, "a range's bound");
    if (!*out)
        return false;
    if ((*out)->type.axes.n == 0)
        return true;
    fe_error(fe, DIAG_NOT_SCALAR, e->span, "a range's bound is a scalar, this is index%s",
             axes_text(fe, (*out)->type.axes));
    return false;
}

bool is_launch_known(const Value *v) {
    if (v->kind != VALUE_OP)
        return v->kind != VALUE_IOTA;
    const Op *op = v->def;
    if ((op->nregion > 0 && !op_has(op->kind, TRAIT_PURE)) || op->kind == OP_PRESENT)
        return true;
    if (!op_has(op->kind, TRAIT_ELEMENTWISE) || op->kind == OP_ASM)
        return op->kind == OP_EXTENT || op->kind == OP_STRIDE;
    for (int i = 0; i < op->nin; i++)
        if (!is_launch_known(op->in[i]))
            return false;
    return true;
}

bool check_launch_known(Fe *fe, const Value *v, Span span) {
    if (fe->nest || is_launch_known(v))
        return true;
    Diag *d = fe_error(fe, DIAG_NOT_AT_LAUNCH, span,
                       "outside every `parallel` this must be known when the kernel is launched");
    diag_hint(fe->diags, d,
              fe->is_head
                  ? "`where` is about dims and scalar arguments; ask about data by `assert`"
                  : "move the statement into a `parallel`, or pass the value as an argument");
    return false;
}

static Entry *range_name(Fe *fe, const Expr *e) {
    if (!e || e->kind != EXPR_NAME || e->name.module.text)
        return NULL;
    return scope_find(fe, e->name.name.text);
}

Axis *range_of(Fe *fe, const Range *r) {
    Entry *e = range_name(fe, r->high);
    if (!e || e->kind != ENTRY_DIM || !val_ok(e->val))
        return NULL;
    return entry_axis(fe, e);
}

static Axis *axis_in(Fe *fe, const AstBinder *b, Axis *other) {
    AxisInfo *info = axis_info(fe, other);
    if (info->parallel || info->sequential || (!other->is_dim && !info->lo))
        return ir_axis_like(&fe->b, b->name.text, other->of, other, 0);
    Value *lo, *hi;
    axis_bounds(fe, other, &lo, &hi);
    return ir_axis_window(&fe->b, b->name.text, other->is_dim ? other : other->of, lo, hi, 0);
}

void stmt_axis(Fe *fe, const AstBinder *b) {
    const Range *r = &b->range;
    Axis *axis = NULL;
    Value *lo = NULL, *hi = NULL;
    Entry *other = r->kind == RANGE_WHOLE ? range_name(fe, r->high) : NULL;
    fe->b.span = b->span;
    if (r->kind == RANGE_TILES) {
        Diag *d = fe_error(fe, DIAG_BAD_RANGE, r->span, "`axis` is a whole range");
        diag_hint(fe->diags, d, "write `axis %s in %s`, or bind tiles by `parallel` or `for`",
                  b->name.text, span_text(fe, r->high->span));
    } else if (r->kind == RANGE_WHOLE && is_range_call(r->high)) {
        Diag *d = fe_error(fe, DIAG_BAD_RANGE, r->span, "`%s` needs a range", b->name.text);
        diag_hint(fe->diags, d, "write `axis %s in %s`", b->name.text,
                  range_text(fe, r->high, false));
    } else if (r->step) {
        fe_error(fe, DIAG_BAD_RANGE, r->step->span, "an axis has no step");
    } else if (other && other->kind == ENTRY_AXIS) {
        axis = axis_in(fe, b, other->axis);
        lo = axis->lo;
        hi = axis->hi;
    } else {
        bool ok = !r->low || range_bound(fe, r->low, &lo);
        if (!r->low)
            lo = ir_index(fe->kernel, 0);
        ok = range_bound(fe, r->high, &hi) && ok;
        ok = ok && check_launch_known(fe, lo, r->span) && check_launch_known(fe, hi, r->span);
        if (ok) {
            Axis *of = range_of(fe, r);
            fe->b.span = b->span;
            axis = ir_axis_window(&fe->b, b->name.text, of, lo, hi, 0);
        }
    }
    Entry *e = scope_add(fe, axis ? ENTRY_AXIS : ENTRY_POISON, b->name);
    if (!axis)
        return;
    e->axis = axis;
    *axis_info(fe, axis) = (AxisInfo){.axis = axis, .lo = lo, .hi = hi, .fn_level = fe->fn_level};
}

/* --- dispatch ------------------------------------------------------------------------------- */

static void stmt_expr(Fe *fe, const Expr *e) {
    Val v = expr_any(fe, e);
    bool nothing = v.kind == VAL_TUPLE && v.n == 0;
    if (val_ok(v) && !nothing && !builtin_has_effect(e)) {
        Diag *d =
            fe_error(fe, DIAG_UNUSED_VALUE, e->span, "the value of this statement is not used");
        diag_hint(fe->diags, d, "store it, or bind it by `let`");
    }
}

/* Statements that a fn may not have. */
bool fn_refuses(Fe *fe, const Stmt *s) {
    const char *what = s->kind == STMT_PARALLEL  ? "`parallel`"
                       : s->kind == STMT_ATOMIC  ? "`atomic`"
                       : s->kind == STMT_SCATTER ? "`scatter`"
                       : s->kind == STMT_TEMP    ? "`temp`"
                                                 : NULL;
    if (!what)
        return false;
    Diag *d = fe_error(fe, DIAG_IMPURE_FN, s->span, "a `fn` is pure: no %s", what);
    diag_hint(fe->diags, d,
              s->kind == STMT_TEMP ? "name the value by `let`, or keep it in a `var`"
                                   : "give a value by `return`; this belongs into the kernel");
    return true;
}

void report_return(Fe *fe, const Stmt *s, bool in_fn) {
    Diag *d =
        fe_error(fe, DIAG_BAD_RETURN, s->span, "`return` is only the last statement of a `fn`");
    if (in_fn)
        diag_hint(fe->diags, d, "choose the value: `return c ? a : b;`, or assign it to a `var`");
    else
        diag_hint(fe->diags, d, "a kernel writes its outputs: `y = %s;`",
                  span_text(fe, s->value->span));
}

void stmt_any(Fe *fe, const Stmt *s) {
    if (!kernel_has_room(fe, s->span) || (fe->fn_level > 0 && fn_refuses(fe, s)))
        return;
    switch (s->kind) {
    case STMT_LET:
        for (uint32_t i = 0; i < s->let.len; i++)
            stmt_let(fe, &s->let.data[i]);
        break;
    case STMT_VAR:
        for (uint32_t i = 0; i < s->var.len; i++)
            stmt_var(fe, &s->var.data[i]);
        break;
    case STMT_AXIS:
        for (uint32_t i = 0; i < s->axis.len; i++)
            stmt_axis(fe, &s->axis.data[i]);
        break;
    case STMT_TEMP:
        for (uint32_t i = 0; i < s->var.len; i++)
            stmt_temp(fe, &s->var.data[i]);
        break;
    case STMT_PARALLEL:
        stmt_parallel(fe, s);
        break;
    case STMT_FOR:
        stmt_for(fe, s);
        break;
    case STMT_WHILE:
        stmt_while(fe, s);
        break;
    case STMT_IF:
        stmt_if(fe, s);
        break;
    case STMT_BREAK:
    case STMT_CONTINUE:
        stmt_break(fe, s);
        break;
    case STMT_RETURN:
        report_return(fe, s, fe->fn_level > 0);
        break;
    case STMT_ASSIGN:
        stmt_assign(fe, s);
        break;
    case STMT_ATOMIC:
        stmt_atomic(fe, s->assign.target, s->assign.op, s->assign.value, s->span, false);
        break;
    case STMT_SCATTER:
        stmt_scatter(fe, s);
        break;
    case STMT_EXPR:
        stmt_expr(fe, s->value);
        break;
    case STMT_BLOCK:
        stmt_block(fe, s->block);
        break;
    }
    fe->hint = NULL;
}

void stmt_list(Fe *fe, const StmtVec *stmts, uint32_t from) {
    for (uint32_t i = from; i < stmts->len; i++) {
        stmt_any(fe, stmts->data[i]);
        if (i + 1 < stmts->len && stmt_breaks(stmts->data[i])) {
            stmt_rest(fe, stmts, i + 1);
            return;
        }
    }
}

void stmt_block(Fe *fe, const Block *block) {
    uint32_t mark;
    scope_open(fe, &mark);
    stmt_list(fe, &block->stmts, 0);
    scope_close(fe, mark);
}
