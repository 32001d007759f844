/* Statements that write memory: stores, atomics, scatter, temporaries.
 *
 * Input: the tree and the tensor. Output: ops; a store inside a nest gets its race proof. The
 * value is evaluated before the index, as if before anything is stored.
 */
#include "frontend/fe.h"

#include <string.h>

static bool check_writable(Fe *fe, Tensor *t, Span span) {
    if (fe->fn_level > 0) {
        fe_error(fe, DIAG_IMPURE_FN, span, "a `fn` is pure: it writes no tensor");
        return false;
    }
    if (t->mem->kind == MEM_TEMP || t->mem->mode != MODE_IN)
        return true;
    Diag *d = fe_error(fe, DIAG_READ_ONLY, span, "`%s` is an input of the kernel", t->mem->name);
    diag_note(fe->diags, d, t->span, "`%s` is declared here", t->mem->name);
    diag_hint(fe->diags, d, "declare it `inout %s: ...`", t->mem->name);
    return false;
}

bool axes_hint(Fe *fe, Diag *d, AxisSet extra, AxisSet have, const char *place) {
    for (int i = 0; i < extra.n; i++)
        for (int k = 0; k < have.n; k++) {
            const Axis *e = axis_by_id(fe, extra.id[i]), *h = axis_by_id(fe, have.id[k]);
            if (h->of == e && e->is_dim)
                diag_hint(fe->diags, d,
                          "`%s` walks `%s`, but is an axis of its own: index by `%s` what now has "
                          "the whole `%s` (`:`, or no index at all)",
                          h->name, e->name, h->name, e->name);
            else if (e->of == h && h->is_dim)
                diag_hint(fe->diags, d,
                          "`%s` walks `%s`, but is an axis of its own: index `%s` by `%s` too",
                          e->name, h->name, place, e->name);
            else
                continue;
            return true;
        }
    return false;
}

static bool check_value_axes(Fe *fe, Tensor *t, Val v, AxisSet axes, Span span, Span target) {
    if (axes_subset(v.axes, axes))
        return true;
    AxisSet extra = axes_minus(v.axes, axes);
    Diag *d = fe_error(fe, DIAG_AXES_MISMATCH, span, "the value has %s, the index of `%s` has %s",
                       axes_text(fe, v.axes), t->mem->name, axes_text(fe, axes));
    diag_note(fe->diags, d, target, "the index is here");
    if (!axes_hint(fe, d, extra, axes, t->mem->name))
        diag_hint(fe->diags, d, "reduce the value: `sum%s(...)`, or index `%s` by %s",
                  axes_text(fe, extra), t->mem->name, axes_text(fe, extra));
    return false;
}

static Val load_old(Fe *fe, Tensor *t, Value **index, Span span) {
    fe->b.span = span;
    Value *v = ir_load(&fe->b, t->mem, index, NULL, t->mem->name);
    if (fe->nest)
        vec_push(fe->arena, &fe->accesses, ((Access){.tensor = t, .op = v->def}));
    return val_of(v);
}

void stmt_store(Fe *fe, const Stmt *s, Tensor *t) {
    const Expr *target = s->assign.target;
    const Expr *entries = target->kind == EXPR_INDEX ? target : NULL;
    Value *index[RANK_MAX];
    AxisSet axes;
    bool writable = check_writable(fe, t, target->span);
    Val v = expr_value(fe, s->assign.value);
    bool ok = tensor_index(fe, t, entries, index, &axes, target->span);
    if (!ok || !val_ok(v) || !writable) {
        t->written = true;
        return;
    }
    BinaryOp op = assign_op_binary(s->assign.op);
    if (op != BINARY_NONE) {
        if (t->mem->mode == MODE_OUT && !t->written && t->mem->kind == MEM_PARAM) {
            Diag *d = fe_error(fe, DIAG_READ_BEFORE_WRITE, s->span,
                               "`%s` is read before anything wrote it", t->mem->name);
            diag_hint(fe->diags, d, "write `inout %s: ...` to have the caller's values",
                      t->mem->name);
        }
        v = op_apply(fe, op, load_old(fe, t, index, target->span), v, s->span);
    }
    t->written = true;
    v = val_coerce(fe, v, t->mem->dtype, true, s->assign.value->span,
                   arena_printf(fe->arena, "`%s`", t->mem->name));
    if (!val_ok(v) || !check_value_axes(fe, t, v, axes, s->assign.value->span, target->span))
        return;
    fe->b.span = s->span;
    Op *store = ir_store(&fe->b, t->mem, index, v.v);
    bool guarded = race_check_store(fe, t, store, index, axes, target->span);
    if (fe->nest)
        vec_push(fe->arena, &fe->accesses,
                 ((Access){.tensor = t, .op = store, .is_store = true, .guarded = guarded}));
}

