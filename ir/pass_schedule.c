// Pass schedule: axes without a size => tile sizes of the target; warps of each nest.
//
// In:  stage nests (after variants). Out: stage scheduled; every axis that a nest binds has a size,
// whole axes that are not held
//      keep size 0 until pass stream turns them into loops over tiles of the size noted here.
// Sizes come from, in order: the source (tiles(K, 128), a schedule clause), the target's heuristics
// below.
//
// Heuristics. Products: tiles of 128 x 128 x 32 on the matrix unit, 64 x 64 x 16 without one; on
// the CPU two vectors of columns by as many rows as fill half of the registers. Everything else: a
// program handles about 128 threads x 4 vectors, along the contiguous axis first; a held row takes
// as many warps as leave each thread 8 to 32 elements.
#include "ir/nest.h"
#include "ir/remark.h"
#include "ir/schedule.h"

#include <string.h>

enum {
    VECTORS_PER_THREAD = 4,
    ELEMENTWISE_THREADS = 128,
    ROW_ELEMENTS_PER_THREAD = 16,
    CPU_TILE_VECTORS = 8,
    ROW_WARPS = 4
};
// Accumulators of a product that a thread holds at most. Half of a thread's registers: fewer would
// make the warps' tiles smaller, and then shared memory, read once per warp, cannot feed the matrix
// unit.
enum { ACCUMULATORS_PER_THREAD = 128, PRODUCT_WARPS_MAX = 8 };
// The extent of the axis whose tiles `a` walks, where it is a constant; else 0.
static uint64_t known_extent(const Axis *a) {
    int64_t n;
    return a->of && axis_const_extent(a->of, &n) && n > 0 ? (uint64_t)n : 0;
}

static uint32_t clamp_size(const Axis *a, uint32_t size) {
    uint64_t n = known_extent(a);
    return n > 0 && pow2_ceil(n) < size ? pow2_ceil(n) : size;
}

// A size that the source or a schedule clause gave wins over `size`. On the CPU a tile is unrolled
// into vectors: a clause, most often written for a GPU, may make it smaller there, not larger, and
// by a power of two. An axis that nothing binds has one tile, all of it: its size is pass variants'
// or pass stream's. One with the window of another has its size.
static void axis_set_size_at_least(PassCtx *ctx, Kernel *k, Axis *a, uint32_t size,
                                   uint32_t least) {
    if (a->like) {
        axis_set_size_at_least(ctx, k, a->like, size, least);
        a->size = a->like->size;
        return;
    }
    if (a->size != 0 || a->is_dim || a->hi)
        return;
    const ScheduleEntry *e = schedule_find_axis(ctx, k, a);
    bool cpu = ctx->target->family == TARGET_CPU;
    uint32_t given = !e || e->value <= 0 ? 0
                     : cpu               ? pow2_floor((uint64_t)e->value)
                                         : (uint32_t)e->value;
    bool taken = given > 0 && (!cpu || given < size);
    uint32_t fits = clamp_size(a, size);
    a->size = taken ? given : fits < least ? least : fits;
}

static void axis_set_size(PassCtx *ctx, Kernel *k, Axis *a, uint32_t size) {
    axis_set_size_at_least(ctx, k, a, size, 1);
}

static int clamp_warps(const PassCtx *ctx, int64_t warps) {
    int n = (int)pow2_floor(warps > 0 ? (uint64_t)warps : 1);
    return n > ctx->target->max_warps ? ctx->target->max_warps : n;
}

// The first alternative of the clause that leaves each thread at most `budget` of the tile's
// registers; without a clause `dflt`, doubled until it does.
static int nest_warps(PassCtx *ctx, Kernel *k, int dflt, uint64_t registers, uint64_t budget) {
    const ScheduleEntry *e = schedule_find(ctx, k, "warps", NULL);
    uint64_t lanes = (uint64_t)ctx->target->lanes;
    if (!e || e->value <= 0) {
        int warps = dflt;
        while (registers / (lanes * (uint64_t)warps) > budget && warps < PRODUCT_WARPS_MAX)
            warps *= 2;
        return clamp_warps(ctx, warps);
    }
    for (int i = 0; i < e->nalt; i++)
        if (e->alt[i] > 0 && registers / (lanes * (uint64_t)e->alt[i]) <= budget)
            return clamp_warps(ctx, e->alt[i]);
    return clamp_warps(ctx, e->nalt ? e->alt[e->nalt - 1] : e->value);
}

// --- products ---

typedef struct DotSizes {
    uint32_t rows, cols, along;
    int warps;
} DotSizes;

