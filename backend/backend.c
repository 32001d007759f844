// The back end's entry: a few LLVM modules for the launches of a placed module, compiled on threads
// of its own.
//
// Input: a placed module and a target. Output: PTX with the launch plan at its head, LLVM IR, or an
// object file (one LLVM module for all launches). Invariants: LLVM's process-wide state is set up
// once, everything else is in the call; the output does not depend on the number of threads.
#include "backend/backend.h"

#include <llvm-c/ErrorHandling.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "backend/lower.h"
#include "lang/base/guard.h"
#include "lang/base/vec.h"

// --- once per process ---

#define NATIVE_CALL2(name, what) LLVMInitialize##name##what()
#define NATIVE_CALL(name, what)  NATIVE_CALL2(name, what)

static void llvm_start(void) {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    NATIVE_CALL(FUSE_NATIVE_LLVM_TARGET, TargetInfo);
    NATIVE_CALL(FUSE_NATIVE_LLVM_TARGET, Target);
    NATIVE_CALL(FUSE_NATIVE_LLVM_TARGET, TargetMC);
    NATIVE_CALL(FUSE_NATIVE_LLVM_TARGET, AsmPrinter);
    NATIVE_CALL(FUSE_NATIVE_LLVM_TARGET, AsmParser);
#ifdef FUSE_OTHER_LLVM_TARGET
    NATIVE_CALL(FUSE_OTHER_LLVM_TARGET, TargetInfo);
    NATIVE_CALL(FUSE_OTHER_LLVM_TARGET, Target);
    NATIVE_CALL(FUSE_OTHER_LLVM_TARGET, TargetMC);
    NATIVE_CALL(FUSE_OTHER_LLVM_TARGET, AsmPrinter);
#endif
    // 32-bit pointers to shared memory: saves 64-bit arithmetic on every address of it.
    // Straight-line strength reduction is quadratic in the addresses of an unrolled tile: half of
    // all the time, for code that ptxas makes equally good without it.
    const char *options[] = {"fusec", "-nvptx-short-ptr", "-opt-disable=slsr"};
    LLVMParseCommandLineOptions(3, options, NULL);
    // LLVM ends the process after this; on a thread of ours it does not return (lang/base/guard.h).
    LLVMInstallFatalErrorHandler(guard_leave);
}

void backend_llvm_start(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, llvm_start);
}

// --- jobs ---

// What one LLVM module is made of: some neighbouring launches on NVPTX, all of them elsewhere. A
// module costs some 4 ms before it compiles anything, so there are at most JOBS_MAX; which launches
// share one does not depend on the machine, as the labels of a text count its module's functions.
enum { JOBS_MAX = 8 };
typedef struct Job {
    Target t;
    Diags *diags; // of the job; merged in order at the end
    BackendOutput out;
    bool ok, begun;
    const char *names;   // its launches, for reports
    const char *crashed; // in what: the job is left as it was; NULL: it did not
    GuardReport crash;
} Job;

typedef struct Jobs {
    Job *job;
    int n;
    // Of the workers:
    pthread_mutex_t lock;
    pthread_cond_t more;
    int lowered, taken; // jobs lowered so far; jobs that somebody has taken
    bool closed;        // no further job will be lowered
} Jobs;

// What LLVM reports and does not return: without a handler it prints and exits.
static void on_diagnostic(LLVMDiagnosticInfoRef info, void *user) {
    Job *j = user;
    if (LLVMGetDiagInfoSeverity(info) != LLVMDSError)
        return;
    char *text = LLVMGetDiagInfoDescription(info);
    target_fail(&j->t, "LLVM: %s", text);
    LLVMDisposeMessage(text);
}

static void job_begin(Job *j, const Target *common, int part) {
    j->t = *common;
    j->t.part = part;
    j->t.arena = arena_new("back end job");
    arena_detach(j->t.arena); // a worker may use it whatever happens here
    j->diags = j->t.diags = diags_new(j->t.arena, common->options->sources, NULL);
    j->t.llvm = LLVMContextCreate();
    LLVMContextSetDiagnosticHandler(j->t.llvm, on_diagnostic, j);
    j->t.module = LLVMModuleCreateWithNameInContext("fuse", j->t.llvm);
    j->t.builder = LLVMCreateBuilderInContext(j->t.llvm);
    j->ok = j->t.ops->module_begin(&j->t);
    j->begun = true;
}

