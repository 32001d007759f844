/* The scanner's hand-written part: see scan.h. */
#include "lang/scan.h"

#include "lang/ast_build.h"
#include "lang_grammar.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SCAN_MAX_BYTES = 256 << 20 };

typedef struct TokenRow {
    const char *text;
    int kind;
} TokenRow;

static const TokenRow keywords[] = {
#define KEYWORD(id, text) {text, TOK_##id},
#include "lang/tokens.def"
};

static const TokenRow puncts[] = {
#define PUNCT(id, text) {text, TOK_##id},
#include "lang/tokens.def"
};

enum {
    KEYWORD_COUNT = sizeof keywords / sizeof *keywords,
    PUNCT_COUNT = sizeof puncts / sizeof *puncts
};

const char *token_text(int kind) {
    for (size_t i = 0; i < KEYWORD_COUNT; i++)
        if (keywords[i].kind == kind)
            return keywords[i].text;
    for (size_t i = 0; i < PUNCT_COUNT; i++)
        if (puncts[i].kind == kind)
            return puncts[i].text;
    return NULL;
}

/* --- whole files ---------------------------------------------------------------------------- */

/* Offset of the first byte that is not valid UTF-8; len where all is. */
static uint32_t utf8_valid_prefix(const char *text, uint32_t len) {
    const unsigned char *s = (const unsigned char *)text;
    uint32_t i = 0;
    while (i < len) {
        unsigned char c = s[i];
        uint32_t more = c < 0x80 ? 0 : c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
        if ((c >= 0x80 && c < 0xc2) || c > 0xf4 || more >= len - i)
            return i;
        for (uint32_t k = 1; k <= more; k++)
            if ((s[i + k] & 0xc0) != 0x80)
                return i;
        bool overlong = (c == 0xe0 && s[i + 1] < 0xa0) || (c == 0xf0 && s[i + 1] < 0x90);
        bool surrogate = c == 0xed && s[i + 1] > 0x9f;
        if (overlong || surrogate || (c == 0xf4 && s[i + 1] > 0x8f))
            return i;
        i += more + 1;
    }
    return len;
}

bool scan_begin(ParseContext *ctx) {
    uint32_t len;
    const char *text = source_text(ctx->sources, ctx->file->file, &len);
    ctx->base = ctx->file->span.begin;
    if (len > SCAN_MAX_BYTES) {
        diag_add(ctx->diags, DIAG_FILE_SIZE, (Span){ctx->base, ctx->base},
                 "a source file may have at most %d MiB", SCAN_MAX_BYTES >> 20);
        return false;
    }
    uint32_t valid = utf8_valid_prefix(text, len);
    if (valid < len) {
        ctx->bad_utf8 = true;
        Span span = {ctx->base + valid, ctx->base + valid + 1};
        diag_add(ctx->diags, DIAG_BAD_UTF8, span, "byte 0x%02x is not valid UTF-8",
                 (unsigned char)text[valid]);
    }
    char *buffer = arena_alloc(ctx->arena, (size_t)len + 2);
    memcpy(buffer, text, len);
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        memset(buffer, ' ', 3); /* a byte order mark is white space */
    ctx->buffer = buffer;
    return lang_scan_open(ctx, buffer, len);
}

void scan_end(ParseContext *ctx) {
    lang_scan_close(ctx);
}

/* --- documentation -------------------------------------------------------------------------- */

void scan_doc(ParseContext *ctx, const char *text, uint32_t len, Span span) {
    uint32_t skip = len > 3 && text[3] == ' ' ? 4 : 3;
    while (len > skip && (text[len - 1] == '\r' || text[len - 1] == ' '))
        len--;
    if (span_is_none(ctx->doc_span))
        vec_clear(&ctx->doc_text);
    else
        vec_push(ctx->arena, &ctx->doc_text, '\n');
    for (uint32_t i = skip; i < len; i++)
        vec_push(ctx->arena, &ctx->doc_text, text[i]);
    ctx->doc_span = span_join(ctx->doc_span, span);
}

/* Ends the run of `///` lines in front of a token. */
static void doc_close(ParseContext *ctx, Span token) {
    if (span_is_none(ctx->doc_span))
        return;
    Doc doc = {
        .span = ctx->doc_span,
        .text = arena_strndup(ctx->arena, ctx->doc_text.data, ctx->doc_text.len),
        .before = token.begin,
    };
    vec_push(ctx->arena, &ctx->docs, doc);
    ctx->doc_span = (Span){0};
}

const char *scan_doc_take(ParseContext *ctx, uint32_t offset) {
    uint32_t low = 0, high = ctx->docs.len;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (ctx->docs.data[mid].before < offset)
            low = mid + 1;
        else
            high = mid;
    }
    if (low == ctx->docs.len || ctx->docs.data[low].before != offset)
        return NULL;
    ctx->docs.data[low].used = true;
    return ctx->docs.data[low].text;
}

