// libfuse_rt: loads kernels that fusec compiled, and launches them.
//
//   FuseDevice *device;
//   FuseModule *module;
//   FuseKernel *kernel;
//   if (fuse_rt_device_open("cuda:0", NULL, &device) != FUSE_RT_OK ||
//       fuse_rt_module_from_file(device, "gelu.ptx", NULL, &module) != FUSE_RT_OK ||
//       fuse_rt_kernel_find(module, "linear_gelu", &kernel) != FUSE_RT_OK)
//       return fail(fuse_rt_last_error());
//   FuseRtArg args[] = {{.name = "x", .kind = FUSE_RT_TENSOR, .tensor = &x}, ...};
//   fuse_rt_launch(kernel, stream, 4, args, NULL);
//
// Errors. Every function that can fail returns a status. Anything but FUSE_RT_OK has a message, the
// calling thread's fuse_rt_last_error(); outputs are then NULL or untouched, and nothing was
// launched unless the status is FUSE_RT_DRIVER. Nothing is printed, nothing exits. Kernels run
// asynchronously on CUDA: an error inside one is reported by a later call, at the latest by
// fuse_rt_synchronize.
//
// Ownership. Devices and modules are closed by who opened them, modules before their device.
// Kernels belong to their module, texts to what they were asked of. Tensors and their memory belong
// to the caller; their descriptors are read during the call only, their memory until the launch is
// done.
//
// Thread-safety. Every function may be called from several threads at once, on the same objects
// too, except that nothing may be in use while it is closed or freed. On the devices cpu, sim and
// eval the launches of one module run one after another.
//
// CUDA. The primary context of the GPU is used, as CUDA's runtime API and the frameworks on it do;
// the calling thread's current context is left as it was. A stream is a CUstream (cudaStream_t);
// NULL is the default stream. Other devices ignore it and are done when the call returns.
#ifndef FUSE_RT_H
#define FUSE_RT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dlpack.h"
#include "fusec.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FUSE_RT_API __attribute__((visibility("default")))

enum { FUSE_RT_MAX_RANK = 8 };

typedef enum FuseRtStatus {
    FUSE_RT_OK,
    FUSE_RT_INVALID_ARGUMENT, // an argument of the call, or of the kernel, does not fit
    FUSE_RT_NO_DEVICE,        // no such device, or its driver is missing
    FUSE_RT_COMPILE,          // the source has errors, or the driver refuses the PTX
    FUSE_RT_IO,               // a file could not be read, or is not what it should be
    FUSE_RT_OUT_OF_MEMORY,    // of the device or the host
    FUSE_RT_DRIVER, // a call of the CUDA driver failed, or a kernel did (sim: a race, a deadlock)
    FUSE_RT_NO_VARIANT,  // no variant of the kernel takes these arguments
    FUSE_RT_UNSUPPORTED, // this device or build cannot do it
    FUSE_RT_INTERNAL,    // a bug
} FuseRtStatus;

// "invalid argument", ...
FUSE_RT_API const char *fuse_rt_status_name(FuseRtStatus status);
// What went wrong in this thread's last failing call, "" when none failed. Lives until the thread's
// next failing call.
FUSE_RT_API const char *fuse_rt_last_error(void);
FUSE_RT_API const char *fuse_rt_version(void);

// --- the compiler
// -------------------------------------------------------------------------------------------------

// The functions of libfusec that the runtime calls to compile source and to run on the devices cpu,
// sim and eval. They are looked up when first needed: in the file named by the environment variable
// FUSE_COMPILER, next to libfuse_rt, then where the loader looks (libfusec.so). A program that
// links libfusec gives its own table:
//   static const FuseCompilerApi compiler = FUSE_COMPILER_API;
typedef struct FuseCompilerApi {
    FuseResult *(*compile)(const FuseOptions *options, const char *name, const char *source,
                           size_t len);
    void (*result_free)(FuseResult *r);
    bool (*result_ok)(const FuseResult *r);
    const char *(*result_output)(const FuseResult *r, size_t *len);
    const char *(*result_messages)(const FuseResult *r);
    bool (*result_internal)(const FuseResult *r);
    const char *(*result_plan)(const FuseResult *r, size_t *len);
    const char *(*host_launch)(FuseResult *r, const char *entry, void *const *args, int64_t grid,
                               int warps, int64_t smem, int threads, uint64_t seed);
    const char *(*eval_run)(FuseResult *r, const char *kernel, int nargs, const FuseArg *args,
                            uint64_t seed);
    const char *(*target_at)(int i);
    bool (*result_note_use)(FuseResult *r, int n, const FuseFunctionUse *uses);
} FuseCompilerApi;

