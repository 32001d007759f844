/* What the files of ast_print share; nobody else includes this. */
#ifndef FUSE_LANG_AST_PRINT_IMPL_H
#define FUSE_LANG_AST_PRINT_IMPL_H

#include "lang/ast_print.h"

/* How tightly an expression binds; above the binary operators' precedences. */
enum {
    BIND_COND = 0,
    BIND_CAST = 20,
    BIND_UNARY = 21,
    BIND_POSTFIX = 22,
};

typedef struct Printer {
    Arena *arena;
    VEC(char) text;
    uint32_t indent;
} Printer;

void ast_put(Printer *p, const char *text);
void ast_put_number(Printer *p, const char *format, uint64_t value);
void ast_put_line(Printer *p); /* a line break and the indentation */
void ast_put_separator(Printer *p, uint32_t i);
void ast_put_names(Printer *p, const NameVec *names);
/* How tightly an expression binds, on the scale of binary_op_precedence and BIND_*. */
int ast_binding(const Expr *expr);
/* Prints with parentheses where it binds less tightly than `least`. */
void ast_put_expr(Printer *p, const Expr *expr, int least);
void ast_put_exprs(Printer *p, const ExprVec *exprs);
void ast_put_type(Printer *p, const TypeRef *type);
char *ast_text_finish(Printer *p);

#endif
