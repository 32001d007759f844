// PTX of fusec to a cubin by ptxas.
#ifndef FUSE_TOOLS_CUBIN_H
#define FUSE_TOOLS_CUBIN_H

#include <stdbool.h>
#include <stddef.h>

#include "include/fusec.h"

typedef struct Cubin {
    char *data; // free it
    size_t size;
    char *error;   // why there is none, with what ptxas printed; free it
    bool no_tools; // ptxas or a folder to work in is missing
    // What ptxas says of the functions, where it spills (a frame without spills is 0 bytes here);
    // none where its report is of another form.
    FuseFunctionUse *function;
    int nfunction;
} Cubin;

// Assembles `ptx` (with its launch plan at the head) for `target`. False: out->error says why.
// The result is ptxas' file with the plan behind it, as fuse_rt_module_from_file reads it.
bool cubin_make(const char *ptx, size_t len, const char *target, bool line_info, Cubin *out);
void cubin_free(Cubin *cubin);

#endif
