/* The front end's own state, shared by its files.
 *
 * An expression becomes a Val: an IR value with its axes, a literal that has no type yet, a tensor
 * that is loaded only when its elements are needed, a tuple, or poison. Poison stands for something
 * that was reported; whatever is made of it is poison without another report.
 *
 * Invariants: a Val's axes contain the axes of its IR value (a `var` of type f32[m] may hold a
 * constant); an Entry below `floor` is invisible, which is what makes a `fn` closed.
 */
#ifndef FUSE_FRONTEND_FE_H
#define FUSE_FRONTEND_FE_H

#include "frontend/frontend.h"

enum {
    FN_DEPTH = 64,
    EXPR_DEPTH = 1400,       /* of expressions, with those of the fns that they call */
    VALUES_MAX = 1 << 17,    /* of a kernel */
    WORK_MAX = 1 << 19,      /* statements and expressions of a kernel, inlined ones too */
    NAMES_MAX = 2048,        /* in scope at once; also axes and tensors of a kernel */
    KERNELS_MAX = 4096,      /* instances of a file */
    TUPLE_VALUES_MAX = 1024, /* values of a tuple, those of its tuples counted */
    ARGS_MAX = 8,            /* of a builtin */
};

typedef struct SourceModule SourceModule;
struct SourceModule {
    Str dotted; /* "std.nn"; NULL: the file itself */
    Str last;   /* "nn" */
    AstFile *ast;
    VEC(SourceModule *) imports;
    const Decl **index; /* the declarations by name: open addressing, `index_size` a power of 2 */
    uint32_t index_size;
};

/* A top-level `fn` or `const` with the module whose names it sees. */
typedef struct Global {
    SourceModule *module;
    const Decl *decl;
} Global;

typedef struct Tensor {
    Mem *mem;
    Axis *axis[RANK_MAX]; /* default axis of each dim, NULL where it has none */
    Str dim[RANK_MAX];    /* its name, or NULL */
    Span span;
    const char *text[RANK_MAX]; /* the dims as written */
    bool written, read;
} Tensor;

typedef enum ValKind {
    VAL_POISON,
    VAL_LITERAL,
    VAL_VALUE,
    VAL_TENSOR,
    VAL_TUPLE,
    VAL_FN,
    VAL_STRING
} ValKind;

typedef struct Val Val;
typedef struct Choice Choice;
struct Val {
    ValKind kind;
    bool is_float;        /* LITERAL */
    const Choice *choice; /* LITERAL: `c ? 1 : 0`, which has no type yet either; else NULL */
    int64_t i;            /* LITERAL; TUPLE: values in it, those of its tuples counted */
    double f;
    Value *v; /* VALUE */
    AxisSet axes;
    Tensor *tensor;
    uint32_t n; /* TUPLE */
    Val *items;
    Global fn;
    const Expr *text; /* STRING */
};

struct Choice {
    Val test, yes, no; /* yes, no: literals */
};

typedef enum EntryKind {
    ENTRY_LET,
    ENTRY_VAR,
    ENTRY_AXIS,
    ENTRY_DIM, /* extent in val, default axis in axis (NULL until first needed) */
    ENTRY_TENSOR,
    ENTRY_TYPE,
    ENTRY_POISON /* declared by a wrong statement: its uses are not reported */
} EntryKind;

typedef struct Entry {
    EntryKind kind;
    Str name;
    Span span;
    Val val;
    Axis *axis;
    Tensor *tensor;
    DType dtype; /* TYPE, VAR */
    AxisSet axes;
    bool in_nest; /* declared inside a `parallel` */
} Entry;

/* How an axis is bound, for the race proof and for counting its elements. By axis id. */
typedef struct AxisInfo {
    Axis *axis;
    Value *lo, *hi;
    bool parallel, sequential; /* bound by `parallel`, by `for`; else one fixed window */
    Op *binder;
    uint32_t fn_level; /* made inside that many fn calls */
} AxisInfo;

