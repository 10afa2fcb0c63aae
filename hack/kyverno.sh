#!/usr/bin/env bash
# Builds Kyverno's admission controller, which `make bench-admission-peers` measures
# beside Plumbline's webhook, and prints the folder with the binary `kyverno` and its
# kinds (`crds`). The folder is bin/kyverno/VERSION; a second call only prints the folder.
#
# Kyverno is compiled from its own module, with the versions of its own go.sum. No
# go.mod of this repository requires the module.
set -euo pipefail
cd "$(dirname "$0")/.."
module=github.com/kyverno/kyverno
version=v1.19.0
sum=h1:KV42j5lv9lN6WgFlt4X+Mhn0aQD0wLWzlJ/5jdWVdqI=

folder=$PWD/bin/kyverno/$version
if [ ! -x "$folder/kyverno" ]; then
  echo "kyverno: building $module $version (15 minutes on two cores; later calls find it in bin/)" >&2
  mkdir -p "$folder"
  # The module is no dependency here: a module of its own keeps go.mod and go.sum as they are.
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  printf 'module scratch\n' >"$scratch/go.mod"
  described=$(cd "$scratch" && go mod download -json "$module@$version")
  found=$(sed -nE 's/^\t"Sum": "(.*)",?$/\1/p' <<<"$described")
  if [ "$found" != "$sum" ]; then
    echo "kyverno: $module $version has the sum $found, want $sum" >&2
    exit 1
  fi
  source=$(sed -nE 's/^\t"Dir": "(.*)",?$/\1/p' <<<"$described")
  # One folder of all groups; modes are not kept, since a module's files are read-only.
  mkdir -p "$folder/crds"
  find "$source/config/crds" -name '*.yaml' -exec cp --no-preserve=mode -t "$folder/crds" {} +
  GOFLAGS='' CGO_ENABLED=0 GOWORK=off go -C "$source" build -mod=readonly -trimpath -buildvcs=false \
    -ldflags="-s -w -X $module/pkg/version.BuildVersion=$version" -o "$folder/kyverno.new" ./cmd/kyverno >&2
  mv "$folder/kyverno.new" "$folder/kyverno"
fi
echo "$folder"
