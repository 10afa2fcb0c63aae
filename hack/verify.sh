#!/usr/bin/env bash
# Fails when a generated file or a module file is stale. Works on a copy, so that
# the tree is never touched. Arguments choose what is looked at: modules, generated;
# both when there is none.
set -euo pipefail
cd "$(dirname "$0")/.."
parts=("$@")
if [ $# = 0 ]; then parts=(modules generated); fi
for part in "${parts[@]}"; do
  if [[ $part != modules && $part != generated ]]; then
    echo "verify: nothing is named $part; want modules or generated" >&2
    exit 2
  fi
done
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git ls-files -z --cached --others --exclude-standard |
  perl -0ne 'chomp; print "$_\0" if -e || -l' |
  tar --null -T - -cf - | tar -xf - -C "$copy"
cd "$copy"
git init -q
git add -A
git -c user.name=verify -c user.email=verify@localhost commit -qm before

# fail_if_stale fails when a tool has written a file anew.
fail_if_stale() {
  git add -A
  if git diff --cached --quiet; then return; fi
  # Not head, which would end git with a signal and this script with it.
  git --no-pager diff --cached --no-color | sed -n 1,60p >&2
  echo "verify: stale: $(git diff --cached --name-only | paste -sd ' ')" >&2
  echo "verify: run 'make generate' for generated files, 'go mod tidy' for module files, and commit the result" >&2
  exit 1
}

for part in "${parts[@]}"; do
  case $part in
  modules)
    for module in . hack/cluster hack/release hack/alerts; do (cd "$module" && go mod tidy); done
    fail_if_stale # before the lists of modules, which take longer
    hack/align.sh check
    ;;
  generated) hack/generate.sh ;;
  esac
done
fail_if_stale
echo "verify: up to date: ${parts[*]}"
