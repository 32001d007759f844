// Lowering of one launch: walks its region and hands each op to the file of its family.
//
// Input: a `launch` of a placed kernel, a Target with a module. Output: one function in the module.
// Invariant: after an op its results' Tiles are complete; a failure is reported once and leaves
// poison, so that lowering can go on without special cases.
#include "backend/lower.h"

#include <string.h>

int type_registers(Type type) {
    return type.layout ? (int)layout_registers(type.layout) : 1;
}

Tile *lower_result(Lower *l, const Value *v) {
    Tile *tile = &l->tile[v->id];
    tile->n = type_registers(v->type);
    tile->reg = ARENA_ARRAY(l->arena, LLVMValueRef, (size_t)tile->n);
    return tile;
}

Uni lower_uni(Lower *l, const Value *v) {
    if (v->kind == VALUE_CONST)
        return uni_const(l->t, v);
    const Tile *tile = &l->tile[v->id];
    if (tile->n)
        return (Uni){tile->reg[0]};
    target_fail(l->t, "%%%s is used in a launch but is not one of its arguments",
                v->name ? v->name : "?");
    return (Uni){LLVMGetUndef(target_type(l->t, v->type.dtype))};
}

Uni lower_index(Lower *l, const Value *v) {
    DType dtype = v->type.dtype;
    return uni_resize(l->t, lower_uni(l, v), 64, dtype != DT_BOOL && dtype_is_signed(dtype));
}

Lane lower_lane(Lower *l, const Value *v, int reg) {
    const Tile *tile = &l->tile[v->id];
    if (reg < tile->n)
        return (Lane){tile->reg[reg]};
    target_fail(l->t, "%%%s has no value here", v->name ? v->name : "?");
    return l->t->ops->splat(l->t, (Uni){LLVMGetUndef(target_type(l->t, v->type.dtype))});
}

static void set_scalar(Lower *l, const Value *v, Uni x) {
    lower_result(l, v)->reg[0] = x.v;
}

// --- scalars that read the launch ---

static void lower_begin_end(Lower *l, const Op *op) {
    Window w = lower_window(l, op->axes[0]);
    DType dtype = op->res[0]->type.dtype;
    Uni x = op->kind == OP_BEGIN ? w.begin : w.end;
    set_scalar(l, op->res[0], uni_resize(l->t, x, (int)dtype_bits(dtype), true));
}

static void lower_memory_fact(Lower *l, const Op *op) {
    Target *t = l->t;
    const Mem *mem = op->mem[0].mem;
    int dim = (int)op_attr_int(op, ATTR_dim);
    Uni pointer = l->pointer[mem->id], x;
    LLVMValueRef there = pointer.v ? LLVMBuildIsNotNull(t->builder, pointer.v, "")
                                   : LLVMConstInt(target_int(t, 1), 0, false);
    if (op->kind == OP_PRESENT) {
        x.v = there;
    } else if (op->kind == OP_STRIDE) {
        x = mem->inner == dim ? uni_int(t, 64, 1) : l->stride[mem->id][dim];
        if (!x.v)
            x = uni_int(t, 64, 0);
    } else {
        x = mem->absent ? uni_int(t, 64, 0) : lower_index(l, mem->dim[dim]);
        if (mem->opt && !mem->absent)
            x.v = LLVMBuildSelect(t->builder, there, x.v, uni_int(t, 64, 0).v, "");
    }
    set_scalar(l, op->res[0], x);
}

// --- the walk ---

