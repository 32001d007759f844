// Threads that wait for work: one call runs a numbered set of tasks and returns when all are done.
//
// Thread-safety: one pool_run at a time on a pool.
#ifndef FUSE_BACKEND_HOST_POOL_H
#define FUSE_BACKEND_HOST_POOL_H

typedef struct Pool Pool;

// Up to `threads` threads, the caller's included; fewer where the system gives no more. NULL when
// out of memory.
Pool *pool_new(int threads);
void pool_free(Pool *pool);
int pool_threads(const Pool *pool);
// fn(arg, i) for every i in 0..n; task 0 on the calling thread.
void pool_run(Pool *pool, int n, void (*fn)(void *arg, int i), void *arg);

#endif
