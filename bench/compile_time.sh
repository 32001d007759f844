#!/bin/sh
# Source to PTX: milliseconds of each stage for the kernels of examples/, best of three runs by total.
# usage: bench/compile_time.sh [FUSEC] [TARGET]     (build/tools/fusec, a release build, and sm_90a)
set -eu
cd "$(dirname "$0")/.."
fusec=${1:-build/tools/fusec}
target=${2:-sm_90a}
log=$(mktemp) && trap 'rm -f "$log" "$log.ptx"' EXIT

printf '%-24s %8s %8s %8s %8s %8s %9s %8s\n' kernel parse front passes code total ptx variants
for entry in axpy.fk:axpy softmax.fk:softmax_whole softmax.fk:softmax_rows linear_gelu.fk:linear_gelu \
    linear_gelu.fk:linear_gelu_tiled attention.fk:attention; do
    for type in bf16 f32; do
        for _ in 1 2 3; do
            "$fusec" "examples/${entry%%:*}" --kernel="${entry##*:}" -D T=$type --target="$target" \
                -Wno-perf --time -o "$log.ptx" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
            awk -v name="${entry##*:}.$type" -v bytes="$(wc -c <"$log.ptx")" \
                -v variants="$(grep -c '^\.visible \.entry\|^\.entry' "$log.ptx")" '
                $1 == "parse" { parse = $2 }
                /^front end / { front = $3 }
                $1 == "passes" { passes = $2 }
                $1 == "code" { code = $2 }
                END { printf "%-24s %8.2f %8.2f %8.2f %8.2f %8.2f %5.0f KiB %8d\n", name, parse, front,
                             passes, code, parse + front + passes + code, bytes / 1024, variants }' "$log"
        done | sort -k6,6n | head -1
    done
done