void scan_doc_finish(ParseContext *ctx) {
    if (ctx->file->has_errors)
        return; /* what it documents may have been skipped */
    for (uint32_t i = 0; i < ctx->docs.len; i++) {
        const Doc *doc = &ctx->docs.data[i];
        if (doc->used)
            continue;
        Diag *diag =
            diag_add(ctx->diags, DIAG_STRAY_DOC, doc->span, "this comment documents nothing");
        diag_hint(
            ctx->diags, diag,
            "`///` goes in front of a `kernel`, a `fn`, a `const` or a parameter; write `//`");
    }
}

/* --- words and punctuators ------------------------------------------------------------------ */

int scan_word(ParseContext *ctx, TokenValue *value, const char *text, uint32_t len, Span span) {
    value->name = (Name){intern(ctx->interner, text, len), span};
    for (size_t i = 0; i < KEYWORD_COUNT; i++)
        if (keywords[i].text[0] == *text && strcmp(keywords[i].text, value->name.text) == 0)
            return keywords[i].kind;
    return dtype_parse(text, len) == DT_NONE ? TOK_IDENT : TOK_TYPE;
}

int scan_punct(const char *text, uint32_t *len) {
    int kind = 0;
    *len = 0;
    for (size_t i = 0; i < PUNCT_COUNT; i++) {
        if (puncts[i].text[0] != text[0])
            continue;
        uint32_t row_len = (uint32_t)strlen(puncts[i].text);
        if (row_len > *len && strncmp(text, puncts[i].text, row_len) == 0) {
            *len = row_len;
            kind = puncts[i].kind;
        }
    }
    return kind;
}

int scan_bad_char(ParseContext *ctx, const char *text, Span span) {
    unsigned char c = (unsigned char)*text;
    if (ctx->recovering)
        return TOK_LANG_YYerror;
    if (c >= 0x80) {
        int bytes = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
        if (!ctx->bad_utf8)
            diag_add(ctx->diags, DIAG_BAD_CHAR, span,
                     "`%.*s` cannot stand outside strings and comments", bytes, text);
    } else if (c < 0x20 || c == 0x7f) {
        diag_add(ctx->diags, DIAG_BAD_CHAR, span, "unexpected control character 0x%02x", c);
    } else {
        Diag *diag = diag_add(ctx->diags, DIAG_BAD_CHAR, span, "unexpected character `%c`", c);
        if (c == '\'')
            diag_hint(ctx->diags, diag, "strings are written \"like this\"");
        if (c == '#')
            diag_hint(ctx->diags, diag, "comments start with `//`");
        if (c == '@')
            diag_hint(ctx->diags, diag, "a product names what it sums over: write `dot[K](a, b)`");
    }
    ctx->recovering = true;
    return TOK_LANG_YYerror; /* the parser recovers without a second report */
}

void scan_bad_comment(ParseContext *ctx, Span span) {
    diag_add(ctx->diags, DIAG_BAD_COMMENT, span, "this comment has no end");
    ctx->recovering = true; /* whatever misses at the end of the file is the comment's fault */
}

/* --- literals ------------------------------------------------------------------------------- */

/* The literal's text without `_`, in the arena. */
static char *digits_only(ParseContext *ctx, const char *text, uint32_t len) {
    char *digits = arena_alloc(ctx->arena, (size_t)len + 1);
    uint32_t count = 0;
    for (uint32_t i = 0; i < len; i++)
        if (text[i] != '_')
            digits[count++] = text[i];
    return digits;
}

int scan_int(ParseContext *ctx, TokenValue *value, const char *text, uint32_t len, Span span) {
    bool hex = len > 1 && (text[1] == 'x' || text[1] == 'X');
    const char *digits = digits_only(ctx, text, len);
    Str written = intern(ctx->interner, text, len);
    uint64_t number = 0;
    if (text[len - 1] == '_' || (hex && !digits[2])) {
        diag_add(ctx->diags, DIAG_BAD_NUMBER, span, "a number ends with a digit");
    } else if (!hex && digits[0] == '0' && digits[1]) {
        Diag *diag =
            diag_add(ctx->diags, DIAG_BAD_NUMBER, span, "a decimal number does not start with `0`");
        diag_hint(ctx->diags, diag, "there are no octal numbers: write it in decimal or as `0x`");
    } else {
        errno = 0;
        number = strtoull(digits, NULL, hex ? 16 : 10);
        if (errno)
            diag_add(ctx->diags, DIAG_NUMBER_RANGE, span, "this integer does not fit in 64 bits");
    }
    value->expr = ast_int(ctx, span, number, written);
    return TOK_INT;
}

int scan_float(ParseContext *ctx, TokenValue *value, const char *text, uint32_t len, Span span) {
    const char *digits = digits_only(ctx, text, len);
    errno = 0;
    double number = strtod_l(digits, NULL, ctx->c_locale);
    if (errno && number > 1)
        diag_add(ctx->diags, DIAG_NUMBER_RANGE, span, "this number is larger than any f64");
    value->expr = ast_float(ctx, span, number, intern(ctx->interner, text, len));
    return TOK_FLOAT;
}

