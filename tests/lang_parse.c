/* The parser: the shape of the tree of each construct, spans, limits, odd input. */
#include "lang_support.h"

/* The value of `fn f() = <text>;`. */
static Expr *parse_expr(Lang *lang, const char *text) {
    AstFile *file = lang_parse_text(lang, arena_printf(lang->arena, "fn f() = %s;", text));
    cr_assert(!file->has_errors, "`%s`: %s", text, diags_text(lang->diags, lang->arena));
    return file->decls.data[0]->fn.value;
}

/* The first statement of a kernel's body. */
static Stmt *parse_stmt(Lang *lang, const char *text) {
    AstFile *file = lang_parse_text(lang, arena_printf(lang->arena, "kernel k() { %s }", text));
    cr_assert(!file->has_errors, "`%s`: %s", text, diags_text(lang->diags, lang->arena));
    return file->decls.data[0]->kernel.body->stmts.data[0];
}

static Decl *parse_decl(Lang *lang, const char *text) {
    AstFile *file = lang_parse_text(lang, text);
    cr_assert(!file->has_errors, "`%s`: %s", text, diags_text(lang->diags, lang->arena));
    cr_assert_eq(file->decls.len, 1);
    return file->decls.data[0];
}

static const char *span_text(Lang *lang, Span span) {
    uint32_t len;
    const char *text = source_span_text(lang->sources, span, &len);
    return arena_strndup(lang->arena, text, len);
}

/* Fully parenthesised, to see the shape. */
static const char *shape(Lang *lang, const Expr *expr) {
    Arena *arena = lang->arena;
    switch (expr->kind) {
    case EXPR_BINARY:
        return arena_printf(arena, "(%s %s %s)", shape(lang, expr->binary.left),
                            binary_op_text(expr->binary.op), shape(lang, expr->binary.right));
    case EXPR_UNARY:
        return arena_printf(arena, "(%s%s)", unary_op_text(expr->unary.op),
                            shape(lang, expr->unary.value));
    case EXPR_COND:
        return arena_printf(arena, "(%s ? %s : %s)", shape(lang, expr->cond.test),
                            shape(lang, expr->cond.yes), shape(lang, expr->cond.no));
    case EXPR_CAST:
        return arena_printf(arena, "(%s as %s)", shape(lang, expr->cast.value),
                            expr->cast.type->name.text);
    case EXPR_ELSE:
        return arena_printf(arena, "(%s else %s)", shape(lang, expr->otherwise.value),
                            shape(lang, expr->otherwise.fill));
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
        return ast_print_expr(arena, expr);
    }
    return "";
}

static void expect_shape(const char *text, const char *expected) {
    Lang lang = lang_new();
    cr_assert_str_eq(shape(&lang, parse_expr(&lang, text)), expected);
    lang_free(&lang);
}

Test(parse, precedence) {
    expect_shape("a + b * c", "(a + (b * c))");
    expect_shape("a - b - c", "((a - b) - c)");
    expect_shape("a || b && c | d ^ e & f == g < h << i + j * k",
                 "(a || (b && (c | (d ^ (e & (f == (g < (h << (i + (j * k))))))))))");
    expect_shape("a ? b : c ? d : e", "(a ? b : (c ? d : e))");
    expect_shape("a ? b ? c : d : e", "(a ? (b ? c : d) : e)");
    expect_shape("a || b ? c : d", "((a || b) ? c : d)");
    expect_shape("-a * !b", "((-a) * (!b))");
    expect_shape("-a as f32 * b as T", "(((-a) as f32) * (b as T))");
    expect_shape("a as f16 as f32", "((a as f16) as f32)");
    expect_shape("n >> b & 1", "((n >> b) & 1)");
    expect_shape("x[i] else 0 + 1", "((x[i] else 0) + 1)");
    expect_shape("x[i] else -inf", "(x[i] else (-inf))");
    expect_shape("x[i] else y[j] else 1", "(x[i] else (y[j] else 1))");
    expect_shape("-x[i] else 1", "(-(x[i] else 1))");
    expect_shape("x[i] else 1 as f32", "((x[i] else 1) as f32)");
    expect_shape("(a + b) * c", "((a + b) * c)");
}

