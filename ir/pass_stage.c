// Pass stage: loads that a product in a loop uses go through shared memory.
//
// In and out: stage scheduled, after bounds. Targets without shared memory are left alone.
//
//   for k in .. { %x = load @x[m, k] {check}; %w = load @w[k, n] {check}; %a = dot[k] %x, %w, %acc;
//   yield %a }
//   => @xs = buf.shared : f16[m, k]; @ws = buf.shared : f16[k, n]; @c = chan @xs, @ws {mode}
//      for k in .. carry (.., %p = 0) {
//        acquire @c(%p); copy @x[m, k] to @xs(%p); copy @w[k, n] to @ws(%p); commit @c(%p); wait
//        @c(%p) %x = get @xs(%p); %w = get @ws(%p); %a = dot[k] %x, %w, %acc; release @c(%p); yield
//        %a, %p + 1 }
//
// Engine: cp_async where 16-byte pieces are proven contiguous and aligned (tensor guards of the
// variant), else plain.
#include "ir/loop.h"
#include "ir/nest.h"
#include "ir/remark.h"
#include "lang/base/vec.h"

enum { STAGES_GROUP = 4, COPIES_MAX = 4, PIECE_BYTES = 16 };

typedef struct Staging {
    PassCtx *ctx;
    Kernel *k;
    Op *loop;
    int nload;
    Op *load[COPIES_MAX];
    bool async;
    bool unit; // some product that they are for uses the matrix unit
    int rings; // of the nest: they share the program's shared memory
} Staging;

static bool load_varies(const Op *loop, const Op *load) {
    for (int i = 0; i < loop->nbinders; i++)
        if (loop->binder[i].axis && axes_has(load->res[0]->type.axes, loop->binder[i].axis->id))
            return true;
    return false;
}

// A box: every index is a tile axis or a scalar, so that the copy engine can walk it.
static bool load_is_box(const Op *load) {
    const MemRef *m = &load->mem[0];
    for (int i = 0; i < m->nidx; i++) {
        const Value *v = load->in[m->first + i];
        if (v->type.axes.n > 0 && v->kind != VALUE_IOTA)
            return false;
    }
    return !load->has_else && dtype_bits(m->mem->dtype) >= 8;
}

// Why the load cannot go by cp.async; NULL: it can.
static const char *why_plain(const PassCtx *ctx, const Kernel *k, const Op *load) {
    const Mem *t = load->mem[0].mem;
    uint32_t piece = PIECE_BYTES * 8 / dtype_bits(t->dtype);
    if (!ctx->target->has_cp_async)
        return "the target has no cp.async";
    if (t->inner < 0)
        return "it is not known which dim is contiguous";
    if (t->align < PIECE_BYTES || t->sdiv % piece != 0)
        return "its rows are not known to be aligned to 16 bytes";
    const Value *v = load->in[load->mem[0].first + t->inner];
    if (v->kind != VALUE_IOTA)
        return "its contiguous dim is not walked by an axis";
    if (k->axis[v->axis->id]->size % piece != 0)
        return "the tile is narrower than 16 bytes along its contiguous dim";
    return NULL;
}

// What the text could say instead.
static const char *remedy_plain(const PassCtx *ctx, const Kernel *k, const Op *load) {
    const Mem *t = load->mem[0].mem;
    uint32_t piece = PIECE_BYTES * 8 / dtype_bits(t->dtype);
    bool aligned = t->inner >= 0 && t->align >= PIECE_BYTES && t->sdiv % piece == 0;
    const Value *v = aligned ? load->in[load->mem[0].first + t->inner] : NULL;
    if (v && v->kind == VALUE_IOTA)
        return arena_printf(ctx->scratch, "make the tile of `%s` a multiple of %u",
                            written_axis(ctx->scratch, k->axis[v->axis->id]), (unsigned)piece);
    if (v)
        return "index the contiguous dim by an axis alone";
    if (t->kind != MEM_TEMP)
        return NULL;
    return arena_printf(ctx->scratch,
                        "make its last axis a number that %u divides, `axis k in 128;`",
                        (unsigned)piece);
}

static bool load_is_async(const PassCtx *ctx, const Kernel *k, const Op *load) {
    return !why_plain(ctx, k, load);
}

