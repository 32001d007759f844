/* Statements with regions: parallel, for, while, if.
 *
 * Input: the tree. Output: ops with regions. Variables that a body assigns are carried (loops) or
 * become results (ifs); their type is the one that they were declared with. Axes of tiles are
 * declared in front of the outermost nest, so that everything in it may share them.
 */
#include "frontend/fe.h"

#include <string.h>

/* --- carried variables ---------------------------------------------------------------------- */

typedef VEC(uint32_t) Carried; /* positions in fe->entries */

/* In the order of their declarations. */
static void find_carried(Fe *fe, const StrVec *assigned, Carried *out) {
    for (uint32_t i = fe->floor; i < fe->entries.len; i++) {
        const Entry *e = &fe->entries.data[i];
        if (e->kind == ENTRY_VAR && str_in(assigned, e->name) && val_ok(e->val) &&
            !(fe->nest && !e->in_nest))
            vec_push(fe->arena, out, i);
    }
}

static Type entry_type(const Entry *e) {
    return type_tile(e->dtype, e->axes);
}

/* The variable's value as something that may be carried: a constant, or all axes present. */
static Value *carried_value(Fe *fe, const Entry *e) {
    if (e->val.v->kind == VALUE_CONST)
        return e->val.v;
    return val_spread(fe, val_with_axes(e->val.v, e->axes), e->span);
}

typedef struct CarryInit {
    Value **inits;
    Type *types;
    const char **names;
} CarryInit;

static CarryInit carry_init(Fe *fe, const Carried *c) {
    CarryInit k = {.inits = ARENA_ARRAY(fe->arena, Value *, c->len),
                   .types = ARENA_ARRAY(fe->arena, Type, c->len),
                   .names = ARENA_ARRAY(fe->arena, const char *, c->len)};
    for (uint32_t i = 0; i < c->len; i++) {
        const Entry *e = &fe->entries.data[c->data[i]];
        k.inits[i] = carried_value(fe, e);
        k.types[i] = entry_type(e);
        k.names[i] = e->name;
    }
    return k;
}

static void carry_enter(Fe *fe, const Carried *c, const Op *op) {
    for (uint32_t i = 0; i < c->len; i++) {
        Entry *e = &fe->entries.data[c->data[i]];
        e->val = val_with_axes(op_carry_arg(op, (int)i), e->axes);
    }
}

static void carry_leave(Fe *fe, const Carried *c, const Op *op) {
    for (uint32_t i = 0; i < c->len; i++) {
        Entry *e = &fe->entries.data[c->data[i]];
        e->val = val_with_axes(op->res[i], e->axes);
    }
}

static void carry_yield(Fe *fe, const Carried *c, Value *stop) {
    if (c->len == 0 && !stop)
        return;
    Value **values = ARENA_ARRAY(fe->arena, Value *, c->len);
    for (uint32_t i = 0; i < c->len; i++)
        values[i] = carried_value(fe, &fe->entries.data[c->data[i]]);
    ir_yield(&fe->b, (int)c->len, values, stop);
}

/* --- outside every nest: what a loop or condition makes of a variable is known at launch --------
 */

/* What the i-th variable becomes in a region is data: a tile, or made from a tensor's elements. */
static bool becomes_data(const Region *r, int i) {
    const Value *v = region_yield(r)->in[i];
    return v->type.axes.n > 0 || !is_launch_known(v);
}

static bool result_is_data(const Op *op, int i) {
    bool data = op->res[i]->type.axes.n > 0;
    for (int r = 0; r < op->nregion; r++)
        data |= becomes_data(op->region[r], i);
    return data || (op->kind != OP_IF && !is_launch_known(op_carry_init(op, i)));
}

