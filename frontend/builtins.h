/* What the files of the built-in functions share: the table's columns and a call being built. */
#ifndef FUSE_FRONTEND_BUILTINS_H
#define FUSE_FRONTEND_BUILTINS_H

#include "frontend/fe.h"

typedef enum Family {
    FAMILY_MATH,
    FAMILY_POW,
    FAMILY_FMA,
    FAMILY_ABS,
    FAMILY_CHOOSE,
    FAMILY_DIVIDE,
    FAMILY_BITS,
    FAMILY_LOG2I,
    FAMILY_REDUCE,
    FAMILY_MEAN,
    FAMILY_VARIANCE,
    FAMILY_ARG,
    FAMILY_SCAN,
    FAMILY_FOLD,
    FAMILY_SORT,
    FAMILY_TOPK,
    FAMILY_EXPAND24,
    FAMILY_DOT,
    FAMILY_WINDOW,
    FAMILY_INSIDE,
    FAMILY_PRESENT,
    FAMILY_RAND,
    FAMILY_RANDBITS,
    FAMILY_BITCAST,
    FAMILY_ASM,
    FAMILY_ATOMIC_CAS,
    FAMILY_ASSERT,
    FAMILY_STATIC_ASSERT,
    FAMILY_PRINT
} Family;

typedef enum Brackets { BRACKETS_NO, BRACKETS_YES, BRACKETS_ANY } Brackets;

typedef enum BuiltinId {
#define BUILTIN(id, ...) BUILTIN_##id,
#include "lang/builtins.def"
#undef BUILTIN
    BUILTIN_COUNT
} BuiltinId;

typedef struct Builtin {
    const char *name;
    Family family;
    OpKind op;
    Brackets brackets;
    uint32_t least, most;
    const char *shape;
} Builtin;

/* A call with its arguments evaluated. */
typedef struct BuiltinCall {
    BuiltinId id;
    const Builtin *row;
    const Expr *e;
    uint32_t n;
    Val arg[ARGS_MAX];
    AxisSet axes;
    Axis *axis[AXES_MAX];
    int naxes;
    const char *hint;
    const char *precision; /* of a product; NULL: not given */
} BuiltinCall;

const Builtin *builtin_row(const char *name);        /* NULL: no builtin */
Span builtin_span(const BuiltinCall *c, uint32_t i); /* of argument i */
/* The float type that argument i computes in; DT_NONE after a report. */
DType builtin_float(Fe *fe, Val v, const BuiltinCall *c, uint32_t i);
/* Whether argument i is an integer; reports where it is not. */
bool builtin_integer(Fe *fe, BuiltinCall *c, uint32_t i);
/* The element type that argument i names; DT_NONE after a report. */
DType builtin_type(Fe *fe, const BuiltinCall *c, uint32_t i);

/* Families on bits (builtins_raw.c). */
/* Whether an argument is the name of an element type. */
bool builtin_names_type(Fe *fe, const Expr *e);
Val builtin_asm(Fe *fe, BuiltinCall *c);
Val builtin_bitcast(Fe *fe, BuiltinCall *c);
Val builtin_randbits(Fe *fe, BuiltinCall *c);
Val builtin_rand(Fe *fe, BuiltinCall *c);

/* What is printed or asserted outside every nest is a nest of one program (builtins_debug.c). */
typedef struct Program {
    bool opened;
    Builder outer;
} Program;
void program_open(Fe *fe, Program *p, Span span);
void program_close(Fe *fe, Program *p);
Val builtin_assert(Fe *fe, BuiltinCall *c, bool is_static);
Val builtin_print(Fe *fe, BuiltinCall *c);

/* Families that work along axes (builtins_along.c, builtins_sort.c). */
Val builtin_reduce(Fe *fe, BuiltinCall *c);
Val builtin_mean(Fe *fe, BuiltinCall *c, bool variance);
Val builtin_arg(Fe *fe, BuiltinCall *c);
Val builtin_scan(Fe *fe, BuiltinCall *c);
Val builtin_sort(Fe *fe, BuiltinCall *c);
Val builtin_topk(Fe *fe, BuiltinCall *c); /* and histogram */
Val builtin_expand24(Fe *fe, BuiltinCall *c);
/* The argument as a tile that has the first n of the named axes; false after a report. */
bool along_value(Fe *fe, BuiltinCall *c, int n, Val *out);
Val builtin_dot(Fe *fe, BuiltinCall *c);
/* reduce and scan with a function of the text (builtins_fold.c). */
Val builtin_fold(Fe *fe, BuiltinCall *c);
/* Whether the function of a fold leaves its identity alone, as far as trials tell; reports a
 * counterexample. `naturals`: bit i where value i is never negative (identity.c). */
bool identity_check(Fe *fe, const Op *op, uint32_t naturals, Span span);

#endif