// This variant promises aligned, contiguous tensors.
static bool kernel_has_vectors(const Kernel *k) {
    for (int i = 0; i < k->nparam; i++)
        if (k->param[i].kind == PARAM_TENSOR && k->param[i].mem->inner >= 0)
            return true;
    return false;
}

// The variant for any stride computes an address per element: half the tile keeps its code small.
// Several products in a nest hold several accumulators: narrower tiles.
static DotSizes dot_sizes(const TargetDesc *t, const Kernel *k, const Op *dot, int ndots) {
    if (t->family == TARGET_CPU)
        return (DotSizes){.rows = ndots > 1 ? 4 : (uint32_t)t->max_regs / 4,
                          .cols = 2 * (uint32_t)t->lanes,
                          .along = 1,
                          .warps = 1};
    DotUnit unit;
    uint32_t side = ndots > 1 ? 32 : 64, fma_side = ndots > 2 ? 16 : side;
    DotSizes s = {.rows = fma_side, .cols = fma_side, .along = 16, .warps = 4};
    if (!dot_unit(t, dot, ANY_K, &unit) || dot->in[0]->type.dtype == DT_F64)
        return s;
    unsigned bits = dtype_bits(dot->in[0]->type.dtype);
    if (kernel_has_vectors(k))
        return (DotSizes){.rows = 128, .cols = 2 * side, .along = bits == 8 ? 64 : 32, .warps = 4};
    s.rows = s.cols = side;
    s.along = bits == 8 ? 64 : bits == 16 ? 32 : 16;
    return s;
}

// Of a short contraction or a few rows and columns the tile is still a whole matrix instruction:
// what is outside the tensors is zero.
static DotSizes dot_least(const TargetDesc *t, const Op *dot) {
    DotUnit unit;
    DotSizes none = {.rows = 1, .cols = 1, .along = 1};
    if (dot->in[0]->type.axes.n == 0 || !dot_unit(t, dot, ANY_K, &unit))
        return none;
    uint32_t k = unit.unit == MMA_M16N8K16 ? 8 : unit.k; // there is one of half its k
    return (DotSizes){.rows = 8, .cols = 8, .along = k};
}

// Axes that are held, or have a size of their own, count first; what is left of `size` gets axis
// `main`, or the last one without a size where main is none of them; the others get 1.
static void axes_set_size(PassCtx *ctx, Kernel *k, AxisSet s, uint32_t size, uint32_t least,
                          int main) {
    int last = -1;
    bool has_main = false;
    for (int i = 0; i < s.n; i++) {
        const Axis *a = k->axis[s.id[i]];
        if (a->size == 0 && !a->is_dim && !a->hi) {
            last = i;
            has_main |= a->id == main;
        } else if (a->size > 0) {
            size = size > a->size ? size / a->size : 1;
            least = least > a->size ? least / a->size : 1;
        }
    }
    for (int i = 0; i < s.n; i++) {
        Axis *a = k->axis[s.id[i]];
        bool takes = has_main ? a->id == main : i == last;
        axis_set_size_at_least(ctx, k, a, takes ? size : 1, takes ? least : 1);
    }
}

// The axis along which an operand is contiguous in memory; NULL: it is no load, or its index there
// is computed.
static const Axis *contiguous_axis(const Value *v) {
    while (v->kind == VALUE_OP && v->def->kind == OP_CAST)
        v = v->def->in[0];
    if (v->kind != VALUE_OP || v->def->kind != OP_LOAD || v->def->mem[0].nidx == 0)
        return NULL;
    const Mem *t = v->def->mem[0].mem;
    const Value *inner =
        v->def->in[v->def->mem[0].first + (t->inner >= 0 ? t->inner : t->rank - 1)];
    return inner->kind == VALUE_IOTA ? inner->axis : NULL;
}

// The one of `among` along which an operand is contiguous, -1 = none: with it whole rows are
// copied.
static int contiguous_of(const Op *dot, AxisSet among) {
    for (int i = 0; i < 2; i++) {
        const Axis *a = contiguous_axis(dot->in[i]);
        if (a && axes_has(among, a->id))
            return a->id;
    }
    return -1;
}

typedef struct DotPass {
    PassCtx *ctx;
    Kernel *k;
    int ndots;             // in the nest
    uint64_t accumulators; // elements of all results, and of operands that are gathered
} DotPass;