static void report_data(Fe *fe, Entry *e, Span span, const char *what) {
    e->kind = ENTRY_POISON; /* its uses are not reported */
    Diag *d = fe_error(fe, DIAG_NOT_AT_LAUNCH, span,
                       "%s makes `%s` data: outside every `parallel` it must be known when the "
                       "kernel is launched",
                       what, e->name);
    diag_note(fe->diags, d, e->span, "`%s` is declared here", e->name);
    if (fe->fn_level > 0)
        diag_hint(fe->diags, d, "call `%s` inside a `parallel`",
                  fe->active[fe->fn_level - 1]->name.text);
    else
        diag_hint(fe->diags, d, "make it a `temp`, or put what uses it into one `parallel`");
}

/* Whether, outside every nest, some variable gets data from the loop or condition. */
static bool makes_data(const Fe *fe, const Carried *c, Op *op) {
    bool data = false;
    for (uint32_t i = 0; !fe->nest && i < c->len; i++)
        data |= result_is_data(op, (int)i);
    return data;
}

/* Variables behind a loop. Where it makes data of one, it is written out if it can be. */
static void loop_leave(Fe *fe, const Carried *c, Op *op, Span span) {
    carry_leave(fe, c, op);
    if (!makes_data(fe, c, op))
        return;
    Value **value = ARENA_ARRAY(fe->arena, Value *, c->len);
    if (for_unroll(fe, op, value)) {
        for (uint32_t i = 0; i < c->len; i++) {
            Entry *e = &fe->entries.data[c->data[i]];
            e->val = val_with_axes(value[i], e->axes);
        }
        return;
    }
    for (uint32_t i = 0; i < c->len; i++) {
        Entry *e = &fe->entries.data[c->data[i]];
        if (e->kind == ENTRY_VAR && result_is_data(op, (int)i))
            report_data(fe, e, span, "this loop");
    }
}

/* Variables behind an `if`. Where data depends on it and it only computes, it becomes selects: a
 * whole-tensor statement has no other place for it. */
static void if_leave(Fe *fe, const Carried *c, Op *op, Span span) {
    carry_leave(fe, c, op);
    if (!makes_data(fe, c, op))
        return;
    if (region_only_computes(op->region[0]) && region_only_computes(op->region[1])) {
        IrMap map = ir_map_new(fe->arena, fe->kernel);
        if_flatten(fe, op, &map);
        for (uint32_t i = 0; i < c->len; i++) {
            Entry *e = &fe->entries.data[c->data[i]];
            e->val = val_with_axes(ir_mapped(&map, op->res[i]), e->axes);
        }
        return;
    }
    for (uint32_t i = 0; i < c->len; i++) {
        Entry *e = &fe->entries.data[c->data[i]];
        if (e->kind == ENTRY_VAR && result_is_data(op, (int)i))
            report_data(fe, e, span, "a condition around other statements");
    }
}

/* --- binders -------------------------------------------------------------------------------- */

typedef struct Bound {
    const AstBinder *binder;
    BinderInit init;
    bool is_tiles;
    bool is_wrong; /* reported: its name is not */
} Bound;

static bool tile_size(Fe *fe, const AstBinder *b, uint32_t *size) {
    *size = 0;
    if (!b->range.size)
        return true;
    Value *v = expr_index(fe, b->range.size);
    if (!v)
        return false;
    if (v->kind != VALUE_CONST || v->u.i <= 0 || v->u.i > 1 << 20) {
        fe_error(fe, DIAG_NOT_CONSTANT, b->range.size->span,
                 "a tile's size is a positive constant");
        return false;
    }
    *size = (uint32_t)v->u.i;
    return true;
}

bool is_range_call(const Expr *e) {
    if (e->kind != EXPR_CALL || e->call.callee->kind != EXPR_NAME)
        return false;
    const char *name = e->call.callee->name.name.text;
    return (!strcmp(name, "range") || !strcmp(name, "arange") || !strcmp(name, "static_range")) &&
           e->call.args.len >= 1 && e->call.args.len <= 3;
}

