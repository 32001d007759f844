// Pass variants: one kernel => specialised copies, most special first; the last one is right for
// every argument.
//
// In and out: stage nests. A variant's guards are the tensor attributes that it promises (align,
// inner, sdiv) and `when`s at the head of its body; the runtime takes the first variant whose
// guards hold.
//
//   softmax.f16 => softmax.f16.v0: x {align = 16, inner = 1, sdiv = 8}, when N % 8 == 0, when N <=
//   1024, axis n in 0..%N by 1024
//                  softmax.f16.v1: ... N <= 4096 ...
//                  softmax.f16.v3: no guard; N is streamed
//
// An axis that is sorted is held in every variant; the last one, without guards, requires that it
// fits. Guards come in two kinds: *access* (alignment, the contiguous dim, divisible strides:
// vector width) and *held* (a whole axis of dynamic extent that fits in the registers of a
// program).
#include "ir/fold.h"
#include "ir/nest.h"
#include "ir/remark.h"
#include "ir/stream.h"

#include <string.h>

enum { HELD_MAX = 5, SORTED_MAX = 3 };
// Registers of a multiprocessor, less those for addresses: what a program may hold of its rows.
enum { HELD_WORDS = 44 << 10 };
// Of the tile of a product, at least.
enum { PRODUCT_ROWS = 64 };

typedef struct Plan {
    bool vectors;  // promise aligned, contiguous tensors
    uint32_t held; // bound of dynamic whole axes, 0 = not held
    bool last;     // holds only what is sorted, and requires that it fits
} Plan;

// --- what the kernel has ---

typedef struct Whole {
    AxisSet dynamic, fixed;
    uint32_t words;  // Nest.words, the most of all nests
    uint32_t live;   // live_words along the dynamic whole axes, the most of all nests
    AxisSet columns; // not contiguous in some nest: never held where the extent is dynamic
    AxisSet sorted;  // dynamic and always held
    AxisSet product; // operands of products are along it
} Whole;

// A whole axis of known extent up to this is held in every variant; a longer one is streamed. The
// contiguous axis is spread over the lanes of all warps; another one lies in the registers of a
// thread. One that cannot be streamed is held as far as it goes.
static int64_t held_fixed_max(const TargetDesc *t, bool contiguous, bool must) {
    enum { CPU_MOST = 256, ROW_MOST = 16384, COLUMN_MOST = 64, MUST_MOST = 2048 };
    if (must && (t->family == TARGET_CPU || !contiguous))
        return MUST_MOST;
    if (!contiguous)
        return COLUMN_MOST;
    return t->family == TARGET_CPU ? CPU_MOST : ROW_MOST;
}

// --- an axis that cannot be streamed ---

typedef struct MustHold {
    const Region *body;
    const Axis *axis;
    bool found;
} MustHold;

static void find_must_hold(void *user, Op *op) {
    MustHold *m = user;
    bool along = false, uses = op_takes_axis(op, m->axis);
    for (int i = 0; i < op->naxes; i++)
        along |= op->axes[i] == m->axis;
    bool streams = stream_reduces(op, m->axis) || op->kind == OP_INSIDE || op->kind == OP_AXIS ||
                   (op_is_scan(op) && op->axes[0] == m->axis);
    m->found |= (along && !streams) || (uses && op->parent != m->body);
}

// Something but elementwise work, reductions, scans that begin with it and stores is along it, or
// an inner loop uses it.
static bool must_hold(const Op *par, const Axis *a) {
    MustHold m = {.body = par->region[0], .axis = a};
    ir_walk(par->region[0], find_must_hold, &m);
    return m.found;
}

// Bounds of an axis that is sorted, the last of them the most that a program holds: on a GPU 16
// elements of 1024 threads, on the CPU vectors of one thread that stay in its nearest cache.
static int sorted_bounds(const TargetDesc *t, uint32_t bounds[SORTED_MAX]) {
    static const uint32_t most[SORTED_MAX] = {64, 1024, 16384};
    for (int i = 0; i < SORTED_MAX; i++)
        bounds[i] = most[i];
    return t->family == TARGET_CPU ? 2 : SORTED_MAX;
}

