// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"time"

	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// Snapshot is all that a review is judged by, besides itself and the time. It
// is immutable.
type Snapshot struct {
	Guards *specguard.GuardSet
	// Parents maps group and resource to the kind whose /scale it serves.
	Parents map[GroupResource]canon.GVK
	// NamespaceLabels of a namespace; nil when it is not known (yet).
	NamespaceLabels func(namespace string) map[string]string
}

// GroupResource is an API group and a resource's plural name.
type GroupResource struct{ Group, Resource string }

// metadataName is the label that the API server sets on every namespace.
const metadataName = "kubernetes.io/metadata.name"

// rules asks the guards about one object. A namespace that is too new to be
// known has at least the label that every namespace has.
func (s *Snapshot) rules(namespace, name string, gvk canon.GVK, now time.Time, labels ...map[string]string) specguard.Rules {
	return s.Guards.Rules(specguard.Query{
		Namespace:       namespace,
		Name:            name,
		NamespaceLabels: s.namespaceLabels(namespace),
		GVK:             gvk,
		Labels:          labels,
		Now:             now,
	})
}

// rulesUnseen is rules for a write that does not show the object's labels. A name that is
// not known is empty.
func (s *Snapshot) rulesUnseen(namespace, name string, gvk canon.GVK, now time.Time) specguard.Rules {
	return s.Guards.Rules(specguard.Query{
		Namespace:       namespace,
		Name:            name,
		NamespaceLabels: s.namespaceLabels(namespace),
		GVK:             gvk,
		LabelsUnknown:   true,
		Now:             now,
	})
}

func (s *Snapshot) namespaceLabels(namespace string) map[string]string {
	if s.NamespaceLabels != nil {
		if labels := s.NamespaceLabels(namespace); labels != nil {
			return labels
		}
	}
	return map[string]string{metadataName: namespace}
}
