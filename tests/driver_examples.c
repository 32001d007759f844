// Every file of examples/ compiles to PTX, alone and whole, for one element type.
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/fusec.h"

static char *read_text(const char *path, size_t *len) {
    FILE *f = fopen(path, "rb");
    cr_assert(f, "%s", path);
    char *text = malloc(1 << 20);
    *len = fread(text, 1, 1 << 20, f);
    fclose(f);
    return text;
}

static void compile_file(const char *path) {
    static const char *const defines[] = {"T=bf16", NULL};
    size_t len, ptx_len;
    char *text = read_text(path, &len);
    FuseOptions options = {.target = "sm_90a",
                           .emit = FUSE_EMIT_PTX,
                           .opt_level = 1,
                           .defines = defines,
                           .no_perf_notes = true};
    FuseResult *r = fuse_compile(&options, path, text, len);
    cr_expect(fuse_result_ok(r), "%s", fuse_result_messages(r));
    cr_expect_str_empty(fuse_result_messages(r));
    const char *ptx = fuse_result_output(r, &ptx_len);
    cr_expect(strstr(ptx, ".visible .entry"), "%s", path);
    fuse_result_free(r);
    free(text);
}

Test(driver, examples) {
    DIR *dir = opendir(FUSE_SOURCE_DIR "/examples");
    cr_assert(dir);
    int files = 0;
    for (struct dirent *e; (e = readdir(dir));) {
        char path[1024];
        size_t n = strlen(e->d_name);
        if (n < 4 || strcmp(e->d_name + n - 3, ".fk") != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", FUSE_SOURCE_DIR "/examples", e->d_name);
        compile_file(path);
        files++;
    }
    closedir(dir);
    cr_expect(files >= 8, "%d files", files);
}