#define FUSE_COMPILER_API                                                                          \
    {                                                                                              \
        fuse_compile, fuse_result_free, fuse_result_ok, fuse_result_output, fuse_result_messages,  \
            fuse_result_internal, fuse_result_plan, fuse_host_launch, fuse_eval_run,               \
            fuse_target_at, fuse_result_note_use                                                   \
    }

// --- devices
// ------------------------------------------------------------------------------------------------------

typedef struct FuseDevice FuseDevice;

// A zeroed struct (or NULL) is the default.
typedef struct FuseRtDeviceOptions {
    const FuseCompilerApi *compiler; // NULL: looked up when needed; must outlive the device
    int threads;                     // cpu: worker threads, 0 = one per core
    uint64_t seed; // sim: picks the interleaving of warps; eval: the order of iterations, and of
                   // the elements of atomics and scatters (0: as written)
} FuseRtDeviceOptions;

// Opens a device by name:
//   "cuda", "cuda:1"      a GPU
//   "cpu"                 this machine; "cpu:x86-64-v3": as if it had no more than that
//   "sim", "sim:sm_80"    the simulator of a GPU's schedule on the host (without a name: sm_90a)
//   "eval"                the reference evaluator: slow, obviously right
// FUSE_RT_NO_DEVICE when there is none; FUSE_RT_INVALID_ARGUMENT for a name of no such form.
FUSE_RT_API FuseRtStatus fuse_rt_device_open(const char *name, const FuseRtDeviceOptions *options,
                                             FuseDevice **out);
FUSE_RT_API void fuse_rt_device_close(FuseDevice *device);             // NULL is allowed
FUSE_RT_API const char *fuse_rt_device_name(const FuseDevice *device); // "cuda:0"
// The compiler target that source is compiled for: "sm_90a", "cpu", "cpu-x86-64-v3", "sim-sm_90a".
FUSE_RT_API const char *fuse_rt_device_target(const FuseDevice *device);
// Where its tensors live: kDLCUDA and the number of the GPU, or kDLCPU.
FUSE_RT_API DLDevice fuse_rt_device_dlpack(const FuseDevice *device);
// The GPUs of this machine; 0 without a driver. Never fails.
FUSE_RT_API int fuse_rt_cuda_device_count(void);

// --- modules
// ------------------------------------------------------------------------------------------------------

typedef struct FuseModule FuseModule;

// How source is compiled. A zeroed struct (or NULL) is the default.
typedef struct FuseRtBuild {
    const char *const *defines; // "NAME=value" or "kernel.NAME=value", NULL-terminated; may be NULL
    const char *const *includes; // import folders, NULL-terminated; may be NULL
    const char *kernel;          // only this kernel of the file; NULL: all
    const char *target;          // NULL: the device's
    // deterministic: what could give different bits from run to run does not compile. check: on the
    // device eval a launch reports what it does wrong to `message`, and fails where that is an
    // error; other devices do not compile with it.
    bool no_fuse, fast_math, deterministic, debug, check, line_info, no_perf_notes;
    int opt_level; // 1..3; 0: the default, 2
    // Called with each diagnostic's text as it is made; NULL: they are in fuse_rt_last_error
    // (errors) and fuse_rt_module_messages (the rest).
    void (*message)(void *user, const char *text, size_t len);
    void *user;
    // What stands behind -W of `fusec`, NULL-terminated: "error", "no-ID", "error=ID"; may be NULL
    const char *const *warnings;
} FuseRtBuild;

