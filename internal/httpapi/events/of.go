// SPDX-License-Identifier: Apache-2.0

package events

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// Entry is an event with its id.
type Entry struct {
	ID ID
	// Kind is that of the object.
	Kind  string
	Event wire.Event
}

// maxMessage bounds the message of an event, in bytes: a message of a condition may have 32 KiB.
const maxMessage = 1024

// Of returns all events of an object, in their order, as far as the object tells them. It is nil for an object
// of a kind that has no events.
func Of(object any) []Entry {
	switch o := object.(type) {
	case *v1alpha1.RemediationPlan:
		return ofKind("RemediationPlan", ofPlan(o))
	case *v1alpha1.ABRelease:
		return ofKind("ABRelease", ofRelease(o))
	case *v1alpha1.Baseline:
		return ofKind("Baseline", ofBaseline(o))
	case *v1alpha1.RemediationPolicy:
		return ofKind("RemediationPolicy", ofPolicy(o))
	}
	return nil
}

func ofKind(kind string, all []Entry) []Entry {
	for i := range all {
		all[i].Kind = kind
	}
	return all
}

// entryOf makes the entry of an event that happened to an object at a time.
func entryOf(object *metav1.ObjectMeta, place string, at time.Time, e wire.Event) Entry {
	id := ID{max(0, at.Unix()), string(object.UID), place}
	e.ID, e.Namespace, e.Name, e.Message = id.String(), object.Namespace, object.Name, diff.TruncateText(e.Message, maxMessage)
	if e.Timestamp.IsZero() {
		e.Timestamp = at
	}
	e.Timestamp = e.Timestamp.UTC().Truncate(time.Second)
	return Entry{ID: id, Event: e}
}
