/* Equality of trees, spans aside. Written field by field, apart from the printer under test. */
#ifndef FUSE_TESTS_LANG_EQUAL_H
#define FUSE_TESTS_LANG_EQUAL_H

#include "lang/ast.h"

#include <string.h>

static bool exprs_equal(const Expr *a, const Expr *b);
static bool stmts_equal(const Stmt *a, const Stmt *b);

static bool texts_equal(const char *a, const char *b) {
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool name_vecs_equal(const NameVec *a, const NameVec *b) {
    bool equal = a->len == b->len;
    for (uint32_t i = 0; equal && i < a->len; i++)
        equal = a->data[i].text == b->data[i].text;
    return equal;
}

static bool expr_vecs_equal(const ExprVec *a, const ExprVec *b) {
    bool equal = a->len == b->len;
    for (uint32_t i = 0; equal && i < a->len; i++)
        equal = exprs_equal(a->data[i], b->data[i]);
    return equal;
}

static bool types_equal(const TypeRef *a, const TypeRef *b) {
    if (!a || !b)
        return a == b;
    return a->name.text == b->name.text && a->dtype == b->dtype && a->has_dims == b->has_dims &&
           expr_vecs_equal(&a->dims, &b->dims);
}

static bool entries_equal(const IndexEntryVec *a, const IndexEntryVec *b) {
    bool equal = a->len == b->len;
    for (uint32_t i = 0; equal && i < a->len; i++)
        equal = a->data[i].kind == b->data[i].kind &&
                a->data[i].name.text == b->data[i].name.text &&
                exprs_equal(a->data[i].value, b->data[i].value);
    return equal;
}

static bool args_equal(const ArgVec *a, const ArgVec *b) {
    bool equal = a->len == b->len;
    for (uint32_t i = 0; equal && i < a->len; i++)
        equal = a->data[i].name.text == b->data[i].name.text &&
                exprs_equal(a->data[i].value, b->data[i].value);
    return equal;
}

static bool exprs_equal(const Expr *a, const Expr *b) {
    if (!a || !b)
        return a == b;
    if (a->kind != b->kind || a->depth != b->depth)
        return false;
    switch (a->kind) {
    case EXPR_ERROR:
    case EXPR_INF:
    case EXPR_NAN:
        return true;
    case EXPR_NAME:
        return a->name.module.text == b->name.module.text && a->name.name.text == b->name.name.text;
    case EXPR_INT:
        return a->integer.value == b->integer.value && a->integer.text == b->integer.text;
    case EXPR_FLOAT:
        return a->real.value == b->real.value && a->real.text == b->real.text;
    case EXPR_BOOL:
        return a->boolean == b->boolean;
    case EXPR_STRING:
        return a->string.len == b->string.len &&
               memcmp(a->string.data, b->string.data, a->string.len) == 0;
    case EXPR_UNARY:
        return a->unary.op == b->unary.op && exprs_equal(a->unary.value, b->unary.value);
    case EXPR_BINARY:
        return a->binary.op == b->binary.op && exprs_equal(a->binary.left, b->binary.left) &&
               exprs_equal(a->binary.right, b->binary.right);
    case EXPR_COND:
        return exprs_equal(a->cond.test, b->cond.test) && exprs_equal(a->cond.yes, b->cond.yes) &&
               exprs_equal(a->cond.no, b->cond.no);
    case EXPR_CAST:
        return exprs_equal(a->cast.value, b->cast.value) && types_equal(a->cast.type, b->cast.type);
    case EXPR_INDEX:
        return exprs_equal(a->index.base, b->index.base) &&
               entries_equal(&a->index.entries, &b->index.entries);
    case EXPR_ELSE:
        return exprs_equal(a->otherwise.value, b->otherwise.value) &&
               exprs_equal(a->otherwise.fill, b->otherwise.fill);
    case EXPR_CALL:
        return exprs_equal(a->call.callee, b->call.callee) &&
               a->call.has_axes == b->call.has_axes &&
               name_vecs_equal(&a->call.axes, &b->call.axes) &&
               args_equal(&a->call.args, &b->call.args);
    case EXPR_TUPLE:
        return expr_vecs_equal(&a->tuple, &b->tuple);
    }
    return false;
}

static bool blocks_equal(const Block *a, const Block *b) {
    if (!a || !b)
        return a == b;
    bool equal = a->stmts.len == b->stmts.len;
    for (uint32_t i = 0; equal && i < a->stmts.len; i++)
        equal = stmts_equal(a->stmts.data[i], b->stmts.data[i]);
    return equal;
}

static bool patterns_equal(const Pattern *a, const Pattern *b) {
    return a->is_tuple == b->is_tuple && name_vecs_equal(&a->names, &b->names);
}

static bool lets_equal(const LetItemVec *a, const LetItemVec *b) {
    bool equal = a->len == b->len;
    for (uint32_t i = 0; equal && i < a->len; i++)
        equal = patterns_equal(&a->data[i].pattern, &b->data[i].pattern) &&
                exprs_equal(a->data[i].target, b->data[i].target) &&
                a->data[i].op == b->data[i].op && exprs_equal(a->data[i].value, b->data[i].value);
    return equal;
}

static bool vars_equal(const VarItemVec *a, const VarItemVec *b) {
    bool equal = a->len == b->len;
    for (uint32_t i = 0; equal && i < a->len; i++)
        equal = a->data[i].name.text == b->data[i].name.text &&
                types_equal(a->data[i].type, b->data[i].type) &&
                exprs_equal(a->data[i].value, b->data[i].value);
    return equal;
}

static bool binders_equal(const BinderVec *a, const BinderVec *b) {
    bool equal = a->len == b->len;
    for (uint32_t i = 0; equal && i < a->len; i++) {
        const Range *x = &a->data[i].range, *y = &b->data[i].range;
        equal = a->data[i].name.text == b->data[i].name.text && x->kind == y->kind &&
                exprs_equal(x->low, y->low) && exprs_equal(x->high, y->high) &&
                exprs_equal(x->step, y->step) && exprs_equal(x->size, y->size);
    }
    return equal;
}

static bool stmts_equal(const Stmt *a, const Stmt *b) {
    if (!a || !b)
        return a == b;
    if (a->kind != b->kind || a->depth != b->depth)
        return false;
    switch (a->kind) {
    case STMT_LET:
        return lets_equal(&a->let, &b->let);
    case STMT_VAR:
    case STMT_TEMP:
        return vars_equal(&a->var, &b->var);
    case STMT_AXIS:
        return binders_equal(&a->axis, &b->axis);
    case STMT_PARALLEL:
    case STMT_FOR:
        return binders_equal(&a->loop.binders, &b->loop.binders) &&
               blocks_equal(a->loop.body, b->loop.body);
    case STMT_WHILE:
        return exprs_equal(a->while_.test, b->while_.test) &&
               blocks_equal(a->while_.body, b->while_.body);
    case STMT_IF:
        return exprs_equal(a->if_.test, b->if_.test) && blocks_equal(a->if_.then, b->if_.then) &&
               stmts_equal(a->if_.otherwise, b->if_.otherwise);
    case STMT_BREAK:
    case STMT_CONTINUE:
        return true;
    case STMT_RETURN:
    case STMT_EXPR:
        return exprs_equal(a->value, b->value);
    case STMT_ASSIGN:
    case STMT_ATOMIC:
    case STMT_SCATTER:
        return exprs_equal(a->assign.target, b->assign.target) && a->assign.op == b->assign.op &&
               exprs_equal(a->assign.value, b->assign.value);
    case STMT_BLOCK:
        return blocks_equal(a->block, b->block);
    }
    return false;
}

static bool generics_equal(const GenericVec *a, const GenericVec *b) {
    bool equal = a->len == b->len;
    for (uint32_t i = 0; equal && i < a->len; i++) {
        const Generic *x = &a->data[i], *y = &b->data[i];
        equal = x->name.text == y->name.text && x->kind == y->kind && x->dtype == y->dtype &&
                x->bound.text == y->bound.text && exprs_equal(x->value, y->value);
    }
    return equal;
}

static bool params_equal(const ParamVec *a, const ParamVec *b) {
    bool equal = a->len == b->len;
    for (uint32_t i = 0; equal && i < a->len; i++) {
        const Param *x = &a->data[i], *y = &b->data[i];
        equal = texts_equal(x->doc, y->doc) && x->is_inout == y->is_inout &&
                patterns_equal(&x->pattern, &y->pattern) && types_equal(x->type, y->type) &&
                x->is_optional == y->is_optional && exprs_equal(x->value, y->value);
    }
    return equal;
}

static bool alts_equal(const ScheduleAltVec *a, const ScheduleAltVec *b) {
    bool equal = a->len == b->len;
    for (uint32_t i = 0; equal && i < a->len; i++) {
        const ScheduleAlt *x = &a->data[i], *y = &b->data[i];
        equal = x->kind == y->kind && x->integer == y->integer && x->boolean == y->boolean &&
                x->name.text == y->name.text && alts_equal(&x->args, &y->args);
    }
    return equal;
}

static bool schedules_equal(const ScheduleVec *a, const ScheduleVec *b) {
    bool equal = a->len == b->len;
    for (uint32_t i = 0; equal && i < a->len; i++) {
        const Schedule *x = &a->data[i], *y = &b->data[i];
        equal = x->target.text == y->target.text && x->entries.len == y->entries.len;
        for (uint32_t k = 0; equal && k < x->entries.len; k++) {
            const ScheduleEntry *p = &x->entries.data[k], *q = &y->entries.data[k];
            equal = p->name.text == q->name.text && p->has_args == q->has_args &&
                    name_vecs_equal(&p->args, &q->args) && alts_equal(&p->alts, &q->alts);
        }
    }
    return equal;
}

static bool decls_equal(const Decl *a, const Decl *b) {
    if (a->kind != b->kind || a->name.text != b->name.text || !texts_equal(a->doc, b->doc))
        return false;
    switch (a->kind) {
    case DECL_KERNEL:
        return generics_equal(&a->kernel.generics, &b->kernel.generics) &&
               params_equal(&a->kernel.params, &b->kernel.params) &&
               params_equal(&a->kernel.results, &b->kernel.results) &&
               expr_vecs_equal(&a->kernel.where, &b->kernel.where) &&
               schedules_equal(&a->kernel.schedules, &b->kernel.schedules) &&
               blocks_equal(a->kernel.body, b->kernel.body);
    case DECL_FN:
        return generics_equal(&a->fn.generics, &b->fn.generics) &&
               name_vecs_equal(&a->fn.axes, &b->fn.axes) &&
               params_equal(&a->fn.params, &b->fn.params) &&
               types_equal(a->fn.result, b->fn.result) && exprs_equal(a->fn.value, b->fn.value) &&
               blocks_equal(a->fn.body, b->fn.body);
    case DECL_CONST:
        return types_equal(a->constant.type, b->constant.type) &&
               exprs_equal(a->constant.value, b->constant.value);
    case DECL_IMPORT:
        return name_vecs_equal(&a->import.path, &b->import.path) &&
               a->import.dotted == b->import.dotted;
    }
    return false;
}

#endif
