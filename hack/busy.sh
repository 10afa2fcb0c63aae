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

"$@" <&0 &
command=$!
trap 'kill -INT "$command" 2>/dev/null || true' INT
trap 'kill -TERM "$command" 2>/dev/null || true' TERM
# A signal interrupts wait; then the command may still run.
while :; do
  code=0
  wait "$command" || code=$?
  kill -0 "$command" 2>/dev/null || break
done
exit "$code"
