// One variant's host region to a program.
//
// Values become slots, constants preset ones; loops and ifs become jumps; what a region carries is
// moved. With PLAN_CHECKS only the scalar ops of the body itself are compiled, and an op that needs
// anything else is left out. Invariant: `when` stands before the first launch, so a variant is
// given up before it has done anything.
#include "runtime/plan.h"

#include <ctype.h>

#include "lang/base/vec.h"

typedef struct Compile {
    Arena *arena;
    const Instance *instance;
    const Kernel *kernel;
    PlanForm form;
    uint32_t *slot_of; // by Value.id: slot + 1
    uint16_t *tensor;  // by Mem.id: number + 1
    VEC(Reg) initial;
    VEC(Instr) code;
    VEC(uint32_t) temp_dim;
    VEC(DType) temp_dtype;
    VEC(uint8_t) temp_rank;
    VEC(bool) temp_zero;
    uint32_t launch_words;
    int launches; // so far
    bool several; // a loop has one, or there are two
    const char *error;
} Compile;

static bool fail(Compile *c, const char *text, const char *what) {
    if (!c->error)
        c->error = arena_printf(c->arena, "kernel `%s`: %s%s%s", c->kernel->name, text,
                                *what ? " " : "", what);
    return false;
}

// --- slots ---

static uint32_t slot_new(Compile *c) {
    vec_push(c->arena, &c->initial, (Reg){0});
    return c->initial.len - 1;
}

static uint32_t slot_const(Compile *c, int64_t i) {
    vec_push(c->arena, &c->initial, (Reg){.i = i});
    return c->initial.len - 1;
}

static uint32_t slot_define(Compile *c, const Value *v) {
    if (!c->slot_of[v->id])
        c->slot_of[v->id] = slot_new(c) + 1;
    return c->slot_of[v->id] - 1;
}

static bool slot_get(Compile *c, const Value *v, uint32_t *out) {
    if (!c->slot_of[v->id] && v->kind == VALUE_CONST) {
        Reg r = dtype_is_float(v->type.dtype) ? (Reg){.f = v->u.f} : (Reg){.i = v->u.i};
        vec_push(c->arena, &c->initial, r);
        c->slot_of[v->id] = c->initial.len;
    }
    *out = c->slot_of[v->id] - 1;
    if (!c->slot_of[v->id] && c->form == PLAN_LAUNCHES)
        fail(c, "the plan needs a value that it does not define:", v->name ? v->name : "?");
    return c->slot_of[v->id] != 0;
}

static uint32_t emit(Compile *c, Instr i) {
    vec_push(c->arena, &c->code, i);
    return c->code.len - 1;
}

static bool emit_move(Compile *c, uint32_t to, const Value *from) {
    uint32_t a;
    if (!slot_get(c, from, &a))
        return false;
    if (a != to)
        emit(c, (Instr){.code = I_MOVE, .dst = to, .a = a});
    return true;
}

static uint16_t tensor_of(Compile *c, const Mem *m) {
    if (!c->tensor[m->id])
        fail(c, "the plan uses a memory that is no tensor:", m->name);
    return (uint16_t)(c->tensor[m->id] - 1);
}

// --- scalar ops ---

static bool is_wide(DType t) {
    return t == DT_INDEX || t == DT_I64;
}