static int64_t sorted_fixed_max(const TargetDesc *t) {
    uint32_t bounds[SORTED_MAX];
    return bounds[sorted_bounds(t, bounds) - 1];
}

// A guard may compare it: it is computed by the kernel's own region.
static bool known_at_launch(const Kernel *k, const Value *v) {
    if (!v || v->kind == VALUE_CONST)
        return true;
    if (v->kind == VALUE_OP)
        return v->def->parent == k->body;
    return v->kind != VALUE_ARG || !v->region;
}

// Axes of products, whose tiles are small; and those that a scan walks behind another axis: each
// row of a tile needs the totals of the rows before it.
static void note_op_axes(void *user, Op *op) {
    Whole *w = user;
    for (int i = 0; i < op->nin && op->kind == OP_DOT; i++)
        axes_union(w->product, op->in[i]->type.axes, &w->product);
    for (int i = 1; i < op->naxes && op_is_scan(op); i++)
        axes_add(&w->columns, op->axes[i]->id);
}

// Words for each element along the axis.
static uint32_t live_along(PassCtx *ctx, const Kernel *k, const Op *par, const Axis *a,
                           AxisSet held) {
    AxisSet along = axes_none();
    (void)axes_add(&along, a->id);
    return live_words(ctx->scratch, k, par->region[0], along, held);
}

static bool nest_whole(PassCtx *ctx, Kernel *k, Op *par) {
    Whole *w = ctx->user; // set by kernel_whole for the time of its walk
    ir_walk(par->region[0], note_op_axes, w);
    Nest n = nest_of(par);
    w->words = n.words > w->words ? n.words : w->words;
    AxisSet dynamic = axes_none();
    for (int i = 0; i < n.whole.n; i++) {
        const Axis *a = k->axis[n.whole.id[i]];
        bool contiguous = n.contiguous == a->id || n.ndots > 0;
        bool sorted = axes_has(n.sorted, a->id);
        int64_t size;
        if (a->like)
            continue; // it has the window of another axis, which has a size of its own
        if (axis_const_extent(a, &size)) {
            bool must = must_hold(par, a);
            bool fits = must || sorted || ctx->target->family == TARGET_CPU || n.ndots > 0 ||
                        size * (int64_t)live_along(ctx, k, par, a, w->fixed) <= HELD_WORDS;
            if (fits && size <= (sorted ? sorted_fixed_max(ctx->target)
                                        : held_fixed_max(ctx->target, contiguous, must)))
                axes_add(&w->fixed, a->id);
        } else {
            bool guarded =
                known_at_launch(k, a->lo) && known_at_launch(k, a->is_dim ? a->extent : a->hi);
            axes_add(&dynamic, a->id);
            axes_add(contiguous && guarded ? &w->dynamic : &w->columns, a->id);
            if (sorted && guarded)
                axes_add(&w->sorted, a->id);
        }
    }
    uint32_t live = live_words(ctx->scratch, k, par->region[0], dynamic, w->fixed);
    if (n.ndots > 0 && axes_intersect(dynamic, w->product).n == 0)
        live = live < HELD_WORDS ? live * PRODUCT_ROWS : live; // the program's tile is a product's
    w->live = dynamic.n > 0 && live > w->live ? live : w->live;
    return true;
}

static Whole kernel_whole(PassCtx *ctx, Kernel *k) {
    Whole w = {0};
    PassCtx walk = *ctx;
    walk.user = &w;
    each_nest(&walk, k, nest_whole);
    w.dynamic = axes_minus(w.dynamic, w.columns);
    axes_union(w.dynamic, w.sorted, &w.dynamic);
    return w;
}

// --- holding an axis ---

static uint32_t held_size(const Axis *a, uint32_t bound) {
    int64_t n;
    if (axis_const_extent(a, &n))
        return pow2_ceil(n > 0 ? (uint64_t)n : 1);
    return bound;
}

