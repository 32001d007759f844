/* Printing a tree as canonical .fk text: parsing what is printed gives the same tree again. */
#ifndef FUSE_LANG_AST_PRINT_H
#define FUSE_LANG_AST_PRINT_H

#include "lang/ast.h"

/* The text of a whole file, in `arena`. */
char *ast_print_file(Arena *arena, const AstFile *file);
/* One expression or type, for messages. */
char *ast_print_expr(Arena *arena, const Expr *expr);
char *ast_print_type(Arena *arena, const TypeRef *type);

#endif
