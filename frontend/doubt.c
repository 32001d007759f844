/* Warnings where a text probably means something else.
 *
 * Input: values and statements as they are lowered. Output: warnings; nothing else changes.
 *   - a read that leaves its tensor, whose 0 an `exp`, `cos`, `max`, `mean` takes for a value
 *   - a `dot` of which no operand has an axis of its own
 *   - two axes in each other's place
 *   - a `while` whose condition nothing in its body changes
 *   - a `scatter` of what one tile alone has summed
 * Each is certain of its facts: what is not known (data, symbolic sizes that do not cancel) is
 * taken to be right.
 */
#include "frontend/fe.h"

#include <string.h>

enum { LEAVES_MAX = 12, STEPS_MAX = 64 };

/* --- bounds of an index --------------------------------------------------------------------- */

/* A sum of scaled values and a constant. */
typedef struct Linear {
    struct {
        Value *leaf;
        int64_t scale;
    } term[LEAVES_MAX];
    int n;
    int64_t constant;
    bool ok;
} Linear;

static void linear_term(Linear *l, Value *leaf, int64_t scale) {
    for (int i = 0; i < l->n; i++)
        if (l->term[i].leaf == leaf) {
            l->term[i].scale += scale;
            return;
        }
    if (l->n == LEAVES_MAX)
        l->ok = false;
    else
        l->term[l->n].leaf = leaf, l->term[l->n++].scale = scale;
}

static void linear_add(Linear *l, Value *v, int64_t scale, int depth) {
    const Op *op = v->kind == VALUE_OP ? v->def : NULL;
    if (depth > STEPS_MAX || scale > INT32_MAX || scale < -INT32_MAX) {
        l->ok = false;
    } else if (v->kind == VALUE_CONST) {
        l->ok &= v->u.i < INT32_MAX && v->u.i > -INT32_MAX;
        l->constant += l->ok ? scale * v->u.i : 0;
    } else if (op && (op->kind == OP_ADD || op->kind == OP_SUB)) {
        linear_add(l, op->in[0], scale, depth + 1);
        linear_add(l, op->in[1], op->kind == OP_ADD ? scale : -scale, depth + 1);
    } else if (op && op->kind == OP_MUL && op->in[1]->kind == VALUE_CONST) {
        linear_add(l, op->in[0], scale * op->in[1]->u.i, depth + 1);
    } else if (op && op->kind == OP_MUL && op->in[0]->kind == VALUE_CONST) {
        linear_add(l, op->in[1], scale * op->in[0]->u.i, depth + 1);
    } else if (op && op->kind == OP_CAST && dtype_is_integer(op->in[0]->type.dtype)) {
        linear_add(l, op->in[0], scale, depth + 1);
    } else {
        linear_term(l, v, scale);
    }
}

static bool window_of(Fe *fe, const Value *v, Value **lo, Value **hi) {
    if (v->kind == VALUE_IOTA && v->axis->like)
        v = v->axis->like->iota;
    return (v->kind == VALUE_IOTA || v->kind == VALUE_ARG) && variable_range(fe, v, lo, hi);
}

/* The largest (or smallest) value of l: variables at the ends of their ranges, until none is left.
 * False where it is not a sum of sizes and scalar arguments. */
static bool linear_bound(Fe *fe, Linear *l, bool largest) {
    for (int step = 0; l->ok && step < STEPS_MAX; step++) {
        int at = 0;
        while (at < l->n && (l->term[at].scale == 0 || l->term[at].leaf->kind == VALUE_PARAM))
            at++;
        if (at == l->n)
            return true;
        Value *lo, *hi, *v = l->term[at].leaf;
        int64_t scale = l->term[at].scale;
        if (!window_of(fe, v, &lo, &hi))
            return false;
        l->term[at] = l->term[--l->n];
        bool upper = largest == (scale > 0);
        linear_add(l, upper ? hi : lo, scale, 0);
        l->constant -= upper ? scale : 0;
    }
    return false;
}