static Tensor *target_tensor(Fe *fe, const Expr *target, const char *what) {
    const Expr *base = target->kind == EXPR_INDEX ? target->index.base : target;
    if (base->kind != EXPR_NAME) {
        fe_error(fe, DIAG_NOT_ASSIGNABLE, target->span, "%s needs the elements of a tensor", what);
        return NULL;
    }
    Entry *e = scope_find(fe, base->name.name.text);
    if (!e)
        report_unknown(fe, base->name.name);
    else if (e->kind == ENTRY_TENSOR)
        return check_writable(fe, e->tensor, target->span) ? e->tensor : NULL;
    else if (e->kind != ENTRY_POISON) {
        Diag *d = fe_error(fe, DIAG_NOT_ASSIGNABLE, target->span,
                           "%s needs the elements of a tensor", what);
        diag_note(fe->diags, d, e->span, "`%s` is declared here", e->name);
        if (e->kind == ENTRY_VAR)
            diag_hint(fe->diags, d, "a `var` belongs to one iteration: assign it without %s", what);
    }
    return NULL;
}

static bool atomic_kind(AssignOp op, AtomicKind *out) {
    switch (op) {
    case ASSIGN_SET:
        *out = ATOMIC_XCHG;
        return true;
    case ASSIGN_ADD:
    case ASSIGN_SUB:
        *out = ATOMIC_ADD;
        return true;
    case ASSIGN_MAX:
        *out = ATOMIC_MAX;
        return true;
    case ASSIGN_MIN:
        *out = ATOMIC_MIN;
        return true;
    case ASSIGN_BITAND:
        *out = ATOMIC_AND;
        return true;
    case ASSIGN_BITOR:
        *out = ATOMIC_OR;
        return true;
    case ASSIGN_BITXOR:
        *out = ATOMIC_XOR;
        return true;
    case ASSIGN_MUL:
    case ASSIGN_DIV:
    case ASSIGN_MOD:
    case ASSIGN_SHL:
    case ASSIGN_SHR:
        break;
    }
    return false;
}

/* The index of an atomic or scatter; false after a report. */
static bool write_index(Fe *fe, Tensor *t, const Expr *target, Value **index, AxisSet *axes) {
    const Expr *entries = target->kind == EXPR_INDEX ? target : NULL;
    return tensor_index(fe, t, entries, index, axes, target->span);
}

static Val write_value(Fe *fe, const Tensor *t, Val v, Span span) {
    return val_coerce(fe, v, t->mem->dtype, true, span,
                      arena_printf(fe->arena, "`%s`", t->mem->name));
}

/* Axes that the index lacks are reduced before the value gets the tensor's type. */
static Val reduce_value(Fe *fe, AtomicKind kind, Val v, AxisSet axes, Span span) {
    AxisSet extra = axes_minus(v.axes, axes);
    if (!val_ok(v) || extra.n == 0)
        return v;
    ReduceKind reduce;
    bool bits = kind == ATOMIC_AND || kind == ATOMIC_OR || kind == ATOMIC_XOR;
    if (!atomic_reduce(kind, &reduce) || (bits && dtype_is_float(val_dtype(v))))
        return v; /* floats have no bits: reported where the value gets the tensor's type */
    Val x = val_with_axes(val_spread(fe, v, span), v.axes);
    if (reduce == RED_SUM)
        x = val_with_axes(val_cast(fe, x, dtype_promote(val_dtype(x)), span), x.axes);
    fe->b.span = span;
    return val_with_axes(ir_reduce(&fe->b, reduce, x.v, extra, NULL), axes_minus(x.axes, extra));
}

/* What the atomic takes. Sums of narrow integers are made wider and wrap as their parts would have,
 * one after another. */
static Val atomic_value(Fe *fe, const Tensor *t, AtomicKind kind, Val v, AxisSet axes, Span span) {
    DType type = t->mem->dtype;
    if (!dtype_is_integer(type) || dtype_bits(type) >= 32)
        return write_value(fe, t, reduce_value(fe, kind, v, axes, span), span);
    v = reduce_value(fe, kind, write_value(fe, t, v, span), axes, span);
    return val_ok(v) ? val_with_axes(val_cast(fe, v, type, span), v.axes) : v;
}

