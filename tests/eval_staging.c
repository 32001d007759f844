// Buffers, channels and copies: rings, late copies, renamed axes, and what a wrong protocol is
// told.
#include "eval_support.h"

// A ring of `stages` over windows of x: fill i is waited for, doubled and stored to y.
static const char *ring(const char *mode, const char *loop) {
    static char text[2048];
    snprintf(text, sizeof text,
             "tir scheduled sm_80\nkernel k(dim N, in @x: f32[%%N], out @y: f32[%%N]) {\n"
             "  axis n of N by 8; axis c of N by 8; %%w = cdiv %%N, 8 : index; parallel %%one in "
             "0..1 {\n"
             "    @a = buf.shared {stages = 2} : f32[n]; @o = buf.shared : f32[n]; @ch = chan @a "
             "{mode = %s, stages = 2}\n"
             "%s\n} }\n",
             mode, loop);
    return text;
}

static const char simple[] =
    "for n in 0..%N carry (%p = 0:i32 : i32) : i32 {\n"
    "  acquire @ch(%p); copy @x[n] to @a(%p) signal @ch {check = [0]}; commit @ch(%p)\n"
    "  wait @ch(%p); %v = get @a(%p) : f32[n]; release @ch(%p); %d = add %v, %v : f32[n]\n"
    "  store @y[n], %d {check = [0]}; %q = add %p, 1:i32 : i32; yield %q }";

static void check_ring(const char *text) {
    Data x = data_random(1, DT_F32, 1, 43, 0, 0, 0), y = data_new(DT_F32, 1, 43);
    assert_runs(text, ARGS(arg_of(&x), arg_of(&y)));
    for (int i = 0; i < 43; i++)
        cr_assert(data_at(&y, i) == 2 * data_at(&x, i), "%d", i);
    data_free(&x), data_free(&y);
}

static void check_fault(const char *from, const char *to, const char *says) {
    char loop[1024];
    const char *at = strstr(simple, from);
    cr_assert(at, "no `%s`", from);
    snprintf(loop, sizeof loop, "%.*s%s%s", (int)(at - simple), simple, to, at + strlen(from));
    char with[1100];
    snprintf(with, sizeof with, "%%r = %s", loop);
    Data x = data_random(1, DT_F32, 1, 43, 0, 0, 0), y = data_new(DT_F32, 1, 43);
    assert_fails(says, ring("mbarrier", with), ARGS(arg_of(&x), arg_of(&y)));
    data_free(&x), data_free(&y);
}

Test(eval_staging, ring_of_every_mode) {
    static const char *modes[] = {"block", "group", "mbarrier"};
    for (int i = 0; i < 3; i++) {
        char with[1100];
        snprintf(with, sizeof with, "%%r = %s", simple);
        check_ring(ring(modes[i], with));
    }
}

Test(eval_staging, faults) {
    check_fault("wait @ch(%p);", "", "stores poison to @y");
    check_fault("release @ch(%p);", "",
                "acquires fill 2 of @ch while fill 0 in its slot is not released");
    check_fault("commit @ch(%p)", "", "was not committed");
    check_fault("acquire @ch(%p);", "", "holds fill -1");
    check_fault("%v = get @a(%p)", "%v = get @a(7)", "holds fill");
    check_fault("{check = [0]}; commit", "; commit", "without a check");
    check_fault("copy @x[n] to @a(%p) signal @ch {check = [0]};", "", "poison");
    check_fault("commit @ch(%p)\n  wait @ch(%p)", "commit @ch(%p)\n  wait @ch(%p) {pending = 1}",
                "among the last 1");
}

