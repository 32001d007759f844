/* What can be said of a `fn` without its arguments: names, numbers of arguments and axes,
 * statements that it may not have. A fn is lowered where it is called, so nothing else would look
 * at one that no kernel calls.
 *
 * Input: the tree of a fn. Output: reports, the same as for a call of it. Names are entered into
 * the scope without values.
 */
#include "frontend/fe.h"

#include <string.h>

static void check_expr(Fe *fe, const Expr *e);
static void check_block(Fe *fe, const Block *block);

static void declare(Fe *fe, EntryKind kind, Name name) {
    if (strcmp(name.text, "_"))
        scope_add(fe, kind, name);
}

/* --- expressions ---------------------------------------------------------------------------- */

static void check_name(Fe *fe, const Expr *e) {
    Global g;
    bool local = !e->name.module.text && scope_find(fe, e->name.name.text);
    if (!local && !global_find(fe, e->name.module, e->name.name, &g) &&
        (e->name.module.text || !builtin_exists(e->name.name.text)) &&
        (e->name.module.text || dtype_parse_cstr(e->name.name.text) == DT_NONE))
        report_unknown(fe, e->name.name);
}

static void report_call(Fe *fe, const Decl *fn, Span span, const char *what, uint32_t takes,
                        uint32_t given) {
    Diag *d = fe_error(fe, DIAG_ARGUMENT_COUNT, span, "`%s` takes %u %s, %u given", fn->name.text,
                       takes, what, given);
    diag_note(fe->diags, d, fn->name.span, "`%s` is declared here", fn->name.text);
}

static void check_fn_call(Fe *fe, const Decl *fn, const Expr *e) {
    uint32_t axes = fn->fn.axes.len, most = fn->fn.params.len, least = 0, n = e->call.args.len;
    for (uint32_t i = 0; i < most; i++)
        least += fn->fn.params.data[i].value == NULL;
    if (fn == fe->active[0])
        report_recursion(fe, fn, e->span);
    if (axes != e->call.axes.len)
        report_call(fe, fn, e->span, "axes in brackets", axes, e->call.axes.len);
    else if (n > most)
        report_call(fe, fn, e->span, most == 1 ? "argument" : "arguments", most, n);
    else if (n < least)
        report_call(fe, fn, e->span,
                    least == most && most == 1 ? "argument"
                    : least == most            ? "arguments"
                                               : "arguments at least",
                    least, n);
}

/* Which function is called, and whether it takes so many arguments. */
static void check_callee(Fe *fe, const Expr *e) {
    const Expr *callee = e->call.callee;
    Name module = callee->name.module, name = callee->name.name;
    Global g;
    if (!module.text && scope_find(fe, name.text))
        return; /* an argument that is a fn */
    if (global_find(fe, module, name, &g)) {
        if (g.decl && g.decl->kind == DECL_FN)
            check_fn_call(fe, g.decl, e);
        else if (g.decl)
            fe_error(fe, DIAG_NOT_CALLABLE, callee->span, "the constant `%s` is not a function",
                     name.text);
    } else if (builtin_exists(name.text)) {
        builtin_check_call(fe, e);
    } else {
        call_unknown(fe, callee);
    }
}

static void check_call(Fe *fe, const Expr *e) {
    if (e->call.callee->kind != EXPR_NAME)
        return;
    check_callee(fe, e);
    for (uint32_t i = 0; i < e->call.axes.len; i++)
        axis_find(fe, e->call.axes.data[i]);
    for (uint32_t i = 0; i < e->call.args.len; i++) {
        const Arg *arg = &e->call.args.data[i];
        bool word = arg->name.text && !strcmp(arg->name.text, "precision");
        if (!word)
            check_expr(fe, arg->value);
    }
}

static void check_part(void *user, const Expr *e) {
    check_expr(user, e);
}

static void check_expr(Fe *fe, const Expr *e) {
    if (!e)
        return;
    if (e->kind == EXPR_NAME)
        check_name(fe, e);
    else if (e->kind == EXPR_CALL)
        check_call(fe, e);
    else /* of an index not the names of entries: they may be dims of an argument */
        expr_each_part(e, check_part, fe);
    if (e->kind == EXPR_CAST)
        type_find(fe, e->cast.type);
}

/* --- statements ----------------------------------------------------------------------------- */

static void check_binders(Fe *fe, const BinderVec *v, bool axis) {
    for (uint32_t i = 0; i < v->len; i++) {
        const Range *r = &v->data[i].range;
        check_expr(fe, r->low);
        check_expr(fe, r->high);
        check_expr(fe, r->step);
        check_expr(fe, r->size);
        declare(fe, axis || r->kind == RANGE_TILES ? ENTRY_AXIS : ENTRY_LET, v->data[i].name);
    }
}

