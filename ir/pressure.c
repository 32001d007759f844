// How many registers the tiles along some axes ask for: the most that are live at one point.
//
// Input: a region in the order of its ops. Output: 32-bit words for each element along the axes, or
// of a thread, where tiles have layouts. A
// value lives from its definition to its last use in the region, the uses of nested regions counted
// at their op; what is inside a loop adds to what lives through it. The order is the program's, and
// the code generator moves what is elementwise: this is an estimate.
#include "ir/nest.h"

typedef struct Live {
    AxisSet along;  // none: all that have a layout
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

// In halves of a word: 16-bit values are packed. Masks and constants take no register of each
// element.
static uint32_t halves(const Live *l, const Value *v) {
    enum { DEPTH = 8 };
    bool counts =
        l->along.n > 0 ? axes_intersect(v->type.axes, l->along).n > 0 : v->type.layout != NULL;
    if (!counts || v->type.dtype == DT_BOOL || is_position(v, DEPTH))
        return 0;
    uint32_t bits = dtype_bits(v->type.dtype);
    return (bits <= 16 ? 1 : bits / 16) * (l->along.n > 0 ? 1 : layout_registers(v->type.layout));
}

// A scan has its operands, and of each result the element and the total of a block, at once, a
// gather or scatter the addresses; other ops take their operands' registers.
static uint32_t beside(const Live *l, const Op *op) {
    uint32_t n = 0;
    for (int i = 0; i < op->nres && (op->kind == OP_SCAN || op->kind == OP_SCANFN); i++)
        n += 2 * halves(l, op->res[i]);
    for (int i = 0; i < op->nmem; i++)
        for (int k = 0; k < op->mem[i].nidx; k++)
            n += halves(l, op->in[op->mem[i].first + k]);
    return n;
}

static uint32_t live_halves(Arena *scratch, const Kernel *k, const Region *r, AxisSet along) {
    Live l = {.along = along};
    l.last = ARENA_ARRAY(scratch, uint32_t, k->nvalue + 1u);
    for (Op *op = r->first; op; op = op->next) {
        l.at++;
        note_uses(&l, op);
        for (int i = 0; i < op->nregion; i++)
            ir_walk(op->region[i], note_uses, &l);
    }
    uint32_t most = 0, live = 0, at = 0;
    uint32_t *ends = ARENA_ARRAY(scratch, uint32_t, l.at + 2u); // halves that end at a position
    for (int i = 0; i < r->narg; i++) {
        live += halves(&l, r->arg[i]);
        ends[l.last[r->arg[i]->id]] += halves(&l, r->arg[i]);
    }
    for (Op *op = r->first; op; op = op->next) {
        at++;
        uint32_t inside = beside(&l, op);
        for (int i = 0; i < op->nregion; i++) {
            uint32_t n = live_halves(scratch, k, op->region[i], along);
            inside = n > inside ? n : inside;
        }
        most = live + inside > most ? live + inside : most;
        live -= ends[at];
        for (int i = 0; i < op->nres; i++) {
            uint32_t n = l.last[op->res[i]->id] > at ? halves(&l, op->res[i]) : 0;
            live += n;
            ends[l.last[op->res[i]->id]] += n;
        }
        most = live > most ? live : most;
    }
    return most;
}

uint32_t live_words(Arena *scratch, const Kernel *k, const Region *r, AxisSet along) {
    uint32_t n = (live_halves(scratch, k, r, along) + 1) / 2;
    return n > 0 ? n : 1;
}
