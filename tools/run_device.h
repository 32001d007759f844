// One kernel of one source on one device.
#ifndef FUSE_TOOLS_RUN_DEVICE_H
#define FUSE_TOOLS_RUN_DEVICE_H

#include "tools/run_bind.h"
#include "tools/run_generics.h"

typedef struct RunDevice {
    FuseDevice *device;
    FuseModule *module;
    FuseKernel *kernel;
} RunDevice;

typedef struct RunSource {
    const char *path; // for messages
    const char *text;
    size_t length;
    RunKernel kernel;
} RunSource;

// Opens the device and compiles the kernel for it; diagnostics go to standard error as they are
// made (`quiet`: only errors do). `seed` is of the order of iterations, 0: the device's own. Close
// either way.
ExitCode run_device_open(RunDevice *out, const char *name, const RunSource *source,
                         const FuseOptions *options, uint64_t seed, bool is_quiet,
                         ToolError *error);
void run_device_close(RunDevice *device);

typedef struct RunTiming {
    double milliseconds; // median of all launches
    FuseRtLaunchInfo info;
} RunTiming;

// Launches once and brings the outputs back into the binding; then `repeat - 1` times for the time.
ExitCode run_device_launch(Arena *arena, RunDevice *device, RunBinding *binding, int repeat,
                           RunTiming *timing, ToolError *error);

// What a status of the runtime is as an exit code.
ExitCode run_status_code(FuseRtStatus status);

#endif
