/* See guard.h. A fault is caught by a handler that jumps back with siglongjmp, on a stack of its
 * own so that an overflow of the thread's is caught too. */
#include "lang/base/guard.h"

#include "lang/base/arena.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Guard Guard;
struct Guard {
    Guard *outer;
    sigjmp_buf back;
    GuardReport *report;
    bool takes_signals;
    Arena *arenas;
};

/* Read in a signal handler: its place must not be made there. */
static _Thread_local Guard *innermost __attribute__((tls_model("initial-exec")));

/* --- the process's handlers ----------------------------------------------------------------- */

static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP};
enum { SIGNALS = sizeof signals / sizeof *signals, STACK_BYTES = 64 << 10 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction before[SIGNALS];
static int users;

static void jump(Guard *g, int signal) {
    innermost = g->outer;
    g->report->signal = signal;
    siglongjmp(g->back, 1);
}

/* Not a fault of ours: whoever was there before gets it. A default action happens when the faulting
 * instruction runs again. */
static void pass_on(int signal, siginfo_t *info, void *context) {
    for (int i = 0; i < SIGNALS; i++) {
        if (signals[i] != signal)
            continue;
        if (before[i].sa_flags & SA_SIGINFO) {
            before[i].sa_sigaction(signal, info, context);
        } else if (before[i].sa_handler != SIG_DFL && before[i].sa_handler != SIG_IGN) {
            before[i].sa_handler(signal);
        } else {
            sigaction(signal, &before[i], NULL);
            if (info->si_code <= 0) /* sent, not a fault: it does not come again */
                raise(signal);
        }
    }
}

static void on_signal(int signal, siginfo_t *info, void *context) {
    Guard *g = innermost;
    while (g && !g->takes_signals)
        g = g->outer;
    if (g)
        jump(g, signal);
    pass_on(signal, info, context);
}

static void handlers_take(void) {
    pthread_mutex_lock(&lock);
    if (users++ == 0)
        for (int i = 0; i < SIGNALS; i++) {
            struct sigaction ours = {.sa_sigaction = on_signal,
                                     .sa_flags = SA_SIGINFO | SA_ONSTACK};
            sigemptyset(&ours.sa_mask);
            sigaction(signals[i], &ours, &before[i]);
        }
    pthread_mutex_unlock(&lock);
}

/* Another's handler that came later stays. */
static void handlers_give_back(void) {
    pthread_mutex_lock(&lock);
    if (--users == 0)
        for (int i = 0; i < SIGNALS; i++) {
            struct sigaction now;
            sigaction(signals[i], NULL, &now);
            if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_signal)
                sigaction(signals[i], &before[i], NULL);
        }
    pthread_mutex_unlock(&lock);
}

/* --- one thread ----------------------------------------------------------------------------- */

/* A stack for the handler, where the thread has none; NULL: it has, or none is to be had. */
static void *stack_take(void) {
    stack_t old;
    if (sigaltstack(NULL, &old) != 0 || !(old.ss_flags & SS_DISABLE))
        return NULL;
    stack_t own = {.ss_sp = malloc(STACK_BYTES), .ss_size = STACK_BYTES};
    if (own.ss_sp && sigaltstack(&own, NULL) != 0) {
        free(own.ss_sp);
        own.ss_sp = NULL;
    }
    return own.ss_sp;
}

static void stack_give_back(void *stack) {
    if (!stack)
        return;
    stack_t none = {.ss_flags = SS_DISABLE};
    sigaltstack(&none, NULL);
    free(stack);
}

static bool run_caught(Guard *g, void (*work)(void *user), void *user) {
    if (sigsetjmp(g->back, 1) != 0) {
        if (g->report->out_of_memory)
            arenas_free(g->arenas);
        return false;
    }
    innermost = g;
    work(user);
    innermost = g->outer;
    /* What outlives the work is the caller's. */
    arenas_move(&g->arenas, g->outer ? &g->outer->arenas : NULL);
    return true;
}

static const char *signal_text(int signal) {
    switch (signal) {
    case SIGABRT:
        return "it gave up (SIGABRT), perhaps for want of memory";
    case SIGSEGV:
        return "a bad memory access or a stack overflow (SIGSEGV)";
    case SIGBUS:
        return "a bad memory access (SIGBUS)";
    default: /* signals are no enumeration */
        return "a fault of the processor (SIGILL, SIGFPE or SIGTRAP)";
    }
}

bool guard_run(void (*work)(void *user), void *user, GuardReport *report) {
    *report = (GuardReport){0};
    if (getenv("FUSE_NO_GUARD")) {
        work(user);
        return true;
    }
    Guard g = {.outer = innermost, .report = report, .takes_signals = true};
    void *stack = stack_take();
    handlers_take();
    bool ok = run_caught(&g, work, user);
    handlers_give_back();
    stack_give_back(stack);
    if (!ok && report->signal)
        snprintf(report->reason, sizeof report->reason, "%s", signal_text(report->signal));
    return ok;
}

bool guard_memory(void (*work)(void *user), void *user, GuardReport *report) {
    *report = (GuardReport){0};
    Guard g = {.outer = innermost, .report = report};
    return run_caught(&g, work, user);
}

__attribute__((noinline)) static int overflow(volatile int *above) {
    volatile int here[1024];
    here[0] = *above + 1;
    return here[0] ? overflow(here) + here[1023 & here[0]] : 0;
}

void guard_fault_point(const char *place) {
    const char *fault = getenv("FUSE_FAULT");
    size_t len = strlen(place);
    if (!fault || strncmp(fault, place, len) != 0 || fault[len] != '=')
        return;
    const char *kind = fault + len + 1;
    volatile int start = 1;
    if (strcmp(kind, "segv") == 0)
        raise(SIGSEGV);
    else if (strcmp(kind, "abort") == 0)
        abort();
    else if (strcmp(kind, "overflow") == 0)
        (void)overflow(&start);
    else if (strcmp(kind, "memory") == 0)
        guard_out_of_memory("there is no memory left");
}

void guard_leave(const char *reason) {
    Guard *g = innermost;
    if (!g)
        return;
    snprintf(g->report->reason, sizeof g->report->reason, "%s", reason);
    jump(g, 0);
}

void guard_out_of_memory(const char *reason) {
    if (innermost) {
        innermost->report->out_of_memory = true;
        guard_leave(reason);
    }
    abort();
}

Arena **guard_arenas(void) {
    return innermost ? &innermost->arenas : NULL;
}
