// Pass place: nests => launches.
//
// In:  stage scheduled with layouts. Out: stage placed. A `parallel` becomes a `launch` whose
// program id is taken apart into tile
//      numbers; buffers get byte offsets; the launch lists what it uses from outside (ir/abi.h).
//
//   parallel m in 0..%M, n in 0..%N {warps = 4} { BODY }
//   => %nm = cdiv %M, 128; %nn = cdiv %N, 128; %g = mul %nm, %nn
//      launch %pid in 0..%g args(%M, %N; @x, @y) {entry = .., warps = 4, smem = 49152} {
//        %tm, %tn = order.grouped %pid, %nm, %nn {group = 8}; %m0 = mul %tm, 128; %n0 = mul %tn,
//        128 with m in %m0..%M, n in %n0..%N { BODY } }
#include <string.h>

#include "ir/remark.h"
#include "ir/schedule.h"

enum { BINDERS_MAX = 16, BUFFER_ALIGN = 1024, SCRATCH_ALIGN = 16 };

typedef struct Place {
    PassCtx *ctx;
    Kernel *k;
    Op *par;
    Value *count[BINDERS_MAX];
    Value *id[BINDERS_MAX];
} Place;

static Value *add(Kernel *k, Builder *b, Value *x, Value *y) {
    (void)k;
    return value_is_int(x, 0) ? y : value_is_int(y, 0) ? x : ir_binary(b, OP_ADD, x, y, NULL);
}

// Windows or points of binder i; a range that ends before it begins has none.
static Value *binder_count(Place *p, Builder *b, int i) {
    Value *lo = op_binder_lo(p->par, i), *hi = op_binder_hi(p->par, i);
    const Axis *a = p->par->binder[i].axis;
    bool may_be_negative =
        !value_is_int(lo, 0) || (hi->kind != VALUE_PARAM && hi->kind != VALUE_CONST);
    Value *n = may_be_negative ? ir_binary(b, OP_MAX, hi, lo, NULL) : hi;
    if (!value_is_int(lo, 0))
        n = ir_binary(b, OP_SUB, n, lo, NULL);
    return a && a->size > 1 ? ir_binary(b, OP_CDIV, n, ir_index(p->k, a->size), NULL) : n;
}

static OrderKind order_kind(const Op *par) {
    Str order = op_attr_str(par, ATTR_order);
    for (int i = 0; order && i < ORDER_COUNT; i++)
        if (strcmp(order, op_info(OP_ORDER)->kinds[i]) == 0)
            return (OrderKind)i;
    return ORDER_ROW;
}

// Binders' numbers of the t-th tile.
static void take_apart(Place *p, Builder *b, Value *t) {
    int n = p->par->nbinders;
    OrderKind kind = order_kind(p->par);
    if (n == 1 && kind != ORDER_LONGEST) {
        p->id[0] = t;
        return;
    }
    Value *in[BINDERS_MAX + 1] = {t};
    Type types[BINDERS_MAX];
    for (int i = 0; i < n; i++) {
        in[i + 1] = p->count[i];
        types[i] = type_scalar(DT_INDEX);
    }
    Op *order = ir_build(b, &(OpInit){.kind = OP_ORDER,
                                      .sub = (uint8_t)kind,
                                      .nin = (uint16_t)(n + 1),
                                      .nres = (uint16_t)n,
                                      .in = in,
                                      .types = types});
    if (kind == ORDER_GROUPED)
        op_set_int(p->k, order, ATTR_group, op_attr_int(p->par, ATTR_group));
    for (int i = 0; i < n; i++)
        p->id[i] = order->res[i];
}

// --- programs and tiles ---

static Value *round_to(Place *p, Builder *b, OpKind divide, Value *x, int64_t n) {
    Value *c = ir_index(p->k, n);
    return n > 1 ? ir_binary(b, OP_MUL, ir_binary(b, divide, x, c, NULL), c, NULL) : x;
}