// A prefetch one fill ahead with a renamed axis and surplus fills at the end.
Test(eval_staging, prefetch) {
    static const char loop[] =
        "acquire @ch(0); with c in 0..%N {\n copy @x[c] to @a(0)[n = c] {check = [0]} }\n commit "
        "@ch(0)\n"
        "%r, %s = for n in 0..%N carry (%p = 0:i32 : i32, %f = 1:i32 : i32) : i32, i32 {\n"
        "  acquire @ch(%f); %b = begin n : index; %k = add %b, 8 : index; with c in %k..%N {\n"
        "    copy @x[c] to @a(%f)[n = c] {check = [0]} }\n"
        "  commit @ch(%f); wait @ch(%p) {pending = 1}; %v = get @a(%p) : f32[n]; release @ch(%p)\n"
        "  %d = add %v, %v : f32[n]; store @y[n], %d {check = [0]}\n"
        "  %q = add %p, 1:i32 : i32; %g = add %f, 1:i32 : i32; yield %q, %g }";
    check_ring(ring("group", loop));
}

// An outgoing copy reads its buffer at copy.wait: overwriting the buffer before that is seen.
Test(eval_staging, outgoing_copy) {
    static const char loop[] = "for n in 0..%%N {\n"
                               "  %%x = load @x[n] {check = [0]} : f32[n]; %%d = add %%x, %%x : "
                               "f32[n]; %s; put @o(0), %%d\n"
                               "  copy @o(0) to @y[n] {check = [0]} }\n copy.wait @o";
    char with[1024];
    snprintf(with, sizeof with, loop, "copy.wait @o");
    check_ring(ring("block", with));
    snprintf(with, sizeof with, loop, "barrier");
    Data x = data_random(1, DT_F32, 1, 43, 0, 0, 0), y = data_new(DT_F32, 1, 43);
    assert_runs(ring("block", with), ARGS(arg_of(&x), arg_of(&y)));
    cr_assert(data_at(&y, 0) != 2 * data_at(&x, 0)); // overwritten by the later windows
    data_free(&x), data_free(&y);
}

Test(eval_staging, padding_leaves) {
    static const char loop[] =
        "with n in 1..4 {\n"
        "  %%x = load @x[n] {check = [0]} : f32[n]; put @o(0), %%x; %%v = get @o(0) : f32[n]\n"
        "  copy @o(0) to @y[n] {check = [0]%s} }";
    Data x = data_random(1, DT_F32, 1, 43, 0, 0, 0), y = data_new(DT_F32, 1, 43);
    char with[1024];
    snprintf(with, sizeof with, loop, "");
    assert_fails("copies the padding position n = 4 to @y", ring("block", with),
                 ARGS(arg_of(&x), arg_of(&y)));
    snprintf(with, sizeof with, loop, ", guard = [n]");
    assert_runs(ring("block", with), ARGS(arg_of(&x), arg_of(&y)));
    for (int i = 0; i < 43; i++)
        cr_assert(data_at(&y, i) == (i >= 1 && i < 4 ? data_at(&x, i) : 0));
    data_free(&x), data_free(&y);
}

Test(eval_staging, unwritten_buffer) {
    Data x = data_random(1, DT_F32, 1, 43, 0, 0, 0), y = data_new(DT_F32, 1, 43);
    assert_fails("stores poison",
                 ring("block", "with n in 0..8 {\n %v = get @o(0) : f32[n]; store @y[n], %v }"),
                 ARGS(arg_of(&x), arg_of(&y)));
    data_free(&x), data_free(&y);
}

// A slot forgets its fill at acquire: what a later fill fails to write is not what an earlier one
// wrote.
Test(eval_staging, stale_slot) {
    static const char loop[] =
        "%r = for n in 0..%N carry (%p = 0:i32 : i32) : i32 {\n"
        "  acquire @ch(%p); %c = cmp.lt %p, 2:i32 : bool; %z = if %c : i32 {\n"
        "    copy @x[n] to @a(%p) {check = [0]}; yield %p } {\n yield %p }\n"
        "  commit @ch(%p); wait @ch(%p); %v = get @a(%p) : f32[n]; release @ch(%p)\n"
        "  store @y[n], %v {check = [0]}; %q = add %p, 1:i32 : i32; yield %q }";
    Data x = data_random(1, DT_F32, 1, 43, 0, 0, 0), y = data_new(DT_F32, 1, 43);
    assert_fails("stores poison to @y at n = 16", ring("block", loop),
                 ARGS(arg_of(&x), arg_of(&y)));
    data_free(&x), data_free(&y);
}
