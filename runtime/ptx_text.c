// The head of a PTX file that fusec wrote:
//
//   //! fuse 1 sm_90a 9f3c...      version of the format, target, hash of the device code
//   //! tir placed sm_90a          the launch plan, line by line
//   //! kernel ...
//   .version 8.7
//
// A cubin has the same lines behind its ELF file, and a last one of fixed length that says at which
// byte they begin: //! at 0000000000012345
#include <string.h>

#include "runtime/module.h"

enum { FORMAT = 1 };

typedef struct Line {
    const char *text;
    size_t len;
} Line;

// The next line without its end, or false.
static bool next_line(const char **at, const char *end, Line *line) {
    if (*at >= end)
        return false;
    const char *stop = memchr(*at, '\n', (size_t)(end - *at));
    line->text = *at;
    line->len = (size_t)((stop ? stop : end) - *at);
    *at = stop ? stop + 1 : end;
    if (line->len > 0 && line->text[line->len - 1] == '\r')
        line->len--;
    return true;
}

// "//! text": what is after the mark.
static bool is_marked(Line *line) {
    if (line->len < 3 || memcmp(line->text, "//!", 3) != 0)
        return false;
    size_t skip = line->len > 3 && line->text[3] == ' ' ? 4 : 3;
    line->text += skip;
    line->len -= skip;
    return true;
}

static const char *word(Arena *arena, const char **at, const char *end) {
    while (*at < end && **at == ' ')
        ++*at;
    const char *start = *at;
    while (*at < end && **at != ' ')
        ++*at;
    return arena_strndup(arena, start, (size_t)(*at - start));
}

static bool read_first(Arena *arena, Line line, PtxHeader *out, const char **error) {
    const char *at = line.text, *end = line.text + line.len;
    const char *name = word(arena, &at, end), *format = word(arena, &at, end);
    out->target = word(arena, &at, end);
    if (strcmp(name, "fuse") != 0) {
        *error = "its first comment line is not that of fusec";
        return false;
    }
    if (strcmp(format, "1") != 0) {
        *error = arena_printf(arena, "its launch plan has format %s; this run time reads format %d",
                              format, FORMAT);
        return false;
    }
    if (!*out->target) {
        *error = "its first comment line names no target";
        return false;
    }
    return true;
}

static const char *ptx_version(Arena *arena, const char *at, const char *end) {
    Line line;
    while (next_line(&at, end, &line)) {
        if (line.len > 9 && memcmp(line.text, ".version ", 9) == 0) {
            const char *number = line.text + 9;
            return word(arena, &number, line.text + line.len);
        }
    }
    return "";
}

bool ptx_header_read(Arena *arena, const char *ptx, size_t len, PtxHeader *out,
                     const char **error) {
    const char *at = ptx, *end = ptx + len;
    Line line;
    *out = (PtxHeader){0};
    if (!next_line(&at, end, &line) || !is_marked(&line)) {
        *error =
            "it has no launch plan (comment lines `//! ` at its head): was it compiled by fusec?";
        return false;
    }
    if (!read_first(arena, line, out, error))
        return false;
    char *plan = arena_alloc(arena, len + 1);
    const char *before = at;
    while (next_line(&at, end, &line) && is_marked(&line)) {
        memcpy(plan + out->plan_len, line.text, line.len);
        out->plan_len += line.len;
        plan[out->plan_len++] = '\n';
        before = at;
    }
    out->plan = plan;
    out->version = ptx_version(arena, before, end);
    return true;
}

bool cubin_plan_find(const char *data, size_t len, const char **plan, size_t *plan_len) {
    static const char magic[] = "\177ELF", mark[] = "//! at ";
    enum { LAST = sizeof mark - 1 + 16 + 1 };
    *plan = NULL;
    *plan_len = 0;
    if (len < sizeof magic - 1 || memcmp(data, magic, sizeof magic - 1) != 0)
        return false;
    const char *last = data + len - LAST;
    if (len < LAST || memcmp(last, mark, sizeof mark - 1) != 0 || data[len - 1] != '\n')
        return true;
    uint64_t at = 0;
    for (const char *c = last + sizeof mark - 1; c < data + len - 1; c++) {
        int digit = *c >= '0' && *c <= '9' ? *c - '0' : *c >= 'a' && *c <= 'f' ? *c - 'a' + 10 : -1;
        if (digit < 0)
            return true;
        at = at << 4 | (uint64_t)digit;
    }
    if (at > len - LAST)
        return true;
    *plan = data + at;
    *plan_len = len - LAST - (size_t)at;
    return true;
}
