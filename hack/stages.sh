#!/usr/bin/env bash
# Runs make targets in order, says how long each took, and stops at the first stage
# that fails, naming the target. What failed once and passed when it ran again is told at
# the end, see hack/again.sh.
#
#   hack/stages.sh verify 'test-unit|components,e2e|~lint,chart'
#
# A stage is a target, or lanes that run side by side, separated by "|". A lane is one
# target, or several in order, separated by commas. The script keeps the output of each
# target in bin/stages. The first lane of a stage prints as it goes, each other lane when
# a target ends. A lane after "~" yields the processors. When a lane fails, the script
# prints that at once, lets the other lanes end, and then fails: an end-to-end test that
# is cut off leaves its cluster behind. The last lines of a run that failed tell why:
# bin/stages/failures, to which targets may add, or else the end of the target's output.
set -uo pipefail
total=$SECONDS
logs=bin/stages
failures=$logs/failures rare=$logs/rare
mkdir -p "$logs"
rm -f "$failures" "$rare"

# read_processor_seconds sets processor_seconds to the time of the processors, in
# seconds, that the ended children of this shell used.
read_processor_seconds() {
  local used=$logs/times.$BASHPID
  times >"$used" # not through a pipe, which is a shell with other children
  processor_seconds=$(awk -F'[ms ]+' 'NR == 2 {printf "%d", 60 * ($1 + $3) + $2 + $4}' "$used")
  rm "$used"
}

# run_target runs one target with a priority, such as "nice -n 5". With a third argument
# it prints the output when the target has ended, see print_block.
run_target() {
  local target=$1 priority=$2 behind=${3-} log=$logs/$1.log began=$SECONDS status=0 before processor_seconds
  read_processor_seconds
  before=$processor_seconds
  if [ -z "$behind" ]; then
    printf '\n=== %s: start\n' "$target"
    $priority make --no-print-directory "$target" 2>&1 | tee "$log" || status=$?
  else
    $priority make --no-print-directory "$target" >"$log" 2>&1 || status=$?
    printf '\n=== %s: start, beside other targets\n' "$target"
    cat "$log"
  fi
  # A target whose output is gone has run in a tree that is not there any more.
  [ -e "$log" ] || { status=1 && printf '%s is gone\n' "$log"; }
  if [ "$status" != 0 ]; then
    printf '=== %s: FAILED after %d s\n' "$target" $((SECONDS - began))
    grep -q '^== Failed in ' "$log" || { printf '\n== Failed in %s:\n' "$target" && tail -n 20 "$log"; } >>"$failures"
    return 1
  fi
  read_processor_seconds
  printf '=== %s: ok, %d s, processors %d s\n' "$target" $((SECONDS - began)) $((processor_seconds - before))
}

# print_block runs a target, and prints its output as one block: another lane that prints
# meanwhile comes before or after it.
print_block() {
  local block status=0
  block=$(run_target "$1" "$2" behind) || status=1
  cat <<<"$block" # one write, where printf of bash has one for each line
  return $status
}

# run_lane runs the targets of a lane in order, up to the first that fails.
run_lane() {
  local lane=${1#"~"} run=$2 target priority=
  [ "$lane" = "$1" ] || priority='nice -n 5' # more, and it would end after all others
  for target in ${lane//,/ }; do
    $run "$target" "$priority" || return 1
  done
}

# run_stage runs the lanes of a stage side by side.
run_stage() {
  local first=${1%%|*} rest=() lanes=() lane status=0
  [ "$first" = "$1" ] || IFS='|' read -ra rest <<<"${1#*|}"
  for lane in "${rest[@]}"; do
    run_lane "$lane" print_block &
    lanes+=($!)
  done
  run_lane "$first" run_target || status=1
  for lane in "${lanes[@]}"; do
    wait "$lane" || status=1
  done
  return $status
}

for stage in "$@"; do
  run_stage "$stage" || {
    cat "$failures" # fails when the tree is gone
    exit 1
  }
done
if [ -e "$rare" ]; then cat "$rare"; fi
printf '\n=== all stages ok: %s, %d s\n' "$*" $((SECONDS - total))
