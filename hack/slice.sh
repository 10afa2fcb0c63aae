#!/usr/bin/env bash
# Runs a part of the long tests, as a part of `make test`: fuzzers with new inputs,
# benchmarks once through, and mutants of a package. PLUMBLINE_ROTATION chooses the
# part; make takes the number from the commit.
set -euo pipefail
cd "$(dirname "$0")/.."
rotation=${PLUMBLINE_ROTATION:-0}
printf 'the slice of the long tests: PLUMBLINE_ROTATION=%s make test-slice\n' "$rotation"

hack/fuzz.sh 10s tenth

mapfile -t packages < <(grep -rlE --include='*_test.go' '^func Benchmark' internal pkg | xargs -n1 dirname | sort -u)
package=${packages[rotation % ${#packages[@]}]}
echo "== benchmarks of $package, once"
go test -vet=off -run '^$' -bench . -benchtime 1x "./$package"

echo "== mutants"
# Eight mutants tell a package that misses half of its mutants from one that misses a tenth.
go run ./hack/mutants --count 80 --rotation "$rotation"
