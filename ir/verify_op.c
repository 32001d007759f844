// The rules of single ops: operands in scope, the form's shape, memory references, attributes,
// stage, types.
//
// Input: an op whose surroundings are known (Verify). Output: true, or the first broken rule.
#include "ir/verify_impl.h"

#include <string.h>

#include "ir/format.h"

// --- operands ---

static bool operand(Verify *v, const Value *x) {
    if (!x)
        return verify_fail(v, "an operand is missing");
    if (x->id >= v->kernel->nvalue)
        return verify_fail(v, "an operand is of another kernel");
    switch (x->kind) {
    case VALUE_CONST:
        return true;
    case VALUE_IOTA:
        if (x->axis->id >= v->kernel->naxis || v->kernel->axis[x->axis->id] != x->axis)
            return verify_fail(v, "axis %s is of another kernel", x->axis->name);
        return verify_axis_usable(v, x->axis) ||
               verify_fail(v, "axis %s is not bound here", x->axis->name);
    case VALUE_OP:
    case VALUE_ARG:
    case VALUE_PARAM:
        return v->defined[x->id] ||
               verify_fail(v, "%%%s is not defined in front of its use", x->name ? x->name : "?");
    }
    return verify_fail(v, "an operand is malformed");
}

static bool int_scalar(Verify *v, const Value *x, const char *what) {
    if (x->type.axes.n || !dtype_is_integer(x->type.dtype))
        return verify_fail(v, "%s is not a scalar integer", what);
    return true;
}

static bool axes_known(Verify *v, const Op *op) {
    for (int i = 0; i < op->naxes; i++) {
        const Axis *a = op->axes[i];
        if (!a || a->id >= v->kernel->naxis || v->kernel->axis[a->id] != a)
            return verify_fail(v, "an axis is of another kernel");
        if (op->kind != OP_AXIS && !v->declared[a->id])
            return verify_fail(v, "axis %s is not declared here", a->name);
    }
    return true;
}

// --- memory references ---

static bool is_tensor(const Mem *m) {
    return m->kind == MEM_PARAM || m->kind == MEM_TEMP;
}

static bool tensor_ref(Verify *v, const Op *op, const MemRef *r) {
    if (r->nidx != r->mem->rank || r->first + r->nidx > op->nin)
        return verify_fail(v, "@%s has %d dims", r->mem->name, r->mem->rank);
    for (int i = 0; i < r->nidx; i++)
        if (!dtype_is_integer(op->in[r->first + i]->type.dtype))
            return verify_fail(v, "an index of @%s is not an integer", r->mem->name);
    return true;
}

static bool buffer_ref(Verify *v, const Op *op, const MemRef *r) {
    if (r->nidx || r->pos >= op->nin)
        return verify_fail(v, "@%s takes a position, not an index", r->mem->name);
    if (r->pos >= 0 && !int_scalar(v, op->in[r->pos], "a position"))
        return false;
    for (int i = 0; i < r->nrename; i++) {
        if (r->rename[i].from >= v->kernel->naxis || r->rename[i].to >= v->kernel->naxis)
            return verify_fail(v, "a renamed axis is of another kernel");
        const Axis *from = v->kernel->axis[r->rename[i].from],
                   *to = v->kernel->axis[r->rename[i].to];
        if (!axes_has(r->mem->axes, from->id))
            return verify_fail(v, "@%s has no axis %s", r->mem->name, from->name);
        if (!verify_axis_usable(v, to))
            return verify_fail(v, "axis %s is not bound here", to->name);
        if (from->size && to->size && from->size != to->size)
            return verify_fail(v, "axes %s and %s have different sizes", from->name, to->name);
    }
    return true;
}

static AxisSet index_axes(const Op *op, const MemRef *r) {
    AxisSet s = {0};
    for (int i = 0; i < r->nidx; i++)
        axes_union(s, op->in[r->first + i]->type.axes, &s);
    return s;
}

static bool memrefs_known(Verify *v, const Op *op) {
    for (int i = 0; i < op->nmem; i++) {
        const Mem *m = op->mem[i].mem;
        if (!m || m->id >= v->kernel->nmem || v->kernel->mem[m->id] != m || !v->mem_declared[m->id])
            return verify_fail(v, "@%s is not defined in front of its use",
                               m && m->name ? m->name : "?");
    }
    return true;
}

// --- forms ---

