// Texts of `print`: `{}` stands for a value, `{{` and `}}` for braces.
#ifndef FUSE_IR_FORMAT_H
#define FUSE_IR_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

#include "lang/base/arena.h"
#include "lang/base/dtype.h"
#include "lang/base/numeric.h"

// The number of values that the text takes, -1 where a brace stands alone.
int format_count(const char *text);
// For C's printf, with a line break at the end: integers and bools are `long long`, floats are
// `double`, in as many digits as tell two values of the type apart.
const char *format_printf(Arena *arena, const char *text, const DType *types);
// Writes one line to standard output.
void format_print(const char *text, const Scalar *values);

#endif
