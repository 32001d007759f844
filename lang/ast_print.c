/* Printing a tree as canonical .fk text: see ast_print.h.
 *
 * Input: a tree without errors. Output: text that parses to the same tree, spans aside. Layout:
 * four spaces a level, one statement a line, parentheses only where precedence needs them,
 * literals as they were written. EXPR_ERROR prints as `<error>`, which does not parse.
 */
#include "lang/ast_print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* How tightly an expression binds; above the binary operators' precedences. */
enum {
    BIND_COND = 0,
    BIND_CAST = 20,
    BIND_UNARY = 21,
    BIND_POSTFIX = 22,
};

enum { LINE_COLUMNS = 100 };

typedef struct Printer {
    Arena *arena;
    VEC(char) text;
    uint32_t indent;
} Printer;

/* --- text ----------------------------------------------------------------------------------- */

static void put(Printer *p, const char *text) {
    for (; *text; text++)
        vec_push(p->arena, &p->text, *text);
}

static void put_number(Printer *p, const char *format, uint64_t value) {
    char buffer[32];
    snprintf(buffer, sizeof buffer, format, value);
    put(p, buffer);
}

static void put_line(Printer *p) {
    put(p, "\n");
    for (uint32_t i = 0; i < p->indent; i++)
        put(p, "    ");
}

/* Bytes since the last line break. */
static uint32_t column(const Printer *p) {
    uint32_t at = p->text.len;
    while (at && p->text.data[at - 1] != '\n')
        at--;
    return p->text.len - at;
}

static void put_separator(Printer *p, uint32_t i) {
    if (i)
        put(p, ", ");
}

static void put_names(Printer *p, const NameVec *names) {
    for (uint32_t i = 0; i < names->len; i++) {
        put_separator(p, i);
        put(p, names->data[i].text);
    }
}

static void put_string(Printer *p, const char *data, uint32_t len) {
    put(p, "\"");
    for (uint32_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)data[i];
        char buffer[8] = {(char)c};
        if (c == '\n')
            put(p, "\\n");
        else if (c == '\t')
            put(p, "\\t");
        else if (c == '"' || c == '\\')
            snprintf(buffer, sizeof buffer, "\\%c", c), put(p, buffer);
        else if (c < 0x20 || c == 0x7f)
            snprintf(buffer, sizeof buffer, "\\%03o", c), put(p, buffer);
        else
            put(p, buffer);
    }
    put(p, "\"");
}

/* --- expressions ---------------------------------------------------------------------------- */

static void put_expr(Printer *p, const Expr *expr, int least);

static void put_exprs(Printer *p, const ExprVec *exprs) {
    for (uint32_t i = 0; i < exprs->len; i++) {
        put_separator(p, i);
        put_expr(p, exprs->data[i], BIND_COND);
    }
}

static void put_type(Printer *p, const TypeRef *type) {
    put(p, type->name.text);
    if (type->has_dims) {
        put(p, "[");
        put_exprs(p, &type->dims);
        put(p, "]");
    }
}

static int expr_binding(const Expr *expr) {
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
        put(p, expr->name.module.text);
        put(p, ".");
    }
    put(p, expr->name.name.text);
}

static void put_index(Printer *p, const Expr *expr) {
    put_expr(p, expr->index.base, BIND_POSTFIX);
    put(p, "[");
    for (uint32_t i = 0; i < expr->index.entries.len; i++) {
        const IndexEntry *entry = &expr->index.entries.data[i];
        put_separator(p, i);
        if (entry->kind == INDEX_NAMED) {
            put(p, entry->name.text);
            put(p, " = ");
        }
        if (entry->kind == INDEX_ALL)
            put(p, ":");
        else
            put_expr(p, entry->value, BIND_COND);
    }
    put(p, "]");
}

