#!/usr/bin/env bash
# Freezes the chart of the former release for the tests of test/integration/skew, or builds
# the programs of that release. Git has the sources of both:
#
#   hack/former.sh freeze COMMIT      package the chart of a commit, and note the commit
#   hack/former.sh build DIRECTORY    build the programs of the noted commit
set -euo pipefail
cd "$(dirname "$0")/.."
data=test/integration/skew/testdata
source=$(mktemp -d)
trap 'rm -rf "$source"' EXIT

case ${1-} in
freeze)
  commit=$(git rev-parse --verify "${2:?name the commit of the former release}^{commit}")
  git archive "$commit" charts/plumbline | tar -xf - -C "$source"
  "${HELM:?set HELM to the path of Helm 4}" package "$source/charts/plumbline" --destination "$source" >/dev/null
  mv "$source"/plumbline-*.tgz "$data/former.tgz"
  echo "$commit" >"$data/former.commit"
  ;;
build)
  commit=$(cat "$data/former.commit")
  mkdir -p "${2:?name the directory of the programs}"
  directory=$(realpath "$2")
  if ! git cat-file -e "$commit^{commit}" 2>/dev/null; then
    echo "former: this clone lacks commit $commit; run 'git fetch --unshallow'" >&2
    exit 1
  fi
  git archive "$commit" | tar -xf - -C "$source"
  cd "$source"
  go build -trimpath -buildvcs=false -ldflags=-s -o "$directory/" ./cmd/webhook ./cmd/assessor ./cmd/xds
  ;;
*)
  echo "former: want freeze COMMIT or build DIRECTORY" >&2
  exit 2
  ;;
esac