const char *range_text(Fe *fe, const Expr *e, bool step) {
    const ArgVec *args = &e->call.args;
    const char *text[3];
    if (!is_range_call(e))
        return arena_printf(fe->arena, "0..%s", span_text(fe, e->span));
    for (uint32_t i = 0; i < args->len; i++)
        text[i] = span_text(fe, args->data[i].span);
    if (args->len == 1)
        return arena_printf(fe->arena, "0..%s", text[0]);
    return arena_printf(fe->arena, step && args->len == 3 ? "%s..%s step %s" : "%s..%s", text[0],
                        text[1], args->len == 3 ? text[2] : "");
}

static bool binder_range(Fe *fe, const AstBinder *b, bool grid, BinderInit *init) {
    const Range *r = &b->range;
    if (r->kind == RANGE_WHOLE) {
        Diag *d = fe_error(fe, DIAG_BAD_RANGE, r->span, "`%s` needs a range", b->name.text);
        const char *text = range_text(fe, r->high, false);
        const char *tiles = strncmp(text, "0..", 3) ? text : text + 3;
        diag_hint(fe->diags, d, "write `%s in %s`, or `%s in tiles(%s)`", b->name.text,
                  range_text(fe, r->high, !grid), b->name.text, tiles);
        return false;
    }
    bool ok = true;
    if (r->step && grid) {
        Diag *d = fe_error(fe, DIAG_BAD_RANGE, r->step->span, "a grid has no step");
        diag_hint(fe->diags, d, "take every index, and compute: `let %s = lo + i * %s;`",
                  b->name.text, span_text(fe, r->step->span));
        ok = false;
    }
    init->lo = ir_index(fe->kernel, 0);
    if (r->low)
        ok &= range_bound(fe, r->low, &init->lo);
    ok &= range_bound(fe, r->high, &init->hi);
    if (r->step) {
        ok &= range_bound(fe, r->step, &init->step);
        if (ok && value_is_int(init->step, 0)) {
            fe_error(fe, DIAG_BAD_RANGE, r->step->span, "a step of 0 never ends");
            ok = false;
        }
    }
    return ok;
}

/* Bounds of a binder, of a `parallel` where `grid`; the axis of a tile binder is declared at
 * `where`. */
static bool binder_prepare(Fe *fe, const AstBinder *b, bool grid, Builder *where, Bound *out) {
    *out = (Bound){
        .binder = b, .is_tiles = b->range.kind == RANGE_TILES, .init = {.name = b->name.text}};
    uint32_t size;
    if (!binder_range(fe, b, grid, &out->init) || !tile_size(fe, b, &size))
        return false;
    if (!check_launch_known(fe, out->init.lo, b->range.span) ||
        !check_launch_known(fe, out->init.hi, b->range.span))
        return false;
    if (!out->is_tiles)
        return true;
    Axis *of = range_of(fe, &b->range);
    where->span = b->span;
    out->init.axis = ir_axis(where, b->name.text, of, size);
    return true;
}

/* The names of the binders of `op`, in its region. */
static void binder_enter(Fe *fe, const Bound *bounds, uint32_t n, Op *op) {
    int scalars = 0;
    for (uint32_t i = 0; i < n; i++) {
        const Bound *b = &bounds[i];
        EntryKind kind = b->is_wrong ? ENTRY_POISON : b->is_tiles ? ENTRY_AXIS : ENTRY_LET;
        Entry *e = scope_add(fe, kind, b->binder->name);
        if (!b->is_tiles) {
            e->val = val_of(op->region[0]->arg[scalars++]);
            continue;
        }
        e->axis = b->init.axis;
        *axis_info(fe, b->init.axis) = (AxisInfo){.axis = b->init.axis,
                                                  .lo = b->init.lo,
                                                  .hi = b->init.hi,
                                                  .parallel = op->kind == OP_PARALLEL,
                                                  .sequential = op->kind == OP_FOR,
                                                  .binder = op,
                                                  .fn_level = fe->fn_level};
    }
}

