// `fusec run FILE.fk[:KERNEL] NAME=VALUE...`: compiles one kernel, runs it on files, numbers or
// made-up inputs, writes its outputs, and compares them with the reference evaluator when asked to.
// Input: the command line. Output: files; short outputs and tables on standard output; time and
// launches on standard error.
#include "tools/commands.h"
#include "tools/fileio.h"
#include "tools/run_device.h"
#include "tools/run_report.h"
#include "tools/run_tiles.h"

#include <stdlib.h>
#include <string.h>

// Above this many steps the evaluator would take minutes.
static const double MOST_WORK = 3e8;

typedef struct Run {
    Arena *arena;
    const OptParse *opts;
    RunArgs args;
    RunFiles files;
    CompilerOptions options;
    char *text;
    RunSource source;
    char device_name[32];
    RunDevice device;
    RunBinding binding;
    ToolError error;
} Run;

// --- Before the launch ---

static DType given_dtype(void *user, const char *parameter) {
    Run *run = user;
    const RunValue *value = run_args_value(&run->args, parameter);
    if (!value || (value->kind != RUN_NPY && value->kind != RUN_SAFETENSORS))
        return DT_NONE;
    // A file that cannot be read is reported when it is read as an argument.
    ToolError ignored;
    HostTensor *tensor = run_files_read(&run->files, (size_t)(value - run->args.values), &ignored);
    return tensor ? tensor->dtype : DT_NONE;
}

static ExitCode read_source(Run *run) {
    size_t length;
    const char *path = run->args.source;
    if (!file_read_source(path, &run->text, &length, &run->error))
        return EXIT_IO;
    run->source = (RunSource){
        .path = strcmp(path, "-") == 0 ? "<stdin>" : path, .text = run->text, .length = length};
    if (!run_kernel_find(run->arena, run->text, length, run->args.kernel, run->options.fuse.defines,
                         run->args.is_random, given_dtype, run, &run->source.kernel, &run->error))
        return EXIT_INPUT;
    return EXIT_OK;
}

// The runtime's name of the device, from --device and --target.
static ExitCode choose_device(Run *run) {
    const char *device = opts_value(run->opts, OPT_DEVICE), *target = run->options.fuse.target;
    bool is_cpu = target && (strcmp(target, "cpu") == 0 || strncmp(target, "cpu-", 4) == 0);
    bool is_sim = target && strncmp(target, "sim-", 4) == 0;
    if (!device && opts_has(run->opts, OPT_CHECK))
        device = "eval";
    if (!device && target)
        device = is_cpu ? "cpu" : is_sim ? "sim" : "cuda";
    if (!device)
        device = fuse_rt_cuda_device_count() > 0 ? "cuda" : "cpu";
    bool fits = strcmp(device, "sim") == 0    ? !is_cpu
                : strcmp(device, "cpu") == 0  ? !target || is_cpu
                : strcmp(device, "cuda") == 0 ? !is_cpu && !is_sim
                                              : true;
    if (!fits) {
        tool_fail(&run->error, "target %s does not run on device %s", target, device);
        return EXIT_USAGE;
    }
    bool named = target && (strcmp(device, "sim") == 0 || strcmp(device, "cpu") == 0) &&
                 strcmp(target, "cpu") != 0;
    snprintf(run->device_name, sizeof run->device_name, "%s%s%s", device, named ? ":" : "",
             named ? target + (is_sim || is_cpu ? 4 : 0) : "");
    return EXIT_OK;
}

static ExitCode check_options(Run *run) {
    if (opts_has(run->opts, OPT_TOLERANCE) && !opts_has(run->opts, OPT_COMPARE) &&
        !run->options.check_tiles) {
        tool_fail(&run->error, "--tolerance is for --compare and --check=tiles");
        return EXIT_USAGE;
    }
    const char *device = opts_value(run->opts, OPT_DEVICE);
    if (opts_has(run->opts, OPT_CHECK) && device && strcmp(device, "eval") != 0) {
        tool_fail(&run->error, "--check is of the evaluator, not of the device %s", device);
        return EXIT_USAGE;
    }
    if (opts_has(run->opts, OPT_CHECK) && opts_has(run->opts, OPT_COMPARE)) {
        tool_fail(&run->error, "--check runs the evaluator, which --compare compares with");
        return EXIT_USAGE;
    }
    // The runtime takes 0 for its default.
    if (run->options.fuse.opt_level == 0)
        run->options.fuse.opt_level = 1;
    return EXIT_OK;
}

static ExitCode prepare(Run *run) {
    if (!run_args_parse(&run->args, run->opts, &run->error))
        return EXIT_USAGE;
    ExitCode code = check_options(run);
    if (code != EXIT_OK)
        return code;
    if (!run_files_open(&run->files, &run->args, &run->error))
        return EXIT_INTERNAL;
    code = choose_device(run);
    if (code == EXIT_OK)
        code = read_source(run);
    if (code == EXIT_OK)
        code =
            run_device_open(&run->device, run->device_name, &run->source, &run->options.fuse,
                            opts_has(run->opts, OPT_SEED) ? run->args.seed : 0, false, &run->error);
    if (code == EXIT_OK)
        code = run_bind(run->arena, run->device.kernel, &run->args, &run->files, &run->binding,
                        &run->error);
    if (code == EXIT_OK && !run_check_outputs(&run->binding, &run->error))
        code = EXIT_USAGE;
    return code;
}

// --- The reference ---

static FuseOptions reference_options(const Run *run) {
    FuseOptions options = run->options.fuse;
    options.defines = run->source.kernel.defines;
    options.kernel = run->source.kernel.name;
    options.target = fuse_rt_device_target(run->device.device);
    return options;
}