// Compiles .fk source for the device and loads it. `name` is shown in diagnostics.
FUSE_RT_API FuseRtStatus fuse_rt_module_from_source(FuseDevice *device, const char *name,
                                                    const char *source, size_t len,
                                                    const FuseRtBuild *build, FuseModule **out);
// Loads PTX or a cubin that fusec wrote (the launch plan is in its comments, or behind the cubin).
// CUDA devices only; a cubin is for one generation of them.
FUSE_RT_API FuseRtStatus fuse_rt_module_from_ptx(FuseDevice *device, const char *name,
                                                 const char *ptx, size_t len, FuseModule **out);
// By the ending of its name: .fk is compiled, .ptx and .cubin are loaded (`build` is then ignored).
FUSE_RT_API FuseRtStatus fuse_rt_module_from_file(FuseDevice *device, const char *path,
                                                  const FuseRtBuild *build, FuseModule **out);
FUSE_RT_API void
fuse_rt_module_close(FuseModule *module); // waits for its launches; NULL is allowed
// Warnings and performance notes of the compilation, "" when there are none.
FUSE_RT_API const char *fuse_rt_module_messages(const FuseModule *module);
// Ids of those, in order: "perf-vector"; NULL at the end.
FUSE_RT_API const char *fuse_rt_module_diagnostic(const FuseModule *module, int i);
FUSE_RT_API const char *fuse_rt_module_plan(const FuseModule *module); // the launch plan's text

// --- kernels
// ------------------------------------------------------------------------------------------------------

// An instance ("linear_gelu.bf16"), or a family of instances that differ in element types
// ("linear_gelu").
typedef struct FuseKernel FuseKernel;

// By the name of an instance or a family. NULL finds the only kernel of the module, an error when
// it has several.
FUSE_RT_API FuseRtStatus fuse_rt_kernel_find(FuseModule *module, const char *name,
                                             FuseKernel **out);
// Instances, in order of the source.
FUSE_RT_API int fuse_rt_kernel_count(const FuseModule *module);
FUSE_RT_API FuseKernel *fuse_rt_kernel_at(FuseModule *module, int i); // NULL when there is no such
FUSE_RT_API const char *fuse_rt_kernel_name(const FuseKernel *kernel);
FUSE_RT_API int fuse_rt_kernel_instance_count(const FuseKernel *kernel); // 1, or more for a family
FUSE_RT_API FuseKernel *fuse_rt_kernel_instance_at(FuseKernel *kernel, int i);
FUSE_RT_API int fuse_rt_kernel_variant_count(const FuseKernel *kernel); // of the (first) instance

typedef enum FuseRtParamKind { FUSE_RT_PARAM_TENSOR, FUSE_RT_PARAM_SCALAR } FuseRtParamKind;
typedef enum FuseRtMode { FUSE_RT_IN, FUSE_RT_OUT, FUSE_RT_INOUT } FuseRtMode;

// A dim of a tensor parameter: a name bound at launch, or a number.
typedef struct FuseRtDim {
    const char *name; // NULL: an expression, or a number without a name
    int64_t value;    // -1: known at launch only
} FuseRtDim;

// A parameter that a launch takes; the order is that of the arguments by position: inputs, then
// outputs.
typedef struct FuseRtParam {
    const char *name;
    FuseRtParamKind kind;
    const char *dtype; // "bf16"; "" in a family whose instances differ in it
    FuseRtMode mode;   // tensors
    bool optional;     // tensors: may be absent
    int rank;          // tensors
    const FuseRtDim *dims;
    bool has_default; // scalars: may be left out
} FuseRtParam;

FUSE_RT_API int fuse_rt_kernel_param_count(const FuseKernel *kernel);
FUSE_RT_API const FuseRtParam *fuse_rt_kernel_param(const FuseKernel *kernel,
                                                    int i); // NULL when there is no such

// --- launching
// ----------------------------------------------------------------------------------------------------