// The fast form of an op; I_OP where its meaning needs the type.
static InstrCode fast_code(const Op *op) {
    DType t = op->in[0]->type.dtype, to = op->res[0]->type.dtype;
    bool is_int = !dtype_is_float(t) && t != DT_U64;
    bool wide = is_wide(t);
    static const InstrCode compare[CMP_COUNT] = {I_EQ, I_NE, I_LT, I_LE, I_GT, I_GE};
    switch ((int)op->kind) {
    case OP_ADD:
        return wide ? I_ADD : I_OP;
    case OP_SUB:
        return wide ? I_SUB : I_OP;
    case OP_MUL:
        return wide ? I_MUL : I_OP;
    case OP_DIV:
        return wide ? I_DIV : I_OP;
    case OP_REM:
        return wide ? I_REM : I_OP;
    case OP_CDIV:
        return wide ? I_CDIV : I_OP;
    case OP_MIN:
        return is_int ? I_MIN : I_OP;
    case OP_MAX:
        return is_int ? I_MAX : I_OP;
    case OP_AND:
        return is_int ? I_AND : I_OP;
    case OP_OR:
        return is_int ? I_OR : I_OP;
    case OP_NOT:
        return t == DT_BOOL ? I_NOT : I_OP;
    case OP_SELECT:
        return I_SELECT;
    case OP_CMP:
        return is_int ? compare[op->sub] : I_OP;
    case OP_CAST:
        return is_int && is_wide(to) ? I_MOVE : I_OP;
    }
    return I_OP;
}

static bool is_scalar_op(const Op *op) {
    if (op->nres != 1 || op->res[0]->type.axes.n || op->nin < 1 || op->nin > 3)
        return false;
    for (int i = 0; i < op->nin; i++)
        if (op->in[i]->type.axes.n)
            return false;
    return op_has(op->kind, TRAIT_ELEMENTWISE);
}

// A parameter's dim that is a value of the program is compared once the value is there.
static void check_dims(Compile *c, const Value *v, uint32_t slot) {
    for (int i = 0; i < c->kernel->nparam; i++) {
        const Param *p = &c->kernel->param[i];
        for (int d = 0; p->kind == PARAM_TENSOR && d < p->mem->rank; d++)
            if (p->mem->dim[d] == v)
                emit(c, (Instr){.code = I_CHECK,
                                .tensor = tensor_of(c, p->mem),
                                .a = slot,
                                .b = (uint32_t)d});
    }
}

static bool compile_scalar(Compile *c, const Op *op) {
    uint32_t in[3] = {0};
    for (int i = 0; i < op->nin; i++)
        if (!slot_get(c, op->in[i], &in[i]))
            return false;
    uint32_t dst = slot_define(c, op->res[0]);
    emit(c,
         (Instr){.code = fast_code(op), .dst = dst, .a = in[0], .b = in[1], .c = in[2], .op = op});
    check_dims(c, op->res[0], dst);
    return true;
}

static bool compile_memory_fact(Compile *c, const Op *op) {
    InstrCode code = op->kind == OP_PRESENT  ? I_PRESENT
                     : op->kind == OP_EXTENT ? I_EXTENT
                                             : I_STRIDE;
    const Mem *m = op->mem[0].mem;
    if (!c->tensor[m->id])
        return c->form == PLAN_CHECKS ||
               fail(c, "the plan uses a memory that is no tensor:", m->name);
    int64_t dim = code == I_PRESENT ? 0 : op_attr_int(op, ATTR_dim);
    if (dim < 0 || (code != I_PRESENT && dim >= m->rank))
        return fail(c, "no such dim of", m->name);
    uint32_t dst = slot_define(c, op->res[0]);
    emit(c, (Instr){.code = code, .dst = dst, .tensor = tensor_of(c, m), .b = (uint32_t)dim});
    check_dims(c, op->res[0], dst);
    return true;
}

static bool compile_condition(Compile *c, const Op *op) {
    uint32_t a;
    if (op->kind == OP_WHEN && c->launches > 0)
        return fail(c, "`when` stands after a launch", "");
    if (!slot_get(c, op->in[0], &a))
        return false;
    emit(c, (Instr){.code = op->kind == OP_WHEN ? I_WHEN : I_REQUIRE, .a = a, .op = op});
    return true;
}

// --- temporaries and launches ---