static void put_call(Printer *p, const Expr *expr) {
    put_expr(p, expr->call.callee, BIND_POSTFIX);
    if (expr->call.has_axes) {
        put(p, "[");
        put_names(p, &expr->call.axes);
        put(p, "]");
    }
    put(p, "(");
    for (uint32_t i = 0; i < expr->call.args.len; i++) {
        const Arg *arg = &expr->call.args.data[i];
        put_separator(p, i);
        if (arg->name.text) {
            put(p, arg->name.text);
            put(p, " = ");
        }
        put_expr(p, arg->value, BIND_COND);
    }
    put(p, ")");
}

/* A float made by hand, with the digits that give the same f64 again. */
static void put_float(Printer *p, const Expr *expr) {
    char buffer[40];
    if (expr->real.text) {
        put(p, expr->real.text);
        return;
    }
    snprintf(buffer, sizeof buffer, "%.16e", expr->real.value);
    put(p, buffer);
}

static void put_bare(Printer *p, const Expr *expr) {
    switch (expr->kind) {
    case EXPR_ERROR:
        put(p, "<error>");
        return;
    case EXPR_NAME:
        put_name_expr(p, expr);
        return;
    case EXPR_INT:
        if (expr->integer.text)
            put(p, expr->integer.text);
        else
            put_number(p, "%" PRIu64, expr->integer.value);
        return;
    case EXPR_FLOAT:
        put_float(p, expr);
        return;
    case EXPR_BOOL:
        put(p, expr->boolean ? "true" : "false");
        return;
    case EXPR_INF:
        put(p, "inf");
        return;
    case EXPR_NAN:
        put(p, "nan");
        return;
    case EXPR_STRING:
        put_string(p, expr->string.data, expr->string.len);
        return;
    case EXPR_UNARY:
        put(p, unary_op_text(expr->unary.op));
        put_expr(p, expr->unary.value, BIND_UNARY);
        return;
    case EXPR_BINARY: {
        int binding = binary_op_precedence(expr->binary.op);
        put_expr(p, expr->binary.left, binding);
        put(p, " ");
        put(p, binary_op_text(expr->binary.op));
        put(p, " ");
        put_expr(p, expr->binary.right, binding + 1);
        return;
    }
    case EXPR_COND:
        put_expr(p, expr->cond.test, BIND_COND + 1);
        put(p, " ? ");
        put_expr(p, expr->cond.yes, BIND_COND);
        put(p, " : ");
        put_expr(p, expr->cond.no, BIND_COND);
        return;
    case EXPR_CAST:
        put_expr(p, expr->cast.value, BIND_CAST);
        put(p, " as ");
        put_type(p, expr->cast.type);
        return;
    case EXPR_INDEX:
        put_index(p, expr);
        return;
    case EXPR_ELSE:
        put_expr(p, expr->otherwise.value, BIND_POSTFIX);
        put(p, " else ");
        put_expr(p, expr->otherwise.fill, BIND_UNARY);
        return;
    case EXPR_CALL:
        put_call(p, expr);
        return;
    case EXPR_TUPLE:
        put(p, "(");
        put_exprs(p, &expr->tuple);
        put(p, ")");
        return;
    }
}

/* Prints with parentheses where it binds less tightly than `least`. */
static void put_expr(Printer *p, const Expr *expr, int least) {
    bool parens = expr_binding(expr) < least;
    if (parens)
        put(p, "(");
    put_bare(p, expr);
    if (parens)
        put(p, ")");
}

/* --- statements ----------------------------------------------------------------------------- */

static void put_stmt(Printer *p, const Stmt *stmt);

static void put_pattern(Printer *p, const Pattern *pattern) {
    if (pattern->is_tuple)
        put(p, "(");
    put_names(p, &pattern->names);
    if (pattern->is_tuple)
        put(p, ")");
}

static void put_block(Printer *p, const Block *block) {
    if (!block->stmts.len) {
        put(p, "{ }");
        return;
    }
    put(p, "{");
    p->indent++;
    for (uint32_t i = 0; i < block->stmts.len; i++) {
        put_line(p);
        put_stmt(p, block->stmts.data[i]);
    }
    p->indent--;
    put_line(p);
    put(p, "}");
}

