/* Builders of statements: see ast_build.h. */
#include "lang/ast_build.h"

#include <string.h>

LetItemVec ast_lets_push(ParseContext *ctx, LetItemVec list, const LetItem *item) {
    if (ast_list_has_room(ctx, list.len, AST_LIST_MAX))
        vec_push(ctx->arena, &list, *item);
    return list;
}

VarItemVec ast_vars_push(ParseContext *ctx, VarItemVec list, const VarItem *item) {
    if (ast_list_has_room(ctx, list.len, AST_LIST_MAX))
        vec_push(ctx->arena, &list, *item);
    return list;
}

BinderVec ast_binders_push(ParseContext *ctx, BinderVec list, const Binder *binder) {
    if (ast_list_has_room(ctx, list.len, AST_BINDERS_MAX))
        vec_push(ctx->arena, &list, *binder);
    return list;
}

StmtVec ast_stmts_push(ParseContext *ctx, StmtVec list, Stmt *stmt) {
    if (stmt)
        vec_push(ctx->arena, &list, stmt);
    return list;
}

/* A statement over blocks whose deepest statement is `below` deep; NULL where that is too deep. */
static Stmt *stmt_new(ParseContext *ctx, Span span, StmtKind kind, uint32_t below) {
    if (below >= AST_STMT_DEPTH) {
        if (!ctx->too_deep)
            diag_add(ctx->diags, DIAG_TOO_DEEP, (Span){span.begin, span.begin},
                     "statements are nested more than %d deep", AST_STMT_DEPTH);
        ctx->too_deep = true;
        return NULL;
    }
    Stmt *stmt = ARENA_NEW(ctx->arena, Stmt);
    stmt->kind = kind;
    stmt->depth = (uint16_t)(below + 1);
    stmt->span = span;
    return stmt;
}

static uint32_t block_depth(const Block *block) {
    uint32_t depth = 0;
    for (uint32_t i = 0; i < block->stmts.len; i++)
        if (block->stmts.data[i]->depth > depth)
            depth = block->stmts.data[i]->depth;
    return depth;
}

Block *ast_block(ParseContext *ctx, Span span, StmtVec stmts) {
    Block *block = ARENA_NEW(ctx->arena, Block);
    block->span = span;
    block->stmts = stmts;
    return block;
}

Stmt *ast_stmt_block(ParseContext *ctx, Span span, Block *block) {
    Stmt *stmt = stmt_new(ctx, span, STMT_BLOCK, block_depth(block));
    if (stmt)
        stmt->block = block;
    return stmt;
}

Stmt *ast_stmt_expr(ParseContext *ctx, Span span, Expr *expr) {
    if (expr->kind != EXPR_CALL && expr->kind != EXPR_ERROR) {
        Diag *diag = diag_add(ctx->diags, DIAG_SYNTAX, expr->span, "this statement does nothing");
        diag_hint(ctx->diags, diag, "only a call such as `assert(...)` is a statement");
        return NULL;
    }
    Stmt *stmt = stmt_new(ctx, span, STMT_EXPR, 0);
    stmt->value = expr;
    return stmt;
}

/* Reports a target that cannot be written to. */
static Expr *check_target(ParseContext *ctx, Expr *target) {
    const Expr *base = target->kind == EXPR_INDEX ? target->index.base : target;
    if (target->kind == EXPR_ERROR || base->kind == EXPR_ERROR)
        return target;
    if (base->kind == EXPR_NAME && !base->name.module.text)
        return target;
    if (!ctx->recovering_top)
        diag_add(ctx->diags, DIAG_SYNTAX, target->span,
                 "only a name or `name[...]` can be written to");
    return ast_error(ctx, target->span);
}

Stmt *ast_assign(ParseContext *ctx, Span span, StmtKind kind, Expr *target, AssignOp op,
                 Span op_span, Expr *value) {
    Stmt *stmt = stmt_new(ctx, span, kind, 0);
    stmt->assign.target = check_target(ctx, target);
    stmt->assign.op = op;
    stmt->assign.op_span = op_span;
    stmt->assign.value = value;
    return stmt;
}