static BinderInit *binder_inits(Fe *fe, const Bound *bounds, uint32_t n) {
    BinderInit *inits = ARENA_ARRAY(fe->arena, BinderInit, n);
    for (uint32_t i = 0; i < n; i++)
        inits[i] = bounds[i].init;
    return inits;
}

static void binder_poison(Fe *fe, const AstBinder *b) {
    scope_add(fe, ENTRY_POISON, b->name);
}

static bool range_mentions(const Range *r, Str name) {
    return expr_mentions(r->low, name) || expr_mentions(r->high, name) ||
           expr_mentions(r->step, name) || expr_mentions(r->size, name);
}

/* --- parallel ------------------------------------------------------------------------------- */

typedef struct Grid {
    VEC(const AstBinder *) binders;
    VEC(const Stmt *) lets; /* between nested parallels */
    StrVec names;           /* what those and the binders define */
    const Block *body;
} Grid;

static void grid_add_binders(Fe *fe, Grid *g, const BinderVec *binders) {
    for (uint32_t i = 0; i < binders->len; i++) {
        vec_push(fe->arena, &g->binders, &binders->data[i]);
        vec_push(fe->arena, &g->names, binders->data[i].name.text);
    }
}

static void grid_add_names(Fe *fe, Grid *g, const Stmt *s) {
    if (s->kind == STMT_AXIS)
        for (uint32_t i = 0; i < s->axis.len; i++)
            vec_push(fe->arena, &g->names, s->axis.data[i].name.text);
    if (s->kind == STMT_LET)
        for (uint32_t i = 0; i < s->let.len; i++)
            for (uint32_t k = 0; k < s->let.data[i].pattern.names.len; k++)
                vec_push(fe->arena, &g->names, s->let.data[i].pattern.names.data[k].text);
}

/* Joins parallels that have only lets and axes between them. */
static void grid_collect(Fe *fe, const Stmt *s, Grid *g) {
    for (;;) {
        grid_add_binders(fe, g, &s->loop.binders);
        g->body = s->loop.body;
        const StmtVec *stmts = &g->body->stmts;
        uint32_t n = stmts->len;
        if (n == 0 || stmts->data[n - 1]->kind != STMT_PARALLEL)
            return;
        for (uint32_t i = 0; i + 1 < n; i++)
            if (stmts->data[i]->kind != STMT_LET && stmts->data[i]->kind != STMT_AXIS)
                return;
        for (uint32_t i = 0; i + 1 < n; i++) {
            vec_push(fe->arena, &g->lets, stmts->data[i]);
            grid_add_names(fe, g, stmts->data[i]);
        }
        s = stmts->data[n - 1];
    }
}

static bool is_ragged(const Grid *g, const AstBinder *b) {
    for (uint32_t k = 0; k < g->names.len; k++)
        if (g->names.data[k] != b->name.text && range_mentions(&b->range, g->names.data[k]))
            return true;
    return false;
}

/* Binders with ranges of their own first; those that depend on others become loops inside, which
 * is one of the orders that independent iterations may have. */
static uint32_t grid_split(Fe *fe, Grid *g) {
    uint32_t n = 0;
    const AstBinder **sorted = ARENA_ARRAY(fe->arena, const AstBinder *, g->binders.len);
    for (int ragged = 0; ragged < 2; ragged++)
        for (uint32_t i = 0, at = ragged ? n : 0; i < g->binders.len; i++)
            if (is_ragged(g, g->binders.data[i]) == (ragged == 1)) {
                sorted[at++] = g->binders.data[i];
                n += ragged == 0;
            }
    for (uint32_t i = 0; i < g->binders.len; i++)
        g->binders.data[i] = sorted[i];
    return n;
}

