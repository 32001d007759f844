/* The parser: text of one file to its tree.
 *
 * Input: a file of the source map. Output: its AstFile, in `arena`, with names from `interner`.
 * Errors go to `diags`; the tree is then partial and has_errors is set. Never NULL, never exits.
 * Reentrant: no state outside its arguments.
 */
#ifndef FUSE_LANG_PARSE_H
#define FUSE_LANG_PARSE_H

#include "lang/ast.h"
#include "lang/base/diag.h"

AstFile *lang_parse(Arena *arena, Interner *interner, const SourceMap *sources, FileId file,
                    Diags *diags);

#endif
