// Runs a fuzzer's entry on files and on all files of folders: the regression test of what the
// fuzzer once found, for compilers without libFuzzer.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/fuzz/fuzz.h"

static int replay_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return -1;
    }
    uint8_t *data = NULL;
    size_t size = 0, room = 0, got;
    do {
        room = room ? room * 2 : 4096;
        data = realloc(data, room);
        if (!data)
            abort();
        got = fread(data + size, 1, room - size, file);
        size += got;
    } while (got > 0);
    fclose(file);
    // A copy without slack: a sanitizer sees the first byte past the end.
    uint8_t *exact = malloc(size ? size : 1);
    if (!exact)
        abort();
    memcpy(exact, data, size);
    free(data);
    fprintf(stderr, "%s\n", path);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    return 1;
}

// The number of files that ran, -1 where something could not be read.
static int replay(const char *path) {
    struct stat info;
    if (stat(path, &info) != 0) {
        perror(path);
        return -1;
    }
    if (!S_ISDIR(info.st_mode))
        return replay_file(path);
    DIR *folder = opendir(path);
    if (!folder) {
        perror(path);
        return -1;
    }
    int n = 0;
    for (struct dirent *e; n >= 0 && (e = readdir(folder)) != NULL;) {
        char name[4096];
        if (e->d_name[0] == '.')
            continue;
        snprintf(name, sizeof name, "%s/%s", path, e->d_name);
        int some = replay(name);
        n = some < 0 ? some : n + some;
    }
    closedir(folder);
    return n;
}

int main(int argc, char **argv) {
    int n = 0;
    for (int i = 1; i < argc && n >= 0; i++) {
        int some = replay(argv[i]);
        n = some < 0 ? some : n + some;
    }
    printf("%d inputs\n", n);
    return n > 0 ? 0 : 1;
}