// Loads of the loop that reach a product's operand through ops of this loop body, and nothing else
// but that.
static void find_loads(Staging *s) {
    uint8_t *feeds = ARENA_ARRAY(s->ctx->scratch, uint8_t, (size_t)s->k->nvalue + 1);
    uint8_t *other = ARENA_ARRAY(s->ctx->scratch, uint8_t, (size_t)s->k->nvalue + 1);
    for (Op *op = s->loop->region[0]->last; op; op = op->prev) {
        bool feeding = op->nres == 1 && feeds[op->res[0]->id], is_dot = op->kind == OP_DOT;
        DotUnit unit;
        s->unit |= is_dot && dot_unit(s->ctx->target, op, ANY_K, &unit);
        bool only = feeding && !other[op->res[0]->id] && op_has(op->kind, TRAIT_ELEMENTWISE);
        if (op->kind == OP_LOAD && feeding && !other[op->res[0]->id] && load_varies(s->loop, op) &&
            load_is_box(op) && s->nload < COPIES_MAX)
            s->load[s->nload++] = op;
        for (int i = 0; i < op->nin; i++) {
            if ((is_dot && i < 2) || only)
                feeds[op->in[i]->id] = 1;
            else
                other[op->in[i]->id] = 1;
        }
    }
}

static uint64_t ring_bytes(const Staging *s, int stages) {
    uint64_t bytes = 0;
    for (int i = 0; i < s->nload; i++) {
        uint64_t n = dtype_bits(s->load[i]->mem[0].mem->dtype) / 8;
        AxisSet axes = s->load[i]->res[0]->type.axes;
        for (int j = 0; j < axes.n; j++)
            n *= s->k->axis[axes.id[j]]->size;
        bytes += n;
    }
    return bytes * (uint64_t)stages;
}

static bool fits(const Staging *s, int stages) {
    return ring_bytes(s, stages) <=
           (uint64_t)s->ctx->target->shared_bytes * 3 / 4 / (uint64_t)s->rings;
}

static int stages_of(const Staging *s) {
    const ScheduleEntry *e = schedule_find(s->ctx, s->k, "stages", NULL);
    int stages = e && e->value > 0 ? (int)e->value : STAGES_GROUP;
    if (!s->async)
        return 1;
    while (stages > 1 && !fits(s, stages))
        stages--;
    return stages;
}

static Op *build_copy(Staging *s, Builder *b, const Op *load, Mem *buf, Value *pos) {
    int n = load->mem[0].nidx;
    Value *in[RANK_MAX + 1];
    for (int i = 0; i < n; i++)
        in[i] = load->in[load->mem[0].first + i];
    in[n] = pos;
    MemRef mem[2] = {{.mem = load->mem[0].mem, .first = 0, .nidx = (uint16_t)n, .pos = -1},
                     {.mem = buf, .first = (uint16_t)n, .nidx = 0, .pos = (int16_t)n}};
    b->span = load->span;
    Op *copy = ir_build(
        b, &(OpInit){.kind = OP_COPY, .nin = (uint16_t)(n + 1), .nmem = 2, .in = in, .mem = mem});
    op_set_str(s->k, copy, ATTR_engine, s->async ? "cp_async" : "plain");
    const Attr *check = op_attr(load, ATTR_check);
    if (check)
        op_set_ints(s->k, copy, ATTR_check, check->n, check->ints);
    return copy;
}

static void remark_staged(const Staging *s, int stages, const Op *slow) {
    PassCtx *ctx = s->ctx;
    for (int i = s->nload - 1; i >= 0 && ctx->options->explain; i--) {
        const Op *load = s->load[i];
        const char *why = slow && load != slow ? "so is the other operand" : "";
        if (slow)
            why = why_plain(ctx, s->k, load) ? why_plain(ctx, s->k, load) : why;
        remark(ctx, DIAG_STAGED, load->span,
               "%s: %s goes through shared memory by %s, %d stage%s%s%s", s->k->name,
               remark_mem(ctx, load->mem[0].mem), slow ? "plain copies" : "cp.async", stages,
               stages == 1 ? "" : "s", slow ? ": " : "", why);
    }
    if (slow && ctx->target->has_cp_async)
        perf_note(ctx, s->k, DIAG_PLAIN_COPY, slow->span, remedy_plain(ctx, s->k, slow),
                  "%s is not copied ahead for the product: %s", remark_mem(ctx, slow->mem[0].mem),
                  why_plain(ctx, s->k, slow));
}

static bool op_uses(const Op *op, const Value *v) {
    for (int i = 0; i < op->nin; i++)
        if (op->in[i] == v)
            return true;
    for (int i = 0; i < op->nregion; i++)
        for (const Op *in = op->region[i]->first; in; in = in->next)
            if (op_uses(in, v))
                return true;
    return false;
}

static Op *first_user(const Region *r, const Value *v) {
    Op *op = r->first;
    while (op && !op_uses(op, v))
        op = op->next;
    return op;
}

