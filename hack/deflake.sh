#!/usr/bin/env bash
# Runs the tests of one package N times beside four busy loops, each time with new seeds,
# and stops at the first run that fails, naming the run and its seed. With N=0 the tests
# run once, beside nothing, and print all they say:
#
#   hack/deflake.sh ./pkg/remediate/exec 50
#   hack/deflake.sh ./test/integration/assess 10 TestAFight
#   hack/deflake.sh ./test/integration/assess 0 TestAFight
#
# The third argument selects tests, as go test -run does. RAPID_SEED=SEED and
# PLUMBLINE_SEED=SEED repeat what a run drew. Tests are compiled once.
set -euo pipefail
cd "$(dirname "$0")/.."
if [[ $# -lt 2 || $# -gt 3 || ! -d $1 || ! $2 =~ ^[0-9]+$ ]]; then
  echo "usage: $0 FOLDER N [RUN]" >&2
  exit 2
fi
package=./${1#./} runs=$2 selected=${3:-.}
repository=$PWD folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

flags=()
if [[ $package == ./test/integration/* || $package == ./test/sim/conformance* ]]; then
  flags=(-tags integration)
  KUBEBUILDER_ASSETS=$(bin/cluster assets)
  HELM=$(bin/cluster which helm)
  ENVOY=$(bin/cluster which envoy)
  ENVOY_OLDEST=$(bin/cluster which envoy-oldest)
  HAPROXY=$(bin/cluster which haproxy)
  NGINX_BINARY=$(bin/cluster which nginx)
  TRAEFIK=$(bin/cluster which traefik)
  MOTO=$(bin/cluster which moto)
  PROMETHEUS=$(bin/cluster which prometheus)
  ALERTMANAGER=$(bin/cluster which alertmanager)
  export KUBEBUILDER_ASSETS HELM ENVOY ENVOY_OLDEST HAPROXY NGINX_BINARY TRAEFIK MOTO PROMETHEUS ALERTMANAGER
fi
go test -c -vet=off "${flags[@]}" -o "$folder/tests" "$package"
if [[ ! -e $folder/tests ]]; then
  echo "$package has no tests" >&2
  exit 1
fi

cd "$package"
if [[ $runs == 0 ]]; then
  "$folder/tests" -test.run "$selected" -test.timeout 30m -test.v
  exit
fi
for ((run = 1; run <= runs; run++)); do
  seed=$(((RANDOM << 15 | RANDOM) + 1))
  began=$SECONDS
  if ! RAPID_SEED=$seed PLUMBLINE_SEED=$seed "$repository/hack/busy.sh" 4 \
    "$folder/tests" -test.run "$selected" -test.timeout 30m -test.v >"$folder/output" 2>&1; then
    cat "$folder/output"
    echo "run $run of $runs FAILED after $((SECONDS - began)) s; repeat it with RAPID_SEED=$seed PLUMBLINE_SEED=$seed" >&2
    exit 1
  fi
  if ! grep -q '^=== RUN' "$folder/output"; then
    echo "$package has no test that matches $selected" >&2
    exit 1
  fi
  echo "run $run of $runs: ok, $((SECONDS - began)) s"
done