// What the kernel's products may lose.
static ExitCode find_precision(Run *run, double *least) {
    FuseOptions options = reference_options(run);
    const Module *nests =
        run_eval_nests(run->arena, &options, run->source.text, run->source.length, &run->error);
    const Kernel *kernel = nests ? run_eval_find(nests, &run->binding, &run->error) : NULL;
    if (!kernel)
        return EXIT_INTERNAL;
    *least = run_precision_tolerance(kernel);
    return EXIT_OK;
}

static ExitCode compare_with(Run *run, RunBinding *want, const EvalReport *report) {
    double least = 0;
    ExitCode code = run->args.tolerance < 0 ? find_precision(run, &least) : EXIT_OK;
    if (code != EXIT_OK)
        return code;
    bool ok = run_print_comparison(stdout, &run->binding, want, report, run->args.tolerance, least);
    if (ok)
        return EXIT_OK;
    tool_fail(&run->error, "the result differs from the evaluator's by more than is allowed");
    return EXIT_INPUT;
}

// All of the kernel on the evaluator.
static ExitCode compare_whole(Run *run, RunBinding *want) {
    RunDevice eval;
    RunTiming timing;
    ExitCode code =
        run_device_open(&eval, "eval", &run->source, &run->options.fuse, 0, true, &run->error);
    if (code == EXIT_OK) {
        want->kernel = eval.kernel;
        code = run_device_launch(run->arena, &eval, want, 1, &timing, &run->error);
    }
    if (code == EXIT_OK)
        code = compare_with(run, want, NULL);
    run_device_close(&eval);
    return code;
}

static ExitCode compare_sample(Run *run, RunBinding *want) {
    FuseOptions options = reference_options(run);
    EvalReport report = {0};
    if (!run_eval_sample(run->arena, &options, run->source.text, run->source.length, want, &report,
                         &run->error))
        return EXIT_INTERNAL;
    command_note("the whole would take the evaluator minutes; %lld of %lld programs are compared",
                 (long long)report.programs_run, (long long)report.programs);
    return compare_with(run, want, &report);
}

// --- The command ---

static void print_time(const Run *run, const RunTiming *timing) {
    fprintf(stderr, "%s on %s: %d launch%s, %.3f ms",
            timing->info.kernel ? timing->info.kernel : "", fuse_rt_device_name(run->device.device),
            timing->info.launches, timing->info.launches == 1 ? "" : "es", timing->milliseconds);
    if (run->args.repeat > 1)
        fprintf(stderr, " (median of %d)", run->args.repeat);
    fputc('\n', stderr);
}

static ExitCode launch(Run *run) {
    bool compare = opts_has(run->opts, OPT_COMPARE);
    RunBinding want = {0};
    // Copied before the launch, which overwrites what is `inout`.
    if (compare && !run_binding_copy(run->arena, &run->binding, &want, &run->error)) {
        run_binding_free(&want);
        return EXIT_INPUT;
    }
    RunTiming timing;
    ExitCode code = run_device_launch(run->arena, &run->device, &run->binding, run->args.repeat,
                                      &timing, &run->error);
    if (code == EXIT_DEVICE && run->options.fuse.check) // what was found, not a broken device
        code = EXIT_INPUT;
    if (code == EXIT_OK)
        print_time(run, &timing);
    if (code == EXIT_OK && !run_write_outputs(&run->binding, &run->error))
        code = EXIT_IO;
    if (code == EXIT_OK && !compare)
        run_print_outputs(stdout, &run->binding);
    if (code == EXIT_OK && compare)
        code = run_eval_work(&want) > MOST_WORK ? compare_sample(run, &want)
                                                : compare_whole(run, &want);
    run_binding_free(&want);
    return code;
}

static ExitCode check_tiles(Run *run, RunBinding *inputs) {
    FuseOptions options = reference_options(run);
    options.check = false;
    TilesRequest request = {.options = &options,
                            .source = run->source.text,
                            .length = run->source.length,
                            .seed = run->args.seed,
                            .tolerance = run->args.tolerance};
    TilesResult result;
    if (!run_tiles(run->arena, &request, inputs, &result, &run->error))
        return EXIT_INPUT;
    if (result.difference) {
        tool_fail(&run->error, "%s", result.difference);
        return EXIT_INPUT;
    }
    printf("%d runs with other orders of iterations%s%s: the result is the same\n", result.runs,
           *result.axes ? " and tile sizes of " : "", result.axes);
    return EXIT_OK;
}

ExitCode run_command(const OptParse *opts) {
    Run run = {.opts = opts, .arena = arena_new("run")};
    ExitCode code = compiler_options(&run.options, opts);
    bool is_told = code != EXIT_OK;
    if (code == EXIT_OK)
        code = prepare(&run);
    // The launch overwrites what is `inout`.
    RunBinding inputs = {0};
    bool tiles = code == EXIT_OK && run.options.check_tiles;
    if (tiles && !run_binding_copy(run.arena, &run.binding, &inputs, &run.error))
        code = EXIT_INPUT;
    if (code == EXIT_OK)
        code = launch(&run);
    if (code == EXIT_OK && tiles)
        code = check_tiles(&run, &inputs);
    run_binding_free(&inputs);
    if (code != EXIT_OK && !is_told && *run.error.text)
        command_fail(code, "%s", run.error.text);
    run_binding_free(&run.binding);
    run_device_close(&run.device);
    run_files_close(&run.files);
    run_args_free(&run.args);
    compiler_options_free(&run.options);
    free(run.text);
    arena_free(run.arena);
    return code;
}
