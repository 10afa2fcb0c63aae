#!/usr/bin/env bash
# Lists the packages of the unit tests that start goroutines (race) or that start
# none (plain), one import path on a line. The race detector finds nothing in a
# package whose code and tests run in one goroutine, and makes its tests five to
# nine times as slow.
set -euo pipefail
cd "$(dirname "$0")/.."
# A server, a client, a watch or a test's bubble starts goroutines, too.
concurrent='\bgo func\b|\bgo [A-Za-z_.]+\(|\.Go\(|"sync"|"sync/atomic"|errgroup|synctest|t\.Parallel\(|httptest|"net"|"net/http"|grpc|/redis/|client-go/(informers|kubernetes|rest)|controller-runtime/pkg/(client|manager|cache|reconcile)'
case ${1-} in
race) want=0 ;;
plain) want=1 ;;
*)
  echo "packages: usage: packages.sh race|plain" >&2
  exit 2
  ;;
esac
go list -f '{{.Dir}} {{.ImportPath}}' ./cmd/... ./internal/... ./pkg/... ./test/arch/... ./test/faultproxy/... \
  ./test/hack/... ./test/harness/... ./test/lifecycle/... ./test/metricspage/... ./test/sim/... ./hack/... |
  while read -r folder package; do
    status=0
    grep -qE "$concurrent" "$folder"/*.go || status=1
    if [ $status = "$want" ]; then echo "$package"; fi
  done
