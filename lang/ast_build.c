/* Builders of expressions, types and patterns: see ast_build.h. */
#include "lang/ast_build.h"

Span ast_span_of(const Span *rhs, int n) {
    int first = 1, last = n;
    while (first <= n && rhs[first].begin == rhs[first].end)
        first++;
    while (last > first && rhs[last].begin == rhs[last].end)
        last--;
    if (first > n)
        return (Span){rhs[0].end, rhs[0].end};
    return (Span){rhs[first].begin, rhs[last].end};
}

/* --- lists ---------------------------------------------------------------------------------- */

/* Room for one more in a list; else a report, once for a list, and the item is left out. */
bool ast_list_has_room(ParseContext *ctx, uint32_t len, uint32_t most) {
    if (len < most)
        return true;
    if (!ctx->too_many)
        diag_add(ctx->diags, DIAG_TOO_MANY, ctx->last.span,
                 "a list with more than %u items, which is the most here", most);
    ctx->too_many = true;
    return false;
}

ExprVec ast_exprs_push(ParseContext *ctx, ExprVec list, Expr *expr) {
    if (ast_list_has_room(ctx, list.len, AST_LIST_MAX))
        vec_push(ctx->arena, &list, expr);
    return list;
}

NameVec ast_names_push(ParseContext *ctx, NameVec list, Name name) {
    if (ast_list_has_room(ctx, list.len, AST_LIST_MAX))
        vec_push(ctx->arena, &list, name);
    return list;
}

IndexEntryVec ast_entries_push(ParseContext *ctx, IndexEntryVec list, const IndexEntry *entry) {
    if (ast_list_has_room(ctx, list.len, AST_LIST_MAX))
        vec_push(ctx->arena, &list, *entry);
    return list;
}

ArgVec ast_args_push(ParseContext *ctx, ArgVec list, const Arg *arg) {
    if (ast_list_has_room(ctx, list.len, AST_LIST_MAX))
        vec_push(ctx->arena, &list, *arg);
    return list;
}

/* --- expressions ---------------------------------------------------------------------------- */

static uint32_t depth_of(const Expr *expr) {
    return expr ? expr->depth : 0;
}

static uint32_t deeper(uint32_t depth, const Expr *expr) {
    return depth_of(expr) > depth ? depth_of(expr) : depth;
}

/* A node over children whose deepest is `below` deep; an EXPR_ERROR where that is too deep. */
static Expr *expr_new(ParseContext *ctx, Span span, ExprKind kind, uint32_t below) {
    Expr *expr = ARENA_NEW(ctx->arena, Expr);
    bool too_deep = below >= AST_EXPR_DEPTH;
    if (too_deep && !ctx->too_deep) {
        Diag *diag = diag_add(ctx->diags, DIAG_TOO_DEEP, span,
                              "this expression is more than %d deep", AST_EXPR_DEPTH);
        diag_hint(ctx->diags, diag, "name a part of it with `let`");
        ctx->too_deep = true;
    }
    expr->kind = too_deep ? EXPR_ERROR : kind;
    expr->depth = (uint16_t)(too_deep ? 1 : below + 1);
    expr->span = span;
    return expr;
}

Expr *ast_leaf(ParseContext *ctx, Span span, ExprKind kind) {
    return expr_new(ctx, span, kind, 0);
}

Expr *ast_error(ParseContext *ctx, Span span) {
    return ast_leaf(ctx, span, EXPR_ERROR);
}

Expr *ast_name(ParseContext *ctx, Span span, Name module, Name name) {
    Expr *expr = ast_leaf(ctx, span, EXPR_NAME);
    expr->name.module = module;
    expr->name.name = name;
    return expr;
}

Expr *ast_int(ParseContext *ctx, Span span, uint64_t value, Str text) {
    Expr *expr = ast_leaf(ctx, span, EXPR_INT);
    expr->integer.value = value;
    expr->integer.text = text;
    return expr;
}

Expr *ast_float(ParseContext *ctx, Span span, double value, Str text) {
    Expr *expr = ast_leaf(ctx, span, EXPR_FLOAT);
    expr->real.value = value;
    expr->real.text = text;
    return expr;
}

Expr *ast_string(ParseContext *ctx, Span span, const char *data, uint32_t len) {
    Expr *expr = ast_leaf(ctx, span, EXPR_STRING);
    expr->string.data = data;
    expr->string.len = len;
    return expr;
}

Expr *ast_bool(ParseContext *ctx, Span span, bool value) {
    Expr *expr = ast_leaf(ctx, span, EXPR_BOOL);
    expr->boolean = value;
    return expr;
}

Expr *ast_unary(ParseContext *ctx, Span span, UnaryOp op, Expr *value) {
    Expr *expr = expr_new(ctx, span, EXPR_UNARY, depth_of(value));
    if (expr->kind == EXPR_UNARY) {
        expr->unary.op = op;
        expr->unary.value = value;
    }
    return expr;
}

Expr *ast_binary(ParseContext *ctx, Span span, BinaryOp op, Span op_span, Expr *left, Expr *right) {
    Expr *expr = expr_new(ctx, span, EXPR_BINARY, deeper(depth_of(left), right));
    if (expr->kind == EXPR_BINARY) {
        expr->binary.op = op;
        expr->binary.op_span = op_span;
        expr->binary.left = left;
        expr->binary.right = right;
    }
    return expr;
}

