// Global memory of a simulated launch: every lane's access is checked against the tensors' bytes.
#include "backend/host/sim_impl.h"

#include <string.h>

#include "ir/ir.h"
#include "lang/base/numeric.h"

static const uint8_t *lane_address(const void *base, int64_t off) {
    return (const uint8_t *)((uintptr_t)base + (uintptr_t)off);
}

void sim_global_check(SimWarp *w, int lane, const void *p, uint32_t bytes, bool aligned,
                      const char *what, uint64_t span) {
    const Sim *sim = w->sim;
    uintptr_t at = (uintptr_t)p;
    if (aligned && at % bytes)
        sim_fail(w, span, "misaligned %s: warp %d lane %d, %u bytes at an address with rest %u",
                 what, w->id, lane, bytes, (unsigned)(at % bytes));
    if (sim->unbounded || (!sim->nrange && at))
        return;
    const SimRange *near = NULL;
    for (int i = 0; i < sim->nrange; i++) {
        const SimRange *r = &sim->range[i];
        if (at >= r->lo && at + bytes <= r->hi)
            return;
        if (at >= r->lo && (!near || r->lo > near->lo))
            near = r;
    }
    if (near)
        sim_fail(w, span,
                 "global %s out of bounds: warp %d lane %d, %u bytes at offset %llu of `%s`, which "
                 "has %llu bytes",
                 what, w->id, lane, bytes, (unsigned long long)(at - near->lo), near->name,
                 (unsigned long long)(near->hi - near->lo));
    sim_fail(w, span, "global %s out of bounds: warp %d lane %d, %u bytes %s", what, w->id, lane,
             bytes, at ? "in front of every tensor" : "at a null pointer");
}

void sim_load_global(SimWarp *w, const void *base, const int64_t *off, uint32_t mask, void *dst,
                     int32_t elem_bytes, int32_t width, uint64_t span) {
    size_t size = (size_t)elem_bytes;
    for (int lane = 0; lane < SIM_LANES; lane++) {
        if (!(mask >> lane & 1))
            continue;
        const uint8_t *p = lane_address(base, off[lane]);
        sim_global_check(w, lane, p, (uint32_t)(elem_bytes * width), true, "read", span);
        for (size_t r = 0; r < (size_t)width; r++)
            memcpy((char *)dst + (r * SIM_LANES + (size_t)lane) * size, p + r * size, size);
    }
}

void sim_store_global(SimWarp *w, void *base, const int64_t *off, uint32_t mask, const void *src,
                      int32_t elem_bytes, int32_t width, uint64_t span) {
    size_t size = (size_t)elem_bytes;
    for (int lane = 0; lane < SIM_LANES; lane++) {
        if (!(mask >> lane & 1))
            continue;
        uint8_t *p = (uint8_t *)((uintptr_t)base + (uintptr_t)off[lane]);
        sim_global_check(w, lane, p, (uint32_t)(elem_bytes * width), true, "write", span);
        for (size_t r = 0; r < (size_t)width; r++)
            memcpy(p + r * size, (const char *)src + (r * SIM_LANES + (size_t)lane) * size, size);
    }
}

// --- atomics -----------------------------------------------------------------------------------

static Scalar float_combine(AtomicKind kind, Scalar a, Scalar b) {
    bool nan = scalar_is_nan(a) || scalar_is_nan(b);
    switch (kind) {
    case ATOMIC_ADD:
        return scalar_float(a.dtype, a.dtype == DT_F64 ? a.u.f + b.u.f
                                                       : (double)((float)a.u.f + (float)b.u.f));
    case ATOMIC_MAX:
        return nan ? (scalar_is_nan(a) ? a : b) : (a.u.f >= b.u.f ? a : b);
    case ATOMIC_MIN:
        return nan ? (scalar_is_nan(a) ? a : b) : (a.u.f <= b.u.f ? a : b);
    case ATOMIC_AND:
    case ATOMIC_OR:
    case ATOMIC_XOR:
    case ATOMIC_XCHG:
    case ATOMIC_CAS: // sim_cas_global
    case ATOMIC_COUNT:
        break;
    }
    return b;
}

static Scalar int_combine(AtomicKind kind, Scalar a, Scalar b) {
    bool less = a.dtype == DT_U64 ? (uint64_t)a.u.i < (uint64_t)b.u.i : a.u.i < b.u.i;
    uint64_t x = (uint64_t)a.u.i, y = (uint64_t)b.u.i, r = y;
    switch (kind) {
    case ATOMIC_ADD:
        r = x + y;
        break;
    case ATOMIC_MAX:
        r = less ? y : x;
        break;
    case ATOMIC_MIN:
        r = less ? x : y;
        break;
    case ATOMIC_AND:
        r = x & y;
        break;
    case ATOMIC_OR:
        r = x | y;
        break;
    case ATOMIC_XOR:
        r = x ^ y;
        break;
    case ATOMIC_XCHG:
    case ATOMIC_CAS:
    case ATOMIC_COUNT:
        break;
    }
    return scalar_int(a.dtype, (int64_t)r);
}

void sim_atomic_global(SimWarp *w, void *base, const int64_t *off, uint32_t mask, int32_t kind,
                       int32_t dtype, const void *value, void *old, uint64_t span) {
    DType type = (DType)dtype;
    uint32_t bytes = (uint32_t)dtype_bytes(type, 1);
    for (int lane = 0; lane < SIM_LANES; lane++) {
        if (!(mask >> lane & 1))
            continue;
        uint8_t *p = (uint8_t *)((uintptr_t)base + (uintptr_t)off[lane]);
        sim_global_check(w, lane, p, bytes, true, "atomic", span);
        Scalar a = scalar_load(type, p, 0), b = scalar_load(type, value, lane);
        if (old)
            scalar_store(old, lane, a);
        Scalar r = dtype_is_float(type) ? float_combine((AtomicKind)kind, a, b)
                                        : int_combine((AtomicKind)kind, a, b);
        scalar_store(p, 0, r);
    }
}

void sim_cas_global(SimWarp *w, void *base, const int64_t *off, uint32_t mask, int32_t bytes,
                    const void *value, void *expected_old, uint64_t span) {
    for (int lane = 0; lane < SIM_LANES; lane++) {
        uint8_t *seen = (uint8_t *)expected_old + lane * bytes, want[8];
        memcpy(want, seen, (size_t)bytes);
        memset(seen, 0, (size_t)bytes);
        if (!(mask >> lane & 1))
            continue;
        uint8_t *p = (uint8_t *)((uintptr_t)base + (uintptr_t)off[lane]);
        sim_global_check(w, lane, p, (uint32_t)bytes, true, "atomic", span);
        memcpy(seen, p, (size_t)bytes);
        if (memcmp(seen, want, (size_t)bytes) == 0)
            memcpy(p, (const uint8_t *)value + lane * bytes, (size_t)bytes);
    }
}
