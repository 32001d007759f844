// Entry parameters of a launch; see abi.h.
//
// Input: a `launch` op with its lists filled in. Output: the parameters in order. Invariant: the
// list depends on nothing but the op, so every reader of one plan counts the same parameters.
#include "ir/abi.h"

static int scalar_bytes(DType dtype) {
    return dtype == DT_INDEX ? 8 : dtype == DT_BOOL ? 1 : (int)dtype_bytes(dtype, 1);
}

AbiParam *abi_launch_params(Arena *arena, const Op *launch, int *n) {
    int most = launch->nin;
    for (int i = 0; i < launch->nmem; i++)
        most += 1 + launch->mem[i].mem->rank;
    AbiParam *list = ARENA_ARRAY(arena, AbiParam, (size_t)most);
    int count = 0;
    for (int i = 0; i < launch->nmem; i++) {
        Mem *m = launch->mem[i].mem;
        list[count++] = (AbiParam){.kind = ABI_POINTER, .mem = m, .dtype = DT_INDEX, .bytes = 8};
        for (int d = 0; d < m->rank; d++)
            if (d != m->inner)
                list[count++] = (AbiParam){
                    .kind = ABI_STRIDE, .mem = m, .dim = d, .dtype = DT_INDEX, .bytes = 8};
    }
    for (int i = 2; i < launch->nin; i++) { // 0 and 1 bound the program id
        DType dtype = launch->in[i]->type.dtype;
        list[count++] = (AbiParam){.kind = ABI_SCALAR,
                                   .value = launch->in[i],
                                   .dtype = dtype,
                                   .bytes = scalar_bytes(dtype)};
    }
    *n = count;
    return list;
}
