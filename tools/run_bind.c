// From files, numbers, shapes and --random to the arguments of one run, and back to files.
// Input: a kernel's parameters and the command line. Output: RunBinding.
// Invariant: after run_bind every tensor has the declared type and a shape that fits all others.
#include "tools/run_bind.h"

#include <stdlib.h>
#include <string.h>

#include "tools/compare.h"
#include "tools/npy.h"
#include "tools/safetensors.h"

// --- Files ---

bool run_files_open(RunFiles *files, const RunArgs *args, ToolError *error) {
    *files = (RunFiles){.args = args};
    files->tensors = calloc(args->value_count + 1, sizeof *files->tensors);
    return files->tensors || tool_fail(error, "out of memory");
}

void run_files_close(RunFiles *files) {
    for (size_t i = 0; files->tensors && i < files->args->value_count; i++)
        tensor_free(&files->tensors[i]);
    free(files->tensors);
    *files = (RunFiles){0};
}

HostTensor *run_files_read(RunFiles *files, size_t i, ToolError *error) {
    const RunValue *value = &files->args->values[i];
    HostTensor *tensor = &files->tensors[i];
    if (tensor->data)
        return tensor;
    bool ok;
    if (value->kind == RUN_NPY) {
        ok = npy_read(value->path, tensor, error);
    } else {
        SafeTensors *set = safetensors_open(value->path, error);
        ok = set && safetensors_read(set, value->key, tensor, error);
        safetensors_close(set);
    }
    return ok ? tensor : NULL;
}

static bool is_file(const RunValue *value) {
    return value->kind == RUN_NPY || value->kind == RUN_SAFETENSORS;
}

// --- Parameters ---

static RunArgument *find_argument(const RunBinding *binding, const char *name) {
    for (int i = 0; i < binding->count; i++)
        if (strcmp(binding->arguments[i].param->name, name) == 0)
            return &binding->arguments[i];
    return NULL;
}

static bool is_tensor(const RunArgument *argument) {
    return argument->param->kind == FUSE_RT_PARAM_TENSOR;
}

static ExitCode unknown_parameter(const RunBinding *binding, const char *name, ToolError *error) {
    char names[256] = "none";
    size_t used = 0;
    for (int i = 0; i < binding->count && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "",
                                 binding->arguments[i].param->name);
    tool_fail(error, "the kernel has no parameter '%s'; it has %s", name, names);
    return EXIT_USAGE;
}

static void list_arguments(Arena *arena, RunBinding *binding) {
    binding->count = fuse_rt_kernel_param_count(binding->kernel);
    binding->arguments = ARENA_ARRAY(arena, RunArgument, (size_t)binding->count + 1);
    for (int i = 0; i < binding->count; i++) {
        const FuseRtParam *param = fuse_rt_kernel_param(binding->kernel, i);
        binding->arguments[i] = (RunArgument){
            .param = param,
            .dtype = dtype_parse_cstr(param->dtype),
            .is_input = param->kind == FUSE_RT_PARAM_TENSOR && param->mode != FUSE_RT_OUT,
            .is_output = param->kind == FUSE_RT_PARAM_TENSOR && param->mode != FUSE_RT_IN,
        };
    }
}

static bool has_dim(const RunBinding *binding, const char *name);

// Gives each argument its value of the command line; NAME=N of a dim is for bind_sizes.
static ExitCode match_values(RunBinding *binding, const RunArgs *args, ToolError *error) {
    for (size_t i = 0; i < args->value_count; i++) {
        const RunValue *value = &args->values[i];
        RunArgument *argument = find_argument(binding, value->name);
        if (!argument && value->kind == RUN_INTEGER && has_dim(binding, value->name))
            continue;
        if (!argument)
            return unknown_parameter(binding, value->name, error);
        if (is_file(value) != is_tensor(argument)) {
            tool_fail(error, "'%s' is a %s, not a %s", value->name,
                      is_file(value) ? "scalar" : "tensor", is_file(value) ? "tensor" : "number");
            return EXIT_USAGE;
        }
        argument->value = value;
    }
    return EXIT_OK;
}

