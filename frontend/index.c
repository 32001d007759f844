/* Indexing: tensors by one expression per dim, values by axis, `else` and `inside`.
 *
 * Input: `base[entries]`. Output: a load, a take or a bool tile. The axes of the result are those
 * of the index expressions and those kept. A whole dim is its default axis.
 */
#include "frontend/fe.h"

#include <string.h>

static void check_written(Fe *fe, Tensor *t, Span span) {
    t->read = true;
    bool starts_empty = t->mem->kind == MEM_TEMP || t->mem->mode == MODE_OUT;
    if (!starts_empty || t->written)
        return;
    Diag *d = fe_error(fe, DIAG_READ_BEFORE_WRITE, span, "`%s` is read before anything wrote it",
                       t->mem->name);
    diag_note(fe->diags, d, t->span, "`%s` is declared here", t->mem->name);
    if (t->mem->kind == MEM_PARAM)
        diag_hint(fe->diags, d, "write `inout %s: ...` to have the caller's values", t->mem->name);
    t->written = true;
}

static Value *whole_dim(Fe *fe, Tensor *t, int dim, Span span) {
    if (t->axis[dim])
        return t->axis[dim]->iota;
    const char *text = t->text[dim] ? t->text[dim] : "...";
    Diag *d = fe_error(fe, DIAG_NO_DEFAULT_AXIS, span,
                       "dim `%s` of `%s` has no default axis: it is not a plain name", text,
                       t->mem->name);
    if (!strcmp(text, "1") && t->mem->rank == 1)
        diag_hint(fe->diags, d, "its one element is `%s[0]`", t->mem->name);
    else
        diag_hint(fe->diags, d, "make one: `axis a in %s;`, and index `%s` by `a`", text,
                  t->mem->name);
    return NULL;
}

/* An axis of `tiles` whose range did not say so walks the dim that it first indexes. */
static void infer_of(Fe *fe, Tensor *t, int dim, Value *index) {
    if (index->kind != VALUE_IOTA || index->axis->of || index->axis->is_dim || !t->axis[dim])
        return;
    AxisInfo *info = axis_info(fe, index->axis);
    if (t->axis[dim]->is_dim && (info->parallel || info->sequential))
        index->axis->of = t->axis[dim];
}

static bool dim_as_index(Fe *fe, const Expr *e) {
    if (e->kind != EXPR_NAME || e->name.module.text)
        return false;
    Entry *entry = scope_find(fe, e->name.name.text);
    if (!entry || entry->kind != ENTRY_DIM)
        return false;
    Diag *d = fe_error(fe, DIAG_DIM_AS_INDEX, e->span, "`%s` is a dim: its extent is no index",
                       entry->name);
    diag_hint(fe->diags, d, "write `:` for the whole dim, or `%s - 1` for its last index",
              entry->name);
    return true;
}

static bool index_entry(Fe *fe, Tensor *t, int dim, const IndexEntry *entry, Value **out) {
    if (entry->kind == INDEX_ALL) {
        *out = whole_dim(fe, t, dim, entry->span);
        return *out != NULL;
    }
    if (dim_as_index(fe, entry->value))
        return false;
    const char *indexed = fe->indexed;
    fe->indexed = t->text[dim];
    *out = expr_index(fe, entry->value);
    fe->indexed = indexed;
    if (*out)
        infer_of(fe, t, dim, *out);
    return *out != NULL;
}

static int dim_of_axis(const Tensor *t, const Axis *axis) {
    for (int d = 0; d < t->mem->rank; d++) {
        if (t->axis[d] == axis)
            return d;
    }
    return -1;
}

static const char *dims_text(Fe *fe, const Tensor *t) {
    const char *text = "[";
    for (int d = 0; d < t->mem->rank; d++)
        text =
            arena_printf(fe->arena, "%s%s%s", text, d ? ", " : "", t->text[d] ? t->text[d] : "_");
    return arena_printf(fe->arena, "%s]", text);
}

static bool named_entry(Fe *fe, Tensor *t, const IndexEntry *entry, Value **index) {
    Axis *axis = axis_find(fe, entry->name);
    Value *v = expr_index(fe, entry->value);
    if (!axis || !v)
        return false;
    int dim = dim_of_axis(t, axis);
    if (dim < 0) {
        fe_error(fe, DIAG_NO_SUCH_AXIS, entry->name.span, "`%s` has no dim `%s`: its dims are %s",
                 t->mem->name, entry->name.text, dims_text(fe, t));
        return false;
    }
    if (index[dim]) {
        fe_error(fe, DIAG_AXIS_TWICE, entry->span, "dim `%s` is indexed twice", entry->name.text);
        return false;
    }
    index[dim] = v;
    return true;
}