Stmt *ast_let(ParseContext *ctx, Span span, LetItemVec items) {
    Stmt *stmt = stmt_new(ctx, span, STMT_LET, 0);
    stmt->let = items;
    return stmt;
}

Stmt *ast_vars(ParseContext *ctx, Span span, StmtKind kind, VarItemVec items) {
    Stmt *stmt = stmt_new(ctx, span, kind, 0);
    stmt->var = items;
    return stmt;
}

Stmt *ast_axis(ParseContext *ctx, Span span, BinderVec binders) {
    Stmt *stmt = stmt_new(ctx, span, STMT_AXIS, 0);
    stmt->axis = binders;
    return stmt;
}

Stmt *ast_loop(ParseContext *ctx, Span span, StmtKind kind, BinderVec binders, Block *body) {
    Stmt *stmt = stmt_new(ctx, span, kind, block_depth(body));
    if (stmt) {
        stmt->loop.binders = binders;
        stmt->loop.body = body;
    }
    return stmt;
}

Stmt *ast_while(ParseContext *ctx, Span span, Expr *test, Block *body) {
    Stmt *stmt = stmt_new(ctx, span, STMT_WHILE, block_depth(body));
    if (stmt) {
        stmt->while_.test = test;
        stmt->while_.body = body;
    }
    return stmt;
}

Stmt *ast_if(ParseContext *ctx, Span span, Expr *test, Block *then, Stmt *otherwise) {
    uint32_t below = block_depth(then);
    if (otherwise && otherwise->depth > below)
        below = otherwise->depth;
    Stmt *stmt = stmt_new(ctx, span, STMT_IF, below);
    if (stmt) {
        stmt->if_.test = test;
        stmt->if_.then = then;
        stmt->if_.otherwise = otherwise;
    }
    return stmt;
}

Stmt *ast_jump(ParseContext *ctx, Span span, StmtKind kind) {
    return stmt_new(ctx, span, kind, 0);
}

Stmt *ast_return(ParseContext *ctx, Span span, Expr *value) {
    Stmt *stmt = stmt_new(ctx, span, STMT_RETURN, 0);
    stmt->value = value;
    return stmt;
}

LetItem *ast_let_item(ParseContext *ctx, Span span, Pattern pattern, Expr *target, AssignOp op,
                      Expr *value) {
    LetItem *item = ARENA_NEW(ctx->arena, LetItem);
    *item = (LetItem){.span = span,
                      .pattern = pattern,
                      .target = target ? check_target(ctx, target) : NULL,
                      .op = op,
                      .value = value};
    return item;
}

VarItem *ast_var_item(ParseContext *ctx, Span span, Name name, TypeRef *type, Expr *value) {
    VarItem *item = ARENA_NEW(ctx->arena, VarItem);
    *item = (VarItem){.span = span, .name = name, .type = type, .value = value};
    return item;
}

Binder *ast_binder(ParseContext *ctx, Span span, Name name, Range range) {
    Binder *binder = ARENA_NEW(ctx->arena, Binder);
    *binder = (Binder){.span = span, .name = name, .range = range};
    return binder;
}

Range ast_range(Span span, RangeKind kind, Expr *low, Expr *high) {
    return (Range){.span = span, .kind = kind, .low = low, .high = high};
}

Range ast_range_step(ParseContext *ctx, Span span, Expr *low, Expr *high, Name word, Expr *step) {
    if (strcmp(word.text, "step") != 0)
        diag_add(ctx->diags, DIAG_SYNTAX, word.span, "unexpected `%s`, expected `step` or `{`",
                 word.text);
    Range range = ast_range(span, RANGE_SPAN, low, high);
    range.step = step;
    return range;
}

Range ast_range_tiles(Span span, Range range, Expr *size) {
    range.span = span;
    range.size = size;
    return range;
}

AssignOp ast_atomic_op(ParseContext *ctx, Name word) {
    if (strcmp(word.text, "max") == 0)
        return ASSIGN_MAX;
    if (strcmp(word.text, "min") != 0)
        diag_add(ctx->diags, DIAG_SYNTAX, word.span,
                 "unexpected `%s`, expected an assignment such as `+=` or `max=`", word.text);
    return ASSIGN_MIN;
}
