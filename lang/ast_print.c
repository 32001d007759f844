/* Printing statements and declarations as canonical .fk text: see ast_print.h.
 *
 * Input: a tree without errors. Output: text that parses to the same tree, spans aside. Layout:
 * four spaces a level, one statement a line, parentheses only where precedence needs them,
 * literals as they were written. EXPR_ERROR prints as `<error>`, which does not parse.
 */
#include "lang/ast_print_impl.h"

#include <inttypes.h>

enum { LINE_COLUMNS = 100 };

/* Bytes since the last line break. */
static uint32_t column(const Printer *p) {
    uint32_t at = p->text.len;
    while (at && p->text.data[at - 1] != '\n')
        at--;
    return p->text.len - at;
}

/* --- statements ----------------------------------------------------------------------------- */

static void put_stmt(Printer *p, const Stmt *stmt);

static void put_pattern(Printer *p, const Pattern *pattern) {
    if (pattern->is_tuple)
        ast_put(p, "(");
    ast_put_names(p, &pattern->names);
    if (pattern->is_tuple)
        ast_put(p, ")");
}

static void put_block(Printer *p, const Block *block) {
    if (!block->stmts.len) {
        ast_put(p, "{ }");
        return;
    }
    ast_put(p, "{");
    p->indent++;
    for (uint32_t i = 0; i < block->stmts.len; i++) {
        ast_put_line(p);
        put_stmt(p, block->stmts.data[i]);
    }
    p->indent--;
    ast_put_line(p);
    ast_put(p, "}");
}

static void put_let(Printer *p, const LetItemVec *items) {
    ast_put(p, "let ");
    for (uint32_t i = 0; i < items->len; i++) {
        const LetItem *item = &items->data[i];
        ast_put_separator(p, i);
        put_pattern(p, &item->pattern);
        ast_put(p, " = ");
        if (item->target) {
            ast_put(p, "atomic ");
            ast_put_expr(p, item->target, BIND_POSTFIX);
            ast_put(p, " ");
            ast_put(p, assign_op_text(item->op));
            ast_put(p, " ");
        }
        ast_put_expr(p, item->value, BIND_COND);
    }
    ast_put(p, ";");
}

static void put_vars(Printer *p, const char *word, const VarItemVec *items) {
    ast_put(p, word);
    for (uint32_t i = 0; i < items->len; i++) {
        const VarItem *item = &items->data[i];
        ast_put_separator(p, i);
        ast_put(p, item->name.text);
        if (item->type) {
            ast_put(p, ": ");
            ast_put_type(p, item->type);
        }
        if (item->value) {
            ast_put(p, " = ");
            ast_put_expr(p, item->value, BIND_COND);
        }
    }
    ast_put(p, ";");
}

static void put_range(Printer *p, const Range *range) {
    if (range->kind == RANGE_TILES)
        ast_put(p, "tiles(");
    if (range->low) {
        bool tight =
            ast_binding(range->low) == BIND_POSTFIX && ast_binding(range->high) == BIND_POSTFIX;
        ast_put_expr(p, range->low, BIND_COND);
        ast_put(p, tight ? ".." : " .. ");
    }
    ast_put_expr(p, range->high, BIND_COND);
    if (range->step) {
        ast_put(p, " step ");
        ast_put_expr(p, range->step, BIND_COND);
    }
    if (range->size) {
        ast_put(p, ", ");
        ast_put_expr(p, range->size, BIND_COND);
    }
    if (range->kind == RANGE_TILES)
        ast_put(p, ")");
}

static void put_binders(Printer *p, const char *word, const BinderVec *binders) {
    ast_put(p, word);
    for (uint32_t i = 0; i < binders->len; i++) {
        ast_put_separator(p, i);
        ast_put(p, binders->data[i].name.text);
        ast_put(p, " in ");
        put_range(p, &binders->data[i].range);
    }
}

static void put_if(Printer *p, const Stmt *stmt) {
    ast_put(p, "if ");
    ast_put_expr(p, stmt->if_.test, BIND_COND);
    ast_put(p, " ");
    put_block(p, stmt->if_.then);
    if (stmt->if_.otherwise) {
        ast_put(p, " else ");
        put_stmt(p, stmt->if_.otherwise);
    }
}

static void put_assign(Printer *p, const char *word, const Stmt *stmt) {
    ast_put(p, word);
    ast_put_expr(p, stmt->assign.target, BIND_POSTFIX);
    ast_put(p, " ");
    ast_put(p, assign_op_text(stmt->assign.op));
    ast_put(p, " ");
    ast_put_expr(p, stmt->assign.value, BIND_COND);
    ast_put(p, ";");
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
        ast_put(p, ";");
        return;
    case STMT_PARALLEL:
    case STMT_FOR:
        put_binders(p, stmt->kind == STMT_FOR ? "for " : "parallel ", &stmt->loop.binders);
        ast_put(p, " ");
        put_block(p, stmt->loop.body);
        return;
    case STMT_WHILE:
        ast_put(p, "while ");
        ast_put_expr(p, stmt->while_.test, BIND_COND);
        ast_put(p, " ");
        put_block(p, stmt->while_.body);
        return;
    case STMT_IF:
        put_if(p, stmt);
        return;
    case STMT_BREAK:
        ast_put(p, "break;");
        return;
    case STMT_CONTINUE:
        ast_put(p, "continue;");
        return;
    case STMT_RETURN:
        ast_put(p, "return ");
        ast_put_expr(p, stmt->value, BIND_COND);
        ast_put(p, ";");
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
        ast_put_expr(p, stmt->value, BIND_COND);
        ast_put(p, ";");
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
    ast_put(p, "///");
    if (*doc && *doc != '\n')
        ast_put(p, " ");
    for (; *doc; doc++) {
        if (*doc != '\n') {
            vec_push(p->arena, &p->text, *doc);
            continue;
        }
        ast_put_line(p);
        ast_put(p, "///");
        if (doc[1] && doc[1] != '\n')
            ast_put(p, " ");
    }
    ast_put_line(p);
}