static void note_unit(PassCtx *ctx, const Kernel *k, const Op *dot) {
    DotUnit unit;
    if (ctx->target->units == 0 || dot_unit(ctx->target, dot, ANY_K, &unit))
        return;
    DType type = dot->in[0]->type.dtype;
    perf_note(ctx, k, DIAG_NO_MATRIX_UNIT, dot->span,
              type == DT_F32
                  ? "convert the operands, `... as f16`, or write `precision = tf32` as the "
                    "last argument"
                  : "convert the operands: `... as f16`",
              "this product of %s and %s does not use the matrix unit of %s", dtype_name(type),
              dtype_name(dot->in[1]->type.dtype), ctx->target->name);
}

// Sums of 8-bit floats that are scaled before they are added up, as with a scale for each block: a
// thread holds the unit's own sums, those of the step and those of all steps.
static bool is_scaled_fp8(const Op *dot) {
    return dtype_is_fp8(dot->in[0]->type.dtype) && dot->nin == 2;
}

static void dot_set_sizes(void *user, Op *op) {
    DotPass *p = user;
    if (op->kind != OP_DOT)
        return;
    note_unit(p->ctx, p->k, op);
    DotSizes s = dot_sizes(p->ctx->target, p->k, op, p->ndots);
    if (p->ctx->target->family != TARGET_CPU && is_scaled_fp8(op))
        s.cols /= 2;
    DotAxes d = dot_axes(op);
    DotSizes least = dot_least(p->ctx->target, op);
    axes_set_size(p->ctx, p->k, d.rows, s.rows, least.rows, contiguous_of(op, d.rows));
    axes_set_size(p->ctx, p->k, d.cols, s.cols, least.cols, contiguous_of(op, d.cols));
    axes_set_size(p->ctx, p->k, d.along, s.along, least.along, contiguous_of(op, d.along));
    axes_set_size(p->ctx, p->k, d.batch, 1, 1, -1);
}

// Elements of the loads of an operand that are not boxes, for each index that is computed: they go
// into registers one by one, each with its own address. What another product has computed is that
// one's accumulator.
static uint64_t gathered(const Kernel *k, const Value *v, int depth) {
    if (v->kind != VALUE_OP || v->type.axes.n == 0 || depth == 0)
        return 0;
    const Op *op = v->def;
    if (op->kind == OP_LOAD) {
        uint64_t computed = 0;
        for (int i = 0; i < op->mem[0].nidx; i++) {
            const Value *at = op->in[op->mem[0].first + i];
            computed += at->type.axes.n > 0 && at->kind != VALUE_IOTA;
        }
        return computed * tile_elements(k, v->type.axes);
    }
    uint64_t most = 0;
    for (int i = 0; i < op->nin && op_has(op->kind, TRAIT_ELEMENTWISE); i++) {
        uint64_t n = gathered(k, op->in[i], depth - 1);
        most = n > most ? n : most;
    }
    return most;
}

// An operand is in several threads: warps of one row share it, and without a matrix unit lanes do.
// Without vectors there are more addresses.
static void add_accumulators(void *user, Op *op) {
    enum { DEPTH = 16, SHARED = 2, SHARED_FMA = 8 };
    DotPass *p = user;
    if (op->kind != OP_DOT)
        return;
    DotUnit unit;
    bool vectors = kernel_has_vectors(p->k);
    bool unit_does = dot_unit(p->ctx->target, op, ANY_K, &unit);
    uint64_t shared = vectors ? SHARED : unit_does ? 2 * SHARED : SHARED_FMA;
    p->accumulators += tile_elements(p->k, op->res[0]->type.axes) * (is_scaled_fp8(op) ? 2 : 1);
    for (int i = 0; i < 2; i++)
        p->accumulators += gathered(p->k, op->in[i], DEPTH) * shared;
}

// --- elementwise, reductions ---

static AxisSet held_axes(const Kernel *k, AxisSet axes) {
    AxisSet held = axes_none();
    for (int i = 0; i < axes.n; i++) {
        const Axis *a = k->axis[axes.id[i]];
        if (a->hi && a->size)
            axes_add(&held, a->id);
    }
    return held;
}

static uint64_t held_along(const Kernel *k, AxisSet axes) {
    return tile_elements(k, held_axes(k, axes));
}

typedef struct LargestHeld {
    const Kernel *k;
    uint64_t elements;
} LargestHeld;

static void find_largest_held(void *user, Op *op) {
    LargestHeld *l = user;
    for (int i = 0; i < op->nres; i++) {
        uint64_t e = held_along(l->k, op->res[i]->type.axes);
        l->elements = e > l->elements ? e : l->elements;
    }
}

