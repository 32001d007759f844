// The type rules of ops.def: what a row says about its operands and what type its results have.
//
// Input: an op whose form verify_op.c has checked: the number of operands that its row says, the
// memories that its form has. Output: the type of one result, or the reason why the
// operands do not fit. Layouts are not part of the rules (pass `layouts` and its verifier own
// them).
#include "ir/ir_impl.h"

#include <string.h>

static bool refuse(const char **why, const char *reason) {
    *why = reason;
    return false;
}

static bool union_axes(const Op *op, int from, int to, Type *out, const char **why) {
    for (int i = from; i < to; i++)
        if (!axes_union(out->axes, op->in[i]->type.axes, &out->axes))
            return refuse(why, "too many axes");
    return true;
}

static AxisSet bracket_axes(const Op *op) {
    AxisSet s = {0};
    for (int i = 0; i < op->naxes; i++)
        axes_add(&s, op->axes[i]->id);
    return s;
}

static bool same_dtypes(const Op *op, int from, int to, const char **why) {
    for (int i = from + 1; i < to; i++)
        if (op->in[i]->type.dtype != op->in[from]->type.dtype)
            return refuse(why, "operands have different types");
    return true;
}

// A dtype that the rule leaves open is the declared one.
static DType declared(const Op *op, int i) {
    return op->res && op->res[i] ? op->res[i]->type.dtype : DT_NONE;
}

// What the elements of the operands may be.
static bool dtypes_allowed(TypeRule rule, const Op *op, const char **why) {
    for (int j = 0; j < op->nin; j++) {
        DType t = op->in[j]->type.dtype;
        if (rule == RULE_FLOAT && !dtype_is_float(t))
            return refuse(why, "the operands are not floats");
        if (rule == RULE_BITS && dtype_is_float(t))
            return refuse(why, "the operands are floats");
        if (rule == RULE_SHIFT && !dtype_is_integer(t))
            return refuse(why, "shifts are of integers");
        if (rule == RULE_RAND && !dtype_is_integer(t))
            return refuse(why, "a seed or counter is not an integer");
    }
    return true;
}

static bool infer_elementwise(const Op *op, int i, Type *out, const char **why) {
    TypeRule rule = op_info(op->kind)->rule;
    bool select = rule == RULE_SELECT;
    if (select && (op->nin != 3 || op->in[0]->type.dtype != DT_BOOL))
        return refuse(why, "the condition is not a bool");
    bool same = rule == RULE_SAME || rule == RULE_FLOAT || rule == RULE_BITS || rule == RULE_CMP;
    if ((same || select) && !same_dtypes(op, select, op->nin, why))
        return false;
    if (!dtypes_allowed(rule, op, why))
        return false;
    out->dtype = op->in[select]->type.dtype;
    if (rule == RULE_CMP)
        out->dtype = DT_BOOL;
    if (rule == RULE_CAST || rule == RULE_BITCAST)
        out->dtype = declared(op, i);
    if (rule == RULE_BITCAST && dtype_bits(out->dtype) != dtype_bits(op->in[0]->type.dtype))
        return refuse(why, "a bitcast keeps the number of bits");
    if (rule == RULE_RAND)
        out->dtype = DT_U32;
    return union_axes(op, 0, op->nin, out, why);
}

static bool infer_along(const Op *op, Type *out, const char **why) {
    Type x = op->in[0]->type;
    AxisSet along = bracket_axes(op);
    if (op->naxes == 0 || along.n != op->naxes || !axes_subset(along, x.axes))
        return refuse(why, "the axes are not those of the operand");
    TypeRule rule = op_info(op->kind)->rule;
    out->dtype = rule == RULE_ARGREDUCE ? DT_INDEX : x.dtype;
    out->axes = rule == RULE_SCAN ? x.axes : axes_minus(x.axes, along);
    if (op->kind == OP_REDUCE && (op->sub == RED_ANY || op->sub == RED_ALL) && x.dtype != DT_BOOL)
        return refuse(why, "any and all take a bool");
    bool bits = op->sub == RED_AND || op->sub == RED_OR || op->sub == RED_XOR;
    if (op->kind == OP_REDUCE && bits && dtype_is_float(x.dtype))
        return refuse(why, "and, or and xor take integers");
    return true;
}

