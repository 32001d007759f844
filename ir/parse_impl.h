// The reader of textual IR: lexer (lex.c), references, types and attributes (parse_ref.c), ops and
// kernels (parse.c).
//
// After the first error the lexer gives TOK_EOF for ever, so every loop ends; functions then return
// harmless dummies.
#ifndef FUSE_IR_PARSE_IMPL_H
#define FUSE_IR_PARSE_IMPL_H

#include "ir/ir_impl.h"
#include "lang/base/vec.h"

typedef enum TokKind {
    TOK_EOF,
    TOK_NL,
    TOK_VAL,  // %name
    TOK_MEM,  // @name
    TOK_LAY,  // #name
    TOK_NAME, // letters, digits, _, .
    TOK_INT,
    TOK_FLOAT, // -inf too
    TOK_STR,
    TOK_DOTS, // ..
    TOK_CHAR, // one of { } ( ) [ ] < > , = : ! +
} TokKind;

typedef struct Tok {
    TokKind kind;
    char c;           // CHAR
    bool glued;       // nothing stands before it
    uint32_t at, end; // bytes of the text
    Str text;         // names without the sigil, strings unescaped
    uint64_t i;       // INT, as two's complement
    double f;         // FLOAT, INT
} Tok;

typedef struct LayoutDecl {
    Str name;
    uint32_t at, len;     // its text
    const Kernel *kernel; // for which `layout` was read
    const Layout *layout;
} LayoutDecl;

typedef VEC(Value *) ValueVec;
typedef VEC(Axis *) AxisVec;
typedef VEC(Mem *) MemVec;
typedef VEC(MemRef) MemRefVec;
typedef VEC(Binder) BinderVec;
typedef VEC(Type) TypeVec;
typedef VEC(Str) StrVec;
typedef VEC(Attr) AttrVec;
typedef VEC(int64_t) IntVec;

typedef struct Parser {
    Arena *arena;
    Arena *scratch; // lists that are copied into the module
    const char *text;
    uint32_t len, pos;
    Tok tok, ahead;
    const char *error;
    int depth;
    Module *module;
    Kernel *kernel;
    VEC(LayoutDecl) layouts;
} Parser;

// --- lex.c ---
void parse_fail(Parser *p, const Tok *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void parse_start(Parser *p);
void parse_next(Parser *p);
// The raw rest of the line from the current token (up to a newline, `;` or `//`); leaves the token
// after it.
void parse_rest_of_line(Parser *p, uint32_t *at, uint32_t *len);
bool parse_is(const Parser *p, char c);
bool parse_is_name(const Parser *p, const char *name);
bool parse_take(Parser *p, char c);
bool parse_take_name(Parser *p, const char *name);
void parse_expect(Parser *p, char c);
void parse_expect_name(Parser *p, const char *name);
// The text of a token of that kind.
Str parse_text(Parser *p, TokKind kind, const char *what);
int64_t parse_int(Parser *p, int64_t min, int64_t max);
bool parse_newlines(Parser *p); // skips them; true when there was one

// --- parse_param.c ---
void parse_params(Parser *p); // (...) of a kernel

// --- parse_ref.c ---
Value *parse_ref(Parser *p);
Axis *parse_axis(Parser *p);
Mem *parse_mem(Parser *p);
Type parse_type(Parser *p);
DType parse_dtype(Parser *p);
const Layout *parse_layout(Parser *p);
// @t[idx, ...] or @b(pos)[k = j, ...]; operands are appended to `in`.
MemRef parse_memref(Parser *p, ValueVec *in);
// {name = value, ...} of an op; `kind` may be among them.
void parse_attrs(Parser *p, const OpInfo *row, uint8_t *sub, AttrVec *out);
bool parse_has_attrs(const Parser *p);

#endif
