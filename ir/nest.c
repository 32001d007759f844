// Facts about nests that several passes ask for.
#include "ir/nest.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

typedef struct NestScan {
    Nest *nest;
    AxisSet bound;
    int votes[64];
    uint16_t voted[64];
    int nvoted;
    bool params, known; // accesses parameters; the contiguous dim of one is known
} NestScan;

// A coordinate that comes from memory: its neighbours lie anywhere.
static bool is_gathered(const Value *v, int depth) {
    if (v->kind != VALUE_OP || v->type.axes.n == 0)
        return false;
    if (v->def->kind == OP_LOAD || depth == 0)
        return v->def->kind == OP_LOAD;
    for (int i = 0; i < v->def->nin; i++)
        if (is_gathered(v->def->in[i], depth - 1))
            return true;
    return false;
}

static void vote(NestScan *s, const Op *op, int m) {
    const Mem *t = op->mem[m].mem;
    int inner = t->inner >= 0 ? t->inner : t->rank - 1;
    if (t->rank == 0 || op->mem[m].nidx != t->rank)
        return;
    const Value *v = op->in[op->mem[m].first + inner];
    // The last axis of a derived coordinate (2*u + i) is as good a guess as any.
    enum { GATHER_DEPTH = 8 };
    if (v->type.axes.n == 0 || is_gathered(v, GATHER_DEPTH))
        return;
    uint16_t id = v->type.axes.id[v->type.axes.n - 1];
    int i = 0;
    while (i < s->nvoted && s->voted[i] != id)
        i++;
    if (i == s->nvoted) {
        if (i == 64)
            return;
        s->voted[s->nvoted++] = id;
    }
    // A matrix counts more than several vectors, what a loop reads more than what is read once.
    bool loops = op->parent->owner && op->parent->owner->kind == OP_FOR;
    s->votes[i] += t->rank * t->rank * (loops ? 2 : 1);
}

static uint32_t combined_words(const Op *op) {
    bool combines = op->kind == OP_SCAN || op_has(op->kind, TRAIT_FUNCTION);
    uint32_t words = op->kind == OP_ARGREDUCE ? 3 : 0; // an element and a position of 64 bits
    for (int i = 0; combines && i < op->nres; i++)
        words += (dtype_bits(op->res[i]->type.dtype) + 31) / 32;
    return words;
}

// An axis with the window of another is bound where that one is.
static void note_like(NestScan *s, const Axis *a) {
    if (a->like && axes_has(s->bound, a->like->id))
        axes_add(&s->bound, a->id);
}

static void nest_scan(void *user, Op *op) {
    NestScan *s = user;
    Nest *n = s->nest;
    for (int i = 0; i < op->nbinders; i++)
        if (op->binder[i].axis)
            axes_add(&s->bound, op->binder[i].axis->id);
    for (int i = 0; i < op->naxes; i++)
        note_like(s, op->axes[i]);
    for (int i = 0; i < op->nin; i++)
        if (op->in[i]->kind == VALUE_IOTA)
            note_like(s, op->in[i]->axis);
    for (int i = 0; i < op->nres; i++)
        axes_union(n->axes, op->res[i]->type.axes, &n->axes);
    for (int i = 0; i < op->nin; i++)
        axes_union(n->axes, op->in[i]->type.axes, &n->axes);
    uint32_t words = combined_words(op);
    n->words = words > n->words ? words : n->words;
    if (op->kind == OP_DOT && n->ndots++ == 0)
        n->dot = op;
    if (op->kind == OP_SORT || op->kind == OP_TOPK)
        for (int i = 0; i < op->naxes; i++)
            axes_add(&n->sorted, op->axes[i]->id);
    if (op->kind != OP_LOAD && op->kind != OP_STORE && op->kind != OP_ATOMIC &&
        op->kind != OP_SCATTER)
        return;
    const Mem *mem = op->mem[0].mem;
    s->params |= mem->kind == MEM_PARAM && mem->rank > 0;
    s->known |= mem->kind == MEM_PARAM && mem->inner >= 0;
    int bytes = (int)(dtype_bits(mem->dtype) + 7) / 8;
    n->elem_bytes = bytes > n->elem_bytes ? bytes : n->elem_bytes;
    vote(s, op, 0);
}