/* Signs of the symbolic terms that are left: 0 none, 1 all positive, -1 all negative, 2 both. */
static int linear_sign(const Linear *l) {
    int sign = 0;
    for (int i = 0; i < l->n; i++)
        if (l->term[i].scale != 0) {
            int s = l->term[i].scale > 0 ? 1 : -1;
            sign = sign == 0 || sign == s ? s : 2;
        }
    return sign;
}

/* Where an index takes values outside of 0..extent, surely and for some launch; NULL: not known. */
static const char *leaves_dim(Fe *fe, Value *index, Value *extent) {
    Linear low = {.ok = true}, high = {.ok = true};
    bool varies = index->type.axes.n > 0 || index->kind == VALUE_ARG;
    if (!varies && (index->kind != VALUE_OP || !op_has(index->def->kind, TRAIT_ELEMENTWISE)))
        return NULL;
    linear_add(&low, index, 1, 0);
    if (linear_bound(fe, &low, false)) {
        int sign = linear_sign(&low);
        if ((sign == 0 && low.constant < 0) || (sign == -1 && low.constant <= 0))
            return "before the start";
    }
    linear_add(&high, index, 1, 0);
    linear_add(&high, extent, -1, 0);
    if (!linear_bound(fe, &high, true))
        return NULL;
    int sign = linear_sign(&high);
    bool past = (sign == 0 && high.constant >= 0) || (sign == 1 && high.constant >= -1);
    return past ? "past the end" : NULL;
}

/* Where the load leaves its tensor (NULL: nowhere), and the axes of the indices that do. */
static const char *load_leaves(Fe *fe, const Op *load, AxisSet *axes) {
    const char *leaves = NULL;
    *axes = axes_none();
    if (load->has_else || load->mem[0].mem->opt)
        return NULL;
    for (int d = 0; d < load->mem[0].nidx; d++) {
        Value *index = load->in[load->mem[0].first + d];
        const char *where = leaves_dim(fe, index, load->mem[0].mem->dim[d]);
        if (!where)
            continue;
        leaves = where;
        axes_union(*axes, index->type.axes, axes);
    }
    return leaves;
}

/* --- reads outside -------------------------------------------------------------------------- */

/* Ops that give what their operand's 0 outside gives; a choice between values is the text's own. */
static bool passes_on(OpKind kind) {
    return kind == OP_ADD || kind == OP_SUB || kind == OP_MUL || kind == OP_DIV || kind == OP_NEG ||
           kind == OP_ABS || kind == OP_CAST || kind == OP_FMA;
}

/* The load behind v that leaves its tensor along one of `along` (along none: along any axis). */
static const Op *leaving_load(Fe *fe, const Value *v, AxisSet along, int *steps) {
    if (v->kind != VALUE_OP || (*steps)++ > STEPS_MAX)
        return NULL;
    const Op *op = v->def;
    if (op->kind == OP_LOAD) {
        AxisSet axes;
        if (!load_leaves(fe, op, &axes))
            return NULL;
        return along.n == 0 || axes_intersect(axes, along).n > 0 ? op : NULL;
    }
    for (int i = 0; passes_on(op->kind) && i < op->nin; i++) {
        const Op *load = leaving_load(fe, op->in[i], along, steps);
        if (load)
            return load;
    }
    return NULL;
}