/* The loops of the ragged binders from `i` on, then the body. */
static void grid_body(Fe *fe, const Grid *g, uint32_t i) {
    if (i == g->binders.len) {
        stmt_block(fe, g->body);
        return;
    }
    const AstBinder *b = g->binders.data[i];
    Bound bound;
    Builder before = ir_builder_before(fe->kernel, fe->nest);
    if (!binder_prepare(fe, b, true, &before, &bound)) {
        binder_poison(fe, b);
        grid_body(fe, g, i + 1);
        return;
    }
    fe->b.span = b->span;
    Op *op = ir_for_typed(&fe->b, 1, &bound.init, 0, NULL, NULL, NULL);
    Builder outer = fe->b;
    fe->b = ir_builder_at_end(fe->kernel, op->region[0]);
    binder_enter(fe, &bound, 1, op);
    vec_push(fe->arena, &fe->ragged,
             bound.is_tiles ? bound.init.axis->iota : op->region[0]->arg[0]);
    grid_body(fe, g, i + 1);
    fe->b = outer;
}

static bool parallel_allowed(Fe *fe, const Stmt *s) {
    if (!fe->nest)
        return true;
    Diag *d = fe_error(fe, DIAG_NEST_STATEMENT, s->span,
                       "`parallel` inside the loops of another `parallel`");
    diag_note(fe->diags, d, fe->nest->span, "the outer one is here");
    diag_hint(fe->diags, d, "bind both in one `parallel`, or make this one a `for`");
    return false;
}

/* A binder of one iteration in the place of one that is wrong: errors of the body count. */
static void wrong_bound(Fe *fe, const AstBinder *b, Bound *out) {
    *out = (Bound){.binder = b,
                   .is_wrong = true,
                   .init = {.name = b->name.text,
                            .lo = ir_index(fe->kernel, 0),
                            .hi = ir_index(fe->kernel, 1)}};
}

void stmt_parallel(Fe *fe, const Stmt *s) {
    if (!parallel_allowed(fe, s))
        return;
    Grid g = {0};
    grid_collect(fe, s, &g);
    uint32_t n = grid_split(fe, &g);
    Bound *bounds = ARENA_ARRAY(fe->arena, Bound, n);
    bool ok = n > 0;
    if (!ok)
        fe_error(fe, DIAG_BAD_RANGE, s->span, "the ranges of this grid depend on each other");
    for (uint32_t i = 0; i < n; i++)
        if (!binder_prepare(fe, g.binders.data[i], true, &fe->b, &bounds[i]))
            wrong_bound(fe, g.binders.data[i], &bounds[i]);
    Builder outer = fe->b;
    uint32_t mark, accesses = fe->accesses.len;
    scope_open(fe, &mark);
    if (ok) {
        fe->b.span = s->span;
        Op *op = ir_parallel(&fe->b, (int)n, binder_inits(fe, bounds, n));
        outer = fe->b;
        fe->b = ir_builder_at_end(fe->kernel, op->region[0]);
        fe->nest = op;
        fe->ragged.len = 0;
        binder_enter(fe, bounds, n, op);
        for (uint32_t i = 0; i < g.lets.len; i++)
            stmt_any(fe, g.lets.data[i]);
        grid_body(fe, &g, n);
        race_check_nest(fe, accesses);
    }
    fe->nest = NULL;
    fe->accesses.len = accesses;
    fe->b = outer;
    scope_close(fe, mark);
}

static Op *if_begin(Fe *fe, Value *c, const Carried *results, Span span) {
    Type *types = ARENA_ARRAY(fe->arena, Type, results->len);
    for (uint32_t i = 0; i < results->len; i++)
        types[i] = entry_type(&fe->entries.data[results->data[i]]);
    fe->b.span = span;
    return ir_if(&fe->b, c, (int)results->len, types);
}

/* --- break and continue --------------------------------------------------------------------- */

