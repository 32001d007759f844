// A crash inside the compiler is a report, and the process goes on.
#include <criterion/criterion.h>
#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "include/fusec.h"
#include "lang/base/arena.h"
#include "lang/base/guard.h"

static void nothing(void *user) {
    *(int *)user += 1;
}

static void fault(void *user) {
    setenv("FUSE_FAULT", user, 1);
    guard_fault_point("test");
}

static void nested(void *user) {
    GuardReport inner;
    cr_expect_not(guard_run(fault, user, &inner));
    cr_expect_eq(inner.signal, SIGSEGV);
    guard_leave("the outer one");
}

Test(guard, catches) {
    GuardReport r;
    int n = 0;
    cr_expect(guard_run(nothing, &n, &r) && n == 1);
    cr_expect_not(guard_run(fault, "test=segv", &r));
    cr_expect_eq(r.signal, SIGSEGV);
    cr_expect_not(guard_run(fault, "test=abort", &r));
    cr_expect_eq(r.signal, SIGABRT);
    cr_expect(guard_run(fault, "other=abort", &r));
    cr_expect_not(guard_run(nested, "test=segv", &r));
    cr_expect_eq(r.signal, 0);
    cr_expect_str_eq(r.reason, "the outer one");
    guard_leave("nobody is here: returns");
}

// --- memory ---

typedef struct Wants {
    size_t bytes, most;
    Arena *kept;
} Wants;

static void allocate(void *user) {
    Wants *w = user;
    w->kept = arena_new("kept");
    arena_limit(w->kept, w->most);
    Arena *inner = arena_new("inner"); // nobody frees it after a failure but the guard
    arena_alloc(inner, 100);
    arena_alloc(w->kept, w->bytes / 2);
    arena_alloc(w->kept, w->bytes - w->bytes / 2);
    arena_free(inner);
}

static void allocate_inside(void *user) {
    GuardReport inner;
    Arena *mine = arena_new("mine");
    cr_expect_not(guard_memory(allocate, user, &inner));
    cr_expect(inner.out_of_memory);
    cr_expect_str_eq(arena_strdup(mine, "still here"), "still here");
    arena_free(mine);
}

Test(guard, memory) {
    GuardReport r;
    Wants fits = {.bytes = 2000, .most = 2000}, large = {.bytes = 5 << 20, .most = (5 << 20) - 1};
    cr_expect(guard_memory(allocate, &fits, &r) && !r.out_of_memory);
    cr_expect_eq(arena_used(fits.kept), 2000);
    arena_free(fits.kept);
    cr_expect_not(guard_memory(allocate, &large, &r));
    cr_expect(r.out_of_memory);
    cr_expect_str_eq(r.reason, "it needs more than 4 MiB of memory");
    cr_expect(guard_run(allocate_inside, &large, &r), "an inner guard took it");
    cr_expect_not(guard_run(allocate, &large, &r));
    cr_expect(r.out_of_memory && r.signal == 0);
#ifndef __SANITIZE_ADDRESS__                                 // which stops at such a size
    Wants whole = {.bytes = SIZE_MAX / 4, .most = SIZE_MAX}; // no machine has it
    cr_expect_not(guard_memory(allocate, &whole, &r));
    cr_expect(r.out_of_memory);
    cr_expect_str_eq(r.reason, "there is no memory left");
#endif
    cr_expect_not(guard_memory(fault, "test=memory", &r));
    cr_expect(guard_run(allocate, &fits, &r), "a second time");
    arena_free(fits.kept);
}

// Signals are not theirs.
static void memory_only(void *user) {
    GuardReport r;
    guard_memory(fault, user, &r);
    cr_expect(false, "the outer guard took it");
}

Test(guard, memory_only) {
    GuardReport r;
    cr_expect_not(guard_run(memory_only, "test=segv", &r));
    cr_expect_eq(r.signal, SIGSEGV);
}

#ifndef __SANITIZE_ADDRESS__ // which has its own idea of a stack's end
Test(guard, stack_overflow) {
    GuardReport r;
    cr_expect_not(guard_run(fault, "test=overflow", &r));
    cr_expect_eq(r.signal, SIGSEGV);
    cr_expect_not(guard_run(fault, "test=overflow", &r), "a second time");
}
#endif

// --- the handlers that were there before ---

static volatile sig_atomic_t seen;

static void host_handler(int signal) {
    seen = signal;
}

static void *host_thread(void *user) {
    (void)user;
    raise(SIGFPE);
    return NULL;
}

static void run_host_thread(void *user) {
    pthread_t thread;
    (void)user;
    pthread_create(&thread, NULL, host_thread, NULL);
    pthread_join(thread, NULL);
}

Test(guard, leaves_the_hosts_handlers) {
    struct sigaction host = {.sa_handler = host_handler}, now;
    sigaction(SIGFPE, &host, NULL);
    GuardReport r;
    cr_expect(guard_run(run_host_thread, NULL, &r), "a fault of another thread is not ours");
    cr_expect_eq(seen, SIGFPE);
    cr_expect_not(guard_run(fault, "test=segv", &r));
    sigaction(SIGFPE, NULL, &now);
    cr_expect_eq(now.sa_handler, host_handler);
}

// --- LLVM ---