Test(parse, call_with_axes) {
    Lang lang = lang_new();
    const Expr *call = parse_expr(&lang, "dot[r, s](x[h = p, :, 1], w, precision = tf32)");
    cr_assert_eq(call->kind, EXPR_CALL);
    cr_assert_str_eq(call->call.callee->name.name.text, "dot");
    cr_assert(call->call.has_axes);
    cr_assert_eq(call->call.axes.len, 2);
    cr_assert_str_eq(call->call.axes.data[1].text, "s");
    cr_assert_eq(call->call.args.len, 3);
    cr_assert_null(call->call.args.data[0].name.text);
    cr_assert_str_eq(call->call.args.data[2].name.text, "precision");
    const Expr *index = call->call.args.data[0].value;
    cr_assert_eq(index->kind, EXPR_INDEX);
    cr_assert_eq(index->index.entries.data[0].kind, INDEX_NAMED);
    cr_assert_str_eq(index->index.entries.data[0].name.text, "h");
    cr_assert_eq(index->index.entries.data[1].kind, INDEX_ALL);
    cr_assert_null(index->index.entries.data[1].value);
    cr_assert_eq(index->index.entries.data[2].kind, INDEX_EXPR);

    call = parse_expr(&lang, "nn.softmax(x)");
    cr_assert_str_eq(call->call.callee->name.module.text, "nn");
    cr_assert(!call->call.has_axes);

    const Expr *outer = parse_expr(&lang, "f(x)[i][j]");
    cr_assert_eq(outer->kind, EXPR_INDEX);
    cr_assert_eq(outer->index.base->index.base->kind, EXPR_CALL);
    lang_free(&lang);
}

Test(parse, tuples_and_parentheses) {
    Lang lang = lang_new();
    cr_assert_eq(parse_expr(&lang, "(a, b, c)")->tuple.len, 3);
    cr_assert_eq(parse_expr(&lang, "((a))")->kind, EXPR_NAME);
    lang_free(&lang);
}

Test(parse, let_var_axis_temp) {
    Lang lang = lang_new();
    const Stmt *let = parse_stmt(&lang, "let a = 1, (b, c) = f(), d = atomic y[i] max= 2;");
    cr_assert_eq(let->kind, STMT_LET);
    cr_assert_eq(let->let.len, 3);
    cr_assert(!let->let.data[0].pattern.is_tuple);
    cr_assert_null(let->let.data[0].target);
    cr_assert(let->let.data[1].pattern.is_tuple);
    cr_assert_eq(let->let.data[1].pattern.names.len, 2);
    cr_assert_eq(let->let.data[2].target->kind, EXPR_INDEX);
    cr_assert_eq(let->let.data[2].op, ASSIGN_MAX);

    const Stmt *var = parse_stmt(&lang, "var x: f32[m, n] = 0, y = 1;");
    cr_assert_eq(var->kind, STMT_VAR);
    cr_assert_eq(var->var.data[0].type->dtype, DT_F32);
    cr_assert_eq(var->var.data[0].type->dims.len, 2);
    cr_assert_null(var->var.data[1].type);

    const Stmt *axis = parse_stmt(&lang, "axis u in 2, n in lo..hi, j in i;");
    cr_assert_eq(axis->kind, STMT_AXIS);
    cr_assert_eq(axis->axis.data[0].range.kind, RANGE_WHOLE);
    cr_assert_eq(axis->axis.data[1].range.kind, RANGE_SPAN);

    const Stmt *temp = parse_stmt(&lang, "temp h: T[M, 2 * F], g: f32[1] = 0;");
    cr_assert_eq(temp->kind, STMT_TEMP);
    cr_assert_null(temp->var.data[0].value);
    cr_assert_eq(temp->var.data[0].type->dtype, DT_NONE);
    cr_assert_str_eq(temp->var.data[0].type->name.text, "T");
    cr_assert_not_null(temp->var.data[1].value);
    lang_free(&lang);
}

