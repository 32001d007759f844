// fold and scanfn: elements of several values combined by a function, one after another in the
// order of the bracket's axes.
//
// Like the other reductions they visit all positions of a tile, padding included: masks are for
// `select`s in front of them.
#include "ir/eval_impl.h"

// An element of each value.
typedef struct Elements {
    Cell cell[FOLD_VALUES_MAX];
    uint8_t bad[FOLD_VALUES_MAX];
} Elements;

// The function with a register for every value in it; constants have theirs from the start.
typedef struct Function {
    const Op *op, *yield;
    int n;               // values on each side
    int nvalue;          // registers so far
    Scalar *reg;         // by register
    uint8_t *bad;        // by register
    const Value **value; // by register
    int *at;             // registers of operands and results, op after op, then of the yield's
} Function;

static size_t function_values(const Op *op) {
    size_t n = op->region[0]->narg;
    for (const Op *e = op->region[0]->first; e; e = e->next)
        n += (size_t)e->nin + e->nres;
    return n;
}

static size_t function_bytes(const Op *op) {
    return function_values(op) *
           (sizeof(Scalar) + sizeof(const Value *) + sizeof(int) + sizeof(uint8_t));
}

static int register_of(Function *f, const Value *v) {
    for (int i = 0; i < f->nvalue; i++)
        if (f->value[i] == v)
            return i;
    int at = f->nvalue++;
    f->value[at] = v;
    if (v->kind == VALUE_CONST && dtype_is_float(v->type.dtype))
        f->reg[at] = (Scalar){.dtype = v->type.dtype, .u.f = v->u.f};
    else if (v->kind == VALUE_CONST)
        f->reg[at] = (Scalar){.dtype = v->type.dtype, .u.i = v->u.i};
    return at;
}

// `memory`: function_bytes of zeros.
static Function function_of(const Op *op, void *memory) {
    const Region *r = op->region[0];
    size_t n = function_values(op);
    Function f = {.op = op, .yield = region_yield(r), .n = op->nres, .reg = memory};
    f.value = (const Value **)(f.reg + n);
    f.at = (int *)(f.value + n);
    f.bad = (uint8_t *)(f.at + n);
    for (int i = 0; i < r->narg; i++)
        register_of(&f, r->arg[i]);
    int at = 0;
    for (const Op *e = r->first; e; e = e->next) {
        for (int i = 0; i < e->nin; i++)
            f.at[at++] = register_of(&f, e->in[i]);
        if (e != f.yield)
            f.at[at++] = register_of(&f, e->res[0]);
    }
    return f;
}

// From the arguments' registers: the registers of the results, or NULL where an op is not defined.
static const int *function_run(Function *f) {
    const int *at = f->at;
    for (const Op *e = f->op->region[0]->first; e != f->yield; e = e->next) {
        Scalar in[3];
        Cell cell[3] = {{0}};
        uint8_t bad[3] = {0};
        for (int i = 0; i < e->nin && i < 3; i++) {
            in[i] = f->reg[at[i]];
            cell[i] = cell_from(in[i]);
            bad[i] = f->bad[at[i]];
        }
        at += e->nin;
        if (!eval_scalar_op(e, in, &f->reg[*at]))
            return NULL;
        f->bad[*at++] = cell_bad(e, cell, bad);
    }
    return at;
}

bool eval_function(Arena *scratch, const Op *op, const Scalar *x, const Scalar *y, Scalar *out) {
    Function f = function_of(op, arena_array(scratch, function_bytes(op), 1));
    for (int i = 0; i < f.n; i++) {
        f.reg[i] = x[i];
        f.reg[f.n + i] = y[i];
    }
    const int *result = function_run(&f);
    for (int i = 0; result && i < f.n; i++)
        out[i] = f.reg[result[i]];
    return result != NULL;
}