/* What is not taken for a value there, as text; NULL where there is none. */
static const char *ignored_by(const char *name) {
    static const char *const rows[][2] = {
        {"max", "-inf"}, {"argmax", "-inf"}, {"cummax", "-inf"}, {"min", "inf"},  {"argmin", "inf"},
        {"exp", "-inf"}, {"exp2", "-inf"},   {"prod", "1"},      {"all", "true"}, {"cumprod", "1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i][0], name))
            return rows[i][1];
    return NULL;
}

void doubt_outside(Fe *fe, Val v, AxisSet along, const char *name, Span span, Val result) {
    int steps = 0;
    if (v.kind != VAL_VALUE || result.kind != VAL_VALUE || fe->guards.len > 0)
        return;
    const Op *load = leaving_load(fe, v.v, along, &steps);
    for (uint32_t i = 0; i < fe->doubts.len; i++)
        if (fe->doubts.data[i].load == load)
            return; /* the first one says it */
    if (load)
        vec_push(fe->arena, &fe->doubts, ((Doubt){load, name, span, result.v}));
}

static void report_outside(Fe *fe, const Doubt *doubt) {
    const char *text = span_text(fe, doubt->load->span), *fill = ignored_by(doubt->name);
    const Mem *mem = doubt->load->mem[0].mem;
    AxisSet axes;
    Diag *d =
        fe_error(fe, DIAG_OUTSIDE_READ, doubt->load->span,
                 "this reads %s of `%s`, where it gives 0, and `%s` takes that for an element",
                 load_leaves(fe, doubt->load, &axes), mem->name, doubt->name);
    diag_note(fe->diags, d, doubt->span, "`%s` is here", doubt->name);
    bool infinite = fill && strchr(fill, 'i') && !dtype_is_float(mem->dtype);
    if (fill && !infinite)
        diag_hint(fe->diags, d, "write `%s else %s`, which `%s` ignores", text, fill, doubt->name);
    else
        diag_hint(fe->diags, d,
                  "write `%s else v` with the value that is meant there (0, if it is that), or end "
                  "the range where the tensor ends",
                  text);
}

static void mark(bool *masked, const Op *op, int from) {
    for (int i = from; i < op->nin; i++)
        masked[op->in[i]->id] = true;
}

/* Values of which a later choice takes some elements only; operands of what is masked are too. */
static void mark_region(bool *masked, const Region *r) {
    for (const Op *op = r->last; op; op = op->prev) {
        for (int i = op->nregion; i > 0; i--)
            mark_region(masked, op->region[i - 1]);
        if (op->kind == OP_SELECT)
            mark(masked, op, 1);
        else if (op->nres == 1 && op_has(op->kind, TRAIT_ELEMENTWISE) && masked[op->res[0]->id])
            mark(masked, op, 0);
    }
}

static void report_reads(Fe *fe) {
    bool *masked = ARENA_ARRAY(fe->arena, bool, fe->kernel->nvalue);
    mark_region(masked, fe->kernel->body);
    for (uint32_t i = 0; i < fe->doubts.len; i++)
        if (!masked[fe->doubts.data[i].result->id])
            report_outside(fe, &fe->doubts.data[i]);
}

/* --- dot ------------------------------------------------------------------------------------ */

static const char *value_source(Fe *fe, const Value *v) {
    return v->kind == VALUE_OP ? span_text(fe, v->def->span) : "...";
}

/* A function of the library does not know what it is called with: only the file's own are looked
 * at. */
static void doubt_dot(void *user, Op *op) {
    Fe *fe = user;
    if (op->kind != OP_DOT || source_file_at(fe->sources, op->span.begin) != fe->main->ast->file)
        return;
    AxisSet a = op->in[0]->type.axes, b = op->in[1]->type.axes, along = axes_none();
    for (int i = 0; i < op->naxes; i++)
        axes_add(&along, op->axes[i]->id);
    AxisSet both = axes_minus(a, along);
    if (both.n == 0 || !axes_equal(a, b))
        return;
    const Axis *axis = axis_by_id(fe, both.id[both.n - 1]);
    const char *left = value_source(fe, op->in[0]), *right = value_source(fe, op->in[1]);
    Diag *d =
        fe_error(fe, DIAG_DOT_BATCH, op->span,
                 "both operands of `dot` are %s: this is one sum of products for each %s, not "
                 "a matrix",
                 val_text(fe, val_of(op->in[0])), axes_text(fe, both));
    diag_hint(fe->diags, d,
              "for all pairs index one side by an axis of its own: `axis %s2 in %s;`, then `%s2` "
              "in place of `%s` in `%s`",
              axis->name, axis->is_dim ? axis->name : "...", axis->name, axis->name, right);
    diag_hint(fe->diags, d, "if the sum is meant, write `sum%s(%s * %s)`", axes_text(fe, along),
              left, right);
}

void doubts_report(Fe *fe) {
    if (fe->doubts.len > 0)
        report_reads(fe);
    ir_walk(fe->kernel->body, doubt_dot, fe);
}

/* --- constant indices ----------------------------------------------------------------------- */

void doubt_constant(Fe *fe, const Tensor *t, Value *const *index, Span span) {
    for (int d = 0; d < t->mem->rank; d++) {
        const Value *extent = t->mem->dim[d];
        if (index[d]->kind != VALUE_CONST)
            continue;
        int64_t i = index[d]->u.i;
        if (i >= 0 && (extent->kind != VALUE_CONST || i < extent->u.i))
            continue;
        Diag *diag = fe_error(fe, DIAG_ALWAYS_OUTSIDE, span,
                              "index %lld is outside of `%s`: there is nothing to read or write",
                              (long long)i, t->mem->name);
        if (i < 0 && t->text[d])
            diag_hint(fe->diags, diag,
                      "indices do not count from the end: the last one is `%s - 1`", t->text[d]);
        else if (t->text[d])
            diag_hint(fe->diags, diag, "indices of this dim are 0..%s", t->text[d]);
    }
}

/* --- swapped axes --------------------------------------------------------------------------- */

/* The dim all of which the index walks, nothing else; NULL: none. */
static const Axis *walked(Fe *fe, const Value *index) {
    if (index->kind != VALUE_IOTA)
        return NULL;
    const Axis *axis = index->axis;
    if (axis->is_dim)
        return axis;
    const AxisInfo *info = axis_info(fe, axis);
    bool whole = axis->of && info->lo && info->lo->kind == VALUE_CONST && info->lo->u.i == 0 &&
                 info->hi == axis->of->extent;
    return whole ? axis->of : NULL;
}

/* Whether a condition of `where` speaks of both dims: they may be equal. */
static bool related(Fe *fe, const Axis *a, const Axis *b) {
    const ExprVec *where = &fe->decl->kernel.where;
    for (uint32_t i = 0; i < where->len; i++)
        if (expr_mentions(where->data[i], a->name) && expr_mentions(where->data[i], b->name))
            return true;
    return false;
}

static const char *exchanged(Fe *fe, const Tensor *t, const Expr *e, int i, int j) {
    const char *text = arena_printf(fe->arena, "%s[", t->mem->name);
    for (int d = 0; d < t->mem->rank; d++) {
        const IndexEntry *entry = &e->index.entries.data[d == i ? j : d == j ? i : d];
        text = arena_printf(fe->arena, "%s%s%s", text, d ? ", " : "", span_text(fe, entry->span));
    }
    return arena_printf(fe->arena, "%s]", text);
}

static void report_swapped(Fe *fe, const Tensor *t, const Expr *e, Value *const *index, int i,
                           int j, Span span) {
    const Axis *a = t->axis[i], *b = t->axis[j];
    Diag *d = fe_error(fe, DIAG_SWAPPED_AXES, span,
                       "`%s` walks `%s` and indexes dim `%s` of `%s`, `%s` walks `%s` and indexes "
                       "dim `%s`",
                       index[i]->axis->name, b->name, a->name, t->mem->name, index[j]->axis->name,
                       a->name, b->name);
    if (e->index.entries.data[0].kind != INDEX_NAMED)
        diag_hint(fe->diags, d, "write `%s`", exchanged(fe, t, e, i, j));
    diag_hint(fe->diags, d, "if the two dims are always equal, say so: `where %s == %s`", a->name,
              b->name);
}

void doubt_swapped(Fe *fe, const Tensor *t, const Expr *e, Value *const *index, Span span) {
    for (int j = 0; e && j < t->mem->rank; j++)
        for (int i = 0; i < j; i++) {
            const Axis *a = walked(fe, index[i]), *b = walked(fe, index[j]);
            if (a && b && a != b && a == t->axis[j] && b == t->axis[i] && !related(fe, a, b))
                report_swapped(fe, t, e, index, i, j, span);
        }
}

/* --- while ---------------------------------------------------------------------------------- */

void doubt_while(Fe *fe, const Stmt *s) {
    StrVec names = {0}, changed = {0};
    expr_names(fe->arena, s->while_.test, &names);
    block_assigned(fe->arena, s->while_.body, &changed);
    if (block_breaks(s->while_.body))
        return;
    for (uint32_t i = 0; i < names.len; i++)
        if (str_in(&changed, names.data[i]) || !strcmp(names.data[i], "atomic_cas"))
            return;
    Diag *d = fe_error(fe, DIAG_ENDLESS_WHILE, s->while_.test->span,
                       "nothing in this loop changes `%s`: it runs never or for ever",
                       span_text(fe, s->while_.test->span));
    diag_hint(fe->diags, d, "change it in the body, or leave by `break`");
    for (uint32_t i = 0; i < names.len; i++) {
        const Entry *e = scope_find(fe, names.data[i]);
        if (e && e->kind == ENTRY_TENSOR)
            diag_hint(fe->diags, d,
                      "iterations may run one after another, so none may wait for another to write "
                      "`%s`",
                      e->name);
    }
}

/* --- scatter -------------------------------------------------------------------------------- */

static bool is_tiled(Fe *fe, const Axis *axis) {
    const AxisInfo *info = axis_info(fe, axis->like ? axis->like : axis);
    return info->parallel || info->sequential;
}

static bool uses_axis(const Value *v, const Axis *axis, int *steps) {
    if (v->kind == VALUE_IOTA)
        return v->axis == axis;
    if (v->kind != VALUE_OP)
        return false;
    const Op *op = v->def;
    if ((*steps)++ > STEPS_MAX)
        return true;
    for (int i = 0; i < op->naxes; i++)
        if (op->axes[i] == axis)
            return true;
    for (int i = 0; i < op->nin; i++)
        if (uses_axis(op->in[i], axis, steps))
            return true;
    return false;
}

/* The reduction behind v over an axis of which the program has one tile, and the index does not
 * say which. */
static const Op *partial_behind(Fe *fe, const Value *v, Value *const *index, int rank, int *steps) {
    if (v->kind != VALUE_OP || (*steps)++ > STEPS_MAX)
        return NULL;
    const Op *op = v->def;
    if (op->kind == OP_REDUCE || op->kind == OP_DOT)
        for (int i = 0; i < op->naxes; i++) {
            bool told = !is_tiled(fe, op->axes[i]);
            for (int d = 0; d < rank; d++) {
                int count = 0;
                told |= uses_axis(index[d], op->axes[i], &count);
            }
            if (!told)
                return op;
        }
    for (int i = 0; op_has(op->kind, TRAIT_ELEMENTWISE) && i < op->nin; i++) {
        const Op *found = partial_behind(fe, op->in[i], index, rank, steps);
        if (found)
            return found;
    }
    return NULL;
}

void doubt_scatter(Fe *fe, const Value *v, Value *const *index, int rank, Span target, Span span) {
    int steps = 0;
    const Op *op = partial_behind(fe, v, index, rank, &steps);
    if (!op)
        return;
    bool adds = op->kind == OP_DOT || op->sub == RED_SUM;
    const char *how = adds                 ? "+="
                      : op->sub == RED_MAX ? "max="
                      : op->sub == RED_MIN ? "min="
                                           : NULL;
    Diag *d = fe_error(fe, DIAG_PARTIAL_SCATTER, span,
                       "each tile of `%s` scatters its own part, and one of them wins: the others "
                       "are lost",
                       op->axes[0]->name);
    if (op->span.begin != span.begin)
        diag_note(fe->diags, d, op->span, "one tile is reduced here");
    if (how)
        diag_hint(fe->diags, d, "write `atomic %s %s ...`", span_text(fe, target), how);
    else
        diag_hint(fe->diags, d, "reduce over the whole axis first");
}
