// What a run with EvalOptions.check reports: one diagnostic for each place and kind, with the first
// occurrence and how many there were.
//
// What is not determined (memory that nobody wrote, a division by zero) is poison that flows along;
// a note tells where it comes from, and only where it decides something (an output, an address, a
// condition) is it an error: what a `select` drops did no harm.
#include "ir/eval_impl.h"

#include <math.h>
#include <string.h>

// One report; `text` is NULL until its first occurrence is described.
struct Finding {
    Finding *next;
    DiagId id;
    const Op *op;
    Span span;
    int64_t count;
    const char *text;
};

// An iteration of a grid: where its binders stood. `around`: of the grid that it is in, 0: none.
struct Iteration {
    const Op *op;
    uint32_t around;
    int64_t *at;
};

static Finding *check_find(Eval *e, const Op *op, Span span, DiagId id) {
    for (Finding *f = e->findings; f; f = f->next) {
        bool same = span_is_none(span) ? f->op == op
                                       : f->span.begin == span.begin && f->span.end == span.end;
        if (f->id == id && same)
            return f;
    }
    Finding *f = ARENA_NEW(e->arena, Finding);
    *f = (Finding){.next = e->findings, .id = id, .op = op, .span = span};
    e->findings = f;
    return f;
}

const char **check_found(Eval *e, const Op *op, DiagId id) {
    Finding *f = check_find(e, op, op ? op->span : (Span){0}, id);
    return f->count++ == 0 ? &f->text : NULL;
}

static void check_emit(const Eval *e, const Finding *f) {
    Diag *d = diag_add(e->opts.check, f->id, f->span, "%s", f->text);
    if (f->count > 1)
        diag_note(e->opts.check, d, (Span){0}, "the first of %lld", (long long)f->count);
}

// --- what is said about places ---

const char *check_element(Eval *e, const Mem *m, int64_t linear) {
    const MemState *s = &e->mem[m->id];
    const char *text = "";
    for (int d = m->rank - 1; d >= 0; d--) {
        text = arena_printf(e->arena, "%lld%s%s", (long long)(linear % s->dims[d]),
                            *text ? ", " : "", text);
        linear /= s->dims[d];
    }
    return arena_printf(e->arena, "`%s[%s]`", m->name, text);
}

void check_iteration_start(Eval *e, const Op *op, uint32_t around) {
    if (!e->opts.check)
        return;
    if (e->iterations > e->iteration_cap) {
        uint32_t cap = e->iteration_cap ? 2 * e->iteration_cap : 64;
        Iteration *all = ARENA_ARRAY(e->arena, Iteration, cap);
        if (e->iteration_cap)
            memcpy(all, e->log, e->iteration_cap * sizeof *all);
        e->log = all;
        e->iteration_cap = cap;
    }
    Iteration *it = &e->log[e->iterations - 1];
    *it = (Iteration){op, around, ARENA_ARRAY(e->arena, int64_t, op->nbinders + 1u)};
    for (int i = 0; i < op->nbinders; i++) {
        const Binder *b = &op->binder[i];
        it->at[i] = b->axis ? e->window[b->axis->id].begin : e->value[b->var->id]->cell[0].i;
    }
}

// Names are made unique in the IR by a dot and a number.
static const char *place(Eval *e, const char *before, const char *name, int64_t at) {
    if (!name)
        name = "?";
    return arena_printf(e->arena, "%s%s%.*s = %lld", before, *before ? ", " : "",
                        (int)strcspn(name, "."), name, (long long)at);
}

// Where the binders of an iteration stand, but for some axes.
static const char *binders(Eval *e, uint32_t iteration, AxisSet without) {
    if (!iteration)
        return "";
    const Iteration *it = &e->log[iteration - 1];
    const char *text = binders(e, it->around, without);
    for (int i = 0; i < it->op->nbinders; i++) {
        const Binder *b = &it->op->binder[i];
        if (!b->axis || !axes_has(without, b->axis->id))
            text = place(e, text, b->axis ? b->axis->name : b->var->name, it->at[i]);
    }
    return text;
}