static bool compile_temp(Compile *c, const Op *op) {
    const Mem *m = op->def_mem;
    uint32_t first = c->temp_dim.len;
    for (int i = 0; i < m->rank; i++) {
        uint32_t slot;
        if (!slot_get(c, m->dim[i], &slot))
            return false;
        vec_push(c->arena, &c->temp_dim, slot);
    }
    uint32_t number = (uint32_t)c->instance->nparam + c->temp_dtype.len;
    if (number >= UINT16_MAX)
        return fail(c, "too many temporaries", "");
    c->tensor[m->id] = (uint16_t)(number + 1);
    vec_push(c->arena, &c->temp_dtype, m->dtype);
    vec_push(c->arena, &c->temp_rank, m->rank);
    vec_push(c->arena, &c->temp_zero, op_attr_int(op, ATTR_zero) != 0);
    emit(c, (Instr){.code = I_TEMP, .tensor = (uint16_t)number, .a = first});
    return true;
}

// The symbol that the back end gives a launch: its attribute, or kernel and number, with nothing
// but letters, digits, `_`.
static const char *entry_symbol(Compile *c, Str entry) {
    char *s = entry ? arena_strdup(c->arena, entry)
                    : arena_printf(c->arena, "%s__%d", c->kernel->name, c->launches);
    for (char *p = s; *p; p++)
        if (!isalnum((unsigned char)*p))
            *p = '_';
    return s;
}

static bool launch_shape(Compile *c, const Op *op, LaunchPlan *l) {
    l->warps = (int)op_attr_int(op, ATTR_warps);
    l->smem = op_attr_int(op, ATTR_smem);
    l->cluster = (int)op_attr_int(op, ATTR_cluster);
    l->pdl = op_attr_int(op, ATTR_pdl) != 0;
    if (l->warps < 1 || l->warps > 32 || l->smem < 0 || l->smem > INT32_MAX || l->cluster < 1)
        return fail(c, "a launch has impossible attributes:", l->entry);
    return true;
}

static const Op *find_launch(const Region *r, Str entry) {
    const Op *found = NULL;
    for (const Op *op = r->first; op && !found; op = op->next) {
        if (op->kind == OP_LAUNCH && op_attr_str(op, ATTR_entry) == entry)
            return op;
        for (int i = 0; i < op->nregion && op->kind != OP_LAUNCH && !found; i++)
            found = find_launch(op->region[i], entry);
    }
    return found;
}

static bool compile_sms(Compile *c, const Op *op) {
    Instr i = {.code = I_SMS, .dst = slot_define(c, op->res[0])};
    Str entry = op_attr_str(op, ATTR_entry);
    const Op *launch = entry ? find_launch(c->kernel->body, entry) : NULL;
    if (entry && !launch && c->form == PLAN_LAUNCHES)
        return fail(c, "the plan asks for the size of a launch that it does not have:", entry);
    if (launch) {
        i.launch = ARENA_NEW(c->arena, LaunchPlan);
        i.launch->entry = entry_symbol(c, entry);
        if (!launch_shape(c, launch, i.launch))
            return false;
    }
    emit(c, i);
    return true;
}

// The ops of the plan that make the number of programs of a launch must not leave 64 bits: wrapped,
// the launch would do a part of its work, or none. A factor of 0 makes all others right: `skip` has
// the jumps that it takes.
typedef struct GridCheck {
    Compile *c;
    bool *seen; // by value id
    VEC(uint32_t) skip;
} GridCheck;

static void check_grid(GridCheck *g, const Value *v, bool is_product) {
    const Op *op = v->kind == VALUE_OP ? v->def : NULL;
    if (!op || g->seen[v->id] || !is_wide(v->type.dtype))
        return;
    g->seen[v->id] = true;
    uint32_t in[2] = {0};
    bool leaves = op->kind == OP_ADD || op->kind == OP_SUB || op->kind == OP_MUL;
    if (!leaves && op->kind != OP_MIN && op->kind != OP_MAX && op->kind != OP_CDIV &&
        op->kind != OP_DIV)
        return;
    for (int i = 0; i < 2; i++)
        if (!slot_get(g->c, op->in[i], &in[i]))
            return;
    is_product &= op->kind == OP_MUL;
    if (is_product) {
        uint32_t jump = emit(g->c, (Instr){.code = I_JUMP_UNLESS, .a = in[1]});
        vec_push(g->c->arena, &g->skip, jump);
    }
    if (leaves)
        emit(g->c, (Instr){.code = I_GRID, .a = in[0], .b = in[1], .op = op});
    for (int i = 0; i < 2; i++)
        check_grid(g, op->in[i], is_product && i == 0);
}

