/* Work that must not take the process along when it crashes.
 *
 * guard_run calls a function; a fatal signal of this thread in it (SIGSEGV, SIGBUS, SIGILL, SIGFPE,
 * SIGABRT, SIGTRAP, a stack overflow too), or guard_leave, ends the call instead of the process.
 * What the function held then (locks, memory of malloc) stays as it was: the caller throws away
 * what the work was about and does not use it again.
 *
 * Signal handlers belong to the process: they are ours only while some thread is in guard_run, and
 * pass on what happens on other threads to those that were there before. With FUSE_NO_GUARD in the
 * environment nothing is caught, for debuggers. Calls may nest. Thread-safe.
 */
#ifndef FUSE_LANG_BASE_GUARD_H
#define FUSE_LANG_BASE_GUARD_H

#include <stdbool.h>

typedef struct GuardReport {
    int signal;         /* that ended the work; 0: guard_leave or guard_out_of_memory did */
    bool out_of_memory; /* guard_out_of_memory did: nothing is broken, and the arenas that the work
                           had made are freed */
    char reason[400];   /* theirs, or the signal's name */
} GuardReport;

/* True where `work` returned; else the report says what happened. */
bool guard_run(void (*work)(void *user), void *user, GuardReport *report);
/* The same without signals: only guard_leave and guard_out_of_memory end the work. */
bool guard_memory(void (*work)(void *user), void *user, GuardReport *report);

/* For tests: crashes here where FUSE_FAULT in the environment is "place=segv", "place=abort",
 * "place=overflow" (of the stack) or "place=memory" (which has run out). */
void guard_fault_point(const char *place);

/* Ends the innermost guard_run of this thread; returns only where there is none. */
void guard_leave(const char *reason);
/* The same for want of memory; aborts the process where there is no guard_run. */
_Noreturn void guard_out_of_memory(const char *reason);

/* For arena.c: the list of the arenas that the innermost guard_run's work has made and not freed.
 * NULL: there is none. */
typedef struct Arena Arena;
Arena **guard_arenas(void);

#endif
