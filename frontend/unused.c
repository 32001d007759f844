/* Warnings about names that nothing uses: lets, vars, temps, parameters, axes.
 *
 * Input: the tree of one declaration; output: warnings. Only the text counts, not what an instance
 * of the generics makes of it: a name that is used in a side that `if` drops is used. Names that
 * begin with `_` are meant to be unused, and so is a part of a tuple.
 */
#include <string.h>

#include "frontend/fe.h"

/* --- what reads a name ---------------------------------------------------------------------- */

static bool type_reads(const TypeRef *type, Str name) {
    for (uint32_t i = 0; type && i < type->dims.len; i++)
        if (expr_mentions(type->dims.data[i], name))
            return true;
    return type && type->name.text == name;
}

static bool range_reads(const Range *r, Str name) {
    return expr_mentions(r->low, name) || expr_mentions(r->high, name) ||
           expr_mentions(r->step, name) || expr_mentions(r->size, name);
}

static bool binders_read(const BinderVec *v, uint32_t from, Str name) {
    for (uint32_t i = from; i < v->len; i++)
        if (range_reads(&v->data[i].range, name))
            return true;
    return false;
}

/* The index of what is written, not its name. */
static bool target_reads(const Expr *target, Str name) {
    if (!target || target->kind == EXPR_NAME)
        return false;
    if (target->kind != EXPR_INDEX)
        return expr_mentions(target, name);
    for (uint32_t i = 0; i < target->index.entries.len; i++) {
        const IndexEntry *entry = &target->index.entries.data[i];
        if (entry->name.text == name || expr_mentions(entry->value, name))
            return true;
    }
    return false;
}

static bool block_reads(const Block *block, Str name);

static bool lets_read(const LetItemVec *v, uint32_t from, Str name) {
    for (uint32_t i = from; i < v->len; i++)
        if (expr_mentions(v->data[i].value, name) || target_reads(v->data[i].target, name))
            return true;
    return false;
}

static bool vars_read(const VarItemVec *v, uint32_t from, Str name) {
    for (uint32_t i = from; i < v->len; i++)
        if (type_reads(v->data[i].type, name) || expr_mentions(v->data[i].value, name))
            return true;
    return false;
}

static bool stmt_reads(const Stmt *s, Str name) {
    if (!s)
        return false;
    switch (s->kind) {
    case STMT_LET:
        return lets_read(&s->let, 0, name);
    case STMT_VAR:
    case STMT_TEMP:
        return vars_read(&s->var, 0, name);
    case STMT_AXIS:
        return binders_read(&s->axis, 0, name);
    case STMT_PARALLEL:
    case STMT_FOR:
        return binders_read(&s->loop.binders, 0, name) || block_reads(s->loop.body, name);
    case STMT_WHILE:
        return expr_mentions(s->while_.test, name) || block_reads(s->while_.body, name);
    case STMT_IF:
        return expr_mentions(s->if_.test, name) || block_reads(s->if_.then, name) ||
               stmt_reads(s->if_.otherwise, name);
    case STMT_ASSIGN:
    case STMT_ATOMIC:
    case STMT_SCATTER:
        return target_reads(s->assign.target, name) || expr_mentions(s->assign.value, name);
    case STMT_RETURN:
    case STMT_EXPR:
        return expr_mentions(s->value, name);
    case STMT_BLOCK:
        return block_reads(s->block, name);
    case STMT_BREAK:
    case STMT_CONTINUE:
        break;
    }
    return false;
}

static bool stmts_read(const StmtVec *stmts, uint32_t from, Str name) {
    for (uint32_t i = from; i < stmts->len; i++)
        if (stmt_reads(stmts->data[i], name))
            return true;
    return false;
}

static bool block_reads(const Block *block, Str name) {
    return stmts_read(&block->stmts, 0, name);
}

/* --- what a block declares ------------------------------------------------------------------ */

static bool is_meant(Str name) {
    return name[0] == '_';
}

static void report(Fe *fe, Name name, const char *what) {
    Diag *d = fe_error(fe, DIAG_UNUSED_NAME, name.span, what, name.text);
    diag_hint(fe->diags, d, "remove it, or call it `_%s` where it is to stay", name.text);
}

static void check_let(Fe *fe, const StmtVec *stmts, uint32_t at) {
    const LetItemVec *v = &stmts->data[at]->let;
    for (uint32_t i = 0; i < v->len; i++) {
        const NameVec *names = &v->data[i].pattern.names;
        bool used = v->data[i].target != NULL; /* an atomic has its effect anyway */
        for (uint32_t k = 0; k < names->len; k++)
            used |= is_meant(names->data[k].text) || lets_read(v, i + 1, names->data[k].text) ||
                    stmts_read(stmts, at + 1, names->data[k].text);
        if (!used)
            report(fe, names->data[0], "`%s` is never used");
    }
}

static void check_var(Fe *fe, const StmtVec *stmts, uint32_t at) {
    const Stmt *s = stmts->data[at];
    for (uint32_t i = 0; i < s->var.len; i++) {
        Name name = s->var.data[i].name;
        if (is_meant(name.text) || vars_read(&s->var, i + 1, name.text) ||
            stmts_read(stmts, at + 1, name.text))
            continue;
        StrVec written = {0};
        for (uint32_t k = at + 1; k < stmts->len; k++)
            stmt_assigned(fe->arena, stmts->data[k], &written);
        report(fe, name,
               str_in(&written, name.text) ? "`%s` is written but never read"
                                           : "`%s` is never used");
    }
}

