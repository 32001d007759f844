// The state of the proof that pass_protocol.c makes by walking a launch, and its memory of loops.
#ifndef FUSE_IR_PROTOCOL_WALK_H
#define FUSE_IR_PROTOCOL_WALK_H

#include "ir/pass.h"

typedef struct ChanState {
    Mem *chan;
    int stages;
    int64_t acquired, committed; // next positions of the producer
    int64_t waited, released;    // next positions of the consumer
    int64_t bytes;               // that bulk copies bring to the slot
    int64_t issue;               // the last one that reads the slot
    int64_t *filled;             // by buffer: copies into it since acquire
} ChanState;

typedef struct LoopWalk LoopWalk;

typedef struct Walk {
    PassCtx *ctx;
    Kernel *k;
    bool *matters;   // by value id: a position or a loop's length follows from it
    int64_t *number; // by value id: what an i32 or index scalar is
    bool *known;
    ChanState *chan;
    int nchan;
    LoopWalk *loops;         // of the launch that have been reached
    int trips;               // of loops whose length is not known
    int64_t issued, retired; // of the role's mma.issue
    int steps;               // ops walked
    bool roles; // inside: other roles run meanwhile, so only the order within one is known
    bool failed;
} Walk;

// Made where there is none yet.
ChanState *chan_state(Walk *w, Mem *chan);
// Numbers are kept of what matters.
void set_number(Walk *w, const Value *v, bool known, int64_t n);
bool get_number(const Walk *w, const Value *v, int64_t *n);

// protocol_loop.c

// Fills w->matters for a launch and forgets the loops of others.
void loops_start(Walk *w, const Op *launch);
LoopWalk *loop_walk(Walk *w, const Op *op);
// No op of a channel is in it.
bool loop_is_quiet(const LoopWalk *l);
// Whether the loop's last walk began like this one; then the state is what that has left.
bool loop_is_known(Walk *w, LoopWalk *l);
// The walk that loop_is_known has refused is over.
void loop_remember(Walk *w, LoopWalk *l);

#endif