static bool named_entries(Fe *fe, Tensor *t, const IndexEntryVec *entries, Value **index) {
    bool ok = true;
    for (uint32_t i = 0; i < entries->len; i++)
        ok &= named_entry(fe, t, &entries->data[i], index);
    return ok;
}

/* An index may not take one default axis twice. */
static bool check_repeats(Fe *fe, Tensor *t, Value **index, const bool *whole, Span span) {
    for (int i = 0; i < t->mem->rank; i++)
        for (int j = 0; j < i; j++)
            if (whole[i] && whole[j] && index[i] == index[j]) {
                Diag *d = fe_error(fe, DIAG_AXIS_TWICE, span, "`:` takes axis `%s` of `%s` twice",
                                   index[i]->axis->name, t->mem->name);
                diag_hint(fe->diags, d, "name two axes: `axis i in %s, j in %s;` and index by them",
                          t->dim[i], t->dim[i]);
                return false;
            }
    return true;
}

static const char *entries_text(Fe *fe, const IndexEntryVec *entries) {
    const char *text = "";
    for (uint32_t i = 0; i < entries->len; i++)
        text = arena_printf(fe->arena, "%s%s%s", text, i ? ", " : "",
                            span_text(fe, entries->data[i].span));
    return text;
}

static bool fill_index(Fe *fe, Tensor *t, const Expr *e, Value **index, bool *whole, Span span) {
    const IndexEntryVec *entries = e ? &e->index.entries : NULL;
    int rank = t->mem->rank;
    bool named = entries && entries->data[0].kind == INDEX_NAMED;
    for (uint32_t i = 0; entries && i < entries->len; i++)
        if ((entries->data[i].kind == INDEX_NAMED) != named) {
            fe_error(fe, DIAG_INDEX_COUNT, entries->data[i].span,
                     "an index is all by position or all by name");
            return false;
        }
    if (named && !named_entries(fe, t, entries, index))
        return false;
    if (entries && !named && entries->len != (uint32_t)rank) {
        Diag *d =
            fe_error(fe, DIAG_INDEX_COUNT, span, "`%s` has %d dim%s %s, this index has %u",
                     t->mem->name, rank, rank == 1 ? "" : "s", dims_text(fe, t), entries->len);
        diag_note(fe->diags, d, t->span, "`%s` is declared here", t->mem->name);
        if (fe->outer_index && fe->outer_index->index.base == e)
            diag_hint(fe->diags, d, "all indices stand in one pair of brackets: `%s[%s, %s]`",
                      t->mem->name, entries_text(fe, entries),
                      entries_text(fe, &fe->outer_index->index.entries));
        else if (entries->len < (uint32_t)rank)
            diag_hint(fe->diags, d, "write `:` for a whole dim");
        else
            diag_hint(fe->diags, d, "axes are matched by name and broadcast: none is inserted");
        return false;
    }
    bool ok = true;
    for (int dim = 0; dim < rank; dim++) {
        if (entries && !named) {
            whole[dim] = entries->data[dim].kind == INDEX_ALL;
            ok &= index_entry(fe, t, dim, &entries->data[dim], &index[dim]);
        } else if (!index[dim]) {
            whole[dim] = true;
            index[dim] = whole_dim(fe, t, dim, span);
            ok &= index[dim] != NULL;
        }
    }
    return ok;
}

bool tensor_index(Fe *fe, Tensor *t, const Expr *e, Value **index, AxisSet *axes, Span span) {
    bool whole[RANK_MAX] = {false};
    for (int i = 0; i < RANK_MAX; i++)
        index[i] = NULL;
    *axes = axes_none();
    if (!fill_index(fe, t, e, index, whole, span) || !check_repeats(fe, t, index, whole, span))
        return false;
    doubt_constant(fe, t, index, span);
    doubt_swapped(fe, t, e, index, span);
    for (int i = 0; i < t->mem->rank; i++)
        if (!axes_union(*axes, index[i]->type.axes, axes)) {
            fe_error(fe, DIAG_TOO_MANY_AXES, span, "the index has more than %d axes", AXES_MAX);
            return false;
        }
    return true;
}

