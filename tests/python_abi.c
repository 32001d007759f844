// Prints the layouts of the public structures that python/fuse_rt.py declares again, one member a
// line: structure, member (- for the whole), offset (size). tests/python_fuse_rt.py compares.
#include <stdio.h>

#include "include/fuse_rt.h"

typedef struct Member {
    const char *of, *name;
    size_t offset;
} Member;

#define SIZE(type)                                                                                 \
    { #type, NULL, sizeof(type) }
#define MEMBER(type, name)                                                                         \
    { #type, #name, offsetof(type, name) }

static const Member members[] = {
    SIZE(DLTensor),
    MEMBER(DLTensor, data),
    MEMBER(DLTensor, device),
    MEMBER(DLTensor, ndim),
    MEMBER(DLTensor, dtype),
    MEMBER(DLTensor, shape),
    MEMBER(DLTensor, strides),
    MEMBER(DLTensor, byte_offset),
    SIZE(FuseRtDeviceOptions),
    MEMBER(FuseRtDeviceOptions, compiler),
    MEMBER(FuseRtDeviceOptions, threads),
    MEMBER(FuseRtDeviceOptions, seed),
    SIZE(FuseRtBuild),
    MEMBER(FuseRtBuild, defines),
    MEMBER(FuseRtBuild, includes),
    MEMBER(FuseRtBuild, kernel),
    MEMBER(FuseRtBuild, target),
    MEMBER(FuseRtBuild, no_fuse),
    MEMBER(FuseRtBuild, fast_math),
    MEMBER(FuseRtBuild, deterministic),
    MEMBER(FuseRtBuild, debug),
    MEMBER(FuseRtBuild, check),
    MEMBER(FuseRtBuild, line_info),
    MEMBER(FuseRtBuild, no_perf_notes),
    MEMBER(FuseRtBuild, opt_level),
    MEMBER(FuseRtBuild, message),
    MEMBER(FuseRtBuild, user),
    MEMBER(FuseRtBuild, warnings),
    SIZE(FuseRtDim),
    MEMBER(FuseRtDim, name),
    MEMBER(FuseRtDim, value),
    SIZE(FuseRtParam),
    MEMBER(FuseRtParam, name),
    MEMBER(FuseRtParam, kind),
    MEMBER(FuseRtParam, dtype),
    MEMBER(FuseRtParam, mode),
    MEMBER(FuseRtParam, optional),
    MEMBER(FuseRtParam, rank),
    MEMBER(FuseRtParam, dims),
    MEMBER(FuseRtParam, has_default),
    SIZE(FuseRtArg),
    MEMBER(FuseRtArg, name),
    MEMBER(FuseRtArg, kind),
    MEMBER(FuseRtArg, tensor),
    MEMBER(FuseRtArg, i),
    MEMBER(FuseRtArg, f),
    SIZE(FuseRtLaunchInfo),
    MEMBER(FuseRtLaunchInfo, kernel),
    MEMBER(FuseRtLaunchInfo, variant),
    MEMBER(FuseRtLaunchInfo, launches),
    MEMBER(FuseRtLaunchInfo, workspace),
};

int main(void) {
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        const Member *m = &members[i];
        printf("%s %s %zu\n", m->of, m->name ? m->name : "-", m->offset);
    }
    return 0;
}