Test(parse, loops) {
    Lang lang = lang_new();
    const Stmt *loop = parse_stmt(
        &lang, "parallel b in 0..B, m in tiles(M), n in tiles(lo..hi, 16) { break; continue; }");
    cr_assert_eq(loop->kind, STMT_PARALLEL);
    cr_assert_eq(loop->depth, 2);
    const Binder *b = loop->loop.binders.data;
    cr_assert_eq(b[0].range.kind, RANGE_SPAN);
    cr_assert_eq(b[1].range.kind, RANGE_TILES);
    cr_assert_null(b[1].range.low);
    cr_assert_null(b[1].range.size);
    cr_assert_not_null(b[2].range.low);
    cr_assert_eq(b[2].range.size->integer.value, 16);
    cr_assert_eq(loop->loop.body->stmts.data[0]->kind, STMT_BREAK);
    cr_assert_eq(loop->loop.body->stmts.data[1]->kind, STMT_CONTINUE);

    loop = parse_stmt(&lang, "for r in R..0 step -1 { }");
    cr_assert_eq(loop->kind, STMT_FOR);
    cr_assert_eq(loop->loop.binders.data[0].range.step->kind, EXPR_UNARY);

    loop = parse_stmt(&lang, "while a < b { f(); }");
    cr_assert_eq(loop->while_.test->kind, EXPR_BINARY);
    cr_assert_eq(loop->while_.body->stmts.data[0]->kind, STMT_EXPR);
    lang_free(&lang);
}

Test(parse, if_else) {
    Lang lang = lang_new();
    const Stmt *stmt = parse_stmt(&lang, "if a { } else if b { x = 1; } else { }");
    cr_assert_eq(stmt->kind, STMT_IF);
    const Stmt *second = stmt->if_.otherwise;
    cr_assert_eq(second->kind, STMT_IF);
    cr_assert_eq(second->if_.then->stmts.len, 1);
    cr_assert_eq(second->if_.otherwise->kind, STMT_BLOCK);
    cr_assert_null(parse_stmt(&lang, "if a { }")->if_.otherwise);
    lang_free(&lang);
}

Test(parse, stores) {
    Lang lang = lang_new();
    const struct {
        const char *text;
        StmtKind kind;
        AssignOp op;
    } rows[] = {
        {"y = 1;", STMT_ASSIGN, ASSIGN_SET},
        {"y[i] += 1;", STMT_ASSIGN, ASSIGN_ADD},
        {"y >>= 1;", STMT_ASSIGN, ASSIGN_SHR},
        {"y ^= 1;", STMT_ASSIGN, ASSIGN_BITXOR},
        {"atomic y[i] += 1;", STMT_ATOMIC, ASSIGN_ADD},
        {"atomic y[i] max= 1;", STMT_ATOMIC, ASSIGN_MAX},
        {"atomic y[i] min= 1;", STMT_ATOMIC, ASSIGN_MIN},
        {"atomic y[i] = 1;", STMT_ATOMIC, ASSIGN_SET},
        {"scatter y[i] = 1;", STMT_SCATTER, ASSIGN_SET},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const Stmt *stmt = parse_stmt(&lang, rows[i].text);
        cr_assert_eq(stmt->kind, rows[i].kind, "%s", rows[i].text);
        cr_assert_eq(stmt->assign.op, rows[i].op, "%s", rows[i].text);
    }
    cr_assert_eq(assign_op_binary(ASSIGN_SHL), BINARY_SHL);
    cr_assert_eq(assign_op_binary(ASSIGN_SET), BINARY_NONE);
    lang_free(&lang);
}