static Val load_at(Fe *fe, Tensor *t, Value **index, Value *fill, Span span, const char *hint) {
    check_written(fe, t, span);
    fe->b.span = span;
    Value *v = ir_load(&fe->b, t->mem, index, fill, hint ? hint : t->mem->name);
    if (fe->nest)
        vec_push(fe->arena, &fe->accesses, ((Access){.tensor = t, .op = v->def}));
    return val_of(v);
}

Val tensor_load(Fe *fe, Tensor *t, Span span) {
    const char *hint = hint_take(fe);
    Value *index[RANK_MAX];
    AxisSet axes;
    if (!tensor_index(fe, t, NULL, index, &axes, span))
        return val_poison();
    return load_at(fe, t, index, NULL, span, hint);
}

static bool add_axes(Fe *fe, AxisSet more, AxisSet *axes, Span span) {
    if (axes_union(*axes, more, axes))
        return true;
    fe_error(fe, DIAG_TOO_MANY_AXES, span, "the result would have more than %d axes", AXES_MAX);
    return false;
}

/* The fill of `else`, a scalar or tile of the element's type; its axes join `axes`. */
static bool fill_value(Fe *fe, const Expr *fill, DType type, Value **out, AxisSet *axes) {
    *out = NULL;
    if (!fill)
        return true;
    Val v = val_coerce(fe, expr_value(fe, fill), type, true, fill->span, "the element");
    if (!val_ok(v))
        return false;
    *out = v.v;
    return add_axes(fe, v.axes, axes, fill->span);
}

static Val index_tensor(Fe *fe, Tensor *t, const Expr *e, const Expr *fill, Span span,
                        const char *hint) {
    Value *index[RANK_MAX], *other;
    AxisSet axes;
    bool ok = tensor_index(fe, t, e, index, &axes, span);
    if (!fill_value(fe, fill, t->mem->dtype, &other, &axes) || !ok)
        return val_poison();
    return load_at(fe, t, index, other, span, hint);
}

static bool take_entry(Fe *fe, Val base, const IndexEntry *entry, Axis **axis, Value **index) {
    if (entry->kind != INDEX_NAMED) {
        Diag *d =
            fe_error(fe, DIAG_INDEX_COUNT, entry->span,
                     "a tile is indexed by axis, not by position; it is %s", val_text(fe, base));
        const Expr *v = entry->kind == INDEX_EXPR ? entry->value : NULL;
        bool adds = entry->kind != INDEX_EXPR ||
                    (v->kind == EXPR_NAME &&
                     (!strcmp(v->name.name.text, "None") || !strcmp(v->name.name.text, "newaxis")));
        if (adds)
            diag_hint(fe->diags, d,
                      "axes have names, and missing ones are broadcast: leave the index out");
        else if (base.axes.n)
            diag_hint(fe->diags, d, "write `[%s = ...]`", axis_by_id(fe, base.axes.id[0])->name);
        return false;
    }
    *axis = axis_find(fe, entry->name);
    *index = expr_index(fe, entry->value);
    if (!*axis || !*index)
        return false;
    if (axes_has(base.axes, (*axis)->id))
        return true;
    fe_error(fe, DIAG_NO_SUCH_AXIS, entry->name.span, "the value has no axis `%s`: it is %s",
             entry->name.text, val_text(fe, base));
    return false;
}

static Val index_value(Fe *fe, Val base, const Expr *e, const Expr *fill, const char *hint) {
    const IndexEntryVec *entries = &e->index.entries;
    Axis *axis[AXES_MAX];
    Value *index[AXES_MAX], *other;
    AxisSet gone = axes_none(), axes = axes_none();
    if (entries->len > AXES_MAX) {
        fe_error(fe, DIAG_TOO_MANY_AXES, e->span, "a value has at most %d axes", AXES_MAX);
        return val_poison();
    }
    bool ok = true;
    for (uint32_t i = 0; i < entries->len; i++) {
        if (!take_entry(fe, base, &entries->data[i], &axis[i], &index[i])) {
            if (entries->data[i].kind != INDEX_NAMED)
                return val_poison();
            ok = false;
            continue;
        }
        if (axes_has(gone, axis[i]->id))
            fe_error(fe, DIAG_AXIS_TWICE, entries->data[i].span, "axis `%s` is indexed twice",
                     axis[i]->name);
        axes_add(&gone, axis[i]->id);
        ok &= add_axes(fe, index[i]->type.axes, &axes, e->span);
    }
    ok = fill_value(fe, fill, val_dtype(base), &other, &axes) && ok;
    if (!ok || !add_axes(fe, axes_minus(base.axes, gone), &axes, e->span))
        return val_poison();
    Value *v = val_spread(fe, base, e->span);
    fe->b.span = e->span;
    return val_with_axes(ir_take(&fe->b, v, (int)entries->len, axis, index, other, hint), axes);
}