// Of a program. What is sorted and what is chosen from it never meet in one tile.
static uint64_t held_elements(const Kernel *k, const Nest *n) {
    if (n->sorted.n == 0)
        return held_along(k, n->axes);
    LargestHeld l = {.k = k, .elements = 1};
    ir_walk(n->op->region[0], find_largest_held, &l);
    return l.elements;
}

static bool is_bound_here(const Op *par, uint16_t id) {
    for (int i = 0; i < par->nbinders; i++)
        if (par->binder[i].axis && par->binder[i].axis->id == id)
            return true;
    return false;
}

static uint32_t vector_elements(const TargetDesc *t, int elem_bytes) {
    uint32_t n = (uint32_t)(t->vec_bytes / elem_bytes);
    return n ? n : 1;
}

// Elements of a program's tile: what the axes that have a size leave of them goes to the contiguous
// axis first, but for the whole width of the machine there whatever they leave, the remainder along
// the last other binder.
static void spread(PassCtx *ctx, Kernel *k, Op *par, const Nest *n, uint64_t elements,
                   uint32_t contiguous_most) {
    uint64_t least =
        elements < (uint64_t)ctx->target->lanes ? elements : (uint64_t)ctx->target->lanes;
    elements = elements > n->given ? elements / n->given : 1;
    if (n->contiguous >= 0 && is_bound_here(par, (uint16_t)n->contiguous)) {
        Axis *a = k->axis[n->contiguous];
        uint64_t most = elements < least ? least : elements;
        most = most < contiguous_most ? most : contiguous_most;
        bool given = a->size > 0;
        axis_set_size(ctx, k, a, pow2_floor(most ? most : 1));
        elements /= given || a->size == 0 ? 1 : a->size;
    }
    for (int i = par->nbinders - 1; i >= 0; i--) {
        Axis *a = par->binder[i].axis;
        if (!a || a->size)
            continue;
        axis_set_size(ctx, k, a, pow2_floor(elements ? elements : 1));
        elements /= a->size;
    }
}

// Elements of a row that a thread holds: fewer where more tiles are live at once.
static uint64_t row_elements(uint64_t words) {
    return words <= 3    ? ROW_ELEMENTS_PER_THREAD
           : words <= 6  ? ROW_ELEMENTS_PER_THREAD / 2
           : words <= 16 ? ROW_ELEMENTS_PER_THREAD / 4
           : words <= 32 ? ROW_ELEMENTS_PER_THREAD / 8
                         : 1;
}

// Rows up to ROW_OF_A_WARP elements: a warp holds one or more of them, if its registers do. Longer
// ones: all warps share a row.
static int schedule_rows(PassCtx *ctx, Kernel *k, Op *par, const Nest *n, uint64_t held) {
    enum { WARP_ROW_REGISTERS = 96, OTHER_REGISTERS = 28, REGISTERS = 1 << 16 };
    enum { ALL_REGISTERS_WARPS = 8 }; // fewer cannot have all registers, 255 for each thread
    const TargetDesc *t = ctx->target;
    if (t->family == TARGET_CPU) {
        uint64_t elements = (uint64_t)t->lanes * CPU_TILE_VECTORS;
        spread(ctx, k, par, n, elements > held ? elements / held : 1, UINT32_MAX);
        return 1;
    }
    uint64_t words =
        live_words(ctx->scratch, k, par->region[0], held_axes(k, n->axes), axes_none());
    uint64_t of_row = words > n->given ? words / n->given : 1;
    uint64_t per_warp = (uint64_t)t->lanes * row_elements(of_row);
    if (held <= ROW_OF_A_WARP && held / (uint64_t)t->lanes * of_row <= WARP_ROW_REGISTERS) {
        uint64_t rows = per_warp > held ? per_warp / held : 1, warps = ROW_WARPS;
        spread(ctx, k, par, n, ROW_WARPS * rows, UINT32_MAX);
        while (warps < (uint64_t)t->max_warps && n->given % (2 * warps) == 0 &&
               held * words > warps * (uint64_t)t->lanes * WARP_ROW_REGISTERS)
            warps *= 2;
        return (int)warps;
    }
    per_warp = (uint64_t)t->lanes * row_elements(words);
    spread(ctx, k, par, n, 1, UINT32_MAX);
    uint64_t warps = held > per_warp ? pow2_floor(held / per_warp) : 1;
    if (warps > (uint64_t)t->max_warps)
        warps = (uint64_t)t->max_warps;
    // What each thread needs besides its elements counts more, the more threads there are.
    while (warps > ALL_REGISTERS_WARPS &&
           held * words + warps * (uint64_t)t->lanes * OTHER_REGISTERS > REGISTERS)
        warps /= 2;
    return (int)warps;
}