// Values of any axes together; the identities are scalars of the values' types.
static bool infer_fold(const Op *op, int i, Type *out, const char **why) {
    int n = op_fold_values(op);
    AxisSet along = bracket_axes(op);
    if (n == 0 || n > FOLD_VALUES_MAX || op->has_else != (op->kind == OP_FOLD) ||
        op->nin != n * (op->has_else ? 2 : 1))
        return refuse(why, op->kind == OP_FOLD ? "each value needs an identity after `else`"
                                               : "values are needed, and no identities");
    if (!union_axes(op, 0, n, out, why))
        return false;
    if (op->naxes == 0 || along.n != op->naxes || !axes_subset(along, out->axes))
        return refuse(why, "the axes are not those of the operands");
    if (!op_full_operand(op))
        return refuse(why, "no operand has all axes");
    for (int j = 0; op->has_else && j < n; j++)
        if (op->in[n + j]->type.axes.n || op->in[n + j]->type.dtype != op->in[j]->type.dtype)
            return refuse(why, "an identity is not a scalar of its value's type");
    out->dtype = op->in[i]->type.dtype;
    if (op->kind == OP_FOLD)
        out->axes = axes_minus(out->axes, along);
    return true;
}

// sort[n], topk[n, j], histogram[n, b]: values (if any), then indices or counts.
static bool infer_ordered(const Op *op, int i, Type *out, const char **why) {
    TypeRule rule = op_info(op->kind)->rule;
    int naxes = rule == RULE_SORT ? 1 : 2;
    if (op->nin != 1 || op->naxes != naxes)
        return refuse(why, naxes == 1 ? "one operand and one axis are needed"
                                      : "one operand and two axes are needed");
    Type x = op->in[0]->type;
    if (!axes_has(x.axes, op->axes[0]->id))
        return refuse(why, "the axes are not those of the operand");
    if (naxes == 2 && axes_has(x.axes, op->axes[1]->id))
        return refuse(why, "the operand has the new axis already");
    if (rule == RULE_HISTOGRAM && !dtype_is_integer(x.dtype) && x.dtype != DT_BOOL)
        return refuse(why, "bins are of integers");
    out->dtype = rule == RULE_HISTOGRAM || i > 0 ? DT_INDEX : x.dtype;
    out->axes = x.axes;
    if (naxes == 2) {
        out->axes = axes_minus(x.axes, axes_of(op->axes[0]));
        axes_add(&out->axes, op->axes[1]->id);
    }
    return true;
}

static bool infer_dot(const Op *op, int i, Type *out, const char **why) {
    if (op->nin != 2 && op->nin != 3)
        return refuse(why, "two or three operands are needed");
    AxisSet along = bracket_axes(op);
    if (op->naxes == 0 || along.n != op->naxes)
        return refuse(why, "axes are missing");
    bool is_float = dtype_is_float(op->in[0]->type.dtype);
    for (int j = 1; j < op->nin; j++)
        if (dtype_is_float(op->in[j]->type.dtype) != is_float)
            return refuse(why, "operands are floats and integers");
    if (!union_axes(op, 0, 2, out, why))
        return false;
    if (!axes_subset(along, axes_intersect(op->in[0]->type.axes, op->in[1]->type.axes)))
        return refuse(why, "a contracted axis is not in both operands");
    out->axes = axes_minus(out->axes, along);
    if (op->nin == 3 && axes_intersect(op->in[2]->type.axes, along).n)
        return refuse(why, "the accumulator has a contracted axis");
    if (op->nin == 3 && !union_axes(op, 2, 3, out, why))
        return false;
    out->dtype = op->nin == 3 ? op->in[2]->type.dtype : declared(op, i);
    if (dtype_is_float(out->dtype) != is_float)
        return refuse(why, "operands are floats and the result is not, or the reverse");
    return true;
}

static bool infer_take(const Op *op, Type *out, const char **why) {
    if (op->nin != 1 + op->naxes + op->has_else)
        return refuse(why, "one index per axis is needed");
    AxisSet along = bracket_axes(op);
    Type x = op->in[0]->type;
    if (along.n != op->naxes || !axes_subset(along, x.axes))
        return refuse(why, "the axes are not those of the operand");
    for (int i = 0; i < op->naxes; i++)
        if (!dtype_is_integer(op->in[1 + i]->type.dtype))
            return refuse(why, "an index is not an integer");
    if (op->has_else && op->in[op->nin - 1]->type.dtype != x.dtype)
        return refuse(why, "the fill has another type");
    out->dtype = x.dtype;
    out->axes = axes_minus(x.axes, along);
    return union_axes(op, 1, op->nin, out, why);
}

