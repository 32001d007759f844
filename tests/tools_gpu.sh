#!/bin/sh
# Kernels on this machine's GPU, compared with the reference evaluator. usage: tools_gpu.sh FUSEC
fusec=${1:?usage: tools_gpu.sh FUSEC}
cd "$(dirname "$0")/.." || exit 1
failures=0

check() {
    echo "fusec run $*"
    "$fusec" run --device=cuda --compare "$@" || failures=$((failures + 1))
}

cat >/tmp/fuse-gpu-$$.fk <<'EOF'
import std.nn;
kernel axpy<T: float>(a: f32, x: T[N], y: T[N]) -> (z: T[N]) { z = a * x + y; }
kernel softmax_rows<T: float>(x: T[M, N]) -> (y: T[M, N]) { y = softmax[N](x); }
kernel linear_gelu<T: float>(x: T[M, K], w: T[K, N], b: T[N]?) -> (y: T[M, N]) {
    y = gelu(dot[K](x, w) + b);
}
EOF
trap 'rm -f /tmp/fuse-gpu-$$.fk' EXIT
for type in f32 f16 bf16; do
    check "/tmp/fuse-gpu-$$.fk:axpy" -D T=$type --random=N=100003
    check "/tmp/fuse-gpu-$$.fk:softmax_rows" -D T=$type --random=M=257,N=1000
done
for type in f16 bf16; do
    check "/tmp/fuse-gpu-$$.fk:linear_gelu" -D T=$type --random=M=257,N=130,K=72
    check "/tmp/fuse-gpu-$$.fk:linear_gelu" -D T=$type --random=M=4096,N=4096,K=1024
done
[ $failures -eq 0 ]
