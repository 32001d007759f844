// Bulk copies of boxes between tensors and shared memory (TMA).
//
// Input: a copy with engine = tma whose buffer layout is a box (layout_box_of) and whose indices
// are iotas plus scalars. Output: the tensor map that the copy needs, as data for the runtime
// (ir/abi.h), and one instruction for each box, by one thread. Invariant: the map's dims are those
// of the tensor, innermost first, then in the order in which the box lies in the buffer. Elements
// outside of the tensor are read as 0 and not written.
#include "backend/lower.h"

#include <string.h>

bool copy_is_tma(const Op *op) {
    Str engine = op_attr_str(op, ATTR_engine);
    return engine && strcmp(engine, "tma") == 0;
}

// --- which box ---

// v = iota(axis) + scalars: *axis, or -1 when there is no iota.
static bool index_axis(const Value *v, int *axis) {
    *axis = -1;
    if (v->kind == VALUE_IOTA) {
        *axis = v->axis->id;
        return true;
    }
    if (v->type.axes.n == 0)
        return true;
    if (v->kind != VALUE_OP || (v->def->kind != OP_ADD && v->def->kind != OP_SUB))
        return false;
    int left, right;
    if (!index_axis(v->def->in[0], &left) || !index_axis(v->def->in[1], &right))
        return false;
    if (left >= 0 && right < 0)
        *axis = left;
    else if (left < 0 && right >= 0 && v->def->kind == OP_ADD)
        *axis = right;
    return *axis >= 0;
}

// Index of the first element.
static Uni index_begin(Lower *l, const Value *v) {
    Target *t = l->t;
    if (v->kind == VALUE_IOTA)
        return lower_window(l, v->axis).begin;
    if (v->type.axes.n == 0)
        return lower_index(l, v);
    Uni a = index_begin(l, v->def->in[0]), b = index_begin(l, v->def->in[1]);
    return v->def->kind == OP_ADD ? uni_add(t, a, b)
                                  : (Uni){LLVMBuildSub(t->builder, a.v, b.v, "")};
}

typedef struct TmaCopy {
    const MemRef *tensor, *buffer;
    const Layout *layout;
    LayoutBox box;
    AbiMap map;
    int share; // dim of the map whose equal parts the groups of warps copy; -1: none
} TmaCopy;

static const char *dims_of(const Op *op, TmaCopy *c, int groups) {
    const Mem *mem = c->tensor->mem;
    bool used[RANK_MAX] = {false};
    AxisSet share = op_attr_axes(op, ATTR_share);
    for (int a = 0; a < c->box.naxes; a++) {
        int found = -1;
        for (int d = 0; d < mem->rank; d++) {
            int axis;
            if (!index_axis(op->in[c->tensor->first + d], &axis))
                return "an index that is not an axis plus a scalar";
            if (axis == c->box.axes[a].axis)
                found = found < 0 ? d : RANK_MAX;
        }
        if (found < 0 || found == RANK_MAX)
            return "an axis of the buffer that is not one dim of the tensor";
        if (a == 0 && found != mem->inner)
            return "a buffer whose lines do not lie along the dim of stride 1";
        uint32_t box = a == 0 ? c->box.span : c->box.axes[a].size;
        if (groups > 1 && a > 0 && share.n == 1 && share.id[0] == c->box.axes[a].axis &&
            box % (uint32_t)groups == 0) {
            c->share = a;
            box /= (uint32_t)groups;
        }
        if (box > 256 && a + 1 == c->box.naxes && box % 256 == 0)
            box = 256;
        if (box > 256)
            return "a box of more than 256 elements along an axis";
        used[found] = true;
        c->map.dim[c->map.rank] = found;
        c->map.box[c->map.rank++] = (int)box;
    }
    for (int d = mem->rank; d-- > 0;) {
        int axis;
        if (used[d])
            continue;
        if (!index_axis(op->in[c->tensor->first + d], &axis) || axis >= 0)
            return "an index whose axis the buffer lacks";
        c->map.dim[c->map.rank] = d;
        c->map.box[c->map.rank++] = 1;
    }
    return groups > 1 && c->share < 0 ? "a copy that groups of warps cannot share" : NULL;
}