/* Where a body may leave: two variables, set by `break` and `continue`, that guard what follows. */
static void flags_add(Fe *fe, const Block *body) {
    if (!block_breaks(body))
        return;
    const char *const names[] = {flag_stop, flag_skip};
    for (int i = 0; i < 2; i++)
        vec_push(fe->arena, &fe->entries,
                 ((Entry){.kind = ENTRY_VAR,
                          .name = names[i],
                          .span = body->span,
                          .val = val_of(ir_bool(fe->kernel, false)),
                          .dtype = DT_BOOL,
                          .axes = axes_none(),
                          .in_nest = fe->nest != NULL}));
}

/* Whether the loop ends here; NULL where it cannot. */
static Value *flag_value(Fe *fe, const Block *body) {
    return block_breaks(body) ? scope_find(fe, flag_stop)->val.v : NULL;
}

void stmt_break(Fe *fe, const Stmt *s) {
    Entry *skip = scope_find(fe, flag_skip), *stop = scope_find(fe, flag_stop);
    if (!skip || skip->in_nest != (fe->nest != NULL)) {
        Diag *d = fe_error(fe, DIAG_NEST_STATEMENT, s->span, "`%s` outside a loop",
                           s->kind == STMT_BREAK ? "break" : "continue");
        if (fe->nest)
            diag_hint(fe->diags, d,
                      "iterations of `parallel` are no loop: put what is left into `if ... { }`");
        return;
    }
    skip->val = val_of(ir_bool(fe->kernel, true));
    if (s->kind == STMT_BREAK)
        stop->val = skip->val;
}

void stmt_rest(Fe *fe, const StmtVec *stmts, uint32_t from) {
    const Entry *skip = scope_find(fe, flag_skip);
    bool known;
    if (!skip || val_const_bool(skip->val, &known)) {
        if (!skip || !known)
            stmt_list(fe, stmts, from);
        return;
    }
    Span span = stmts->data[from]->span;
    Value *go = build_unary(fe, OP_NOT, skip->val, DT_BOOL, span).v;
    StrVec assigned = {0};
    Carried results = {0};
    for (uint32_t i = from; i < stmts->len; i++)
        stmt_assigned(fe->arena, stmts->data[i], &assigned);
    find_carried(fe, &assigned, &results);
    Val *before = ARENA_ARRAY(fe->arena, Val, results.len);
    for (uint32_t i = 0; i < results.len; i++)
        before[i] = fe->entries.data[results.data[i]].val;
    Op *op = if_begin(fe, go, &results, span);
    Builder outer = fe->b;
    fe->b = ir_builder_at_end(fe->kernel, op->region[0]);
    fe->b.span = span;
    stmt_list(fe, stmts, from);
    carry_yield(fe, &results, NULL);
    for (uint32_t i = 0; i < results.len; i++)
        fe->entries.data[results.data[i]].val = before[i];
    fe->b = ir_builder_at_end(fe->kernel, op->region[1]);
    fe->b.span = span;
    carry_yield(fe, &results, NULL);
    fe->b = outer;
    if_leave(fe, &results, op, span);
}

/* --- for ------------------------------------------------------------------------------------ */

static void for_body(Fe *fe, const Stmt *s, uint32_t first);

/* Binders first..last whose bounds do not depend on each other are one op. */
static uint32_t for_group(const Stmt *s, uint32_t first) {
    const BinderVec *v = &s->loop.binders;
    uint32_t end = first + 1;
    for (; end < v->len; end++)
        for (uint32_t i = first; i < end; i++)
            if (range_mentions(&v->data[end].range, v->data[i].name.text))
                return end;
    return end;
}

