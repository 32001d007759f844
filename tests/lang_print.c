/* ast_print: what it prints parses to the same tree, for every construct and every real kernel. */
#include "lang_equal.h"
#include "lang_support.h"

static void expect_round_trip(const char *path) {
    Lang lang = lang_new();
    size_t len;
    char *text = lang_read_file(&lang, path, &len);
    AstFile *first = lang_parse_bytes(&lang, path, text, len);
    cr_assert_eq(diags_count(lang.diags), 0, "%s", diags_text(lang.diags, lang.arena));
    cr_assert(first->decls.len > 1);
    char *printed = ast_print_file(lang.arena, first);
    AstFile *second = lang_parse_bytes(&lang, "printed", printed, strlen(printed));
    cr_assert_eq(diags_count(lang.diags), 0, "%s", diags_text(lang.diags, lang.arena));
    cr_assert_eq(first->decls.len, second->decls.len);
    for (uint32_t i = 0; i < first->decls.len; i++)
        cr_assert(decls_equal(first->decls.data[i], second->decls.data[i]), "%s: %s", path,
                  first->decls.data[i]->name.text);
    cr_assert_str_eq(ast_print_file(lang.arena, second), printed);
    lang_free(&lang);
}

#define ROUND_TRIP(name)                                                                           \
    Test(print, name) {                                                                            \
        expect_round_trip("tests/corpus/parse/" #name ".fk");                                      \
    }

ROUND_TRIP(attention)
ROUND_TRIP(conv)
ROUND_TRIP(features)
ROUND_TRIP(first_look)
ROUND_TRIP(linear)
ROUND_TRIP(loss)
ROUND_TRIP(norm)
ROUND_TRIP(scan)
ROUND_TRIP(scatter)

Test(print, layout) {
    Lang lang = lang_new();
    AstFile *file = lang_parse_text(
        &lang, "import a; import b;const C: f32=(1);/// Doc\n///\n/// more\nkernel k<T: float>"
               "(x:T[M])->(/// out\ny:T[M]) where M>1 schedule{m=1|2;}{parallel m in tiles(M){"
               "y[m]=((x[m])else 0)*2;}if a{}else{f();}}fn f(x)=x;");
    cr_assert_str_eq(ast_print_file(lang.arena, file), "import a;\n"
                                                       "import b;\n"
                                                       "\n"
                                                       "const C: f32 = 1;\n"
                                                       "\n"
                                                       "/// Doc\n"
                                                       "///\n"
                                                       "/// more\n"
                                                       "kernel k<T: float>(x: T[M]) -> (\n"
                                                       "    /// out\n"
                                                       "    y: T[M])\n"
                                                       "    where M > 1\n"
                                                       "    schedule { m = 1 | 2; }\n"
                                                       "{\n"
                                                       "    parallel m in tiles(M) {\n"
                                                       "        y[m] = (x[m] else 0) * 2;\n"
                                                       "    }\n"
                                                       "    if a { } else {\n"
                                                       "        f();\n"
                                                       "    }\n"
                                                       "}\n"
                                                       "\n"
                                                       "fn f(x) = x;\n");
    lang_free(&lang);
}

Test(print, nodes_made_by_hand) {
    Arena *arena = arena_new("t");
    Expr one = {.kind = EXPR_INT, .integer.value = 42};
    Expr real = {.kind = EXPR_FLOAT, .real.value = 0.1};
    Expr sum = {.kind = EXPR_BINARY, .binary = {.op = BINARY_SUB, .left = &one, .right = &real}};
    Expr product = {.kind = EXPR_BINARY, .binary = {.op = BINARY_MUL, .left = &sum, .right = &sum}};
    cr_assert_str_eq(ast_print_expr(arena, &product),
                     "(42 - 1.0000000000000001e-01) * (42 - 1.0000000000000001e-01)");
    arena_free(arena);
}

/* The whole files among the examples of SPEC.md. */
Test(print, examples_of_the_reference) {
    Lang lang = lang_new();
    char *at = lang_read_file(&lang, "lang/SPEC.md", NULL);
    uint32_t count = 0;
    while ((at = strstr(at, "```fk\n"))) {
        at += strlen("```fk\n");
        char *end = strstr(at, "```");
        cr_assert_not_null(end);
        AstFile *file = lang_parse_bytes(&lang, "SPEC.md", at, (size_t)(end - at));
        cr_assert(!file->has_errors, "%s", diags_text(lang.diags, lang.arena));
        cr_assert(file->decls.len > 0);
        count++;
        at = end + 3;
    }
    cr_assert(count >= 3);
    cr_assert_eq(diags_count(lang.diags), 0);
    lang_free(&lang);
}