static void put_let(Printer *p, const LetItemVec *items) {
    put(p, "let ");
    for (uint32_t i = 0; i < items->len; i++) {
        const LetItem *item = &items->data[i];
        put_separator(p, i);
        put_pattern(p, &item->pattern);
        put(p, " = ");
        if (item->target) {
            put(p, "atomic ");
            put_expr(p, item->target, BIND_POSTFIX);
            put(p, " ");
            put(p, assign_op_text(item->op));
            put(p, " ");
        }
        put_expr(p, item->value, BIND_COND);
    }
    put(p, ";");
}

static void put_vars(Printer *p, const char *word, const VarItemVec *items) {
    put(p, word);
    for (uint32_t i = 0; i < items->len; i++) {
        const VarItem *item = &items->data[i];
        put_separator(p, i);
        put(p, item->name.text);
        if (item->type) {
            put(p, ": ");
            put_type(p, item->type);
        }
        if (item->value) {
            put(p, " = ");
            put_expr(p, item->value, BIND_COND);
        }
    }
    put(p, ";");
}

static void put_range(Printer *p, const Range *range) {
    if (range->kind == RANGE_TILES)
        put(p, "tiles(");
    if (range->low) {
        bool tight =
            expr_binding(range->low) == BIND_POSTFIX && expr_binding(range->high) == BIND_POSTFIX;
        put_expr(p, range->low, BIND_COND);
        put(p, tight ? ".." : " .. ");
    }
    put_expr(p, range->high, BIND_COND);
    if (range->step) {
        put(p, " step ");
        put_expr(p, range->step, BIND_COND);
    }
    if (range->size) {
        put(p, ", ");
        put_expr(p, range->size, BIND_COND);
    }
    if (range->kind == RANGE_TILES)
        put(p, ")");
}

static void put_binders(Printer *p, const char *word, const BinderVec *binders) {
    put(p, word);
    for (uint32_t i = 0; i < binders->len; i++) {
        put_separator(p, i);
        put(p, binders->data[i].name.text);
        put(p, " in ");
        put_range(p, &binders->data[i].range);
    }
}

static void put_if(Printer *p, const Stmt *stmt) {
    put(p, "if ");
    put_expr(p, stmt->if_.test, BIND_COND);
    put(p, " ");
    put_block(p, stmt->if_.then);
    if (stmt->if_.otherwise) {
        put(p, " else ");
        put_stmt(p, stmt->if_.otherwise);
    }
}

static void put_assign(Printer *p, const char *word, const Stmt *stmt) {
    put(p, word);
    put_expr(p, stmt->assign.target, BIND_POSTFIX);
    put(p, " ");
    put(p, assign_op_text(stmt->assign.op));
    put(p, " ");
    put_expr(p, stmt->assign.value, BIND_COND);
    put(p, ";");
}

static void put_stmt(Printer *p, const Stmt *stmt) {
    switch (stmt->kind) {
    case STMT_LET:
        put_let(p, &stmt->let);
        return;
    case STMT_VAR:
        put_vars(p, "var ", &stmt->var);
        return;
    case STMT_TEMP:
        put_vars(p, "temp ", &stmt->var);
        return;
    case STMT_AXIS:
        put_binders(p, "axis ", &stmt->axis);
        put(p, ";");
        return;
    case STMT_PARALLEL:
    case STMT_FOR:
        put_binders(p, stmt->kind == STMT_FOR ? "for " : "parallel ", &stmt->loop.binders);
        put(p, " ");
        put_block(p, stmt->loop.body);
        return;
    case STMT_WHILE:
        put(p, "while ");
        put_expr(p, stmt->while_.test, BIND_COND);
        put(p, " ");
        put_block(p, stmt->while_.body);
        return;
    case STMT_IF:
        put_if(p, stmt);
        return;
    case STMT_BREAK:
        put(p, "break;");
        return;
    case STMT_CONTINUE:
        put(p, "continue;");
        return;
    case STMT_RETURN:
        put(p, "return ");
        put_expr(p, stmt->value, BIND_COND);
        put(p, ";");
        return;
    case STMT_ASSIGN:
        put_assign(p, "", stmt);
        return;
    case STMT_ATOMIC:
        put_assign(p, "atomic ", stmt);
        return;
    case STMT_SCATTER:
        put_assign(p, "scatter ", stmt);
        return;
    case STMT_EXPR:
        put_expr(p, stmt->value, BIND_COND);
        put(p, ";");
        return;
    case STMT_BLOCK:
        put_block(p, stmt->block);
        return;
    }
}

