// Pass simplify: folds constants, shares equal expressions, drops what nobody uses, moves
// invariants out of loops.
//
// In and out: any stage. Loads of tensors that the kernel never writes count as pure (written
// arguments do not overlap others: checked at launch), so that `x[m, :]` written twice is read
// once.
//
//   %a = add %x, 0; %b = mul %y, %y; %c = mul %y, %y; for .. { %d = mul %s, 2 }
//   => %b = mul %y, %y; %d = mul %s, 2; for .. { }
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/pass.h"
#include "lang/base/vec.h"

// --- substitution as a forwarding table
// -------------------------------------------------------------------------

typedef struct Simplify {
    Kernel *k;
    Arena *scratch;
    IrMap map;        // value -> replacement
    uint8_t *written; // by Mem.id
    bool debug;       // prints and assertions stay
    bool changed;
} Simplify;

static void note_write(void *user, Op *op) {
    Simplify *s = user;
    if (!op_has(op->kind, TRAIT_WRITES))
        return;
    for (int i = 0; i < op->nmem; i++)
        s->written[op->mem[i].mem->id] = 1;
}

static bool op_is_pure(const Simplify *s, const Op *op) {
    if (op_has(op->kind, TRAIT_PURE))
        return true;
    return op->kind == OP_LOAD && !s->written[op->mem[0].mem->id];
}

static void replace(Simplify *s, Op *op, Value *with) {
    ir_map_value(&s->map, op->res[0], with);
    ir_op_unlink(op);
    op->is_dead = true;
    s->changed = true;
}

// --- fold
// --------------------------------------------------------------------------------------------------------

static bool is_integer(DType t) {
    return dtype_is_integer(t) || t == DT_BOOL;
}

static bool const_int(const Value *v, int64_t *i) {
    if (v->kind != VALUE_CONST || !is_integer(v->type.dtype))
        return false;
    *i = v->u.i;
    return true;
}

