#!/usr/bin/env bash
# Time and memory of the front end: a made-up file of some 10,000 lines, kernels and functions as
# they are written, parsed and checked to tile IR (--emit=tile). The goal: 0.15 s and 100 MB.
# usage: bench/frontend_speed.sh [FUSEC]
set -euo pipefail
cd "$(dirname "$0")/.."
fusec=${1:-build/tools/fusec}
file=$(mktemp --suffix=.fk)
trap 'rm -f "$file"' EXIT
for i in $(seq 560); do
    cat <<KERNELS
/// Scaled activation $i.
fn act$i(x, scale = 1.0) {
    let z = x * scale;
    let e = exp(-abs(z));
    return z > 0 ? z / (1 + e) : z * e / (1 + e);
}

kernel linear$i(x: f16[M, K], w: f16[K, N], b: f32[N]) -> (y: f16[M, N]) {
    y = act$i(dot[K](x, w) + b, 1.5);
}

kernel norm$i(x: f32[M, N], g: f32[N], eps: f32) -> (y: f32[M, N]) {
    parallel m in tiles(M) {
        let mu = mean[N](x[m, :]);
        let d = x[m, :] - mu;
        y[m, :] = act$i(d * rsqrt(mean[N](d * d) + eps)) * g;
    }
}
KERNELS
done >"$file"
wc -l <"$file" | sed 's/$/ lines/'
"$fusec" "$file" --target=sm_80 --emit=tile --time -o /dev/null
/usr/bin/time -f '%e s in all, %M KB at most' "$fusec" "$file" --target=sm_80 --emit=tile -o /dev/null
