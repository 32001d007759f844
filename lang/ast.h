/* The abstract syntax tree of a .fk file.
 *
 * Made by lang_parse (parse.h), read by the front end and by ast_print. Every node has the Span of
 * its text and lives in the arena that was given to the parser. The tree says what was written and
 * nothing more: no names are resolved, no types are known.
 *
 * Conventions
 *   - Parentheses are not nodes; precedence is in the shape.
 *   - `sum[n](x)` is one EXPR_CALL with axes, never a call of an EXPR_INDEX.
 *   - Vectors are by value inside their node; an absent list is an empty one.
 *   - Optional children are NULL; an optional Name has text == NULL.
 *   - Where the text was wrong and has been reported, the tree has EXPR_ERROR or leaves the
 *     statement or declaration out; AstFile.has_errors is then set.
 *   - Expressions are at most AST_EXPR_DEPTH deep and statements AST_STMT_DEPTH, so that
 *     recursion over the tree is safe.
 */
#ifndef FUSE_LANG_AST_H
#define FUSE_LANG_AST_H

#include "lang/base/arena.h"
#include "lang/base/dtype.h"
#include "lang/base/intern.h"
#include "lang/base/source.h"
#include "lang/base/vec.h"

#include <stdbool.h>
#include <stdint.h>

enum { AST_EXPR_DEPTH = 1000, AST_STMT_DEPTH = 250, AST_LIST_MAX = 256, AST_BINDERS_MAX = 16 };

typedef struct AstFile AstFile;
typedef struct Decl Decl;
typedef struct Block Block;
typedef struct Stmt Stmt;
typedef struct Expr Expr;
typedef struct TypeRef TypeRef;

typedef struct Name {
    Str text; /* NULL: absent */
    Span span;
} Name;

typedef VEC(Name) NameVec;
typedef VEC(Expr *) ExprVec;
typedef VEC(Stmt *) StmtVec;
typedef VEC(Decl *) DeclVec;

/* --- operators ------------------------------------------------------------------------------ */

typedef enum UnaryOp {
#define UNARY(id, text, word) UNARY_##id,
#include "lang/operators.def"
} UnaryOp;

typedef enum BinaryOp {
    BINARY_NONE,
#define BINARY(id, text, precedence, word) BINARY_##id,
#include "lang/operators.def"
} BinaryOp;

typedef enum AssignOp {
#define ASSIGN(id, text, binary) ASSIGN_##id,
#include "lang/operators.def"
} AssignOp;

const char *unary_op_text(UnaryOp op);   /* "-" */
const char *binary_op_text(BinaryOp op); /* "<<" */
const char *assign_op_text(AssignOp op); /* "<<=" */
int binary_op_precedence(BinaryOp op);
/* ASSIGN_ADD -> BINARY_ADD; BINARY_NONE for `=`, `max=` and `min=`. */
BinaryOp assign_op_binary(AssignOp op);

/* --- types ---------------------------------------------------------------------------------- */

/* `f16[M, K]`, `T[N]`, `f32`. The same form serves tensors (dims) and tiles (axes). */
struct TypeRef {
    Span span;
    Name name;     /* as written: "f16", "T" */
    DType dtype;   /* DT_NONE: a generic's name */
    bool has_dims; /* brackets were written (they are never empty) */
    ExprVec dims;
};

/* --- expressions ---------------------------------------------------------------------------- */

typedef enum ExprKind {
    EXPR_ERROR, /* wrong text, already reported */
    EXPR_NAME,
    EXPR_INT,
    EXPR_FLOAT,
    EXPR_BOOL,
    EXPR_INF,
    EXPR_NAN,
    EXPR_STRING,
    EXPR_UNARY,
    EXPR_BINARY,
    EXPR_COND,  /* c ? a : b */
    EXPR_CAST,  /* e as T */
    EXPR_INDEX, /* x[...] */
    EXPR_ELSE,  /* x[...] else v */
    EXPR_CALL,
    EXPR_TUPLE /* two or more */
} ExprKind;

typedef enum IndexKind {
    INDEX_EXPR, /* e */
    INDEX_ALL,  /* : */
    INDEX_NAMED /* a = e */
} IndexKind;

