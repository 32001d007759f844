/* The scanner's hand-written part: literals, words, documentation. Internal to lang/.
 *
 * Flex finds the text of a token; these functions give it a kind and a value and report what is
 * wrong with it. A literal with an error still gives a literal, so that no second error follows.
 */
#ifndef FUSE_LANG_SCAN_H
#define FUSE_LANG_SCAN_H

#include "lang/parse_context.h"

/* Starts and ends scanning of ctx->file. scan_begin gives false where the text is refused. */
bool scan_begin(ParseContext *ctx);
void scan_end(ParseContext *ctx);
/* The next token of the text; TOK_YYEOF at its end. */
Token scan_next(ParseContext *ctx);

/* For the rules of scanner.l: each gives the token's kind. */
int scan_word(ParseContext *ctx, TokenValue *value, const char *text, uint32_t len, Span span);
int scan_int(ParseContext *ctx, TokenValue *value, const char *text, uint32_t len, Span span);
int scan_float(ParseContext *ctx, TokenValue *value, const char *text, uint32_t len, Span span);
int scan_string(ParseContext *ctx, TokenValue *value, const char *text, uint32_t len, Span span);
int scan_bad_number(ParseContext *ctx, TokenValue *value, const char *text, uint32_t len,
                    Span span);
int scan_bad_string(ParseContext *ctx, TokenValue *value, Span span);
int scan_bad_char(ParseContext *ctx, const char *text, Span span);
void scan_bad_comment(ParseContext *ctx, Span span);
void scan_doc(ParseContext *ctx, const char *text, uint32_t len, Span span);
/* The longest punctuator that `text` starts with: its kind and *len; 0 where there is none. */
int scan_punct(const char *text, uint32_t *len);

/* The documentation in front of the token at `offset`, or NULL; marks it as used. */
const char *scan_doc_take(ParseContext *ctx, uint32_t offset);
/* Warns about documentation that nobody took. */
void scan_doc_finish(ParseContext *ctx);

/* The fixed text of a token kind, or NULL. */
const char *token_text(int kind);

/* In scanner.l. */
int lang_scan_rules(TokenValue *yylval, Span *yylloc, void *yyscanner);
bool lang_scan_open(ParseContext *ctx, char *buffer, uint32_t len);
void lang_scan_close(ParseContext *ctx);

#endif