static void report_axis(Fe *fe, Name name, bool is_tiles) {
    Diag *d = fe_error(fe, DIAG_UNUSED_AXIS, name.span, "axis `%s` is never used", name.text);
    if (is_tiles)
        diag_hint(
            fe->diags, d,
            "the body runs once for each tile, and sizes of tiles are the schedule's: index by "
            "`%s`, or take a number: `%s in 0..count`",
            name.text, name.text);
    else
        diag_hint(fe->diags, d, "remove it, or index by it: `x[%s]`", name.text);
}

static void check_axis(Fe *fe, const StmtVec *stmts, uint32_t at) {
    const BinderVec *v = &stmts->data[at]->axis;
    for (uint32_t i = 0; i < v->len; i++) {
        Name name = v->data[i].name;
        if (!is_meant(name.text) && !binders_read(v, i + 1, name.text) &&
            !stmts_read(stmts, at + 1, name.text))
            report_axis(fe, name, false);
    }
}

/* How often a loop over tiles runs is no number of the text; a counter that nobody reads is fine.
 */
static void check_tiles(Fe *fe, const Stmt *s) {
    const BinderVec *v = &s->loop.binders;
    for (uint32_t i = 0; i < v->len; i++) {
        Name name = v->data[i].name;
        if (v->data[i].range.kind == RANGE_TILES && !is_meant(name.text) &&
            !binders_read(v, i + 1, name.text) && !block_reads(s->loop.body, name.text))
            report_axis(fe, name, true);
    }
}

static void check_block(Fe *fe, const Block *block);

static void check_stmt(Fe *fe, const StmtVec *stmts, uint32_t at) {
    const Stmt *s = stmts->data[at];
    switch (s->kind) {
    case STMT_LET:
        check_let(fe, stmts, at);
        break;
    case STMT_VAR:
    case STMT_TEMP:
        check_var(fe, stmts, at);
        break;
    case STMT_AXIS:
        check_axis(fe, stmts, at);
        break;
    case STMT_PARALLEL:
    case STMT_FOR:
        check_tiles(fe, s);
        check_block(fe, s->loop.body);
        break;
    case STMT_WHILE:
        check_block(fe, s->while_.body);
        break;
    case STMT_IF:
        check_block(fe, s->if_.then);
        if (s->if_.otherwise) {
            Stmt *one[] = {s->if_.otherwise};
            check_stmt(fe, &(StmtVec){.data = one, .len = 1}, 0);
        }
        break;
    case STMT_BLOCK:
        check_block(fe, s->block);
        break;
    case STMT_ASSIGN:
    case STMT_ATOMIC:
    case STMT_SCATTER:
    case STMT_RETURN:
    case STMT_EXPR:
    case STMT_BREAK:
    case STMT_CONTINUE:
        break;
    }
}

static void check_block(Fe *fe, const Block *block) {
    for (uint32_t i = 0; i < block->stmts.len; i++)
        check_stmt(fe, &block->stmts, i);
}

/* --- declarations --------------------------------------------------------------------------- */

static bool params_read(const ParamVec *params, Str name) {
    for (uint32_t i = 0; i < params->len; i++)
        if (type_reads(params->data[i].type, name) || expr_mentions(params->data[i].value, name))
            return true;
    return false;
}

static bool fn_reads(const Decl *fn, Str name) {
    return params_read(&fn->fn.params, name) || expr_mentions(fn->fn.value, name) ||
           (fn->fn.body && block_reads(fn->fn.body, name));
}

static void check_fn(Fe *fe, const Decl *fn) {
    for (uint32_t i = 0; i < fn->fn.axes.len; i++) {
        Name name = fn->fn.axes.data[i];
        if (!is_meant(name.text) && !fn_reads(fn, name.text))
            report_axis(fe, name, false);
    }
    for (uint32_t i = 0; i < fn->fn.params.len; i++) {
        const AstParam *p = &fn->fn.params.data[i];
        if (p->pattern.is_tuple || is_meant(param_name(p).text) || fn_reads(fn, param_name(p).text))
            continue;
        report(fe, param_name(p), "the parameter `%s` is never used");
    }
    if (fn->fn.body)
        check_block(fe, fn->fn.body);
}

static bool where_reads(const Decl *kernel, Str name) {
    for (uint32_t i = 0; i < kernel->kernel.where.len; i++)
        if (expr_mentions(kernel->kernel.where.data[i], name))
            return true;
    return params_read(&kernel->kernel.params, name) || params_read(&kernel->kernel.results, name);
}

static void check_kernel(Fe *fe, const Decl *kernel) {
    const Block *body = kernel->kernel.body;
    for (uint32_t i = 0; i < kernel->kernel.params.len; i++) {
        const AstParam *p = &kernel->kernel.params.data[i];
        Str name = param_name(p).text;
        /* A tensor may be there for its dims. */
        if (!p->type->has_dims && !is_meant(name) && !block_reads(body, name) &&
            !where_reads(kernel, name))
            report(fe, param_name(p), "the parameter `%s` is never used");
    }
    check_block(fe, body);
}

/* Where one kernel is chosen, it and the functions that it uses. */
static bool is_chosen(Fe *fe, const Decl *d) {
    const char *kernel = fe->options->kernel;
    return !kernel ||
           (d->kind == DECL_KERNEL ? !strcmp(d->name.text, kernel) : fn_was_entered(fe, d));
}

void unused_check(Fe *fe, const AstFile *file) {
    for (uint32_t i = 0; i < file->decls.len; i++) {
        const Decl *d = file->decls.data[i];
        if (!is_chosen(fe, d))
            continue;
        if (d->kind == DECL_FN)
            check_fn(fe, d);
        else if (d->kind == DECL_KERNEL)
            check_kernel(fe, d);
    }
}
