/* Source map: see source.h. Lines are found by binary search in a table of line starts. */
#include "lang/base/source.h"

#include "lang/base/vec.h"

#include <string.h>

typedef struct SourceFile {
    const char *name;
    const char *text;
    uint32_t begin, len;
    VEC(uint32_t) lines; /* offset in the file of each line's first byte */
} SourceFile;

struct SourceMap {
    Arena *arena;
    VEC(SourceFile) files;
    uint32_t next; /* first free offset */
};

SourceMap *source_map_new(Arena *arena) {
    SourceMap *map = ARENA_NEW(arena, SourceMap);
    map->arena = arena;
    map->next = 1;
    return map;
}

FileId source_add(SourceMap *map, const char *name, const char *text, size_t len) {
    if (len >= UINT32_MAX - 1u - map->next)
        return 0;
    SourceFile file = {
        .name = arena_strdup(map->arena, name),
        .text = arena_strndup(map->arena, text, len),
        .begin = map->next,
        .len = (uint32_t)len,
    };
    vec_push(map->arena, &file.lines, 0);
    for (uint32_t i = 0; i < file.len; i++)
        if (file.text[i] == '\n')
            vec_push(map->arena, &file.lines, i + 1);
    vec_push(map->arena, &map->files, file);
    map->next += file.len + 1; /* the end of a file is a place of its own */
    return map->files.len;
}

uint32_t source_count(const SourceMap *map) {
    return map->files.len;
}

const char *source_name(const SourceMap *map, FileId file) {
    return map->files.data[file - 1].name;
}

const char *source_text(const SourceMap *map, FileId file, uint32_t *len) {
    const SourceFile *f = &map->files.data[file - 1];
    if (len)
        *len = f->len;
    return f->text;
}

Span source_span(const SourceMap *map, FileId file) {
    const SourceFile *f = &map->files.data[file - 1];
    return (Span){f->begin, f->begin + f->len};
}

FileId source_file_at(const SourceMap *map, uint32_t offset) {
    if (offset == 0 || offset >= map->next)
        return 0;
    uint32_t low = 0, high = map->files.len; /* files[low].begin <= offset < files[high].begin */
    while (high - low > 1) {
        uint32_t mid = low + (high - low) / 2;
        if (map->files.data[mid].begin <= offset)
            low = mid;
        else
            high = mid;
    }
    return low + 1;
}

/* Index of the line that holds a file-relative offset. */
static uint32_t line_index(const SourceFile *file, uint32_t offset) {
    uint32_t low = 0, high = file->lines.len;
    while (high - low > 1) {
        uint32_t mid = low + (high - low) / 2;
        if (file->lines.data[mid] <= offset)
            low = mid;
        else
            high = mid;
    }
    return low;
}

SourcePos source_pos(const SourceMap *map, uint32_t offset) {
    FileId id = source_file_at(map, offset);
    if (!id)
        return (SourcePos){0};
    const SourceFile *file = &map->files.data[id - 1];
    uint32_t at = offset - file->begin, line = line_index(file, at), col = 1;
    for (uint32_t i = file->lines.data[line]; i < at; i++)
        col += ((unsigned char)file->text[i] & 0xc0) != 0x80; /* not a continuation byte */
    return (SourcePos){.file = id, .name = file->name, .line = line + 1, .col = col};
}

SourceLine source_line_at(const SourceMap *map, uint32_t offset) {
    FileId id = source_file_at(map, offset);
    if (!id)
        return (SourceLine){.text = ""};
    const SourceFile *file = &map->files.data[id - 1];
    uint32_t line = line_index(file, offset - file->begin);
    uint32_t begin = file->lines.data[line];
    uint32_t end = line + 1 < file->lines.len ? file->lines.data[line + 1] - 1 : file->len;
    if (end > begin && file->text[end - 1] == '\r')
        end--;
    return (SourceLine){file->text + begin, end - begin, file->begin + begin};
}

const char *source_span_text(const SourceMap *map, Span span, uint32_t *len) {
    FileId id = source_file_at(map, span.begin);
    if (!id || span.end < span.begin) {
        *len = 0;
        return NULL;
    }
    const SourceFile *file = &map->files.data[id - 1];
    uint32_t end = span.end - file->begin;
    *len = (end < file->len ? end : file->len) - (span.begin - file->begin);
    return file->text + (span.begin - file->begin);
}

bool span_is_none(Span span) {
    return span.begin == 0 && span.end == 0;
}

Span span_join(Span a, Span b) {
    if (span_is_none(a))
        return b;
    if (span_is_none(b))
        return a;
    return (Span){a.begin < b.begin ? a.begin : b.begin, a.end > b.end ? a.end : b.end};
}
