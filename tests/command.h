// Shell commands of tests: what they print and how they end, and folders for their files.
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
