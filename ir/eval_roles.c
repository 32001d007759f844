// Roles: each region runs on a thread of its own, one at a time.
//
// A role runs until it has to wait for another one (a slot that is not released, a fill that is not
// committed) or ends; then it hands the turn to the next. When all that are left have waited in
// turn and nothing has changed, none of them ever goes on: a deadlock, which is reported.
// Invariant: only the thread that has the turn touches the evaluator; the windows of axes and the
// place where failures go are its own. Roles run in order, so a run repeats.
#include <pthread.h>
#include <string.h>

#include "ir/eval_impl.h"

enum { ROLES_MAX = 8 };

typedef struct Role {
    Roles *all;
    int number;
    const Op *op;
    Window *window; // while it has not the turn
    jmp_buf stop;
    pthread_t thread;
    bool done;
} Role;

struct Roles {
    Eval *e;
    pthread_mutex_t lock;
    pthread_cond_t turn;
    int now; // who has the turn; n: nobody of them
    int n;
    int waits; // since a role last went on
    bool failed;
    Role role[ROLES_MAX];
};

static int next_role(const Roles *r, int from) {
    for (int i = 1; i <= r->n; i++) {
        int k = (from + i) % r->n;
        if (!r->role[k].done)
            return k;
    }
    return r->n;
}

static void take_windows(const Roles *r, int number) {
    const Eval *e = r->e;
    if (e->kernel->naxis)
        memcpy(e->window, r->role[number].window, e->kernel->naxis * sizeof *e->window);
}

static void keep_windows(const Roles *r, int number) {
    const Eval *e = r->e;
    if (e->kernel->naxis)
        memcpy(r->role[number].window, e->window, e->kernel->naxis * sizeof *e->window);
}

static void wait_turn(Roles *r, int number) {
    pthread_mutex_lock(&r->lock);
    while (r->now != number)
        pthread_cond_wait(&r->turn, &r->lock);
    pthread_mutex_unlock(&r->lock);
}

static void give_turn(Roles *r, int number) {
    pthread_mutex_lock(&r->lock);
    r->now = number;
    pthread_cond_broadcast(&r->turn);
    pthread_mutex_unlock(&r->lock);
}

// Lets the other roles run; the caller then looks again at what it waits for.
void roles_wait(Eval *e, const Op *op) {
    Roles *r = e->roles;
    int self = r->now;
    if (r->waits++ > r->n)
        eval_fail(e, op, "waits for ever: every role that is left waits for another one");
    keep_windows(r, self);
    int next = next_role(r, self);
    if (next != self) {
        give_turn(r, next);
        wait_turn(r, self);
    }
    take_windows(r, self);
    e->stop = &r->role[self].stop;
    if (r->failed)
        longjmp(*e->stop, 1);
}

void roles_went_on(Eval *e) {
    if (e->roles)
        e->roles->waits = 0;
}

static void *run_role(void *user) {
    Role *role = user;
    Roles *r = role->all;
    Eval *e = r->e;
    wait_turn(r, role->number);
    e->stop = &role->stop;
    if (setjmp(role->stop) != 0) {
        r->failed = true;
    } else if (!r->failed) {
        take_windows(r, role->number);
        eval_region(e, role->op->region[0]);
        eval_region_end(e, role->op->region[0]);
    }
    role->done = true;
    r->waits = 0;
    give_turn(r, next_role(r, role->number));
    return NULL;
}

void eval_roles(Eval *e, const Op *op) {
    Roles r = {.e = e, .now = -1};
    Window *before = eval_calloc(e, op, e->kernel->naxis, sizeof *before);
    if (e->kernel->naxis)
        memcpy(before, e->window, e->kernel->naxis * sizeof *before);
    for (const Op *role = op->region[0]->first; role; role = role->next) {
        if (r.n == ROLES_MAX)
            eval_fail(e, op, "has more than %d roles", ROLES_MAX);
        r.role[r.n] = (Role){.all = &r, .number = r.n, .op = role};
        r.role[r.n].window = eval_calloc(e, op, e->kernel->naxis, sizeof *e->window);
        keep_windows(&r, r.n++);
    }
    if (e->roles)
        eval_fail(e, op, "stands in a role");
    jmp_buf *stop = e->stop;
    pthread_mutex_init(&r.lock, NULL);
    pthread_cond_init(&r.turn, NULL);
    int started = 0;
    while (started < r.n &&
           pthread_create(&r.role[started].thread, NULL, run_role, &r.role[started]) == 0)
        started++;
    bool all = started == r.n;
    for (int i = started; i < r.n; i++)
        r.role[i].done = true;
    r.failed = !all;
    e->roles = &r;
    give_turn(&r, started > 0 ? 0 : r.n);
    for (int i = 0; i < started; i++)
        pthread_join(r.role[i].thread, NULL);
    pthread_cond_destroy(&r.turn);
    pthread_mutex_destroy(&r.lock);
    e->roles = NULL;
    e->stop = stop;
    if (!all)
        eval_fail(e, op, "has no threads for its roles");
    if (r.failed)
        longjmp(*e->stop, 1);
    if (e->kernel->naxis)
        memcpy(e->window, before, e->kernel->naxis * sizeof *before);
    for (int i = 0; i < r.n; i++)
        eval_free(e, r.role[i].window);
    eval_free(e, before);
}