// Without a matrix unit each thread holds all of a product's operands along the contraction: they
// are read where they are used first.
// The value of the load, from the buffer.
static Value *build_get(Builder *b, const Op *load, Mem *buf, Value *pos) {
    Value *v = load->res[0], *in[1] = {pos};
    MemRef mem[1] = {{.mem = buf, .first = 0, .nidx = 0, .pos = 0}};
    b->span = load->span;
    return ir_build(b, &(OpInit){.kind = OP_GET,
                                 .nin = 1,
                                 .nres = 1,
                                 .nmem = 1,
                                 .in = in,
                                 .mem = mem,
                                 .types = &v->type,
                                 .names = &v->name})
        ->res[0];
}

static void stage_loop(Staging *s) {
    int stages = stages_of(s);
    const Op *slow = NULL;
    for (int i = 0; i < s->nload && !slow; i++)
        slow = s->async ? NULL : why_plain(s->ctx, s->k, s->load[i]) ? s->load[i] : NULL;
    remark_staged(s, stages, slow);
    Builder out = ir_builder_before(s->k, s->loop);
    out.span = s->loop->span;
    Mem *bufs[COPIES_MAX];
    for (int i = 0; i < s->nload; i++)
        bufs[i] = ir_buf(&out, BUF_SHARED, s->load[i]->mem[0].mem->name,
                         s->load[i]->mem[0].mem->dtype, s->load[i]->res[0]->type.axes, stages);
    Mem *chan = ir_chan(&out, "ring", s->async ? "group" : "block", stages, s->nload, bufs);
    Value *zero = ir_int(s->k, DT_I32, 0);
    Op *loop = s->loop = loop_add_carry(s->k, s->ctx->scratch, s->loop, zero, "p");
    Value *pos = op_carry_arg(loop, loop->ncarry - 1);
    Builder b = ir_builder_before(s->k, loop->region[0]->first);
    b.span = loop->span;
    build_chan_op(&b, OP_ACQUIRE, chan, pos);
    for (int i = 0; i < s->nload; i++)
        build_copy(s, &b, s->load[i], bufs[i], pos);
    build_chan_op(&b, OP_COMMIT, chan, pos);
    build_chan_op(&b, OP_WAIT, chan, pos);
    IrMap map = ir_map_new(s->ctx->scratch, s->k);
    for (int i = 0; i < s->nload; i++) {
        Op *user = s->unit ? NULL : first_user(loop->region[0], s->load[i]->res[0]);
        if (user)
            b = ir_builder_before(s->k, user);
        ir_map_value(&map, s->load[i]->res[0], build_get(&b, s->load[i], bufs[i], pos));
    }
    ir_substitute(loop->region[0], &map);
    for (int i = 0; i < s->nload; i++)
        ir_op_unlink(s->load[i]);
    Op *y = region_yield(loop->region[0]);
    Builder end = y ? ir_builder_before(s->k, y) : ir_builder_at_end(s->k, loop->region[0]);
    end.span = loop->span;
    build_chan_op(&end, OP_RELEASE, chan, pos);
    Value *next = ir_binary(&end, OP_ADD, pos, ir_int(s->k, DT_I32, 1), "p");
    loop_yield_add(s->k, loop, next);
}

static bool is_tile_loop(const Op *op) {
    return op->kind == OP_FOR && op->nbinders == 1 && op->binder[0].axis;
}

typedef VEC(Staging) Stagings;

// Loops with something to stage, inner ones first.
static void find_loops(PassCtx *ctx, Kernel *k, Region *r, Stagings *out) {
    for (Op *op = r->first; op; op = op->next) {
        for (int i = 0; i < op->nregion; i++)
            find_loops(ctx, k, op->region[i], out);
        Staging s = {.ctx = ctx, .k = k, .loop = op, .async = true};
        if (is_tile_loop(op))
            find_loads(&s);
        if (s.nload > 0)
            vec_push(ctx->scratch, out, s);
    }
}

// --- operands that no loop walks ---
//
// Without a matrix unit lanes share an operand's elements, and a thread holds its part of the whole
// contraction. Where that is long it is kept in shared memory and read next to the multiply-adds.

typedef struct Whole {
    PassCtx *ctx;
    Kernel *k;
    Op *par;
    uint64_t bytes; // of shared memory that are left for it
    VEC(Op *) dots;
} Whole;

static void find_long_dots(void *user, Op *op) {
    enum { LEAST = 64 };
    Whole *w = user;
    DotUnit unit;
    uint64_t along = 1;
    for (int i = 0; i < op->naxes && op->kind == OP_DOT; i++)
        along *= op->axes[i]->size;
    if (op->kind == OP_DOT && along >= LEAST && !dot_unit(w->ctx->target, op, ANY_K, &unit))
        vec_push(w->ctx->scratch, &w->dots, op);
}

