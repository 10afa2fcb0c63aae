#!/usr/bin/env bash
# Runs the tests of a stage that failed once more, one after the other. The stage passes
# if each test of an API server passes three times in a row, and each end-to-end test
# once. The last lines of the whole run tell of the failure all the same:
#
#   hack/again.sh integration
#
# testreport lists the tests in bin/stages/STAGE.again. It lists none when tests of pure
# code failed, or more than two, or when a program crashed or raced.
# PLUMBLINE_STRICT=1, as in `make test-all` and `make test-busy`, runs no test again.
set -euo pipefail
cd "$(dirname "$0")/.."
stage=${1:?the stage whose tests run again}
tests=bin/stages/$stage.again reasons=bin/stages/$stage.reasons
[ -s "$tests" ] || exit 1
if [ -n "${PLUMBLINE_STRICT:-}" ]; then
  cat "$reasons" >>bin/stages/failures
  exit 1
fi
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
while read -r package test; do
  printf '\n== %s %s runs again\n' "$package" "$test"
  tags=integration times=3 module=.
  case $package in
  test/e2e | test/hack/demo) tags=e2e times=1 ;;
  hack/cluster) tags=cluster times=1 module=$package package=. ;;
  esac
  if ! go -C "$module" test -vet=off -count="$times" -tags "$tags" -timeout 30m -run "^$test\$" "./$package" </dev/null; then
    cat "$reasons" >>bin/stages/failures
    exit 1
  fi
done <"$tests"
{ cat "$reasons" && printf '== It passed when it ran again, by itself: a test or a part of the product fails at times.\n'; } >>bin/stages/rare
