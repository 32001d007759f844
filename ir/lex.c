// The lexer of textual IR. A number never takes a `.` that another `.` follows; `;` is a newline;
// `//` starts a comment.
//
// Input: the text. Output: one token at a time with one token of lookahead. Invariant: after an
// error only TOK_EOF.
#include "ir/parse_impl.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *ir_text_place(Arena *arena, const char *text, uint32_t at) {
    uint32_t line = 1, col = 1;
    for (uint32_t i = 0; i < at; i++) {
        col = text[i] == '\n' ? 1 : col + 1;
        line += text[i] == '\n';
    }
    return arena_printf(arena, "%u:%u", line, col);
}

void parse_fail(Parser *p, const Tok *at, const char *format, ...) {
    if (p->error)
        return;
    const char *place = ir_text_place(p->arena, p->text, at->at < p->len ? at->at : p->len);
    va_list args;
    va_start(args, format);
    const char *message = arena_vprintf(p->arena, format, args);
    va_end(args);
    p->error = arena_printf(p->arena, "%s: %s", place, message);
    p->pos = p->len;
    p->tok = p->ahead = (Tok){.kind = TOK_EOF, .at = p->len, .end = p->len};
}

static char char_at(const Parser *p, uint32_t i) {
    return i < p->len ? p->text[i] : 0;
}