// Vectors of a thread: fewer where many tiles are live at once.
static uint64_t vectors_per_thread(PassCtx *ctx, const Kernel *k, const Op *par, uint64_t vec) {
    enum { WORDS_MOST = 128 };
    AxisSet axes = axes_none();
    for (int i = 0; i < par->nbinders; i++)
        if (par->binder[i].axis)
            (void)axes_add(&axes, par->binder[i].axis->id);
    uint64_t words = live_words(ctx->scratch, k, par->region[0], axes, axes_none()),
             n = VECTORS_PER_THREAD;
    while (n > 1 && n * vec * words > WORDS_MOST)
        n /= 2;
    return n;
}

static int schedule_elementwise(PassCtx *ctx, Kernel *k, Op *par, const Nest *n) {
    const TargetDesc *t = ctx->target;
    uint64_t vec = n->strided ? 1 : vector_elements(t, n->elem_bytes);
    if (t->family == TARGET_CPU) {
        spread(ctx, k, par, n, (uint64_t)t->lanes * CPU_TILE_VECTORS, UINT32_MAX);
        return 1;
    }
    uint32_t row = (uint32_t)(ELEMENTWISE_THREADS * vec);
    bool flat = par->nbinders == 1;
    spread(ctx, k, par, n, row * vectors_per_thread(ctx, k, par, vec), flat ? UINT32_MAX : row);
    return ELEMENTWISE_THREADS / t->lanes;
}

// Tile of a whole axis that will be streamed; other axes get few rows.
static int schedule_streamed(PassCtx *ctx, Kernel *k, Op *par, const Nest *n) {
    const TargetDesc *t = ctx->target;
    bool cpu = t->family == TARGET_CPU;
    for (int i = 0; i < par->nbinders; i++) {
        Axis *a = par->binder[i].axis;
        if (!a)
            continue;
        // A reduction over rows keeps the contiguous axis in lanes: then rows are streamed one by
        // one.
        bool contiguous = n->contiguous == a->id;
        axis_set_size(ctx, k, a, contiguous ? stream_tile(t, n, a) : 1);
    }
    return cpu ? 1 : ELEMENTWISE_THREADS / t->lanes;
}

// The contiguous axis is whole and not held.
static bool streams_rows(const Kernel *k, const Nest *n) {
    return n->contiguous >= 0 && axes_has(n->whole, (uint16_t)n->contiguous) &&
           k->axis[n->contiguous]->size == 0;
}

// --- loops over tiles written by hand, without products ---

typedef struct TileLoops {
    PassCtx *ctx;
    Kernel *k;
    int contiguous;
    uint32_t tile;
} TileLoops;

static bool has_tile_loop(const Region *r) {
    for (const Op *op = r->first; op; op = op->next) {
        for (int i = 0; op->kind == OP_FOR && i < op->nbinders; i++)
            if (op->binder[i].axis)
                return true;
        for (int i = 0; i < op->nregion; i++)
            if (has_tile_loop(op->region[i]))
                return true;
    }
    return false;
}

// The binder of a loop whose axis lies along the threads: the contiguous one, or the last of an
// innermost loop; NULL where a loop in it has that.
static Axis *wide_axis(const TileLoops *l, const Op *loop) {
    Axis *last = NULL;
    for (int i = 0; i < loop->nbinders; i++) {
        Axis *a = loop->binder[i].axis;
        if (a && a->id == l->contiguous)
            return a;
        last = a ? a : last;
    }
    return has_tile_loop(loop->region[0]) ? NULL : last;
}

static void size_tile_loops(TileLoops *l, Region *r, bool is_wide) {
    for (Op *op = r->first; op; op = op->next) {
        Axis *wide = op->kind == OP_FOR && !is_wide ? wide_axis(l, op) : NULL;
        for (int i = 0; op->kind == OP_FOR && i < op->nbinders; i++) {
            Axis *a = op->binder[i].axis;
            if (a)
                axis_set_size(l->ctx, l->k, a, a == wide ? l->tile : 1);
        }
        for (int i = 0; i < op->nregion; i++)
            size_tile_loops(l, op->region[i], is_wide || wide);
    }
}