const char *check_iteration(Eval *e, uint32_t iteration) {
    return binders(e, iteration, axes_none());
}

const char *check_where(Eval *e, AxisSet axes, const int64_t *pos) {
    const char *text = binders(e, e->iteration, axes);
    for (int i = 0; i < axes.n; i++) {
        const Axis *axis = eval_axis(e, axes.id[i]);
        text = place(e, text, axis->name, eval_window(e, NULL, axis).begin + pos[i]);
    }
    return *text ? arena_printf(e->arena, ", at %s", text) : "";
}

// --- poison ---

void check_undetermined(Eval *e, const Op *op, const char *what, AxisSet axes, const int64_t *pos) {
    const char **text = check_found(e, op, DIAG_UNDETERMINED);
    if (text)
        *text = arena_printf(e->arena, "%s depends on what nothing determines%s", what,
                             check_where(e, axes, pos));
}

void check_unwritten(Eval *e, const Access *a) {
    const char **text = check_found(e, a->op, DIAG_NEVER_WRITTEN);
    if (text)
        *text = arena_printf(e->arena, "%s is read, but nothing has written it%s",
                             check_element(e, a->mem, a->linear),
                             check_where(e, a->walk.axes, a->walk.pos));
}

// --- places outside of tensors ---

// -1 of a condition is how an index says "nowhere": `y[c ? i : -1] = v`.
static bool is_nowhere(const Access *a, int64_t at) {
    const Value *v = a->op->in[a->op->mem[0].first + a->outside];
    while (v->kind == VALUE_OP && v->def->kind == OP_CAST)
        v = v->def->in[0];
    return at == -1 && v->kind == VALUE_OP && v->def->kind == OP_SELECT;
}

void check_outside(Eval *e, const Access *a, bool is_read) {
    if (a->state->absent || a->outside < 0)
        return;
    int64_t at = a->index[a->outside]->cell[a->walk.at[a->at[a->outside]]].i;
    if (is_nowhere(a, at))
        return;
    const char **text = check_found(e, a->op, DIAG_OUTSIDE);
    if (text)
        *text =
            arena_printf(e->arena, "index %d of `%s` is %lld, outside of 0..%lld: %s%s", a->outside,
                         a->mem->name, (long long)at, (long long)a->state->dims[a->outside],
                         is_read ? "the read gives 0" : "nothing is written",
                         check_where(e, a->walk.axes, a->walk.pos));
}

// --- arithmetic ---

static bool is_division(OpKind kind) {
    return kind == OP_DIV || kind == OP_REM || kind == OP_CDIV || kind == OP_FLOORDIV ||
           kind == OP_MOD;
}

static bool is_shift(OpKind kind) {
    return kind == OP_SHL || kind == OP_SHR;
}

static bool may_overflow(OpKind kind, DType dtype) {
    bool wide = dtype == DT_I32 || dtype == DT_I64 || dtype == DT_INDEX;
    return wide && (kind == OP_ADD || kind == OP_SUB || kind == OP_MUL || kind == OP_NEG ||
                    kind == OP_ABS || is_division(kind));
}

static bool fits(DType dtype, int64_t x) {
    return numeric_wrap(dtype, x) == x;
}

// Whether the exact result is another than the type can hold.
static bool overflows(OpKind kind, DType dtype, int64_t x, int64_t y) {
    int64_t r = 0;
    bool lost = false;
    switch ((int)kind) {
    case OP_ADD:
        lost = __builtin_add_overflow(x, y, &r);
        break;
    case OP_SUB:
        lost = __builtin_sub_overflow(x, y, &r);
        break;
    case OP_MUL:
        lost = __builtin_mul_overflow(x, y, &r);
        break;
    case OP_NEG:
        lost = __builtin_sub_overflow(0, x, &r);
        break;
    case OP_ABS:
        lost = x < 0 && __builtin_sub_overflow(0, x, &r);
        break;
    default: // division: only the least value by -1
        lost = y == -1 && __builtin_sub_overflow(0, x, &r) && kind != OP_REM && kind != OP_MOD;
    }
    return lost || !fits(dtype, r);
}

