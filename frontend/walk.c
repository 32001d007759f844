/* Questions about the tree that need no types: which names an expression mentions, which variables
 * a block assigns, whether a block leaves its loop. Input: the tree. No output but the answers.
 */
#include "frontend/fe.h"

/* The variables of a loop that `break` and `continue` set; no name of the source has a `$`. */
const char flag_stop[] = "$stop", flag_skip[] = "$skip";

bool str_in(const StrVec *v, Str s) {
    for (uint32_t i = 0; i < v->len; i++)
        if (v->data[i] == s)
            return true;
    return false;
}

static bool any_mentions(const ExprVec *v, Str name) {
    for (uint32_t i = 0; i < v->len; i++)
        if (expr_mentions(v->data[i], name))
            return true;
    return false;
}

static bool call_mentions(const Expr *e, Str name) {
    if (expr_mentions(e->call.callee, name))
        return true;
    for (uint32_t i = 0; i < e->call.axes.len; i++)
        if (e->call.axes.data[i].text == name)
            return true;
    for (uint32_t i = 0; i < e->call.args.len; i++)
        if (expr_mentions(e->call.args.data[i].value, name))
            return true;
    return false;
}

static bool index_mentions(const Expr *e, Str name) {
    if (expr_mentions(e->index.base, name))
        return true;
    for (uint32_t i = 0; i < e->index.entries.len; i++) {
        const IndexEntry *entry = &e->index.entries.data[i];
        if (entry->name.text == name || expr_mentions(entry->value, name))
            return true;
    }
    return false;
}

bool expr_mentions(const Expr *e, Str name) {
    if (!e)
        return false;
    switch (e->kind) {
    case EXPR_NAME:
        return e->name.name.text == name;
    case EXPR_UNARY:
        return expr_mentions(e->unary.value, name);
    case EXPR_BINARY:
        return expr_mentions(e->binary.left, name) || expr_mentions(e->binary.right, name);
    case EXPR_COND:
        return expr_mentions(e->cond.test, name) || expr_mentions(e->cond.yes, name) ||
               expr_mentions(e->cond.no, name);
    case EXPR_CAST:
        return expr_mentions(e->cast.value, name);
    case EXPR_INDEX:
        return index_mentions(e, name);
    case EXPR_ELSE:
        return expr_mentions(e->otherwise.value, name) || expr_mentions(e->otherwise.fill, name);
    case EXPR_CALL:
        return call_mentions(e, name);
    case EXPR_TUPLE:
        return any_mentions(&e->tuple, name);
    case EXPR_ERROR:
    case EXPR_INT:
    case EXPR_FLOAT:
    case EXPR_BOOL:
    case EXPR_INF:
    case EXPR_NAN:
    case EXPR_STRING:
        break;
    }
    return false;
}

void expr_names(Arena *arena, const Expr *e, StrVec *out) {
    if (!e)
        return;
    switch (e->kind) {
    case EXPR_NAME:
        vec_push(arena, out, e->name.name.text);
        break;
    case EXPR_UNARY:
        expr_names(arena, e->unary.value, out);
        break;
    case EXPR_BINARY:
        expr_names(arena, e->binary.left, out);
        expr_names(arena, e->binary.right, out);
        break;
    case EXPR_COND:
        expr_names(arena, e->cond.test, out);
        expr_names(arena, e->cond.yes, out);
        expr_names(arena, e->cond.no, out);
        break;
    case EXPR_CAST:
        expr_names(arena, e->cast.value, out);
        break;
    case EXPR_INDEX:
        expr_names(arena, e->index.base, out);
        for (uint32_t i = 0; i < e->index.entries.len; i++)
            expr_names(arena, e->index.entries.data[i].value, out);
        break;
    case EXPR_ELSE:
        expr_names(arena, e->otherwise.value, out);
        expr_names(arena, e->otherwise.fill, out);
        break;
    case EXPR_CALL:
        expr_names(arena, e->call.callee, out);
        for (uint32_t i = 0; i < e->call.args.len; i++)
            expr_names(arena, e->call.args.data[i].value, out);
        break;
    case EXPR_TUPLE:
        for (uint32_t i = 0; i < e->tuple.len; i++)
            expr_names(arena, e->tuple.data[i], out);
        break;
    case EXPR_ERROR:
    case EXPR_INT:
    case EXPR_FLOAT:
    case EXPR_BOOL:
    case EXPR_INF:
    case EXPR_NAN:
    case EXPR_STRING:
        break;
    }
}

/* The variable or tensor that a statement writes. */
static void target_assigned(Arena *arena, const Expr *target, StrVec *out) {
    const Expr *base = target->kind == EXPR_INDEX ? target->index.base : target;
    if (base->kind == EXPR_NAME && !str_in(out, base->name.name.text))
        vec_push(arena, out, base->name.name.text);
}

void stmt_assigned(Arena *arena, const Stmt *s, StrVec *out) {
    if (!s)
        return;
    switch (s->kind) {
    case STMT_ASSIGN:
    case STMT_ATOMIC:
    case STMT_SCATTER:
        target_assigned(arena, s->assign.target, out);
        break;
    case STMT_LET:
        for (uint32_t i = 0; i < s->let.len; i++)
            if (s->let.data[i].target)
                target_assigned(arena, s->let.data[i].target, out);
        break;
    case STMT_PARALLEL:
    case STMT_FOR:
        block_assigned(arena, s->loop.body, out);
        break;
    case STMT_WHILE:
        block_assigned(arena, s->while_.body, out);
        break;
    case STMT_IF:
        block_assigned(arena, s->if_.then, out);
        stmt_assigned(arena, s->if_.otherwise, out);
        break;
    case STMT_BLOCK:
        block_assigned(arena, s->block, out);
        break;
    case STMT_BREAK:
    case STMT_CONTINUE:
        vec_push(arena, out, flag_stop);
        vec_push(arena, out, flag_skip);
        break;
    case STMT_VAR:
    case STMT_AXIS:
    case STMT_TEMP:
    case STMT_RETURN:
    case STMT_EXPR:
        break;
    }
}

void block_assigned(Arena *arena, const Block *block, StrVec *out) {
    for (uint32_t i = 0; i < block->stmts.len; i++)
        stmt_assigned(arena, block->stmts.data[i], out);
}

bool stmt_breaks(const Stmt *s) {
    if (!s)
        return false;
    switch (s->kind) {
    case STMT_BREAK:
    case STMT_CONTINUE:
        return true;
    case STMT_IF:
        return block_breaks(s->if_.then) || stmt_breaks(s->if_.otherwise);
    case STMT_BLOCK:
        return block_breaks(s->block);
    case STMT_ASSIGN:
    case STMT_PARALLEL:
    case STMT_FOR:
    case STMT_WHILE:
    case STMT_LET:
    case STMT_VAR:
    case STMT_AXIS:
    case STMT_TEMP:
    case STMT_RETURN:
    case STMT_ATOMIC:
    case STMT_SCATTER:
    case STMT_EXPR:
        break;
    }
    return false;
}

/* Whether a `break` or `continue` in the block belongs to the loop around it. */
bool block_breaks(const Block *block) {
    for (uint32_t i = 0; i < block->stmts.len; i++)
        if (stmt_breaks(block->stmts.data[i]))
            return true;
    return false;
}