static void check_let(Fe *fe, const LetItem *item) {
    check_expr(fe, item->value);
    if (item->target)
        check_expr(fe, item->target);
    for (uint32_t i = 0; i < item->pattern.names.len; i++)
        declare(fe, ENTRY_LET, item->pattern.names.data[i]);
}

static void check_var(Fe *fe, const VarItem *item) {
    if (item->type) {
        type_find(fe, item->type);
        for (uint32_t i = 0; i < item->type->dims.len; i++)
            if (item->type->dims.data[i]->kind == EXPR_NAME)
                axis_find(fe, item->type->dims.data[i]->name.name);
    }
    check_expr(fe, item->value);
    declare(fe, ENTRY_VAR, item->name);
}

static void check_stmt(Fe *fe, const Stmt *s) {
    if (fn_refuses(fe, s))
        return;
    uint32_t mark;
    switch (s->kind) {
    case STMT_LET:
        for (uint32_t i = 0; i < s->let.len; i++)
            check_let(fe, &s->let.data[i]);
        break;
    case STMT_VAR:
        for (uint32_t i = 0; i < s->var.len; i++)
            check_var(fe, &s->var.data[i]);
        break;
    case STMT_AXIS:
        check_binders(fe, &s->axis, true);
        break;
    case STMT_FOR:
        scope_open(fe, &mark);
        check_binders(fe, &s->loop.binders, false);
        check_block(fe, s->loop.body);
        scope_close(fe, mark);
        break;
    case STMT_WHILE:
        check_expr(fe, s->while_.test);
        check_block(fe, s->while_.body);
        break;
    case STMT_IF:
        check_expr(fe, s->if_.test);
        check_block(fe, s->if_.then);
        if (s->if_.otherwise)
            check_stmt(fe, s->if_.otherwise);
        break;
    case STMT_ASSIGN:
        check_expr(fe, s->assign.value);
        check_expr(fe, s->assign.target);
        break;
    case STMT_RETURN:
        report_return(fe, s, true);
        break;
    case STMT_EXPR:
        check_expr(fe, s->value);
        break;
    case STMT_BLOCK:
        check_block(fe, s->block);
        break;
    case STMT_TEMP:
    case STMT_PARALLEL:
    case STMT_ATOMIC:
    case STMT_SCATTER:
    case STMT_BREAK:
    case STMT_CONTINUE:
        break;
    }
}

static void check_block(Fe *fe, const Block *block) {
    uint32_t mark;
    scope_open(fe, &mark);
    for (uint32_t i = 0; i < block->stmts.len; i++)
        check_stmt(fe, block->stmts.data[i]);
    scope_close(fe, mark);
}

/* --- the fn --------------------------------------------------------------------------------- */

static void check_params(Fe *fe, const Decl *fn) {
    for (uint32_t i = 0; i < fn->fn.generics.len; i++)
        if (fn->fn.generics.data[i].kind == GENERIC_TYPE)
            declare(fe, ENTRY_TYPE, fn->fn.generics.data[i].name);
    for (uint32_t i = 0; i < fn->fn.axes.len; i++)
        declare(fe, ENTRY_AXIS, fn->fn.axes.data[i]);
    for (uint32_t i = 0; i < fn->fn.params.len; i++) {
        const AstParam *p = &fn->fn.params.data[i];
        if (p->type)
            type_find(fe, p->type);
        check_expr(fe, p->value);
        for (uint32_t k = 0; k < p->pattern.names.len; k++)
            declare(fe, ENTRY_LET, p->pattern.names.data[k]);
    }
}

static void check_body(Fe *fe, const Decl *fn) {
    const StmtVec *stmts = &fn->fn.body->stmts;
    if (!fn_returns(fe, fn))
        return;
    for (uint32_t i = 0; i + 1 < stmts->len; i++)
        check_stmt(fe, stmts->data[i]);
    check_expr(fe, stmts->data[stmts->len - 1]->value);
}

static void check_fn(Fe *fe, const Decl *fn) {
    if (!fn_generics_known(fe, fn))
        return;
    fe->active[0] = fn;
    fe->entries.len = fe->ended.len = fe->floor = 0;
    check_params(fe, fn);
    if (fn->fn.result)
        type_find(fe, fn->fn.result);
    if (fn->fn.body)
        check_body(fe, fn);
    else
        check_expr(fe, fn->fn.value);
    fe->entries.len = 0;
}

void fns_check(Fe *fe, const AstFile *file) {
    fe->names = fe->main;
    fe->fn_level = 0;
    fe->is_head = false;
    fe->nest = NULL;
    for (uint32_t i = 0; i < file->decls.len; i++) {
        const Decl *d = file->decls.data[i];
        if (d->kind == DECL_FN && !reported_at(fe, d->span) /* by a call */)
            check_fn(fe, d);
    }
}