static void job_dispose(Job *j) {
    LLVMDisposeBuilder(j->t.builder);
    LLVMDisposeModule(j->t.module);
    LLVMContextDispose(j->t.llvm);
}

// After a fault, LLVM may hold locks and half-made tables: nobody uses it again in this process.
static atomic_bool llvm_has_faulted;

// What LLVM made for the job stays where it is: it is not to be touched.
static void job_guarded(Job *j, const char *what, void (*work)(void *user), void *user) {
    if (guard_run(work, user, &j->crash))
        return;
    j->ok = false;
    j->crashed = what;
    if (j->crash.out_of_memory) { // of an arena of ours: LLVM was not at work
        job_dispose(j);
        return;
    }
    if (j->crash.signal)
        atomic_store(&llvm_has_faulted, true);
}

static void job_compile(void *user) {
    Job *j = user;
    guard_fault_point("code");
    // Also after a failure: it gives back what module_begin took.
    j->ok = j->t.ops->module_end(&j->t, &j->out) && j->ok && !j->t.failed;
    job_dispose(j);
}

// Passes and code: touches nothing but the job.
static void job_finish(Job *j) {
    if (!j->crashed)
        job_guarded(j, "LLVM's passes and code generation", job_compile, j);
}

// --- threads ---
//
// Lowering interns layouts in the IR's module, so it stays on the calling thread; LLVM's passes and
// code generation, most of the time, run on workers while the next launch is lowered. Which thread
// takes a job does not show in its result.

// The next job, or NULL when there is none and none will come.
static Job *jobs_take(Jobs *jobs) {
    pthread_mutex_lock(&jobs->lock);
    while (jobs->taken == jobs->lowered && !jobs->closed)
        pthread_cond_wait(&jobs->more, &jobs->lock);
    Job *j = jobs->taken < jobs->lowered ? &jobs->job[jobs->taken++] : NULL;
    pthread_mutex_unlock(&jobs->lock);
    return j;
}

static void *jobs_work(void *user) {
    for (Job *j; (j = jobs_take(user)) != NULL;)
        job_finish(j);
    return NULL;
}

static void jobs_announce(Jobs *jobs, int n, bool closed) {
    pthread_mutex_lock(&jobs->lock);
    jobs->lowered += n;
    jobs->closed = closed;
    pthread_cond_broadcast(&jobs->more);
    pthread_mutex_unlock(&jobs->lock);
}

// --- launches ---

// A launch whose code is made. Launches of other variants that are the same code use its function.
typedef struct Unit {
    Kernel *kernel;
    Op *launch;
    const char *name; // of the function
    const char *code; // what it is made of, as text
} Unit;

typedef struct Emit {
    Jobs *jobs;
    const Target *common;
    Kernel *kernel;
    int count; // launches of this kernel so far
    VEC(Unit) units;
    bool split; // several jobs
} Emit;

static const Unit *unit_with(const Emit *e, const char *code) {
    for (uint32_t i = 0; i < e->units.len; i++)
        if (strcmp(e->units.data[i].code, code) == 0)
            return &e->units.data[i];
    return NULL;
}

typedef struct Rename {
    Kernel *kernel;
    Str from;
    const char *to;
} Rename;

static void rename_sms(void *user, Op *op) {
    const Rename *r = user;
    if (op->kind == OP_SMS && r->from && op_attr_str(op, ATTR_entry) == r->from)
        op_set_str(r->kernel, op, ATTR_entry, r->to);
}