void lower_op(Lower *l, const Op *op) {
    Target *t = l->t;
    t->op = op;
    if (op->span.end > op->span.begin)
        t->ops->span(t, op->span);
    if (op_has(op->kind, TRAIT_ELEMENTWISE)) {
        lower_elementwise(l, op);
        return;
    }
    switch ((int)op->kind) { // the op families; elementwise rows are above
    case OP_FOR:
        lower_for(l, op);
        return;
    case OP_WHILE:
        lower_while(l, op);
        return;
    case OP_IF:
        lower_if(l, op);
        return;
    case OP_WITH:
        lower_with(l, op);
        return;
    case OP_AXIS:
        lower_axis(l, op);
        return;
    case OP_ORDER:
        lower_order(l, op);
        return;
    case OP_BEGIN:
    case OP_END:
        lower_begin_end(l, op);
        return;
    case OP_INSIDE:
        lower_inside(l, op);
        return;
    case OP_PRESENT:
    case OP_EXTENT:
    case OP_STRIDE:
        lower_memory_fact(l, op);
        return;
    case OP_REDUCE:
        lower_reduce(l, op);
        return;
    case OP_ARGREDUCE:
        lower_argreduce(l, op);
        return;
    case OP_SCAN:
        lower_scan(l, op);
        return;
    case OP_FOLD:
    case OP_SCANFN:
        lower_fold(l, op);
        return;
    case OP_SORT:
    case OP_TOPK:
        lower_sort(l, op);
        return;
    case OP_TAKE:
        lower_take(l, op);
        return;
    case OP_DOT:
        lower_dot(l, op);
        return;
    case OP_LOAD:
        lower_load(l, op);
        return;
    case OP_STORE:
    case OP_SCATTER:
        lower_store(l, op);
        return;
    case OP_ATOMIC:
        lower_atomic(l, op);
        return;
    case OP_CONVERT:
        lower_convert(l, op);
        return;
    case OP_GET:
        lower_get(l, op);
        return;
    case OP_PUT:
        lower_put(l, op);
        return;
    case OP_COPY:
        lower_copy(l, op);
        return;
    case OP_ACQUIRE:
    case OP_COMMIT:
    case OP_WAIT:
    case OP_RELEASE:
        lower_channel(l, op);
        return;
    case OP_COPY_WAIT:
        lower_copy_wait(l, op);
        return;
    case OP_ROLES:
        lower_roles(l, op);
        return;
    case OP_FENCE:
        lower_fence(l, op);
        return;
    case OP_MMA_ISSUE:
        lower_mma_issue(l, op);
        return;
    case OP_MMA_WAIT:
        lower_mma_wait(l, op);
        return;
    case OP_BUF:
    case OP_CHAN:
    case OP_REQUIRE:
    case OP_WHEN:
    case OP_YIELD:
        return;
    case OP_BARRIER:
        lower_barrier(l, op);
        return;
    case OP_PRINT:
        lower_print(l, op);
        break;
    case OP_ASSERT:
        lower_assert(l, op);
        return;
    default: // not a member of OpKind's device ops
        target_fail(t, "this operation cannot be lowered yet");
    }
}

// Each register takes an instruction or more: what no target takes need not be made first.
static void count_registers(Lower *l, const Op *op) {
    enum { MOST = 200000 };
    for (int i = 0; i < op->nres; i++)
        l->t->registers += type_registers(op->res[i]->type);
    if (l->t->registers > MOST)
        target_too_large(l->t, l->t->registers, MOST);
}

const Op *lower_region(Lower *l, const Region *region) {
    for (const Op *op = region->first; op; op = op->next) {
        if (op->kind == OP_YIELD)
            return op;
        int run = lower_elementwise_run(l, op);
        for (; run > 1; run--, op = op->next)
            count_registers(l, op);
        if (run == 0)
            lower_op(l, op);
        count_registers(l, op);
        if (l->t->failed)
            return NULL;
    }
    return NULL;
}

// --- a launch ---

// Bytes of the launch's buffers and of its largest scratch; which tensors it writes.
typedef struct Survey {
    Lower *l;
    int64_t scratch, buffers_end;
} Survey;

static void survey_op(void *user, Op *op) {
    Survey *s = user;
    int64_t bytes = lower_scratch_bytes(op);
    s->scratch = bytes > s->scratch ? bytes : s->scratch;
    const Mem *buf = op->kind == OP_BUF && op->sub == BUF_SHARED ? op->def_mem : NULL;
    if (buf && buf->layout) {
        int64_t at = op_attr_int(op, ATTR_at);
        int64_t size = (int64_t)layout_offsets(buf->layout) * storage_bytes(buf->dtype);
        int64_t end = (at < 0 ? 0 : at) + size * op_attr_int(op, ATTR_stages);
        s->buffers_end = end > s->buffers_end ? end : s->buffers_end;
    }
    Str engine = op->kind == OP_COPY ? op_attr_str(op, ATTR_engine) : NULL;
    if (engine && strcmp(engine, "cp_async") == 0)
        s->l->async[op->mem[1].mem->id] = true;
    bool writes = op_has(op->kind, TRAIT_WRITES);
    for (int i = 0; i < op->nmem && writes; i++) {
        if (op->kind != OP_COPY || i == 1)
            s->l->written[op->mem[i].mem->id] = true;
    }
}