/* `atomic.kind @t[index], values...`; the last value's axes are those of the index or fewer. */
static Val build_atomic(Fe *fe, Tensor *t, AtomicKind kind, Value **index, AxisSet axes, int n,
                        const Val *values, Span span, bool result) {
    int rank = t->mem->rank;
    for (int i = 0; i < n; i++)
        index[rank + i] = values[i].v;
    MemRef ref = {.mem = t->mem, .first = 0, .nidx = (uint16_t)rank, .pos = -1};
    Type type = type_tile(t->mem->dtype, axes);
    const char *hint = hint_take(fe);
    fe->b.span = span;
    t->written = true;
    Op *o = ir_build(&fe->b, &(OpInit){.kind = OP_ATOMIC,
                                       .sub = (uint8_t)kind,
                                       .nin = (uint16_t)(rank + n),
                                       .in = index,
                                       .nres = result ? 1 : 0,
                                       .types = &type,
                                       .names = &hint,
                                       .nmem = 1,
                                       .mem = &ref});
    return result ? val_of(o->res[0]) : val_poison();
}

static Tensor *atomic_tensor(Fe *fe, const Expr *target, Span span, const char *what) {
    if (fe->fn_level > 0) {
        fe_error(fe, DIAG_IMPURE_FN, span, "a `fn` is pure: no %s", what);
        return NULL;
    }
    Tensor *t = target_tensor(fe, target, what);
    if (!t || !dtype_is_packed(t->mem->dtype))
        return t;
    DType type = t->mem->dtype, byte = dtype_is_signed(type) ? DT_I8 : DT_U8;
    Diag *d = fe_error(fe, DIAG_BAD_ATOMIC, target->span,
                       "there are no atomics of %s, which `%s` is", dtype_name(type), t->mem->name);
    diag_note(fe->diags, d, t->span, "`%s` is declared here", t->mem->name);
    diag_hint(fe->diags, d,
              "collect in a tensor of %s, and store what becomes of it: `%s = ... as %s`",
              dtype_name(byte), t->mem->name, dtype_name(type));
    return NULL;
}

/* Bits are those of integers, sums and order those of numbers. */
static bool check_atomic_type(Fe *fe, const Tensor *t, AtomicKind kind, AssignOp op, Span span) {
    bool bits = kind == ATOMIC_AND || kind == ATOMIC_OR || kind == ATOMIC_XOR;
    bool adds = kind == ATOMIC_ADD || kind == ATOMIC_MAX || kind == ATOMIC_MIN;
    DType type = t->mem->dtype;
    if (!(bits && dtype_is_float(type)) && !(adds && type == DT_BOOL))
        return true;
    Diag *d = fe_error(fe, DIAG_TYPE_MISMATCH, span, "`atomic ... %s` is for %s, `%s` is %s",
                       assign_op_text(op), bits ? "integers and bools" : "numbers", t->mem->name,
                       dtype_name(type));
    diag_note(fe->diags, d, t->span, "`%s` is declared here", t->mem->name);
    return false;
}

Val stmt_atomic(Fe *fe, const Expr *target, AssignOp op, const Expr *value, Span span,
                bool result) {
    Value *index[RANK_MAX + 1];
    AxisSet axes;
    AtomicKind kind;
    const char *hint = hint_take(fe);
    Tensor *t = atomic_tensor(fe, target, span, "`atomic`");
    if (!t)
        return val_poison();
    if (!atomic_kind(op, &kind)) {
        Diag *d =
            fe_error(fe, DIAG_BAD_ATOMIC, span, "there is no `atomic ... %s`", assign_op_text(op));
        diag_hint(
            fe->diags, d,
            "there are += -= &= |= ^= max= min= and =; `atomic_cas` in a loop makes the others");
        return val_poison();
    }
    if (!check_atomic_type(fe, t, kind, op, target->span))
        return val_poison();
    Val v = expr_value(fe, value);
    if (!write_index(fe, t, target, index, &axes))
        return val_poison();
    v = atomic_value(fe, t, kind, v, axes, value->span);
    if (!val_ok(v) ||
        (kind == ATOMIC_XCHG && !check_value_axes(fe, t, v, axes, value->span, target->span)))
        return val_poison();
    if (op == ASSIGN_SUB)
        v = build_unary(fe, OP_NEG, v, t->mem->dtype, span);
    fe->hint = hint;
    return build_atomic(fe, t, kind, index, axes, 1, &v, span, result);
}

