#!/usr/bin/env bash
# Regenerates every committed generated file. Run through `make generate`.
set -euo pipefail
cd "$(dirname "$0")/.."
tool=(go tool -modfile=hack/tools/go.mod)
"${tool[@]}" controller-gen object paths=./pkg/apis/... crd paths=./pkg/apis/... output:crd:dir=charts/plumbline/files/crds
"${tool[@]}" crd-ref-docs --source-path=pkg/apis --config=hack/kindsdoc/config.yaml --templates-dir=hack/kindsdoc/templates \
  --renderer=markdown --output-path=docs/reference/kinds.md --log-level=ERROR
go generate ./...
gofmt -l -w pkg >/dev/null