static bool shape(Verify *v, const Op *op, int nmem, bool tensor, bool index) {
    if (op->nmem != nmem)
        return verify_fail(v, "%d memories are expected", nmem);
    for (int i = 0; i < nmem; i++) {
        const MemRef *r = &op->mem[i];
        if (is_tensor(r->mem) != tensor)
            return verify_fail(v, "@%s is not a %s", r->mem->name, tensor ? "tensor" : "buffer");
        if (tensor && index ? !tensor_ref(v, op, r) : !tensor && !buffer_ref(v, op, r))
            return false;
    }
    return true;
}

static bool check_store(Verify *v, const Op *op) {
    if (!shape(v, op, 1, true, true))
        return false;
    const MemRef *r = &op->mem[0];
    bool compares = op->kind == OP_ATOMIC && op->sub == ATOMIC_CAS;
    if (op->nin != r->nidx + 1 + compares || r->first != 0)
        return verify_fail(v, "one value for each place is expected, of a cas two");
    const Value *x = op_store_value(op);
    if (compares && op->in[r->nidx]->type.dtype != r->mem->dtype)
        return verify_fail(v, "@%s holds %s", r->mem->name, dtype_name(r->mem->dtype));
    if (compares && !axes_subset(op->in[r->nidx]->type.axes, index_axes(op, r)))
        return verify_fail(v, "the expected value has an axis that no index has");
    bool bits = op->sub == ATOMIC_AND || op->sub == ATOMIC_OR || op->sub == ATOMIC_XOR;
    if (op->kind == OP_ATOMIC && bits && dtype_is_float(r->mem->dtype))
        return verify_fail(v, "@%s holds floats", r->mem->name);
    bool may_reduce = op->kind == OP_ATOMIC && op->sub != ATOMIC_XCHG && !compares;
    if (x->type.dtype != r->mem->dtype)
        return verify_fail(v, "@%s holds %s", r->mem->name, dtype_name(r->mem->dtype));
    if (!may_reduce && !axes_subset(x->type.axes, index_axes(op, r)))
        return verify_fail(v, "the value has an axis that no index has");
    if (r->mem->kind == MEM_PARAM && r->mem->mode == MODE_IN)
        return verify_fail(v, "@%s is only read", r->mem->name);
    if (op->kind == OP_ATOMIC ? op->nres > 1 : op->nres > 0)
        return verify_fail(v, "too many results");
    return true;
}

static bool check_load(Verify *v, const Op *op) {
    return shape(v, op, 1, true, true) && (op->nin == op->mem[0].nidx + op->has_else ||
                                           verify_fail(v, "operands that nothing takes"));
}

static bool check_get_put(Verify *v, const Op *op, bool put) {
    if (!shape(v, op, 1, false, false))
        return false;
    const MemRef *r = &op->mem[0];
    if (r->mem->kind != MEM_BUF)
        return verify_fail(v, "@%s is not a buffer", r->mem->name);
    if (op->nin != (r->pos >= 0) + put || (r->pos > 0))
        return verify_fail(v, "operands that nothing takes");
    if (!put)
        return true;
    const Value *x = op->in[op->nin - 1];
    if (x->type.dtype != r->mem->dtype || !axes_subset(x->type.axes, memref_axes(r)))
        return verify_fail(v, "@%s holds another type", r->mem->name);
    return true;
}

static bool chan_has(const Mem *chan, const Mem *buf) {
    for (int i = 0; i < chan->nbufs; i++)
        if (chan->bufs[i] == buf)
            return true;
    return false;
}

static bool check_copy(Verify *v, const Op *op) {
    if (op->nmem != 2 && op->nmem != 3)
        return verify_fail(v, "two memories are expected");
    const MemRef *from = &op->mem[0], *to = &op->mem[1];
    bool in = is_tensor(from->mem);
    const MemRef *t = in ? from : to, *b = in ? to : from;
    if (!is_tensor(t->mem) || b->mem->kind != MEM_BUF)
        return verify_fail(v, "a copy is between a tensor and a buffer");
    if (!tensor_ref(v, op, t) || !buffer_ref(v, op, b))
        return false;
    if (t->mem->dtype != b->mem->dtype)
        return verify_fail(v, "@%s and @%s hold different types", t->mem->name, b->mem->name);
    if (!axes_subset(index_axes(op, t), memref_axes(b)))
        return verify_fail(v, "an index has an axis that @%s lacks", b->mem->name);
    if (!in && t->mem->kind == MEM_PARAM && t->mem->mode == MODE_IN)
        return verify_fail(v, "@%s is only read", t->mem->name);
    if (op->nmem == 3 && op->mem[2].mem->kind != MEM_CHAN)
        return verify_fail(v, "@%s is not a channel", op->mem[2].mem->name);
    if (op->nmem == 3 && !chan_has(op->mem[2].mem, b->mem))
        return verify_fail(v, "@%s is not a buffer of @%s", b->mem->name, op->mem[2].mem->name);
    if (op->nmem == 3 && !in)
        return verify_fail(v, "a copy from a buffer signals no channel");
    return op->nin == t->nidx + (b->pos >= 0) || verify_fail(v, "operands that nothing takes");
}