// Its load, in front of all loops and for it alone; NULL: it is something else.
static Op *whole_load(const Whole *w, const Op *dot, int operand) {
    const Value *v = dot->in[operand];
    Op *load = v->kind == VALUE_OP ? v->def : NULL;
    if (!load || load->kind != OP_LOAD || load->parent != w->par->region[0] || !load_is_box(load))
        return NULL;
    uint64_t bytes = tile_elements(w->k, v->type.axes) * dtype_bits(v->type.dtype) / 8;
    bool alone = ir_count_uses(w->ctx->scratch, w->k)[v->id] == 1;
    return alone && bytes <= w->bytes ? load : NULL;
}

static void stage_whole(Whole *w, Op *dot, Op *load) {
    Kernel *k = w->k;
    Region *body = w->par->region[0];
    Staging s = {.ctx = w->ctx, .k = k, .async = load_is_async(w->ctx, k, load)};
    Value *v = load->res[0], *zero = ir_int(k, DT_I32, 0);
    Builder b = ir_builder_before(k, load);
    b.span = load->span;
    const Mem *from = load->mem[0].mem;
    Mem *buf = ir_buf(&b, BUF_SHARED, from->name, from->dtype, v->type.axes, 1);
    Mem *chan = ir_chan(&b, "whole", "block", 1, 1, &buf);
    build_chan_op(&b, OP_ACQUIRE, chan, zero);
    build_copy(&s, &b, load, buf, zero);
    build_chan_op(&b, OP_COMMIT, chan, zero);
    build_chan_op(&b, OP_WAIT, chan, zero);
    b = ir_builder_before(k, dot);
    IrMap map = ir_map_new(w->ctx->scratch, k);
    ir_map_value(&map, v, build_get(&b, load, buf, zero));
    ir_substitute(body, &map);
    ir_op_unlink(load);
    Builder end = ir_builder_at_end(k, body);
    end.span = load->span;
    build_chan_op(&end, OP_RELEASE, chan, zero);
    w->bytes -= tile_elements(k, v->type.axes) * dtype_bits(v->type.dtype) / 8;
}

// An eighth of the shared memory is left for what conversions and reductions need.
static void nest_stage_whole(PassCtx *ctx, Kernel *k, Op *par, uint64_t taken) {
    uint64_t most = (uint64_t)ctx->target->shared_bytes / 8 * 7;
    Whole w = {.ctx = ctx, .k = k, .par = par, .bytes = most > taken ? most - taken : 0};
    ir_walk(par->region[0], find_long_dots, &w);
    for (uint32_t i = 0; i < w.dots.len; i++)
        for (int operand = 0; operand < 2; operand++) {
            Op *load = whole_load(&w, w.dots.data[i], operand);
            if (load)
                stage_whole(&w, w.dots.data[i], load);
        }
}

static bool nest_stage(PassCtx *ctx, Kernel *k, Op *par) {
    Stagings loops = {0};
    uint64_t taken = 0; // bytes of shared memory
    find_loops(ctx, k, par->region[0], &loops);
    for (uint32_t n = 0; n < loops.len; n++) {
        Staging *s = &loops.data[n];
        s->rings = (int)loops.len;
        for (int i = 0; i < s->nload; i++)
            s->async &= load_is_async(ctx, k, s->load[i]);
        if (!fits(s, 1))
            continue;
        taken += ring_bytes(s, stages_of(s));
        stage_loop(s);
    }
    nest_stage_whole(ctx, k, par, taken);
    return true;
}

// What is known of temporaries, which the run time makes: contiguous, from an address that any
// vector may have. (Not part of the text: it follows from the dims and the guards.)
static void align_temps(PassCtx *ctx, Kernel *k) {
    enum { ALIGN = 16 };
    const uint32_t *divisor = ir_known_divisors(ctx->scratch, k);
    for (int i = 0; i < k->nmem; i++) {
        Mem *t = k->mem[i];
        if (t->kind != MEM_TEMP || t->rank == 0)
            continue;
        const Value *row = t->dim[t->rank - 1];
        uint64_t n = value_is_const(row) ? (uint64_t)row->u.i : divisor[row->id];
        uint32_t vector = ALIGN * 8 / dtype_bits(t->dtype);
        t->align = ALIGN;
        t->inner = (int8_t)(t->rank - 1);
        t->sdiv = vector;
        while (t->sdiv > 1 && (n == 0 || n % t->sdiv != 0))
            t->sdiv /= 2;
    }
}

bool pass_stage(PassCtx *ctx, Kernel *k) {
    align_temps(ctx, k);
    return ctx->target->shared_bytes == 0 || each_nest(ctx, k, nest_stage);
}