Expr *ast_cond(ParseContext *ctx, Span span, Expr *test, Expr *yes, Expr *no) {
    Expr *expr = expr_new(ctx, span, EXPR_COND, deeper(deeper(depth_of(test), yes), no));
    if (expr->kind == EXPR_COND) {
        expr->cond.test = test;
        expr->cond.yes = yes;
        expr->cond.no = no;
    }
    return expr;
}

Expr *ast_cast(ParseContext *ctx, Span span, Expr *value, TypeRef *type) {
    Expr *expr = expr_new(ctx, span, EXPR_CAST, depth_of(value));
    if (expr->kind == EXPR_CAST) {
        expr->cast.value = value;
        expr->cast.type = type;
    }
    return expr;
}

Expr *ast_index(ParseContext *ctx, Span span, Expr *base, IndexEntryVec entries) {
    uint32_t below = depth_of(base);
    for (uint32_t i = 0; i < entries.len; i++)
        below = deeper(below, entries.data[i].value);
    Expr *expr = expr_new(ctx, span, EXPR_INDEX, below);
    if (expr->kind == EXPR_INDEX) {
        expr->index.base = base;
        expr->index.entries = entries;
    }
    return expr;
}

Expr *ast_else(ParseContext *ctx, Span span, Expr *value, Expr *fill) {
    Expr *expr = expr_new(ctx, span, EXPR_ELSE, deeper(depth_of(value), fill));
    if (expr->kind == EXPR_ELSE) {
        expr->otherwise.value = value;
        expr->otherwise.fill = fill;
    }
    return expr;
}

/* The bracket entries of a call as names of axes. */
static NameVec axes_from_entries(ParseContext *ctx, IndexEntryVec entries) {
    NameVec axes = {0};
    for (uint32_t i = 0; i < entries.len; i++) {
        const IndexEntry *entry = &entries.data[i];
        const Expr *value = entry->value;
        if (entry->kind == INDEX_EXPR && value->kind == EXPR_NAME && !value->name.module.text) {
            vec_push(ctx->arena, &axes, value->name.name);
        } else if (entry->kind != INDEX_EXPR || value->kind != EXPR_ERROR) {
            Diag *diag = diag_add(ctx->diags, DIAG_SYNTAX, entry->span,
                                  "the brackets of a call hold names of axes");
            diag_hint(ctx->diags, diag, "values go into the parentheses: `sum[N](x)`");
        }
    }
    return axes;
}

Expr *ast_call(ParseContext *ctx, Span span, Expr *callee, ArgVec args) {
    uint32_t below = depth_of(callee);
    for (uint32_t i = 0; i < args.len; i++)
        below = deeper(below, args.data[i].value);
    Expr *expr = expr_new(ctx, span, EXPR_CALL, below);
    if (expr->kind != EXPR_CALL)
        return expr;
    expr->call.args = args;
    if (callee->kind == EXPR_INDEX) {
        expr->call.has_axes = true;
        expr->call.axes = axes_from_entries(ctx, callee->index.entries);
        callee = callee->index.base;
    }
    if (callee->kind != EXPR_NAME) {
        if (callee->kind != EXPR_ERROR)
            diag_add(ctx->diags, DIAG_SYNTAX, callee->span, "only a function's name can be called");
        return ast_error(ctx, span);
    }
    expr->call.callee = callee;
    return expr;
}

Expr *ast_tuple(ParseContext *ctx, Span span, ExprVec items) {
    uint32_t below = 0;
    for (uint32_t i = 0; i < items.len; i++)
        below = deeper(below, items.data[i]);
    Expr *expr = expr_new(ctx, span, EXPR_TUPLE, below);
    if (expr->kind == EXPR_TUPLE)
        expr->tuple = items;
    return expr;
}

IndexEntry *ast_entry(ParseContext *ctx, Span span, IndexKind kind, Name name, Expr *value) {
    IndexEntry *entry = ARENA_NEW(ctx->arena, IndexEntry);
    *entry = (IndexEntry){.span = span, .kind = kind, .name = name, .value = value};
    return entry;
}

Arg *ast_arg(ParseContext *ctx, Span span, Name name, Expr *value) {
    Arg *arg = ARENA_NEW(ctx->arena, Arg);
    *arg = (Arg){.span = span, .name = name, .value = value};
    return arg;
}

/* --- types and patterns --------------------------------------------------------------------- */

Name ast_word(ParseContext *ctx, Span span, const char *text) {
    return (Name){intern_cstr(ctx->interner, text), span};
}

TypeRef *ast_type(ParseContext *ctx, Name name) {
    TypeRef *type = ARENA_NEW(ctx->arena, TypeRef);
    type->span = name.span;
    type->name = name;
    type->dtype = dtype_parse_cstr(name.text);
    return type;
}

TypeRef *ast_type_dims(Span span, TypeRef *type, ExprVec dims) {
    type->span = span;
    type->has_dims = true;
    type->dims = dims;
    return type;
}

Pattern ast_pattern_name(ParseContext *ctx, Name name) {
    Pattern pattern = {.span = name.span};
    vec_push(ctx->arena, &pattern.names, name);
    return pattern;
}

Pattern ast_pattern_tuple(Span span, NameVec names) {
    return (Pattern){.span = span, .is_tuple = true, .names = names};
}
