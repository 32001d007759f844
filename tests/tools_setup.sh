#!/bin/sh
# tools/setup with stand-ins for dpkg and apt: quiet and idle when nothing is missing; installs what
# is; says which package no source has. Nothing is installed here.
cd "$(dirname "$0")/.." || exit 1
fake=$(mktemp -d) || exit 1
trap 'rm -rf "$fake"' EXIT
failures=0

# stand_in NAME BODY: a command of that name, ahead of the real one.
stand_in() {
    printf '#!/bin/sh\n%s\n' "$2" >"$fake/$1"
    chmod +x "$fake/$1"
}
stand_in id 'echo 0'
stand_in apt-get 'echo "apt-get $*" >>"$FAKE/calls"'
stand_in dpkg-query 'for last; do :; done
case " $MISSING " in *" $last "*) exit 1 ;; esac
printf installed'
stand_in apt-cache 'for last; do :; done
case " $NOWHERE " in *" $last "*) echo "  Candidate: (none)" ;; *) echo "  Candidate: 1.0" ;; esac'

# check WHAT EXPECTED_CODE EXPECTED_OUTPUT EXPECTED_CALL ("" : none at all)
check() {
    : >"$fake/calls"
    output=$(FAKE=$fake PATH=$fake:$PATH tools/setup 2>&1)
    code=$?
    calls=$(cat "$fake/calls")
    ok=1
    [ $code -eq "$2" ] || ok=0
    if [ -z "$3" ]; then [ -z "$output" ] || ok=0; else case $output in *"$3"*) ;; *) ok=0 ;; esac; fi
    if [ -z "$4" ]; then [ -z "$calls" ] || ok=0; else case $calls in *"$4"*) ;; *) ok=0 ;; esac; fi
    if [ $ok -eq 0 ]; then
        echo "FAIL $1: exit code $code"
        echo "  output: $output"
        echo "  calls: $calls"
        failures=$((failures + 1))
    fi
}

export MISSING NOWHERE
MISSING='' NOWHERE=''
check 'nothing is missing' 0 '' ''
MISSING='bison libcriterion-dev'
check 'two are missing' 0 'installing bison libcriterion-dev' \
    'apt-get install -y -qq --no-install-recommends bison libcriterion-dev'
MISSING='llvm-22-dev' NOWHERE='llvm-22-dev'
check 'LLVM is in no source' 1 'fusec needs LLVM 22' 'apt-get update'
MISSING='flex' NOWHERE='flex'
check 'flex is in no source' 1 "no configured apt source has 'flex'" 'apt-get update'
[ $failures -eq 0 ]
