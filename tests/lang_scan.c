/* The scanner: every fixed token, literals, comments, documentation. */
#include "lang_support.h"

/* The only value of `const A: f32 = <text>;`. */
static const Expr *literal(Lang *lang, const char *text) {
    AstFile *file = lang_parse_text(lang, arena_printf(lang->arena, "const A: f32 = %s;", text));
    cr_assert_eq(file->decls.len, 1, "`%s` does not parse: %s", text,
                 diags_text(lang->diags, lang->arena));
    return file->decls.data[0]->constant.value;
}

static uint64_t integer(Lang *lang, const char *text) {
    const Expr *expr = literal(lang, text);
    cr_assert_eq(expr->kind, EXPR_INT, "%s", text);
    return expr->integer.value;
}

static double real(Lang *lang, const char *text) {
    const Expr *expr = literal(lang, text);
    cr_assert_eq(expr->kind, EXPR_FLOAT, "%s", text);
    return expr->real.value;
}

Test(scan, integers) {
    Lang lang = lang_new();
    cr_assert_eq(integer(&lang, "0"), 0);
    cr_assert_eq(integer(&lang, "128"), 128);
    cr_assert_eq(integer(&lang, "0x80"), 128);
    cr_assert_eq(integer(&lang, "0XfF_00"), 0xff00);
    cr_assert_eq(integer(&lang, "1_000"), 1000);
    cr_assert_eq(integer(&lang, "18446744073709551615"), UINT64_MAX);
    cr_assert_str_eq(literal(&lang, "0x0010")->integer.text, "0x0010");
    cr_assert(!diags_has_errors(lang.diags));
    lang_free(&lang);
}

Test(scan, floats) {
    Lang lang = lang_new();
    cr_assert_eq(real(&lang, "1.0"), 1.0);
    cr_assert_eq(real(&lang, "2.5e-3"), 2.5e-3);
    cr_assert_eq(real(&lang, "1e-5"), 1e-5);
    cr_assert_eq(real(&lang, "1E+5"), 1e5);
    cr_assert_eq(real(&lang, "1_0.0_5"), 10.05);
    cr_assert_eq(real(&lang, "1.4426950408889634"), 1.4426950408889634);
    cr_assert_eq(real(&lang, "1e-400"), 0); /* rounds to zero */
    cr_assert_str_eq(literal(&lang, "1.10")->real.text, "1.10");
    cr_assert_eq(literal(&lang, "inf")->kind, EXPR_INF);
    cr_assert_eq(literal(&lang, "nan")->kind, EXPR_NAN);
    cr_assert(literal(&lang, "true")->boolean);
    cr_assert_eq(literal(&lang, "false")->kind, EXPR_BOOL);
    cr_assert(!diags_has_errors(lang.diags));
    lang_free(&lang);
}

Test(scan, strings) {
    Lang lang = lang_new();
    const Expr *expr = literal(&lang, "\"a\\n\\t\\\\\\\"\\x41\\101\\0b\\u00e9\\U0001F600é\"");
    static const char expected[] = "a\n\t\\\"AA\0b\xc3\xa9\xf0\x9f\x98\x80\xc3\xa9";
    cr_assert_eq(expr->kind, EXPR_STRING);
    cr_assert_eq(expr->string.len, sizeof expected - 1);
    cr_assert_eq(memcmp(expr->string.data, expected, sizeof expected), 0);
    cr_assert_eq(literal(&lang, "\"\"")->string.len, 0);
    cr_assert_eq(literal(&lang, "\"// no comment /* \"")->string.len, 17);
    cr_assert(!diags_has_errors(lang.diags));
    lang_free(&lang);
}

Test(scan, ranges_are_not_floats) {
    Lang lang = lang_new();
    AstFile *file = lang_parse_text(
        &lang, "kernel k() { for i in 0..N, j in 0 .. 1, k in 1..2, l in a..3 { } }");
    cr_assert(!file->has_errors);
    const BinderVec *binders = &file->decls.data[0]->kernel.body->stmts.data[0]->loop.binders;
    cr_assert_eq(binders->len, 4);
    for (uint32_t i = 0; i < 4; i++)
        cr_assert_eq(binders->data[i].range.kind, RANGE_SPAN);
    cr_assert_eq(binders->data[2].range.low->integer.value, 1);
    cr_assert_eq(binders->data[2].range.high->integer.value, 2);
    lang_free(&lang);
}

Test(scan, comments_and_white_space) {
    Lang lang = lang_new();
    AstFile *file = lang_parse_text(&lang, "\xef\xbb\xbf/**/ /***/ /* a ** / * */ const // x\r\n"
                                           "/*//*/ A /* \n\n é */ :f32=1;//");
    cr_assert(!file->has_errors, "%s", diags_text(lang.diags, lang.arena));
    cr_assert_eq(file->decls.len, 1);
    lang_free(&lang);
}