static void collect_launch(void *user, Op *op) {
    Emit *e = user;
    Arena *arena = e->common->arena;
    if (op->kind != OP_LAUNCH)
        return;
    Target t = *e->common;
    lower_find_maps(&t, e->kernel, op);
    Unit unit = {.kernel = e->kernel, .launch = op, .code = ""};
    unit.name = backend_entry_name(arena, e->kernel, op, e->count++);
    const Unit *same = NULL;
    if (t.desc->family == TARGET_NVPTX) {
        unit.code = ir_launch_code(arena, e->kernel, op);
        same = unit_with(e, unit.code);
    }
    if (!same) {
        vec_push(arena, &e->units, unit);
        return;
    }
    Rename rename = {e->kernel, op_attr_str(op, ATTR_entry), same->name};
    ir_walk(e->kernel->body, rename_sms, &rename);
    op_set_str(e->kernel, op, ATTR_entry, same->name);
}

typedef struct Lowering {
    Job *job;
    Kernel *kernel;
    Op *launch;
    const char *name;
} Lowering;

static void lower_one(void *user) {
    Lowering *l = user;
    guard_fault_point("lower");
    lower_launch(&l->job->t, l->kernel, l->launch, l->name);
}

static void emit_units(Emit *e) {
    Jobs *jobs = e->jobs;
    int64_t total = e->units.len;
    for (int64_t i = 0; i < total; i++) {
        const Unit *unit = &e->units.data[i];
        Job *j = &jobs->job[i * jobs->n / total];
        if (!j->begun)
            job_begin(j, e->common, (int)(j - jobs->job));
        j->names = j->names ? arena_printf(j->t.arena, "%s, %s", j->names, unit->name) : unit->name;
        if (j->ok && !j->t.failed && !j->crashed) {
            Lowering l = {j, unit->kernel, unit->launch, unit->name};
            job_guarded(j, "lowering to LLVM IR", lower_one, &l);
        }
        bool last = (i + 1) * jobs->n / total != j - jobs->job;
        if (e->split && last)
            jobs_announce(jobs, 1, false);
    }
}

// --- all of it ---

enum { THREADS_MAX = 8, STACK_BYTES = 8 << 20 };

