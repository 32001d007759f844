// How many registers the tiles along some axes ask for: the most that are live at one point.
//
// Input: a region in the order of its ops. Output: 32-bit words for each element along the axes. A
// value lives from its definition to its last use in the region, the uses of nested regions counted
// at their op; what is inside a loop adds to what lives through it. The order is the program's, and
// the code generator moves what is elementwise: this is an estimate.
#include "ir/nest.h"

typedef struct Live {
    AxisSet along;
    uint32_t *last; // by value id: position of the last use in the region, 0 = none
    uint32_t at;
} Live;

static void note_uses(void *user, Op *op) {
    Live *l = user;
    for (int i = 0; i < op->nin; i++)
        l->last[op->in[i]->id] = l->at;
}

// In halves of a word: 16-bit values are packed. Masks and constants take no register of each
// element.
static uint32_t halves(const Live *l, const Value *v) {
    if (axes_intersect(v->type.axes, l->along).n == 0 || v->type.dtype == DT_BOOL ||
        v->type.dtype == DT_INDEX)
        return 0;
    uint32_t bits = dtype_bits(v->type.dtype);
    return bits <= 16 ? 1 : bits / 16;
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
        uint32_t inside = 0;
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