// As if the loops' axes were whole axes that are streamed: one axis lies along the threads, of the
// others a program has few. `held`: elements of the axes that are held beside them.
static int schedule_loops(PassCtx *ctx, Kernel *k, Op *par, const Nest *n, uint64_t held) {
    const TargetDesc *t = ctx->target;
    bool cpu = t->family == TARGET_CPU;
    uint64_t tile = cpu ? (uint64_t)t->lanes * CPU_TILE_VECTORS : ELEMENTWISE_THREADS * 4;
    bool across = n->contiguous >= 0 && is_bound_here(par, (uint16_t)n->contiguous);
    uint64_t beside = held * n->given; // beside them a thread may hold a few elements more
    uint64_t most = n->given > 1 && !cpu ? tile * 4 / beside : tile / held;
    most = most < tile ? most : tile;
    TileLoops loops = {ctx, k, n->contiguous, pow2_floor(most ? most : 1)};
    schedule_streamed(ctx, k, par, n);
    size_tile_loops(&loops, par->region[0], across);
    return cpu ? 1 : ELEMENTWISE_THREADS / t->lanes;
}

// Programs of rows that a multiprocessor should hold: enough to hide latency, few enough for the
// registers that a thread needs (128 of 64K). Products and elementwise code are left to the
// assembler: a thread of a product, or one that sorts, needs what it needs.
static int resident_programs(PassCtx *ctx, const Kernel *k, const Op *par, const Nest *n,
                             int warps) {
    enum { ROW_WARPS_MOST = 16, REGISTERS = 1 << 16, ADDRESS_REGISTERS = 40 };
    uint64_t held = held_elements(k, n);
    bool rows = n->ndots == 0 && n->sorted.n == 0 && (n->whole.n > 0 || held > 1);
    int most = rows && ROW_WARPS_MOST > warps ? ROW_WARPS_MOST / warps : 1;
    if (held <= 1)
        return most;
    uint64_t threads = (uint64_t)(ctx->target->lanes * warps);
    uint64_t words =
        live_words(ctx->scratch, k, par->region[0], held_axes(k, n->axes), axes_none());
    uint64_t registers = words * held / threads + ADDRESS_REGISTERS;
    while (most > 1 && registers * threads * (uint64_t)most > REGISTERS)
        most /= 2;
    return most;
}

static void remark_nest(PassCtx *ctx, const Kernel *k, const Op *par, const Nest *n, int warps) {
    if (!ctx->options->explain)
        return;
    const char *sizes = remark_sizes(ctx, k, n->axes);
    remark(ctx, DIAG_SCHEDULED, par->span, "%s: %s%s%d warp%s", k->name, sizes, *sizes ? "; " : "",
           warps, warps == 1 ? "" : "s");
}

// A tile that no thread's registers hold is refused here: lowering it would take minutes.
static bool tile_fits(PassCtx *ctx, const Kernel *k, const Op *par, const Nest *n, int warps) {
    AxisSet axes = axes_none();
    if (n->ndots > 0)
        axes = n->dot->res[0]->type.axes;
    for (int i = 0; n->ndots == 0 && i < par->nbinders; i++)
        if (par->binder[i].axis)
            (void)axes_add(&axes, par->binder[i].axis->id);
    if (tile_elements(k, axes) <= tile_most(ctx->target, warps))
        return true;
    tile_too_large(ctx, k, n->ndots > 0 ? n->dot->span : par->span, axes, warps);
    return false;
}

// Half of the most where a thread needs registers for more: addresses (the variant for any stride),
// long fragments, operands of multiply-adds.
static uint64_t accumulator_budget(const TargetDesc *t, const Kernel *k, const Nest *n) {
    enum { SHORT_CONTRACTION = 32 * 16 }; // bits
    uint32_t bits = n->ndots > 0 ? dtype_bits(n->dot->in[0]->type.dtype) : 0;
    DotUnit unit;
    // The sums of 8-bit floats are held twice.
    bool lean = n->ndots > 0 && kernel_has_vectors(k) && dot_unit(t, n->dot, ANY_K, &unit) &&
                !dtype_is_fp8(n->dot->in[0]->type.dtype);
    for (int i = 0; lean && i < n->dot->naxes; i++)
        lean = n->dot->axes[i]->size * bits <= SHORT_CONTRACTION;
    return lean ? ACCUMULATORS_PER_THREAD : ACCUMULATORS_PER_THREAD / 2;
}

// --- given sizes on the CPU ---

typedef struct SizeSeen {
    const Axis *axis;
    const Op *binder;     // the nest or loop that walks its tiles
    const uint32_t *uses; // by value id
    bool seen;
} SizeSeen;

