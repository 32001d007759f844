/* Diagnostics: collected while compiling, printed at the edge.
 *
 * Input: reports with an id (a row of diags.def), a span and a message, each with notes at other
 * places and hints. Output: text, in order of position, through a callback or to a FILE; collecting
 * never prints. Invariants: equal reports (id, span, message) are kept once; errors past the limit
 * and other reports past theirs are counted but not kept. Not thread-safe: one Diags per
 * compilation.
 *
 *   Diag *d = diag_add(diags, DIAG_SYNTAX, span, "unexpected %s", what);
 *   diag_note(diags, d, other, "the block starts here");
 *   diag_hint(diags, d, "write `%s`", text);
 *
 * prints
 *   k.fk:3:9: error[syntax]: unexpected `;`
 *      3 |     x = ;
 *        |         ^
 *   k.fk:1:3: note: the block starts here
 *      1 | ...
 *   hint: write `0`
 */
#ifndef FUSE_LANG_BASE_DIAG_H
#define FUSE_LANG_BASE_DIAG_H

#include "lang/base/arena.h"
#include "lang/base/source.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef enum DiagId {
#define DIAG(id, text, severity, title) DIAG_##id,
#include "lang/base/diags.def"
#undef DIAG
    DIAG_COUNT_ /* number of ids; not one */
} DiagId;

typedef enum DiagSeverity {
    DIAG_SEVERITY_ERROR,
    DIAG_SEVERITY_WARNING,
    DIAG_SEVERITY_PERF, /* a performance note */
    DIAG_SEVERITY_NOTE
} DiagSeverity;

/* What becomes of the warnings or performance notes of one id. */
typedef enum DiagLevel { DIAG_LEVEL_ON, DIAG_LEVEL_OFF, DIAG_LEVEL_ERROR } DiagLevel;

typedef struct DiagOptions {
    uint32_t error_limit; /* errors kept; 0: the default, 50 */
    DiagLevel level[DIAG_COUNT_];
} DiagOptions;

/* Applies what stands behind -W: `error` (every warning is an error), `no-ID`, `error=ID`, `ID` (a
 * warning again). ID is that of a warning or a performance note, or `perf`, all of the latter.
 * Flags apply in order, but `error` leaves off what is off. False, and nothing changed, where the
 * text names no such id. */
bool diag_options_flag(DiagOptions *options, const char *flag);

typedef struct Diags Diags;
typedef struct Diag Diag;

/* Receives the printed text piece by piece; pieces are not NUL-terminated. */
typedef void DiagSink(void *user, const char *text, size_t len);

/* `options` may be NULL. The source map must outlive the Diags. */
Diags *diags_new(Arena *arena, const SourceMap *sources, const DiagOptions *options);

/* Never gives NULL: a report that is dropped still takes notes and hints. */
Diag *diag_add(Diags *diags, DiagId id, Span span, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
Diag *diag_vadd(Diags *diags, DiagId id, Span span, const char *format, va_list args)
    __attribute__((format(printf, 4, 0)));
void diag_note(Diags *diags, Diag *diag, Span span, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void diag_hint(Diags *diags, Diag *diag, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A report of other Diags, with its notes and hints. */
void diag_copy(Diags *diags, const Diag *diag);

/* Errors reported so far, those past the limit included. */
uint32_t diags_error_count(const Diags *diags);
/* Reports of any severity that will be printed. */
uint32_t diags_count(const Diags *diags);
bool diags_has_errors(const Diags *diags);
/* True once more errors were reported than are kept: stages may stop early. */
bool diags_full(const Diags *diags);

/* The i-th report in order of addition. */
const Diag *diags_at(const Diags *diags, uint32_t i);
DiagId diag_id(const Diag *diag);
DiagSeverity diag_severity(const Diag *diag); /* after -Werror */
Span diag_span(const Diag *diag);
/* Whether a report of the id begins at the place and its first note at `noted`. Linear in the
 * reports, which are at most some hundred. */
bool diags_has(const Diags *diags, DiagId id, Span span, Span noted);
Span diag_noted(const Diag *diag); /* of its first note; nowhere: none */
const char *diag_message(const Diag *diag);

/* All reports in order of position, then of addition. */
void diags_print(const Diags *diags, DiagSink *sink, void *user);
void diags_print_file(const Diags *diags, FILE *file);
/* The printed text as one string in `arena`. */
char *diags_text(const Diags *diags, Arena *arena);

const char *diag_id_name(DiagId id);  /* "syntax" */
const char *diag_id_title(DiagId id); /* its line of diags.def */
DiagSeverity diag_id_severity(DiagId id);
/* For --explain-error (explanations.def), as lines that end in line breaks: what the id means and
 * what to write instead; and a program that gives it, or the same put right (NULL: no program alone
 * shows it). */
const char *diag_id_explanation(DiagId id);
const char *diag_id_example(DiagId id, bool right);
/* False where no id has that name. */
bool diag_id_parse(const char *name, DiagId *id);
const char *diag_severity_name(DiagSeverity severity); /* "error", "warning", "perf", "note" */

#endif
