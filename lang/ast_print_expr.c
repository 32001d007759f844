/* Printing expressions and types, and the text that all printing goes to: see ast_print.h. */
#include "lang/ast_print_impl.h"

#include <inttypes.h>
#include <stdio.h>

/* --- text ----------------------------------------------------------------------------------- */

void ast_put(Printer *p, const char *text) {
    for (; *text; text++)
        vec_push(p->arena, &p->text, *text);
}

void ast_put_number(Printer *p, const char *format, uint64_t value) {
    char buffer[32];
    snprintf(buffer, sizeof buffer, format, value);
    ast_put(p, buffer);
}

void ast_put_line(Printer *p) {
    ast_put(p, "\n");
    for (uint32_t i = 0; i < p->indent; i++)
        ast_put(p, "    ");
}

void ast_put_separator(Printer *p, uint32_t i) {
    if (i)
        ast_put(p, ", ");
}

void ast_put_names(Printer *p, const NameVec *names) {
    for (uint32_t i = 0; i < names->len; i++) {
        ast_put_separator(p, i);
        ast_put(p, names->data[i].text);
    }
}

static void put_string(Printer *p, const char *data, uint32_t len) {
    ast_put(p, "\"");
    for (uint32_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)data[i];
        char buffer[8] = {(char)c};
        if (c == '\n')
            ast_put(p, "\\n");
        else if (c == '\t')
            ast_put(p, "\\t");
        else if (c == '"' || c == '\\')
            snprintf(buffer, sizeof buffer, "\\%c", c), ast_put(p, buffer);
        else if (c < 0x20 || c == 0x7f)
            snprintf(buffer, sizeof buffer, "\\%03o", c), ast_put(p, buffer);
        else
            ast_put(p, buffer);
    }
    ast_put(p, "\"");
}

/* --- expressions ---------------------------------------------------------------------------- */

void ast_put_exprs(Printer *p, const ExprVec *exprs) {
    for (uint32_t i = 0; i < exprs->len; i++) {
        ast_put_separator(p, i);
        ast_put_expr(p, exprs->data[i], BIND_COND);
    }
}

void ast_put_type(Printer *p, const TypeRef *type) {
    ast_put(p, type->name.text);
    if (type->has_dims) {
        ast_put(p, "[");
        ast_put_exprs(p, &type->dims);
        ast_put(p, "]");
    }
}

int ast_binding(const Expr *expr) {
    switch (expr->kind) {
    case EXPR_ERROR:
    case EXPR_NAME:
    case EXPR_INT:
    case EXPR_FLOAT:
    case EXPR_BOOL:
    case EXPR_INF:
    case EXPR_NAN:
    case EXPR_STRING:
    case EXPR_INDEX:
    case EXPR_CALL:
    case EXPR_TUPLE:
        return BIND_POSTFIX;
    case EXPR_UNARY:
        return BIND_UNARY;
    case EXPR_BINARY:
        return binary_op_precedence(expr->binary.op);
    case EXPR_COND:
    case EXPR_ELSE: /* a unary in the grammar, but `a * x[i] else 0` misleads */
        return BIND_COND;
    case EXPR_CAST:
        return BIND_CAST;
    }
    return BIND_POSTFIX;
}

static void put_name_expr(Printer *p, const Expr *expr) {
    if (expr->name.module.text) {
        ast_put(p, expr->name.module.text);
        ast_put(p, ".");
    }
    ast_put(p, expr->name.name.text);
}

static void put_index(Printer *p, const Expr *expr) {
    ast_put_expr(p, expr->index.base, BIND_POSTFIX);
    ast_put(p, "[");
    for (uint32_t i = 0; i < expr->index.entries.len; i++) {
        const IndexEntry *entry = &expr->index.entries.data[i];
        ast_put_separator(p, i);
        if (entry->kind == INDEX_NAMED) {
            ast_put(p, entry->name.text);
            ast_put(p, " = ");
        }
        if (entry->kind == INDEX_ALL)
            ast_put(p, ":");
        else
            ast_put_expr(p, entry->value, BIND_COND);
    }
    ast_put(p, "]");
}