Test(parse, kernel) {
    Lang lang = lang_new();
    const Decl *decl = parse_decl(
        &lang, "kernel k<T: float, D: i32 = 64, f: fn>(x: T[M, N + 1]?, s: f32 = -1.0)\n"
               "-> (y: T[M], inout z: u4[N]) where M > 1, N == 2\n"
               "schedule { m = 1 | -2; order = grouped(8); split(k) = stream; p = true; }\n"
               "schedule sm_90a { } { return 1; }");
    cr_assert_eq(decl->kind, DECL_KERNEL);
    cr_assert_str_eq(decl->name.text, "k");
    const Generic *generics = decl->kernel.generics.data;
    cr_assert_eq(decl->kernel.generics.len, 3);
    cr_assert_eq(generics[0].kind, GENERIC_TYPE);
    cr_assert_str_eq(generics[0].bound.text, "float");
    cr_assert_eq(generics[1].kind, GENERIC_VALUE);
    cr_assert_eq(generics[1].dtype, DT_I32);
    cr_assert_eq(generics[1].value->integer.value, 64);
    cr_assert_eq(generics[2].kind, GENERIC_FN);
    const Param *params = decl->kernel.params.data;
    cr_assert_eq(decl->kernel.params.len, 2);
    cr_assert(params[0].is_optional && !params[0].is_inout);
    cr_assert_eq(params[0].type->dims.data[1]->kind, EXPR_BINARY);
    cr_assert_str_eq(param_name(&params[1]).text, "s");
    cr_assert_eq(params[1].value->kind, EXPR_UNARY);
    cr_assert(decl->kernel.results.data[1].is_inout);
    cr_assert_eq(decl->kernel.results.data[1].type->dtype, DT_U4);
    cr_assert_eq(decl->kernel.where.len, 2);
    cr_assert_eq(decl->kernel.schedules.len, 2);
    const Schedule *schedule = decl->kernel.schedules.data;
    cr_assert_null(schedule->target.text);
    cr_assert_eq(schedule->entries.len, 4);
    cr_assert_eq(schedule->entries.data[0].alts.len, 2);
    cr_assert_eq(schedule->entries.data[0].alts.data[1].integer, -2);
    cr_assert_eq(schedule->entries.data[1].alts.data[0].kind, ALT_CALL);
    cr_assert_eq(schedule->entries.data[1].alts.data[0].args.data[0].integer, 8);
    cr_assert(schedule->entries.data[2].has_args);
    cr_assert_eq(schedule->entries.data[2].alts.data[0].kind, ALT_NAME);
    cr_assert(schedule->entries.data[3].alts.data[0].boolean);
    cr_assert_str_eq(decl->kernel.schedules.data[1].target.text, "sm_90a");
    lang_free(&lang);
}

Test(parse, fn_const_import) {
    Lang lang = lang_new();
    const Decl *fn =
        parse_decl(&lang, "fn g<T: float>[a, b]((x, y), z: T[a]? = 2, w) -> f32[a] { return x; }");
    cr_assert_eq(fn->kind, DECL_FN);
    cr_assert_eq(fn->fn.axes.len, 2);
    cr_assert(fn->fn.params.data[0].pattern.is_tuple);
    cr_assert(fn->fn.params.data[1].is_optional);
    cr_assert_not_null(fn->fn.params.data[1].value);
    cr_assert_null(fn->fn.params.data[2].type);
    cr_assert_eq(fn->fn.result->dtype, DT_F32);
    cr_assert_not_null(fn->fn.body);
    cr_assert_null(fn->fn.value);

    const Decl *constant = parse_decl(&lang, "const A: u64 = 1 << 2;");
    cr_assert_eq(constant->constant.type->dtype, DT_U64);
    cr_assert_eq(constant->constant.value->kind, EXPR_BINARY);

    const Decl *import = parse_decl(&lang, "import std . nn;");
    cr_assert_eq(import->import.path.len, 2);
    cr_assert_str_eq(import->import.dotted, "std.nn");
    cr_assert_str_eq(import->name.text, "nn");
    lang_free(&lang);
}