static bool is_name_char(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

// End of a name that starts at `i`: dots only between other characters.
static uint32_t name_end(const Parser *p, uint32_t i, bool dashes) {
    while (is_name_char(char_at(p, i)) ||
           ((char_at(p, i) == '.' || (dashes && char_at(p, i) == '-')) &&
            is_name_char(char_at(p, i + 1))))
        i++;
    return i;
}

static void lex_number(Parser *p, Tok *t) {
    uint32_t i = t->at + (char_at(p, t->at) == '-');
    if (strncmp(p->text + i, "inf", p->len - i < 3 ? p->len - i : 3) == 0 && p->len - i >= 3) {
        t->kind = TOK_FLOAT;
        t->f = -(double)INFINITY;
        t->end = i + 3;
        return;
    }
    bool is_float = false;
    while (isdigit((unsigned char)char_at(p, i)))
        i++;
    if (char_at(p, i) == '.' && isdigit((unsigned char)char_at(p, i + 1))) {
        is_float = true;
        for (i++; isdigit((unsigned char)char_at(p, i));)
            i++;
    }
    if (char_at(p, i) == 'e') {
        uint32_t sign = char_at(p, i + 1) == '-' || char_at(p, i + 1) == '+';
        if (isdigit((unsigned char)char_at(p, i + 1 + sign))) {
            is_float = true;
            for (i += 1 + sign; isdigit((unsigned char)char_at(p, i));)
                i++;
        }
    }
    t->end = i;
    char *copy = arena_strndup(p->scratch, p->text + t->at, i - t->at);
    t->f = strtod(copy, NULL);
    t->kind = is_float ? TOK_FLOAT : TOK_INT;
    if (is_float)
        return;
    errno = 0;
    bool negative = *copy == '-';
    t->i = strtoull(copy + negative, NULL, 10);
    if (errno || (negative && t->i > (uint64_t)INT64_MAX + 1))
        parse_fail(p, t, "the number does not fit in 64 bits");
    if (negative)
        t->i = 0 - t->i;
}

static int hex_digit(char c) {
    return isdigit((unsigned char)c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void lex_string(Parser *p, Tok *t) {
    uint32_t i = t->at + 1, n = 0;
    uint32_t close = i;
    while (close < p->len && p->text[close] != '"' && p->text[close] != '\n')
        close += p->text[close] == '\\' ? 2 : 1;
    if (char_at(p, close) != '"') {
        parse_fail(p, t, "a string without an end");
        return;
    }
    char *out = arena_alloc(p->scratch, close - i + 1);
    for (; i < close; i++) {
        char c = p->text[i];
        if (c == '\\') {
            c = p->text[++i];
            int hi = hex_digit(char_at(p, i + 1)), lo = hex_digit(char_at(p, i + 2));
            if (c == 'n')
                c = '\n';
            else if (c == 't')
                c = '\t';
            else if (c == 'x' && i + 2 < close && hi >= 0 && lo >= 0 && hi + lo > 0) {
                c = (char)(16 * hi + lo);
                i += 2;
            }
        }
        if (c)
            out[n++] = c;
    }
    t->kind = TOK_STR;
    t->text = intern(p->module->interner, out, n);
    t->end = close + 1;
}

static void lex_sigil(Parser *p, Tok *t, TokKind kind) {
    t->kind = kind;
    t->end = name_end(p, t->at + 1, false);
    if (t->end == t->at + 1)
        parse_fail(p, t, "a name is missing after `%c`", p->text[t->at]);
    else
        t->text = intern(p->module->interner, p->text + t->at + 1, t->end - t->at - 1);
}

static Tok lex(Parser *p) {
    uint32_t start = p->pos;
    while (p->pos < p->len) {
        char c = p->text[p->pos];
        if (c == ' ' || c == '\t' || c == '\r')
            p->pos++;
        else if (c == '/' && char_at(p, p->pos + 1) == '/')
            while (p->pos < p->len && p->text[p->pos] != '\n')
                p->pos++;
        else
            break;
    }
    Tok t = {.at = p->pos, .end = p->pos + 1, .glued = start == p->pos};
    if (p->pos >= p->len) {
        t.end = t.at;
        return t;
    }
    char c = p->text[p->pos], after = char_at(p, p->pos + 1);
    if (c == '\n' || c == ';') {
        t.kind = TOK_NL;
    } else if (c == '%') {
        lex_sigil(p, &t, TOK_VAL);
    } else if (c == '@') {
        lex_sigil(p, &t, TOK_MEM);
    } else if (c == '#') {
        lex_sigil(p, &t, TOK_LAY);
    } else if (isdigit((unsigned char)c) ||
               (c == '-' && (isdigit((unsigned char)after) || after == 'i'))) {
        lex_number(p, &t);
    } else if (is_name_char(c)) {
        t.kind = TOK_NAME;
        t.end = name_end(p, p->pos, true);
        t.text = intern(p->module->interner, p->text + t.at, t.end - t.at);
    } else if (c == '"') {
        lex_string(p, &t);
    } else if (c == '.' && after == '.') {
        t.kind = TOK_DOTS;
        t.end = t.at + 2;
    } else if (c && strchr("{}()[]<>,=:!+", c)) {
        t.kind = TOK_CHAR;
        t.c = c;
    } else {
        parse_fail(p, &t, "a character that no token starts with");
    }
    if (p->error)
        return (Tok){.kind = TOK_EOF, .at = p->len, .end = p->len};
    p->pos = t.end;
    return t;
}

void parse_start(Parser *p) {
    p->tok = lex(p);
    Tok t = lex(p);
    if (!p->error)
        p->ahead = t;
}

void parse_next(Parser *p) {
    p->tok = p->ahead;
    Tok t = lex(p);
    if (!p->error)
        p->ahead = t;
}

void parse_rest_of_line(Parser *p, uint32_t *at, uint32_t *len) {
    uint32_t i = p->tok.at;
    *at = i;
    while (i < p->len && p->text[i] != '\n' && p->text[i] != ';' &&
           !(p->text[i] == '/' && char_at(p, i + 1) == '/'))
        i++;
    *len = i - *at;
    if (p->error)
        return;
    p->pos = i;
    parse_start(p);
}

bool parse_is(const Parser *p, char c) {
    return p->tok.kind == TOK_CHAR && p->tok.c == c;
}

bool parse_is_name(const Parser *p, const char *name) {
    return p->tok.kind == TOK_NAME && strcmp(p->tok.text, name) == 0;
}

bool parse_take(Parser *p, char c) {
    if (!parse_is(p, c))
        return false;
    parse_next(p);
    return true;
}

bool parse_take_name(Parser *p, const char *name) {
    if (!parse_is_name(p, name))
        return false;
    parse_next(p);
    return true;
}

void parse_expect(Parser *p, char c) {
    if (!parse_take(p, c))
        parse_fail(p, &p->tok, "`%c` is expected", c);
}

void parse_expect_name(Parser *p, const char *name) {
    if (!parse_take_name(p, name))
        parse_fail(p, &p->tok, "`%s` is expected", name);
}

Str parse_text(Parser *p, TokKind kind, const char *what) {
    if (p->tok.kind != kind) {
        parse_fail(p, &p->tok, "%s is expected", what);
        return intern_cstr(p->module->interner, "error");
    }
    Str s = p->tok.text;
    parse_next(p);
    return s;
}

int64_t parse_int(Parser *p, int64_t min, int64_t max) {
    int64_t i = (int64_t)p->tok.i;
    if (p->tok.kind != TOK_INT) {
        parse_fail(p, &p->tok, "an integer is expected");
        return min;
    }
    if (i < min || i > max) {
        parse_fail(p, &p->tok, "the number is out of range");
        return min;
    }
    parse_next(p);
    return i;
}

bool parse_newlines(Parser *p) {
    bool any = p->tok.kind == TOK_NL;
    while (p->tok.kind == TOK_NL)
        parse_next(p);
    return any;
}
