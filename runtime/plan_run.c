// The interpreter of launch programs.
//
// Integer arithmetic has the meaning of the evaluator (ir/eval.h): it wraps, and dividing by 0
// gives 0.
#include "runtime/plan_run.h"

#include <inttypes.h>
#include <string.h>

#include "ir/eval.h"
#include "runtime/error.h"

enum { WORKSPACE_ALIGN = 256 };

// --- guards ---

static bool fits32(const TensorBind *t, int rank, uint32_t bits) {
    __int128 reach = 1;
    for (int d = 0; d < rank; d++) {
        int64_t s = t->stride[d];
        reach += (__int128)(t->shape[d] - 1) * (s < 0 ? -(__int128)s : s);
    }
    return reach * bits <= ((__int128)1 << 31) * 8;
}

static bool guard_holds(const Guard *g, const TensorBind *t, int rank, uint32_t bits) {
    if (g->absent)
        return !t->present;
    if (!t->present || t->count == 0)
        return true;
    if (g->align > 1 && (uintptr_t)t->data % g->align != 0)
        return false;
    if (g->inner >= 0 && t->shape[g->inner] > 1 && t->stride[g->inner] != 1)
        return false;
    for (int d = 0; g->sdiv > 1 && d < rank; d++)
        if (d != g->inner && t->shape[d] > 1 && t->stride[d] % (int64_t)g->sdiv != 0)
            return false;
    return !g->fits32 || fits32(t, rank, bits);
}

bool run_guards_hold(const Program *p, const Frame *f) {
    for (uint32_t i = 0; i < p->nguard; i++) {
        const Guard *g = &p->guard[i];
        const PlanParam *param = &f->instance->param[g->tensor];
        if (!guard_holds(g, &f->tensor[g->tensor], param->shown.rank, param->bits))
            return false;
    }
    return true;
}

// --- arithmetic ---

static int64_t wrap(uint64_t x) {
    return (int64_t)x;
}

static int64_t divide(int64_t a, int64_t b) {
    return b == 0 ? 0 : b == -1 ? wrap(0 - (uint64_t)a) : a / b;
}

static int64_t remainder_of(int64_t a, int64_t b) {
    return b == 0 || b == -1 ? 0 : a % b;
}

static int64_t divide_up(int64_t a, int64_t b) {
    if (b == 0)
        return 0;
    int64_t q = divide(a, b), r = remainder_of(a, b);
    return q + (r != 0 && (r < 0) == (b < 0));
}

static FuseRtStatus run_op(Run *run, const Instr *i) {
    const Op *op = i->op;
    const uint32_t at[3] = {i->a, i->b, i->c};
    Reg *slot = run->frame->slot;
    Scalar in[3], out;
    for (int k = 0; k < op->nin; k++) {
        DType t = op->in[k]->type.dtype;
        in[k] = (Scalar){.dtype = t};
        if (dtype_is_float(t))
            in[k].u.f = slot[at[k]].f;
        else
            in[k].u.i = slot[at[k]].i;
    }
    if (!eval_scalar_op(op, in, &out))
        return rt_fail(FUSE_RT_INTERNAL, "%s: the plan's op `%s` is not defined on its type",
                       run->program->name, op_info(op->kind)->text);
    if (dtype_is_float(out.dtype))
        slot[i->dst].f = out.u.f;
    else
        slot[i->dst].i = out.u.i;
    return FUSE_RT_OK;
}

// --- conditions ---

static FuseRtStatus check_dim(const Run *run, const Instr *i) {
    const TensorBind *t = &run->frame->tensor[i->tensor];
    int64_t want = run->frame->slot[i->a].i;
    if (!t->present || t->shape[i->b] == want)
        return FUSE_RT_OK;
    const Instance *k = run->frame->instance;
    return rt_fail(FUSE_RT_INVALID_ARGUMENT,
                   "%s: argument `%s`: dim %d is %" PRId64 ", %" PRId64 " is expected", k->name,
                   k->param[i->tensor].shown.name, (int)i->b, t->shape[i->b], want);
}

static FuseRtStatus require_failed(const Run *run, const Op *op) {
    const char *text = op_attr_str(op, ATTR_msg);
    return rt_fail(FUSE_RT_INVALID_ARGUMENT, "%s: the arguments do not meet the condition `%s`",
                   run->frame->instance->name, text ? text : "?");
}

// --- temporaries ---

