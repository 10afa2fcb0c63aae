#!/usr/bin/env bash
# Runs fuzzers of the repository one after another, with new inputs.
#
#   hack/fuzz.sh 30s            each fuzzer for 30 seconds
#   hack/fuzz.sh 15s tenth      a tenth of the fuzzers, which PLUMBLINE_ROTATION chooses
#
# What a fuzzer finds is an input below testdata/fuzz; commit the input with the repair.
set -euo pipefail
cd "$(dirname "$0")/.."
duration=${1:?the duration of each fuzzer, such as 30s}
choose=(cat)
case ${2-all} in
all) ;;
tenth) choose=(awk -v "first=$((${PLUMBLINE_ROTATION:-0} % 10))" 'NR % 10 == first') ;;
*)
  echo "fuzz: want all or tenth, not $2" >&2
  exit 2
  ;;
esac
grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' cmd internal pkg test hack | sort | "${choose[@]}" |
  while IFS=: read -r file name; do
    name=${name#func }
    echo "== $file $name"
    go -C "$(dirname "$file")" test -vet=off -run '^$' -fuzz "^$name\$" -fuzztime "$duration" -fuzzminimizetime 100x . </dev/null
  done
