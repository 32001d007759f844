/* The token stream of the parser: the scanner's, with balanced brackets. Internal to lang/.
 *
 * A parser that meets a forgotten `)` throws away everything up to some later `)`. So brackets are
 * matched here, before the parser: what is left open at a `;`, a brace or the next declaration is
 * closed by a virtual token, what closes nothing is dropped, each with one report. The parser
 * always sees balanced brackets, and its recovery inside them stays inside them.
 */
#ifndef FUSE_LANG_BRACKETS_H
#define FUSE_LANG_BRACKETS_H

#include "lang/parse_context.h"

/* Bison's yylex. */
int lang_yylex(TokenValue *value, Span *span, ParseContext *ctx);

/* Whether the keyword at `span` is the first word of its line; reports may then follow an earlier
 * error in front of it. */
bool lang_restart(ParseContext *ctx, Span span);

#endif
