/* Texts of syntax errors: see syntax_error.h.
 *
 * Bison gives the set of tokens that could stand at a place. People are told in their words: the
 * tokens that start an expression become "an expression", operators that could go on with one are
 * left out as long as something else is expected.
 */
#include "lang/syntax_error.h"

#include "lang/scan.h"
#include "lang_grammar.h"

#include <string.h>

enum { EXPECTED_SHOWN = 4 };

static const char *const expr_starts[] = {
    "a name", "an integer", "a number", "a string", "true", "false",
    "inf",    "nan",        "-",        "!",        "~",    "(",
};
/* Stands for itself as an argument only. */
static const char *const arg_starts[] = {"an element type"};
static const char *const stmt_starts[] = {
    "let", "var",   "axis",     "temp",   "parallel", "for",     "while",
    "if",  "break", "continue", "return", "atomic",   "scatter", "{",
};
static const char *const decl_starts[] = {"kernel", "fn", "const", "import", "end of file"};
static const char *const assign_ops[] = {
    "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=",
};
static const char *const go_on[] = {
    "||", "&&", "|", "^", "&", "==", "!=", "<",  ">",    "<=", ">=", "<<",
    ">>", "+",  "-", "*", "/", "%",  "?",  "as", "else", "[",  "(",  ".",
};

#define LEN(array) (sizeof(array) / sizeof *(array))

static bool list_has(const char *const *list, size_t len, const char *text) {
    for (size_t i = 0; i < len; i++)
        if (strcmp(list[i], text) == 0)
            return true;
    return false;
}

static bool expects(const SyntaxError *error, const char *alias) {
    return list_has(error->expected, error->count, alias);
}

static void drop(SyntaxError *error, const char *const *list, size_t len) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < error->count; i++)
        if (!list_has(list, len, error->expected[i]))
            error->expected[kept++] = error->expected[i];
    error->count = kept;
}

void syntax_error_expect(SyntaxError *error, const char *alias) {
    if (error->count < SYNTAX_EXPECTED_MAX)
        error->expected[error->count++] = alias;
}

static bool others_than(const SyntaxError *error, const char *const *list, size_t len) {
    for (uint32_t i = 0; i < error->count; i++)
        if (!list_has(list, len, error->expected[i]))
            return true;
    return false;
}

/* Replaces groups of tokens by words. */
static void summarise(SyntaxError *error) {
    bool expr = expects(error, "an integer") && expects(error, "(");
    bool stmt = expects(error, "let");
    bool assign = expects(error, "+=");
    bool decl = expects(error, "import");
    if (stmt || expr)
        drop(error, expr_starts, LEN(expr_starts));
    if (expr && !stmt)
        drop(error, arg_starts, LEN(arg_starts));
    if (stmt)
        drop(error, stmt_starts, LEN(stmt_starts));
    if (decl)
        drop(error, decl_starts, LEN(decl_starts));
    if (assign)
        drop(error, assign_ops, LEN(assign_ops));
    if (others_than(error, go_on, LEN(go_on)))
        drop(error, go_on, LEN(go_on));
    if (decl)
        syntax_error_expect(error, "a declaration");
    else if (stmt)
        syntax_error_expect(error, "a statement");
    else if (expr)
        syntax_error_expect(error, "an expression");
}

/* Aliases such as "a name" are words, all others are text. */
static const char *alias_quoted(ParseContext *ctx, const char *alias) {
    return strchr(alias, ' ') ? alias : arena_printf(ctx->arena, "`%s`", alias);
}

static const char *expected_text(ParseContext *ctx, const SyntaxError *error) {
    if (error->count == 0 || error->count > EXPECTED_SHOWN)
        return "";
    const char *text = "";
    for (uint32_t i = 0; i < error->count; i++) {
        const char *glue = i == 0 ? "expected " : i + 1 == error->count ? " or " : ", ";
        text =
            arena_printf(ctx->arena, "%s%s%s", text, glue, alias_quoted(ctx, error->expected[i]));
    }
    return text;
}

static const char *unexpected_text(ParseContext *ctx, Span at) {
    if (ctx->last.kind == TOK_YYEOF)
        return "unexpected end of file";
    if (ctx->last.kind == TOK_STRING)
        return "unexpected string";
    uint32_t len;
    const char *text = source_span_text(ctx->sources, at, &len);
    return arena_printf(ctx->arena, "unexpected `%.*s`%s", len > 40 ? 40 : (int)len, text,
                        len > 40 ? "..." : "");
}

