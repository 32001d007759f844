// A fixed set of worker threads behind one condition variable. A round gives worker w the tasks w,
// w + threads, ...
#include "backend/host/pool.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

enum { STACK_BYTES = 16 << 20 }; // compiled code keeps tiles and local buffers on the stack

typedef struct Worker {
    Pool *pool;
    pthread_t thread;
    int number;
} Worker;

struct Pool {
    pthread_mutex_t lock;
    pthread_cond_t begin, end;
    Worker *worker;
    int threads; // with the caller
    unsigned round;
    int running;
    bool quit;
    int n;
    void (*fn)(void *arg, int i);
    void *arg;
};

static void run_tasks(Pool *p, int number) {
    for (int i = number; i < p->n; i += p->threads)
        p->fn(p->arg, i);
}

static void *worker_main(void *arg) {
    Worker *w = arg;
    Pool *p = w->pool;
    unsigned seen = 0;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (p->round == seen && !p->quit)
            pthread_cond_wait(&p->begin, &p->lock);
        if (p->quit)
            break;
        seen = p->round;
        pthread_mutex_unlock(&p->lock);
        run_tasks(p, w->number);
        pthread_mutex_lock(&p->lock);
        if (--p->running == 0)
            pthread_cond_signal(&p->end);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

Pool *pool_new(int threads) {
    Pool *p = calloc(1, sizeof *p);
    Worker *workers = calloc(threads > 1 ? (size_t)threads : 1, sizeof *workers);
    if (!p || !workers) {
        free(p);
        free(workers);
        return NULL;
    }
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->begin, NULL);
    pthread_cond_init(&p->end, NULL);
    p->worker = workers;
    pthread_attr_t attr;
    bool has_attr = pthread_attr_init(&attr) == 0;
    if (has_attr)
        pthread_attr_setstacksize(&attr, STACK_BYTES);
    int started = 1;
    for (; started < threads; started++) {
        workers[started] = (Worker){.pool = p, .number = started};
        if (pthread_create(&workers[started].thread, has_attr ? &attr : NULL, worker_main,
                           &workers[started]) != 0)
            break;
    }
    if (has_attr)
        pthread_attr_destroy(&attr);
    p->threads = started; // workers read it only in a round
    return p;
}

void pool_free(Pool *p) {
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->quit = true;
    pthread_cond_broadcast(&p->begin);
    pthread_mutex_unlock(&p->lock);
    for (int i = 1; i < p->threads; i++)
        pthread_join(p->worker[i].thread, NULL);
    pthread_cond_destroy(&p->end);
    pthread_cond_destroy(&p->begin);
    pthread_mutex_destroy(&p->lock);
    free(p->worker);
    free(p);
}

int pool_threads(const Pool *p) {
    return p->threads;
}

void pool_run(Pool *p, int n, void (*fn)(void *arg, int i), void *arg) {
    pthread_mutex_lock(&p->lock);
    p->n = n;
    p->fn = fn;
    p->arg = arg;
    p->running = p->threads - 1;
    p->round++;
    pthread_cond_broadcast(&p->begin);
    pthread_mutex_unlock(&p->lock);
    run_tasks(p, 0);
    pthread_mutex_lock(&p->lock);
    while (p->running)
        pthread_cond_wait(&p->end, &p->lock);
    pthread_mutex_unlock(&p->lock);
}