static void for_from(Fe *fe, const Stmt *s, uint32_t first) {
    uint32_t end = for_group(s, first), n = end - first;
    Bound *bounds = ARENA_ARRAY(fe->arena, Bound, n);
    bool ok = true;
    for (uint32_t i = 0; i < n; i++) {
        Builder before = fe->nest ? ir_builder_before(fe->kernel, fe->nest) : fe->b;
        ok &= binder_prepare(fe, &s->loop.binders.data[first + i], false, &before, &bounds[i]);
    }
    uint32_t mark;
    scope_open(fe, &mark);
    if (!ok) {
        /* The body is still looked at: its other errors count. */
        for (uint32_t i = 0; i < n; i++)
            binder_poison(fe, &s->loop.binders.data[first + i]);
        for_body(fe, s, end);
        scope_close(fe, mark);
        return;
    }
    StrVec assigned = {0};
    Carried carried = {0};
    block_assigned(fe->arena, s->loop.body, &assigned);
    find_carried(fe, &assigned, &carried);
    /* A `break` ends the loops of all groups: the flag of the one around is carried through. */
    ptrdiff_t around = -1;
    if (first > 0 && block_breaks(s->loop.body))
        around = scope_find(fe, flag_stop) - fe->entries.data;
    CarryInit k = carry_init(fe, &carried);
    fe->b.span = s->span;
    Op *op = ir_for_typed(&fe->b, (int)n, binder_inits(fe, bounds, n), (int)carried.len, k.inits,
                          k.types, k.names);
    Builder outer = fe->b;
    fe->b = ir_builder_at_end(fe->kernel, op->region[0]);
    fe->b.span = s->span;
    carry_enter(fe, &carried, op);
    binder_enter(fe, bounds, n, op);
    flags_add(fe, s->loop.body);
    for_body(fe, s, end);
    if (around >= 0)
        fe->entries.data[around].val = scope_find(fe, flag_stop)->val;
    carry_yield(fe, &carried, flag_value(fe, s->loop.body));
    fe->b = outer;
    scope_close(fe, mark);
    loop_leave(fe, &carried, op, s->span);
}

static void for_body(Fe *fe, const Stmt *s, uint32_t first) {
    if (first < s->loop.binders.len)
        for_from(fe, s, first);
    else
        stmt_block(fe, s->loop.body);
}

void stmt_for(Fe *fe, const Stmt *s) {
    fe->loops++;
    for_from(fe, s, 0);
    fe->loops--;
}

/* --- while and if --------------------------------------------------------------------------- */

static Val scalar_condition(Fe *fe, const Expr *e, const char *what) {
    Val c = expr_bool(fe, e, "a condition");
    if (!val_ok(c) || c.axes.n == 0)
        return c;
    Diag *d = fe_error(fe, DIAG_NOT_SCALAR, e->span, "`%s` needs one bool, this is %s", what,
                       val_text(fe, c));
    diag_hint(fe->diags, d, "choose elementwise with `c ? x : y`, or use `any%s(...)`",
              axes_text(fe, c.axes));
    return val_poison();
}

/* `while c { }` is `if c { do { } while c }`: the op tests after its body. */
static void while_loop(Fe *fe, const Stmt *s, const Carried *carried) {
    CarryInit k = carry_init(fe, carried);
    fe->b.span = s->span;
    Op *op = ir_while_typed(&fe->b, (int)carried->len, k.inits, k.types, k.names);
    Builder outer = fe->b;
    fe->b = ir_builder_at_end(fe->kernel, op->region[0]);
    fe->b.span = s->span;
    carry_enter(fe, carried, op);
    uint32_t mark;
    scope_open(fe, &mark);
    flags_add(fe, s->while_.body);
    stmt_block(fe, s->while_.body);
    Val again = scalar_condition(fe, s->while_.test, "while");
    Val stop = val_ok(again) ? build_unary(fe, OP_NOT, again, DT_BOOL, s->while_.test->span)
                             : val_of(ir_bool(fe->kernel, true));
    Value *flag = flag_value(fe, s->while_.body);
    if (flag)
        stop = op_apply(fe, BINARY_OR, val_of(flag), stop, s->span);
    carry_yield(fe, carried, stop.v);
    scope_close(fe, mark);
    fe->b = outer;
    loop_leave(fe, carried, op, s->span);
}

/* The body of a loop whose head is wrong: its other errors count. */
static void wrong_loop(Fe *fe, const Block *body) {
    uint32_t mark;
    scope_open(fe, &mark);
    flags_add(fe, body);
    stmt_block(fe, body);
    scope_close(fe, mark);
}