static uint64_t given_times(uint64_t given, uint32_t size) {
    return size == 0 ? given : given > UINT32_MAX ? given : given * size;
}

Nest nest_of(Op *parallel) {
    Nest n = {.op = parallel, .contiguous = -1, .words = 1, .given = 1};
    NestScan s = {.nest = &n};
    for (int i = 0; i < parallel->nbinders; i++)
        if (parallel->binder[i].axis) {
            axes_add(&s.bound, parallel->binder[i].axis->id);
            axes_add(&n.axes, parallel->binder[i].axis->id);
            n.given = given_times(n.given, parallel->binder[i].axis->size);
        }
    ir_walk(parallel->region[0], nest_scan, &s);
    n.whole = axes_minus(n.axes, s.bound);
    int best = 0;
    for (int i = 0; i < s.nvoted; i++) {
        if (s.votes[i] > best) {
            best = s.votes[i];
            n.contiguous = s.voted[i];
        }
    }
    if (n.elem_bytes == 0)
        n.elem_bytes = 4;
    n.strided = s.params && !s.known;
    return n;
}

bool region_has_loop(const Region *r) {
    for (const Op *op = r->first; op; op = op->next) {
        if (op->kind == OP_FOR || op->kind == OP_WHILE)
            return true;
        for (int i = 0; i < op->nregion; i++)
            if (region_has_loop(op->region[i]))
                return true;
    }
    return false;
}

static void window_bind(void *user, Op *op) {
    AxisWindow *w = user;
    for (int i = 0; i < op->nbinders; i++) {
        const Axis *a = op->binder[i].axis;
        if (a && !w[a->id].hi)
            w[a->id] = (AxisWindow){op_binder_lo(op, i), op_binder_hi(op, i), op};
    }
}

AxisWindow *axis_windows(Arena *scratch, const Kernel *k) {
    AxisWindow *w = ARENA_ARRAY(scratch, AxisWindow, (size_t)k->naxis + 1);
    for (int i = 0; i < k->naxis; i++) {
        const Axis *a = k->axis[i];
        if (a->is_dim)
            w[i] = (AxisWindow){NULL, a->extent, NULL};
        else if (a->hi)
            w[i] = (AxisWindow){a->lo, a->hi, NULL};
    }
    ir_walk(k->body, window_bind, w);
    for (int i = 0; i < k->naxis; i++)
        if (k->axis[i]->like)
            w[i] = w[k->axis[i]->like->id];
    return w;
}

static bool region_each_nest(PassCtx *ctx, Kernel *k, Region *r, NestFn fn) {
    for (Op *op = r->first, *next; op; op = next) {
        next = op->next;
        if (op->kind == OP_PARALLEL) {
            if (!fn(ctx, k, op))
                return false;
            continue;
        }
        for (int i = 0; i < op->nregion; i++)
            if (!region_each_nest(ctx, k, op->region[i], fn))
                return false;
    }
    return true;
}

bool each_nest(PassCtx *ctx, Kernel *k, NestFn fn) {
    return region_each_nest(ctx, k, k->body, fn);
}

uint32_t stream_tile(const TargetDesc *target, const Nest *nest, const Axis *axis) {
    enum { ROWS = 8, CPU_VECTORS = 8, THREADS = 128, PER_THREAD = 16, LEAST = 8 };
    bool cpu = target->family == TARGET_CPU;
    uint64_t given = nest->given;
    if (nest->contiguous != axis->id)
        return cpu || nest->words > ROWS || given > THREADS * ROWS ? 1
                                                                   : ROWS / pow2_ceil(nest->words);
    if (cpu)
        return (uint32_t)target->lanes * (given < CPU_VECTORS ? CPU_VECTORS / pow2_ceil(given) : 1);
    uint32_t vec = nest->strided ? 1 : (uint32_t)(target->vec_bytes / nest->elem_bytes);
    uint32_t most =
        pow2_floor(given < THREADS * PER_THREAD / LEAST ? THREADS * PER_THREAD / given : LEAST);
    uint32_t row = THREADS * (vec ? vec : 1);
    return row < most ? row : most;
}