// How many programs are started for so many tiles: whole clusters; of a persistent grid no more
// than fit at once.
static Value *programs(Place *p, Builder *b, Value *tiles, const char *entry) {
    int64_t cluster = op_attr_int(p->par, ATTR_cluster);
    Value *all = round_to(p, b, OP_CDIV, tiles, cluster);
    if (!op_attr_int(p->par, ATTR_persistent))
        return all;
    Type index = type_scalar(DT_INDEX);
    Op *sms = ir_build(b, &(OpInit){.kind = OP_SMS, .nres = 1, .types = &index});
    op_set_str(p->k, sms, ATTR_entry, entry);
    Value *fit = round_to(p, b, OP_DIV, sms->res[0], cluster);
    if (cluster > 1)
        fit = ir_binary(b, OP_MAX, fit, ir_index(p->k, cluster), NULL);
    return ir_binary(b, OP_MIN, all, fit, NULL);
}

// Where a program handles a tile, and which: in a loop over its tiles where the grid is persistent,
// under a condition where clusters have made the grid larger.
static Region *tile_region(Place *p, Op *launch, Value *tiles, Value **t) {
    Region *body = launch->region[0];
    Value *pid = body->arg[0];
    *t = pid;
    Builder b = ir_builder_at_end(p->k, body);
    b.span = p->par->span;
    if (op_attr_int(p->par, ATTR_persistent)) {
        BinderInit walk = {.name = "t", .lo = pid, .hi = tiles, .step = op_binder_hi(launch, 0)};
        body = ir_for(&b, 1, &walk, 0, NULL, NULL)->region[0];
        *t = body->arg[0];
    } else if (op_attr_int(p->par, ATTR_cluster) > 1) {
        body = ir_if(&b, ir_cmp(&b, CMP_LT, pid, tiles, NULL), 0, NULL)->region[0];
    }
    return body;
}

// The body, inside the windows of this program.
static void move_body(Place *p, Region *tile) {
    Builder b = ir_builder_at_end(p->k, tile);
    b.span = p->par->span;
    BinderInit windows[BINDERS_MAX];
    int nw = 0, var = 0;
    IrMap map = ir_map_new(p->ctx->scratch, p->k);
    for (int i = 0; i < p->par->nbinders; i++) {
        const Binder *bd = &p->par->binder[i];
        Value *lo = op_binder_lo(p->par, i), *at = p->id[i];
        if (bd->axis && bd->axis->size > 1)
            at = ir_binary(&b, OP_MUL, at, ir_index(p->k, bd->axis->size), NULL);
        at = add(p->k, &b, lo, at);
        if (bd->axis)
            windows[nw++] = (BinderInit){.axis = bd->axis, .lo = at, .hi = op_binder_hi(p->par, i)};
        else
            ir_map_value(&map, p->par->region[0]->arg[var++], at);
    }
    Region *body = tile;
    if (nw > 0)
        body = ir_with(&b, nw, windows, 0, NULL)->region[0];
    for (Op *op = p->par->region[0]->first, *next; op; op = next) {
        next = op->next;
        ir_op_move_end(op, body);
    }
    ir_substitute(tile, &map);
}

// --- shared memory ---

typedef struct Shared {
    Place *p;
    int64_t end, scratch;
    const Op *largest; // the buffer, or the op with scratch memory, that needs the most,
    int64_t most;      // its bytes
} Shared;

static void count_bytes(Shared *s, const Op *op, int64_t bytes) {
    if (bytes <= s->most)
        return;
    s->largest = op;
    s->most = bytes;
}

static void place_buffer(void *user, Op *op) {
    Shared *s = user;
    if (op->kind == OP_BUF && op->sub == BUF_SHARED) {
        Mem *buf = op->def_mem;
        int64_t bytes = (int64_t)layout_offsets(buf->layout) * dtype_bits(buf->dtype) / 8 *
                        op_attr_int(op, ATTR_stages);
        s->end = (s->end + BUFFER_ALIGN - 1) / BUFFER_ALIGN * BUFFER_ALIGN;
        op_set_int(s->p->k, op, ATTR_at, s->end);
        s->end += bytes;
        count_bytes(s, op, bytes);
    }
    int64_t scratch = s->p->ctx->scratch_bytes ? s->p->ctx->scratch_bytes(op) : 0;
    count_bytes(s, op, scratch);
    s->scratch = scratch > s->scratch ? scratch : s->scratch;
}

