/* What scanner, parser and tree builders share while one file is parsed. Internal to lang/. */
#ifndef FUSE_LANG_PARSE_CONTEXT_H
#define FUSE_LANG_PARSE_CONTEXT_H

#include "lang/ast.h"
#include "lang/base/diag.h"

#include <locale.h>

/* The semantic value of a token or of a nonterminal. Tokens use `name` (names, element types) and
 * `expr` (literals). */
typedef union TokenValue {
    Name name;
    Expr *expr;
    ExprVec exprs;
    NameVec names;
    TypeRef *type;
    IndexEntry *entry;
    IndexEntryVec entries;
    Arg *arg;
    ArgVec args;
    Pattern pattern;
    Range range;
    Binder *binder;
    BinderVec binders;
    LetItem *let;
    LetItemVec lets;
    VarItem *var;
    VarItemVec vars;
    AssignOp assign;
    Stmt *stmt;
    StmtVec stmts;
    Block *block;
    Generic *generic;
    GenericVec generics;
    Param *param;
    ParamVec params;
    ScheduleAlt *alt;
    ScheduleAltVec alts;
    ScheduleEntry *sched;
    ScheduleEntryVec scheds;
    Decl *decl;
    bool flag;
} TokenValue;

/* A run of `///` lines and the offset of the token that follows it. */
typedef struct Doc {
    Span span;
    const char *text;
    uint32_t before;
    bool used;
} Doc;

typedef struct Token {
    int kind;        /* TOK_... */
    bool is_virtual; /* inserted to close a bracket that the text leaves open */
    Span span;
    TokenValue value;
} Token;

/* A bracket that is open. */
typedef struct Bracket {
    int open, close; /* token kinds */
    Span span;
} Bracket;

typedef struct ParseContext {
    Arena *arena;
    Interner *interner;
    const SourceMap *sources;
    Diags *diags;
    AstFile *file;
    locale_t c_locale; /* numbers do not depend on the program's locale */

    /* Scanner (scan.c). */
    void *scanner;      /* Flex's state */
    const char *buffer; /* Flex's copy of the text */
    uint32_t base;      /* offset of its first byte */
    bool bad_utf8;      /* reported once for the file */
    VEC(Doc) docs;
    Span doc_span; /* the run of `///` lines being read; nowhere: none */
    VEC(char) doc_text;

    /* Brackets and recovery (brackets.c). */
    VEC(Bracket) brackets;
    Token held; /* the token that waits behind virtual ones */
    bool has_held;
    Token last;              /* given to the parser: the lookahead when an error is found */
    Span before;             /* span of the token before it */
    uint32_t depth_before;   /* brackets open before `last` */
    bool recovering;         /* a syntax error was found, its end not yet */
    bool broken_string;      /* the last string has no end */
    bool recovering_top;     /* the same for an error outside every bracket */
    bool too_deep, too_many; /* reported */
} ParseContext;

#endif