// The op of the nest that declares the axis; NULL: it is declared outside.
static Op *axis_declaration(const Region *r, const Axis *a) {
    for (Op *op = r->first; op; op = op->next) {
        if (op->kind == OP_AXIS && op->axes[0] == a)
            return op;
        for (int i = 0; i < op->nregion; i++) {
            Op *nested = axis_declaration(op->region[i], a);
            if (nested)
                return nested;
        }
    }
    return NULL;
}

// In front of the nest's ops, or behind the axis's own declaration: axis n of N in 0..%N by size;
// every use of N inside becomes n.
static void nest_hold(PassCtx *ctx, Kernel *k, Op *par, AxisSet axes, uint32_t bound) {
    Nest n = nest_of(par);
    IrMap map = ir_map_new(ctx->scratch, k);
    Builder b;
    Axis *held[AXES_MAX], *whole[AXES_MAX];
    int nheld = 0;
    Op *first = par->region[0]->first;
    for (int i = 0; i < n.whole.n; i++) {
        Axis *a = k->axis[n.whole.id[i]];
        if (!axes_has(axes, a->id))
            continue;
        Value *lo = a->is_dim || !a->lo ? ir_index(k, 0) : a->lo;
        Op *declared = axis_declaration(par->region[0], a);
        Op *place = declared ? declared->next : first;
        Region *body = declared ? declared->parent : par->region[0];
        b = place ? ir_builder_before(k, place) : ir_builder_at_end(k, body);
        b.span = par->span;
        held[nheld] = ir_axis_window(&b, tile_name(ctx->scratch, a), a, lo,
                                     a->is_dim ? a->extent : a->hi, held_size(a, bound));
        ir_map_axis(&map, a, held[nheld]);
        whole[nheld++] = a;
    }
    ir_substitute(par->region[0], &map);
    for (int i = 0; i < nheld; i++)
        held[i]->of = whole[i]; // the declarations stand in the region as well
}

static void kernel_hold(PassCtx *ctx, Kernel *k, Region *r, AxisSet axes, uint32_t bound) {
    for (Op *op = r->first; op; op = op->next) {
        if (op->kind == OP_PARALLEL)
            nest_hold(ctx, k, op, axes, bound);
        else
            for (int i = 0; i < op->nregion; i++)
                kernel_hold(ctx, k, op->region[i], axes, bound);
    }
}

// --- guards ---

static void add_when(Builder *b, Value *cond) {
    Value *in[1] = {cond};
    ir_build(b, &(OpInit){.kind = OP_WHEN, .nin = 1, .in = in});
}

typedef struct Contiguous {
    int axis;       // of the nest being walked
    uint8_t *along; // by Mem.id: accessed along it
} Contiguous;

static void note_along(void *user, Op *op) {
    Contiguous *c = user;
    for (int i = 0; i < op->nmem; i++) {
        const MemRef *m = &op->mem[i];
        if (m->nidx == 0)
            continue;
        const Value *inner = op->in[m->first + m->nidx - 1];
        if (c->axis >= 0 && axes_has(inner->type.axes, (uint16_t)c->axis))
            c->along[m->mem->id] = 1;
    }
}

static bool nest_along(PassCtx *ctx, Kernel *k, Op *par) {
    Contiguous *c = ctx->user;
    (void)k;
    c->axis = nest_of(par).contiguous;
    ir_walk(par->region[0], note_along, c);
    return true;
}

// Matrices, and vectors along the contiguous axis of some nest: a vector of one value per row is
// not worth a condition on the number of rows.
static uint8_t *worth_vectors(PassCtx *ctx, Kernel *k) {
    Contiguous c = {.along = ARENA_ARRAY(ctx->scratch, uint8_t, (size_t)k->nmem + 1)};
    PassCtx walk = *ctx;
    walk.user = &c;
    each_nest(&walk, k, nest_along);
    for (int i = 0; i < k->nparam; i++)
        if (k->param[i].kind == PARAM_TENSOR && k->param[i].mem->rank > 1)
            c.along[k->param[i].mem->id] = 1;
    return c.along;
}