/* A read or write of a tensor inside a nest. */
typedef struct Access {
    Tensor *tensor;
    Op *op;
    bool is_store, guarded;
} Access;

typedef VEC(Access) AccessVec;

/* A call that may take the 0 of a read outside for an element (doubt.c). */
typedef struct Doubt {
    const Op *load;
    const char *name; /* of what is called */
    Span span;        /* the call */
    const Value *result;
} Doubt;

typedef struct Fe {
    Arena *arena;
    Interner *interner;
    SourceMap *sources;
    Diags *diags;
    const FrontendOptions *options;
    Module *module;
    ScheduleList *schedules;
    VEC(SourceModule *) modules;
    SourceModule *prelude;
    SourceModule *main;

    /* the kernel in progress */
    const Decl *decl;
    Kernel *kernel;
    Builder b;
    SourceModule *names;       /* whose top level is seen */
    VEC(const Decl *) entered; /* the functions that were inlined, each once */
    VEC(Entry) entries;
    uint32_t floor;
    VEC(AxisInfo) axis_info;
    Op *nest;            /* the parallel that is open, or NULL */
    VEC(Value *) ragged; /* binders of the grid that are loops in it */
    Op *prologue;        /* the last op that defines a dim */
    AccessVec accesses;
    VEC(Doubt) doubts;
    VEC(Value *) guards; /* conditions that hold here: of the open `if`s of the nest */
    VEC(Entry) ended;    /* names of blocks that have ended, for reports */
    uint32_t fn_level;
    const Decl *active[FN_DEPTH]; /* fns and consts being evaluated */
    Span call_span[FN_DEPTH];     /* where each was called */
    uint32_t depth;               /* of the expression at hand */
    uint32_t work;                /* statements and expressions so far */
    bool too_large;               /* reported; nothing more of the kernel is read */
    bool is_head;                 /* of the kernel: parameters and `where` */
    bool incomplete;              /* parts of a text could not be parsed: names may be missing */
    uint32_t loops;               /* open host loops */
    bool in_index;                /* integer arithmetic is `index` */
    bool in_where;                /* arithmetic has to be exact */
    const char *indexed;          /* the dim whose index is at hand, as written; for hints */
    const Expr *outer_index;      /* the `[n]` of `x[m][n]`, for hints */
    const Expr *head_dim;         /* the dim of a parameter, an expression, that is at hand */
    Span sides[2];                /* operands of the operator at hand, for hints */
    const char *hint;
    const char *instance; /* its name, where it is not the first of its kernel */
} Fe;

/* --- names (names.c) --- */
void scope_open(Fe *fe, uint32_t *mark);
void scope_close(Fe *fe, uint32_t mark);
/* Adds a name; reports where it is in scope already (the new entry then wins). */
Entry *scope_add(Fe *fe, EntryKind kind, Name name);
void scope_let(Fe *fe, Name name, Val val);
Entry *scope_find(Fe *fe, Str name);
/* "`M`, `N`": the dims in scope; "" where there are none. */
const char *dims_in_scope(Fe *fe);
/* The fn or const that `module.name` means, false where there is none. Ambiguity is reported and
 * gives true with decl NULL. */
bool global_find(Fe *fe, Name module, Name name, Global *out);
/* Enters the module's kernels, fns and consts by name; reports what is declared twice. */
void module_index(Fe *fe, SourceModule *m);
/* The kernel, fn or const of that name, or NULL. */
const Decl *module_find(const SourceModule *m, Str name);
/* Gives the report where nothing could be hinted, else NULL. */
Diag *report_unknown(Fe *fe, Name name);
int name_distance(const char *a, const char *b); /* in edits */
/* The axis that a name means where one is expected; NULL after a report. */
Axis *axis_find(Fe *fe, Name name);
Axis *entry_axis(Fe *fe, Entry *entry);
DType type_find(Fe *fe, const TypeRef *type); /* DT_NONE after a report */
bool type_axes(Fe *fe, const TypeRef *type, AxisSet *out);
AxisInfo *axis_info(Fe *fe, const Axis *axis);
Axis *axis_by_id(Fe *fe, uint16_t id);

