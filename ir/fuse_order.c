// Pass fuse, fifth part: a value has the contents that its tensors had at its statement.
//
//   store @t[N], %v; %w = load @t[N]; use %w        => use %v
//   %v = load @x[..]; store @x[other], ..; use %v   => temp for %v: the places are not the same
//   %v = load @x[N]; store @x[N], %w; use %v        => nothing where %v is used in the launch of
//   the
//     store: a program loads what it is about to write before it writes it. For launches behind
//     that one %v is a load of what the launch has stored, else of a copy that it makes.
//
// What shares a launch is known only when a run of statements is complete, so the last case is
// settled there, by fuse_hand_over. What is in memory because somebody loads it is loaded by all.
#include "ir/fuse.h"

#include <string.h>

#include "ir/nest.h"
#include "lang/base/vec.h"

// --- forwarding ---

static bool store_is_whole(const Op *store) {
    const Mem *t = store->mem[0].mem;
    for (int i = 0; i < t->rank; i++) {
        const Value *v = store->in[store->mem[0].first + i];
        if (v->kind != VALUE_IOTA)
            return false;
        const Axis *a = v->axis;
        bool covers =
            a->is_dim ? a->extent == t->dim[i] : a->hi == t->dim[i] && value_is_int(a->lo, 0);
        if (!covers)
            return false;
        for (int j = 0; j < i; j++)
            if (store->in[store->mem[0].first + j] == v)
                return false;
    }
    return true;
}

bool store_holds_value(const Op *store) {
    if (store->kind != OP_STORE || store->mem[0].mem->opt || !store_is_whole(store))
        return false;
    const Type t = op_store_value(store)->type; // a broadcast value has fewer axes
    return t.dtype == store->mem[0].mem->dtype && axes_equal(t.axes, root_axes(store));
}

bool fuse_forward(Region *host) {
    bool changed = false;
    for (Op *store = host->first; store; store = store->next) {
        if (!store_holds_value(store))
            continue;
        Value *v = op_store_value(store);
        for (Op *op = store->next, *next; op && !op_has(op->kind, TRAIT_REGIONS); op = next) {
            next = op->next;
            if (op_writes(op, store->mem[0].mem))
                break;
            if (op->kind != OP_LOAD || op->mem[0].mem != store->mem[0].mem ||
                !op_same_place(op, store))
                continue;
            value_replace(next, op->res[0], v, NULL);
            ir_op_unlink(op);
            changed = true;
        }
    }
    return changed;
}

// --- reads of what is overwritten later ---

bool op_precedes(const Op *a, const Op *b) {
    while (a && a != b)
        a = a->next;
    return a != NULL;
}

// No two programs of the root's launch write one element. Stores are proven so.
static bool writes_once(const Op *root) {
    if (root->kind == OP_STORE)
        return true;
    AxisSet axes = root_axes(root), own = axes_none();
    for (int i = 0; i < root->mem[0].nidx; i++) {
        const Value *v = root->in[root->mem[0].first + i];
        if (v->kind == VALUE_IOTA)
            axes_add(&own, v->axis->id);
    }
    return axes_subset(axes, own);
}

bool op_reads_own(const Op *load, const Op *root) {
    return op_is_root(root) && load->parent == root->parent &&
           load->mem[0].mem == root->mem[0].mem && op_same_place(load, root) && writes_once(root) &&
           op_precedes(load, root);
}

// A load whose tensor is written before a statement that (through other ops) still uses it, and not
// only by statements that could be in the same launch; or by a statement that uses it, elsewhere. A
// loop or condition that both uses the value and writes the tensor may do so in any order.
static bool load_is_overwritten(Arena *scratch, const Kernel *k, const Op *load) {
    const uint8_t *from = values_from(scratch, k, load);
    bool written = false, elsewhere = false;
    for (Op *op = load->next; op; op = op->next) {
        if (!op_has(op->kind, TRAIT_WRITES | TRAIT_REGIONS))
            continue;
        bool uses = op_uses(op, from);
        if (uses && (elsewhere || (written && !op_is_root(op))))
            return true;
        if (!op_writes(op, load->mem[0].mem))
            continue;
        written = true;
        elsewhere |= !op_reads_own(load, op);
        if (uses && elsewhere)
            return true;
    }
    return false;
}

bool fuse_keep_order(PassCtx *ctx, Kernel *k, Region *host) {
    for (Op *op = host->first; op; op = op->next)
        if (op->kind == OP_LOAD && load_is_overwritten(ctx->scratch, k, op) &&
            !fuse_keep_value(ctx, k, op->res[0], FUSE_OVERWRITTEN))
            return false;
    return fuse_keep_for_nests(ctx, k, host);
}

// --- what launches behind a run need of what it overwrites ---

static Op *behind(const Run *run) {
    return run->root[run->n - 1]->next;
}

static void mark_operands(void *needed, Op *op) {
    for (int i = 0; i < op->nin; i++)
        ((uint8_t *)needed)[op->in[i]->id] = 1;
}