// Of a persistent grid, the least of its tiles and the programs that fit.
static const Value *tiles_of(const Value *grid) {
    const Op *op = grid->kind == VALUE_OP ? grid->def : NULL;
    return op && op->kind == OP_MIN ? op->in[0] : grid;
}

static void compile_grid_check(Compile *c, const Op *launch) {
    GridCheck g = {.c = c, .seen = ARENA_ARRAY(c->arena, bool, (size_t)c->kernel->nvalue + 1)};
    check_grid(&g, tiles_of(launch->in[1]), true);
    for (uint32_t i = 0; i < g.skip.len; i++)
        c->code.data[g.skip.data[i]].dst = c->code.len;
}

static bool compile_launch(Compile *c, const Op *op) {
    LaunchPlan *l = ARENA_NEW(c->arena, LaunchPlan);
    int n;
    uint32_t words = 0;
    const AbiParam *abi = abi_launch_params(c->arena, op, &n);
    LaunchParam *params = ARENA_ARRAY(c->arena, LaunchParam, (size_t)n);
    for (int i = 0; i < n; i++) {
        LaunchParam *p = &params[i];
        *p = (LaunchParam){.kind = abi[i].kind, .dtype = abi[i].dtype, .dim = (uint8_t)abi[i].dim};
        if (abi[i].kind == ABI_SCALAR) {
            if (!slot_get(c, abi[i].value, &p->slot))
                return false;
        } else {
            p->tensor = tensor_of(c, abi[i].mem);
        }
        words += (uint32_t)(abi[i].bytes + 7) / 8;
        if (abi[i].kind == ABI_MAP) {
            p->map = &abi[i].map;
            p->dtype = abi[i].mem->dtype;
        }
    }
    l->param = params;
    l->nparam = (uint32_t)n;
    if (!slot_get(c, op->in[0], &l->lo) || !slot_get(c, op->in[1], &l->hi))
        return false;
    l->entry = entry_symbol(c, op_attr_str(op, ATTR_entry));
    c->launches++;
    if (!launch_shape(c, op, l))
        return false;
    if (words > c->launch_words)
        c->launch_words = words;
    compile_grid_check(c, op);
    emit(c, (Instr){.code = I_LAUNCH, .launch = l});
    return true;
}

// --- control flow ---

static bool compile_region(Compile *c, const Region *r);

// Moves what a region yields to `to`, all at once: a yielded value may be one of `to`.
static bool move_yield(Compile *c, const Region *r, uint32_t n, const uint32_t *to,
                       uint32_t *stop) {
    const Op *yield = region_yield(r);
    uint32_t has = yield ? (uint32_t)(yield->nin - yield->has_stop) : 0;
    if (has != n)
        return fail(c, "a region yields another number of values", "");
    uint32_t *temp = ARENA_ARRAY(c->arena, uint32_t, n);
    bool has_stop = stop && yield && yield->has_stop;
    bool direct = n == 1 && !has_stop;
    for (uint32_t i = 0; i < n; i++) {
        temp[i] = direct ? to[i] : slot_new(c);
        if (!emit_move(c, temp[i], yield->in[i]))
            return false;
    }
    if (has_stop) { // read before the carried values change
        *stop = slot_new(c);
        if (!emit_move(c, *stop, yield->in[yield->nin - 1]))
            return false;
    }
    for (uint32_t i = 0; !direct && i < n; i++)
        emit(c, (Instr){.code = I_MOVE, .dst = to[i], .a = temp[i]});
    return true;
}

static uint32_t *define_all(Compile *c, int n, Value *const *values) {
    uint32_t *slots = ARENA_ARRAY(c->arena, uint32_t, (size_t)n);
    for (int i = 0; i < n; i++)
        slots[i] = slot_define(c, values[i]);
    return slots;
}

