#!/usr/bin/env bash
# Fails when a generated file or a module file is stale. Works on a copy, so that
# the tree is never touched.
set -euo pipefail
cd "$(dirname "$0")/.."
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git ls-files -z --cached --others --exclude-standard |
  perl -0ne 'chomp; print "$_\0" if -e || -l' |
  tar --null -T - -cf - | tar -xf - -C "$copy"
cd "$copy"
git init -q
git add -A
git -c user.name=verify -c user.email=verify@localhost commit -qm before
for module in . hack/cluster; do (cd "$module" && go mod tidy); done
hack/generate.sh
git add -A
if ! git diff --cached --exit-code --stat; then
  echo "verify: the files above are stale; run 'make generate' and 'go mod tidy' and commit the result" >&2
  exit 1
fi
echo "verify: generated files and module files are up to date"