/* Each row of tokens.def is a token of the grammar whose alias is the row's text: an error message
 * quotes it back, and no row scans as a name. */
static void expect_token(const char *text) {
    Lang lang = lang_new();
    AstFile *file = lang_parse_text(&lang, arena_printf(lang.arena, "const %s: f32 = 1;", text));
    cr_assert(file->has_errors, "`%s` is a name", text);
    const char *message = diag_message(diags_at(lang.diags, 0));
    const char *expected = arena_printf(lang.arena, "unexpected `%s`, expected a name", text);
    bool bracket = strchr("()[]{}", text[0]) != NULL;
    if (!bracket && strcmp(text, ";") != 0)
        cr_assert_str_eq(message, expected);
    lang_free(&lang);
}

Test(scan, fixed_tokens) {
#define KEYWORD(id, text) expect_token(text);
#define PUNCT(id, text)   expect_token(text);
#include "lang/tokens.def"
#define DTYPE(id, text, bits, kind, code, dlbits) expect_token(text);
#include "lang/base/dtypes.def"
#undef DTYPE
}

Test(scan, words_read_by_context_are_names) {
    Lang lang = lang_new();
    AstFile *file = lang_parse_text(
        &lang, "fn step(max, min, float, numeric) = max + min; fn max(kernels, _) = kernels;");
    cr_assert(!file->has_errors, "%s", diags_text(lang.diags, lang.arena));
    lang_free(&lang);
}

Test(scan, documentation_is_attached) {
    Lang lang = lang_new();
    AstFile *file = lang_parse_text(&lang, "/// One.\n"
                                           "///   Two.\n"
                                           "// between\n"
                                           "///\n"
                                           "/// Three.  \r\n"
                                           "kernel k(\n"
                                           "    /// The x.\n"
                                           "    x: f32, y: f32,\n"
                                           "    ///The z.\n"
                                           "    inout z: f32[N]) { }\n"
                                           "//// no doc\n"
                                           "fn f(a) = a;\n"
                                           "/// F.\n"
                                           "fn g(\n/// b\n a) = a;\n");
    cr_assert(!file->has_errors);
    cr_assert_eq(diags_count(lang.diags), 0);
    const Decl *kernel = file->decls.data[0];
    cr_assert_str_eq(kernel->doc, "One.\n  Two.\n\nThree.");
    cr_assert_str_eq(kernel->kernel.params.data[0].doc, "The x.");
    cr_assert_null(kernel->kernel.params.data[1].doc);
    cr_assert_str_eq(kernel->kernel.params.data[2].doc, "The z.");
    cr_assert_null(file->decls.data[1]->doc);
    cr_assert_str_eq(file->decls.data[2]->doc, "F.");
    cr_assert_str_eq(file->decls.data[2]->fn.params.data[0].doc, "b");
    lang_free(&lang);
}

Test(scan, stray_documentation_is_a_warning) {
    Lang lang = lang_new();
    AstFile *file = lang_parse_text(&lang, "/// a\nimport std.nn;\nfn f(a) = /// b\n a;\n/// c");
    cr_assert(!file->has_errors);
    cr_assert_eq(diags_count(lang.diags), 3);
    for (uint32_t i = 0; i < 3; i++)
        cr_assert_eq(diag_id(diags_at(lang.diags, i)), DIAG_STRAY_DOC);
    lang_free(&lang);
}

/* The diagnostics of a comment that holds these bytes. */
static void expect_utf8(const char *bytes, bool valid) {
    Lang lang = lang_new();
    AstFile *file = lang_parse_text(&lang, arena_printf(lang.arena, "// %s\nfn f() = 1;", bytes));
    cr_assert_eq(file->has_errors, !valid, "%s", diags_text(lang.diags, lang.arena));
    cr_assert_eq(diags_count(lang.diags), !valid);
    if (!valid) {
        cr_assert_eq(diag_id(diags_at(lang.diags, 0)), DIAG_BAD_UTF8);
        cr_assert_eq(diag_span(diags_at(lang.diags, 0)).begin, 4);
    }
    cr_assert_eq(file->decls.len, 1);
    lang_free(&lang);
}

Test(scan, utf8) {
    static const char *const good[] = {
        "\x7f",         "\xc2\x80",     "\xdf\xbf",         "\xe0\xa0\x80",     "\xed\x9f\xbf",
        "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf",
    };
    static const char *const bad[] = {
        "\x80",
        "\xc1\xbf",
        "\xe0\x9f\xbf",
        "\xed\xa0\x80",
        "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80",
        "\xff",
        "\xc3",
        "\xe4\xb8",
        "\xf0\x9f\x98",
        "\xc3\xc3",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        expect_utf8(good[i], true);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect_utf8(bad[i], false);
}