// A product that the loop adds up and does nothing else with, nor with the sum so far: how many of
// its terms are added at a time is not to be seen.
static bool is_sum_of_loop(const Op *dot, const Op *loop, const uint32_t *uses) {
    const Region *body = loop->region[0];
    if (loop->kind != OP_FOR || dot->kind != OP_DOT || dot->parent != body || dot->nin < 3)
        return false;
    const Op *yield = body->last;
    bool carried = false;
    for (int i = 0; i < yield->nin; i++)
        carried |=
            yield->in[i] == dot->res[0] && body->arg[body->narg - yield->nin + i] == dot->in[2];
    return carried && uses[dot->res[0]->id] == 1 && uses[dot->in[2]->id] == 1;
}

// It is along the axis, asks for the ends of its tile, has a window of it, or writes something once
// for each tile.
static void find_size_seen(void *user, Op *op) {
    SizeSeen *s = user;
    for (int i = 0; i < op->naxes; i++)
        s->seen |= (op->axes[i] == s->axis || op->axes[i]->of == s->axis) &&
                   !is_sum_of_loop(op, s->binder, s->uses);
    bool writes = op_has(op->kind, TRAIT_WRITES) || op->kind == OP_PRINT || op->kind == OP_ASSERT;
    s->seen |= writes && !op_takes_axis(op, s->axis);
}

// What a loop carries it may count its tiles with.
static bool loop_counts(const Op *loop, const uint32_t *uses) {
    const Op *yield = loop->region[0]->last;
    for (int i = 0; i < yield->nin; i++) {
        const Value *v = yield->in[i];
        if (v->kind != VALUE_OP || !is_sum_of_loop(v->def, loop, uses))
            return true;
    }
    return false;
}

static bool size_is_seen(const Kernel *k, const uint32_t *uses, const Op *binder, const Axis *a) {
    SizeSeen s = {.axis = a, .binder = binder, .uses = uses};
    ir_walk(binder->region[0], find_size_seen, &s);
    for (int i = 0; i < k->naxis; i++)
        s.seen |= k->axis[i]->like == a;
    return s.seen || (binder->kind == OP_FOR && loop_counts(binder, uses));
}

typedef struct GivenSizes {
    const Kernel *k;
    const uint32_t *uses; // by value id
    uint32_t *most;       // by axis id; 0: not freed
} GivenSizes;

static void free_given_sizes(void *user, Op *op) {
    GivenSizes *g = user;
    for (int i = 0; i < op->nbinders && (op->kind == OP_PARALLEL || op->kind == OP_FOR); i++) {
        Axis *a = op->binder[i].axis;
        if (!a || a->size == 0 || size_is_seen(g->k, g->uses, op, a))
            continue;
        g->most[a->id] = a->size;
        a->size = 0;
    }
}

// A tile is unrolled on the CPU, and sizes in a source are most often made for a GPU. One that
// nothing in the nest can see is no more than a bound there: the heuristics choose.
static GivenSizes nest_free_sizes(PassCtx *ctx, Kernel *k, Op *par) {
    GivenSizes g = {.k = k, .most = ARENA_ARRAY(ctx->scratch, uint32_t, (size_t)k->naxis + 1)};
    if (ctx->target->family == TARGET_CPU) {
        g.uses = ir_count_uses(ctx->scratch, k);
        free_given_sizes(&g, par);
        ir_walk(par->region[0], free_given_sizes, &g);
    }
    return g;
}

static void bound_sizes(Kernel *k, const GivenSizes *g) {
    for (int i = 0; i < k->naxis; i++) {
        Axis *a = k->axis[i];
        if (g->most[a->id] > 0 && (a->size == 0 || a->size > g->most[a->id]))
            a->size = pow2_floor(g->most[a->id]);
    }
}

// Sizes of a schedule clause, before those that leave room for them are chosen.
static void take_clauses(PassCtx *ctx, Kernel *k, Op *par) {
    for (int i = 0; i < par->nbinders; i++) {
        Axis *a = par->binder[i].axis;
        const ScheduleEntry *e = a ? schedule_find_axis(ctx, k, a) : NULL;
        if (e && e->value > 0)
            axis_set_size(ctx, k, a, (uint32_t)e->value);
    }
}

