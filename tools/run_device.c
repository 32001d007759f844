// One kernel of one source on one device: compile, upload, launch, time, download.
// Input: RunSource, a binding. Output: the binding's outputs, a time.
// Invariant: what was allocated on the device is freed on every path.
#include "tools/run_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const FuseCompilerApi compiler = FUSE_COMPILER_API;

ExitCode run_status_code(FuseRtStatus status) {
    switch (status) {
    case FUSE_RT_OK:
        return EXIT_OK;
    case FUSE_RT_INVALID_ARGUMENT:
    case FUSE_RT_COMPILE:
    case FUSE_RT_NO_VARIANT:
    case FUSE_RT_UNSUPPORTED:
        return EXIT_INPUT;
    case FUSE_RT_IO:
        return EXIT_IO;
    case FUSE_RT_NO_DEVICE:
    case FUSE_RT_OUT_OF_MEMORY:
    case FUSE_RT_DRIVER:
        return EXIT_DEVICE;
    case FUSE_RT_INTERNAL:
        break;
    }
    return EXIT_INTERNAL;
}

static ExitCode fail_status(FuseRtStatus status, ToolError *error) {
    tool_fail(error, "%s", fuse_rt_last_error());
    return run_status_code(status);
}

// --- Compiling ---

static void drop_message(void *user, const char *text, size_t length) {
    (void)user, (void)text, (void)length;
}

ExitCode run_device_open(RunDevice *out, const char *name, const RunSource *source,
                         const FuseOptions *options, uint64_t seed, bool is_quiet,
                         ToolError *error) {
    *out = (RunDevice){0};
    FuseRtDeviceOptions device_options = {.compiler = &compiler, .seed = seed};
    FuseRtStatus status = fuse_rt_device_open(name, &device_options, &out->device);
    if (status != FUSE_RT_OK)
        return fail_status(status, error);
    FuseRtBuild build = {
        .defines = source->kernel.name ? source->kernel.defines : options->defines,
        .includes = options->includes,
        .kernel = source->kernel.name,
        .no_fuse = options->no_fuse,
        .fast_math = options->fast_math,
        .deterministic = options->deterministic,
        .debug = options->debug,
        .check = options->check,
        .line_info = options->line_info,
        .no_perf_notes = options->no_perf_notes,
        .opt_level = options->opt_level,
        .message = is_quiet ? drop_message : options->message,
        .user = options->user,
        .warnings = options->warnings,
    };
    status = fuse_rt_module_from_source(out->device, source->path, source->text, source->length,
                                        &build, &out->module);
    if (status == FUSE_RT_OK)
        status = fuse_rt_kernel_find(out->module, source->kernel.name, &out->kernel);
    return status == FUSE_RT_OK ? EXIT_OK : fail_status(status, error);
}

void run_device_close(RunDevice *device) {
    fuse_rt_module_close(device->module);
    fuse_rt_device_close(device->device);
    *device = (RunDevice){0};
}

// --- Launching ---

typedef struct Memory {
    FuseDevice *device;
    bool is_host; // the tensors are used where they are
    void **at;    // one per argument
} Memory;

static bool needs_memory(const RunArgument *argument) {
    return argument->tensor.data && argument->tensor.bytes > 0;
}

static FuseRtStatus upload(const Memory *memory, const RunBinding *binding) {
    FuseRtStatus status = FUSE_RT_OK;
    for (int i = 0; i < binding->count && status == FUSE_RT_OK; i++) {
        const HostTensor *tensor = &binding->arguments[i].tensor;
        if (memory->is_host) {
            memory->at[i] = tensor->data;
        } else if (needs_memory(&binding->arguments[i])) {
            status = fuse_rt_alloc(memory->device, tensor->bytes, &memory->at[i]);
            if (status == FUSE_RT_OK)
                status = fuse_rt_copy_to_device(memory->device, memory->at[i], tensor->data,
                                                tensor->bytes, NULL);
        }
    }
    return status;
}