/* `x++`, `x--` */
static bool is_doubled(const ParseContext *ctx, Span at) {
    uint32_t len;
    const char *text = source_span_text(ctx->sources, (Span){at.begin, at.begin + 2}, &len);
    return len == 2 && text[0] == text[1] && (text[0] == '+' || text[0] == '-');
}

/* The words of C and Python where another token was expected, and what is written here. `before` or
 * `at`: the token's text, or the one's before it; NULL: any. */
static const struct {
    const char *before, *at, *hint;
} habits[] = {
    {NULL, "and", "both conditions: `a && b`"},
    {NULL, "or", "either condition: `a || b`"},
    {"not", NULL, "the opposite is `!c`"},
    {NULL, "where", "to choose is `c ? a : b`"},
    {NULL, "def", "a function is declared by `fn`"},
    {"for", "(", "a loop is `for i in 0..N { }`"},
    {"*", "*", "a power is `pow(a, b)`"},
    {"float", NULL, "a variable is declared by `var s: f32 = 0;`"},
    {"double", NULL, "a variable is declared by `var s: f64 = 0;`"},
    {"int", NULL, "a variable is declared by `var s: i32 = 0;`"},
    {"auto", NULL, "a value is named by `let s = ...;`"},
    {"lambda", NULL, "a function has a name: `fn f(a) = a + 1;` at the top level"},
    {"parallel", "(", "there are no parentheses: `parallel i in 0..N { }`"},
    {NULL, "const", "a value is named by `let`; a `const` stands at the top level"},
};

static bool span_is(const ParseContext *ctx, Span span, const char *text) {
    uint32_t len;
    const char *at = source_span_text(ctx->sources, span, &len);
    return at && len == strlen(text) && memcmp(at, text, len) == 0;
}

static const char *habit_at(const ParseContext *ctx, Span at) {
    for (size_t i = 0; i < LEN(habits); i++) {
        bool same = !habits[i].before || span_is(ctx, ctx->before, habits[i].before);
        bool named = habits[i].before && !habits[i].at;
        if (same && (named ? ctx->last.kind == TOK_IDENT : span_is(ctx, at, habits[i].at)))
            return habits[i].hint;
    }
    return NULL;
}

/* Python's `x // 2;` is a comment here: a line that goes on behind `//` and ends as a statement. */
static bool comment_is_division(const ParseContext *ctx, uint32_t offset) {
    SourceLine line = source_line_at(ctx->sources, offset);
    uint32_t len = line.len, from = offset - line.begin;
    while (len > 0 && strchr(" \t\r", line.text[len - 1]))
        len--;
    for (uint32_t i = from; i + 2 < len; i++)
        if (line.text[i] == '/' && line.text[i + 1] == '/')
            return i > 0 && (line.text[len - 1] == ';' || line.text[len - 1] == '{' ||
                             line.text[len - 1] == '}');
    return false;
}

void syntax_hint_comment(ParseContext *ctx, Diag *diag, uint32_t offset) {
    if (comment_is_division(ctx, offset))
        diag_hint(ctx->diags, diag,
                  "`//` starts a comment: a quotient is `a / b`, rounded down `floordiv(a, b)`");
}

static bool follows(const ParseContext *ctx, Span at, const char *text) {
    return span_is(ctx, (Span){at.begin, at.begin + (uint32_t)strlen(text)}, text);
}

/* Declarations as in C and Python: what a parameter, a result, a type, a module is. */
static const char *declaration_habit(const ParseContext *ctx, const SyntaxError *found) {
    int kind = ctx->last.kind;
    if (kind == TOK_COLON && follows(ctx, found->at, ":="))
        return "write `=`";
    if (kind == TOK_COLON && expects(found, "="))
        return "`let` has the type of its value: `let e = 3 as f32;`, or `var e: f32 = 3;`";
    if (span_is(ctx, ctx->before, "->") && expects(found, "("))
        return "results have names: `-> (y: f32[N])`";
    bool param = ctx->depth_before > 0 &&
                 ((found->count == 1 && expects(found, ":")) || expects(found, "inout"));
    if (param && (kind == TOK_IDENT || kind == TOK_STAR || kind == TOK_ASSIGN || kind == TOK_TYPE))
        return "a parameter is a name and a type: `n: i32`, or of a tensor `x: f32[M, N]`";
    if (kind == TOK_AS && found->count == 1 && expects(found, ";"))
        return "modules are those of this language, under their own names: `import std.nn;`";
    if ((kind == TOK_DOTDOT && expects(found, ";")) || (kind == TOK_FOR && expects(found, ";")))
        return "an axis has a range: `axis i in 0..N;`, and stands in an index, `x[i]`";
    if ((kind == TOK_PLUS || kind == TOK_STAR) && expects(found, "an expression") &&
        span_is(ctx, ctx->before, ","))
        return "a function has a name: `fn add(a, b) = a + b;` at the top level; "
               "a sum is `sum[N](x)`";
    if (found->count == 1 && expects(found, "{") && kind != TOK_ASSIGN)
        return "a block stands in braces: `{ ... }`";
    if (kind == TOK_OR && expects(found, "an expression"))
        return "a function has a name: `fn f(a) = a + 1;` at the top level";
    return NULL;
}