void stmt_while(Fe *fe, const Stmt *s) {
    if (!fe->nest && fe->fn_level == 0) {
        Diag *d = fe_error(fe, DIAG_NEST_STATEMENT, s->span, "`while` outside every `parallel`");
        diag_hint(fe->diags, d,
                  "a loop that steers launches is a `for`: its range is known when "
                  "the kernel is launched");
        return;
    }
    Val c = scalar_condition(fe, s->while_.test, "while");
    bool known;
    if (!val_ok(c) || !check_launch_known(fe, c.v, s->while_.test->span)) {
        wrong_loop(fe, s->while_.body);
        return;
    }
    if (val_const_bool(c, &known) && !known)
        return;
    doubt_while(fe, s);
    StrVec assigned = {0};
    Carried carried = {0};
    block_assigned(fe->arena, s->while_.body, &assigned);
    find_carried(fe, &assigned, &carried);
    fe->loops++;
    Op *op = if_begin(fe, c.v, &carried, s->span);
    Builder outer = fe->b;
    Val *before = ARENA_ARRAY(fe->arena, Val, carried.len);
    for (uint32_t i = 0; i < carried.len; i++)
        before[i] = fe->entries.data[carried.data[i]].val;
    fe->b = ir_builder_at_end(fe->kernel, op->region[0]);
    while_loop(fe, s, &carried);
    carry_yield(fe, &carried, NULL);
    for (uint32_t i = 0; i < carried.len; i++)
        fe->entries.data[carried.data[i]].val = before[i];
    fe->b = ir_builder_at_end(fe->kernel, op->region[1]);
    fe->b.span = s->span;
    carry_yield(fe, &carried, NULL);
    fe->b = outer;
    if_leave(fe, &carried, op, s->span);
    fe->loops--;
}

static void if_known(Fe *fe, const Stmt *s, bool known) {
    if (known)
        stmt_block(fe, s->if_.then);
    else if (s->if_.otherwise)
        stmt_any(fe, s->if_.otherwise);
}

/* One side: in its own region, from the values before the if. */
static void if_side(Fe *fe, const Stmt *s, Op *op, int side, Value *c, const Carried *results,
                    const Val *before) {
    for (uint32_t i = 0; i < results->len; i++)
        fe->entries.data[results->data[i]].val = before[i];
    fe->b = ir_builder_at_end(fe->kernel, op->region[side]);
    fe->b.span = s->span;
    if (side == 0) {
        vec_push(fe->arena, &fe->guards, c);
        stmt_block(fe, s->if_.then);
        fe->guards.len--;
    } else if (s->if_.otherwise) {
        stmt_any(fe, s->if_.otherwise);
    }
    carry_yield(fe, results, NULL);
}

void stmt_if(Fe *fe, const Stmt *s) {
    Val c = scalar_condition(fe, s->if_.test, "if");
    bool known;
    if (!val_ok(c) || !check_launch_known(fe, c.v, s->if_.test->span)) {
        if_known(fe, s, true);
        if_known(fe, s, false);
        return;
    }
    if (val_const_bool(c, &known)) {
        if_known(fe, s, known);
        return;
    }
    StrVec assigned = {0};
    Carried results = {0};
    stmt_assigned(fe->arena, s, &assigned);
    find_carried(fe, &assigned, &results);
    Val *before = ARENA_ARRAY(fe->arena, Val, results.len);
    for (uint32_t i = 0; i < results.len; i++)
        before[i] = fe->entries.data[results.data[i]].val;
    Op *op = if_begin(fe, c.v, &results, s->span);
    Builder outer = fe->b;
    if_side(fe, s, op, 0, c.v, &results, before);
    if_side(fe, s, op, 1, c.v, &results, before);
    fe->b = outer;
    if_leave(fe, &results, op, s->span);
}