static int64_t floor_div(int64_t a, int64_t b) {
    int64_t q = a / b;
    return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

// Index arithmetic (64 bit, wraps); false where the result is not specified or not folded.
static bool fold_int(OpKind kind, int64_t a, int64_t b, int64_t *out) {
    uint64_t ua = (uint64_t)a, ub = (uint64_t)b;
    bool divides = b != 0 && !(a == INT64_MIN && b == -1);
    switch ((int)kind) {
    case OP_ADD:
        *out = (int64_t)(ua + ub);
        return true;
    case OP_SUB:
        *out = (int64_t)(ua - ub);
        return true;
    case OP_MUL:
        *out = (int64_t)(ua * ub);
        return true;
    case OP_MIN:
        *out = a < b ? a : b;
        return true;
    case OP_MAX:
        *out = a > b ? a : b;
        return true;
    case OP_DIV:
        *out = divides ? a / b : 0;
        return divides;
    case OP_REM:
        *out = divides ? a % b : 0;
        return divides;
    case OP_FLOORDIV:
        *out = divides ? floor_div(a, b) : 0;
        return divides;
    case OP_MOD:
        *out = divides ? a - floor_div(a, b) * b : 0;
        return divides;
    case OP_CDIV:
        *out = divides ? -floor_div(-a, b) : 0;
        return divides && a != INT64_MIN;
    case OP_AND:
        *out = a & b;
        return true;
    case OP_OR:
        *out = a | b;
        return true;
    case OP_XOR:
        *out = a ^ b;
        return true;
    default:
        return false;
    }
}

static bool fold_cmp(CmpKind kind, int64_t a, int64_t b) {
    switch (kind) {
    case CMP_EQ:
        return a == b;
    case CMP_NE:
        return a != b;
    case CMP_LT:
        return a < b;
    case CMP_LE:
        return a <= b;
    case CMP_GT:
        return a > b;
    case CMP_GE:
        return a >= b;
    case CMP_COUNT:
        break;
    }
    return false;
}

static bool same_axes(const Value *v, const Op *op) {
    return axes_equal(v->type.axes, op->res[0]->type.axes);
}

// x+0, x-0, x*1, x/1, x&x, min(x,x): the operand itself, for integers.
static Value *fold_identity(const Op *op) {
    Value *x = op->in[0], *y = op->in[1];
    int64_t c = 0;
    bool y_const = const_int(y, &c);
    switch ((int)op->kind) {
    case OP_ADD:
        if (value_is_int(x, 0) && same_axes(y, op))
            return y;
        return y_const && c == 0 && same_axes(x, op) ? x : NULL;
    case OP_SUB:
    case OP_SHL:
    case OP_SHR:
        return y_const && c == 0 && same_axes(x, op) ? x : NULL;
    case OP_MUL:
        if (value_is_int(x, 1) && same_axes(y, op))
            return y;
        return y_const && c == 1 && same_axes(x, op) ? x : NULL;
    case OP_DIV:
    case OP_FLOORDIV:
    case OP_CDIV:
        return y_const && c == 1 && same_axes(x, op) ? x : NULL;
    case OP_AND:
    case OP_OR:
    case OP_MIN:
    case OP_MAX:
        return x == y ? x : NULL;
    default:
        return NULL;
    }
}

static Value *fold_cast(Kernel *k, const Op *op) {
    Value *x = op->in[0];
    DType to = op->res[0]->type.dtype, from = x->type.dtype;
    if (from == to)
        return x;
    if (x->kind != VALUE_CONST)
        return NULL;
    bool wide_int = to == DT_INDEX || to == DT_I64;
    if (is_integer(from) && wide_int)
        return ir_int(k, to, x->u.i);
    if (dtype_is_float(from) && dtype_is_float(to))
        return ir_float(k, to, x->u.f);
    if (is_integer(from) && dtype_is_float(to) && llabs(x->u.i) < (1ll << 24))
        return ir_float(k, to, (double)x->u.i);
    return NULL;
}

static Value *fold_select(const Op *op) {
    int64_t c = 0;
    // The select gives the numbers of an axis registers (pass layouts), which they have not alone.
    if (op->res[0]->type.layout && op->in[1] == op->in[2] && op->in[1]->kind == VALUE_IOTA)
        return NULL;
    if (op->in[1] == op->in[2] && same_axes(op->in[1], op))
        return op->in[1];
    if (!const_int(op->in[0], &c))
        return NULL;
    Value *v = c ? op->in[1] : op->in[2];
    return same_axes(v, op) ? v : NULL;
}

static Value *op_fold(Kernel *k, const Op *op) {
    int64_t a = 0, b = 0, r = 0;
    if (op->kind == OP_CAST)
        return fold_cast(k, op);
    if (op->kind == OP_SELECT)
        return fold_select(op);
    if (op->kind == OP_PRESENT)
        return op->mem[0].mem->absent ? ir_bool(k, false)
               : !op->mem[0].mem->opt ? ir_bool(k, true)
                                      : NULL;
    if (op->kind == OP_NOT && op->res[0]->type.dtype == DT_BOOL && const_int(op->in[0], &a))
        return ir_bool(k, !a);
    if (op->nin != 2 || op->nres != 1 || !op_has(op->kind, TRAIT_ELEMENTWISE))
        return NULL;
    DType t = op->in[0]->type.dtype;
    bool is_index = t == DT_INDEX || t == DT_I64;
    if (op->kind == OP_CMP && op->in[0] == op->in[1] && is_index && op->res[0]->type.axes.n == 0)
        return ir_bool(k, op->sub == CMP_EQ || op->sub == CMP_LE || op->sub == CMP_GE);
    bool foldable = t == DT_INDEX || t == DT_I64 || t == DT_BOOL;
    if (foldable && const_int(op->in[0], &a) && const_int(op->in[1], &b)) {
        if (op->kind == OP_CMP)
            return ir_bool(k, fold_cmp((CmpKind)op->sub, a, b));
        if (fold_int(op->kind, a, b, &r))
            return t == DT_BOOL ? ir_bool(k, r != 0) : ir_int(k, t, r);
    }
    return is_integer(t) && op->kind != OP_CMP ? fold_identity(op) : NULL;
}

// --- equal expressions
// -------------------------------------------------------------------------------------------

typedef struct Entry {
    uint64_t hash;
    Op *op;
    uint32_t next; // the entry before it in its bucket, + 1; 0: none
} Entry;
// A stack (leaving a region pops what it defined) whose entries are chained by hash.
typedef struct Seen {
    VEC(Entry) entries;
    uint32_t *bucket; // the newest entry, + 1
    uint32_t mask;    // number of buckets - 1
} Seen;

static Seen seen_new(Arena *scratch, const Kernel *k) {
    uint32_t buckets = 64;
    while (buckets < k->nvalue)
        buckets *= 2;
    return (Seen){.bucket = ARENA_ARRAY(scratch, uint32_t, buckets), .mask = buckets - 1};
}

static void seen_push(Arena *scratch, Seen *s, uint64_t hash, Op *op) {
    uint32_t *bucket = &s->bucket[hash & s->mask];
    vec_push(scratch, &s->entries, ((Entry){hash, op, *bucket}));
    *bucket = s->entries.len;
}

static void seen_pop_to(Seen *s, uint32_t mark) {
    while (s->entries.len > mark) {
        Entry e = vec_pop(&s->entries);
        s->bucket[e.hash & s->mask] = e.next;
    }
}

static uint64_t mix(uint64_t h, uint64_t x) {
    h ^= x + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2);
    return h * 0xff51afd7ed558ccdull;
}