/* --- values (value.c) --- */
Val val_poison(void);
Val val_of(Value *v);
Val val_with_axes(Value *v, AxisSet axes);
Val val_int(int64_t i);
Val val_float(double f);
bool val_ok(Val v);
bool val_is_literal(Val v);
bool val_is_number(Val v); /* a literal that is known */
bool val_const_int(Val v, int64_t *out);
bool val_const_bool(Val v, bool *out);
DType val_dtype(Val v);              /* DT_NONE for a literal */
const char *val_text(Fe *fe, Val v); /* "f32[m, n]" */
const char *axes_text(Fe *fe, AxisSet axes);
const char *span_text(Fe *fe, Span span);
/* "x as f32", with parentheses where they are needed. */
const char *cast_text(Fe *fe, Span span, DType to);
/* Tensor to its elements; tuples, fns and strings are reported. Literals stay. */
Val val_force(Fe *fe, Val v, Span span);
/* A literal as what it is on its own: `index` or f32. */
Val val_settle(Fe *fe, Val v);
/* Converts without a check; literals become constants. NULL never. */
Value *val_cast(Fe *fe, Val v, DType to, Span span);
/* Implicit conversion where a place has a type (store, var, argument); reports what loses. */
Val val_coerce(Fe *fe, Val v, DType to, bool is_store, Span span, const char *what);
/* The IR value with all of the Val's axes really in its type. */
Value *val_spread(Fe *fe, Val v, Span span);
/* An integer as `index`; NULL after a report that `what` is one. */
Value *val_index(Fe *fe, Val v, Span span, const char *what);
DType dtype_promote(DType t);
bool val_union(Fe *fe, Val a, Val b, Span span, AxisSet *out);
/* The type in which a and b meet; literals take the other's. DT_NONE after a report. */
DType val_meet(Fe *fe, Val a, Val b, bool keep, Span span, const char *what);
void sides_set(Fe *fe, Span left, Span right); /* for hints of val_meet */

/* --- building and folding (build.c) --- */
const char *hint_take(Fe *fe);
Val build_unary(Fe *fe, OpKind op, Val x, DType type, Span span);
Val build_binary(Fe *fe, OpKind op, Val x, Val y, DType type, Span span);
Val build_cmp(Fe *fe, CmpKind kind, Val x, Val y, DType type, Span span);
Val build_select(Fe *fe, Val c, Val x, Val y, DType type, Span span);
Value *const_of(Fe *fe, DType type, Val literal);

/* --- expressions (expr.c, index.c, call.c, builtins.c) --- */
Val expr_any(Fe *fe, const Expr *e);
Val expr_value(Fe *fe, const Expr *e); /* forced; may be a literal */
/* Scalar or tile of index, or NULL after a report that `what` is an integer. */
Value *expr_integer(Fe *fe, const Expr *e, const char *what);
Value *expr_index(Fe *fe, const Expr *e);
Val expr_bool(Fe *fe, const Expr *e, const char *what);
Val op_apply(Fe *fe, BinaryOp op, Val a, Val b, Span span);
Val op_accumulate(Fe *fe, Val a, Val b, const Expr *from, Span span, bool *done);
Val index_expr(Fe *fe, const Expr *e, const Expr *fill);
Val tensor_load(Fe *fe, Tensor *t, Span span);
/* Index operands of `base[entries]`; with entries NULL the whole tensor. */
bool tensor_index(Fe *fe, Tensor *t, const Expr *e, Value **index, AxisSet *axes, Span span);
Val inside_expr(Fe *fe, const Expr *e);
/* The window of an axis: constants and dims where it is fixed, else begin and end. */
void axis_bounds(Fe *fe, Axis *axis, Value **lo, Value **hi);
Val call_expr(Fe *fe, const Expr *e);
/* Enters a fn or const; false after a report: it is active already, or calls nest too deeply. */
bool fn_enter(Fe *fe, const Decl *decl, Span span);
/* Whether its body ends in `return`, and whether its generics are types; report where not. */
bool fn_returns(Fe *fe, const Decl *fn);
bool fn_generics_known(Fe *fe, const Decl *fn);
void report_recursion(Fe *fe, const Decl *decl, Span span);
void call_unknown(Fe *fe, const Expr *callee); /* reports a callee that is no function */
/* Counts one statement or expression; false once the kernel is larger than the compiler takes,
 * which is reported the first time. */
