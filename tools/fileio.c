// Files that appear whole or not at all, and whole files read.
// Invariant: on any failure the temporary is gone and what was at the path before is untouched.
#include "tools/fileio.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// The compiler refuses source that is longer.
enum { SOURCE_MAX_BYTES = 256 << 20 };

// The file that a path leads to, links followed: what is replaced is it, not a link to it. `path`
// is where there is none yet.
static char *resolve(const char *path) {
    struct stat info;
    if (lstat(path, &info) != 0 || !S_ISLNK(info.st_mode))
        return strdup(path);
    char *real = realpath(path, NULL);
    return real ? real : strdup(path);
}

// An empty file beside out->real, so that renaming works; a short name, since that of the other may
// be as long as names can be. -1: the reason is in errno.
static int temporary_make(OutFile *out) {
    static const char name[] = ".fusec-XXXXXX";
    const char *slash = strrchr(out->real, '/');
    size_t folder = slash ? (size_t)(slash - out->real) + 1 : 0;
    char *path = malloc(folder + sizeof name);
    if (!path)
        return -1;
    memcpy(path, out->real, folder);
    memcpy(path + folder, name, sizeof name);
    int file = mkostemp(path, O_CLOEXEC);
    if (file >= 0)
        out->temporary = path;
    else
        free(path);
    return file;
}

static bool open_fail(OutFile *out, ToolError *error) {
    tool_fail(error, "%s: %s", out->path, strerror(errno));
    outfile_discard(out);
    return false;
}

bool outfile_open(OutFile *out, const char *path, ToolError *error) {
    *out = (OutFile){.path = path};
    if (strcmp(path, "-") == 0) {
        out->stream = stdout;
        return true;
    }
    struct stat info;
    bool exists = stat(path, &info) == 0;
    if (exists && S_ISDIR(info.st_mode))
        return tool_fail(error, "%s: is a directory", path);
    if (exists && !S_ISREG(info.st_mode)) { // /dev/null, a pipe: renaming would replace it
        out->stream = fopen(path, "wb");
        return out->stream || open_fail(out, error);
    }
    if (exists && access(path, W_OK) != 0) // renaming does not ask
        return open_fail(out, error);
    out->real = resolve(path);
    int file = out->real ? temporary_make(out) : -1;
    if (file < 0)
        return open_fail(out, error);
    // mkstemp makes files private; outputs have the usual permissions, or those they had.
    mode_t mask = umask(0);
    umask(mask);
    (void)fchmod(file, exists ? info.st_mode & 07777 : 0666 & ~mask);
    out->stream = fdopen(file, "wb");
    if (out->stream)
        return true;
    close(file);
    return open_fail(out, error);
}

bool outfile_write(OutFile *out, const void *data, size_t bytes) {
    if (bytes == 0 || fwrite(data, 1, bytes, out->stream) == bytes)
        return true;
    if (!out->reason)
        out->reason = errno;
    return false;
}

bool outfile_commit(OutFile *out, ToolError *error) {
    bool ok = !out->reason && fflush(out->stream) == 0 && !ferror(out->stream);
    int reason = out->reason ? out->reason : errno;
    if (out->stream != stdout && fclose(out->stream) != 0 && ok) {
        ok = false;
        reason = errno;
    }
    out->stream = NULL;
    if (ok && out->temporary && rename(out->temporary, out->real) != 0) {
        ok = false;
        reason = errno;
    }
    if (!ok) {
        tool_fail(error, "%s: %s", out->path, strerror(reason));
        outfile_discard(out);
        return false;
    }
    free(out->temporary);
    free(out->real);
    out->temporary = out->real = NULL;
    return true;
}

void outfile_discard(OutFile *out) {
    if (out->stream && out->stream != stdout)
        (void)fclose(out->stream);
    if (out->temporary)
        (void)unlink(out->temporary);
    free(out->temporary);
    free(out->real);
    *out = (OutFile){0};
}

static bool is_marked(const FileMark *mark, const char *text, size_t used) {
    size_t length = strlen(mark->text);
    return used < mark->at + length || memcmp(text + mark->at, mark->text, length) == 0;
}

// Of more than `most` bytes, `most` + 1 are read; of what lacks the mark (NULL: any), the
// beginning.
static bool read_most(const char *path, size_t most, const FileMark *mark, char **data,
                      size_t *size, ToolError *error) {
    FILE *in = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (!in)
        return tool_fail(error, "%s: %s", path, strerror(errno));
    struct stat info;
    size_t room = 1 << 16, used = 0;
    if (fstat(fileno(in), &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0)
        room = (size_t)info.st_size + 2; // one for the NUL, one to see the end at once
    char *text = malloc(room);
    bool ok = text || tool_fail(error, "%s: not enough memory", path);
    while (ok && !feof(in) && used <= most && (!mark || is_marked(mark, text, used))) {
        if (room - used < 2) {
            char *more = realloc(text, room * 2);
            if (!more) {
                ok = tool_fail(error, "%s: not enough memory", path);
                break;
            }
            text = more;
            room *= 2;
        }
        errno = 0;
        used += fread(text + used, 1, room - used - 1, in);
        if (ferror(in))
            ok = tool_fail(error, "%s: %s", path, strerror(errno ? errno : EIO));
    }
    if (in != stdin)
        (void)fclose(in);
    if (!ok) {
        free(text);
        return false;
    }
    if (used > most)
        used = most + 1;
    text[used] = 0;
    *data = text;
    *size = used;
    return true;
}

bool file_read_all(const char *path, char **data, size_t *size, ToolError *error) {
    return read_most(path, SIZE_MAX - 1, NULL, data, size, error);
}

bool file_read_source(const char *path, char **data, size_t *size, ToolError *error) {
    return read_most(path, SOURCE_MAX_BYTES, NULL, data, size, error);
}

bool file_is_same(const char *a, const char *b) {
    struct stat first, second;
    return stat(a, &first) == 0 && stat(b, &second) == 0 && S_ISREG(first.st_mode) &&
           first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

bool file_view_open(FileView *view, const char *path, FileMark mark, ToolError *error) {
    *view = (FileView){0};
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return tool_fail(error, "%s: %s", path, strerror(errno));
    struct stat info;
    if (fstat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
        void *data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, file, 0);
        if (data != MAP_FAILED)
            *view = (FileView){data, (size_t)info.st_size, true};
    }
    close(file);
    return view->data || read_most(path, SIZE_MAX - 1, &mark, &view->data, &view->size, error);
}

void file_view_close(FileView *view) {
    if (view->is_mapped)
        munmap(view->data, view->size);
    else
        free(view->data);
    *view = (FileView){0};
}
