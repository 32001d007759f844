/* Printing diagnostics: places, source lines, carets.
 *
 * Input: the collected reports and the source map. Output: text to a sink. The source line is shown
 * so that the carets stand under the right characters in any terminal: tabs become spaces up to
 * the next multiple of four, other control characters and invalid UTF-8 become `?`, wide characters
 * count two columns. Only a window of a very long line is shown.
 */
#include "lang/base/diag_impl.h"

#include <stdlib.h>
#include <string.h>

enum {
    TAB_WIDTH = 4,
    LINE_BYTES = 160,  /* shown of one line */
    LINE_BEFORE = 100, /* of them at most before the caret */
};

typedef struct Printer {
    const Diags *diags;
    DiagSink *sink;
    void *user;
} Printer;

static void print_bytes(Printer *printer, const char *text, size_t len) {
    if (len)
        printer->sink(printer->user, text, len);
}

static void print_text(Printer *printer, const char *text) {
    print_bytes(printer, text, strlen(text));
}

static void print_repeat(Printer *printer, char c, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        print_bytes(printer, &c, 1);
}

static void print_number(Printer *printer, const char *format, uint32_t value) {
    char buffer[64];
    snprintf(buffer, sizeof buffer, format, value);
    print_text(printer, buffer);
}

/* One character of a source line: its bytes and its columns on screen. */
typedef struct Glyph {
    uint32_t bytes, columns;
    bool printable;
} Glyph;

static bool is_continuation(unsigned char c) {
    return (c & 0xc0) == 0x80;
}

/* The code point at text, or 0 for an invalid sequence (then *bytes is 1). */
static uint32_t utf8_decode(const char *text, uint32_t len, uint32_t *bytes) {
    const unsigned char *s = (const unsigned char *)text;
    uint32_t need = s[0] < 0x80 ? 1 : s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : s[0] >= 0xc2 ? 2 : 0;
    *bytes = 1;
    if (need == 1)
        return s[0];
    if (need == 0 || need > len || s[0] > 0xf4)
        return 0;
    uint32_t code = s[0] & (0x7fu >> need);
    for (uint32_t i = 1; i < need; i++) {
        if (!is_continuation(s[i]))
            return 0;
        code = code << 6 | (s[i] & 0x3fu);
    }
    *bytes = need;
    return code;
}

/* Columns of a code point, by the ranges that matter in practice (East Asian wide, combining). */
static uint32_t code_columns(uint32_t code) {
    if ((code >= 0x300 && code <= 0x36f) || (code >= 0x200b && code <= 0x200f))
        return 0;
    bool wide = (code >= 0x1100 && code <= 0x115f) || (code >= 0x2e80 && code <= 0xa4cf) ||
                (code >= 0xac00 && code <= 0xd7a3) || (code >= 0xf900 && code <= 0xfaff) ||
                (code >= 0xfe30 && code <= 0xfe6f) || (code >= 0xff00 && code <= 0xff60) ||
                (code >= 0x1f300 && code <= 0x1faff) || (code >= 0x20000 && code <= 0x3fffd);
    return wide ? 2 : 1;
}