static bool check_chan(Verify *v, const Op *op) {
    if (op->nmem == 0)
        return verify_fail(v, "a channel has buffers");
    for (int i = 0; i < op->nmem; i++)
        if (op->mem[i].mem->kind != MEM_BUF)
            return verify_fail(v, "@%s is not a buffer", op->mem[i].mem->name);
    return true;
}

static bool check_chanop(Verify *v, const Op *op) {
    if (op->nmem != 1 || op->mem[0].mem->kind != MEM_CHAN)
        return verify_fail(v, "a channel is expected");
    if (op->nin != 1 || op->mem[0].pos != 0)
        return verify_fail(v, "a position is expected");
    return int_scalar(v, op->in[0], "a position");
}

static bool check_memref(Verify *v, const Op *op) {
    if (op->nmem != 1 || op->nin)
        return verify_fail(v, "one memory is expected");
    if (op->kind == OP_COPY_WAIT)
        return op->mem[0].mem->kind == MEM_BUF ||
               verify_fail(v, "@%s is not a buffer", op->mem[0].mem->name);
    const Mem *m = op->mem[0].mem;
    if (!is_tensor(m))
        return verify_fail(v, "@%s is not a tensor", m->name);
    int64_t dim = op_attr_int(op, ATTR_dim);
    if (op->kind != OP_PRESENT && (dim < 0 || dim >= m->rank))
        return verify_fail(v, "@%s has %d dims", m->name, m->rank);
    return true;
}

static bool check_inside(Verify *v, const Op *op) {
    if (op->naxes == 0)
        return shape(v, op, 1, true, true) &&
               (op->nin == op->mem[0].nidx || verify_fail(v, "operands that nothing takes"));
    if (op->naxes != 1 || op->nmem || op->nin)
        return verify_fail(v, "one axis is expected");
    return verify_axis_usable(v, op->axes[0]) ||
           verify_fail(v, "axis %s is not bound here", op->axes[0]->name);
}

static bool check_axisref(Verify *v, const Op *op) {
    if (op->naxes != 1 || op->nin)
        return verify_fail(v, "one axis is expected");
    return verify_axis_usable(v, op->axes[0]) ||
           verify_fail(v, "axis %s is not bound here", op->axes[0]->name);
}

static bool check_axis(Verify *v, const Op *op) {
    if (op->naxes != 1 || (op->nin != 0 && op->nin != 2))
        return verify_fail(v, "an axis has two bounds or none");
    const Axis *a = op->axes[0];
    const Axis *others[] = {a->of, a->like};
    for (int i = 0; i < 2; i++)
        if (others[i] &&
            (others[i] == a || others[i]->id >= v->kernel->naxis || !v->declared[others[i]->id]))
            return verify_fail(v, "axis %s is not declared here", others[i]->name);
    if (a->like && a->like->size != a->size && v->module->stage >= STAGE_SCHEDULED)
        return verify_fail(v, "axis %s has another size than axis %s, whose window it has", a->name,
                           a->like->name);
    if (op->nin && (a->lo != op->in[0] || a->hi != op->in[1]))
        return verify_fail(v, "the axis does not know its window");
    if (!op->nin && (a->lo || a->hi))
        return verify_fail(v, "the axis does not know its window");
    for (int i = 0; i < op->nin; i++)
        if (!int_scalar(v, op->in[i], "a bound"))
            return false;
    return true;
}

