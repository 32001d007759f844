#!/bin/sh
# tools/setup on a machine that has everything: succeeds, says nothing, changes nothing.
cd "$(dirname "$0")/.." || exit 1
output=$(tools/setup 2>&1)
code=$?
if [ $code -ne 0 ] || [ -n "$output" ]; then
    echo "tools/setup: exit code $code, output: '$output'"
    exit 1
fi