static Glyph glyph_at(const char *text, uint32_t len, uint32_t column) {
    if (*text == '\t')
        return (Glyph){1, TAB_WIDTH - column % TAB_WIDTH, false};
    uint32_t bytes;
    uint32_t code = utf8_decode(text, len, &bytes);
    bool control = code < 0x20 || (code >= 0x7f && code < 0xa0);
    bool turns = (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
    if (control || turns)
        return (Glyph){bytes, 1, false};
    return (Glyph){bytes, code_columns(code), true};
}

/* Prints bytes 0..len of a line from screen column `column`; gives the column after them. With
 * `under`, prints that character for each column instead. */
static uint32_t print_line_part(Printer *printer, const char *text, uint32_t len, uint32_t column,
                                char under) {
    for (uint32_t i = 0; i < len;) {
        Glyph glyph = glyph_at(text + i, len - i, column);
        if (under)
            print_repeat(printer, under, glyph.columns);
        else if (glyph.printable)
            print_bytes(printer, text + i, glyph.bytes);
        else
            print_repeat(printer, text[i] == '\t' ? ' ' : '?', glyph.columns);
        column += glyph.columns;
        i += glyph.bytes;
    }
    return column;
}

/* Moves a byte position back to the start of its character. */
static uint32_t character_start(const char *text, uint32_t at) {
    for (uint32_t back = 0; back < 3 && at > 0 && is_continuation((unsigned char)text[at]); back++)
        at--;
    return at;
}

/* The source line of a span, and `^~~~` under the part of the span that is on it. */
static void print_source(Printer *printer, Span span) {
    SourceLine line = source_line_at(printer->diags->sources, span.begin);
    SourcePos pos = source_pos(printer->diags->sources, span.begin);
    uint32_t begin = span.begin - line.begin;
    if (begin > line.len)
        begin = line.len;
    uint32_t end = span.end > span.begin ? span.end - line.begin : begin;
    if (end > line.len)
        end = line.len;
    /* The window that is shown. */
    uint32_t from = begin > LINE_BEFORE && line.len > LINE_BYTES ? begin - LINE_BEFORE : 0;
    from = from ? character_start(line.text, from) : 0;
    uint32_t to = line.len - from > LINE_BYTES ? from + LINE_BYTES : line.len;
    if (to < line.len)
        to = character_start(line.text, to);
    if (end > to)
        end = to;

    const char *lead = from ? "..." : "", *tail = to < line.len ? "..." : "";
    uint32_t column = (uint32_t)strlen(lead);
    print_number(printer, "%5u | ", pos.line);
    print_text(printer, lead);
    print_line_part(printer, line.text + from, to - from, column, 0);
    print_text(printer, tail);
    print_text(printer, "\n      | ");
    print_repeat(printer, ' ', column);
    column = print_line_part(printer, line.text + from, begin - from, column, ' ');
    print_text(printer, "^");
    if (end > begin) {
        Glyph first = glyph_at(line.text + begin, end - begin, column);
        if (first.columns > 1)
            print_repeat(printer, '~', first.columns - 1);
        if (begin + first.bytes < end)
            print_line_part(printer, line.text + begin + first.bytes, end - begin - first.bytes,
                            column + first.columns, '~');
    }
    print_text(printer, "\n");
}

static void print_place(Printer *printer, Span span) {
    SourcePos pos = source_pos(printer->diags->sources, span.begin);
    if (!pos.file)
        return;
    print_text(printer, pos.name);
    print_number(printer, ":%u", pos.line);
    print_number(printer, ":%u: ", pos.col);
}

static void print_diag(Printer *printer, const Diag *diag) {
    print_place(printer, diag->span);
    print_text(printer, diag_severity_name(diag->severity));
    print_text(printer, "[");
    print_text(printer, diag_id_name(diag->id));
    print_text(printer, "]: ");
    print_text(printer, diag->message);
    print_text(printer, "\n");
    if (source_file_at(printer->diags->sources, diag->span.begin))
        print_source(printer, diag->span);
    for (uint32_t i = 0; i < diag->notes.len; i++) {
        const DiagExtra *note = &diag->notes.data[i];
        print_place(printer, note->span);
        print_text(printer, "note: ");
        print_text(printer, note->text);
        print_text(printer, "\n");
        if (source_file_at(printer->diags->sources, note->span.begin))
            print_source(printer, note->span);
    }
    for (uint32_t i = 0; i < diag->hints.len; i++) {
        print_text(printer, "hint: ");
        print_text(printer, diag->hints.data[i].text);
        print_text(printer, "\n");
    }
}

static int diag_compare(const void *left, const void *right) {
    const Diag *a = *(const Diag *const *)left, *b = *(const Diag *const *)right;
    if (a->span.begin != b->span.begin)
        return a->span.begin < b->span.begin ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

void diags_print(const Diags *diags, DiagSink *sink, void *user) {
    Printer printer = {.diags = diags, .sink = sink, .user = user};
    Arena *scratch = arena_new("diags_print");
    const Diag **sorted = ARENA_ARRAY(scratch, const Diag *, diags->list.len);
    for (uint32_t i = 0; i < diags->list.len; i++)
        sorted[i] = diags->list.data[i];
    if (diags->list.len)
        qsort(sorted, diags->list.len, sizeof *sorted, diag_compare);
    for (uint32_t i = 0; i < diags->list.len; i++)
        print_diag(&printer, sorted[i]);
    if (diags_full(diags)) {
        print_number(&printer, "error: %u more errors are not shown\n",
                     diags->errors - diags->options.error_limit);
    }
    arena_free(scratch);
}

static void sink_file(void *user, const char *text, size_t len) {
    fwrite(text, 1, len, user);
}

void diags_print_file(const Diags *diags, FILE *file) {
    diags_print(diags, sink_file, file);
}

typedef struct TextSink {
    Arena *arena;
    VEC(char) text;
} TextSink;

static void sink_text(void *user, const char *text, size_t len) {
    TextSink *sink = user;
    for (size_t i = 0; i < len; i++)
        vec_push(sink->arena, &sink->text, text[i]);
}

char *diags_text(const Diags *diags, Arena *arena) {
    TextSink sink = {.arena = arena};
    diags_print(diags, sink_text, &sink);
    vec_push(arena, &sink.text, '\0');
    return sink.text.data;
}