typedef enum FuseRtArgKind {
    FUSE_RT_TENSOR, // `tensor`
    FUSE_RT_INT,    // `i`: for a scalar of integer type, bool (0 or 1) or float
    FUSE_RT_FLOAT,  // `f`: for a scalar of float type
    FUSE_RT_ABSENT, // an optional tensor that is not given
} FuseRtArgKind;

typedef struct FuseRtArg {
    const char *name; // parameter's name; NULL: the argument's place in the list is the parameter's
    FuseRtArgKind kind;
    const DLTensor *tensor;
    int64_t i;
    double f;
} FuseRtArg;

typedef struct FuseRtLaunchInfo {
    const char *kernel; // the instance
    int variant;        // its number, 0 = the most special
    int launches;       // grids started
    int64_t workspace;  // bytes of temporaries
} FuseRtLaunchInfo;

// Binds the arguments, checks them (types, ranks, shared dims, `where` conditions, overlap of what
// is written), picks the variant and starts its launches on `stream`. Optional tensors and scalars
// with defaults may be left out; empty tensors are fine. An integer argument with the name of a dim
// gives that dim. `info` may be NULL.
FUSE_RT_API FuseRtStatus fuse_rt_launch(FuseKernel *kernel, void *stream, int nargs,
                                        const FuseRtArg *args, FuseRtLaunchInfo *info);

// For callers that allocate outputs: both take the arguments known so far.
// The instance that the given tensors' types choose; FUSE_RT_NO_VARIANT when none or several fit.
FUSE_RT_API FuseRtStatus fuse_rt_kernel_select(FuseKernel *kernel, int nargs, const FuseRtArg *args,
                                               FuseKernel **out);
// The shape of tensor parameter `param`, from the dims that the arguments bind and the `where`
// conditions that define others (U == P / 2). FUSE_RT_INVALID_ARGUMENT names a dim that nothing
// binds.
FUSE_RT_API FuseRtStatus fuse_rt_kernel_shape(FuseKernel *kernel, int nargs, const FuseRtArg *args,
                                              int param, int64_t shape[FUSE_RT_MAX_RANK]);

// --- memory, streams, time
// ----------------------------------------------------------------------------------------

// Device memory, aligned to 256 bytes; 0 bytes give NULL. Not zeroed.
FUSE_RT_API FuseRtStatus fuse_rt_alloc(FuseDevice *device, size_t bytes, void **out);
FUSE_RT_API FuseRtStatus fuse_rt_free(FuseDevice *device, void *memory); // NULL is allowed
// Copies are done in stream order; host memory may be reused when the call returns.
FUSE_RT_API FuseRtStatus fuse_rt_copy_to_device(FuseDevice *device, void *to, const void *from,
                                                size_t bytes, void *stream);
FUSE_RT_API FuseRtStatus fuse_rt_copy_to_host(FuseDevice *device, void *to, const void *from,
                                              size_t bytes, void *stream);
FUSE_RT_API FuseRtStatus fuse_rt_fill(FuseDevice *device, void *memory, uint8_t byte, size_t bytes,
                                      void *stream);

FUSE_RT_API FuseRtStatus fuse_rt_stream_new(FuseDevice *device,
                                            void **out); // NULL on the host devices
FUSE_RT_API FuseRtStatus fuse_rt_stream_free(FuseDevice *device, void *stream);
// Waits for a stream; NULL: for all work of the device.
FUSE_RT_API FuseRtStatus fuse_rt_synchronize(FuseDevice *device, void *stream);

// Marks on a stream; the time between two of them, once both are reached (the call waits).
typedef struct FuseEvent FuseEvent;
FUSE_RT_API FuseRtStatus fuse_rt_event_new(FuseDevice *device, FuseEvent **out);
FUSE_RT_API FuseRtStatus fuse_rt_event_record(FuseEvent *event, void *stream);
FUSE_RT_API FuseRtStatus fuse_rt_event_elapsed(FuseEvent *from, FuseEvent *to,
                                               double *milliseconds);
FUSE_RT_API void fuse_rt_event_free(FuseEvent *event); // NULL is allowed

#ifdef __cplusplus
}
#endif
#endif