// What ops behind the run need to be computed, by value id, other than through values that they
// load.
static void find_needed(const Region *host, const Run *run, const uint8_t *reloaded,
                        uint8_t *needed, uint32_t nvalue) {
    memset(needed, 0, nvalue);
    bool is_behind = true;
    for (Op *op = host->last; op; op = op->prev) {
        is_behind &= op != run->root[run->n - 1];
        bool marks = is_behind && op_has(op->kind, TRAIT_WRITES | TRAIT_REGIONS);
        for (int i = 0; i < op->nres; i++)
            marks |= needed[op->res[i]->id] && !reloaded[op->res[i]->id];
        if (!marks)
            continue;
        mark_operands(needed, op);
        for (int i = 0; i < op->nregion; i++)
            ir_walk(op->region[i], mark_operands, needed);
    }
    for (uint32_t i = 0; i < nvalue; i++)
        needed[i] &= !reloaded[i];
}

// Whoever writes the tensor behind the run writes an element in the program that loads it.
static bool stays_own(Op *rest, const Op *store) {
    for (Op *op = rest; op; op = op->next)
        if (op_writes(op, store->mem[0].mem) && (op->kind != OP_STORE || !op_same_place(op, store)))
            return false;
    return true;
}

// A store of the run after which its value can be loaded from its tensor.
static bool can_reload(const Run *run, const Op *store) {
    const Value *v = op_store_value(store);
    return store_holds_value(store) && v->kind == VALUE_OP && v->def->parent == store->parent &&
           stays_own(behind(run), store);
}

// The statement of the run that overwrites what the load reads.
static const Op *overwriter(const Run *run, const Op *load) {
    for (int i = 0; i < run->n; i++)
        if (run->root[i]->mem[0].mem == load->mem[0].mem && op_precedes(load, run->root[i]))
            return run->root[i];
    return NULL;
}

typedef struct HandOver {
    Arena *scratch;
    const Region *host;
    const Run *run;
    uint32_t nvalue;
    uint8_t *needed, *reloaded; // by value id
    ReloadVec reloads;
} HandOver;

static void reload_add(HandOver *h, Value *v, const Op *store) {
    if (h->reloaded[v->id])
        return;
    h->reloaded[v->id] = 1;
    vec_push(h->scratch, &h->reloads, ((Reload){.v = v, .store = store}));
    find_needed(h->host, h->run, h->reloaded, h->needed, h->nvalue);
}

// Ops behind the store need what it has stored from memory.
static bool is_loaded(const HandOver *h, const Op *store) {
    for (const Op *op = store->next; op; op = op->next)
        if (op->kind == OP_LOAD && op->mem[0].mem == store->mem[0].mem && h->needed[op->res[0]->id])
            return true;
    return false;
}

ReloadVec fuse_hand_over(Arena *scratch, const Kernel *k, const Run *run) {
    HandOver h = {.scratch = scratch,
                  .host = run->root[0]->parent,
                  .run = run,
                  .nvalue = k->nvalue + 1,
                  .needed = ARENA_ARRAY(scratch, uint8_t, k->nvalue + 1),
                  .reloaded = ARENA_ARRAY(scratch, uint8_t, k->nvalue + 1)};
    find_needed(h.host, run, h.reloaded, h.needed, h.nvalue);
    for (int i = run->deep ? run->n - 1 : -1; i >= 0; i--)
        if (can_reload(run, run->root[i]) && h.needed[op_store_value(run->root[i])->id])
            reload_add(&h, op_store_value(run->root[i]), run->root[i]);
    for (Op *load = h.host->first; load != run->root[run->n - 1]; load = load->next) {
        if (load->kind != OP_LOAD || !h.needed[load->res[0]->id] || !overwriter(run, load))
            continue;
        const uint8_t *from = values_from(scratch, k, load);
        for (int i = 0; i < run->n; i++)
            if (can_reload(run, run->root[i]) && from[op_store_value(run->root[i])->id])
                reload_add(&h, op_store_value(run->root[i]), run->root[i]);
        if (h.needed[load->res[0]->id])
            reload_add(&h, load->res[0], NULL);
    }
    for (int i = 0; i < run->n; i++)
        if (can_reload(run, run->root[i]) && h.needed[op_store_value(run->root[i])->id] &&
            is_loaded(&h, run->root[i]))
            reload_add(&h, op_store_value(run->root[i]), run->root[i]);
    return h.reloads;
}

// A load in the place of the value's definition: ops there are patterns for the launches to come.
void fuse_reload(Kernel *k, const Reload *r) {
    Builder b = ir_builder_before(k, r->v->def);
    b.span = r->v->def->span;
    Op *at = r->v->def;
    const MemRef *to = r->store ? &r->store->mem[0] : NULL;
    Value *loaded = to ? ir_load(&b, to->mem, &r->store->in[to->first], NULL, r->v->name)
                       : value_load(&b, r->copy, r->v);
    value_replace(at, r->v, loaded, NULL);
}