static bool check_temp(Verify *v, const Op *op) {
    const Mem *m = op->def_mem;
    if (!m || m->kind != MEM_TEMP || m->rank != op->nin || m->dtype == DT_NONE)
        return verify_fail(v, "the tensor is malformed");
    for (int i = 0; i < op->nin; i++) {
        if (!int_scalar(v, op->in[i], "a dim"))
            return false;
        if (m->dim[i] != op->in[i])
            return verify_fail(v, "the tensor does not know its dims");
    }
    return true;
}

static bool check_buf(Verify *v, const Op *op) {
    const Mem *m = op->def_mem;
    if (!m || m->kind != MEM_BUF || m->dtype == DT_NONE)
        return verify_fail(v, "the buffer is malformed");
    for (int i = 0; i < m->axes.n; i++) {
        if (m->axes.id[i] >= v->kernel->naxis || !v->declared[m->axes.id[i]])
            return verify_fail(v, "an axis of the buffer is not declared here");
        if (v->kernel->axis[m->axes.id[i]]->size == 0)
            return verify_fail(v, "axis %s has no size", v->kernel->axis[m->axes.id[i]]->name);
    }
    if (op_attr_int(op, ATTR_stages) < 1)
        return verify_fail(v, "a ring has at least one slot");
    if (v->module->stage == STAGE_PLACED && !m->layout)
        return verify_fail(v, "the buffer has no layout");
    for (int i = 0; m->layout && i < m->layout->naxes; i++)
        if (!axes_has(m->axes, m->layout->axis[i]))
            return verify_fail(v, "the layout has an axis that the buffer lacks");
    return true;
}

// A value in flight is chained into the next issue, waited for, carried or yielded (rule A1).
static bool check_async(Verify *v, const Op *op) {
    OpForm form = op_info(op->kind)->form;
    for (int i = 0; i < op->nin; i++) {
        if (!op->in[i]->type.is_async)
            continue;
        bool chained = op->kind == OP_MMA_ISSUE && op_mma_parts(op).acc == op->in[i];
        bool carried = form == FORM_BINDERS && i >= op->nin - op->ncarry;
        if (!chained && !carried && op->kind != OP_MMA_WAIT && op->kind != OP_YIELD)
            return verify_fail(v, "protocol rule A1: %%%s is in flight",
                               op->in[i]->name ? op->in[i]->name : "?");
    }
    return true;
}

static bool check_mma(Verify *v, const Op *op) {
    MmaParts m = op_mma_parts(op);
    if (op->nmem < 1 || op->nmem > 2)
        return verify_fail(v, "one or two operands are buffers");
    int want = (m.a != NULL) + (m.acc != NULL);
    for (int i = 0; i < op->nmem; i++) {
        if (op->mem[i].mem->kind != MEM_BUF)
            return verify_fail(v, "@%s is not a buffer", op->mem[i].mem->name);
        if (!buffer_ref(v, op, &op->mem[i]))
            return false;
        want += op->mem[i].pos >= 0;
    }
    if (op->nin != want || (op->nmem == 1 && !m.a))
        return verify_fail(v, "two operands and at most one accumulator are expected");
    return true;
}

static bool check_form(Verify *v, const Op *op) {
    const OpInfo *row = op_info(op->kind);
    if (row->nin >= 0 && op->nin != row->nin && row->form != FORM_CHANOP)
        return verify_fail(v, "%d operands are expected", row->nin);
    switch (row->form) {
    case FORM_PLAIN:
        return op->kind != OP_ORDER || op->nin >= 2 || verify_fail(v, "counts are missing");
    case FORM_ALONG:
    case FORM_FOLD:
    case FORM_DOT:
    case FORM_TAKE:
        return true; // by the type rule
    case FORM_AXISREF:
        return check_axisref(v, op);
    case FORM_INSIDE:
        return check_inside(v, op);
    case FORM_MEMREF:
        return check_memref(v, op);
    case FORM_LOAD:
        return check_load(v, op);
    case FORM_STORE:
        return check_store(v, op);
    case FORM_AXIS:
        return check_axis(v, op);
    case FORM_BINDERS:
        return true; // with the regions
    case FORM_IF:
        return (op->in[0]->type.dtype == DT_BOOL && op->in[0]->type.axes.n == 0) ||
               verify_fail(v, "the condition is not a scalar bool");
    case FORM_YIELD:
        return op->nin >= op->has_stop || verify_fail(v, "the stop condition is missing");
    case FORM_TEMP:
        return check_temp(v, op);
    case FORM_BUF:
        return check_buf(v, op);
    case FORM_CHAN:
        return check_chan(v, op);
    case FORM_CHANOP:
        return check_chanop(v, op);
    case FORM_GET:
        return check_get_put(v, op, false);
    case FORM_PUT:
        return check_get_put(v, op, true);
    case FORM_COPY:
        return check_copy(v, op);
    case FORM_MMA:
        return check_mma(v, op);
    }
    return verify_fail(v, "no such form");
}

