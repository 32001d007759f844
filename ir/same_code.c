// What stands for the code of a launch, so that variants share what is the same.
//
// Input: a placed kernel. Output: text; two launches with equal text lower to equal functions. In
// it is everything that lowering looks at: the launch's own text, the layouts, axes and tensors
// that it uses, and what the kernel's conditions promise of the scalars that it takes.
#include "ir/ir_impl.h"

typedef struct Uses {
    const Kernel *kernel;
    bool *axis; // by id
} Uses;

static void use_axis(Uses *u, const Axis *a) {
    for (; a && !u->axis[a->id]; a = a->of) {
        u->axis[a->id] = true;
        use_axis(u, a->like);
    }
}

static void use_axes(Uses *u, AxisSet s) {
    for (int i = 0; i < s.n; i++)
        use_axis(u, u->kernel->axis[s.id[i]]);
}

static void use_op(void *user, Op *op) {
    Uses *u = user;
    for (int i = 0; i < op->naxes; i++)
        use_axis(u, op->axes[i]);
    for (int i = 0; i < op->nbinders; i++)
        use_axis(u, op->binder[i].axis);
    for (int i = 0; i < op->nin; i++)
        use_axes(u, op->in[i]->type.axes);
    for (int i = 0; i < op->nres; i++)
        use_axes(u, op->res[i]->type.axes);
    for (int i = 0; i < op->nregion; i++)
        for (int j = 0; j < op->region[i]->narg; j++)
            use_axes(u, op->region[i]->arg[j]->type.axes);
    for (int i = 0; i < op->nmem; i++)
        use_axes(u, op->mem[i].mem->axes);
    if (op->def_mem)
        use_axes(u, op->def_mem->axes);
}

static void put_value(Text *t, const Value *v) {
    if (v && value_is_const(v))
        text_format(t, " %lld", (long long)v->u.i);
    else if (v)
        text_format(t, " %%%s", v->name);
}

static void put_mem(Text *t, const Mem *m) {
    text_format(t, "@%s %s %d opt %d absent %d align %u inner %d sdiv %u fits %d:", m->name,
                dtype_name(m->dtype), m->kind, m->opt, m->absent, (unsigned)m->align, m->inner,
                (unsigned)m->sdiv, m->fits32);
    for (int i = 0; i < m->rank; i++)
        put_value(t, m->dim[i]);
    text_str(t, "\n");
}

// `x % c == 0` and conjunctions of it.
static void note_divisor(const Value *cond, uint32_t *divisor) {
    const Op *cmp = cond->kind == VALUE_OP ? cond->def : NULL;
    if (!cmp)
        return;
    if (cmp->kind == OP_AND) {
        note_divisor(cmp->in[0], divisor);
        note_divisor(cmp->in[1], divisor);
        return;
    }
    if (cmp->kind != OP_CMP || cmp->sub != CMP_EQ || !value_is_int(cmp->in[1], 0))
        return;
    const Op *rem = cmp->in[0]->kind == VALUE_OP ? cmp->in[0]->def : NULL;
    if (!rem || (rem->kind != OP_REM && rem->kind != OP_MOD) || !value_is_const(rem->in[1]))
        return;
    uint64_t c = (uint64_t)rem->in[1]->u.i, low = c & (~c + 1);
    if (low && low <= UINT64_C(1) << 30 && low > divisor[rem->in[0]->id])
        divisor[rem->in[0]->id] = (uint32_t)low;
}

uint32_t *ir_known_divisors(Arena *arena, const Kernel *k) {
    uint32_t *divisor = ARENA_ARRAY(arena, uint32_t, k->nvalue + 1u);
    for (const Op *op = k->body->first; op; op = op->next) {
        if (op->kind == OP_REQUIRE || op->kind == OP_WHEN)
            note_divisor(op->in[0], divisor);
    }
    return divisor;
}

const char *ir_launch_code(Arena *arena, const Kernel *k, const Op *launch) {
    Text t = {.arena = arena};
    Uses u = {.kernel = k, .axis = ARENA_ARRAY(arena, bool, k->naxis + 1u)};
    print_launch(&t, k, launch);
    ir_walk(launch->region[0], use_op, &u);
    for (unsigned i = 0; i < k->naxis; i++) {
        const Axis *a = k->axis[i];
        if (!u.axis[i])
            continue;
        text_format(&t, "%s %u %d %s:", a->name, a->size, a->is_dim, a->of ? a->of->name : "");
        put_value(&t, a->lo);
        put_value(&t, a->hi);
        put_value(&t, a->extent);
        text_str(&t, "\n");
    }
    for (int i = 0; i < launch->nmem; i++)
        put_mem(&t, launch->mem[i].mem);
    const uint32_t *fact = ir_known_divisors(arena, k);
    for (int i = 0; i < launch->nin; i++)
        text_format(&t, "%s %u\n", launch->in[i]->name ? launch->in[i]->name : "",
                    (unsigned)fact[launch->in[i]->id]);
    return t.data;
}
