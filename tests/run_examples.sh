#!/bin/sh
# Runs the command in the head comment of every example, as a reader would, and wants it to succeed: each compares the
# kernel with the evaluator. usage: run_examples.sh FUSEC
set -u
fusec=$1
cd "$(dirname "$0")/.." || exit 1
bad=0
for file in examples/*.fk; do
    # The comment's lines from `fusec run` on, joined where they end in a backslash.
    command=$(awk '/^\/\/   fusec run/ { found = 1 }
        found && /^\/\// { sub(/^\/\/ */, ""); more = sub(/\\$/, ""); printf "%s", $0; if (!more) exit }' "$file")
    if [ -z "$command" ]; then
        echo "$file: no line that runs it" && bad=1
        continue
    fi
    # shellcheck disable=SC2086  # the command's words
    set -- ${command#fusec }
    if ! out=$("$fusec" "$@" 2>&1); then
        echo "$file: $command" && echo "$out" && bad=1
    fi
done
exit $bad