// --- Sizes ---

static void add_size(RunBinding *binding, const char *name, int64_t size) {
    for (int i = 0; i < binding->size_count; i++)
        if (strcmp(binding->sizes[i].name, name) == 0 && binding->sizes[i].i == size)
            return;
    binding->sizes[binding->size_count++] =
        (FuseRtArg){.name = name, .kind = FUSE_RT_INT, .i = size};
}

static bool has_dim(const RunBinding *binding, const char *name) {
    for (int i = 0; i < binding->count; i++) {
        const FuseRtParam *param = binding->arguments[i].param;
        for (int d = 0; is_tensor(&binding->arguments[i]) && d < param->rank; d++)
            if (param->dims[d].name && strcmp(param->dims[d].name, name) == 0)
                return true;
    }
    return false;
}

// --shape NAME=D0,D1,... says the same as its dims one by one; of a dim, --shape DIM=SIZE.
static ExitCode bind_shape(RunBinding *binding, const RunShape *shape, ToolError *error) {
    const RunArgument *argument = find_argument(binding, shape->name);
    if (!argument && shape->rank == 1 && has_dim(binding, shape->name)) {
        add_size(binding, shape->name, shape->dims[0]);
        return EXIT_OK;
    }
    if (!argument)
        return unknown_parameter(binding, shape->name, error);
    const FuseRtParam *param = argument->param;
    if (!is_tensor(argument) || param->rank != shape->rank) {
        tool_fail(error, "--shape: '%s' is declared with %d dims, not %d", shape->name,
                  is_tensor(argument) ? param->rank : 0, shape->rank);
        return EXIT_USAGE;
    }
    for (int i = 0; i < shape->rank; i++) {
        if (param->dims[i].name)
            add_size(binding, param->dims[i].name, shape->dims[i]);
        if (param->dims[i].value >= 0 && param->dims[i].value != shape->dims[i]) {
            tool_fail(error, "--shape: dim %d of '%s' is %lld, not %lld", i, shape->name,
                      (long long)param->dims[i].value, (long long)shape->dims[i]);
            return EXIT_USAGE;
        }
    }
    return EXIT_OK;
}

static ExitCode bind_sizes(Arena *arena, RunBinding *binding, const RunArgs *args,
                           ToolError *error) {
    size_t room = args->dim_count + args->value_count + args->shape_count * TENSOR_MAX_RANK;
    binding->sizes = ARENA_ARRAY(arena, FuseRtArg, room + 1);
    for (size_t i = 0; i < args->dim_count; i++) {
        if (!has_dim(binding, args->dims[i].name)) {
            tool_fail(error, "--random: the kernel has no dim '%s'", args->dims[i].name);
            return EXIT_USAGE;
        }
        add_size(binding, args->dims[i].name, args->dims[i].size);
    }
    for (size_t i = 0; i < args->value_count; i++)
        if (!find_argument(binding, args->values[i].name))
            add_size(binding, args->values[i].name, args->values[i].integer);
    for (size_t i = 0; i < args->shape_count; i++) {
        ExitCode code = bind_shape(binding, &args->shapes[i], error);
        if (code != EXIT_OK)
            return code;
    }
    return EXIT_OK;
}

// The size of a dim in a tensor that is given; -1 where none has it.
static int64_t carried_size(const RunBinding *binding, const char *name) {
    for (int i = 0; i < binding->count; i++) {
        const RunArgument *argument = &binding->arguments[i];
        for (int d = 0; d < argument->tensor.rank; d++)
            if (argument->param->dims[d].name && strcmp(argument->param->dims[d].name, name) == 0)
                return argument->tensor.dims[d];
    }
    return -1;
}

// One size a name, and that of the tensors that carry it.
static ExitCode check_sizes(const RunBinding *binding, ToolError *error) {
    for (int i = 0; i < binding->size_count; i++) {
        const FuseRtArg *size = &binding->sizes[i];
        int64_t other = carried_size(binding, size->name);
        for (int j = 0; j < i && other < 0; j++)
            if (strcmp(size->name, binding->sizes[j].name) == 0)
                other = binding->sizes[j].i;
        if (other >= 0 && other != size->i) {
            tool_fail(error, "dim %s is given as %lld and as %lld", size->name, (long long)other,
                      (long long)size->i);
            return EXIT_USAGE;
        }
    }
    return EXIT_OK;
}

