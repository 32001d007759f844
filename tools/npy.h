// NumPy's .npy files, format versions 1, 2 and 3 (numpy.lib.format).
#ifndef FUSE_TOOLS_NPY_H
#define FUSE_TOOLS_NPY_H

#include "tools/fileio.h"
#include "tools/tensor.h"

// Reads a file; Fortran order becomes C order and big-endian elements native ones.
bool npy_read(const char *path, HostTensor *out, ToolError *error);
// The same from memory; `name` is for messages.
bool npy_parse(const char *name, const char *bytes, size_t size, HostTensor *out, ToolError *error);
// Writes a file. What the format has no type for is widened: bf16, e4m3, e5m2 as f32, i4 as i8, u4
// as u8. `fortran_order` stores the first dim fastest.
bool npy_write(const char *path, const HostTensor *tensor, bool fortran_order, ToolError *error);

#endif
