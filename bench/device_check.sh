#!/bin/bash
# The end-to-end cases on this machine's GPU, then small ones under compute-sanitizer.
# Needs build-dev/ (bench/pack.sh makes it elsewhere), python3 with numpy; no LLVM, no compiler.
# Results: $OUT/device_check.txt and .json (OUT: build-dev/out unless set). Exit status 1 when
# anything was wrong; a sanitizer that the machine lacks or refuses is reported, not counted.
# usage: bench/device_check.sh [--no-sanitizer]     DEVICE=cpu tries it without a GPU
cd "$(dirname "$0")/.." || exit 1
dev=$PWD/build-dev
out=${OUT:-$dev/out}
device=${DEVICE:-cuda}
mkdir -p "$out"
parts=$(mktemp -d) && trap 'rm -rf "$parts"' EXIT
if [ -f "$dev/fuse.tar.xz" ] && [ ! "$dev/libfuse_rt.so" -nt "$dev/fuse.tar.xz" ]; then
    tar -C "$dev" --touch -xJf "$dev/fuse.tar.xz" || exit 1
fi
export FUSE_RT_LIBRARY=$dev/libfuse_rt.so PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
missing=$(ldd "$dev/libfusec.so" "$dev/libfuse_rt.so" | grep 'not found')
if [ -n "$missing" ]; then
    echo "libraries that this machine lacks: $missing" | tee "$out/device_check.txt"
    exit 1
fi
exec > >(tee "$out/device_check.txt") 2>&1
[ "$device" != cuda ] || nvidia-smi --query-gpu=name,driver_version --format=csv,noheader

merge() { # all parts so far into one file
    python3 - "$parts" "$out/device_check.json" <<'PYTHON'
import glob, json, os, sys
merged = {}
for path in sorted(glob.glob(os.path.join(sys.argv[1], "*.json"))):
    name = os.path.basename(path)[:-5]
    part = name if name.endswith("check") else "plain"
    merged.setdefault(part, []).extend(json.load(open(path)))
json.dump(merged, open(sys.argv[2], "w"), indent=1)
PYTHON
}

bad=0
# One process a kernel: what a fault leaves behind ends with it.
for kernel in axpy softmax_whole softmax_rows linear_gelu linear_gelu_tiled; do
    timeout 120 python3 bench/device_check.py --device "$device" --only $kernel --json "$parts/$kernel.json"
    status=$?
    [ $status -eq 0 ] || { echo "$kernel: exit status $status"; bad=1; }
    merge
done

sanitize() { # TOOL ARGS...: all kernels in one process
    local tool=$1 log=$parts/$1.log options=
    shift
    # The run time looks at the status of every call itself.
    [ "$tool" != memcheck ] || options="--report-api-errors no"
    timeout 170 compute-sanitizer --tool "$tool" $options --error-exitcode 9 --print-limit 20 --log-file "$log" \
        python3 bench/device_check.py --device "$device" --small --exact "$@" --json "$parts/$tool.json"
    local status=$?
    merge
    if grep -q -E 'not supported|Unable to|Failed to' "$log" 2>/dev/null; then
        echo "sanitizer $tool: did not run: $(grep -m1 -E 'not supported|Unable to|Failed to' "$log")"
        return
    fi
    echo "sanitizer $tool: exit status $status: $(grep 'SUMMARY' "$log" | tr '\n' ' ')"
    [ $status -eq 0 ] || { grep -v '^========= *$' "$log" | head -40; bad=1; }
}
if [ "$1" = --no-sanitizer ]; then
    echo "sanitizers: not asked for"
elif command -v compute-sanitizer >/dev/null; then
    sanitize memcheck
    sanitize racecheck --dtypes bf16,f32
    sanitize synccheck --dtypes bf16
else
    echo "sanitizers: this machine has no compute-sanitizer"
fi

[ $bad -eq 0 ] && echo "device check: all right" || echo "device check: FAILED"
exit $bad
