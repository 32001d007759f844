// Takes that are left at `placed`: values picked from other registers, lanes or warps.
#include "backend/lower.h"

void lower_take(Lower *l, const Op *op) {
    (void)op;
    target_fail(l->t, "this take cannot be lowered yet");
}
