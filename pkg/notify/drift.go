// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"fmt"

	"github.com/plumbline-dev/plumbline/pkg/plural"
)

// Events about drift of the objects that one guard selects in one namespace.
const (
	// DriftDetected tells that objects have drifted, or that their drift is worse than before.
	DriftDetected EventType = "DriftDetected"
	// DriftResolved tells that a drift that was told is over.
	DriftResolved EventType = "DriftResolved"
)

// driftWire is the spelling of an event about drift in payloads; empty for another event.
func (t EventType) driftWire() string {
	switch t {
	case DriftDetected:
		return "drift.detected"
	case DriftResolved:
		return "drift.resolved"
	default:
		return ""
	}
}

// GuardRef names the guard of an event, and the namespace of the objects.
type GuardRef struct {
	// Kind is SpecGuard or ClusterSpecGuard.
	Kind string
	// Namespace is that of a SpecGuard; empty for a ClusterSpecGuard.
	Namespace, Name, UID string
	// ObjectNamespace is the namespace of the objects.
	ObjectNamespace string
}

func (r *GuardRef) bounded() *GuardRef {
	if r == nil {
		return nil
	}
	return &GuardRef{
		Kind: clean(r.Kind, maxKind), Namespace: clean(r.Namespace, maxNamespace), Name: clean(r.Name, maxName),
		UID: clean(r.UID, maxUID), ObjectNamespace: clean(r.ObjectNamespace, maxNamespace),
	}
}

// fullName is the name of the guard with its namespace.
func (r *GuardRef) fullName() string {
	if r.Namespace == "" {
		return r.Name
	}
	return r.Namespace + "/" + r.Name
}

// guardData is a guard in payloads.
type guardData struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	// ObjectNamespace is the namespace of the objects.
	ObjectNamespace string `json:"objectNamespace"`
}

// driftHeadline says in one sentence what happened to guarded objects.
func driftHeadline(e Event, q quote) string {
	namespace, objects := q(e.Guard.ObjectNamespace), plural.Of(e.Counts.Total, "object")
	switch e.Type {
	case DriftDetected:
		return fmt.Sprintf("Drift in namespace %s: %s", namespace, objects)
	case DriftResolved:
		return fmt.Sprintf("Drift in namespace %s is over: %s", namespace, objects)
	default:
		return ""
	}
}
