#!/usr/bin/env bash
# Raises each module that several programs of the repository compile to the newest of
# their versions, so that a machine with empty caches compiles the module once.
# `make verify` fails when versions differ.
#
#   hack/align.sh        raise versions
#   hack/align.sh check  print the differences, and fail when there are any
set -euo pipefail
shopt -s inherit_errexit # a list that fails must not look like one without differences
cd "$(dirname "$0")/.."
export GOFLAGS='' CGO_ENABLED=0 GOWORK=off
modules='{{with .Module}}{{if not .Main}}{{.Path}} {{if .Replace}}{{.Replace.Version}}{{else}}{{.Version}}{{end}}{{end}}{{end}}'
# hack/alerts is not among them: promtool needs the client_golang that it was written for.
# Nor are components/prometheus and components/alertmanager, for the same reason.
# Nor is components/kubernetes-oldest, whose modules are as old as it is.
programs=(
  ". -test -tags=integration,e2e ./..."
  "hack/cluster -test -tags=cluster ./..."
  "hack/release -test ./..."
  "hack/tools tool"
  "hack/cluster/components/kubernetes . k8s.io/kubernetes/cmd/kubectl"
  "hack/cluster/components/containerd github.com/containerd/containerd/v2/cmd/containerd"
  "hack/cluster/components/coredns ."
  "hack/cluster/components/helm helm.sh/helm/v4/cmd/helm"
)

# list_differences prints "<folder> <module> <version> <newest version>" for each module
# that is older in one program than in another one.
list_differences() {
  for program in "${programs[@]}"; do
    read -r folder arguments <<<"$program"
    # shellcheck disable=SC2086 # the arguments are words
    go -C "$folder" list -deps -f "$modules" $arguments | sort -u | awk -v folder="$folder" 'NF {print folder, $0}'
  done | sort -k2,2 -k3,3V |
    awk '{line[NR] = $0; module[NR] = $2; newest[$2] = $3}
      END {for (i = 1; i <= NR; i++) {split(line[i], field, " "); if (field[3] != newest[module[i]]) print line[i], newest[module[i]]}}'
}

for _ in 1 2 3 4; do
  differences=$(list_differences)
  if [ -z "$differences" ]; then
    echo "align: all programs use the same version of each module"
    exit 0
  fi
  echo "$differences"
  if [ "${1-}" = check ]; then
    echo "align: the modules above (program, module, version, newest) differ; run hack/align.sh" >&2
    exit 1
  fi
  while read -r folder wanted; do
    # shellcheck disable=SC2086 # the modules are words
    go -C "$folder" get $wanted
    go -C "$folder" mod tidy
  done < <(awk '{wanted[$1] = wanted[$1] " " $2 "@" $4} END {for (folder in wanted) print folder wanted[folder]}' <<<"$differences")
done
echo "align: versions still differ after four rounds" >&2
exit 1
