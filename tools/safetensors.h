// The .safetensors format: an 8-byte length, a JSON header that names each tensor's type, shape and
// place, then the elements.
#ifndef FUSE_TOOLS_SAFETENSORS_H
#define FUSE_TOOLS_SAFETENSORS_H

#include "tools/fileio.h"
#include "tools/tensor.h"

typedef struct SafeTensors SafeTensors;

// Opens and checks a whole file: after that every entry lies inside it. NULL on failure.
SafeTensors *safetensors_open(const char *path, ToolError *error);
// The same from memory, which must outlive the result.
SafeTensors *safetensors_parse(const char *name, const char *bytes, size_t size, ToolError *error);
// An empty set, to be filled and written.
SafeTensors *safetensors_new(void);
void safetensors_close(SafeTensors *set);

size_t safetensors_count(const SafeTensors *set);
// Name of entry i, in the order of the data.
const char *safetensors_name(const SafeTensors *set, size_t i);
// A copy of one tensor. The message for an unknown name lists some that exist.
bool safetensors_read(const SafeTensors *set, const char *name, HostTensor *out, ToolError *error);
// Adds or replaces a tensor; its data is borrowed until the set is closed.
bool safetensors_put(SafeTensors *set, const char *name, const HostTensor *tensor,
                     ToolError *error);
// Writes all entries and the metadata of the file that was opened, which may be the same path.
bool safetensors_write(const SafeTensors *set, const char *path, ToolError *error);

#endif