static FuseRtStatus download(const Memory *memory, RunBinding *binding) {
    FuseRtStatus status = FUSE_RT_OK;
    for (int i = 0; i < binding->count && status == FUSE_RT_OK && !memory->is_host; i++) {
        HostTensor *tensor = &binding->arguments[i].tensor;
        if (binding->arguments[i].is_output && needs_memory(&binding->arguments[i]))
            status = fuse_rt_copy_to_host(memory->device, tensor->data, memory->at[i],
                                          tensor->bytes, NULL);
    }
    return status == FUSE_RT_OK ? fuse_rt_synchronize(memory->device, NULL) : status;
}

static void release(const Memory *memory, const RunBinding *binding) {
    for (int i = 0; i < binding->count && !memory->is_host; i++)
        (void)fuse_rt_free(memory->device, memory->at[i]);
}

static double now_milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

// One launch with its time: the device's own where there are events, else the clock's.
static FuseRtStatus launch_timed(const Memory *memory, FuseKernel *kernel, int count,
                                 const FuseRtArg *args, double *milliseconds,
                                 FuseRtLaunchInfo *info) {
    FuseEvent *from = NULL, *to = NULL;
    FuseRtStatus status = FUSE_RT_OK;
    if (!memory->is_host) {
        status = fuse_rt_event_new(memory->device, &from);
        if (status == FUSE_RT_OK)
            status = fuse_rt_event_new(memory->device, &to);
        if (status == FUSE_RT_OK)
            status = fuse_rt_event_record(from, NULL);
    }
    double start = now_milliseconds();
    if (status == FUSE_RT_OK)
        status = fuse_rt_launch(kernel, NULL, count, args, info);
    if (status == FUSE_RT_OK && to)
        status = fuse_rt_event_record(to, NULL);
    if (status == FUSE_RT_OK)
        status = fuse_rt_synchronize(memory->device, NULL);
    *milliseconds = now_milliseconds() - start;
    if (status == FUSE_RT_OK && to)
        status = fuse_rt_event_elapsed(from, to, milliseconds);
    fuse_rt_event_free(from);
    fuse_rt_event_free(to);
    return status;
}

static int compare_times(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static FuseRtStatus launch_all(Arena *arena, const Memory *memory, RunBinding *binding, int repeat,
                               RunTiming *timing) {
    double *times = ARENA_ARRAY(arena, double, (size_t)repeat);
    FuseRtStatus status = upload(memory, binding);
    int count;
    FuseRtArg *args = run_launch_arguments(arena, binding, fuse_rt_device_dlpack(memory->device),
                                           memory->at, &count);
    for (int i = 0; i < repeat && status == FUSE_RT_OK; i++) {
        status = launch_timed(memory, binding->kernel, count, args, &times[i], &timing->info);
        // The result is that of the first launch: more would go on from what it left in `inout`s.
        if (i == 0 && status == FUSE_RT_OK)
            status = download(memory, binding);
    }
    if (status == FUSE_RT_OK) {
        qsort(times, (size_t)repeat, sizeof *times, compare_times);
        timing->milliseconds = times[repeat / 2];
    }
    return status;
}

ExitCode run_device_launch(Arena *arena, RunDevice *device, RunBinding *binding, int repeat,
                           RunTiming *timing, ToolError *error) {
    Memory memory = {.device = device->device};
    memory.is_host = fuse_rt_device_dlpack(device->device).device_type == kDLCPU;
    memory.at = ARENA_ARRAY(arena, void *, (size_t)binding->count + 1);
    *timing = (RunTiming){0};
    RunBinding scratch = {0};
    // On the host the launches work on the tensors themselves, so the repeated ones get copies.
    if (memory.is_host && repeat > 1 && !run_binding_copy(arena, binding, &scratch, error))
        return EXIT_INPUT;
    FuseRtStatus status = launch_all(arena, &memory, binding, memory.is_host ? 1 : repeat, timing);
    if (status == FUSE_RT_OK && scratch.count)
        status = launch_all(arena, &memory, &scratch, repeat, timing);
    ExitCode code = status == FUSE_RT_OK ? EXIT_OK : fail_status(status, error);
    release(&memory, binding);
    run_binding_free(&scratch);
    return code;
}
