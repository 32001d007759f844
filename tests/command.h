// Files and shell commands of tests: what is in them, what they print and how they end, and
// folders.
#ifndef FUSE_TESTS_COMMAND_H
#define FUSE_TESTS_COMMAND_H

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

// Runs a line of the shell. Returns its exit code, -1: it was killed. *text: what it printed, at
// most 64 KiB, the caller's to free. Standard error is there where the line says 2>&1.
static inline int run_command(const char *line, char **text) {
    enum { TEXT_MOST = 1 << 16 };
    *text = calloc(1, TEXT_MOST);
    FILE *pipe = popen(line, "r");
    cr_assert(*text && pipe, "%s", line);
    (*text)[fread(*text, 1, TEXT_MOST - 1, pipe)] = 0;
    int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// The bytes of a file and a NUL behind them, the caller's to free.
static inline char *file_text(const char *path) {
    FILE *f = fopen(path, "rb");
    cr_assert(f, "%s", path);
    fseek(f, 0, SEEK_END);
    long size = ftell(f);
    rewind(f);
    char *text = calloc(1, (size_t)size + 1);
    cr_assert(text && fread(text, 1, (size_t)size, f) == (size_t)size, "%s", path);
    fclose(f);
    return text;
}

// A new folder; the caller gives it to folder_free.
static inline char *folder_make(void) {
    char *path = strdup("/tmp/fuse-test-XXXXXX");
    cr_assert(path && mkdtemp(path));
    return path;
}

// Removes the folder with all that is in it, whatever its permissions.
static inline void folder_free(char *path) {
    char line[128];
    snprintf(line, sizeof line, "chmod -R u+w %s; rm -rf %s", path, path);
    cr_assert_eq(system(line), 0);
    free(path);
}

#endif