static FuseRtStatus place_temp(Run *run, const Instr *i) {
    const Program *p = run->program;
    const Frame *f = run->frame;
    int number = i->tensor - f->instance->nparam;
    int rank = p->temp_rank[number];
    TensorBind *t = &f->tensor[i->tensor];
    int64_t count = 1, bytes;
    bool too_big = false;
    for (int d = rank - 1; d >= 0; d--) {
        int64_t n = f->slot[p->temp_dim[i->a + (uint32_t)d]].i;
        t->shape[d] = n > 0 ? n : 0;
        t->stride[d] = count;
        too_big |= __builtin_mul_overflow(count, t->shape[d], &count);
    }
    too_big |= __builtin_mul_overflow(count, (int64_t)dtype_bits(p->temp_dtype[number]), &bytes);
    bytes = bytes / 8 + (bytes % 8 != 0);
    if (too_big || bytes > INT64_MAX / 4 - run->used)
        return rt_fail(FUSE_RT_OUT_OF_MEMORY, "%s: a temporary has more than 2^60 bytes",
                       f->instance->name);
    t->count = count;
    t->present = true;
    t->data = run->workspace ? run->workspace + run->used : NULL;
    run->used += (bytes + WORKSPACE_ALIGN - 1) / WORKSPACE_ALIGN * WORKSPACE_ALIGN;
    if (run->used > run->peak)
        run->peak = run->used;
    if (!run->target || !p->temp_zero[number] || bytes == 0)
        return FUSE_RT_OK;
    return run->target->zero(run->target->user, t->data, bytes);
}

// --- launches ---

static uint64_t float_bits(DType dtype, double x) {
    if (dtype == DT_F32) {
        float f = (float)x;
        uint32_t u;
        memcpy(&u, &f, sizeof u);
        return u;
    }
    return scalar_bits((Scalar){.dtype = dtype, .u.f = x});
}

// Of an empty tensor nothing is copied: its map is not looked at.
static FuseRtStatus make_map(const Run *run, const LaunchPlan *l, const LaunchParam *p, void *out) {
    const RunTarget *target = run->target;
    const TensorBind *t = &run->frame->tensor[p->tensor];
    memset(out, 0, ABI_MAP_BYTES);
    if (t->count == 0 || !t->present)
        return FUSE_RT_OK;
    if (!target->map)
        return rt_fail(FUSE_RT_UNSUPPORTED, "launch %s: tensor maps are for GPUs", l->entry);
    return target->map(target->user, p, t, out);
}

static FuseRtStatus start_launch(Run *run, LaunchPlan *l) {
    const Frame *f = run->frame;
    FuseRtStatus status;
    int64_t grid;
    if (__builtin_sub_overflow(f->slot[l->hi].i, f->slot[l->lo].i, &grid) || grid > INT32_MAX)
        return rt_fail(FUSE_RT_UNSUPPORTED,
                       "%s: launch %s would need %" PRId64 " programs; the most is 2147483647",
                       f->instance->name, l->entry, grid);
    if (grid <= 0)
        return FUSE_RT_OK;
    run->launches++;
    if (!run->target)
        return FUSE_RT_OK;
    uint32_t word = 0;
    for (uint32_t i = 0; i < l->nparam; i++) {
        const LaunchParam *p = &l->param[i];
        uint64_t *value = &f->value[word++];
        f->pointer[i] = value;
        switch (p->kind) {
        case ABI_MAP:
            word += ABI_MAP_BYTES / 8 - 1;
            status = make_map(run, l, p, value);
            if (status != FUSE_RT_OK)
                return status;
            break;
        case ABI_POINTER:
            *value = (uint64_t)(uintptr_t)f->tensor[p->tensor].data;
            break;
        case ABI_STRIDE:
            *value = (uint64_t)f->tensor[p->tensor].stride[p->dim];
            break;
        case ABI_SCALAR:
            *value = dtype_is_float(p->dtype) ? float_bits(p->dtype, f->slot[p->slot].f)
                                              : (uint64_t)f->slot[p->slot].i;
            break;
        }
    }
    return run->target->start(run->target->user, l, grid, f->pointer);
}

static FuseRtStatus check_grid(const Run *run, const Op *op, int64_t a, int64_t b) {
    int64_t n;
    bool wrong = op->kind == OP_ADD   ? __builtin_add_overflow(a, b, &n)
                 : op->kind == OP_SUB ? __builtin_sub_overflow(a, b, &n)
                                      : __builtin_mul_overflow(a, b, &n) || n > INT64_C(1) << 62;
    if (!wrong)
        return FUSE_RT_OK;
    return rt_fail(FUSE_RT_UNSUPPORTED,
                   "%s: the number of programs of a launch leaves 64 bits; the most is 2147483647",
                   run->frame->instance->name);
}

