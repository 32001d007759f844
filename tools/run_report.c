// What `fusec run` prints of its results: short outputs, and the table of --compare.
#include "tools/run_report.h"

#include <math.h>
#include <string.h>

#include "tools/compare.h"

enum { PREVIEW = 8 };

static void print_scalar(FILE *to, Scalar value) {
    if (dtype_is_float(value.dtype))
        fprintf(to, " %.6g", value.u.f);
    else if (value.dtype == DT_U64)
        fprintf(to, " %llu", (unsigned long long)value.u.i);
    else
        fprintf(to, " %lld", (long long)value.u.i);
}

void run_print_outputs(FILE *to, const RunBinding *binding) {
    for (int i = 0; i < binding->count; i++) {
        const RunArgument *argument = &binding->arguments[i];
        if (!argument->is_output || argument->value || !argument->is_given)
            continue;
        const HostTensor *tensor = &argument->tensor;
        char shape[128];
        fprintf(to, "%s: %s[%s] =", argument->param->name, dtype_name(tensor->dtype),
                tensor_shape_text(tensor->rank, tensor->dims, shape, sizeof shape));
        int64_t n = tensor_elements(tensor);
        for (int64_t at = 0; at < n && at < PREVIEW; at++)
            print_scalar(to, tensor_get(tensor, at));
        fputs(n > PREVIEW ? " ...\n" : "\n", to);
    }
}

double run_usual_tolerance(DType dtype) {
    switch (dtype) {
    case DT_F16:
        return 0x1p-9;
    case DT_BF16:
        return 0x1p-6;
    case DT_F32:
        return 1e-4;
    case DT_F64:
        return 1e-10;
    case DT_E4M3:
        return 0x1p-3;
    case DT_E5M2:
        return 0x1p-2;
    case DT_NONE:
    case DT_BOOL:
    case DT_I8:
    case DT_I16:
    case DT_I32:
    case DT_I64:
    case DT_U8:
    case DT_U16:
    case DT_U32:
    case DT_U64:
    case DT_I4:
    case DT_U4:
    case DT_INDEX:
    case DT_COUNT_:
        break;
    }
    return 0;
}

// Makes what the sampled reference did not write equal on both sides; returns how many are left.
static int64_t keep_written(const HostTensor *got, HostTensor *want, const char *name,
                            const EvalReport *report) {
    for (int i = 0; i < report->nwritten; i++) {
        const EvalWritten *written = &report->written[i];
        if (strcmp(written->mem->name, name) != 0)
            continue;
        int64_t kept = 0;
        for (int64_t at = 0; at < written->count; at++) {
            kept += written->map[at] != 0;
            if (!written->map[at])
                tensor_put(want, at, tensor_get(got, at));
        }
        return kept;
    }
    return tensor_elements(want);
}

static bool print_row(FILE *to, const char *name, const HostTensor *got, const HostTensor *want,
                      int64_t compared, double tolerance) {
    CompareResult result = tensor_compare(got, want);
    double error = compare_error(&result);
    bool ok = error <= tolerance;
    char place[96] = "-";
    if (result.worst >= 0)
        tensor_index_text(want, result.worst, place, sizeof place);
    fprintf(to, "%-12s %-5s %12lld %11.3g %11.3g %11.3g  %-4s", name, dtype_name(want->dtype),
            (long long)compared, result.max_abs, error, tolerance, ok ? "ok" : "FAIL");
    if (result.worst >= 0)
        fprintf(to, " worst at %s: %.7g, expected %.7g", place,
                scalar_to_f64(tensor_get(got, result.worst)),
                scalar_to_f64(tensor_get(want, result.worst)));
    if (result.both_nan)
        fprintf(to, "%s%lld of %lld are NaN, as expected", result.worst >= 0 ? "; " : " ",
                (long long)result.both_nan, (long long)result.elements);
    fputc('\n', to);
    return ok;
}

bool run_print_comparison(FILE *to, const RunBinding *got, const RunBinding *want,
                          const EvalReport *report, double tolerance, double least) {
    bool ok = true;
    fprintf(to, "%-12s %-5s %12s %11s %11s %11s\n", "output", "type", "compared", "max |error|",
            "relative", "allowed");
    for (int i = 0; i < got->count; i++) {
        const RunArgument *ours = &got->arguments[i];
        RunArgument *theirs = &want->arguments[i];
        if (!ours->is_output || !ours->is_given)
            continue;
        int64_t compared = tensor_elements(&theirs->tensor);
        if (report)
            compared = keep_written(&ours->tensor, &theirs->tensor, ours->param->name, report);
        double usual = run_usual_tolerance(ours->tensor.dtype);
        if (dtype_is_float(ours->tensor.dtype) && usual < least)
            usual = least;
        double allowed = tolerance >= 0 ? tolerance : usual;
        ok &= print_row(to, ours->param->name, &ours->tensor, &theirs->tensor, compared, allowed);
    }
    return ok;
}
