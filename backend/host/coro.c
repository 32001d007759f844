// Coroutines on ucontext, with the notes that AddressSanitizer needs about stack switches.
#include "backend/host/coro.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define CORO_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CORO_ASAN 1
#endif
#endif
#ifdef CORO_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

struct Coro {
    ucontext_t own, caller;
    void (*fn)(void *arg);
    void *arg;
    char *map;
    size_t map_bytes, guard;
    bool ended;
    // AddressSanitizer: fake stacks, and the resumer's stack.
    void *own_fake, *caller_fake;
    const void *caller_bottom;
    size_t caller_bytes;
};

// Tells AddressSanitizer that the next instruction runs on another stack. `save` is NULL when this
// stack is left for good.
static void switch_begin(void **save, const void *bottom, size_t bytes) {
#ifdef CORO_ASAN
    __sanitizer_start_switch_fiber(save, bottom, bytes);
#else
    (void)save;
    (void)bottom;
    (void)bytes;
#endif
}

static void switch_end(void *saved, const void **bottom, size_t *bytes) {
#ifdef CORO_ASAN
    __sanitizer_finish_switch_fiber(saved, bottom, bytes);
#else
    (void)saved;
    (void)bottom;
    (void)bytes;
#endif
}

Coro *coro_new(size_t stack_bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t bytes = (stack_bytes + page - 1) / page * page + page;
    Coro *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) {
        free(c);
        return NULL;
    }
    c->map = map;
    c->map_bytes = bytes;
    c->guard = page;
    c->ended = true;
    if (mprotect(map, page, PROT_NONE) != 0) {
        coro_free(c);
        return NULL;
    }
    return c;
}

// An abandoned stack still has the red zones of its frames.
static void stack_unpoison(const Coro *c) {
#ifdef CORO_ASAN
    ASAN_UNPOISON_MEMORY_REGION(c->map + c->guard, c->map_bytes - c->guard);
#else
    (void)c;
#endif
}

void coro_free(Coro *c) {
    if (!c)
        return;
    if (!c->ended)
        stack_unpoison(c);
    munmap(c->map, c->map_bytes);
    free(c);
}

// makecontext passes ints only.
static void coro_main(unsigned lo, unsigned hi) {
    Coro *c = (Coro *)((uintptr_t)lo | (uintptr_t)hi << 16 << 16);
    switch_end(NULL, &c->caller_bottom, &c->caller_bytes);
    c->fn(c->arg);
    c->ended = true;
    switch_begin(NULL, c->caller_bottom, c->caller_bytes);
    swapcontext(&c->own, &c->caller);
}

void coro_start(Coro *c, void (*fn)(void *arg), void *arg) {
    if (!c->ended)
        stack_unpoison(c);
    c->fn = fn;
    c->arg = arg;
    c->ended = false;
    c->own_fake = NULL;
    getcontext(&c->own);
    c->own.uc_stack.ss_sp = c->map + c->guard;
    c->own.uc_stack.ss_size = c->map_bytes - c->guard;
    c->own.uc_link = NULL;
    uintptr_t p = (uintptr_t)c;
    makecontext(&c->own, (void (*)(void))coro_main, 2, (unsigned)p, (unsigned)(p >> 16 >> 16));
}

bool coro_resume(Coro *c) {
    if (c->ended)
        return false;
    switch_begin(&c->caller_fake, c->map + c->guard, c->map_bytes - c->guard);
    swapcontext(&c->caller, &c->own);
    switch_end(c->caller_fake, NULL, NULL);
    return !c->ended;
}

void coro_yield(Coro *c) {
    switch_begin(&c->own_fake, c->caller_bottom, c->caller_bytes);
    swapcontext(&c->own, &c->caller);
    switch_end(c->own_fake, &c->caller_bottom, &c->caller_bytes);
}
