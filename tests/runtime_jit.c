// The shared run time alone: it finds the compiler library by itself and compiles for this machine.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "include/fuse_rt.h"

Test(runtime_jit, finds_the_compiler) {
    static const char source[] = "kernel twice(x: f32[N]) -> (y: f32[N]) { y = x * 2.0; }\n";
    setenv("FUSE_COMPILER", FUSE_COMPILER_LIBRARY, 1);
    FuseDevice *device;
    FuseModule *module;
    FuseKernel *kernel;
    cr_assert_eq(fuse_rt_device_open("cpu", NULL, &device), FUSE_RT_OK);
    FuseRtStatus status =
        fuse_rt_module_from_source(device, "twice.fk", source, strlen(source), NULL, &module);
    cr_assert_eq(status, FUSE_RT_OK, "%s", fuse_rt_last_error());
    cr_assert_eq(fuse_rt_kernel_find(module, "twice", &kernel), FUSE_RT_OK);
    float x[5] = {1, 2, 3, 4, 5}, y[5] = {0};
    int64_t shape[1] = {5};
    DLTensor in = {.data = x,
                   .device = {kDLCPU, 0},
                   .ndim = 1,
                   .dtype = {kDLFloat, 32, 1},
                   .shape = shape},
             out = in;
    out.data = y;
    FuseRtArg args[] = {{.kind = FUSE_RT_TENSOR, .tensor = &in},
                        {.kind = FUSE_RT_TENSOR, .tensor = &out}};
    cr_assert_eq(fuse_rt_launch(kernel, NULL, 2, args, NULL), FUSE_RT_OK, "%s",
                 fuse_rt_last_error());
    for (int i = 0; i < 5; i++)
        cr_expect_eq(y[i], 2 * x[i]);
    fuse_rt_module_close(module);
    fuse_rt_device_close(device);
}