static const char *operands(Eval *e, const Op *op, const int64_t *x) {
    static const struct {
        OpKind kind;
        const char *sign;
    } infix[] = {{OP_ADD, "+"}, {OP_SUB, "-"},  {OP_MUL, "*"}, {OP_DIV, "/"},
                 {OP_REM, "%"}, {OP_SHL, "<<"}, {OP_SHR, ">>"}};
    for (size_t i = 0; i < sizeof infix / sizeof *infix; i++)
        if (infix[i].kind == op->kind)
            return arena_printf(e->arena, "`%lld %s %lld`", (long long)x[0], infix[i].sign,
                                (long long)x[1]);
    const char *name = op_info(op->kind)->text;
    if (op->nin == 1)
        return arena_printf(e->arena, "`%s(%lld)`", name, (long long)x[0]);
    return arena_printf(e->arena, "`%s(%lld, %lld)`", name, (long long)x[0], (long long)x[1]);
}

void check_overflow(Eval *e, const Op *op, DType dtype, const char *what, AxisSet axes,
                    const int64_t *pos) {
    bool is_index = dtype == DT_INDEX;
    const char **text = check_found(e, op, is_index ? DIAG_INDEX_OVERFLOW : DIAG_WRAPS);
    if (text)
        *text = arena_printf(e->arena, "%s leaves %s%s%s", what, dtype_name(dtype),
                             is_index ? "" : " and wraps", check_where(e, axes, pos));
}

static bool check_watches(const Op *op, DType from) {
    bool is_float = dtype_is_float(from);
    if (op->kind == OP_CAST)
        return is_float && !dtype_is_float(op->res[0]->type.dtype);
    return !is_float &&
           (is_division(op->kind) || is_shift(op->kind) || may_overflow(op->kind, from));
}

// One element; true where the result is poison.
static bool check_cell(Eval *e, const Op *op, DType from, const Cell *in, const Walk *w) {
    const int64_t x[2] = {in[0].i, in[1].i};
    const char **text = NULL;
    if (op->kind == OP_CAST) {
        if (isnan(in[0].f) && (text = check_found(e, op, DIAG_NAN_TO_INTEGER)))
            *text =
                arena_printf(e->arena, "NaN becomes 0 of %s%s", dtype_name(op->res[0]->type.dtype),
                             check_where(e, w->axes, w->pos));
        return false;
    }
    if (is_division(op->kind) && x[1] == 0) {
        if ((text = check_found(e, op, DIAG_DIVISION_BY_ZERO)))
            *text = arena_printf(e->arena, "%s: the result may be anything%s", operands(e, op, x),
                                 check_where(e, w->axes, w->pos));
        return true;
    }
    if (is_shift(op->kind)) {
        bool past = x[1] < 0 || x[1] >= (int64_t)dtype_bits(from);
        if (past && (text = check_found(e, op, DIAG_SHIFT_WIDTH)))
            *text =
                arena_printf(e->arena, "%s: %s has %u bits%s", operands(e, op, x), dtype_name(from),
                             dtype_bits(from), check_where(e, w->axes, w->pos));
        return false;
    }
    if (may_overflow(op->kind, from) && overflows(op->kind, from, x[0], x[1]))
        check_overflow(e, op, from, operands(e, op, x), w->axes, w->pos);
    return false;
}