bool kernel_has_room(Fe *fe, Span span);
void fn_leave(Fe *fe);
bool fn_was_entered(const Fe *fe, const Decl *decl);
Val fn_call(Fe *fe, Global fn, const Expr *e);
Val fn_apply(Fe *fe, Global fn, uint32_t n, const Val *args, Span span);
Val const_value(Fe *fe, Global g, Span span);
bool builtin_exists(const char *name);
const char *builtin_shape(const char *name); /* "exp(x)"; NULL: no builtin */
bool builtin_along(const char *name);        /* takes axes in brackets and one value */
/* Brackets and the number of arguments; reports where they do not fit. */
bool builtin_check_call(Fe *fe, const Expr *e);
bool builtin_has_effect(const Expr *call); /* so that its value need not be used */
Val builtin_call(Fe *fe, const Expr *e);
/* The `fn` that a builtin's name stands for; false where it is none (builtin_fn.c). */
bool builtin_fn(Fe *fe, Name name, Global *out);
void builtin_report_name(Fe *fe, Name name); /* a builtin that is no fn, without a call */
const char *builtin_nearest(const char *name, int *distance);

/* --- statements (stmt.c, control.c, store.c) --- */
void stmt_block(Fe *fe, const Block *block); /* in a scope of its own */
void stmt_list(Fe *fe, const StmtVec *stmts, uint32_t from);
void stmt_any(Fe *fe, const Stmt *s);
bool fn_refuses(Fe *fe, const Stmt *s); /* a statement that a fn may not have: reported */
void report_return(Fe *fe, const Stmt *s, bool in_fn);
void bind_pattern(Fe *fe, const Pattern *p, Val v);
void stmt_assign(Fe *fe, const Stmt *s);
void stmt_temp(Fe *fe, const VarItem *item);
bool range_bound(Fe *fe, const Expr *e, Value **out); /* a scalar of index */
/* Outside every nest: whether `v` is known when the kernel is launched; reports where not. */
bool check_launch_known(Fe *fe, const Value *v, Span span);
bool is_launch_known(const Value *v);
/* Python's `range(..)`, and what is written here: "0..N", "lo..hi step s". */
bool is_range_call(const Expr *e);
const char *range_text(Fe *fe, const Expr *e, bool step);
Axis *range_of(Fe *fe, const Range *r); /* the dim that 0..N walks, or NULL */
void stmt_store(Fe *fe, const Stmt *s, Tensor *t);
Val stmt_atomic(Fe *fe, const Expr *target, AssignOp op, const Expr *value, Span span, bool result);
Val stmt_atomic_cas(Fe *fe, const Expr *call, const char *hint);
void stmt_scatter(Fe *fe, const Stmt *s);
/* Where an axis too many and one of `have` walk the same dim; false where none do. */
bool axes_hint(Fe *fe, Diag *d, AxisSet extra, AxisSet have, const char *place);
void stmt_axis(Fe *fe, const AstBinder *b);
void stmt_parallel(Fe *fe, const Stmt *s);
void stmt_for(Fe *fe, const Stmt *s);
void stmt_while(Fe *fe, const Stmt *s);
void stmt_if(Fe *fe, const Stmt *s);
void stmt_break(Fe *fe, const Stmt *s);
/* The statements behind one that may have left the loop body. */
void stmt_rest(Fe *fe, const StmtVec *stmts, uint32_t from);
void var_set(Fe *fe, Entry *e, Val v, Span span);
/* `if`s that only compute become selects; `map`: from what they gave (flatten.c). */
void region_flatten(Fe *fe, Region *region, IrMap *map);
void if_flatten(Fe *fe, Op *op, IrMap *map);
bool region_only_computes(const Region *region); /* writes nothing and has no loops */
/* Writes out a loop that only computes, over constants, at fe->b; value[i]: what carried value i
 * becomes. False: it is no such loop, and stays. */