static bool nest_sizes(PassCtx *ctx, Kernel *k, Op *par) {
    bool cpu = ctx->target->family == TARGET_CPU;
    GivenSizes given = nest_free_sizes(ctx, k, par);
    Nest n = nest_of(par);
    if (!cpu && n.ndots == 0) {
        take_clauses(ctx, k, par);
        n = nest_of(par);
    }
    int warps;
    uint64_t accumulators = 0;
    if (n.ndots > 0) {
        DotPass p = {ctx, k, n.ndots, 0};
        ir_walk(par->region[0], dot_set_sizes, &p);
        warps = dot_sizes(ctx->target, k, n.dot, n.ndots).warps;
        spread(ctx, k, par, &n, 1, 1);
        ir_walk(par->region[0], add_accumulators, &p);
        accumulators = p.accumulators;
    } else if (n.whole.n == 0 && has_tile_loop(par->region[0])) {
        warps = schedule_loops(ctx, k, par, &n, held_elements(k, &n));
    } else if (n.whole.n > 0 && (held_elements(k, &n) <= 1 || streams_rows(k, &n))) {
        warps = schedule_streamed(ctx, k, par, &n);
    } else if (held_elements(k, &n) > 1) {
        warps = schedule_rows(ctx, k, par, &n, held_elements(k, &n));
    } else {
        warps = schedule_elementwise(ctx, k, par, &n);
    }
    bound_sizes(k, &given);
    uint64_t budget = accumulator_budget(ctx->target, k, &n);
    warps = cpu ? 1 : nest_warps(ctx, k, warps, accumulators, budget);
    if (!cpu && !tile_fits(ctx, k, par, &n, warps))
        return false;
    op_set_int(k, par, ATTR_warps, warps);
    remark_nest(ctx, k, par, &n, warps);
    if (!cpu)
        op_set_int(k, par, ATTR_resident, resident_programs(ctx, k, par, &n, warps));
    return schedule_grid(ctx, k, par, &n);
}

// The nest that adds up the parts of a loop has few operations for an element: sizes that the
// source chooses for the loop's nest would leave it with few programs.
static bool nest_schedule(PassCtx *ctx, Kernel *k, Op *par) {
    PassOptions options = *ctx->options;
    PassCtx plain = *ctx;
    if (op_attr_int(par, ATTR_split) <= 1)
        return nest_sizes(ctx, k, par);
    options.nschedule = 0;
    plain.options = &options;
    return nest_sizes(&plain, k, par);
}

// --- loops written by hand over tiles without a size, outside products ---

typedef struct LoopSizes {
    PassCtx *ctx;
    Kernel *k;
    Nest nest;
    const Axis *axis;
    uint64_t others; // elements of the largest tile along it, without it
} LoopSizes;

// An axis that will be streamed counts with its tile.
static uint64_t axis_elements(const LoopSizes *s, const Axis *a) {
    if (a->size)
        return a->size;
    return axes_has(s->nest.whole, a->id) ? stream_tile(s->ctx->target, &s->nest, a) : 1;
}

static void find_others(void *user, Op *op) {
    LoopSizes *s = user;
    for (int i = 0; i < op->nres; i++) {
        AxisSet axes = op->res[i]->type.axes;
        uint64_t n = 1;
        for (int j = 0; j < axes.n && axes_has(axes, s->axis->id); j++)
            if (axes.id[j] != s->axis->id)
                n *= axis_elements(s, s->k->axis[axes.id[j]]);
        s->others = n > s->others ? n : s->others;
    }
}

// One vector per thread where the loop's tile has no other axis; fewer where it has.
static void loop_set_sizes(void *user, Op *op) {
    LoopSizes *s = user;
    enum { PER_THREAD = 16 };
    const TargetDesc *t = s->ctx->target;
    bool cpu = t->family == TARGET_CPU;
    int warps = (int)op_attr_int(s->nest.op, ATTR_warps);
    uint64_t most = (uint64_t)t->lanes * (cpu ? CPU_TILE_VECTORS : PER_THREAD * (unsigned)warps);
    for (int i = 0; i < op->nbinders && op->kind == OP_FOR; i++) {
        Axis *a = op->binder[i].axis;
        if (!a || a->size)
            continue;
        s->axis = a;
        s->others = 1;
        ir_walk(s->nest.op->region[0], find_others, s);
        uint64_t tile = cpu ? most : ELEMENTWISE_THREADS * 4;
        if (most / s->others < tile)
            tile = most > s->others ? most / s->others : 1;
        axis_set_size(s->ctx, s->k, a, pow2_floor(tile));
    }
}

static bool nest_loop_sizes(PassCtx *ctx, Kernel *k, Op *par) {
    LoopSizes s = {.ctx = ctx, .k = k, .nest = nest_of(par)};
    ir_walk(par->region[0], loop_set_sizes, &s);
    return true;
}

bool pass_schedule(PassCtx *ctx, Kernel *k) {
    if (!each_nest(ctx, k, nest_schedule) || !each_nest(ctx, k, nest_loop_sizes))
        return false;
    for (int i = 0; i < k->naxis; i++) // in order of declaration
        if (k->axis[i]->like && k->axis[i]->size == 0)
            k->axis[i]->size = k->axis[i]->like->size;
    return true;
}
