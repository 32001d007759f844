// Kernels of tests/corpus/numeric on cpu and on the simulator against the evaluator, through `fusec
// run --compare`. A line of NAME.cases is a kernel of NAME.fk and the arguments of a run; a line
// that starts with `cpu` or `sim` runs there only, one with `launches=N` in front of the arguments
// is N launches. FUSE_TEST_KERNEL=name runs the cases of one kernel.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/command.h"

static void run_case(const char *file, const char *device, const char *kernel, const char *rest) {
    char command[1024], *text;
    int launches = 0, used = 0;
    if (sscanf(rest, "launches=%d %n", &launches, &used) == 1)
        rest += used;
    snprintf(command, sizeof command,
             FUSEC_PROGRAM " run " FUSE_SOURCE_DIR
                           "/tests/corpus/numeric/%s.fk:%s %s -O1 -Wno-perf "
                           "--compare --device=%s 2>&1",
             file, kernel, rest, device);
    int code = run_command(command, &text);
    cr_expect(code == 0 && strstr(text, " ok"), "%s\n%s", command, text);
    snprintf(command, sizeof command, "%s on %s: %d launch", kernel, device, launches);
    cr_expect(!launches || strstr(text, command), "%s\n%s", command, text);
    free(text);
}

static void run_cases(const char *file, const char *device) {
    char path[512], line[512];
    snprintf(path, sizeof path, FUSE_SOURCE_DIR "/tests/corpus/numeric/%s.cases", file);
    FILE *cases = fopen(path, "r");
    cr_assert(cases, "%s", path);
    const char *only = getenv("FUSE_TEST_KERNEL");
    int n = 0;
    while (fgets(line, sizeof line, cases)) {
        line[strcspn(line, "\n")] = 0;
        char *kernel = line;
        if (strncmp(line, "cpu ", 4) == 0 || strncmp(line, "sim ", 4) == 0) {
            kernel += 4;
            if (strncmp(line, device, 3) != 0)
                continue;
        }
        char *rest = strchr(kernel, ' ');
        cr_assert(rest, "%s", line);
        *rest++ = 0;
        if (only && strcmp(only, kernel) != 0)
            continue;
        run_case(file, device, kernel, rest);
        n++;
    }
    fclose(cases);
    cr_expect(n > 0 || only, "%s has no cases", path);
}

Test(compare_kernels, take_cpu, .timeout = 600) {
    run_cases("take", "cpu");
}
Test(compare_kernels, take_sim, .timeout = 600) {
    run_cases("take", "sim");
}
Test(compare_kernels, whole_cpu, .timeout = 600) {
    run_cases("whole", "cpu");
}
Test(compare_kernels, whole_sim, .timeout = 600) {
    run_cases("whole", "sim");
}
Test(compare_kernels, loops_cpu, .timeout = 600) {
    run_cases("loops", "cpu");
}
Test(compare_kernels, loops_sim, .timeout = 600) {
    run_cases("loops", "sim");
}
Test(compare_kernels, inplace_cpu, .timeout = 600) {
    run_cases("inplace", "cpu");
}
Test(compare_kernels, inplace_sim, .timeout = 600) {
    run_cases("inplace", "sim");
}
Test(compare_kernels, packed_cpu, .timeout = 600) {
    run_cases("packed", "cpu");
}
Test(compare_kernels, packed_sim, .timeout = 600) {
    run_cases("packed", "sim");
}
Test(compare_kernels, double_cpu, .timeout = 600) {
    run_cases("double", "cpu");
}
Test(compare_kernels, double_sim, .timeout = 600) {
    run_cases("double", "sim");
}
Test(compare_kernels, schedule_cpu, .timeout = 600) {
    run_cases("schedule", "cpu");
}
Test(compare_kernels, schedule_sim, .timeout = 600) {
    run_cases("schedule", "sim");
}
Test(compare_kernels, sparse_cpu, .timeout = 600) {
    run_cases("sparse", "cpu");
}
Test(compare_kernels, sparse_sim, .timeout = 600) {
    run_cases("sparse", "sim");
}
Test(compare_kernels, launch_cpu, .timeout = 600) {
    run_cases("launch", "cpu");
}
Test(compare_kernels, launch_sim, .timeout = 600) {
    run_cases("launch", "sim");
}
Test(compare_kernels, along_cpu, .timeout = 600) {
    run_cases("along", "cpu");
}
Test(compare_kernels, along_sim, .timeout = 600) {
    run_cases("along", "sim");
}
Test(compare_kernels, sort_cpu, .timeout = 600) {
    run_cases("sort", "cpu");
}
Test(compare_kernels, sort_sim, .timeout = 600) {
    run_cases("sort", "sim");
}
