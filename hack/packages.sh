#!/usr/bin/env bash
# Lists the packages that have unit tests, for `go test`:
#
#   hack/packages.sh race    packages whose code or tests start goroutines or lock
#   hack/packages.sh plain   all others, which the race detector has nothing to say about,
#                            and those with tests that are built without it alone
#
# The race detector makes a pure package five to nine times as slow.
set -euo pipefail
cd "$(dirname "$0")/.."
concurrent='^\s*go (func\b|[A-Za-z_][A-Za-z0-9_.]*\()|\.Go\(|"sync"|"sync/atomic"|"testing/synctest"'
case ${1-} in
race) wanted=yes ;;
plain) wanted=no ;;
*)
  echo "packages: want race or plain" >&2
  exit 2
  ;;
esac
go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}' ./cmd/... ./internal/... ./pkg/... \
  ./test/arch/... ./test/faultproxy/... ./test/hack/... ./test/harness/... ./test/lifecycle/... \
  ./test/metricspage/... ./test/sim/... ./hack/... |
  while read -r folder; do
    [ -n "$folder" ] || continue
    found=no
    # test/arch starts no goroutine, and has such lines as examples.
    if [ "${folder#"$PWD"/}" != test/arch ] && grep -qE "$concurrent" "$folder"/*.go; then found=yes; fi
    if [ $found = $wanted ] || { [ $wanted = no ] && grep -qs '^//go:build !race$' "$folder"/*_test.go; }; then
      echo "./${folder#"$PWD"/}"
    fi
  done