static void put_call(Printer *p, const Expr *expr) {
    ast_put_expr(p, expr->call.callee, BIND_POSTFIX);
    if (expr->call.has_axes) {
        ast_put(p, "[");
        ast_put_names(p, &expr->call.axes);
        ast_put(p, "]");
    }
    ast_put(p, "(");
    for (uint32_t i = 0; i < expr->call.args.len; i++) {
        const Arg *arg = &expr->call.args.data[i];
        ast_put_separator(p, i);
        if (arg->name.text) {
            ast_put(p, arg->name.text);
            ast_put(p, " = ");
        }
        ast_put_expr(p, arg->value, BIND_COND);
    }
    ast_put(p, ")");
}

/* A float made by hand, with the digits that give the same f64 again. */
static void put_float(Printer *p, const Expr *expr) {
    char buffer[40];
    if (expr->real.text) {
        ast_put(p, expr->real.text);
        return;
    }
    snprintf(buffer, sizeof buffer, "%.16e", expr->real.value);
    ast_put(p, buffer);
}

static void put_bare(Printer *p, const Expr *expr) {
    switch (expr->kind) {
    case EXPR_ERROR:
        ast_put(p, "<error>");
        return;
    case EXPR_NAME:
        put_name_expr(p, expr);
        return;
    case EXPR_INT:
        if (expr->integer.text)
            ast_put(p, expr->integer.text);
        else
            ast_put_number(p, "%" PRIu64, expr->integer.value);
        return;
    case EXPR_FLOAT:
        put_float(p, expr);
        return;
    case EXPR_BOOL:
        ast_put(p, expr->boolean ? "true" : "false");
        return;
    case EXPR_INF:
        ast_put(p, "inf");
        return;
    case EXPR_NAN:
        ast_put(p, "nan");
        return;
    case EXPR_STRING:
        put_string(p, expr->string.data, expr->string.len);
        return;
    case EXPR_UNARY:
        ast_put(p, unary_op_text(expr->unary.op));
        ast_put_expr(p, expr->unary.value, BIND_UNARY);
        return;
    case EXPR_BINARY: {
        int binding = binary_op_precedence(expr->binary.op);
        ast_put_expr(p, expr->binary.left, binding);
        ast_put(p, " ");
        ast_put(p, binary_op_text(expr->binary.op));
        ast_put(p, " ");
        ast_put_expr(p, expr->binary.right, binding + 1);
        return;
    }
    case EXPR_COND:
        ast_put_expr(p, expr->cond.test, BIND_COND + 1);
        ast_put(p, " ? ");
        ast_put_expr(p, expr->cond.yes, BIND_COND);
        ast_put(p, " : ");
        ast_put_expr(p, expr->cond.no, BIND_COND);
        return;
    case EXPR_CAST:
        ast_put_expr(p, expr->cast.value, BIND_CAST);
        ast_put(p, " as ");
        ast_put_type(p, expr->cast.type);
        return;
    case EXPR_INDEX:
        put_index(p, expr);
        return;
    case EXPR_ELSE:
        ast_put_expr(p, expr->otherwise.value, BIND_POSTFIX);
        ast_put(p, " else ");
        ast_put_expr(p, expr->otherwise.fill, BIND_UNARY);
        return;
    case EXPR_CALL:
        put_call(p, expr);
        return;
    case EXPR_TUPLE:
        ast_put(p, "(");
        ast_put_exprs(p, &expr->tuple);
        ast_put(p, ")");
        return;
    }
}

void ast_put_expr(Printer *p, const Expr *expr, int least) {
    bool parens = ast_binding(expr) < least;
    if (parens)
        ast_put(p, "(");
    put_bare(p, expr);
    if (parens)
        ast_put(p, ")");
}

char *ast_text_finish(Printer *p) {
    vec_push(p->arena, &p->text, '\0');
    return p->text.data;
}

char *ast_print_expr(Arena *arena, const Expr *expr) {
    Printer printer = {.arena = arena};
    ast_put_expr(&printer, expr, BIND_COND);
    return ast_text_finish(&printer);
}

char *ast_print_type(Arena *arena, const TypeRef *type) {
    Printer printer = {.arena = arena};
    ast_put_type(&printer, type);
    return ast_text_finish(&printer);
}
