#!/bin/sh
# Packs what a machine without LLVM needs to compile and run kernels: libfuse_rt.so and libfusec.so with
# LLVM inside, stripped, as build-dev/fuse.tar.xz. bench/device_check.sh unpacks it there.
# usage: bench/pack.sh [BUILD]     BUILD: a build folder of its own, build-static by default
set -eu
cd "$(dirname "$0")/.."
build=${1:-build-static}
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DFUSE_STATIC_LLVM=ON -DFUSE_TESTS=OFF >/dev/null
ninja -C "$build" libfusec fuse_rt
mkdir -p build-dev
for library in driver/libfusec.so runtime/libfuse_rt.so; do
    strip -o "build-dev/$(basename $library)" "$build/$library"
done
if ldd build-dev/libfusec.so build-dev/libfuse_rt.so | grep -E 'LLVM|jansson'; then
    echo "bench/pack.sh: the libraries are not self-contained" >&2
    exit 1
fi
tar -C build-dev -cf - libfusec.so libfuse_rt.so | xz -T2 -4 >build-dev/fuse.tar.xz
rm build-dev/libfusec.so build-dev/libfuse_rt.so
ls -l build-dev/fuse.tar.xz