static bool compile_if(Compile *c, const Op *op) {
    uint32_t cond, mark = slot_new(c);
    const uint32_t *out = define_all(c, op->nres, op->res);
    if (!slot_get(c, op->in[0], &cond))
        return false;
    emit(c, (Instr){.code = I_MARK, .dst = mark});
    uint32_t to_else = emit(c, (Instr){.code = I_JUMP_UNLESS, .a = cond}), to_end = 0;
    for (int side = 0; side < 2 && side < op->nregion; side++) {
        if (!compile_region(c, op->region[side]) ||
            !move_yield(c, op->region[side], op->nres, out, NULL))
            return false;
        if (side == 0) {
            to_end = emit(c, (Instr){.code = I_JUMP});
            c->code.data[to_else].dst = c->code.len;
        }
    }
    c->code.data[to_end].dst = c->code.len;
    emit(c, (Instr){.code = I_RESET, .a = mark});
    return true;
}

typedef struct ForLevel {
    uint32_t var, lo, hi, step, head;
} ForLevel;

// for, while: loops around the body, the first binder outermost; `stop` leaves all of them.
static bool compile_loop(Compile *c, const Op *op) {
    enum { LEVELS_MAX = 16 };
    ForLevel level[LEVELS_MAX];
    const Region *body = op->region[0];
    if (op->nbinders > LEVELS_MAX)
        return fail(c, "a loop has too many binders", "");
    uint32_t *carry = ARENA_ARRAY(c->arena, uint32_t, op->ncarry);
    for (int i = 0; i < op->ncarry; i++) {
        carry[i] = slot_define(c, op_carry_arg(op, i));
        if (!emit_move(c, carry[i], op_carry_init(op, i)))
            return false;
    }
    uint32_t mark = slot_new(c), stop = UINT32_MAX;
    emit(c, (Instr){.code = I_MARK, .dst = mark});
    uint32_t one = slot_const(c, 1);
    for (int i = 0; i < op->nbinders; i++) {
        const Binder *b = &op->binder[i];
        ForLevel *l = &level[i];
        if (b->axis)
            return fail(c, "a loop of the plan walks an axis:", b->axis->name);
        l->step = one;
        if (!slot_get(c, op->in[b->first], &l->lo) || !slot_get(c, op->in[b->first + 1], &l->hi) ||
            (b->has_step && !slot_get(c, op->in[b->first + 2], &l->step)))
            return false;
        l->var = slot_define(c, b->var);
        emit(c, (Instr){.code = I_MOVE, .dst = l->var, .a = l->lo});
        l->head = emit(c, (Instr){.code = I_FOR, .a = l->var, .b = l->hi, .c = l->step});
    }
    uint32_t again = c->code.len;
    int launches = c->launches;
    if (!compile_region(c, body) || !move_yield(c, body, op->ncarry, carry, &stop))
        return false;
    c->several |= c->launches > launches;
    emit(c, (Instr){.code = I_RESET, .a = mark});
    uint32_t leave = 0;
    if (stop != UINT32_MAX) {
        emit(c, (Instr){.code = I_JUMP_UNLESS, .a = stop, .dst = c->code.len + 2});
        leave = emit(c, (Instr){.code = I_JUMP});
    } else if (op->nbinders == 0) {
        return fail(c, "a loop without an end", "");
    }
    for (int i = op->nbinders - 1; i >= 0; i--) {
        const ForLevel *l = &level[i];
        emit(c, (Instr){.code = I_STEP, .dst = l->var, .b = l->hi, .c = l->step});
        emit(c, (Instr){.code = I_JUMP, .dst = l->head});
        c->code.data[l->head].dst = c->code.len; // past this level: the next step of the outer one
    }
    if (op->nbinders == 0)
        emit(c, (Instr){.code = I_JUMP, .dst = again});
    if (leave)
        c->code.data[leave].dst = c->code.len;
    for (int i = 0; i < op->nres; i++)
        emit(c, (Instr){.code = I_MOVE, .dst = slot_define(c, op->res[i]), .a = carry[i]});
    return true;
}

