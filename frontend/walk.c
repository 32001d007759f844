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

void expr_each_part(const Expr *e, void (*fn)(void *user, const Expr *part), void *user) {
    switch (e->kind) {
    case EXPR_UNARY:
        fn(user, e->unary.value);
        break;
    case EXPR_BINARY:
        fn(user, e->binary.left);
        fn(user, e->binary.right);
        break;
    case EXPR_COND:
        fn(user, e->cond.test);
        fn(user, e->cond.yes);
        fn(user, e->cond.no);
        break;
    case EXPR_CAST:
        fn(user, e->cast.value);
        break;
    case EXPR_INDEX:
        fn(user, e->index.base);
        for (uint32_t i = 0; i < e->index.entries.len; i++)
            fn(user, e->index.entries.data[i].value);
        break;
    case EXPR_ELSE:
        fn(user, e->otherwise.value);
        fn(user, e->otherwise.fill);
        break;
    case EXPR_CALL:
        fn(user, e->call.callee);
        for (uint32_t i = 0; i < e->call.args.len; i++)
            fn(user, e->call.args.data[i].value);
        break;
    case EXPR_TUPLE:
        for (uint32_t i = 0; i < e->tuple.len; i++)
            fn(user, e->tuple.data[i]);
        break;
    case EXPR_NAME:
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

typedef struct Mention {
    Str name;
    bool found;
} Mention;

/* Axes of calls and dims of named entries are names too. */
static void find_mention(void *user, const Expr *e) {
    Mention *m = user;
    if (!e || m->found)
        return;
    m->found = e->kind == EXPR_NAME && e->name.name.text == m->name;
    for (uint32_t i = 0; e->kind == EXPR_CALL && i < e->call.axes.len; i++)
        m->found |= e->call.axes.data[i].text == m->name;
    for (uint32_t i = 0; e->kind == EXPR_INDEX && i < e->index.entries.len; i++)
        m->found |= e->index.entries.data[i].name.text == m->name;
    expr_each_part(e, find_mention, m);
}

bool expr_mentions(const Expr *e, Str name) {
    Mention m = {.name = name};
    find_mention(&m, e);
    return m.found;
}

typedef struct Names {
    Arena *arena;
    StrVec *out;
} Names;

static void add_names(void *user, const Expr *e) {
    Names *n = user;
    if (!e)
        return;
    if (e->kind == EXPR_NAME)
        vec_push(n->arena, n->out, e->name.name.text);
    expr_each_part(e, add_names, n);
}

void expr_names(Arena *arena, const Expr *e, StrVec *out) {
    add_names(&(Names){arena, out}, e);
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
