/* Balanced brackets for the parser: see brackets.h. */
#include "lang/brackets.h"

#include "lang/scan.h"
#include "lang/syntax_error.h"
#include "lang_grammar.h"

static int bracket_close_of(int open) {
    switch (open) {
    case TOK_LPAREN:
        return TOK_RPAREN;
    case TOK_LBRACKET:
        return TOK_RBRACKET;
    case TOK_LBRACE:
        return TOK_RBRACE;
    default: /* token kinds are Bison's, far more than these */
        return 0;
    }
}

static bool is_close(int kind) {
    return kind == TOK_RPAREN || kind == TOK_RBRACKET || kind == TOK_RBRACE;
}

static bool inside_parens(const ParseContext *ctx) {
    return ctx->brackets.len && vec_last(&ctx->brackets).open != TOK_LBRACE;
}

/* A declaration's keyword at the start of a line is taken to start a declaration. */
static bool starts_declaration(const ParseContext *ctx, const Token *token) {
    if (token->kind == TOK_KERNEL || token->kind == TOK_IMPORT)
        return true;
    if (token->kind != TOK_FN && token->kind != TOK_CONST)
        return false;
    return source_pos(ctx->sources, token->span.begin).col == 1;
}

/* Whether an open bracket cannot stay open at this token. */
static bool ends_bracket(const ParseContext *ctx, const Token *token) {
    if (!ctx->brackets.len)
        return false;
    if (token->kind == TOK_YYEOF || starts_declaration(ctx, token))
        return true;
    return inside_parens(ctx) &&
           (token->kind == TOK_SEMICOLON || token->kind == TOK_LBRACE || token->kind == TOK_RBRACE);
}

static void report_unclosed(ParseContext *ctx, const Token *token) {
    Bracket bracket = vec_last(&ctx->brackets);
    if (ctx->recovering)
        return;
    ctx->recovering = true;
    const char *close = token_text(bracket.close), *open = token_text(bracket.open);
    Diag *diag;
    if (token->kind == TOK_YYEOF)
        diag = diag_add(ctx->diags, DIAG_SYNTAX, bracket.span, "this `%s` is never closed", open);
    else
        diag = diag_add(ctx->diags, DIAG_SYNTAX, token->span, "expected `%s` before `%s`", close,
                        token_text(token->kind));
    if (token->kind != TOK_YYEOF)
        diag_note(ctx->diags, diag, bracket.span, "to close this `%s`", open);
    syntax_hint_comment(ctx, diag, bracket.span.end);
}

/* The virtual token that closes the innermost bracket, in front of `token`. */
static Token close_virtually(ParseContext *ctx, const Token *token) {
    report_unclosed(ctx, token);
    Bracket bracket = vec_pop(&ctx->brackets);
    return (Token){
        .kind = bracket.close,
        .is_virtual = true,
        .span = {token->span.begin, token->span.begin},
    };
}

/* A closing token against the innermost open bracket. False: drop the token. */
static bool match_close(ParseContext *ctx, Token *token) {
    if (ctx->brackets.len && vec_last(&ctx->brackets).close == token->kind) {
        (void)vec_pop(&ctx->brackets);
        return true;
    }
    const char *text = token_text(token->kind);
    if (!inside_parens(ctx)) {
        if (!ctx->recovering)
            diag_add(ctx->diags, DIAG_SYNTAX, token->span, "this `%s` closes nothing", text);
        return false;
    }
    Bracket bracket = vec_pop(&ctx->brackets);
    if (!ctx->recovering) {
        Diag *diag = diag_add(ctx->diags, DIAG_SYNTAX, token->span, "expected `%s`, not `%s`",
                              token_text(bracket.close), text);
        diag_note(ctx->diags, diag, bracket.span, "to close this `%s`", token_text(bracket.open));
    }
    ctx->recovering = true;
    token->kind = bracket.close;
    return true;
}

/* A string without an end has taken the end of its statement with it: what it left open is closed
 * in front of the next line. */
static bool ends_broken_statement(ParseContext *ctx, const Token *token) {
    if (!ctx->broken_string || token->kind == TOK_STRING)
        return false;
    if (is_close(token->kind) || token->kind == TOK_SEMICOLON || token->kind == TOK_YYEOF)
        ctx->broken_string = false;
    return ctx->broken_string;
}

static Token end_broken_statement(ParseContext *ctx, const Token *token) {
    if (inside_parens(ctx))
        return close_virtually(ctx, token);
    ctx->broken_string = false;
    ctx->recovering = false;
    Span span = {token->span.begin, token->span.begin};
    return (Token){.kind = TOK_SEMICOLON, .is_virtual = true, .span = span};
}

/* The next token with its effect on the open brackets. */
static Token next_token(ParseContext *ctx) {
    Token token;
    do {
        token = ctx->has_held ? ctx->held : scan_next(ctx);
        ctx->has_held = false;
        if (diags_full(ctx->diags)) { /* nobody reads further errors */
            token.kind = TOK_YYEOF;
            ctx->recovering = true;
            vec_clear(&ctx->brackets);
        }
        bool broken = ends_broken_statement(ctx, &token);
        if (broken || ends_bracket(ctx, &token)) {
            ctx->held = token;
            ctx->has_held = true;
            return broken ? end_broken_statement(ctx, &token) : close_virtually(ctx, &token);
        }
    } while (is_close(token.kind) && !match_close(ctx, &token));
    int close = bracket_close_of(token.kind);
    if (close) {
        Bracket bracket = {token.kind, close, token.span};
        vec_push(ctx->arena, &ctx->brackets, bracket);
    }
    return token;
}

/* Where a report may follow an earlier one: past the statement, past a closed header. */
static void end_recovery(ParseContext *ctx, const Token *token) {
    bool braces = token->kind == TOK_LBRACE || token->kind == TOK_RBRACE;
    bool header = token->kind == TOK_RPAREN && ctx->brackets.len == 0;
    if (!token->is_virtual && (braces || header || token->kind == TOK_SEMICOLON))
        ctx->recovering = false;
    if (starts_declaration(ctx, token))
        ctx->recovering = ctx->recovering_top = false;
}

int lang_yylex(TokenValue *value, Span *span, ParseContext *ctx) {
    /* The parser has done with the last token: recovery may have ended with it. */
    end_recovery(ctx, &ctx->last);
    ctx->before = ctx->last.is_virtual ? ctx->before : ctx->last.span;
    ctx->depth_before = ctx->brackets.len;
    ctx->last = next_token(ctx);
    *value = ctx->last.value;
    *span = ctx->last.span;
    return ctx->last.kind;
}

bool lang_restart(ParseContext *ctx, Span span) {
    SourceLine line = source_line_at(ctx->sources, span.begin);
    for (uint32_t i = 0; i < span.begin - line.begin; i++)
        if (line.text[i] != ' ' && line.text[i] != '\t')
            return false;
    ctx->recovering = false;
    return true;
}
