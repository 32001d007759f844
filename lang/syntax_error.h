/* Texts of syntax errors. Internal to lang/: grammar.y hands over what Bison knows. */
#ifndef FUSE_LANG_SYNTAX_ERROR_H
#define FUSE_LANG_SYNTAX_ERROR_H

#include "lang/parse_context.h"

enum { SYNTAX_EXPECTED_MAX = 128 };

typedef struct SyntaxError {
    Span at;                                   /* of the unexpected token */
    const char *expected[SYNTAX_EXPECTED_MAX]; /* token aliases of grammar.y */
    uint32_t count;
} SyntaxError;

void syntax_error_expect(SyntaxError *error, const char *alias);
/* Reports it, unless it follows from something that was reported. */
void syntax_error_report(ParseContext *ctx, SyntaxError *error);
/* A hint where the comment behind `offset` in its line looks like a division. */
void syntax_hint_comment(ParseContext *ctx, Diag *diag, uint32_t offset);
/* Bison's yyerror: with a custom reporter, called only where its stack is exhausted. */
void lang_yyerror(const Span *span, ParseContext *ctx, const char *message);

#endif