// --- Scalars ---

static ExitCode bind_scalar(RunArgument *argument, bool is_random, ToolError *error) {
    const RunValue *value = argument->value;
    const char *name = argument->param->name;
    bool is_float = dtype_is_float(argument->dtype);
    if (!value && argument->param->has_default)
        return EXIT_OK;
    if (!value && !is_random) {
        tool_fail(error, "'%s' is not given: %s=NUMBER", name, name);
        return EXIT_USAGE;
    }
    argument->is_given = true;
    if (!value) {
        argument->scalar =
            is_float ? scalar_float(argument->dtype, 0.7) : scalar_int(argument->dtype, 1);
    } else if (is_float) {
        argument->scalar = scalar_float(argument->dtype, value->real);
    } else if (value->kind == RUN_FLOAT) {
        bool is_large = value->real >= 0x1p63 || value->real < -0x1p63;
        tool_fail(error,
                  is_large ? "'%s' is %s, which does not hold %g" : "'%s' is %s; %g is no integer",
                  name, dtype_name(argument->dtype), value->real);
        return EXIT_USAGE;
    } else {
        argument->scalar = scalar_int(argument->dtype, value->integer);
        if (argument->scalar.u.i != value->integer) {
            tool_fail(error, "'%s' is %s, which does not hold %lld", name,
                      dtype_name(argument->dtype), (long long)value->integer);
            return EXIT_USAGE;
        }
    }
    return EXIT_OK;
}

// --- Tensors ---

static ExitCode read_input(RunArgument *argument, RunFiles *files, ToolError *error) {
    HostTensor *file =
        run_files_read(files, (size_t)(argument->value - files->args->values), error);
    if (!file)
        return EXIT_IO;
    const FuseRtParam *param = argument->param;
    if (file->rank != param->rank) {
        tool_fail(error, "'%s' has %d dims, %d are declared", param->name, file->rank, param->rank);
        return EXIT_INPUT;
    }
    ToolError why;
    if (!tensor_convert(file, argument->dtype, &why)) {
        tool_fail(error, "'%s': %s", param->name, why.text);
        return EXIT_INPUT;
    }
    argument->tensor = *file;
    argument->is_given = true;
    *file = (HostTensor){0};
    return EXIT_OK;
}

static ExitCode bind_given(RunBinding *binding, const RunArgs *args, RunFiles *files,
                           ToolError *error) {
    for (int i = 0; i < binding->count; i++) {
        RunArgument *argument = &binding->arguments[i];
        ExitCode code = EXIT_OK;
        if (!is_tensor(argument))
            code = bind_scalar(argument, args->is_random, error);
        else if (argument->is_input && argument->value)
            code = read_input(argument, files, error);
        if (code != EXIT_OK)
            return code;
    }
    return EXIT_OK;
}

// A tensor that no file gives: an output, or an input to be made up or left out. Optional inputs
// are made up where the sizes are known, optional outputs where a file asks for them.
static ExitCode make_tensor(Arena *arena, RunBinding *binding, int i, const RunArgs *args,
                            ToolError *error) {
    RunArgument *argument = &binding->arguments[i];
    const FuseRtParam *param = argument->param;
    bool is_needed = argument->value || !param->optional;
    if (!is_needed && !(argument->is_input && args->is_random))
        return EXIT_OK;
    if (argument->is_input && !args->is_random) {
        tool_fail(error, "'%s' is not given: %s=FILE.npy", param->name, param->name);
        return EXIT_USAGE;
    }
    int count;
    FuseRtArg *known =
        run_launch_arguments(arena, binding, (DLDevice){.device_type = kDLCPU}, NULL, &count);
    int64_t shape[FUSE_RT_MAX_RANK];
    FuseRtStatus status = fuse_rt_kernel_shape(binding->kernel, count, known, i, shape);
    if (status != FUSE_RT_OK) {
        if (!is_needed)
            return EXIT_OK;
        const char *message = fuse_rt_last_error();
        if (strstr(message, "what dim"))
            tool_fail(error, "%s (--shape %s=... gives a shape, --random DIM=SIZE a size)", message,
                      param->name);
        else
            tool_fail(error, "%s", message);
        return EXIT_INPUT;
    }
    ToolError why;
    if (!tensor_alloc(&argument->tensor, argument->dtype, param->rank, shape, &why)) {
        tool_fail(error, "'%s': %s", param->name, why.text);
        return EXIT_INPUT;
    }
    argument->is_given = true;
    if (argument->is_input)
        tensor_fill_random(&argument->tensor, args->seed, param->name);
    return EXIT_OK;
}