static void guard_vectors(PassCtx *ctx, Kernel *k, Builder *b) {
    const uint8_t *worth = worth_vectors(ctx, k);
    uint8_t *divides = ARENA_ARRAY(ctx->scratch, uint8_t, (size_t)k->nvalue + 1);
    for (int i = 0; i < k->nparam; i++) {
        Mem *t = k->param[i].kind == PARAM_TENSOR ? k->param[i].mem : NULL;
        if (!t || t->rank == 0 || !worth[t->id])
            continue;
        uint32_t per_vec = 128 / dtype_bits(t->dtype);
        t->align = 16;
        t->inner = (int8_t)(t->rank - 1);
        t->sdiv = per_vec;
        Value *extent = t->dim[t->rank - 1];
        if (divides[extent->id] < per_vec)
            divides[extent->id] = (uint8_t)per_vec;
    }
    for (int i = 0; i < k->nparam; i++) {
        Value *v = k->param[i].kind == PARAM_DIM ? k->param[i].value : NULL;
        if (!v || value_is_const(v) || divides[v->id] < 2)
            continue;
        Value *rem = ir_binary(b, OP_REM, v, ir_index(k, divides[v->id]), NULL);
        add_when(b, ir_cmp(b, CMP_EQ, rem, ir_index(k, 0), NULL));
        divides[v->id] = 0;
    }
}

static const Op *def_in(const Kernel *k, const Value *v) {
    return v && v->kind == VALUE_OP && v->def->parent == k->body ? v->def : NULL;
}

// At the head, or behind the host ops that define the ends of the window.
static Builder guard_place(Kernel *k, const Builder *head, const Value *lo, const Value *hi) {
    const Op *last = def_in(k, hi), *other = def_in(k, lo);
    for (const Op *op = last; other && op; op = op->next)
        if (op == other)
            last = other;
    last = last ? last : other;
    if (!last)
        return *head;
    Op *next = last->next;
    Builder b = next ? ir_builder_before(k, next) : ir_builder_at_end(k, k->body);
    b.span = head->span;
    return b;
}

// That the axis has at most `bound` elements; *b is where the condition stands.
static Value *fits_bound(Kernel *k, const Builder *head, const Axis *a, uint32_t bound,
                         Builder *b) {
    Value *extent = a->is_dim ? a->extent : a->hi;
    *b = guard_place(k, head, a->is_dim ? NULL : a->lo, extent);
    if (a->lo && !value_is_int(a->lo, 0))
        extent = ir_binary(b, OP_SUB, a->hi, a->lo, NULL);
    return ir_cmp(b, CMP_LE, extent, ir_index(k, bound), NULL);
}

static void guard_held(Kernel *k, const Builder *head, AxisSet axes, uint32_t bound) {
    for (int i = 0; i < axes.n; i++) {
        Builder b;
        Value *fits = fits_bound(k, head, k->axis[axes.id[i]], bound, &b);
        add_when(&b, fits);
    }
}

// Held bounds by target: what the registers of a program hold (GPU), the first of them for a
// product whatever it takes; a few vectors (CPU, where streaming is as good). What a fold or scan
// combines takes as many registers more.
static int held_bounds(const TargetDesc *t, uint32_t words, uint32_t live, bool product,
                       uint32_t bounds[HELD_MAX]) {
    if (t->family == TARGET_CPU)
        return 0;
    static const uint32_t rows[HELD_MAX] = {256, 1024, 4096, 8192, 16384};
    int n = 0;
    while (n < (product ? 1 : HELD_MAX) &&
           (product || (rows[n] * pow2_ceil(words) <= rows[HELD_MAX - 1] &&
                        (uint64_t)rows[n] * live <= HELD_WORDS))) {
        bounds[n] = rows[n];
        n++;
    }
    return n;
}