/* --- declarations --------------------------------------------------------------------------- */

static void put_doc(Printer *p, const char *doc) {
    if (!doc)
        return;
    put(p, "///");
    if (*doc && *doc != '\n')
        put(p, " ");
    for (; *doc; doc++) {
        if (*doc != '\n') {
            vec_push(p->arena, &p->text, *doc);
            continue;
        }
        put_line(p);
        put(p, "///");
        if (doc[1] && doc[1] != '\n')
            put(p, " ");
    }
    put_line(p);
}

static void put_generics(Printer *p, const GenericVec *generics) {
    if (!generics->len)
        return;
    put(p, "<");
    for (uint32_t i = 0; i < generics->len; i++) {
        const Generic *generic = &generics->data[i];
        put_separator(p, i);
        put(p, generic->name.text);
        put(p, ": ");
        put(p, generic->bound.text);
        if (generic->value) {
            put(p, " = ");
            put_expr(p, generic->value, BIND_UNARY);
        }
    }
    put(p, ">");
}

/* A default of a kernel's parameter is a unary expression; `least` is what fits. */
static void put_param(Printer *p, const Param *param, int least) {
    put_doc(p, param->doc);
    if (param->is_inout)
        put(p, "inout ");
    put_pattern(p, &param->pattern);
    if (param->type) {
        put(p, ": ");
        put_type(p, param->type);
    }
    if (param->is_optional)
        put(p, "?");
    if (param->value) {
        put(p, " = ");
        put_expr(p, param->value, least);
    }
}

static void put_params_lined(Printer *p, const ParamVec *params, int least, bool lines) {
    put(p, "(");
    p->indent += lines;
    for (uint32_t i = 0; i < params->len; i++) {
        if (i)
            put(p, lines ? "," : ", ");
        if (lines)
            put_line(p);
        put_param(p, &params->data[i], least);
    }
    p->indent -= lines;
    put(p, ")");
}

/* On one line, unless one of them is documented or the line gets too long. */
static void put_params(Printer *p, const ParamVec *params, int least) {
    uint32_t before = p->text.len;
    bool lines = false;
    for (uint32_t i = 0; i < params->len; i++)
        lines = lines || params->data[i].doc;
    put_params_lined(p, params, least, lines);
    if (!lines && column(p) > LINE_COLUMNS && params->len > 1) {
        p->text.len = before;
        put_params_lined(p, params, least, true);
    }
}

static void put_alt(Printer *p, const ScheduleAlt *alt) {
    switch (alt->kind) {
    case ALT_INT:
        if (alt->integer < 0)
            put(p, "-");
        put_number(p, "%" PRIu64,
                   alt->integer < 0 ? 0 - (uint64_t)alt->integer : (uint64_t)alt->integer);
        return;
    case ALT_BOOL:
        put(p, alt->boolean ? "true" : "false");
        return;
    case ALT_NAME:
        put(p, alt->name.text);
        return;
    case ALT_CALL:
        put(p, alt->name.text);
        put(p, "(");
        for (uint32_t i = 0; i < alt->args.len; i++) {
            put_separator(p, i);
            put_alt(p, &alt->args.data[i]);
        }
        put(p, ")");
        return;
    }
}

