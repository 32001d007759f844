/* The parser's entry: see parse.h. */
#include "lang/parse.h"

#include "lang/parse_context.h"
#include "lang/scan.h"
#include "lang_grammar.h"

AstFile *lang_parse(Arena *arena, Interner *interner, const SourceMap *sources, FileId file,
                    Diags *diags) {
    uint32_t errors_before = diags_error_count(diags);
    AstFile *ast = ARENA_NEW(arena, AstFile);
    ast->file = file;
    ast->span = source_span(sources, file);
    ParseContext ctx = {
        .arena = arena,
        .interner = interner,
        .sources = sources,
        .diags = diags,
        .file = ast,
        .c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0),
    };
    if (scan_begin(&ctx)) {
        lang_yyparse(&ctx);
        ast->has_errors = diags_error_count(diags) > errors_before;
        scan_doc_finish(&ctx);
    }
    scan_end(&ctx);
    freelocale(ctx.c_locale);
    ast->has_errors = diags_error_count(diags) > errors_before;
    return ast;
}
