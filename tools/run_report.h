// What `fusec run` prints of its results.
#ifndef FUSE_TOOLS_RUN_REPORT_H
#define FUSE_TOOLS_RUN_REPORT_H

#include <stdio.h>

#include "tools/run_eval.h"

// Outputs without a file: type, shape and the first elements, one line each.
void run_print_outputs(FILE *to, const RunBinding *binding);

// What rounding a result of that type and reordering its sums may cost, relative to the largest
// magnitude.
double run_usual_tolerance(DType dtype);

// A table of the largest errors of each output of `got` against `want`; `report`, when not NULL,
// limits it to the elements that the sampled reference wrote. tolerance < 0: by the output's type,
// but at least `least`. Returns whether every output is within its tolerance.
bool run_print_comparison(FILE *to, const RunBinding *got, const RunBinding *want,
                          const EvalReport *report, double tolerance, double least);

#endif
