/* Source map: every file's text in one space of byte offsets.
 *
 * Files get disjoint ranges of global offsets, so that a Span (two offsets) names a place in any
 * file. Offset 0 belongs to no file: a zeroed Span is "nowhere". Line and column are computed only
 * when something is printed. Input: names and texts, which are copied. Invariant: ranges are in
 * order of addition and never change.
 */
#ifndef FUSE_LANG_BASE_SOURCE_H
#define FUSE_LANG_BASE_SOURCE_H

#include "lang/base/arena.h"

#include <stdbool.h>
#include <stdint.h>

/* Bytes begin..end (end excluded), as global offsets. */
typedef struct Span {
    uint32_t begin, end;
} Span;

typedef uint32_t FileId; /* 1, 2, ...; 0 is no file */
typedef struct SourceMap SourceMap;

/* One end of a span for people; line and column count from 1, columns in code points. */
typedef struct SourcePos {
    FileId file; /* 0: nowhere, and the rest is zero */
    const char *name;
    uint32_t line, col;
} SourcePos;

/* A line of text without its line break; `begin` is its global offset. */
typedef struct SourceLine {
    const char *text;
    uint32_t len;
    uint32_t begin;
} SourceLine;

SourceMap *source_map_new(Arena *arena);
/* Copies name and text. Gives 0 where the 4 GiB of offsets are used up. */
FileId source_add(SourceMap *map, const char *name, const char *text, size_t len);
uint32_t source_count(const SourceMap *map);
const char *source_name(const SourceMap *map, FileId file);
/* The text is NUL-terminated after its `len` bytes, and may contain NULs. */
const char *source_text(const SourceMap *map, FileId file, uint32_t *len);
/* The whole file as a span; .begin is the offset of its first byte. */
Span source_span(const SourceMap *map, FileId file);

FileId source_file_at(const SourceMap *map, uint32_t offset);
SourcePos source_pos(const SourceMap *map, uint32_t offset);
SourceLine source_line_at(const SourceMap *map, uint32_t offset);
/* The bytes of a span that lies inside one file; NULL and 0 for nowhere. */
const char *source_span_text(const SourceMap *map, Span span, uint32_t *len);

/* From the first begin to the last end; nowhere spans do not count. */
Span span_join(Span a, Span b);
bool span_is_none(Span span);

#endif
