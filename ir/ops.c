// The op and attribute tables: every column of ops.def and attrs.def that is data.
//
// Input: the .def files. Output: op_info, attr_name, attr_type. Invariant: rows are in enum order.
#include "ir/ir.h"

#include <stddef.h>

static const char *const reduce_kinds[] = {"sum", "prod", "max", "min", "any",
                                           "all", "and",  "or",  "xor", NULL};
static const char *const cmp_kinds[] = {"eq", "ne", "lt", "le", "gt", "ge", NULL};
static const char *const arg_kinds[] = {"max", "min", NULL};
static const char *const scan_kinds[] = {"sum", "prod", "max", NULL};
static const char *const order_kinds[] = {"row", "grouped", "longest", "hilbert", NULL};
static const char *const buf_kinds[] = {"shared", "local", NULL};
static const char *const fence_kinds[] = {"async", "gpu", "cluster", NULL};
static const char *const role_kinds[] = {"producer", "consumer", NULL};
static const char *const atomic_kinds[] = {"add", "max",  "min", "and", "or",
                                           "xor", "xchg", "cas", NULL};

_Static_assert(sizeof reduce_kinds / sizeof *reduce_kinds == RED_COUNT + 1, "reduce kinds");
_Static_assert(sizeof cmp_kinds / sizeof *cmp_kinds == CMP_COUNT + 1, "cmp kinds");
_Static_assert(sizeof arg_kinds / sizeof *arg_kinds == ARG_COUNT + 1, "argreduce kinds");
_Static_assert(sizeof scan_kinds / sizeof *scan_kinds == SCAN_COUNT + 1, "scan kinds");
_Static_assert(sizeof order_kinds / sizeof *order_kinds == ORDER_COUNT + 1, "order kinds");
_Static_assert(sizeof buf_kinds / sizeof *buf_kinds == BUF_COUNT + 1, "buf kinds");
_Static_assert(sizeof fence_kinds / sizeof *fence_kinds == FENCE_COUNT + 1, "fence kinds");
_Static_assert(sizeof role_kinds / sizeof *role_kinds == ROLE_COUNT + 1, "role kinds");
_Static_assert(sizeof atomic_kinds / sizeof *atomic_kinds == ATOMIC_COUNT + 1, "atomic kinds");

#define KINDS_NONE   NULL
#define KINDS_REDUCE reduce_kinds
#define KINDS_CMP    cmp_kinds
#define KINDS_ARG    arg_kinds
#define KINDS_SCAN   scan_kinds
#define KINDS_ORDER  order_kinds
#define KINDS_BUF    buf_kinds
#define KINDS_ATOMIC atomic_kinds
#define KINDS_FENCE  fence_kinds
#define KINDS_ROLE   role_kinds

#define T_P TRAIT_PURE
#define T_E TRAIT_ELEMENTWISE
#define T_M TRAIT_MOVES
#define T_C TRAIT_COMMUTATIVE
#define T_A TRAIT_ASSOCIATIVE
#define T_R TRAIT_READS
#define T_W TRAIT_WRITES
#define T_Y TRAIT_SYNC
#define T_U TRAIT_SCALAR
#define T_G TRAIT_REGIONS
#define T_X TRAIT_EFFECT
#define T_F TRAIT_FUNCTION

#define S_T (1 << STAGE_TENSOR)
#define S_N (1 << STAGE_NESTS)
#define S_S (1 << STAGE_SCHEDULED)
#define S_P (1 << STAGE_PLACED)
#define S_H (1 << STAGE_COUNT)

#define ATTRS(...)                                                                                 \
    .nattrs = sizeof((AttrId[]){__VA_ARGS__}) / sizeof(AttrId), .attrs = {__VA_ARGS__}
#define ATTRS0 .nattrs = 0

static const OpInfo op_table[OP_COUNT] = {
#define OP(id, name, names, how, operands, bits, where, types, attributes)                         \
    [OP_##id] = {.text = name,                                                                     \
                 .kinds = KINDS_##names,                                                           \
                 .form = FORM_##how,                                                               \
                 .nin = operands,                                                                  \
                 .traits = bits,                                                                   \
                 .stages = (where) & (S_H - 1),                                                    \
                 .host = ((where)&S_H) != 0,                                                       \
                 .rule = RULE_##types,                                                             \
                 attributes},
#include "ir/ops.def"
#undef OP
};

const OpInfo *op_info(OpKind kind) {
    return &op_table[kind];
}

static const struct {
    const char *name;
    AttrType type;
    int64_t dflt;
} attr_table[ATTR_COUNT] = {
#define ATTR(id, kind, value) [ATTR_##id] = {#id, ATTR_TYPE_##kind, value},
#include "ir/attrs.def"
#undef ATTR
};

const char *attr_name(AttrId id) {
    return attr_table[id].name;
}

AttrType attr_type(AttrId id) {
    return attr_table[id].type;
}

int64_t attr_default(AttrId id) {
    return attr_table[id].dflt;
}

const char *stage_name(Stage stage) {
    static const char *const names[STAGE_COUNT] = {"tensor", "nests", "scheduled", "placed"};
    return stage < STAGE_COUNT ? names[stage] : "?";
}

OpKind reduce_combine(ReduceKind kind) {
    switch (kind) {
    case RED_SUM:
        return OP_ADD;
    case RED_PROD:
        return OP_MUL;
    case RED_MAX:
        return OP_MAX;
    case RED_MIN:
        return OP_MIN;
    case RED_ANY:
        return OP_OR;
    case RED_ALL:
    case RED_AND:
        return OP_AND;
    case RED_OR:
        return OP_OR;
    case RED_XOR:
        return OP_XOR;
    case RED_COUNT:
        break;
    }
    return OP_ADD;
}

bool atomic_reduce(AtomicKind kind, ReduceKind *reduce) {
    switch (kind) {
    case ATOMIC_ADD:
        *reduce = RED_SUM;
        return true;
    case ATOMIC_MAX:
        *reduce = RED_MAX;
        return true;
    case ATOMIC_MIN:
        *reduce = RED_MIN;
        return true;
    case ATOMIC_AND:
        *reduce = RED_AND;
        return true;
    case ATOMIC_OR:
        *reduce = RED_OR;
        return true;
    case ATOMIC_XOR:
        *reduce = RED_XOR;
        return true;
    case ATOMIC_XCHG:
    case ATOMIC_CAS:
    case ATOMIC_COUNT:
        break;
    }
    return false;
}