// The largest tile of an op: its threads exchange that one, or less of it.
static const Value *largest_tile(const Kernel *k, const Op *op) {
    const Value *largest = NULL;
    for (int i = 0; i < op->nin + op->nres; i++) {
        const Value *v = i < op->nin ? op->in[i] : op->res[i - op->nin];
        if (!largest || tile_elements(k, v->type.axes) > tile_elements(k, largest->type.axes))
            largest = v;
    }
    return largest;
}

// What needs the memory, and what would need less.
static const char *largest_text(Place *p, const Op *op) {
    PassCtx *ctx = p->ctx;
    if (op->kind == OP_BUF)
        return arena_printf(
            ctx->scratch,
            "%lld stages of a tile of %s (%s) that is copied ahead: choose smaller tiles or fewer "
            "stages",
            (long long)op_attr_int(op, ATTR_stages), dtype_name(op->def_mem->dtype),
            remark_sizes(ctx, p->k, op->def_mem->axes));
    const Value *v = largest_tile(p->k, op);
    return arena_printf(
        ctx->scratch, "a tile of %s (%s) that threads exchange in `%s`: choose smaller tiles",
        dtype_name(v->type.dtype), remark_sizes(ctx, p->k, v->type.axes), op_info(op->kind)->text);
}

static bool place_shared(Place *p, Op *launch) {
    Shared s = {.p = p};
    ir_walk(launch->region[0], place_buffer, &s);
    int64_t smem = s.end;
    if (s.scratch > 0)
        smem = (s.end + SCRATCH_ALIGN - 1) / SCRATCH_ALIGN * SCRATCH_ALIGN + s.scratch;
    op_set_int(p->k, launch, ATTR_smem, smem);
    if (smem <= p->ctx->target->shared_bytes || p->ctx->target->family == TARGET_CPU)
        return true;
    diag_add(
        p->ctx->diags, DIAG_TOO_LARGE, launch->span,
        "this nest needs %lld bytes of shared memory; %s has %d for a program. %lld are for %s",
        (long long)smem, p->ctx->target->name, p->ctx->target->shared_bytes, (long long)s.most,
        largest_text(p, s.largest));
    return false;
}

// --- what the launch uses from outside ---

typedef struct Captures {
    const Region *inside;
    uint8_t *mem;
    Value **value; // by id
} Captures;

static void capture(Captures *c, Value *v) {
    bool outside = v->kind == VALUE_PARAM ||
                   (v->kind == VALUE_OP && !op_is_in(v->def, c->inside)) ||
                   (v->kind == VALUE_ARG && !region_contains(c->inside, v->region));
    if (outside)
        c->value[v->id] = v;
}

static void capture_op(void *user, Op *op) {
    Captures *c = user;
    for (int i = 0; i < op->nin; i++)
        capture(c, op->in[i]);
    for (int i = 0; i < op->nmem; i++) {
        Mem *m = op->mem[i].mem;
        if (m->kind != MEM_PARAM && m->kind != MEM_TEMP)
            continue;
        c->mem[m->id] = 1;
        for (int j = 0; j < m->rank; j++)
            capture(c, m->dim[j]);
    }
}