Test(parse, spans) {
    Lang lang = lang_new();
    const Decl *decl = parse_decl(&lang, "  kernel k(x: T[M]?, inout y: f32) -> (z: i8[2])\n"
                                         " { z = (a + b) * c; let (u) = f[n](x, d = 1); } ");
    cr_assert_str_eq(span_text(&lang, decl->name.span), "k");
    cr_assert_str_eq(span_text(&lang, decl->kernel.params.data[0].span), "x: T[M]?");
    cr_assert_str_eq(span_text(&lang, decl->kernel.params.data[1].span), "inout y: f32");
    cr_assert_str_eq(span_text(&lang, decl->kernel.results.data[0].type->span), "i8[2]");
    const Block *body = decl->kernel.body;
    cr_assert_eq(decl->span.end, body->span.end);
    cr_assert_eq(*span_text(&lang, decl->span), 'k');
    const Stmt *store = body->stmts.data[0];
    cr_assert_str_eq(span_text(&lang, store->span), "z = (a + b) * c;");
    cr_assert_str_eq(span_text(&lang, store->assign.op_span), "=");
    cr_assert_str_eq(span_text(&lang, store->assign.value->span), "(a + b) * c");
    cr_assert_str_eq(span_text(&lang, store->assign.value->binary.left->span), "a + b");
    cr_assert_str_eq(span_text(&lang, store->assign.value->binary.op_span), "*");
    const LetItem *item = &body->stmts.data[1]->let.data[0];
    cr_assert_str_eq(span_text(&lang, item->span), "(u) = f[n](x, d = 1)");
    cr_assert_str_eq(span_text(&lang, item->pattern.span), "(u)");
    cr_assert_str_eq(span_text(&lang, item->value->call.args.data[1].span), "d = 1");
    lang_free(&lang);
}

Test(parse, second_file_has_its_own_spans) {
    Lang lang = lang_new();
    lang_parse_bytes(&lang, "a.fk", "const A: f32 = 1;", 17);
    AstFile *file = lang_parse_bytes(&lang, "b.fk", "const BB: f32 = 1;", 18);
    SourcePos pos = source_pos(lang.sources, file->decls.data[0]->name.span.begin);
    cr_assert_str_eq(pos.name, "b.fk");
    cr_assert_eq(pos.col, 7);
    lang_free(&lang);
}

/* --- limits and odd input ------------------------------------------------------------------- */

static char *repeated(Lang *lang, const char *head, const char *part, uint32_t count,
                      const char *middle, const char *close, const char *tail) {
    VEC(char) text = {0};
    size_t part_len = strlen(part), close_len = strlen(close);
    for (const char *c = head; *c; c++)
        vec_push(lang->arena, &text, *c);
    for (size_t i = 0; i < count * part_len; i++)
        vec_push(lang->arena, &text, part[i % part_len]);
    for (const char *c = middle; *c; c++)
        vec_push(lang->arena, &text, *c);
    for (size_t i = 0; i < count * close_len; i++)
        vec_push(lang->arena, &text, close[i % close_len]);
    for (const char *c = tail; *c; c++)
        vec_push(lang->arena, &text, *c);
    vec_push(lang->arena, &text, '\0');
    return text.data;
}

/* One report of depth, and nothing else; the tree can still be walked. */
static void expect_too_deep(const char *head, const char *part, uint32_t count, const char *middle,
                            const char *close, const char *tail) {
    Lang lang = lang_new();
    AstFile *file = lang_parse_text(&lang, repeated(&lang, head, part, count, middle, close, tail));
    cr_assert(file->has_errors);
    cr_assert_eq(diags_count(lang.diags), 1, "%s", part);
    cr_assert_eq(diag_id(diags_at(lang.diags, 0)), DIAG_TOO_DEEP);
    ast_print_file(lang.arena, file);
    lang_free(&lang);
}