static int processors(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

// Without threads (none are to be had, or none needed) the caller does all the work at the end.
static int workers_start(Jobs *jobs, int n, pthread_t thread[THREADS_MAX]) {
    pthread_attr_t attr;
    if (n <= 0 || pthread_attr_init(&attr) != 0)
        return 0;
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    int started = 0;
    while (started < n && pthread_create(&thread[started], &attr, jobs_work, jobs) == 0)
        started++;
    pthread_attr_destroy(&attr);
    return started;
}

static void report_time(const BackendOptions *options, const char *what, double seconds) {
    if (!options->time || !options->message)
        return;
    char text[96];
    int n = snprintf(text, sizeof text, "%-12s %8.2f ms\n", what, seconds * 1e3);
    options->message(options->user, text, (size_t)n);
}

static double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void jobs_run(Jobs *jobs, Emit *e, int threads) {
    double start = seconds_now();
    pthread_t thread[THREADS_MAX];
    pthread_mutex_init(&jobs->lock, NULL);
    pthread_cond_init(&jobs->more, NULL);
    int workers = workers_start(jobs, threads - 1, thread);
    emit_units(e);
    report_time(e->common->options, "lower", seconds_now() - start);
    start = seconds_now();
    if (!e->split && !jobs->job[0].begun)
        job_begin(&jobs->job[0], e->common, 0); // a file without launches is a file all the same
    jobs_announce(jobs, e->split ? 0 : 1, true);
    jobs_work(jobs);
    for (int i = 0; i < workers; i++)
        pthread_join(thread[i], NULL);
    report_time(e->common->options, "llvm", seconds_now() - start);
    pthread_cond_destroy(&jobs->more);
    pthread_mutex_destroy(&jobs->lock);
}

static void report_crash(const Job *j, Diags *diags) {
    const char *target = j->t.desc->name;
    if (j->crash.out_of_memory) {
        diag_add(diags, DIAG_TOO_LARGE, (Span){0, 0}, "%s of %s for %s stopped: %s", j->crashed,
                 j->names, target, j->crash.reason);
        return;
    }
    Diag *d =
        diag_add(diags, DIAG_INTERNAL, (Span){0, 0}, "%s of %s for %s stopped: %s", j->crashed,
                 j->names ? j->names : "a file without launches", target, j->crash.reason);
    diag_hint(
        diags, d,
        "please report it with what `fusec FILE --target=%s --stop-after=protocol -o bug.tir` "
        "writes",
        target);
}

// Reports in the order of the launches.
static bool jobs_merge_diags(const Jobs *jobs, Diags *diags) {
    bool ok = true;
    for (int i = 0; i < jobs->n; i++) {
        if (jobs->job[i].crashed)
            report_crash(&jobs->job[i], diags);
        const Diags *from = jobs->job[i].diags;
        for (uint32_t d = 0; d < diags_count(from); d++) {
            const Diag *diag = diags_at(from, d);
            bool told = diag_severity(diag) == DIAG_SEVERITY_PERF &&
                        diags_has(diags, diag_id(diag), diag_span(diag), diag_noted(diag));
            if (!told)
                diag_copy(diags, diag);
        }
        ok = ok && jobs->job[i].ok;
    }
    return ok;
}

// --- one text of many ---

// The lines that PTX modules of one target share. The last is there where shared memory is used.
static const char *const ptx_heads[] = {".version ", ".target ", ".address_size ",
                                        ".extern .shared "};
enum { PTX_HEADS = sizeof ptx_heads / sizeof *ptx_heads };

typedef struct PtxParts {
    const char *head[PTX_HEADS]; // NULL: there is none
    size_t head_len[PTX_HEADS];  // with the line's end
    size_t body;                 // where the functions begin
} PtxParts;

static PtxParts ptx_parts(const BackendOutput *o) {
    PtxParts p = {0};
    for (size_t at = 0; at < o->len;) {
        const char *line = o->data + at, *nl = memchr(line, '\n', o->len - at);
        size_t next = nl ? (size_t)(nl - o->data) + 1 : o->len;
        bool is_head = false;
        for (int i = 0; i < PTX_HEADS; i++) {
            if (strncmp(line, ptx_heads[i], strlen(ptx_heads[i])) != 0)
                continue;
            p.head[i] = line;
            p.head_len[i] = next - at;
            p.body = next;
            is_head = true;
        }
        if (*line == '.' && !is_head)
            break; // code
        at = next;
    }
    return p;
}

static void out_add(BackendOutput *out, const char *text, size_t len) {
    memcpy(out->data + out->len, text, len);
    out->len += len;
}

// Each line of the head once, then the functions in order.
static void ptx_join(Arena *arena, const Jobs *jobs, BackendOutput *out) {
    PtxParts *parts = ARENA_ARRAY(arena, PtxParts, (size_t)jobs->n);
    for (int i = 0; i < jobs->n; i++)
        parts[i] = ptx_parts(&jobs->job[i].out);
    for (int h = 0; h < PTX_HEADS; h++) {
        int i = 0;
        while (i < jobs->n && !parts[i].head[h])
            i++;
        if (i < jobs->n)
            out_add(out, parts[i].head[h], parts[i].head_len[h]);
    }
    for (int i = 0; i < jobs->n; i++) {
        const BackendOutput *o = &jobs->job[i].out;
        out_add(out, o->data + parts[i].body, o->len - parts[i].body);
    }
}

static void jobs_join(Arena *arena, const Jobs *jobs, BackendEmit emit, BackendOutput *out) {
    size_t len = 1;
    for (int i = 0; i < jobs->n; i++)
        len += jobs->job[i].out.len + 32;
    out->data = arena_alloc(arena, len);
    if (emit == BACKEND_PTX) {
        ptx_join(arena, jobs, out);
        return;
    }
    for (int i = 0; i < jobs->n; i++) {
        const BackendOutput *o = &jobs->job[i].out;
        if (i > 0)
            out->len += (size_t)sprintf(out->data + out->len, "\n; --- module %d ---\n\n", i);
        out_add(out, o->data, o->len);
    }
}

// --- the head of a PTX file ---

static uint64_t hash_text(const char *s, size_t len) {
    uint64_t h = UINT64_C(0xcbf29ce484222325); // FNV-1a
    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)s[i]) * UINT64_C(0x100000001b3);
    return h;
}

