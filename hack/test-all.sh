#!/usr/bin/env bash
# Runs everything that proves something, in pieces of at most an hour each, and keeps
# for the commit which pieces were green. A run that was interrupted, or in which a
# piece failed, carries on where it is called again.
#
#   hack/test-all.sh              all pieces that were not green yet at this commit
#   hack/test-all.sh fuzz faults  these
set -uo pipefail
cd "$(dirname "$0")/.."
pieces=("$@")
if [ $# = 0 ]; then read -ra pieces <<<"${PIECES:?the targets of make test-all}"; fi
if [ -n "$(git status --porcelain)" ]; then
  echo "test-all: the work tree differs from its commit; commit first, since results are kept by commit" >&2
  exit 2
fi
green=bin/test-all/$(git rev-parse HEAD)
mkdir -p "$green"
failed=()
for piece in "${pieces[@]}"; do
  if [ -e "$green/$piece" ]; then
    printf '=== %s: was green, %s\n' "$piece" "$(cat "$green/$piece")"
    continue
  fi
  printf '\n=== %s: start\n' "$piece"
  began=$SECONDS status=0
  timeout --foreground 60m make --no-print-directory "$piece" || status=$?
  took=$((SECONDS - began))
  case $status in
  0)
    printf '%d s\n' "$took" >"$green/$piece"
    printf '=== %s: ok, %d s\n' "$piece" "$took"
    ;;
  124)
    printf '=== %s: FAILED: not ended after an hour\n' "$piece"
    failed+=("$piece")
    ;;
  130 | 143) exit "$status" ;; # somebody ended it
  *)
    printf '=== %s: FAILED after %d s\n' "$piece" "$took"
    failed+=("$piece")
    ;;
  esac
done
if [ ${#failed[@]} != 0 ]; then
  printf '\n=== failed: %s; call it again for these alone\n' "${failed[*]}"
  exit 1
fi
printf '\n=== all pieces ok: %s\n' "${pieces[*]}"
