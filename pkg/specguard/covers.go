// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// Covers tells whether a guard can select objects of a kind in a namespace, in force or not.
// Labels of objects do not count, because a guard keeps an object by labels that the
// object had once. Where the namespace is not known, its labels match each selector.
func (s *GuardSet) Covers(gvk canon.GVK, namespace string, namespaceLabels map[string]string, known bool) bool {
	if s == nil || has(s.excluded, namespace) {
		return false
	}
	gk := groupKind{gvk.Group, gvk.Kind}
	if len(s.namespaced[namespace][gk]) > 0 {
		return true
	}
	return slices.ContainsFunc(s.cluster[gk], func(g *Guard) bool {
		return !known || g.namespaces == nil || g.namespaces.Matches(labels.Set(namespaceLabels))
	})
}