// Warps of the role, or of the launch, that the op stands in.
static int warps_around(const Op *op) {
    for (const Op *o = op->parent->owner; o; o = o->parent->owner)
        if (o->kind == OP_ROLE || o->kind == OP_LAUNCH)
            return (int)op_attr_int(o, ATTR_warps);
    return 1;
}

// NULL, or why it cannot be done.
static const char *tma_copy_of(LayoutTable *layouts, const Op *op, TmaCopy *c) {
    bool in = op->mem[1].mem->kind == MEM_BUF;
    *c = (TmaCopy){.tensor = &op->mem[!in], .buffer = &op->mem[in], .share = -1};
    const Mem *mem = c->tensor->mem;
    c->layout = c->buffer->mem->layout;
    for (int i = 0; i < c->buffer->nrename && c->layout; i++)
        c->layout =
            layout_rename(layouts, c->layout, c->buffer->rename[i].from, c->buffer->rename[i].to);
    uint32_t bits = dtype_bits(mem->dtype);
    if (!c->layout || bits < 8 || !layout_box_of(layouts, c->layout, bits, &c->box))
        return "a buffer that is not a box";
    if (mem->rank > ABI_MAP_RANK)
        return "a tensor of more than 5 dims";
    uint64_t step = (uint64_t)(mem->sdiv ? mem->sdiv : 1) * bits / 8;
    if (mem->opt || mem->inner < 0 || mem->align % 16 || !mem->align ||
        (mem->rank > 1 && step % 16))
        return "a tensor that is not known to be there with bases and strides of 16 bytes";
    if (op_attr(op, ATTR_guard))
        return "an end inside of the tensor";
    c->map.mem = (Mem *)mem;
    c->map.swizzle = (int)c->box.swizzle;
    int warps = (int)op_attr_int(op, ATTR_warps), all = warps_around(op);
    if (warps && in)
        return "incoming copies by groups of warps";
    return dims_of(op, c, warps > 0 && warps < all ? all / warps : 1);
}

typedef struct FindMaps {
    Target *t;
    LayoutTable *layouts;
    AbiMap map[64];
    int n;
} FindMaps;

static void find_map(void *user, Op *op) {
    FindMaps *f = user;
    if (op->kind != OP_COPY || !copy_is_tma(op) || f->t->failed)
        return;
    f->t->op = op;
    TmaCopy c;
    const char *why = f->t->desc->has_tma && f->t->ops->tma_load ? tma_copy_of(f->layouts, op, &c)
                                                                 : "copies by engine tma";
    if (!why && f->n == (int)(sizeof f->map / sizeof *f->map))
        why = "too many tensor maps";
    if (why) {
        target_fail(f->t, "%s", why);
        return;
    }
    for (int i = 0; i < f->n; i++)
        if (memcmp(&f->map[i], &c.map, sizeof c.map) == 0)
            return;
    f->map[f->n++] = c.map;
}

void lower_find_maps(Target *t, Kernel *kernel, Op *launch) {
    FindMaps f = {.t = t, .layouts = kernel->module->layouts};
    ir_walk(launch->region[0], find_map, &f);
    if (f.n || op_attr(launch, ATTR_maps))
        abi_set_launch_maps(kernel, launch, f.n, f.map);
}

// --- the copy ---

static Uni map_pointer(Lower *l, const AbiMap *map) {
    for (int i = 0; i < l->nmap; i++)
        if (memcmp(&l->map[i], map, sizeof *map) == 0)
            return l->map_pointer[i];
    target_fail(l->t, "no tensor map of @%s", map->mem->name);
    return (Uni){NULL};
}

// The boxes of the buffer: number `i` starts at these coordinates along the map's axes.
static int boxes_of(const TmaCopy *c, int i, uint32_t start[ABI_MAP_RANK]) {
    int n = 1;
    for (int a = 0; a < c->box.naxes; a++) {
        int along = a == c->share ? 1 : (int)c->box.axes[a].size / c->map.box[a];
        start[a] = (uint32_t)(i / n % along * c->map.box[a]);
        n *= along;
    }
    return n;
}