static void list_captures(Place *p, Op *launch) {
    Kernel *k = p->k;
    Captures c = {.inside = launch->region[0],
                  .mem = ARENA_ARRAY(p->ctx->scratch, uint8_t, (size_t)k->nmem + 1),
                  .value = ARENA_ARRAY(p->ctx->scratch, Value *, (size_t)k->nvalue + 1)};
    ir_walk(launch->region[0], capture_op, &c);
    int nin = 2, nmem = 0;
    for (uint32_t i = 0; i < k->nvalue; i++)
        nin += c.value[i] != NULL;
    for (int i = 0; i < k->nmem; i++)
        nmem += c.mem[i];
    Value **in = ARENA_ARRAY(k->module->arena, Value *, nin);
    MemRef *mem = ARENA_ARRAY(k->module->arena, MemRef, (size_t)nmem + 1);
    in[0] = launch->in[0];
    in[1] = launch->in[1];
    for (uint32_t i = 0, n = 2; i < k->nvalue; i++)
        if (c.value[i])
            in[n++] = c.value[i];
    for (int i = 0, n = 0; i < k->nmem; i++)
        if (c.mem[i])
            mem[n++] = (MemRef){.mem = k->mem[i], .pos = -1};
    launch->in = in;
    launch->nin = (uint16_t)nin;
    launch->mem = mem;
    launch->nmem = (uint16_t)nmem;
}

// PTX identifiers have no dots.
static const char *entry_name(Place *p, int number) {
    char *s = arena_printf(p->ctx->scratch, "%s__%d", p->k->name, number);
    for (char *c = s; *c; c++)
        if (*c == '.')
            *c = '_';
    return s;
}

static int launches_before(const Region *r, const Op *until, bool *found) {
    int n = 0;
    for (const Op *op = r->first; op && !*found; op = op->next) {
        *found = op == until;
        n += op->kind == OP_LAUNCH && !*found;
        for (int i = 0; i < op->nregion && op->kind != OP_LAUNCH && !*found; i++)
            n += launches_before(op->region[i], until, found);
    }
    return n;
}

// As many programs as the schedule wants on a multiprocessor, if a thread has the registers for it.
static int resident(const Place *p) {
    enum { REGISTERS = 1 << 16, ADDRESS_REGISTERS = 48 };
    int n = (int)op_attr_int(p->par, ATTR_resident);
    uint64_t threads = (uint64_t)(p->ctx->target->lanes * op_attr_int(p->par, ATTR_warps));
    uint64_t registers = ADDRESS_REGISTERS + live_words(p->ctx->scratch, p->k, p->par->region[0],
                                                        axes_none(), axes_none());
    while (n > 1 && registers * threads * (uint64_t)n > REGISTERS)
        n /= 2;
    return n;
}

static bool nest_place(PassCtx *ctx, Kernel *k, Op *par) {
    Place p = {.ctx = ctx, .k = k, .par = par};
    if (par->nbinders > BINDERS_MAX) {
        diag_add(ctx->diags, DIAG_UNSUPPORTED, par->span, "a nest may have %d binders",
                 BINDERS_MAX);
        return false;
    }
    Builder b = ir_builder_before(k, par);
    b.span = par->span;
    Value *tiles = ir_index(k, 1);
    for (int i = 0; i < par->nbinders; i++) {
        p.count[i] = binder_count(&p, &b, i);
        tiles = i == 0 ? p.count[0] : ir_binary(&b, OP_MUL, tiles, p.count[i], NULL);
    }
    bool found = false;
    const char *entry = entry_name(&p, launches_before(k->body, par, &found));
    Op *launch = ir_launch(&b, "pid", programs(&p, &b, tiles, entry));
    op_set_str(k, launch, ATTR_entry, entry);
    op_set_int(k, launch, ATTR_warps,
               op_attr_int(par, ATTR_warps) ? op_attr_int(par, ATTR_warps) : 1);
    op_set_int(k, launch, ATTR_resident, resident(&p));
    op_set_int(k, launch, ATTR_cluster, op_attr_int(par, ATTR_cluster));
    Value *t;
    Region *tile = tile_region(&p, launch, tiles, &t);
    Builder in = ir_builder_at_end(k, tile);
    in.span = par->span;
    if (par->nbinders > 0)
        take_apart(&p, &in, t);
    move_body(&p, tile);
    ir_op_unlink(par);
    schedule_unroll(ctx, k, tile);
    if (!place_shared(&p, launch))
        return false;
    list_captures(&p, launch);
    return true;
}

bool pass_place(PassCtx *ctx, Kernel *k) {
    return each_nest(ctx, k, nest_place);
}