bool for_unroll(Fe *fe, Op *op, Value **value);

/* --- looking at the tree (walk.c) --- */
typedef VEC(Str) StrVec;
bool expr_mentions(const Expr *e, Str name);
/* The parts of an expression that are expressions; some may be NULL. */
void expr_each_part(const Expr *e, void (*fn)(void *user, const Expr *part), void *user);
void block_assigned(Arena *arena, const Block *block, StrVec *out);
void stmt_assigned(Arena *arena, const Stmt *s, StrVec *out);
bool stmt_breaks(const Stmt *s);
bool block_breaks(const Block *block);
extern const char flag_stop[], flag_skip[];
bool str_in(const StrVec *v, Str s);
/* Every name in the expression, those of functions too. */
void expr_names(Arena *arena, const Expr *e, StrVec *out);

/* --- fns that no kernel calls (check_fn.c) --- */
void fns_check(Fe *fe, const AstFile *file);

/* --- warnings (unused.c, doubt.c) --- */
void unused_check(Fe *fe, const AstFile *file);
/* `name` takes v, along these axes (elementwise: none), and gives `result`. */
void doubt_outside(Fe *fe, Val v, AxisSet along, const char *name, Span span, Val result);
void doubts_report(Fe *fe);
/* An index that is a number outside of the tensor. */
void doubt_constant(Fe *fe, const Tensor *t, Value *const *index, Span span);
/* Two whole axes, each of which indexes the dim that the other one walks. */
void doubt_swapped(Fe *fe, const Tensor *t, const Expr *e, Value *const *index, Span span);
void doubt_while(Fe *fe, const Stmt *s);
void doubt_scatter(Fe *fe, const Value *v, Value *const *index, int rank, Span target, Span span);

/* --- races (race.c) --- */
/* Proves that `store` writes no element twice and sets `det`; reports where it cannot. True where
 * the proof needs a condition around the store. */
bool race_check_store(Fe *fe, Tensor *t, Op *store, Value *const *index, AxisSet axes, Span span);
void race_check_nest(Fe *fe, uint32_t first_access);
/* The range of a binder's variable or of an axis's indices; false where it has none that is known.
 */
bool variable_range(Fe *fe, const Value *v, Value **lo, Value **hi);

/* --- kernels (kernel.c, schedule.c, defines.c) --- */
void kernel_lower(Fe *fe, const Decl *decl);
void schedule_lower(Fe *fe, const Decl *decl, const char *instance);
/* `-D kernel.NAME=v` before `-D NAME=v`. */
bool define_find(Fe *fe, Str kernel, Str name, const char **value);
/* The value of a define; false where it is no number of the type. */
bool define_integer(const char *text, DType type, int64_t *value);
bool define_float(const char *text, DType type, double *value);
void defines_check(Fe *fe, const AstFile *file);
bool schedule_value(Fe *fe, const Decl *decl, Str name, int64_t *value);
const char *schedule_word(Fe *fe, const Decl *decl, const char *name); /* NULL: not a word */

/* --- reports --- */
Diag *fe_error(Fe *fe, DiagId id, Span span, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
bool reported_at(const Fe *fe, Span span); /* something that begins in it */

#endif