static uint32_t box_offset(const TmaCopy *c, const uint32_t start[ABI_MAP_RANK]) {
    uint32_t coord[AXES_MAX] = {0};
    for (int a = 0; a < c->box.naxes; a++)
        coord[layout_axis_index(c->layout, c->box.axes[a].axis)] = start[a];
    return layout_offset_of(c->layout, coord);
}

// The group's part: further along the shared dim, in the tensor and in the buffer.
static void share_out(Lower *l, const TmaCopy *c, int warps, Uni *at, Uni *base) {
    Target *t = l->t;
    uint32_t start[ABI_MAP_RANK] = {0};
    start[c->share] = (uint32_t)c->map.box[c->share];
    int64_t bytes = (int64_t)box_offset(c, start) * storage_bytes(c->map.mem->dtype);
    int log2 = __builtin_ctz((unsigned)warps);
    Uni group = {LLVMBuildLShr(t->builder, t->ops->warp_id(t).v, uni_int(t, 32, log2).v, "")};
    at[c->share] = uni_add(t, at[c->share], uni_mul(t, group, uni_int(t, 32, start[c->share])));
    *base = uni_add(t, *base, uni_mul(t, group, uni_int(t, 32, bytes)));
}

void lower_tma_copy(Lower *l, const Op *op) {
    Target *t = l->t;
    TmaCopy c;
    const char *why = tma_copy_of(l->layouts, op, &c);
    if (why) {
        target_fail(t, "%s", why);
        return;
    }
    bool in = c.buffer == &op->mem[1];
    if (in && (op->nmem < 3 || c.buffer->pos < 0)) {
        target_fail(t, "a copy by TMA that signals no channel");
        return;
    }
    Uni map = map_pointer(l, &c.map), at[ABI_MAP_RANK], base = buffer_base(l, op, c.buffer);
    Shared full = {.imm = 0};
    if (in)
        full = mbarrier_full(l, op->mem[2].mem, lower_index(l, op->in[c.buffer->pos]));
    for (int i = 0; i < c.map.rank; i++)
        at[i] = uni_resize(t, index_begin(l, op->in[c.tensor->first + c.map.dim[i]]), 32, true);
    int warps = group_warps(l, op);
    if (t->failed)
        return;
    if (c.share >= 0)
        share_out(l, &c, warps, at, &base);
    Elected e;
    elected_begin(l, &e, warps);
    uint32_t start[ABI_MAP_RANK] = {0};
    int n = boxes_of(&c, 0, start);
    for (int i = 0; i < n; i++) {
        boxes_of(&c, i, start);
        Uni here[ABI_MAP_RANK];
        for (int d = 0; d < c.map.rank; d++)
            here[d] = d < c.box.naxes ? uni_add(t, at[d], uni_int(t, 32, start[d])) : at[d];
        Shared box = {.base = base,
                      .imm = (int32_t)box_offset(&c, start) * storage_bytes(c.map.mem->dtype)};
        if (in)
            t->ops->tma_load(t, map, c.map.rank, here, box, full);
        else
            t->ops->tma_store(t, map, c.map.rank, here, box);
    }
    if (!in) {
        t->ops->tma_commit(t);
        if (l->stores_bulk && l->store_warps != warps)
            target_fail(t, "copies by one thread and by several");
        l->stores_bulk = true;
        l->store_warps = warps;
    }
    elected_end(l, &e);
}

typedef struct Leaves {
    const Mem *buffer;
    bool bulk;
} Leaves;

static void find_outgoing(void *user, Op *op) {
    Leaves *f = user;
    f->bulk |= op->kind == OP_COPY && op->mem[0].mem == f->buffer && copy_is_tma(op);
}

// Other outgoing copies are plain stores: they have read their buffer when they are issued.
void lower_copy_wait(Lower *l, const Op *op) {
    Leaves f = {.buffer = op->mem[0].mem};
    ir_walk(l->launch->region[0], find_outgoing, &f);
    if (!f.bulk)
        return;
    Elected e;
    elected_begin(l, &e, group_warps(l, op));
    l->t->ops->tma_wait(l->t, (int)op_attr_int(op, ATTR_pending), true);
    elected_end(l, &e);
}