// --- attributes, stages, types ---

static int tensor_rank(const Op *op) {
    for (int i = 0; i < op->nmem; i++)
        if (is_tensor(op->mem[i].mem))
            return op->mem[i].mem->rank;
    return 0;
}

// A name in a race proof is `_`, an axis or a scalar.
static bool check_det(Verify *v, const Op *op, const Attr *a) {
    if (a->n != tensor_rank(op))
        return verify_fail(v, "`det` has one name for each dim");
    for (int i = 0; i < a->n; i++) {
        const char *name = a->names[i];
        const Axis *axis = ir_find_axis(v->kernel, name);
        const Value *x = ir_find_value(v->kernel, name);
        bool known = strcmp(name, "_") == 0 || (axis && v->declared[axis->id]) ||
                     (x && (x->kind == VALUE_CONST || v->defined[x->id]));
        if (!known)
            return verify_fail(v, "`det`: nothing has the name `%s` here", name);
    }
    return true;
}

static bool check_attrs(Verify *v, const Op *op) {
    if (op->kind == OP_STORE && v->inside && !op_attr(op, ATTR_det) && op->mem[0].mem->rank)
        return verify_fail(v, "a store without a race proof (`det`)");
    const OpInfo *row = op_info(op->kind);
    for (int i = 0; i < op->nattr; i++) {
        const Attr *a = &op->attr[i];
        bool own = false;
        for (int j = 0; j < row->nattrs; j++)
            own |= row->attrs[j] == a->id;
        if (!own)
            return verify_fail(v, "`%s` has no attribute `%s`", row->text, attr_name(a->id));
        if (a->id == ATTR_check)
            for (int j = 0; j < a->n; j++)
                if (a->ints[j] < 0 || a->ints[j] >= tensor_rank(op))
                    return verify_fail(v, "`check`: the tensor has %d dims", tensor_rank(op));
        if (a->id == ATTR_det && !check_det(v, op, a))
            return false;
        if (attr_type(a->id) != ATTR_TYPE_AXES)
            continue;
        for (int j = 0; j < a->n; j++) {
            const Axis *axis = a->axes[j];
            if (axis->id >= v->kernel->naxis || v->kernel->axis[axis->id] != axis ||
                !v->declared[axis->id])
                return verify_fail(v, "`%s`: axis %s is not declared here", attr_name(a->id),
                                   axis->name);
        }
    }
    return true;
}

static bool check_stage(Verify *v, const Op *op) {
    const OpInfo *row = op_info(op->kind);
    Stage stage = v->module->stage;
    unsigned now = 1u << stage;
    // Between `layouts` and `place` a module is scheduled and has layouts already.
    if (stage == STAGE_SCHEDULED && op->kind != OP_LAUNCH)
        now |= 1u << STAGE_PLACED;
    if (!(row->stages & now))
        return verify_fail(v, "`%s` is not an op of stage %s", row->text, stage_name(stage));
    if (stage == STAGE_TENSOR || v->inside)
        return true;
    if (!row->host)
        return verify_fail(v, "`%s` is outside of a %s", row->text,
                           stage == STAGE_PLACED ? "launch" : "parallel");
    for (int i = 0; i < op->nres; i++)
        if (op->res[i] && op->res[i]->type.axes.n)
            return verify_fail(v, "a tile outside of a %s",
                               stage == STAGE_PLACED ? "launch" : "parallel");
    return true;
}

// What a reduction leaves is a slice of its operand, what keeps the axes keeps the layout.
static bool check_layouts_along(Verify *v, const Op *op) {
    TypeRule rule = op_info(op->kind)->rule;
    const Layout *full = op->nin ? op->in[0]->type.layout : NULL;
    bool reduces = rule == RULE_REDUCE || rule == RULE_ARGREDUCE;
    bool keeps = rule == RULE_SCAN || rule == RULE_SORT;
    for (int i = 0; full && (reduces || keeps) && i < op->nres; i++) {
        const Layout *have = op->res[i]->type.layout;
        if (keeps && have != full)
            return verify_fail(v, "the result has another layout than the operand");
        if (reduces && have && !layout_is_slice(full, have))
            return verify_fail(v, "the layout of the result is not a slice of the operand's");
    }
    return true;
}