static void put_schedule(Printer *p, const Schedule *schedule) {
    p->indent++;
    put_line(p);
    put(p, "schedule ");
    if (schedule->target.text) {
        put(p, schedule->target.text);
        put(p, " ");
    }
    put(p, "{ ");
    for (uint32_t i = 0; i < schedule->entries.len; i++) {
        const ScheduleEntry *entry = &schedule->entries.data[i];
        put(p, entry->name.text);
        if (entry->has_args) {
            put(p, "(");
            put_names(p, &entry->args);
            put(p, ")");
        }
        put(p, " = ");
        for (uint32_t k = 0; k < entry->alts.len; k++) {
            put(p, k ? " | " : "");
            put_alt(p, &entry->alts.data[k]);
        }
        put(p, "; ");
    }
    put(p, "}");
    p->indent--;
}

static void put_kernel(Printer *p, const Decl *decl) {
    put(p, "kernel ");
    put(p, decl->name.text);
    put_generics(p, &decl->kernel.generics);
    put_params(p, &decl->kernel.params, BIND_UNARY);
    if (decl->kernel.results.len) {
        put(p, " -> ");
        put_params(p, &decl->kernel.results, BIND_UNARY);
    }
    if (decl->kernel.where.len) {
        p->indent++;
        put_line(p);
        put(p, "where ");
        put_exprs(p, &decl->kernel.where);
        p->indent--;
    }
    for (uint32_t i = 0; i < decl->kernel.schedules.len; i++)
        put_schedule(p, &decl->kernel.schedules.data[i]);
    if (decl->kernel.where.len || decl->kernel.schedules.len)
        put_line(p);
    else
        put(p, " ");
    put_block(p, decl->kernel.body);
}

static void put_fn(Printer *p, const Decl *decl) {
    put(p, "fn ");
    put(p, decl->name.text);
    put_generics(p, &decl->fn.generics);
    if (decl->fn.axes.len) {
        put(p, "[");
        put_names(p, &decl->fn.axes);
        put(p, "]");
    }
    put_params(p, &decl->fn.params, BIND_COND);
    if (decl->fn.result) {
        put(p, " -> ");
        put_type(p, decl->fn.result);
    }
    if (decl->fn.body) {
        put(p, " ");
        put_block(p, decl->fn.body);
        return;
    }
    put(p, " = ");
    put_expr(p, decl->fn.value, BIND_COND);
    put(p, ";");
}

static void put_decl(Printer *p, const Decl *decl) {
    put_doc(p, decl->doc);
    switch (decl->kind) {
    case DECL_KERNEL:
        put_kernel(p, decl);
        break;
    case DECL_FN:
        put_fn(p, decl);
        break;
    case DECL_CONST:
        put(p, "const ");
        put(p, decl->name.text);
        put(p, ": ");
        put_type(p, decl->constant.type);
        put(p, " = ");
        put_expr(p, decl->constant.value, BIND_COND);
        put(p, ";");
        break;
    case DECL_IMPORT:
        put(p, "import ");
        put(p, decl->import.dotted);
        put(p, ";");
        break;
    }
    put(p, "\n");
}

static char *text_finish(Printer *p) {
    vec_push(p->arena, &p->text, '\0');
    return p->text.data;
}

/* One-line declarations of one kind stand together; others are set apart by an empty line. */
static bool needs_gap(const Decl *before, const Decl *decl) {
    bool small = decl->kind == DECL_IMPORT || decl->kind == DECL_CONST;
    return !(small && before->kind == decl->kind && !decl->doc);
}

char *ast_print_file(Arena *arena, const AstFile *file) {
    Printer printer = {.arena = arena};
    for (uint32_t i = 0; i < file->decls.len; i++) {
        const Decl *decl = file->decls.data[i];
        if (i && needs_gap(file->decls.data[i - 1], decl))
            put(&printer, "\n");
        put_decl(&printer, decl);
    }
    return text_finish(&printer);
}

char *ast_print_expr(Arena *arena, const Expr *expr) {
    Printer printer = {.arena = arena};
    put_expr(&printer, expr, BIND_COND);
    return text_finish(&printer);
}

char *ast_print_type(Arena *arena, const TypeRef *type) {
    Printer printer = {.arena = arena};
    put_type(&printer, type);
    return text_finish(&printer);
}