static bool infer_load(const Op *op, Type *out, const char **why) {
    const MemRef *r = &op->mem[0];
    out->dtype = r->mem->dtype;
    if (op->has_else && op->in[op->nin - 1]->type.dtype != out->dtype)
        return refuse(why, "the fill has another type");
    if (op->has_else && !union_axes(op, op->nin - 1, op->nin, out, why))
        return false;
    return union_axes(op, r->first, r->first + r->nidx, out, why);
}

AxisSet memref_axes(const MemRef *r) {
    AxisSet s = {0};
    for (int i = 0; i < r->mem->axes.n; i++) {
        uint16_t id = r->mem->axes.id[i];
        for (int j = 0; j < r->nrename; j++)
            if (r->rename[j].from == id)
                id = r->rename[j].to;
        axes_add(&s, id);
    }
    return s;
}

static bool infer_get(const Op *op, Type *out) {
    out->dtype = op->mem[0].mem->dtype;
    out->axes = memref_axes(&op->mem[0]);
    return true;
}

static bool infer_mma(const Op *op, int i, Type *out, const char **why) {
    MmaParts m = op_mma_parts(op);
    AxisSet along = bracket_axes(op), a = {0}, b = {0};
    a = m.a ? m.a->type.axes : memref_axes(m.a_ref);
    b = memref_axes(m.b);
    if (op->naxes == 0 || along.n != op->naxes)
        return refuse(why, "axes are missing");
    if (!axes_subset(along, axes_intersect(a, b)))
        return refuse(why, "a contracted axis is not in both operands");
    if (!axes_union(axes_minus(a, along), axes_minus(b, along), &out->axes))
        return refuse(why, "too many axes");
    if (m.acc && !axes_subset(m.acc->type.axes, out->axes))
        return refuse(why, "the accumulator has another shape");
    out->dtype = m.acc ? m.acc->type.dtype : declared(op, i);
    out->is_async = true;
    return true;
}

static bool infer_inside(const Op *op, Type *out, const char **why) {
    out->dtype = DT_BOOL;
    if (op->naxes) {
        out->axes = axes_of(op->axes[0]);
        return true;
    }
    return union_axes(op, op->mem[0].first, op->mem[0].first + op->mem[0].nidx, out, why);
}

bool op_infer(const Kernel *k, const Op *op, int i, Type *out, const char **why) {
    (void)k;
    *out = (Type){0};
    switch (op_info(op->kind)->rule) {
    case RULE_NONE:
        return refuse(why, "the op has no result");
    case RULE_CARRY:
        *out = op->res[i]->type; // checked where the regions are
        return true;
    case RULE_ORDER:
    case RULE_INDEX:
        out->dtype = DT_INDEX;
        return true;
    case RULE_BOOL:
        out->dtype = DT_BOOL;
        return true;
    case RULE_INSIDE:
        return infer_inside(op, out, why);
    case RULE_SAME:
    case RULE_FLOAT:
    case RULE_BITS:
    case RULE_SELECT:
    case RULE_SHIFT:
    case RULE_CMP:
    case RULE_CAST:
    case RULE_BITCAST:
    case RULE_RAND:
        return infer_elementwise(op, i, out, why);
    case RULE_TAKE:
        return infer_take(op, out, why);
    case RULE_REDUCE:
    case RULE_ARGREDUCE:
    case RULE_SCAN:
        return infer_along(op, out, why);
    case RULE_FOLD:
    case RULE_SCANFN:
        return infer_fold(op, i, out, why);
    case RULE_SORT:
    case RULE_TOPK:
    case RULE_HISTOGRAM:
        return infer_ordered(op, i, out, why);
    case RULE_DOT:
        return infer_dot(op, i, out, why);
    case RULE_LOAD:
        return infer_load(op, out, why);
    case RULE_CONVERT:
        out->dtype = op->in[0]->type.dtype;
        out->axes = op->in[0]->type.axes;
        return true;
    case RULE_GET:
        return infer_get(op, out);
    case RULE_MMA:
        return infer_mma(op, i, out, why);
    case RULE_MMA_WAIT:
        if (!op->in[0]->type.is_async)
            return refuse(why, "an async value is needed");
        *out = op->in[0]->type;
        out->layout = NULL;
        out->is_async = op->res[i]->type.is_async; // while issues are left in flight, or done
        return true;
    }
    return refuse(why, "no such rule");
}
