// Prints and assertions, in builds for debugging.
//
// Input: values whose layouts are slices of one of theirs. Output: for each register a print or
// check where the element lies inside its windows, by one of the copies.
#include "backend/lower.h"

#include "ir/format.h"

enum { PRINT_MAX = 16 };

// Inside the windows of the op's `guard` axes; NULL: always.
static Lane guard_of(Lower *l, const Op *op, const Layout *layout, uint32_t reg) {
    Target *t = l->t;
    Lane guard = {NULL};
    AxisSet axes = op_attr_axes(op, ATTR_guard);
    for (int a = 0; a < axes.n; a++) {
        const Axis *axis = l->kernel->axis[axes.id[a]];
        Operand iota = operand_of(l, axis->iota, layout);
        Window w = lower_window(l, axis);
        Lane begin = t->ops->splat(t, w.begin),
             size = t->ops->splat(t, lower_sub(l, w.end, w.begin));
        Lane at = lane_op2(t, OP_SUB, DT_INDEX, operand_lane(l, &iota, reg), begin);
        guard = lane_and(t, guard, lane_cmp(t, CMP_LT, DT_INDEX, at, size));
    }
    return guard;
}

// As C's printf takes it: 64-bit integers and doubles.
static Lane printed(Target *t, DType type, Lane x) {
    if (type == DT_BOOL)
        return t->ops->select(t, x, lane_int(t, DT_INDEX, 1), lane_int(t, DT_INDEX, 0));
    if (!dtype_is_float(type))
        return lane_resize(t, x, type, DT_INDEX);
    Lane wide = x;
    if (type != DT_F32 && type != DT_F64)
        t->ops->cast(t, type, DT_F32, 1, &x, &wide);
    Lane out = wide;
    if (type != DT_F64)
        t->ops->cast(t, DT_F32, DT_F64, 1, &wide, &out);
    return out;
}

// The layout of a value that has all axes; where none has one, any.
static const Layout *print_layout(Lower *l, const Op *op) {
    AxisSet all = axes_none();
    for (int i = 0; i < op->nin; i++)
        axes_union(all, op->in[i]->type.axes, &all);
    for (int i = 0; i < op->nin; i++)
        if (op->in[i]->type.layout && axes_equal(op->in[i]->type.axes, all))
            return op->in[i]->type.layout;
    return all.n ? access_blocked(l, all) : NULL;
}

void lower_print(Lower *l, const Op *op) {
    Target *t = l->t;
    if (!t->options->debug)
        return;
    if (op->nin > PRINT_MAX) {
        target_fail(t, "a print of more than %d values", PRINT_MAX);
        return;
    }
    const Layout *layout = print_layout(l, op);
    int n = layout ? (int)layout_registers(layout) : 1;
    DType types[PRINT_MAX];
    bool is_float[PRINT_MAX];
    Operand operand[PRINT_MAX];
    for (int i = 0; i < op->nin && !t->failed; i++) {
        types[i] = op->in[i]->type.dtype;
        is_float[i] = dtype_is_float(types[i]);
        operand[i] = operand_of(l, op->in[i], layout);
    }
    if (t->failed)
        return;
    Print p = {.format = format_printf(l->arena, op_attr_str(op, ATTR_msg), types),
               .n = op->nin,
               .is_float = is_float};
    Lane active = lower_active(l, layout);
    for (int r = 0; r < n; r++) {
        Lane values[PRINT_MAX];
        for (int i = 0; i < op->nin; i++)
            values[i] = printed(t, types[i], operand_lane(l, &operand[i], (uint32_t)r));
        p.values = values;
        t->ops->print(t, lane_and(t, active, guard_of(l, op, layout, (uint32_t)r)), &p);
    }
}

static const char *escaped(Arena *arena, const char *text) {
    const char *out = "";
    for (; *text; text++)
        out = arena_printf(arena, "%s%s%c", out,
                           *text == '{' || *text == '}' ? (*text == '{' ? "{" : "}") : "", *text);
    return out;
}

// "k.fk:3: assertion failed: text"
static const char *assert_text(Lower *l, const Op *op) {
    Str message = op_attr_str(op, ATTR_msg);
    SourcePos at = {0};
    if (l->t->options->sources)
        at = source_pos(l->t->options->sources, op->span.begin);
    const char *text =
        arena_printf(l->arena, "assertion failed: %s", message ? message : "of the kernel");
    return at.file ? arena_printf(l->arena, "%s:%u: %s", at.name, at.line, text) : text;
}

// The elements where it failed, before the check ends the program.
static void print_failed(Lower *l, const char *text, Type type, uint32_t reg, Lane bad) {
    DType types[AXES_MAX];
    bool is_float[AXES_MAX] = {false};
    Lane at[AXES_MAX];
    text = escaped(l->arena, text);
    for (int i = 0; i < type.axes.n; i++) {
        const Axis *axis = l->kernel->axis[type.axes.id[i]];
        Operand iota = operand_of(l, axis->iota, type.layout);
        types[i] = DT_INDEX;
        at[i] = operand_lane(l, &iota, reg);
        text = arena_printf(l->arena, "%s%s%s = {}", text, i ? ", " : ", at ",
                            axis->of ? axis->of->name : axis->name);
    }
    Print p = {.format = format_printf(l->arena, text, types),
               .n = type.axes.n,
               .is_float = is_float,
               .values = at,
               .of_failure = true};
    l->t->ops->print(l->t, bad, &p);
}

void lower_assert(Lower *l, const Op *op) {
    Target *t = l->t;
    if (!t->options->debug)
        return;
    const char *text = assert_text(l, op);
    Type type = op->in[0]->type;
    int n = type_registers(type);
    LLVMValueRef *ok = ARENA_ARRAY(l->arena, LLVMValueRef, (size_t)n);
    lower_flatten(l, op->in[0], type, ok);
    for (int i = 0; i < n && !t->failed; i++) {
        Lane lane = type.axes.n ? (Lane){ok[i]} : t->ops->splat(t, (Uni){ok[i]});
        Lane guard = guard_of(l, op, type.layout, (uint32_t)i);
        if (type.layout) {
            Lane bad = t->ops->arith(t, OP_NOT, 0, DT_BOOL, 0, &lane);
            bad = lane_and(t, lane_and(t, bad, guard), lower_active(l, type.layout));
            print_failed(l, text, type, (uint32_t)i, bad);
        }
        t->ops->check(t, lane, guard, text);
    }
}