Test(parse, deep_nesting_is_an_error) {
    expect_too_deep("fn f() = ", "(", 20000, "1", ")", ";");
    expect_too_deep("fn f() = ", "1+", 20000, "1", "", ";");
    expect_too_deep("fn f() = ", "-", 20000, "1", "", ";");
    expect_too_deep("fn f() = ", "a?b:", 20000, "1", "", ";");
    expect_too_deep("fn f() = ", "a[", 2000, "1", "]", ";");
    expect_too_deep("fn f() = x", "[i]", 2000, "", "", ";");
    expect_too_deep("kernel k() ", "{", 20000, "", "}", "");
    expect_too_deep("kernel k() ", "{", 300, "", "}", "");
    expect_too_deep("kernel k() { ", "if a { } else ", 3000, "{ }", "", "}");
}

Test(parse, allowed_depth) {
    Lang lang = lang_new();
    AstFile *file = lang_parse_text(
        &lang, repeated(&lang, "fn f() = ", "1+", AST_EXPR_DEPTH - 1, "1", "", ";"));
    cr_assert(!file->has_errors);
    cr_assert_eq(file->decls.data[0]->fn.value->depth, AST_EXPR_DEPTH);
    file = lang_parse_text(&lang,
                           repeated(&lang, "kernel k() {", "if a {", AST_STMT_DEPTH, "", "}", "}"));
    cr_assert(!file->has_errors);
    file = lang_parse_text(&lang,
                           repeated(&lang, "fn f(", "a, ", AST_LIST_MAX - 1, "b", "", ") = 1;"));
    cr_assert(!file->has_errors);
    file = lang_parse_text(&lang, repeated(&lang, "fn f(", "a, ", 20000, "b", "", ") = 1;"));
    cr_assert(file->has_errors);
    cr_assert_eq(diags_count(lang.diags), 1);
    cr_assert_eq(diag_id(diags_at(lang.diags, 0)), DIAG_TOO_MANY);
    lang_free(&lang);
}

static void expect_errors(const char *text, size_t len) {
    Lang lang = lang_new();
    AstFile *file = lang_parse_bytes(&lang, "odd.fk", text, len);
    cr_assert(file->has_errors);
    cr_assert(diags_has_errors(lang.diags));
    diags_text(lang.diags, lang.arena);
    ast_print_file(lang.arena, file);
    lang_free(&lang);
}

Test(parse, odd_bytes_are_errors) {
    expect_errors("\0", 1);
    expect_errors("kernel k() { x = \0; }", 21);
    expect_errors("// \xff\xfe\n", 6);
    expect_errors("\xc3", 1);
    expect_errors("\xed\xa0\x80", 3); /* a surrogate */
    expect_errors("\xf4\x90\x80\x80", 4);
    expect_errors("\xc0\x80", 2);
    char all[256];
    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    expect_errors(all, 256);
    expect_errors("\"", 1);
    expect_errors("\"\\", 2);
    expect_errors("/*", 2);
    expect_errors("/", 1);
}

/* Every prefix of a real file parses or fails cleanly; so does the file without any one byte. */
Test(parse, damaged_files_do_not_crash) {
    Lang lang = lang_new();
    size_t len;
    char *text = lang_read_file(&lang, "tests/corpus/parse/features.fk", &len);
    for (size_t i = 0; i < len; i += 7) {
        Lang part = lang_new();
        lang_parse_bytes(&part, "prefix.fk", text, i);
        diags_text(part.diags, part.arena);
        char *damaged = arena_strdup(part.arena, text);
        memmove(damaged + i, damaged + i + 1, len - i);
        ast_print_file(part.arena, lang_parse_text(&part, damaged));
        lang_free(&part);
    }
    lang_free(&lang);
}

Test(parse, empty_file) {
    Lang lang = lang_new();
    AstFile *file = lang_parse_text(&lang, "");
    cr_assert(!file->has_errors);
    cr_assert_eq(file->decls.len, 0);
    lang_free(&lang);
}