bool axis_const_extent(const Axis *a, int64_t *n) {
    const Value *hi = a->is_dim ? a->extent : a->hi;
    bool lo_const = !a->lo || value_is_const(a->lo);
    if (!hi || !value_is_const(hi) || !lo_const)
        return false;
    *n = hi->u.i - (a->lo ? a->lo->u.i : 0);
    return true;
}

char *tile_name(Arena *arena, const Axis *whole) {
    char *name = arena_strdup(arena, whole->name);
    for (char *p = name; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    return name;
}

// Axes have sizes of 32 bits.
static const uint64_t pow2_most = UINT64_C(1) << 31;

uint32_t pow2_ceil(uint64_t n) {
    uint64_t p = 1;
    while (p < n && p < pow2_most)
        p *= 2;
    return (uint32_t)p;
}

uint32_t pow2_floor(uint64_t n) {
    uint64_t p = 1;
    while (p <= n / 2 && p < pow2_most)
        p *= 2;
    return (uint32_t)p;
}

const ScheduleEntry *schedule_find(const PassCtx *ctx, const Kernel *k, const char *name,
                                   const char *of) {
    Str base = kernel_base_name(k);
    for (int i = 0; i < ctx->options->nschedule; i++) {
        const Schedule *s = &ctx->options->schedule[i];
        if (strcmp(s->kernel, base) != 0)
            continue;
        for (int j = 0; j < s->n; j++) {
            const ScheduleEntry *e = &s->entry[j];
            bool same_of = of ? e->of && strcmp(e->of, of) == 0 : !e->of;
            if (same_of && strcmp(e->name, name) == 0)
                return e;
        }
    }
    return NULL;
}

const ScheduleEntry *schedule_find_axis(const PassCtx *ctx, const Kernel *k, const Axis *axis) {
    for (const Axis *a = axis; a; a = a->of) {
        const ScheduleEntry *e = schedule_find(ctx, k, written_name(ctx->scratch, a->name), NULL);
        if (e)
            return e;
    }
    return NULL;
}

Value *take_of_axis(Builder *b, const Op *take) {
    const Value *v = take->in[0];
    if (v->kind != VALUE_IOTA || take->naxes != 1 || take->axes[0] != v->axis)
        return NULL;
    Value *at = ir_cast(b, DT_INDEX, take->in[1], NULL);
    Value *fill = take->has_else ? take->in[take->nin - 1] : ir_index(b->kernel, 0);
    Value *above = ir_cmp(b, CMP_GE, at, ir_begin(b, v->axis), NULL);
    Value *below = ir_cmp(b, CMP_LT, at, ir_end(b, v->axis), NULL);
    return ir_select(b, ir_binary(b, OP_AND, above, below, NULL), at, fill, NULL);
}

static Value *integer_limit(Kernel *k, DType t, bool highest) {
    int bits = (int)dtype_bits(t);
    if (dtype_is_signed(t))
        return ir_int(k, t, highest ? INT64_MAX >> (64 - bits) : INT64_MIN >> (64 - bits));
    return ir_int(k, t, highest ? (int64_t)(UINT64_MAX >> (64 - bits)) : 0);
}

Value *reduce_identity(Kernel *k, ReduceKind kind, DType t) {
    bool is_float = dtype_is_float(t);
    switch (kind) {
    case RED_SUM:
        return is_float ? ir_float(k, t, 0) : t == DT_BOOL ? ir_bool(k, false) : ir_int(k, t, 0);
    case RED_PROD:
        return is_float ? ir_float(k, t, 1) : ir_int(k, t, 1);
    case RED_MAX:
        return is_float ? ir_float(k, t, -INFINITY) : integer_limit(k, t, false);
    case RED_MIN:
        return is_float ? ir_float(k, t, INFINITY) : integer_limit(k, t, true);
    case RED_ANY:
        return ir_bool(k, false);
    case RED_ALL:
        return ir_bool(k, true);
    case RED_AND:
        return t == DT_BOOL ? ir_bool(k, true) : ir_int(k, t, -1);
    case RED_OR:
    case RED_XOR:
        return t == DT_BOOL ? ir_bool(k, false) : ir_int(k, t, 0);
    case RED_COUNT:
        break;
    }
    return NULL;
}

DotAxes dot_axes(const Op *dot) {
    AxisSet a = dot->in[0]->type.axes, b = dot->in[1]->type.axes;
    DotAxes d = {.along = axes_none()};
    for (int i = 0; i < dot->naxes; i++)
        axes_add(&d.along, dot->axes[i]->id);
    AxisSet both = axes_intersect(a, b);
    d.batch = axes_minus(both, d.along);
    d.rows = axes_minus(axes_minus(a, d.batch), d.along);
    d.cols = axes_minus(axes_minus(b, d.batch), d.along);
    return d;
}

// Of f32 operands only where tf32 was asked for.
static bool is_tf32(const Op *dot) {
    Str precision = op_attr_str(dot, ATTR_precision);
    return precision && strncmp(precision, "tf32", 4) == 0;
}

static bool is_byte(DType t) {
    return t == DT_I8 || t == DT_U8;
}

bool dot_unit(const TargetDesc *target, const Op *dot, uint32_t k, DotUnit *unit) {
    static const struct {
        uint32_t bit;
        DotUnit unit;
    } units[] = {
        {UNIT_M16N8K16_F16, {MMA_M16N8K16, "m16n8k16", 16, 16}},
        {UNIT_M16N8K8_F16, {MMA_M16N8K8, "m16n8k8", 16, 8}},
        {UNIT_M16N8K8_TF32, {MMA_M16N8K8_TF32, "m16n8k8", 16, 8}},
        {UNIT_M16N8K32_I8, {MMA_M16N8K32, "m16n8k32", 16, 32}},
        {UNIT_M16N8K32_F8, {MMA_M16N8K32, "m16n8k32", 16, 32}},
        {UNIT_M8N8K4_F64, {MMA_M8N8K4, "m8n8k4", 8, 4}},
    };
    DType a = dot->in[0]->type.dtype, b = dot->in[1]->type.dtype;
    uint32_t bits = 0;
    if (a == b && (a == DT_F16 || a == DT_BF16))
        bits = UNIT_M16N8K16_F16 | UNIT_M16N8K8_F16;
    else if (a == DT_F32 && b == DT_F32 && is_tf32(dot))
        bits = UNIT_M16N8K8_TF32;
    else if (is_byte(a) && is_byte(b))
        bits = UNIT_M16N8K32_I8;
    else if (dtype_is_fp8(a) && dtype_is_fp8(b))
        bits = UNIT_M16N8K32_F8;
    else if (a == DT_F64 && b == DT_F64)
        bits = UNIT_M8N8K4_F64;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if ((units[i].bit & bits & target->units) && units[i].unit.k <= k) {
            *unit = units[i].unit;
            return true;
        }
    }
    return false;
}

uint64_t tile_elements(const Kernel *k, AxisSet s) {
    uint64_t e = 1;
    for (int i = 0; i < s.n; i++) {
        uint64_t size = k->axis[s.id[i]]->size ? k->axis[s.id[i]]->size : 1;
        e = e > UINT64_MAX / size ? UINT64_MAX : e * size;
    }
    return e;
}

bool op_takes_axis(const Op *op, const Axis *axis) {
    for (int i = 0; i < op->nin; i++)
        if (axes_has(op->in[i]->type.axes, axis->id))
            return true;
    return false;
}

bool op_same_place(const Op *a, const Op *b) {
    if (a->mem[0].nidx != b->mem[0].nidx)
        return false;
    for (int i = 0; i < a->mem[0].nidx; i++)
        if (a->in[a->mem[0].first + i] != b->in[b->mem[0].first + i])
            return false;
    return true;
}