static FuseRtStatus count_resident(Run *run, const Instr *i) {
    const RunTarget *target = run->target;
    int each = 1;
    FuseRtStatus status = FUSE_RT_OK;
    if (i->launch && target && target->resident)
        status = target->resident(target->user, i->launch, &each);
    run->frame->slot[i->dst].i = (int64_t)run->sms * each;
    return status;
}

// --- the program ---

static void load_slots(const Run *run) {
    const Program *p = run->program;
    const Frame *f = run->frame;
    if (p->nslot > 0)
        memcpy(f->slot, p->initial, p->nslot * sizeof *f->slot);
    for (uint32_t i = 0; i < p->ndim_slot; i++)
        f->slot[p->dim_slot[i].slot].i = f->dim[p->dim_slot[i].index];
    for (uint32_t i = 0; i < p->nscalar_slot; i++)
        f->slot[p->scalar_slot[i].slot] = f->scalar[p->scalar_slot[i].index];
}

// clang-format off
RunResult run_program(Run *run) {
    const Program *p = run->program;
    Reg *s = run->frame->slot;
    TensorBind *tensor = run->frame->tensor;
    run->used = run->peak = 0;
    run->launches = 0;
    run->status = FUSE_RT_OK;
    load_slots(run);
    for (uint32_t at = 0; at < p->ninstr && run->status == FUSE_RT_OK;) {
        const Instr *i = &p->instr[at++];
        // Not every operand is a slot.
        int64_t a = s[i->a < p->nslot ? i->a : 0].i, b = s[i->b < p->nslot ? i->b : 0].i;
        switch (i->code) {
        case I_MOVE: s[i->dst] = s[i->a]; break;
        case I_ADD: s[i->dst].i = wrap((uint64_t)a + (uint64_t)b); break;
        case I_SUB: s[i->dst].i = wrap((uint64_t)a - (uint64_t)b); break;
        case I_MUL: s[i->dst].i = wrap((uint64_t)a * (uint64_t)b); break;
        case I_DIV: s[i->dst].i = divide(a, b); break;
        case I_REM: s[i->dst].i = remainder_of(a, b); break;
        case I_CDIV: s[i->dst].i = divide_up(a, b); break;
        case I_MIN: s[i->dst].i = a < b ? a : b; break;
        case I_MAX: s[i->dst].i = a > b ? a : b; break;
        case I_AND: s[i->dst].i = a & b; break;
        case I_OR: s[i->dst].i = a | b; break;
        case I_EQ: s[i->dst].i = a == b; break;
        case I_NE: s[i->dst].i = a != b; break;
        case I_LT: s[i->dst].i = a < b; break;
        case I_LE: s[i->dst].i = a <= b; break;
        case I_GT: s[i->dst].i = a > b; break;
        case I_GE: s[i->dst].i = a >= b; break;
        case I_NOT: s[i->dst].i = !a; break;
        case I_SELECT: s[i->dst] = s[a ? i->b : i->c]; break;
        case I_OP: run->status = run_op(run, i); break;
        case I_PRESENT: s[i->dst].i = tensor[i->tensor].present; break;
        case I_EXTENT: s[i->dst].i = tensor[i->tensor].shape[i->b]; break;
        case I_STRIDE: s[i->dst].i = tensor[i->tensor].stride[i->b]; break;
        case I_SMS: run->status = count_resident(run, i); break;
        case I_CHECK: run->status = check_dim(run, i); break;
        case I_REQUIRE:
            if (!a)
                run->status = require_failed(run, i->op);
            break;
        case I_WHEN:
            if (!a)
                return RUN_NO_FIT;
            break;
        case I_JUMP: at = i->dst; break;
        case I_JUMP_UNLESS: at = a ? at : i->dst; break;
        case I_FOR:
            if (s[i->c].i > 0 ? a >= b : s[i->c].i == 0 || a <= b)
                at = i->dst;
            break;
        case I_STEP:
            if (__builtin_add_overflow(s[i->dst].i, s[i->c].i, &s[i->dst].i))
                s[i->dst].i = b;
            break;
        case I_MARK: s[i->dst].i = run->used; break;
        case I_RESET: run->used = a; break;
        case I_TEMP: run->status = place_temp(run, i); break;
        case I_GRID: run->status = check_grid(run, i->op, a, b); break;
        case I_LAUNCH: run->status = start_launch(run, i->launch); break;
        }
    }
    return run->status == FUSE_RT_OK ? RUN_DONE : RUN_FAILED;
}
// clang-format on
