// Gauss elimination over F2, one vector at a time (see layout_f2.h).
#include "ir/layout_f2.h"

static unsigned f2_highest(uint32_t v) {
    return 31u - (unsigned)__builtin_clz(v);
}

// Reduces v by the basis; *made collects the accepted vectors used.
static uint32_t f2_reduce(const F2Basis *basis, uint32_t v, uint32_t *made) {
    *made = 0;
    while (v != 0) {
        unsigned b = f2_highest(v);
        if (basis->vec[b] == 0) {
            return v;
        }
        v ^= basis->vec[b];
        *made ^= basis->made[b];
    }
    return 0;
}

bool f2_add(F2Basis *basis, uint32_t v) {
    uint32_t made;
    v = f2_reduce(basis, v, &made);
    if (v == 0) {
        return false;
    }
    unsigned b = f2_highest(v);
    basis->vec[b] = v;
    basis->made[b] = made ^ (UINT32_C(1) << basis->rank);
    basis->rank++;
    return true;
}

bool f2_solve(const F2Basis *basis, uint32_t v, uint32_t *made) {
    uint32_t used;
    bool inside = f2_reduce(basis, v, &used) == 0;
    if (made != 0) {
        *made = inside ? used : 0;
    }
    return inside;
}