Val index_expr(Fe *fe, const Expr *e, const Expr *fill) {
    const char *hint = hint_take(fe);
    const Expr *base = e->kind == EXPR_INDEX ? e->index.base : e;
    const Expr *entries = e->kind == EXPR_INDEX ? e : NULL;
    fe->outer_index = entries && base->kind == EXPR_INDEX ? e : fe->outer_index;
    Val v = expr_any(fe, base);
    switch (v.kind) {
    case VAL_TENSOR:
        return index_tensor(fe, v.tensor, entries, fill, e->span, hint);
    case VAL_VALUE:
        if (entries && v.axes.n > 0)
            return index_value(fe, v, e, fill, hint);
        break;
    case VAL_POISON:
        return v;
    case VAL_LITERAL:
    case VAL_TUPLE:
    case VAL_FN:
    case VAL_STRING:
        break;
    }
    if (!entries)
        fe_error(fe, DIAG_NOT_INDEXED, e->span, "`else` stands after an indexed read; this is %s",
                 val_text(fe, v));
    else
        fe_error(fe, DIAG_NOT_INDEXED, base->span, "%s has nothing to index", val_text(fe, v));
    return val_poison();
}

/* --- inside --------------------------------------------------------------------------------- */

static Val inside_tensor(Fe *fe, Tensor *t, const Expr *e) {
    Value *index[RANK_MAX];
    AxisSet axes;
    if (!tensor_index(fe, t, e, index, &axes, e->span))
        return val_poison();
    MemRef ref = {.mem = t->mem, .first = 0, .nidx = t->mem->rank, .pos = -1};
    Type type = type_tile(DT_BOOL, axes);
    fe->b.span = e->span;
    Op *op = ir_build(&fe->b, &(OpInit){.kind = OP_INSIDE,
                                        .nin = t->mem->rank,
                                        .in = index,
                                        .nres = 1,
                                        .types = &type,
                                        .nmem = 1,
                                        .mem = &ref});
    return val_of(op->res[0]);
}

void axis_bounds(Fe *fe, Axis *axis, Value **lo, Value **hi) {
    AxisInfo *info = axis_info(fe, axis);
    if (axis->is_dim) {
        *lo = ir_index(fe->kernel, 0);
        *hi = axis->extent;
    } else if (info->parallel || info->sequential || !info->lo) {
        *lo = ir_begin(&fe->b, axis);
        *hi = ir_end(&fe->b, axis);
    } else {
        *lo = info->lo;
        *hi = info->hi;
    }
}

static Val inside_value(Fe *fe, Val base, const Expr *e) {
    const IndexEntryVec *entries = &e->index.entries;
    Val all = val_of(ir_bool(fe->kernel, true));
    for (uint32_t i = 0; i < entries->len; i++) {
        Axis *axis;
        Value *index, *lo, *hi;
        if (!take_entry(fe, base, &entries->data[i], &axis, &index))
            return val_poison();
        fe->b.span = e->span;
        axis_bounds(fe, axis, &lo, &hi);
        Val low = build_cmp(fe, CMP_GE, val_of(index), val_of(lo), DT_INDEX, e->span);
        Val high = build_cmp(fe, CMP_LT, val_of(index), val_of(hi), DT_INDEX, e->span);
        all = op_apply(fe, BINARY_AND, all, op_apply(fe, BINARY_AND, low, high, e->span), e->span);
    }
    return all;
}

Val inside_expr(Fe *fe, const Expr *e) {
    if (e->kind != EXPR_INDEX) {
        Diag *d = fe_error(fe, DIAG_NOT_INDEXED, e->span, "`inside` asks about an indexed read");
        diag_hint(fe->diags, d, "write `inside(%s[...])`",
                  e->kind == EXPR_NAME ? e->name.name.text : "x");
        return val_poison();
    }
    Val base = expr_any(fe, e->index.base);
    if (base.kind == VAL_TENSOR)
        return inside_tensor(fe, base.tensor, e);
    if (base.kind == VAL_VALUE && base.axes.n > 0)
        return inside_value(fe, base, e);
    if (val_ok(base))
        fe_error(fe, DIAG_NOT_INDEXED, e->span, "%s has nothing to index", val_text(fe, base));
    return val_poison();
}