// acc = f(acc, x)
static void combine(Eval *e, Function *f, Elements *acc, const Elements *x) {
    for (int i = 0; i < f->n; i++) {
        DType dtype = f->op->in[i]->type.dtype;
        f->reg[i] = cell_scalar(dtype, acc->cell[i]);
        f->reg[f->n + i] = cell_scalar(dtype, x->cell[i]);
        f->bad[i] = acc->bad[i];
        f->bad[f->n + i] = x->bad[i];
    }
    const int *result = function_run(f);
    if (!result)
        eval_fail(e, f->op, "its function is not defined on these types");
    for (int i = 0; i < f->n; i++) {
        acc->cell[i] = cell_from(f->reg[result[i]]);
        acc->bad[i] = f->bad[result[i]];
    }
}

static Elements elements_at(Tile *const *v, int n, int64_t at, uint8_t bad) {
    Elements x;
    for (int i = 0; i < n; i++) {
        x.cell[i] = v[i]->cell[at];
        x.bad[i] = (v[i]->bad ? v[i]->bad[at] : 0) | bad;
    }
    return x;
}

typedef struct Fold {
    Function f;
    int n;
    Tile *v[FOLD_VALUES_MAX], *out[FOLD_VALUES_MAX];
    Elements id;
    uint8_t sliced;
} Fold;

// The elements along the op's axes at one point of the others.
static Elements fold_row(Eval *e, const Op *op, Fold *fold, int64_t base, Walk *inner) {
    Elements acc = fold->id;
    for (int64_t q = 0; q < inner->count; q++, walk_next(inner)) {
        int64_t at = base + inner->at[0];
        Elements x = elements_at(fold->v, fold->n, at, fold->sliced);
        if (op->kind == OP_SCANFN && q == 0)
            acc = x;
        else
            combine(e, &fold->f, &acc, &x);
        for (int i = 0; op->kind == OP_SCANFN && i < fold->n; i++) {
            fold->out[i]->cell[at] = acc.cell[i];
            if (acc.bad[i])
                tile_bad(e, op, fold->out[i])[at] = acc.bad[i];
        }
    }
    return acc;
}

void eval_fold(Eval *e, const Op *op) {
    Fold fold = {.n = op_fold_values(op), .sliced = axes_sliced(e, op) ? BAD_UNKNOWN : 0};
    AxisSet all = op_full_operand(op)->type.axes, along = axes_none();
    for (int i = 0; i < op->naxes; i++)
        axes_add(&along, op->axes[i]->id);
    for (int i = 0; i < fold.n; i++) {
        Type type = type_tile(op->in[i]->type.dtype, all);
        fold.v[i] = tile_broadcast(e, op, eval_value(e, op, op->in[i]), type);
        fold.out[i] = tile_new(e, op, type.dtype, op->res[i]->type.axes);
        if (op->has_else)
            fold.id.cell[i] = eval_value(e, op, op->in[fold.n + i])->cell[0];
        fold.id.bad[i] = fold.sliced;
    }
    void *memory = eval_calloc(e, op, (int64_t)function_bytes(op), 1);
    fold.f = function_of(op, memory);
    Walk outer, inner;
    walk_start(e, op, &outer, axes_minus(all, along));
    walk_part(e, op, &outer, fold.v[0]);
    walk_along(e, op, &inner, fold.v[0]);
    for (int64_t p = 0; p < outer.count; p++, walk_next(&outer)) {
        Elements acc = fold_row(e, op, &fold, outer.at[0], &inner);
        for (int i = 0; op->kind == OP_FOLD && i < fold.n; i++) {
            fold.out[i]->cell[p] = acc.cell[i];
            result_bad(e, op, fold.out[i], &outer, p, acc.bad[i]);
        }
    }
    eval_free(e, memory);
    for (int i = 0; i < fold.n; i++) {
        tile_drop(e, fold.v[i]);
        eval_set(e, op->res[i], fold.out[i]);
    }
}
