// How many registers the tiles along some axes ask for: the most that are live at one point.
//
// Input: a region in the order of its ops. Output: 32-bit words for each element along the axes, or
// of a thread, where tiles have layouts. A value counts once for each element along its other axes,
// as far as their sizes are known. It lives from its definition to its last use in the region, the
// uses of nested regions counted at their op; what is inside a loop adds to what lives through it.
// The order is the program's, and the code generator moves what is elementwise: this is an
// estimate.
#include "ir/nest.h"

// Words of one program, however many its tiles ask for.
enum { WORDS_MOST = 1 << 28 };

typedef struct Live {
    const Kernel *k;
    AxisSet along;  // none: all that have a layout
    AxisSet held;   // without a size, but of fixed extents
    uint32_t *last; // by value id: position of the last use in the region, 0 = none
    uint32_t at;
} Live;

static void note_uses(void *user, Op *op) {
    Live *l = user;
    for (int i = 0; i < op->nin; i++)
        l->last[op->in[i]->id] = l->at;
}

// An index that follows from where the element is: it is computed again, not kept.
static bool is_position(const Value *v, int depth) {
    if (v->type.dtype != DT_INDEX && v->type.dtype != DT_BOOL)
        return false;
    if (v->kind == VALUE_IOTA || v->type.axes.n == 0)
        return true;
    const Op *op = v->kind == VALUE_OP ? v->def : NULL;
    if (!op || !op_has(op->kind, TRAIT_ELEMENTWISE) || depth == 0)
        return false;
    for (int i = 0; i < op->nin; i++)
        if (!is_position(op->in[i], depth - 1))
            return false;
    return true;
}

// Elements of the value for each along those axes.
static uint64_t elements_across(const Live *l, AxisSet axes) {
    uint64_t n = 1;
    for (int i = 0; i < axes.n; i++) {
        const Axis *a = l->k->axis[axes.id[i]];
        if (axes_has(l->along, a->id))
            continue;
        uint64_t size = a->like ? a->like->size : a->size;
        int64_t extent;
        if (size == 0 && axes_has(l->held, a->id) && axis_const_extent(a, &extent) && extent > 0)
            size = pow2_ceil((uint64_t)extent);
        n *= size ? size : 1;
        n = n < WORDS_MOST ? n : WORDS_MOST;
    }
    return n;
}

// In halves of a word: 16-bit values are packed. Masks and constants take no register of each
// element.
static uint64_t halves(const Live *l, const Value *v) {
    enum { DEPTH = 8 };
    bool counts =
        l->along.n > 0 ? axes_intersect(v->type.axes, l->along).n > 0 : v->type.layout != NULL;
    if (!counts || v->type.dtype == DT_BOOL || is_position(v, DEPTH))
        return 0;
    uint32_t bits = dtype_bits(v->type.dtype);
    uint64_t elements =
        l->along.n > 0 ? elements_across(l, v->type.axes) : layout_registers(v->type.layout);
    return (bits <= 16 ? 1 : bits / 16) * elements;
}

// What is stored to more elements than it has: no registers, but an instruction for each of them.
static uint64_t broadcast(const Live *l, const Op *op) {
    AxisSet axes = axes_none();
    if (op->kind != OP_STORE)
        return 0;
    for (int i = 0; i < op->nin; i++)
        axes_union(axes, op->in[i]->type.axes, &axes);
    bool more = axes.n > op_store_value(op)->type.axes.n;
    return more && axes_intersect(axes, l->along).n > 0 ? elements_across(l, axes) : 0;
}

// A scan has its operands, and of each result the element and the total of a block, at once, a
// gather or scatter the addresses; other ops take their operands' registers.
static uint64_t beside(const Live *l, const Op *op) {
    uint64_t n = 0;
    for (int i = 0; i < op->nres && (op->kind == OP_SCAN || op->kind == OP_SCANFN); i++)
        n += 2 * halves(l, op->res[i]);
    for (int i = 0; i < op->nmem; i++)
        for (int k = 0; k < op->mem[i].nidx; k++)
            n += halves(l, op->in[op->mem[i].first + k]);
    return n + broadcast(l, op);
}

static uint64_t live_halves(Arena *scratch, const Region *r, const Live *what) {
    Live l = *what;
    l.last = ARENA_ARRAY(scratch, uint32_t, l.k->nvalue + 1u);
    l.at = 0;
    for (Op *op = r->first; op; op = op->next) {
        l.at++;
        note_uses(&l, op);
        for (int i = 0; i < op->nregion; i++)
            ir_walk(op->region[i], note_uses, &l);
    }
    uint64_t most = 0, live = 0;
    uint32_t at = 0;
    uint64_t *ends = ARENA_ARRAY(scratch, uint64_t, l.at + 2u); // halves that end at a position
    for (int i = 0; i < r->narg; i++) {
        live += halves(&l, r->arg[i]);
        ends[l.last[r->arg[i]->id]] += halves(&l, r->arg[i]);
    }
    for (Op *op = r->first; op; op = op->next) {
        at++;
        uint64_t inside = beside(&l, op);
        for (int i = 0; i < op->nregion; i++) {
            uint64_t n = live_halves(scratch, op->region[i], what);
            inside = n > inside ? n : inside;
        }
        most = live + inside > most ? live + inside : most;
        live -= ends[at];
        for (int i = 0; i < op->nres; i++) {
            uint64_t n = l.last[op->res[i]->id] > at ? halves(&l, op->res[i]) : 0;
            live += n;
            ends[l.last[op->res[i]->id]] += n;
        }
        most = live > most ? live : most;
    }
    return most;
}

uint32_t live_words(Arena *scratch, const Kernel *k, const Region *r, AxisSet along, AxisSet held) {
    Live what = {.k = k, .along = along, .held = held};
    uint64_t n = (live_halves(scratch, r, &what) + 1) / 2;
    return n > WORDS_MOST ? WORDS_MOST : n > 0 ? (uint32_t)n : 1;
}