// The last variant of a kernel that sorts: a launch with more elements fails and says why.
static void require_sorted(PassCtx *ctx, Kernel *k, const Builder *head, AxisSet axes,
                           uint32_t bound) {
    for (int i = 0; i < axes.n; i++) {
        const Axis *a = k->axis[axes.id[i]];
        Builder b;
        Value *fits = fits_bound(k, head, a, bound, &b);
        ir_require(&b, fits,
                   arena_printf(ctx->scratch, "%s is sorted: it has at most %u elements on %s",
                                a->name, (unsigned)bound, ctx->target->name));
    }
}

static void variant_specialise(PassCtx *ctx, Kernel *k, const Plan *plan) {
    Whole w = kernel_whole(ctx, k);
    Builder b =
        k->body->first ? ir_builder_before(k, k->body->first) : ir_builder_at_end(k, k->body);
    b.span = k->span;
    if (plan->vectors)
        guard_vectors(ctx, k, &b);
    AxisSet held = w.fixed;
    if (plan->last) {
        require_sorted(ctx, k, &b, w.sorted, plan->held);
        axes_union(held, w.sorted, &held);
    } else if (plan->held) {
        guard_held(k, &b, w.dynamic, plan->held);
        axes_union(held, w.dynamic, &held);
    }
    if (held.n > 0)
        kernel_hold(ctx, k, k->body, held, plan->held);
}

static void insert_kernel(Module *m, int at, Kernel *k) {
    // ir_clone_kernel has appended it.
    for (int i = m->nkernel - 1; i > at; i--)
        m->kernel[i] = m->kernel[i - 1];
    m->kernel[at] = k;
}

// What the variant asks of its arguments.
static void remark_variant(PassCtx *ctx, const Kernel *v, const Plan *plan, const Whole *w) {
    if (!ctx->options->explain)
        return;
    const char *what =
        plan->vectors ? "aligned, contiguous tensors, rows of whole vectors" : "any argument";
    const char *axes = remark_axes(ctx, v, w->dynamic);
    const char *held = "";
    if (*axes && plan->held)
        held = arena_printf(ctx->scratch, "; holds %s up to %u", axes, (unsigned)plan->held);
    else if (*axes)
        held = arena_printf(ctx->scratch, "; streams %s", axes);
    remark(ctx, DIAG_VARIANT, v->span, "%s: %s%s", v->name, what, held);
}

// Most special first. What is sorted has to be held whatever the tensors are like, so each bound
// comes with and without the promise of vectors.
static int variant_plans(const TargetDesc *t, const Whole *w, Plan *plans) {
    uint32_t bounds[HELD_MAX];
    int n = 0;
    if (w->sorted.n > 0) {
        int nheld = sorted_bounds(t, bounds);
        for (int i = 0; i < nheld; i++) {
            plans[n++] = (Plan){.vectors = true, .held = bounds[i]};
            plans[n++] = (Plan){.held = bounds[i]};
        }
        plans[n - 1].last = true;
        return n;
    }
    bool product = axes_intersect(w->dynamic, w->product).n > 0;
    int nheld = w->dynamic.n > 0 ? held_bounds(t, w->words, w->live, product, bounds) : 0;
    for (int i = 0; i < nheld; i++)
        plans[n++] = (Plan){.vectors = true, .held = bounds[i]};
    plans[n++] = (Plan){.vectors = true};
    plans[n++] = (Plan){0};
    return n;
}

bool pass_variants(PassCtx *ctx, Kernel *k) {
    if (k->variant_of)
        return true;
    Module *m = ctx->module;
    int at = 0;
    while (m->kernel[at] != k)
        at++;
    Whole w = kernel_whole(ctx, k);
    Plan plans[2 * (HELD_MAX + 1)];
    int n = variant_plans(ctx->target, &w, plans);
    Str base = k->name;
    for (int i = 0; i < n; i++) {
        const char *name = arena_printf(ctx->scratch, "%s.v%d", base, i);
        bool last = i == n - 1;
        Kernel *v = last ? k : ir_clone_kernel(m, k, name);
        if (last)
            k->name = intern_cstr(m->interner, name);
        else
            insert_kernel(m, at++, v);
        v->variant_of = k;
        remark_variant(ctx, v, &plans[i], &w);
        variant_specialise(ctx, v, &plans[i]);
    }
    return true;
}