void check_elementwise(Eval *e, const Op *op, Tile *out, const Tile *const *in) {
    DType from = in[0]->dtype;
    if (!e->opts.check || !check_watches(op, from))
        return;
    Walk w;
    walk_start(e, op, &w, out->axes);
    for (int i = 0; i < 2; i++)
        walk_tile(e, op, &w, in[i]);
    for (int64_t p = 0; p < w.count; p++, walk_next(&w)) {
        if (out->bad && out->bad[p])
            continue;
        const Cell cell[2] = {in[0]->cell[w.at[0]], in[1]->cell[w.at[1]]};
        if (check_cell(e, op, from, cell, &w))
            tile_bad(e, op, out)[p] = BAD_POISON;
    }
}

static bool is_product(const Op *op) {
    return op->kind == OP_DOT || (op->kind == OP_REDUCE && op->sub == RED_PROD) ||
           (op->kind == OP_SCAN && op->sub == SCAN_PROD);
}

void check_sum(Eval *e, const Op *op, DType dtype, int64_t sum, bool lost, const Walk *w) {
    if (!e->opts.check || !dtype_is_signed(dtype) || dtype_is_float(dtype))
        return;
    if (lost || !fits(dtype, sum))
        check_overflow(e, op, dtype, is_product(op) ? "the product" : "the sum", w->axes, w->pos);
}

void check_assert(Eval *e, const Op *op, bool holds, bool is_bad, const Walk *w) {
    if (is_bad)
        check_undetermined(e, op, "the assertion", w->axes, w->pos);
    const char **text = is_bad || holds ? NULL : check_found(e, op, DIAG_ASSERT);
    Str msg = op_attr_str(op, ATTR_msg);
    if (text)
        *text = arena_printf(e->arena, "%s%s", msg ? msg : "the assertion fails",
                             check_where(e, w->axes, w->pos));
}

// --- segments ---

// The tensor whose element a bound is, or NULL.
static const Mem *bound_tensor(const Value *v) {
    while (v->kind == VALUE_OP && v->def->kind == OP_CAST)
        v = v->def->in[0];
    return v->kind == VALUE_OP && v->def->kind == OP_LOAD ? v->def->mem[0].mem : NULL;
}

void check_segment(Eval *e, const Op *op, const Value *lo, const Value *hi) {
    if (!e->opts.check)
        return;
    const Mem *m = bound_tensor(lo);
    if (!m || m != bound_tensor(hi))
        return;
    int64_t from = eval_int(e, op, lo), to = eval_int(e, op, hi);
    if (from <= to)
        return;
    const char **text = check_found(e, op, DIAG_SEGMENTS);
    if (text)
        *text = arena_printf(e->arena, "the segment of `%s` is %lld .. %lld: `%s` decreases%s",
                             m->name, (long long)from, (long long)to, m->name,
                             check_where(e, axes_none(), NULL));
}

void check_step(Eval *e, const Op *op) {
    const char **text = e->opts.check ? check_found(e, op, DIAG_STEP_ZERO) : NULL;
    if (text)
        *text = arena_printf(e->arena, "the range is empty: its step is 0%s",
                             check_where(e, axes_none(), NULL));
}

// --- the end ---

static void check_output(Eval *e, const Mem *m) {
    const MemState *s = &e->mem[m->id];
    int64_t missing = 0, first = 0;
    for (int64_t i = 0; i < s->count && s->written; i++) {
        first = s->written[i] || missing ? first : i;
        missing += !s->written[i];
    }
    if (!missing)
        return;
    diag_add(e->opts.check, DIAG_PARTLY_WRITTEN, m->span,
             "%lld of %lld elements of `%s` are not written, first %s", (long long)missing,
             (long long)s->count, m->name, check_element(e, m, first));
}

void check_finish(Eval *e, bool ran) {
    if (!e->opts.check)
        return;
    const Kernel *k = e->kernel;
    for (int i = 0; i < k->nparam && ran; i++) {
        const Mem *m = k->param[i].mem;
        if (k->param[i].kind == PARAM_TENSOR && m->mode == MODE_OUT && !e->mem[m->id].absent)
            check_output(e, m);
    }
    for (const Finding *f = e->findings; f; f = f->next)
        check_emit(e, f);
}