ExitCode run_bind(Arena *arena, FuseKernel *kernel, const RunArgs *args, RunFiles *files,
                  RunBinding *out, ToolError *error) {
    *out = (RunBinding){.kernel = kernel};
    list_arguments(arena, out);
    ExitCode code = match_values(out, args, error);
    if (code == EXIT_OK)
        code = bind_sizes(arena, out, args, error);
    if (code == EXIT_OK)
        code = bind_given(out, args, files, error);
    if (code == EXIT_OK)
        code = check_sizes(out, error);
    for (int i = 0; i < out->count && code == EXIT_OK; i++)
        if (is_tensor(&out->arguments[i]) && !out->arguments[i].is_given)
            code = make_tensor(arena, out, i, args, error);
    return code;
}

bool run_binding_copy(Arena *arena, const RunBinding *from, RunBinding *out, ToolError *error) {
    *out = *from;
    out->arguments = ARENA_ARRAY(arena, RunArgument, (size_t)from->count + 1);
    for (int i = 0; i < from->count; i++) {
        out->arguments[i] = from->arguments[i];
        out->arguments[i].tensor = (HostTensor){0};
    }
    for (int i = 0; i < from->count; i++) {
        const HostTensor *tensor = &from->arguments[i].tensor;
        HostTensor *copy = &out->arguments[i].tensor;
        if (!tensor->data)
            continue;
        if (!tensor_alloc(copy, tensor->dtype, tensor->rank, tensor->dims, error))
            return false;
        memcpy(copy->data, tensor->data, tensor->bytes);
    }
    return true;
}

void run_binding_free(RunBinding *binding) {
    for (int i = 0; i < binding->count; i++)
        tensor_free(&binding->arguments[i].tensor);
    *binding = (RunBinding){0};
}

// --- Launch ---

static FuseRtArg tensor_argument(Arena *arena, const RunArgument *argument, DLDevice device,
                                 void *memory) {
    const HostTensor *host = &argument->tensor;
    DLTensor *tensor = ARENA_NEW(arena, DLTensor);
    tensor->data = memory;
    tensor->device = device;
    tensor->ndim = host->rank;
    tensor->dtype.code = dtype_dlpack_code(host->dtype);
    tensor->dtype.bits = dtype_dlpack_bits(host->dtype);
    tensor->dtype.lanes = 1;
    tensor->shape = arena_copy(arena, host->dims, sizeof host->dims);
    return (FuseRtArg){.name = argument->param->name, .kind = FUSE_RT_TENSOR, .tensor = tensor};
}

static FuseRtArg scalar_argument(const RunArgument *argument) {
    FuseRtArg out = {.name = argument->param->name, .kind = FUSE_RT_INT};
    if (dtype_is_float(argument->dtype)) {
        out.kind = FUSE_RT_FLOAT;
        out.f = argument->scalar.u.f;
    } else {
        out.i = argument->scalar.u.i;
    }
    return out;
}

