#!/usr/bin/env bash
# Runs fuzzers of the repository one after another, with new inputs.
#
#   hack/fuzz.sh 30s            each fuzzer for 30 seconds
#   hack/fuzz.sh 15s tenth      a tenth of the light fuzzers, which PLUMBLINE_ROTATION chooses
#
# A fuzzer compiles all its dependencies with instrumentation. A light fuzzer has few.
# What a fuzzer finds is an input below testdata/fuzz; commit the input with the repair.
set -euo pipefail
cd "$(dirname "$0")/.."
duration=${1:?the duration of each fuzzer, such as 30s}

# list_fuzzers prints FOLDER NAME for each fuzzer.
list_fuzzers() {
  grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' cmd internal pkg test hack |
    sed -E 's,^(.*)/[^/]*:func ,\1 ,' | sort
}

# keep_light passes on the fuzzers whose test has at most 450 dependencies, of which the
# standard library has some 150. A test with the Kubernetes API has 800.
keep_light() {
  local fuzzers light
  fuzzers=$(cat)
  light=$(awk '{print "./" $1}' <<<"$fuzzers" | sort -u |
    xargs go list -test -f '{{if and (not .ForTest) (le (len .Deps) 450)}}{{.ImportPath}}{{end}}' |
    sed -nE "s,^$(go list -m)/(.*)\.test\$,\1,p")
  awk 'NR == FNR {light[$1]; next} $1 in light' <(printf '%s\n' "$light") - <<<"$fuzzers"
}

choose() { cat; }
case ${2-all} in
all) ;;
tenth) choose() { keep_light | awk -v "first=$((${PLUMBLINE_ROTATION:-0} % 10))" 'NR % 10 == first'; } ;;
*)
  echo "fuzz: want all or tenth, not $2" >&2
  exit 2
  ;;
esac
list_fuzzers | choose |
  while read -r folder name; do
    echo "== $folder $name"
    go -C "$folder" test -vet=off -run '^$' -fuzz "^$name\$" -fuzztime "$duration" -fuzzminimizetime 100x . </dev/null
  done