// Operands of elementwise ops are slices of the result; iotas and constants take any layout.
static bool check_layouts(Verify *v, const Op *op) {
    if (v->module->stage == STAGE_PLACED && !check_layouts_along(v, op))
        return false;
    if (v->module->stage != STAGE_PLACED || !op_has(op->kind, TRAIT_ELEMENTWISE) || op->nres != 1)
        return true;
    const Layout *full = op->res[0]->type.layout;
    for (int i = 0; full && i < op->nin; i++) {
        const Value *x = op->in[i];
        if (x->kind == VALUE_IOTA || !x->type.layout)
            continue;
        if (x->type.layout != full && !layout_is_slice(full, x->type.layout))
            return verify_fail(v, "the layout of operand %d is not a slice of the result's", i);
    }
    return true;
}

static bool is_print(const Op *op) {
    const char *text = op_attr_str(op, ATTR_msg);
    return text && format_count(text) == op->nin;
}

static bool check_types(Verify *v, const Op *op) {
    const OpInfo *row = op_info(op->kind);
    if (op_has(op->kind, TRAIT_SCALAR))
        for (int i = 0; i < op->nin; i++)
            if (op->in[i]->type.axes.n)
                return verify_fail(v, "operand %d is not a scalar", i);
    if (op->kind == OP_REQUIRE || op->kind == OP_WHEN || op->kind == OP_ASSERT)
        if (op->in[0]->type.dtype != DT_BOOL)
            return verify_fail(v, "the condition is not a bool");
    if (op->kind == OP_PRINT && !is_print(op))
        return verify_fail(v, "a text with one `{}` for each operand is expected");
    if (op->kind == OP_ASM && (op->nin < 1 || op->nin > 3 || !op_attr_str(op, ATTR_msg)))
        return verify_fail(v, "a text and one to three operands are expected");
    if (row->rule == RULE_CARRY || row->rule == RULE_NONE)
        return row->rule == RULE_CARRY || op->nres == 0 || verify_fail(v, "the op has no result");
    int want = 1;
    if (row->rule == RULE_ORDER)
        want = op->nin - 1;
    if (row->rule == RULE_ARGREDUCE)
        want = op->naxes;
    if (row->rule == RULE_FOLD || row->rule == RULE_SCANFN)
        want = op_fold_values(op) ? op_fold_values(op) : 1;
    if (row->rule == RULE_SORT || row->rule == RULE_TOPK)
        want = 2;
    if (op->nres != want && !(op->kind == OP_ATOMIC && op->nres == 0))
        return verify_fail(v, "%d results are expected", want);
    for (int i = 0; i < op->nres; i++) {
        Type t;
        const char *why = "";
        if (!op_infer(v->kernel, op, i, &t, &why))
            return verify_fail(v, "%s", why);
        Type have = op->res[i]->type;
        if (have.dtype != t.dtype || have.is_async != t.is_async)
            return verify_fail(v, "the result is %s%s", t.is_async ? "async " : "",
                               dtype_name(t.dtype));
        if (!axes_equal(have.axes, t.axes))
            return verify_fail(v, "the result has other axes than its operands give");
    }
    return check_layouts(v, op);
}

bool verify_op(Verify *v) {
    const Op *op = v->op;
    const OpInfo *row = op_info(op->kind);
    for (int i = 0; i < op->nin; i++)
        if (!operand(v, op->in[i]))
            return false;
    for (int i = 0; i < op->nres; i++)
        if (!op->res[i])
            return verify_fail(v, "a result is missing");
    if (row->kinds) {
        int n = 0;
        while (row->kinds[n])
            n++;
        if (op->sub >= n)
            return verify_fail(v, "the kind is out of range");
    }
    bool defines = row->form == FORM_TEMP || row->form == FORM_BUF || row->form == FORM_CHAN;
    if (defines != (op->def_mem != NULL))
        return verify_fail(v, "the op defines %s memory", defines ? "a" : "no");
    return axes_known(v, op) && memrefs_known(v, op) && check_form(v, op) && check_async(v, op) &&
           check_attrs(v, op) && check_stage(v, op) && check_types(v, op);
}