int scan_bad_number(ParseContext *ctx, TokenValue *value, const char *text, uint32_t len,
                    Span span) {
    Diag *diag;
    int shown = len > 40 ? 40 : (int)len;
    if (text[0] == '.') {
        diag = diag_add(ctx->diags, DIAG_BAD_NUMBER, span, "a number starts with a digit");
        diag_hint(ctx->diags, diag, "write `0%.*s`", shown, text);
    } else if (text[len - 1] == '.') {
        diag = diag_add(ctx->diags, DIAG_BAD_NUMBER, span, "a number has digits after the dot");
        diag_hint(ctx->diags, diag, "write `%.*s0`", shown, text);
    } else {
        diag = diag_add(ctx->diags, DIAG_BAD_NUMBER, span, "`%.*s` is not a number", shown, text);
        diag_hint(ctx->diags, diag,
                  "a number has no suffix: its type comes from where it stands, or from `as`");
    }
    value->expr = ast_error(ctx, span);
    return TOK_FLOAT;
}

int scan_bad_string(ParseContext *ctx, TokenValue *value, Span span) {
    diag_add(ctx->diags, DIAG_BAD_STRING, span, "this string has no end on its line");
    value->expr = ast_error(ctx, span);
    ctx->broken_string = ctx->recovering = true;
    return TOK_STRING;
}

typedef VEC(char) CharVec;

static void utf8_push(ParseContext *ctx, CharVec *out, uint32_t code) {
    if (code < 0x80) {
        vec_push(ctx->arena, out, (char)code);
        return;
    }
    uint32_t more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    uint32_t lead[] = {0, 0xc0, 0xe0, 0xf0};
    vec_push(ctx->arena, out, (char)(lead[more] | code >> (6 * more)));
    while (more--)
        vec_push(ctx->arena, out, (char)(0x80 | (code >> (6 * more) & 0x3f)));
}

static int digit_value(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return 99;
}

/* Reads up to `max` digits of a base; gives how many there were. */
static uint32_t escape_digits(const char *text, const char *end, uint32_t max, int base,
                              uint32_t *code) {
    uint32_t count = 0;
    *code = 0;
    while (count < max && text + count < end && digit_value(text[count]) < base)
        *code = *code * (uint32_t)base + (uint32_t)digit_value(text[count++]);
    return count;
}

/* One escape after its backslash; gives the bytes read, 0 where it is none. */
static uint32_t scan_escape(ParseContext *ctx, CharVec *out, const char *text, const char *end) {
    static const char letters[] = "abfnrtv\\'\"?", codes[] = "\a\b\f\n\r\t\v\\'\"?";
    const char *letter = *text ? strchr(letters, *text) : NULL;
    uint32_t code, count;
    if (letter) {
        vec_push(ctx->arena, out, codes[letter - letters]);
        return 1;
    }
    if (*text >= '0' && *text <= '7') {
        count = escape_digits(text, end, 3, 8, &code);
        if (code > 0xff)
            return 0;
        vec_push(ctx->arena, out, (char)code);
        return count;
    }
    if (*text == 'x') {
        count = escape_digits(text + 1, end, 2, 16, &code);
        if (count)
            vec_push(ctx->arena, out, (char)code);
        return count ? count + 1 : 0;
    }
    if (*text == 'u' || *text == 'U') {
        uint32_t need = *text == 'u' ? 4 : 8;
        count = escape_digits(text + 1, end, need, 16, &code);
        if (count != need || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
            return 0;
        utf8_push(ctx, out, code);
        return count + 1;
    }
    return 0;
}

int scan_string(ParseContext *ctx, TokenValue *value, const char *text, uint32_t len, Span span) {
    CharVec out = {0};
    const char *end = text + len - 1;
    for (const char *at = text + 1; at < end;) {
        if (*at != '\\') {
            vec_push(ctx->arena, &out, *at++);
            continue;
        }
        uint32_t used = scan_escape(ctx, &out, at + 1, end);
        if (!used) {
            uint32_t begin = span.begin + (uint32_t)(at - text);
            Diag *diag = diag_add(ctx->diags, DIAG_BAD_STRING, (Span){begin, begin + 2},
                                  "this is not an escape");
            diag_hint(ctx->diags, diag, "a backslash is written `\\\\`");
            used = 1;
        }
        at += used + 1;
    }
    vec_push(ctx->arena, &out, '\0');
    value->expr = ast_string(ctx, span, out.data, out.len - 1);
    return TOK_STRING;
}

/* --- tokens --------------------------------------------------------------------------------- */

Token scan_next(ParseContext *ctx) {
    Token token = {0};
    token.kind = lang_scan_rules(&token.value, &token.span, ctx->scanner);
    doc_close(ctx, token.span);
    return token;
}