// `//! ` in front of every line of the plan, then the code.
static void add_head(Arena *arena, const TargetDesc *target, BackendOutput *out) {
    size_t lines = 2;
    for (size_t i = 0; i < out->plan_len; i++)
        lines += out->plan[i] == '\n';
    size_t cap = out->len + out->plan_len + lines * 5 + 128;
    char *text = arena_alloc(arena, cap);
    uint64_t hash = hash_text(out->plan, out->plan_len);
    size_t at = (size_t)snprintf(text, cap, "//! fuse 1 %s %016llx\n", target->name,
                                 (unsigned long long)hash);
    const char *p = out->plan, *end = out->plan + out->plan_len;
    while (p < end) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        size_t len = nl ? (size_t)(nl - p) : (size_t)(end - p);
        memcpy(text + at, "//! ", 4);
        memcpy(text + at + 4, p, len);
        at += 4 + len;
        text[at++] = '\n';
        p += len + 1;
    }
    memcpy(text + at, out->data, out->len);
    at += out->len;
    text[at] = 0;
    out->data = text;
    out->len = at;
}

static const TargetOps *ops_of(const TargetDesc *target) {
    switch (target->family) {
    case TARGET_NVPTX:
        return target_ops_nvptx();
    case TARGET_CPU:
    case TARGET_SIM:
        return target_ops_host();
    }
    return NULL;
}

bool backend_emit(Arena *arena, Module *placed, const TargetDesc *target,
                  const BackendOptions *options, BackendOutput *out, Diags *diags) {
    *out = (BackendOutput){0};
    if (placed->stage != STAGE_PLACED) {
        diag_add(diags, DIAG_INTERNAL, (Span){0, 0}, "code generation needs stage placed, not %s",
                 stage_name(placed->stage));
        return false;
    }
    if (atomic_load(&llvm_has_faulted)) {
        diag_add(diags, DIAG_INTERNAL, (Span){0, 0},
                 "code generation crashed earlier in this process and is not trusted in it again");
        return false;
    }
    backend_llvm_start();
    const Target common = {.ops = ops_of(target),
                           .desc = target,
                           .options = options,
                           .arena = arena,
                           .diags = diags,
                           .ir = placed};
    Jobs jobs = {.n = 1};
    // File numbers of line information and what assertions declare belong to a module.
    bool split = target->family == TARGET_NVPTX && !options->line_info && !options->debug;
    Emit e = {.jobs = &jobs, .common = &common, .split = split};
    for (int i = 0; i < placed->nkernel; i++) {
        e.kernel = placed->kernel[i];
        e.count = 0;
        ir_walk(e.kernel->body, collect_launch, &e);
    }
    if (diags_has_errors(diags))
        return false;
    int total = (int)e.units.len;
    e.split &= total > 1;
    jobs.n = !e.split ? 1 : total < JOBS_MAX ? total : JOBS_MAX;
    arena_limit(arena, SIZE_MAX); // from here on workers use what is in it
    jobs.job = ARENA_ARRAY(arena, Job, (size_t)jobs.n);
    int threads = processors() < THREADS_MAX ? processors() : THREADS_MAX;
    jobs_run(&jobs, &e, threads < jobs.n ? threads : jobs.n);
    bool ok = jobs_merge_diags(&jobs, diags) && !diags_has_errors(diags);
    if (ok)
        jobs_join(arena, &jobs, options->emit, out);
    for (int i = 0; i < jobs.n; i++)
        arena_free(jobs.job[i].t.arena);
    if (!ok) {
        if (!diags_has_errors(diags))
            diag_add(diags, DIAG_INTERNAL, (Span){0, 0}, "code generation failed without a reason");
        return false;
    }
    IrText plan = ir_print(arena, placed, (IrPrintOptions){.plan = true});
    out->plan = plan.data;
    out->plan_len = plan.len;
    if (options->emit == BACKEND_PTX && target->family == TARGET_NVPTX)
        add_head(arena, target, out);
    return true;
}