// Code that the PTX back end cannot select.
static void select_impossible(void *user) {
    (void)user;
    LLVMContextRef context = LLVMContextCreate();
    LLVMModuleRef module = LLVMModuleCreateWithNameInContext("bad", context);
    LLVMTypeRef type = LLVMFunctionType(LLVMInt64TypeInContext(context), NULL, 0, false);
    LLVMValueRef intrinsic = LLVMAddFunction(module, "llvm.x86.rdtsc", type);
    LLVMValueRef function = LLVMAddFunction(module, "f", type);
    LLVMBuilderRef b = LLVMCreateBuilderInContext(context);
    LLVMPositionBuilderAtEnd(b, LLVMAppendBasicBlockInContext(context, function, "entry"));
    LLVMBuildRet(b, LLVMBuildCall2(b, type, intrinsic, NULL, 0, ""));
    LLVMTargetRef target;
    char *message = NULL;
    LLVMGetTargetFromTriple("nvptx64-nvidia-cuda", &target, &message);
    LLVMTargetMachineRef machine =
        LLVMCreateTargetMachine(target, "nvptx64-nvidia-cuda", "sm_80", "", LLVMCodeGenLevelDefault,
                                LLVMRelocDefault, LLVMCodeModelDefault);
    LLVMMemoryBufferRef buffer;
    LLVMTargetMachineEmitToMemoryBuffer(machine, module, LLVMAssemblyFile, &message, &buffer);
}

Test(guard, llvm_gives_up) {
    GuardReport r;
    backend_llvm_start();
    cr_expect_not(guard_run(select_impossible, NULL, &r));
    cr_expect_eq(r.signal, 0);
    cr_expect(strstr(r.reason, "Cannot select"), "%s", r.reason);
}

// --- compilations ---

static const char source[] = "kernel k(x: f32[N]) -> (y: f32[N]) { y = exp(x); }\n";

// With a fault in the environment: an internal error that says where, without output.
static void expect_report(const char *where, const char *text, FuseEmit emit, const char *target) {
    setenv("FUSE_FAULT", where, 1);
    FuseOptions o = {.target = target, .emit = emit, .opt_level = 2};
    size_t len;
    FuseResult *r = fuse_compile(&o, "t.fk", source, strlen(source));
    cr_expect_not(fuse_result_ok(r));
    cr_expect(fuse_result_internal(r));
    cr_expect(strstr(fuse_result_messages(r), text), "%s", fuse_result_messages(r));
    cr_expect(strstr(fuse_result_messages(r), target), "%s", fuse_result_messages(r));
    fuse_result_output(r, &len);
    cr_expect_eq(len, 0);
    fuse_result_free(r);
    unsetenv("FUSE_FAULT");
}

static bool compiles(FuseEmit emit, const char *target) {
    FuseOptions o = {.target = target, .emit = emit, .opt_level = 2};
    FuseResult *r = fuse_compile(&o, "t.fk", source, strlen(source));
    bool ok = fuse_result_ok(r);
    fuse_result_free(r);
    return ok;
}

Test(guard, compilation_goes_on_after_a_crash_of_ours) {
    expect_report("parser=segv", "the parser stopped", FUSE_EMIT_PTX, "sm_80");
    expect_report("passes=abort", "passes", FUSE_EMIT_PTX, "sm_80");
    cr_expect(compiles(FUSE_EMIT_PTX, "sm_80"));
    cr_expect(compiles(FUSE_EMIT_HOST, "cpu"));
}

// Want of memory is no crash: an error of the text, and everything works afterwards.
static void expect_too_large(const char *where, const char *text) {
    setenv("FUSE_FAULT", where, 1);
    FuseOptions o = {.target = "sm_80", .emit = FUSE_EMIT_PTX, .opt_level = 2};
    FuseResult *r = fuse_compile(&o, "t.fk", source, strlen(source));
    cr_expect(!fuse_result_ok(r) && !fuse_result_internal(r), "%s", where);
    cr_expect(strstr(fuse_result_messages(r), "error[too-large]: "), "%s", fuse_result_messages(r));
    cr_expect(strstr(fuse_result_messages(r), text), "%s", fuse_result_messages(r));
    fuse_result_free(r);
    unsetenv("FUSE_FAULT");
    cr_expect(compiles(FUSE_EMIT_PTX, "sm_80"));
    cr_expect(compiles(FUSE_EMIT_HOST, "cpu"));
}

Test(guard, want_of_memory) {
    expect_too_large("parser=memory",
                     "the parser stopped for target sm_80: there is no memory left");
    expect_too_large("passes=memory", "stopped for target sm_80: there is no memory left");
    expect_too_large("lower=memory", "lowering to LLVM IR of k_v0__0");
    expect_too_large("code=memory", "code generation of k_v0__0");
}

// Where LLVM may hold locks or half-made tables it is not asked again; the rest still works.
static void crash_in_code(const char *where, const char *text) {
    expect_report(where, text, FUSE_EMIT_PTX, "sm_90a");
    cr_expect_not(compiles(FUSE_EMIT_HOST, "cpu"));
    cr_expect(compiles(FUSE_EMIT_TILE, "cpu"));
}

Test(guard, code_generation_crashes) {
    crash_in_code("code=segv", "code generation of k_v0__0");
}

Test(guard, code_generation_aborts) {
    crash_in_code("code=abort", "code generation of k_v0__0");
}

Test(guard, lowering_crashes) {
    crash_in_code("lower=segv", "lowering to LLVM IR of k_v0__0");
}
