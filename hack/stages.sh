#!/usr/bin/env bash
# Runs make targets in order, says how long each took, and stops at the first
# that fails, naming it.
set -euo pipefail
total=$SECONDS
for stage in "$@"; do
  printf '\n=== %s: start\n' "$stage"
  began=$SECONDS
  if ! make --no-print-directory "$stage"; then
    printf '=== %s: FAILED after %d s\n' "$stage" $((SECONDS - began))
    exit 1
  fi
  printf '=== %s: ok, %d s\n' "$stage" $((SECONDS - began))
done
printf '\n=== all stages ok: %s, %d s\n' "$*" $((SECONDS - total))