/* Habits of other languages. */
static void hint(ParseContext *ctx, Diag *diag, const SyntaxError *found) {
    int kind = ctx->last.kind;
    bool expr = expects(found, "an expression");
    const char *habit = declaration_habit(ctx, found);
    if (!habit)
        habit = habit_at(ctx, found->at);
    if (habit)
        diag_hint(ctx->diags, diag, "%s", habit);
    else if (kind == TOK_IF && (expects(found, ";") || expects(found, ",") || expects(found, ")")))
        diag_hint(ctx->diags, diag, "to choose is `c ? a : b`");
    else if (kind == TOK_TYPE && expects(found, "a statement"))
        diag_hint(ctx->diags, diag, "a variable is declared by `var s: %s = 0;`",
                  ctx->last.value.name.text);
    else if (kind == TOK_TYPE && expr)
        diag_hint(ctx->diags, diag, "a conversion is written `value as %s`",
                  ctx->last.value.name.text);
    else if (kind == TOK_AXIS && expr)
        diag_hint(ctx->diags, diag, "axes stand in brackets: `sum[N](x)`");
    else if (kind == TOK_ASSIGN && expects(found, "{"))
        diag_hint(ctx->diags, diag, "equality is `==`");
    else if (kind == TOK_COLON && expects(found, "]"))
        diag_hint(ctx->diags, diag,
                  "a part of an axis is an index with an axis of that range: "
                  "`axis i in lo..hi;`");
    else if (is_doubled(ctx, found->at))
        diag_hint(ctx->diags, diag, "write `%s= 1`", token_text(kind));
    else if (kind == TOK_FN && expects(found, "a statement"))
        diag_hint(ctx->diags, diag, "functions stand at the top level of a file");
    else if (expects(found, "a declaration"))
        diag_hint(ctx->diags, diag, "statements stand inside a `kernel` or a `fn`");
    else if (kind == TOK_SEMICOLON && expects(found, "a statement"))
        diag_hint(ctx->diags, diag, "there is no empty statement");
    else if (kind != TOK_IDENT && kind != TOK_TYPE && token_text(kind) && found->count == 1 &&
             strcmp(found->expected[0], "a name") == 0 && strlen(token_text(kind)) > 1 &&
             token_text(kind)[0] >= 'a' && token_text(kind)[0] <= 'z')
        diag_hint(ctx->diags, diag, "`%s` is a keyword", token_text(kind));
}

/* Whether the token stands on a later line than the end of the one before it. */
static bool on_new_line(const ParseContext *ctx, Span at) {
    uint32_t end = ctx->before.end;
    if (!end)
        return false;
    return source_pos(ctx->sources, end).line < source_pos(ctx->sources, at.begin).line;
}

void syntax_error_report(ParseContext *ctx, SyntaxError *error) {
    bool silent =
        ctx->recovering || ctx->last.is_virtual || (ctx->recovering_top && ctx->depth_before == 0);
    ctx->recovering = true;
    ctx->recovering_top |= ctx->depth_before == 0;
    if (silent)
        return;
    bool semicolon = expects(error, ";");
    if (semicolon && (on_new_line(ctx, error->at) || ctx->last.kind == TOK_RBRACE ||
                      ctx->last.kind == TOK_YYEOF)) {
        Span gap = {ctx->before.end, ctx->before.end};
        Diag *missing = diag_add(ctx->diags, DIAG_SYNTAX, gap, "expected `;`");
        syntax_hint_comment(ctx, missing, gap.begin);
        return;
    }
    summarise(error);
    const char *expected = expected_text(ctx, error);
    Diag *diag = diag_add(ctx->diags, DIAG_SYNTAX, error->at, "%s%s%s",
                          unexpected_text(ctx, error->at), *expected ? ", " : "", expected);
    hint(ctx, diag, error);
}

void lang_yyerror(const Span *span, ParseContext *ctx, const char *message) {
    (void)message;
    if (!ctx->too_deep)
        diag_add(ctx->diags, DIAG_TOO_DEEP, *span, "the text is nested too deeply here");
    ctx->too_deep = true;
}