FuseRtArg *run_launch_arguments(Arena *arena, const RunBinding *binding, DLDevice device,
                                void *const *memory, int *count) {
    FuseRtArg *out =
        ARENA_ARRAY(arena, FuseRtArg, (size_t)(binding->count + binding->size_count) + 1);
    *count = 0;
    for (int i = 0; i < binding->count; i++) {
        const RunArgument *argument = &binding->arguments[i];
        if (!argument->is_given)
            continue;
        out[(*count)++] = is_tensor(argument)
                              ? tensor_argument(arena, argument, device,
                                                memory ? memory[i] : argument->tensor.data)
                              : scalar_argument(argument);
    }
    for (int i = 0; i < binding->size_count; i++)
        if (carried_size(binding, binding->sizes[i].name) < 0)
            out[(*count)++] = binding->sizes[i];
    return out;
}

// --- Outputs ---

static bool is_first_of_path(const RunBinding *binding, int at) {
    const char *path = binding->arguments[at].value->path;
    for (int i = 0; i < at; i++) {
        const RunArgument *other = &binding->arguments[i];
        if (other->is_output && other->value && strcmp(other->value->path, path) == 0)
            return false;
    }
    return true;
}

// All outputs that go to one .safetensors file, beside what is in it already if one is `inout`.
static bool write_safetensors(const RunBinding *binding, const char *path, ToolError *error) {
    bool keep = false, ok = true;
    for (int i = 0; i < binding->count; i++) {
        const RunArgument *argument = &binding->arguments[i];
        keep |= argument->is_output && argument->is_input && argument->value &&
                strcmp(argument->value->path, path) == 0;
    }
    SafeTensors *set = keep ? safetensors_open(path, error) : safetensors_new();
    if (!set)
        return keep ? false : tool_fail(error, "out of memory");
    for (int i = 0; i < binding->count && ok; i++) {
        const RunArgument *argument = &binding->arguments[i];
        if (argument->is_output && argument->value && strcmp(argument->value->path, path) == 0)
            ok = safetensors_put(set, argument->value->key, &argument->tensor, error);
    }
    ok = ok && safetensors_write(set, path, error);
    safetensors_close(set);
    return ok;
}

static bool has_file(const RunArgument *argument) {
    return argument->value && is_file(argument->value);
}

// Two tensors may be in one .safetensors file under two keys; an input there survives what is
// written only beside an `inout`, which keeps the rest of the file.
static bool check_pair(const RunBinding *binding, const RunArgument *output,
                       const RunArgument *other, ToolError *error) {
    const char *path = output->value->path, *name = output->param->name;
    bool is_one_path = strcmp(path, other->value->path) == 0;
    if (!is_one_path && !file_is_same(path, other->value->path))
        return true;
    bool is_apart = is_one_path && output->value->kind == RUN_SAFETENSORS &&
                    strcmp(output->value->key, other->value->key) != 0;
    if (other->is_output)
        return is_apart || tool_fail(error, "'%s' and '%s' are written to one place, %s",
                                     other->param->name, name, path);
    bool is_kept = false;
    for (int i = 0; i < binding->count && is_apart; i++) {
        const RunArgument *third = &binding->arguments[i];
        is_kept |= third->is_output && third->is_input && has_file(third) &&
                   strcmp(third->value->path, path) == 0;
    }
    return is_kept || tool_fail(error, "'%s' would overwrite %s, from which '%s' is read", name,
                                path, other->param->name);
}

bool run_check_outputs(const RunBinding *binding, ToolError *error) {
    for (int i = 0; i < binding->count; i++) {
        const RunArgument *output = &binding->arguments[i];
        if (!output->is_output || !has_file(output))
            continue;
        for (int j = 0; j < binding->count; j++) {
            const RunArgument *other = &binding->arguments[j];
            if (j != i && has_file(other) && !check_pair(binding, output, other, error))
                return false;
        }
    }
    return true;
}

bool run_write_outputs(const RunBinding *binding, ToolError *error) {
    for (int i = 0; i < binding->count; i++) {
        const RunArgument *argument = &binding->arguments[i];
        if (!argument->is_output || !argument->value)
            continue;
        const char *path = argument->value->path;
        if (argument->value->kind == RUN_NPY) {
            if (!npy_write(path, &argument->tensor, false, error))
                return false;
        } else if (is_first_of_path(binding, i) && !write_safetensors(binding, path, error)) {
            return false;
        }
    }
    return true;
}
