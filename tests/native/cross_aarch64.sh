#!/bin/bash
# Both helpers, compiled for aarch64 with warnings as errors and run under qemu-user as far as that goes: it knows no Landlock,
# no filters and no child subreaper, so what is seen is that they start, say so on the right channel, and run nothing.
set -euo pipefail
native=$(cd "$(dirname "$0")/../../native" && pwd)
for tool in aarch64-linux-gnu-gcc qemu-aarch64; do
  command -v "$tool" >/dev/null && continue
  echo "SKIP cross.aarch64: $tool is not installed"
  [ "${CI:-}" != true ] || exit 1
  exit 77
done
folder=$(mktemp -d /var/tmp/acp-cross-XXXXXX)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

build() {
  local name=$1
  shift
  aarch64-linux-gnu-gcc -std=c11 -O2 -Wall -Wextra -Wshadow -Werror -static -o "$name" "${@/#/$native/}"
}
build landlock-run landlock_run.c filter.c
build call-init call_init.c connect.c filter.c supervise.c task.c

expect() {  # expect CODE PATTERN COMMAND...
  local code=$1 pattern=$2 rc=0
  shift 2
  "$@" >out 2>&1 || rc=$?
  [ "$rc" = "$code" ] && grep -q "$pattern" out && return
  echo "expected exit code $code and \"$pattern\" of: $*; got $rc:"
  cat out
  exit 1
}
expect 125 '^landlock-run: missing value' qemu-aarch64 ./landlock-run --ro
expect 125 '^landlock-run: the kernel has no Landlock' qemu-aarch64 ./landlock-run --probe
expect 125 '^landlock-run: the kernel has no Landlock' qemu-aarch64 ./landlock-run --ro / -- /usr/bin/touch ran
expect 125 '^call-init: missing option' qemu-aarch64 ./call-init
expect 127 '^$' bash -c 'sleep 5 | qemu-aarch64 ./call-init --control 4 --status 5 -- /usr/bin/touch ran 4<&0 5>status || echo; exit 127'
grep -q '^F subreaper ' status
[ ! -e ran ]
echo "both helpers start on aarch64"