static uint64_t op_hash(const Op *op) {
    uint64_t h = mix(op->kind, op->sub);
    for (int i = 0; i < op->nin; i++)
        h = mix(h, (uintptr_t)op->in[i]);
    for (int i = 0; i < op->naxes; i++)
        h = mix(h, (uintptr_t)op->axes[i]);
    for (int i = 0; i < op->nmem; i++)
        h = mix(h, (uintptr_t)op->mem[i].mem);
    return mix(h, op->res[0]->type.dtype);
}

static bool attr_equal(const Attr *a, const Attr *b) {
    if (a->id != b->id || a->n != b->n || a->i != b->i || a->s != b->s)
        return false;
    for (int i = 0; i < a->n; i++) {
        if ((a->ints && a->ints[i] != b->ints[i]) || (a->names && a->names[i] != b->names[i]) ||
            (a->axes && a->axes[i] != b->axes[i]))
            return false;
    }
    return true;
}

static bool op_equal(const Op *a, const Op *b) {
    if (a->kind != b->kind || a->sub != b->sub || a->nin != b->nin || a->naxes != b->naxes ||
        a->nmem != b->nmem || a->nattr != b->nattr || a->has_else != b->has_else ||
        !type_equal(a->res[0]->type, b->res[0]->type))
        return false;
    for (int i = 0; i < a->nin; i++)
        if (a->in[i] != b->in[i])
            return false;
    for (int i = 0; i < a->naxes; i++)
        if (a->axes[i] != b->axes[i])
            return false;
    for (int i = 0; i < a->nmem; i++)
        if (a->mem[i].mem != b->mem[i].mem || a->mem[i].pos != b->mem[i].pos ||
            a->mem[i].nrename != 0)
            return false;
    for (int i = 0; i < a->nattr; i++)
        if (!attr_equal(&a->attr[i], &b->attr[i]))
            return false;
    return true;
}

static Op *find_equal(const Seen *seen, uint64_t hash, const Op *op) {
    for (uint32_t i = seen->bucket[hash & seen->mask]; i > 0; i = seen->entries.data[i - 1].next) {
        const Entry *e = &seen->entries.data[i - 1];
        if (e->hash == hash && op_equal(e->op, op))
            return e->op;
    }
    return NULL;
}

// begin and end depend on the binding around them, so they are shared only inside one region.
static bool op_is_shareable(const Simplify *s, const Op *op) {
    return op->nres == 1 && op->nregion == 0 && op_is_pure(s, op) && op->kind != OP_BEGIN &&
           op->kind != OP_END;
}

