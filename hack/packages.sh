#!/usr/bin/env bash
# Lists the packages that have unit tests, for `go test`:
#
#   hack/packages.sh race    packages whose code or tests start goroutines; in one rotation
#                            of four, and with PLUMBLINE_LONG, those that only lock as well
#   hack/packages.sh plain   all others, and those with tests that are built without the
#                            race detector alone
#   hack/packages.sh locks   packages that only lock: their tests have one goroutine, in
#                            which the race detector finds nothing
#
# The race detector makes a pure package five to nine times as slow.
set -euo pipefail
cd "$(dirname "$0")/.."
starts='^\s*go (func\b|[A-Za-z_][A-Za-z0-9_.]*\()|\.Go\(|"testing/synctest"'
locks='"sync"|"sync/atomic"'
wanted=${1-}
case $wanted in
race | plain | locks) ;;
*)
  echo "packages: want race, plain or locks" >&2
  exit 2
  ;;
esac
lockers=plain
if [ -n "${PLUMBLINE_LONG-}" ] || [ $((${PLUMBLINE_ROTATION:-0} % 4)) = 0 ]; then lockers=race; fi

# list_folders lists the folders in which a Go file matches.
list_folders() { grep -rlE --include="${2-*.go}" "$1" cmd hack internal pkg test | sed 's,/[^/]*$,,' | sort -u; }

# test/arch starts no goroutine, and has such lines as examples.
go list -find -f '{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}' ./cmd/... ./internal/... ./pkg/... \
  ./test/arch/... ./test/faultproxy/... ./test/hack/... ./test/harness/... ./test/lifecycle/... \
  ./test/metricspage/... ./test/sim/... ./hack/... |
  sed -n "s,^$PWD/,,p" |
  awk -v wanted="$wanted" -v lockers=$lockers '
    FILENAME == ARGV[1] {starts[$0]; next}
    FILENAME == ARGV[2] {locks[$0]; next}
    FILENAME == ARGV[3] {apart[$0]; next}
    {
      kind = run = "plain"
      if ($0 == "test/arch") kind = "plain"
      else if ($0 in starts) kind = run = "race"
      else if ($0 in locks) {kind = "locks"; run = lockers}
      if (wanted == kind || wanted == run || wanted == "plain" && $0 in apart) print "./" $0
    }' <(list_folders "$starts") <(list_folders "$locks") <(list_folders '^//go:build !race$' '*_test.go') -