static bool compile_op(Compile *c, const Op *op) {
    bool launches = c->form == PLAN_LAUNCHES;
    switch ((int)op->kind) {
    case OP_REQUIRE:
    case OP_WHEN:
        return compile_condition(c, op);
    case OP_PRESENT:
    case OP_EXTENT:
    case OP_STRIDE:
        return compile_memory_fact(c, op);
    case OP_SMS:
        return compile_sms(c, op);
    case OP_AXIS:
    case OP_YIELD: // its region's owner moves the values
        return true;
    case OP_TEMP:
        return !launches || compile_temp(c, op);
    case OP_LAUNCH:
        return !launches || compile_launch(c, op);
    case OP_IF:
        return !launches || compile_if(c, op);
    case OP_FOR:
    case OP_WHILE:
        return !launches || compile_loop(c, op);
    }
    if (is_scalar_op(op))
        return compile_scalar(c, op);
    return !launches || fail(c, "an op that a plan cannot have:", op_info(op->kind)->text);
}

static bool compile_region(Compile *c, const Region *r) {
    for (const Op *op = r->first; op; op = op->next)
        if (!compile_op(c, op) && c->form == PLAN_LAUNCHES)
            return c->error ? false : fail(c, "cannot be compiled", "");
    return true;
}

// --- parameters ---

static void compile_params(Compile *c, Program *out) {
    const Kernel *k = c->kernel;
    SlotOf *dims = ARENA_ARRAY(c->arena, SlotOf, k->nparam);
    SlotOf *scalars = ARENA_ARRAY(c->arena, SlotOf, k->nparam);
    Guard *guards = ARENA_ARRAY(c->arena, Guard, k->nparam);
    uint16_t at = 0, dim = 0;
    for (int i = 0; i < k->nparam; i++) {
        const Param *p = &k->param[i];
        switch (p->kind) {
        case PARAM_DIM:
            if (!value_is_const(p->value))
                dims[out->ndim_slot++] = (SlotOf){dim, slot_define(c, p->value)};
            dim++;
            break;
        case PARAM_SCALAR:
            scalars[out->nscalar_slot++] = (SlotOf){at++, slot_define(c, p->value)};
            break;
        case PARAM_TENSOR: {
            const Mem *m = p->mem;
            c->tensor[m->id] = (uint16_t)(at + 1);
            if (m->align || m->inner >= 0 || m->sdiv > 1 || m->fits32 || m->absent)
                guards[out->nguard++] =
                    (Guard){at, m->align, m->sdiv, m->inner, m->fits32, m->absent};
            at++;
            break;
        }
        }
    }
    out->dim_slot = dims;
    out->scalar_slot = scalars;
    out->guard = guards;
}

bool plan_program(const ProgramInit *init, Program *out, const char **error) {
    const Kernel *k = init->kernel;
    Compile c = {.arena = init->arena, .instance = init->instance, .kernel = k, .form = init->form};
    c.slot_of = ARENA_ARRAY(c.arena, uint32_t, (size_t)k->nvalue + 1);
    c.tensor = ARENA_ARRAY(c.arena, uint16_t, (size_t)k->nmem + 1);
    *out = (Program){.name = k->name};
    compile_params(&c, out);
    compile_region(&c, k->body);
    *error = c.error;
    out->ninstr = c.code.len;
    out->instr = c.code.data;
    out->nslot = c.initial.len;
    out->initial = c.initial.data;
    out->temp_dim = c.temp_dim.data;
    out->ntemp = (uint16_t)c.temp_dtype.len;
    out->temp_dtype = c.temp_dtype.data;
    out->temp_rank = c.temp_rank.data;
    out->temp_zero = c.temp_zero.data;
    out->launch_words = c.launch_words;
    out->several = c.several || c.launches > 1;
    return c.error == NULL;
}
