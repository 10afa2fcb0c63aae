// SPDX-License-Identifier: Apache-2.0

package clone

import (
	"slices"
	"strings"
)

// markedKeys are the labels and annotations by which a tool knows an object as its own, or that
// describe the one object that has them. A clone with a tracking label of Argo CD would be
// pruned, and one with an instance label as well, by which Argo CD tracks objects by default.
var markedKeys = []string{
	"app.kubernetes.io/instance",
	"app.kubernetes.io/managed-by",
	"applyset.kubernetes.io/part-of",
	"helm.sh/chart",
	"kubectl.kubernetes.io/last-applied-configuration",
}

// markedGroups are the prefixes of such keys, before the slash.
var markedGroups = []string{
	"argocd.argoproj.io",
	"config.k8s.io",
	"config.kubernetes.io",
	"deployment.kubernetes.io",
	"fleet.cattle.io",
	"helm.sh",
	"helm.toolkit.fluxcd.io",
	"kapp.k14s.io",
	"kustomize.toolkit.fluxcd.io",
	"meta.helm.sh",
	"objectset.rio.cattle.io",
	"plumbline.dev",
}

// isMark says whether a label or annotation belongs to the one object that has it.
func isMark(key string) bool {
	group, _, _ := strings.Cut(key, "/")
	return slices.Contains(markedKeys, key) || slices.Contains(markedGroups, group)
}

// withoutMarks returns the labels or annotations that a copy keeps; nil if none are left.
func withoutMarks(in map[string]string) map[string]string {
	var out map[string]string
	for key, value := range in {
		if isMark(key) {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[key] = value
	}
	return out
}
