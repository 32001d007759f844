/* Builders of the tree: one per rule of grammar.y. Internal to lang/.
 *
 * They make nodes and check what the grammar leaves open but the text alone decides (targets of
 * assignments, what is called, depth). Lists are passed and given back by value: the parser owns
 * each once.
 */
#ifndef FUSE_LANG_AST_BUILD_H
#define FUSE_LANG_AST_BUILD_H

#include "lang/parse_context.h"

/* From the first to the last non-empty of rhs[1..n]; empty after rhs[0] where all are. */
Span ast_span_of(const Span *rhs, int n);

/* Lists. */
bool ast_list_has_room(ParseContext *ctx, uint32_t len, uint32_t most);
ExprVec ast_exprs_push(ParseContext *ctx, ExprVec list, Expr *expr);
NameVec ast_names_push(ParseContext *ctx, NameVec list, Name name);
IndexEntryVec ast_entries_push(ParseContext *ctx, IndexEntryVec list, const IndexEntry *entry);
ArgVec ast_args_push(ParseContext *ctx, ArgVec list, const Arg *arg);
LetItemVec ast_lets_push(ParseContext *ctx, LetItemVec list, const LetItem *item);
VarItemVec ast_vars_push(ParseContext *ctx, VarItemVec list, const VarItem *item);
BinderVec ast_binders_push(ParseContext *ctx, BinderVec list, const Binder *binder);
StmtVec ast_stmts_push(ParseContext *ctx, StmtVec list, Stmt *stmt); /* NULL is left out */
GenericVec ast_generics_push(ParseContext *ctx, GenericVec list, const Generic *generic);
ParamVec ast_params_push(ParseContext *ctx, ParamVec list, const Param *param);
ScheduleAltVec ast_alts_push(ParseContext *ctx, ScheduleAltVec list, const ScheduleAlt *alt);
ScheduleEntryVec ast_scheds_push(ParseContext *ctx, ScheduleEntryVec list, Span span,
                                 ScheduleEntry *entry, ScheduleAltVec alts);

/* Expressions. */
Expr *ast_leaf(ParseContext *ctx, Span span, ExprKind kind);
Expr *ast_error(ParseContext *ctx, Span span);
Expr *ast_name(ParseContext *ctx, Span span, Name module, Name name);
Expr *ast_int(ParseContext *ctx, Span span, uint64_t value, Str text);
Expr *ast_float(ParseContext *ctx, Span span, double value, Str text);
Expr *ast_string(ParseContext *ctx, Span span, const char *data, uint32_t len);
Expr *ast_bool(ParseContext *ctx, Span span, bool value);
Expr *ast_unary(ParseContext *ctx, Span span, UnaryOp op, Expr *value);
Expr *ast_binary(ParseContext *ctx, Span span, BinaryOp op, Span op_span, Expr *left, Expr *right);
Expr *ast_cond(ParseContext *ctx, Span span, Expr *test, Expr *yes, Expr *no);
Expr *ast_cast(ParseContext *ctx, Span span, Expr *value, TypeRef *type);
Expr *ast_index(ParseContext *ctx, Span span, Expr *base, IndexEntryVec entries);
Expr *ast_else(ParseContext *ctx, Span span, Expr *value, Expr *fill);
/* `f(args)`; an index as callee becomes the call's axes. */
Expr *ast_call(ParseContext *ctx, Span span, Expr *callee, ArgVec args);
Expr *ast_tuple(ParseContext *ctx, Span span, ExprVec items);
IndexEntry *ast_entry(ParseContext *ctx, Span span, IndexKind kind, Name name, Expr *value);
Arg *ast_arg(ParseContext *ctx, Span span, Name name, Expr *value);

/* Types and patterns. */
TypeRef *ast_type(ParseContext *ctx, Name name);
TypeRef *ast_type_dims(Span span, TypeRef *type, ExprVec dims);
Pattern ast_pattern_name(ParseContext *ctx, Name name);
Pattern ast_pattern_tuple(Span span, NameVec names);
Name ast_word(ParseContext *ctx, Span span, const char *text);

/* Statements. NULL where one is left out (reported). */
Block *ast_block(ParseContext *ctx, Span span, StmtVec stmts);
Stmt *ast_stmt_block(ParseContext *ctx, Span span, Block *block);
Stmt *ast_stmt_expr(ParseContext *ctx, Span span, Expr *expr);
Stmt *ast_assign(ParseContext *ctx, Span span, StmtKind kind, Expr *target, AssignOp op,
                 Span op_span, Expr *value);
Stmt *ast_let(ParseContext *ctx, Span span, LetItemVec items);
Stmt *ast_vars(ParseContext *ctx, Span span, StmtKind kind, VarItemVec items);
Stmt *ast_axis(ParseContext *ctx, Span span, BinderVec binders);
Stmt *ast_loop(ParseContext *ctx, Span span, StmtKind kind, BinderVec binders, Block *body);
Stmt *ast_while(ParseContext *ctx, Span span, Expr *test, Block *body);
Stmt *ast_if(ParseContext *ctx, Span span, Expr *test, Block *then, Stmt *otherwise);
Stmt *ast_jump(ParseContext *ctx, Span span, StmtKind kind);
Stmt *ast_return(ParseContext *ctx, Span span, Expr *value);
LetItem *ast_let_item(ParseContext *ctx, Span span, Pattern pattern, Expr *target, AssignOp op,
                      Expr *value);
VarItem *ast_var_item(ParseContext *ctx, Span span, Name name, TypeRef *type, Expr *value);
Binder *ast_binder(ParseContext *ctx, Span span, Name name, Range range);
Range ast_range(Span span, RangeKind kind, Expr *low, Expr *high);
Range ast_range_step(ParseContext *ctx, Span span, Expr *low, Expr *high, Name word, Expr *step);
Range ast_range_tiles(Span span, Range range, Expr *size);
AssignOp ast_atomic_op(ParseContext *ctx, Name word); /* max=, min= */

/* Declarations. */
Generic *ast_generic(ParseContext *ctx, Span span, Name name, GenericKind kind, Name bound,
                     Expr *value);
Param *ast_param(ParseContext *ctx, Span span, bool is_inout, Pattern pattern, TypeRef *type,
                 bool is_optional, Expr *value);
Decl *ast_clauses(ParseContext *ctx);
Decl *ast_clause_where(ParseContext *ctx, Decl *kernel, ExprVec conditions);
Decl *ast_clause_schedule(ParseContext *ctx, Decl *kernel, Span span, Name target,
                          ScheduleEntryVec entries);
Decl *ast_kernel(ParseContext *ctx, Span span, Name name, GenericVec generics, ParamVec params,
                 ParamVec results, Decl *clauses, Block *body);
Decl *ast_fn(ParseContext *ctx, Span span, Name name, GenericVec generics, NameVec axes,
             ParamVec params, TypeRef *result, Expr *value, Block *body);
Decl *ast_const(ParseContext *ctx, Span span, Name name, Name type, Expr *value);
Decl *ast_import(ParseContext *ctx, Span span, NameVec path);
ScheduleEntry *ast_sched(ParseContext *ctx, Span span, Name name, bool has_args, NameVec args);
ScheduleAlt *ast_alt_int(ParseContext *ctx, Span span, const Expr *literal, bool negative);
ScheduleAlt *ast_alt_bool(ParseContext *ctx, Span span, bool value);
ScheduleAlt *ast_alt_name(ParseContext *ctx, Span span, Name name);
ScheduleAlt *ast_alt_call(ParseContext *ctx, Span span, Name name, ScheduleAltVec args);
void ast_file_push(ParseContext *ctx, Decl *decl);

#endif
