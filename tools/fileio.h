// Whole files: read, or written beside their place and renamed on commit, so that they appear whole
// or not at all.
#ifndef FUSE_TOOLS_FILEIO_H
#define FUSE_TOOLS_FILEIO_H

#include <stdio.h>

#include "tools/tensor.h"

typedef struct OutFile {
    FILE *stream;
    const char *path; // borrowed
    char *temporary;  // NULL: standard output, or a device that is written in place
    char *real;       // where the temporary goes; NULL with it
    int reason;       // errno of the first write that failed
} OutFile;

// path "-" is standard output.
bool outfile_open(OutFile *out, const char *path, ToolError *error);
bool outfile_write(OutFile *out, const void *data, size_t bytes);
// Closes and puts the file in its place; false: nothing is left behind.
bool outfile_commit(OutFile *out, ToolError *error);
// Gives up; allowed after either of the above too.
void outfile_discard(OutFile *out);

// The whole of a regular file or stream ("-": standard input), with a NUL after it; free it.
bool file_read_all(const char *path, char **data, size_t *size, ToolError *error);
// The same of source text, of which the compiler takes 256 MiB; /dev/zero has no end.
bool file_read_source(const char *path, char **data, size_t *size, ToolError *error);

// Whether both paths name one regular file, by whatever names.
bool file_is_same(const char *a, const char *b);

// What a kind of file has at a place in its beginning.
typedef struct FileMark {
    const char *text;
    size_t at;
} FileMark;

// A file's bytes, mapped where it is a regular file; of a stream that lacks the mark only the
// beginning, since it may have no end. Invariant: data is not NULL.
typedef struct FileView {
    char *data;
    size_t size;
    bool is_mapped;
} FileView;
bool file_view_open(FileView *view, const char *path, FileMark mark, ToolError *error);
void file_view_close(FileView *view);

#endif