static void put_generics(Printer *p, const GenericVec *generics) {
    if (!generics->len)
        return;
    ast_put(p, "<");
    for (uint32_t i = 0; i < generics->len; i++) {
        const Generic *generic = &generics->data[i];
        ast_put_separator(p, i);
        ast_put(p, generic->name.text);
        ast_put(p, ": ");
        ast_put(p, generic->bound.text);
        if (generic->value) {
            ast_put(p, " = ");
            ast_put_expr(p, generic->value, BIND_UNARY);
        }
    }
    ast_put(p, ">");
}

/* A default of a kernel's parameter is a unary expression; `least` is what fits. */
static void put_param(Printer *p, const Param *param, int least) {
    put_doc(p, param->doc);
    if (param->is_inout)
        ast_put(p, "inout ");
    put_pattern(p, &param->pattern);
    if (param->type) {
        ast_put(p, ": ");
        ast_put_type(p, param->type);
    }
    if (param->is_optional)
        ast_put(p, "?");
    if (param->value) {
        ast_put(p, " = ");
        ast_put_expr(p, param->value, least);
    }
}

static void put_params_lined(Printer *p, const ParamVec *params, int least, bool lines) {
    ast_put(p, "(");
    p->indent += lines;
    for (uint32_t i = 0; i < params->len; i++) {
        if (i)
            ast_put(p, lines ? "," : ", ");
        if (lines)
            ast_put_line(p);
        put_param(p, &params->data[i], least);
    }
    p->indent -= lines;
    ast_put(p, ")");
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
            ast_put(p, "-");
        ast_put_number(p, "%" PRIu64,
                       alt->integer < 0 ? 0 - (uint64_t)alt->integer : (uint64_t)alt->integer);
        return;
    case ALT_BOOL:
        ast_put(p, alt->boolean ? "true" : "false");
        return;
    case ALT_NAME:
        ast_put(p, alt->name.text);
        return;
    case ALT_CALL:
        ast_put(p, alt->name.text);
        ast_put(p, "(");
        for (uint32_t i = 0; i < alt->args.len; i++) {
            ast_put_separator(p, i);
            put_alt(p, &alt->args.data[i]);
        }
        ast_put(p, ")");
        return;
    }
}

static void put_schedule(Printer *p, const Schedule *schedule) {
    p->indent++;
    ast_put_line(p);
    ast_put(p, "schedule ");
    if (schedule->target.text) {
        ast_put(p, schedule->target.text);
        ast_put(p, " ");
    }
    ast_put(p, "{ ");
    for (uint32_t i = 0; i < schedule->entries.len; i++) {
        const ScheduleEntry *entry = &schedule->entries.data[i];
        ast_put(p, entry->name.text);
        if (entry->has_args) {
            ast_put(p, "(");
            ast_put_names(p, &entry->args);
            ast_put(p, ")");
        }
        ast_put(p, " = ");
        for (uint32_t k = 0; k < entry->alts.len; k++) {
            ast_put(p, k ? " | " : "");
            put_alt(p, &entry->alts.data[k]);
        }
        ast_put(p, "; ");
    }
    ast_put(p, "}");
    p->indent--;
}

static void put_kernel(Printer *p, const Decl *decl) {
    ast_put(p, "kernel ");
    ast_put(p, decl->name.text);
    put_generics(p, &decl->kernel.generics);
    put_params(p, &decl->kernel.params, BIND_UNARY);
    if (decl->kernel.results.len) {
        ast_put(p, " -> ");
        put_params(p, &decl->kernel.results, BIND_UNARY);
    }
    if (decl->kernel.where.len) {
        p->indent++;
        ast_put_line(p);
        ast_put(p, "where ");
        ast_put_exprs(p, &decl->kernel.where);
        p->indent--;
    }
    for (uint32_t i = 0; i < decl->kernel.schedules.len; i++)
        put_schedule(p, &decl->kernel.schedules.data[i]);
    if (decl->kernel.where.len || decl->kernel.schedules.len)
        ast_put_line(p);
    else
        ast_put(p, " ");
    put_block(p, decl->kernel.body);
}

static void put_fn(Printer *p, const Decl *decl) {
    ast_put(p, "fn ");
    ast_put(p, decl->name.text);
    put_generics(p, &decl->fn.generics);
    if (decl->fn.axes.len) {
        ast_put(p, "[");
        ast_put_names(p, &decl->fn.axes);
        ast_put(p, "]");
    }
    put_params(p, &decl->fn.params, BIND_COND);
    if (decl->fn.result) {
        ast_put(p, " -> ");
        ast_put_type(p, decl->fn.result);
    }
    if (decl->fn.body) {
        ast_put(p, " ");
        put_block(p, decl->fn.body);
        return;
    }
    ast_put(p, " = ");
    ast_put_expr(p, decl->fn.value, BIND_COND);
    ast_put(p, ";");
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
        ast_put(p, "const ");
        ast_put(p, decl->name.text);
        ast_put(p, ": ");
        ast_put_type(p, decl->constant.type);
        ast_put(p, " = ");
        ast_put_expr(p, decl->constant.value, BIND_COND);
        ast_put(p, ";");
        break;
    case DECL_IMPORT:
        ast_put(p, "import ");
        ast_put(p, decl->import.dotted);
        ast_put(p, ";");
        break;
    }
    ast_put(p, "\n");
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
            ast_put(&printer, "\n");
        put_decl(&printer, decl);
    }
    return ast_text_finish(&printer);
}