typedef struct IndexEntry {
    Span span;
    IndexKind kind;
    Name name;   /* INDEX_NAMED */
    Expr *value; /* INDEX_EXPR, INDEX_NAMED */
} IndexEntry;

typedef struct Arg {
    Span span;
    Name name; /* absent for a positional argument */
    Expr *value;
} Arg;

typedef VEC(IndexEntry) IndexEntryVec;
typedef VEC(Arg) ArgVec;

struct Expr {
    ExprKind kind;
    uint16_t depth; /* 1 for a leaf */
    Span span;
    union {
        struct {
            Name module; /* absent, or `nn` of `nn.softmax` */
            Name name;
        } name;
        struct {
            uint64_t value;
            Str text; /* as written, for printing; may be NULL */
        } integer;
        struct {
            double value;
            Str text; /* as written: a use in another type rounds from the text */
        } real;
        bool boolean;
        struct {
            const char *data; /* escapes replaced; NUL-terminated, may contain NULs */
            uint32_t len;
        } string;
        struct {
            UnaryOp op;
            Expr *value;
        } unary;
        struct {
            BinaryOp op;
            Span op_span;
            Expr *left, *right;
        } binary;
        struct {
            Expr *test, *yes, *no;
        } cond;
        struct {
            Expr *value;
            TypeRef *type; /* an element type: no dims */
        } cast;
        struct {
            Expr *base;
            IndexEntryVec entries; /* at least one */
        } index;
        struct {
            Expr *value, *fill;
        } otherwise; /* EXPR_ELSE */
        struct {
            Expr *callee; /* always EXPR_NAME */
            bool has_axes;
            NameVec axes; /* in the brackets */
            ArgVec args;
        } call;
        ExprVec tuple;
    };
};

/* --- statements ----------------------------------------------------------------------------- */

typedef enum StmtKind {
    STMT_LET,
    STMT_VAR,
    STMT_AXIS,
    STMT_TEMP,
    STMT_PARALLEL,
    STMT_FOR,
    STMT_WHILE,
    STMT_IF,
    STMT_BREAK,
    STMT_CONTINUE,
    STMT_RETURN,
    STMT_ASSIGN, /* a store where the target is a tensor */
    STMT_ATOMIC,
    STMT_SCATTER,
    STMT_EXPR, /* a call */
    STMT_BLOCK
} StmtKind;

/* `x`, or `(a, b)` with at least one name. */
typedef struct Pattern {
    Span span;
    bool is_tuple;
    NameVec names; /* exactly one where !is_tuple */
} Pattern;

/* `pattern = value`, or with `target`: `pattern = atomic target op value`. */
typedef struct LetItem {
    Span span;
    Pattern pattern;
    Expr *target; /* NULL: a plain let */
    AssignOp op;
    Expr *value;
} LetItem;

/* One of `var x: f32[m] = e, ...` or `temp h: f32[M] = e, ...`. */
typedef struct VarItem {
    Span span;
    Name name;
    TypeRef *type; /* NULL: not written (var only) */
    Expr *value;   /* NULL: not written (temp only) */
} VarItem;

typedef enum RangeKind {
    RANGE_WHOLE, /* e         in `axis u in 2`, `axis j in i`; elsewhere for the front end to refuse
                  */
    RANGE_SPAN,  /* lo..hi [step s] */
    RANGE_TILES  /* tiles(hi), tiles(lo..hi), each with `, size` or without */
} RangeKind;

typedef struct Range {
    Span span;
    RangeKind kind;
    Expr *low;  /* NULL: not written, 0 */
    Expr *high; /* the one expression of RANGE_WHOLE and of `tiles(N)` */
    Expr *step; /* RANGE_SPAN: NULL is 1 */
    Expr *size; /* RANGE_TILES: NULL is the schedule's */
} Range;

/* `x in range` */
typedef struct Binder {
    Span span;
    Name name;
    Range range;
} Binder;

typedef VEC(LetItem) LetItemVec;
typedef VEC(VarItem) VarItemVec;
typedef VEC(Binder) BinderVec;

struct Block {
    Span span; /* with the braces; .end - 1 is the closing one */
    StmtVec stmts;
};