/* `atomic_cas(y[i], old, new)` */
Val stmt_atomic_cas(Fe *fe, const Expr *call, const char *hint) {
    const ArgVec *args = &call->call.args;
    const Expr *target = args->data[0].value;
    Value *index[RANK_MAX + 2];
    AxisSet axes;
    Tensor *t = atomic_tensor(fe, target, call->span, "`atomic_cas`");
    if (!t)
        return val_poison();
    Val v[2];
    bool ok = true;
    for (int i = 0; i < 2; i++) {
        Span span = args->data[i + 1].span;
        v[i] = write_value(fe, t, expr_value(fe, args->data[i + 1].value), span);
        ok &= val_ok(v[i]);
    }
    if (!write_index(fe, t, target, index, &axes) || !ok)
        return val_poison();
    for (int i = 0; i < 2; i++)
        ok &= check_value_axes(fe, t, v[i], axes, args->data[i + 1].span, target->span);
    if (!ok)
        return val_poison();
    fe->hint = hint;
    return build_atomic(fe, t, ATOMIC_CAS, index, axes, 2, v, call->span, true);
}

void stmt_scatter(Fe *fe, const Stmt *s) {
    Value *index[RANK_MAX + 1];
    AxisSet axes;
    const Expr *target = s->assign.target;
    Tensor *t = target_tensor(fe, target, "`scatter`");
    if (!t)
        return;
    Val v = write_value(fe, t, expr_any(fe, s->assign.value), s->assign.value->span);
    if (!write_index(fe, t, target, index, &axes) || !val_ok(v))
        return;
    t->written = true;
    if (!check_value_axes(fe, t, v, axes, s->assign.value->span, target->span))
        return;
    int rank = t->mem->rank;
    doubt_scatter(fe, v.v, index, rank, target->span, s->assign.value->span);
    index[rank] = v.v;
    MemRef ref = {.mem = t->mem, .first = 0, .nidx = (uint16_t)rank, .pos = -1};
    fe->b.span = s->span;
    ir_build(
        &fe->b,
        &(OpInit){
            .kind = OP_SCATTER, .nin = (uint16_t)(rank + 1), .in = index, .nmem = 1, .mem = &ref});
}

/* --- temporaries ---------------------------------------------------------------------------- */

static bool temp_dim(Fe *fe, Tensor *t, int i, const Expr *e, Value **out) {
    t->text[i] = span_text(fe, e->span);
    if (!range_bound(fe, e, out) || !check_launch_known(fe, *out, e->span))
        return false;
    Entry *entry =
        e->kind == EXPR_NAME && !e->name.module.text ? scope_find(fe, e->name.name.text) : NULL;
    if (entry && entry->kind == ENTRY_DIM) {
        t->axis[i] = entry_axis(fe, entry);
        t->dim[i] = entry->name;
    }
    return true;
}

void stmt_temp(Fe *fe, const VarItem *item) {
    Tensor *t = ARENA_NEW(fe->arena, Tensor);
    Value *dims[RANK_MAX];
    DType type = type_find(fe, item->type);
    bool ok = type != DT_NONE;
    if (fe->nest) {
        Diag *d = fe_error(fe, DIAG_NEST_STATEMENT, item->span, "`temp` inside a `parallel`");
        diag_hint(fe->diags, d,
                  "name the value by `let` or `var`, or put the `temp` in front of "
                  "the `parallel`");
        ok = false;
    }
    if (item->type->dims.len > RANK_MAX) {
        fe_error(fe, DIAG_RANK, item->type->span, "a tensor has at most %d dims", RANK_MAX);
        ok = false;
    }
    for (uint32_t i = 0; ok && i < item->type->dims.len; i++)
        ok &= temp_dim(fe, t, (int)i, item->type->dims.data[i], &dims[i]);
    Entry *e = scope_add(fe, ok ? ENTRY_TENSOR : ENTRY_POISON, item->name);
    if (!ok)
        return;
    fe->b.span = item->span;
    t->mem = ir_temp(&fe->b, item->name.text, type, (int)item->type->dims.len, dims);
    t->span = item->name.span;
    e->tensor = t;
    if (!item->value)
        return;
    Expr target = {
        .kind = EXPR_NAME, .depth = 1, .span = item->name.span, .name = {.name = item->name}};
    Stmt s = {
        .kind = STMT_ASSIGN,
        .depth = 1,
        .span = item->span,
        .assign = {
            .target = &target, .op = ASSIGN_SET, .op_span = item->name.span, .value = item->value}};
    stmt_store(fe, &s, t);
}
