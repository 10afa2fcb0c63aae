#!/usr/bin/env bash
# Runs a command beside N busy loops, as on a machine that others use too:
#
#   hack/busy.sh 4 go test ./pkg/...
#
# The loops end with the command, also when a signal ends this script; INT and TERM are
# passed on to the command. The exit code is that of the command.
set -euo pipefail
if [[ $# -lt 2 || ! $1 =~ ^[0-9]+$ ]]; then
  echo "usage: $0 N COMMAND..." >&2
  exit 2
fi
count=$1
shift

loops=()
end_loops() {
  for pid in "${loops[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
}
trap end_loops EXIT
for ((i = 0; i < count; i++)); do
  # The kernel ends a loop when this script is killed and cannot. A loop whose script
  # was killed before the kernel knew that has another parent.
  setpriv --pdeathsig KILL -- bash -c '[[ $PPID = "$1" ]] || exit; while :; do :; done' loop $$ </dev/null &
  loops+=($!)
done

# A signal that comes before the command has begun is passed on once it has.
command='' early=''
pass_on() {
  passed=$1
  if [[ -n $command ]]; then kill "-$1" "$command" 2>/dev/null || true; else early=$1; fi
}
trap 'pass_on INT' INT
trap 'pass_on TERM' TERM
"$@" <&0 &
command=$!
if [[ -n $early ]]; then pass_on "$early"; fi
# A signal interrupts wait, which then does not return the exit code of the command.
while :; do
  passed='' code=0
  wait "$command" || code=$?
  [[ -n $passed && $code -gt 128 ]] || break
done
exit "$code"
