// What the two fuzzers share: one compilation, and what must hold of it.
#ifndef FUSE_TESTS_FUZZ_H
#define FUSE_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frontend/frontend.h"
#include "ir/target_desc.h"
#include "lang/base/diag.h"

typedef struct Fuzz {
    Arena *arena, *scratch;
    Interner *interner;
    SourceMap *sources;
    Diags *diags;
    const TargetDesc *target;
    ScheduleList schedules;
    Module *module;
} Fuzz;

// libFuzzer's entry, or the replay program's.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// `pick` chooses the target.
Fuzz fuzz_begin(uint8_t pick);
void fuzz_end(Fuzz *f);

// Abort with a message where they do not hold.
void fuzz_no_internal_error(const Fuzz *f);
void fuzz_check_module(Fuzz *f); // valid, and print(parse(print)) is print

// The module to stage placed; false where a pass refused it. `made_by_us`: it comes from the front
// end, so that an internal error is a fault; text written by hand may break what passes rely on.
bool fuzz_passes(Fuzz *f, bool made_by_us);

#endif