struct Stmt {
    StmtKind kind;
    uint16_t depth; /* 1 where it has no block */
    Span span;
    union {
        LetItemVec let;
        VarItemVec var; /* STMT_VAR, STMT_TEMP */
        BinderVec axis;
        struct {
            BinderVec binders;
            Block *body;
        } loop; /* STMT_PARALLEL, STMT_FOR */
        struct {
            Expr *test;
            Block *body;
        } while_;
        struct {
            Expr *test;
            Block *then;
            Stmt *otherwise; /* NULL, STMT_BLOCK or STMT_IF */
        } if_;
        struct {
            Expr *target; /* EXPR_NAME or EXPR_INDEX (EXPR_ERROR) */
            AssignOp op;  /* ASSIGN_SET for scatter */
            Span op_span;
            Expr *value;
        } assign;    /* STMT_ASSIGN, STMT_ATOMIC, STMT_SCATTER */
        Expr *value; /* STMT_RETURN, STMT_EXPR */
        Block *block;
    };
};

/* --- declarations --------------------------------------------------------------------------- */

typedef enum GenericKind {
    GENERIC_TYPE,  /* T: float        `bound` names a type class */
    GENERIC_VALUE, /* D: i32 = 64     `dtype` */
    GENERIC_FN     /* f: fn */
} GenericKind;

typedef struct Generic {
    Span span;
    Name name;
    GenericKind kind;
    Name bound;  /* the class or type as written; "fn" for GENERIC_FN */
    DType dtype; /* GENERIC_VALUE */
    Expr *value; /* default, or NULL */
} Generic;

/* A parameter or result of a kernel, or a parameter of a fn. */
typedef struct Param {
    Span span;
    const char *doc; /* text of the `///` lines before it, or NULL */
    bool is_inout;
    Pattern pattern; /* a tuple only in a fn */
    TypeRef *type;   /* NULL: not written (fn only) */
    bool is_optional;
    Expr *value; /* default, or NULL */
} Param;

typedef VEC(Generic) GenericVec;
typedef VEC(Param) ParamVec;

/* One value of a schedule entry: `128`, `-1`, `true`, `stream`, `grouped(8)`. */
typedef enum AltKind { ALT_INT, ALT_BOOL, ALT_NAME, ALT_CALL } AltKind;

typedef struct ScheduleAlt ScheduleAlt;
typedef VEC(ScheduleAlt) ScheduleAltVec;
struct ScheduleAlt {
    Span span;
    AltKind kind;
    int64_t integer; /* ALT_INT */
    bool boolean;    /* ALT_BOOL */
    Name name;       /* ALT_NAME, ALT_CALL */
    ScheduleAltVec args;
};

/* `name = a | b;` or `name(x, y) = a;` */
typedef struct ScheduleEntry {
    Span span;
    Name name;
    bool has_args;
    NameVec args;
    ScheduleAltVec alts; /* at least one */
} ScheduleEntry;

typedef VEC(ScheduleEntry) ScheduleEntryVec;

typedef struct Schedule {
    Span span;
    Name target; /* absent: every target */
    ScheduleEntryVec entries;
} Schedule;

typedef VEC(Schedule) ScheduleVec;

typedef enum DeclKind { DECL_KERNEL, DECL_FN, DECL_CONST, DECL_IMPORT } DeclKind;

struct Decl {
    DeclKind kind;
    Span span;
    const char *doc; /* text of the `///` lines before it, or NULL */
    Name name;       /* of an import: its last part */
    union {
        struct {
            GenericVec generics;
            ParamVec params, results;
            ExprVec where;
            ScheduleVec schedules;
            Block *body;
        } kernel;
        struct {
            GenericVec generics;
            NameVec axes;
            ParamVec params;
            TypeRef *result; /* NULL: not written */
            Expr *value;     /* `= value;`, or NULL with a body */
            Block *body;
        } fn;
        struct {
            TypeRef *type; /* an element type */
            Expr *value;
        } constant;
        struct {
            NameVec path; /* std, nn */
            Str dotted;   /* "std.nn" */
        } import;
    };
};

struct AstFile {
    FileId file;
    Span span;
    DeclVec decls; /* in the order of the text */
    bool has_errors;
};

/* The name of a parameter that is no tuple. */
static inline Name param_name(const Param *param) {
    return param->pattern.names.data[0];
}

#endif