static void region_map_operands(Simplify *s, Op *op) {
    for (int i = 0; i < op->nin; i++)
        op->in[i] = ir_mapped(&s->map, op->in[i]);
    ir_refresh_definition(op);
}

static void region_share(Simplify *s, Region *r, Seen *seen) {
    uint32_t mark = seen->entries.len;
    for (Op *op = r->first, *next; op; op = next) {
        next = op->next;
        region_map_operands(s, op);
        Value *folded = op->nres == 1 ? op_fold(s->k, op) : NULL;
        if (folded) {
            replace(s, op, folded);
            continue;
        }
        if (op_is_shareable(s, op)) {
            uint64_t h = op_hash(op);
            Op *equal = find_equal(seen, h, op);
            if (equal) {
                replace(s, op, equal->res[0]);
                continue;
            }
            seen_push(s->scratch, seen, h, op);
        }
        // A function of elements takes nothing from outside, a launch only its arguments.
        bool closed =
            op->nregion > 0 && (op_has(op->kind, TRAIT_FUNCTION) || op->kind == OP_LAUNCH);
        Seen own = closed ? seen_new(s->scratch, s->k) : (Seen){.mask = 0};
        for (int i = 0; i < op->nregion; i++)
            region_share(s, op->region[i], closed ? &own : seen);
    }
    seen_pop_to(seen, mark);
}

// --- unused
// ------------------------------------------------------------------------------------------------------

static void note_read(void *user, Op *op) {
    uint8_t *read = user;
    int first = op->kind == OP_STORE || op->kind == OP_SCATTER || op->kind == OP_PUT ? 1 : 0;
    for (int i = first; i < op->nmem; i++)
        read[op->mem[i].mem->id] = 1;
}

static bool op_is_removable(const Op *op, const uint32_t *uses, const uint8_t *read, bool debug) {
    if (op->kind == OP_ASSERT || op->kind == OP_PRINT)
        return !debug;
    if (op->kind == OP_STORE && op->mem[0].mem->kind == MEM_TEMP)
        return !read[op->mem[0].mem->id];
    if (op->kind == OP_TEMP)
        return op->def_mem && !read[op->def_mem->id];
    if (op->kind == OP_PARALLEL)
        return op->region[0]->first == NULL;
    bool effect = !op_has(op->kind, TRAIT_PURE) && op->kind != OP_LOAD && op->kind != OP_GET;
    if (op->kind == OP_FOR || op->kind == OP_IF || op->kind == OP_WITH)
        return false; // handled by region_is_effect_free
    if (effect || op->nres == 0)
        return false;
    for (int i = 0; i < op->nres; i++)
        if (uses[op->res[i]->id])
            return false;
    return true;
}

static bool region_is_effect_free(const Region *r) {
    for (const Op *op = r->first; op; op = op->next) {
        bool fine = op_has(op->kind, TRAIT_PURE) || op->kind == OP_LOAD || op->kind == OP_YIELD ||
                    op->kind == OP_AXIS || op->kind == OP_FOR || op->kind == OP_IF ||
                    op->kind == OP_WITH;
        if (!fine)
            return false;
        for (int i = 0; i < op->nregion; i++)
            if (!region_is_effect_free(op->region[i]))
                return false;
    }
    return true;
}

static bool loop_is_unused(const Op *op, const uint32_t *uses) {
    if (op->kind != OP_FOR && op->kind != OP_IF && op->kind != OP_WITH)
        return false;
    for (int i = 0; i < op->nres; i++)
        if (uses[op->res[i]->id])
            return false;
    for (int i = 0; i < op->nregion; i++)
        if (!region_is_effect_free(op->region[i]))
            return false;
    return true;
}

static void drop_uses(const Op *op, uint32_t *uses) {
    for (int i = 0; i < op->nin; i++)
        uses[op->in[i]->id]--;
    for (int i = 0; i < op->nregion; i++)
        for (const Op *inner = op->region[i]->first; inner; inner = inner->next)
            drop_uses(inner, uses);
}