static void bind_params(Lower *l, int n, const AbiParam *params, const Uni *values) {
    for (int i = 0; i < n; i++) {
        const AbiParam *p = &params[i];
        switch (p->kind) {
        case ABI_MAP:
            for (int k = 0; k < l->nmap; k++)
                if (memcmp(&l->map[k], &p->map, sizeof p->map) == 0)
                    l->map_pointer[k] = values[i];
            break;
        case ABI_POINTER:
            l->pointer[p->mem->id] = values[i];
            break;
        case ABI_STRIDE:
            l->stride[p->mem->id][p->dim] = values[i];
            break;
        case ABI_SCALAR:
            if (p->value->kind != VALUE_CONST)
                set_scalar(l, p->value, values[i]);
            break;
        }
    }
}

bool lower_launch(Target *t, Kernel *kernel, const Op *launch, const char *symbol) {
    Arena *arena = t->arena;
    Lower l = {
        .t = t,
        .kernel = kernel,
        .launch = launch,
        .arena = arena,
        .layouts = kernel->module->layouts,
        .tile = ARENA_ARRAY(arena, Tile, kernel->nvalue + 1u),
        .window = ARENA_ARRAY(arena, Window, kernel->naxis + 1u),
        .pointer = ARENA_ARRAY(arena, Uni, kernel->nmem + 1u),
        .stride = arena_array(arena, kernel->nmem + 1u, sizeof(Uni[RANK_MAX])),
        .written = ARENA_ARRAY(arena, bool, kernel->nmem + 1u),
        .async = ARENA_ARRAY(arena, bool, kernel->nmem + 1u),
        .fact = ir_known_divisors(arena, kernel),
    };
    t->launch = launch;
    t->op = launch;
    t->registers = 0;
    t->warps = (int)op_attr_int(launch, ATTR_warps);
    if (t->warps < 1)
        t->warps = 1;
    if (t->warps > t->desc->max_warps) {
        target_fail(t, "%d warps, the target has %d", t->warps, t->desc->max_warps);
        return false;
    }
    Survey survey = {.l = &l};
    ir_walk(launch->region[0], survey_op, &survey);
    l.scratch_at = (int)((survey.buffers_end + 15) / 16 * 16);
    int64_t smem = op_attr_int(launch, ATTR_smem);
    if (t->desc->shared_bytes && survey.scratch && smem < l.scratch_at + survey.scratch) {
        target_fail(t, "launch has %lld bytes of shared memory, %lld are needed", (long long)smem,
                    (long long)(l.scratch_at + survey.scratch));
        return false;
    }
    int n = 0;
    AbiParam *params = abi_launch_params(arena, launch, &n);
    Uni *values = ARENA_ARRAY(arena, Uni, (size_t)n + 1);
    Uni program = {NULL};
    t->ops->kernel_begin(t, launch, symbol, n, params, values, &program);
    if (t->failed)
        return false;
    l.map = abi_launch_maps(arena, launch, &l.nmap);
    l.map_pointer = ARENA_ARRAY(arena, Uni, (size_t)l.nmap + 1);
    bind_params(&l, n, params, values);
    const Region *region = launch->region[0];
    if (region->narg > 0) {
        Uni pid = uni_resize(t, program, (int)dtype_bits(region->arg[0]->type.dtype), true);
        set_scalar(&l, region->arg[0], pid);
    }
    lower_mbarriers_init(&l);
    lower_region(&l, region);
    t->op = launch;
    t->ops->kernel_end(t);
    return !t->failed;
}

int64_t lower_scratch_bytes(const Op *op) {
    if (op->kind == OP_CONVERT)
        return convert_scratch(op);
    if (op->kind == OP_SCAN || op_has(op->kind, TRAIT_FUNCTION))
        return scan_scratch(op);
    if (op->kind == OP_SORT || op->kind == OP_TOPK)
        return sort_scratch(op);
    if (op->kind == OP_TAKE)
        return take_scratch(op);
    if (op->kind == OP_ATOMIC)
        return atomic_scratch(op);
    if (op->kind == OP_REDUCE || op->kind == OP_ARGREDUCE) {
        const Value *v = op->in[0];
        if (!v->type.layout || !op->res[0]->type.layout)
            return v->type.layout ? reduce_scratch(v->type.layout, NULL, v->type.dtype,
                                                   op->kind == OP_ARGREDUCE ? 1 + op->nres : 1)
                                  : 0;
        return reduce_scratch(v->type.layout, op->res[0]->type.layout, v->type.dtype,
                              op->kind == OP_ARGREDUCE ? 1 + op->nres : 1);
    }
    return 0;
}
