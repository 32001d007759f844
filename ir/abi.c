// Entry parameters of a launch; see abi.h.
//
// Input: a `launch` op with its lists filled in. Output: the parameters in order. Invariant: the
// list depends on nothing but the op, so every reader of one plan counts the same parameters.
#include "ir/abi.h"

static int scalar_bytes(DType dtype) {
    return dtype == DT_INDEX ? 8 : dtype == DT_BOOL ? 1 : (int)dtype_bytes(dtype, 1);
}

static bool read_map(const Op *launch, const Attr *a, int *at, AbiMap *map) {
    *map = (AbiMap){0};
    if (a->n - *at < 3 || a->ints[*at] < 0 || a->ints[*at] >= launch->nmem)
        return false;
    map->mem = launch->mem[a->ints[*at]].mem;
    map->swizzle = (int)a->ints[*at + 1];
    int64_t rank = a->ints[*at + 2];
    if (rank < 1 || rank > ABI_MAP_RANK || a->n - *at < 3 + 2 * rank)
        return false;
    map->rank = (int)rank;
    for (int i = 0; i < map->rank; i++) {
        int64_t dim = a->ints[*at + 3 + 2 * i], box = a->ints[*at + 4 + 2 * i];
        if (dim < 0 || dim >= map->mem->rank || box < 1 || box > 256)
            return false;
        map->dim[i] = (int)dim;
        map->box[i] = (int)box;
    }
    *at += 3 + 2 * map->rank;
    return true;
}

AbiMap *abi_launch_maps(Arena *arena, const Op *launch, int *n) {
    const Attr *a = op_attr(launch, ATTR_maps);
    AbiMap *maps = ARENA_ARRAY(arena, AbiMap, (a ? a->n : 0u) + 1u);
    *n = 0;
    for (int at = 0; a && at < a->n;) {
        if (!read_map(launch, a, &at, &maps[*n]))
            break;
        ++*n;
    }
    return maps;
}

void abi_set_launch_maps(Kernel *k, Op *launch, int n, const AbiMap *maps) {
    int64_t *ints = ARENA_ARRAY(k->module->arena, int64_t, (size_t)n * (3 + 2 * ABI_MAP_RANK) + 1);
    int at = 0;
    for (int i = 0; i < n; i++) {
        int tensor = 0;
        while (launch->mem[tensor].mem != maps[i].mem)
            tensor++;
        ints[at++] = tensor;
        ints[at++] = maps[i].swizzle;
        ints[at++] = maps[i].rank;
        for (int d = 0; d < maps[i].rank; d++) {
            ints[at++] = maps[i].dim[d];
            ints[at++] = maps[i].box[d];
        }
    }
    op_clear_attr(launch, ATTR_maps);
    if (n)
        op_set_ints(k, launch, ATTR_maps, at, ints);
}

AbiParam *abi_launch_params(Arena *arena, const Op *launch, int *n) {
    int most = launch->nin, nmap;
    const AbiMap *maps = abi_launch_maps(arena, launch, &nmap);
    most += nmap;
    for (int i = 0; i < launch->nmem; i++)
        most += 1 + launch->mem[i].mem->rank;
    AbiParam *list = ARENA_ARRAY(arena, AbiParam, (size_t)most);
    int count = 0;
    for (int i = 0; i < launch->nmem; i++) {
        Mem *m = launch->mem[i].mem;
        for (int k = 0; k < nmap; k++)
            if (maps[k].mem == m)
                list[count++] = (AbiParam){.kind = ABI_MAP,
                                           .mem = m,
                                           .map = maps[k],
                                           .dtype = DT_INDEX,
                                           .bytes = ABI_MAP_BYTES};
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