static void region_drop(Simplify *s, Region *r, uint32_t *uses, const uint8_t *read) {
    for (Op *op = r->last, *prev; op; op = prev) {
        prev = op->prev;
        for (int i = 0; i < op->nregion; i++)
            region_drop(s, op->region[i], uses, read);
        if (!op_is_removable(op, uses, read, s->debug) && !loop_is_unused(op, uses))
            continue;
        drop_uses(op, uses);
        ir_op_unlink(op);
        s->changed = true;
    }
}

// --- invariants
// --------------------------------------------------------------------------------------------------

static bool value_is_inside(const Value *v, const Region *r) {
    if (v->kind == VALUE_OP)
        return op_is_in(v->def, r);
    if (v->kind == VALUE_ARG)
        return region_contains(r, v->region);
    return false;
}

static bool binds(const Op *loop, uint16_t axis) {
    for (int i = 0; i < loop->nbinders; i++)
        if (loop->binder[i].axis && loop->binder[i].axis->id == axis)
            return true;
    return false;
}

static bool op_is_invariant(const Simplify *s, const Op *op, const Op *loop) {
    bool fixed = op->nres == 1 && op->nregion == 0 && op_is_pure(s, op) && op->kind != OP_GET;
    if (!fixed)
        return false;
    for (int i = 0; i < op->naxes; i++)
        if (binds(loop, op->axes[i]->id))
            return false;
    for (int i = 0; i < op->res[0]->type.axes.n; i++)
        if (binds(loop, op->res[0]->type.axes.id[i]))
            return false;
    for (int i = 0; i < op->nin; i++) {
        const Value *v = op->in[i];
        if (v->kind == VALUE_IOTA && binds(loop, v->axis->id))
            return false;
        if (value_is_inside(v, loop->region[0]))
            return false;
    }
    return true;
}

// Axes declared in the loop keep ops that use them there.
static bool uses_inner_axis(const Op *op, const Op *loop) {
    for (const Op *a = loop->region[0]->first; a; a = a->next)
        if (a->kind == OP_AXIS && axes_has(op->res[0]->type.axes, a->axes[0]->id))
            return true;
    return false;
}

static void region_hoist(Simplify *s, Region *r) {
    for (Op *op = r->first; op; op = op->next) {
        for (int i = 0; i < op->nregion; i++)
            region_hoist(s, op->region[i]);
        if (op->kind != OP_FOR && op->kind != OP_WHILE)
            continue;
        for (Op *inner = op->region[0]->first, *next; inner; inner = next) {
            next = inner->next;
            if (!op_is_invariant(s, inner, op) || uses_inner_axis(inner, op))
                continue;
            ir_op_move_before(inner, op);
            s->changed = true;
        }
    }
}

// --- a `for` whose carried value is never changed, an `if` on a constant: left to the front end
// and LLVM -------------

enum { ROUNDS_MAX = 8 };

bool pass_simplify(PassCtx *ctx, Kernel *k) {
    Simplify s = {.k = k, .scratch = ctx->scratch, .debug = ctx->options && ctx->options->debug};
    for (int round = 0; round < ROUNDS_MAX; round++) {
        s.changed = false;
        s.map = ir_map_new(ctx->scratch, k);
        s.written = ARENA_ARRAY(ctx->scratch, uint8_t, (size_t)k->nmem + 1);
        ir_walk(k->body, note_write, &s);
        Seen seen = seen_new(ctx->scratch, k);
        region_share(&s, k->body, &seen);
        region_hoist(&s, k->body);
        uint8_t *read = ARENA_ARRAY(ctx->scratch, uint8_t, (size_t)k->nmem + 1);
        ir_walk(k->body, note_read, read);
        uint32_t *uses = ir_count_uses(ctx->scratch, k);
        region_drop(&s, k->body, uses, read);
        if (!s.changed)
            break;
    }
    return true;
}
