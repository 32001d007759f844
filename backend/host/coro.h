// Coroutines with stacks of their own, for the simulator's warps.
//
// A coroutine runs until it yields or its function returns; whoever resumed it goes on then. A
// stack is reused by coro_start and has a guard page below it. A coroutine may be abandoned at any
// yield: nothing on its stack is unwound. Invariant: coro_yield is called only on the coroutine's
// own stack. A coroutine stays on the thread that started it.
#ifndef FUSE_BACKEND_HOST_CORO_H
#define FUSE_BACKEND_HOST_CORO_H

#include <stdbool.h>
#include <stddef.h>

typedef struct Coro Coro;

// NULL when there is no memory for the stack.
Coro *coro_new(size_t stack_bytes);
void coro_free(Coro *c);
// Makes `c` ready to run fn(arg) from its beginning, whatever it ran before.
void coro_start(Coro *c, void (*fn)(void *arg), void *arg);
// Runs `c` until it yields (true) or has ended (false).
bool coro_resume(Coro *c);
void coro_yield(Coro *c);

#endif
