// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-dev/plumbline/internal/kube"
)

// Objects returns the known guarded objects; *kube.Tracker does.
type Objects interface {
	View(kube.Key) kube.View
	Settle(kube.Key, []kube.Transition)
	// RestoreContent gives an object its content back, as far as there is room for it.
	RestoreContent(key kube.Key, live *kube.Object)
	Health(schema.GroupVersionKind) kube.Health
}

// Ahead adds the readings of checks that the watch does not have to the objects of the
// watch: an event was lost, or the watch is silent. To a reconciliation that is
// a transition like any other. The transition is not contiguous, because no event told
// of the versions before it.
//
// A reading stays until the watch has come as far. Versions of one resource are comparable
// as integers (KEP-5504). So a late event is known to be older, and is not judged again
// after a newer version.
type Ahead struct {
	Objects

	mu       sync.Mutex
	readings map[kube.Key]*held
}

// held is a reading that the watch has not come to.
type held struct {
	Reading
	// known is the newest version that the watch had; nil if it had no version.
	known *kube.Object
	// judged is the version up to which readings of it were judged: its own once a
	// reconciliation has dealt with it, before that the one of an earlier reading.
	judged  string
	settled bool
}

// NewAhead returns an Ahead of a watch that holds no reading.
func NewAhead(watch Objects) *Ahead {
	return &Ahead{Objects: watch, readings: map[kube.Key]*held{}}
}

// maxHeldBytes bounds the content of all readings that are held.
const maxHeldBytes = 16 << 20

// Hold takes a reading that is newer than the version of the watch; false when there is no room.
func (a *Ahead) Hold(key kube.Key, reading Reading, known *kube.Object) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	size := reading.contentBytes()
	for other, h := range a.readings {
		if other != key {
			size += h.contentBytes()
		}
	}
	if size > maxHeldBytes {
		return false
	}
	h := &held{Reading: reading, known: known}
	if before := a.readings[key]; before != nil {
		h.judged = before.judged
	}
	a.readings[key] = h
	return true
}

// View implements Objects.
func (a *Ahead) View(key kube.Key) kube.View {
	view := a.Objects.View(key)
	a.mu.Lock()
	defer a.mu.Unlock()
	h := a.readings[key]
	switch {
	case h == nil, view.Unknown != nil:
		return view
	case h.outdated(view):
		delete(a.readings, key)
		return a.unjudged(key, h, view)
	}
	view = a.unjudged(key, h, view)
	switch {
	case h.settled:
	case view.Current == nil && h.Object == nil: // the watch tells the same
		h.settled, h.judged = true, h.Version
	default:
		view.Pending = append(slices.Clip(view.Pending), h.transition(view))
	}
	view.Current = h.Object
	return view
}

// outdated says that the watch has come to a reading. Where both have no object, the
// watch may still be about to tell of an object that came and went before.
func (h *held) outdated(view kube.View) bool {
	if view.Current == nil && h.Object == nil && kube.IsOlder(view.Progress, h.Version) {
		return false
	}
	return reached(view, h.Reading)
}

// unjudged leaves out the versions before a judged reading, but keeps the end of an
// object: the end names the last version.
func (a *Ahead) unjudged(key kube.Key, h *held, view kube.View) kube.View {
	n := 0
	for n < len(view.Pending) && kube.IsOlder(leadsTo(view.Pending[n]), h.judged) {
		n++
	}
	if h.Object == nil && n > 0 && view.Pending[n-1].Next == nil {
		n--
	}
	a.Objects.Settle(key, view.Pending[:n])
	view.Pending = view.Pending[n:]
	return view
}

// leadsTo is the version that a transition leads to; a deletion has one of its own.
func leadsTo(t kube.Transition) string {
	switch {
	case t.Next != nil:
		return t.Next.ResourceVersion
	case t.Prev != nil:
		return t.Prev.ResourceVersion
	default:
		return ""
	}
}

// transition is the step from the object of the watch to the reading.
func (h *held) transition(view kube.View) kube.Transition {
	prev := h.known
	if n := len(view.Pending); n > 0 {
		prev = view.Pending[n-1].Next
	}
	return kube.Transition{Prev: prev, Next: h.Object, SeenAt: h.At}
}

// Settle implements Objects.
func (a *Ahead) Settle(key kube.Key, seen []kube.Transition) {
	if n := len(seen); n > 0 && a.settleHeld(key, seen[n-1]) {
		seen = seen[:n-1]
	}
	a.Objects.Settle(key, seen)
}

// settleHeld tells whether a transition is that of a reading that the watch does not
// have.
func (a *Ahead) settleHeld(key kube.Key, last kube.Transition) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	h := a.readings[key]
	if h == nil || last.Contiguous || last.Next != h.Object || !last.SeenAt.Equal(h.At) {
		return false
	}
	h.settled, h.judged = true, h.Version
	return true
}

// behind says that the watch of a kind has not come to the reading of a check: waiting
// for it once more is of no use. A single lost event is no such sign.
func (a *Ahead) behind(kind schema.GroupVersionKind, progress string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, h := range a.readings {
		if key.GroupVersionKind == kind && kube.IsOlder(progress, h.Version) {
			return true
		}
	}
	return false
}

// reached says that the watch has a version of an object that is as new as a reading.
func reached(view kube.View, reading Reading) bool {
	switch current := view.Current; {
	case current != nil:
		return !kube.IsOlder(current.ResourceVersion, reading.Version) || sameBody(current, reading.Object)
	case reading.Object == nil:
		return true // gone for both
	default:
		deletion := deletionVersion(view)
		return deletion != "" && !kube.IsOlder(deletion, reading.Version)
	}
}

// passed says that the watch has come further than a reading without having
// delivered it: an event was lost, and it is no use to wait.
func passed(view kube.View, reading Reading) bool {
	return view.Progress != "" && !kube.IsOlder(view.Progress, reading.Version) && !reached(view, reading)
}

// sameBody says that the judged parts of two versions are equal. Controllers
// move the version all the time by writing the status.
func sameBody(a, b *kube.Object) bool {
	return b != nil && a.UID == b.UID && a.FullHash == b.FullHash && a.Unreadable == nil && b.Unreadable == nil &&
		a.DeletionTimestamp.Equal(b.DeletionTimestamp)
}

// deletionVersion is the version of a deletion that was seen and not settled yet.
func deletionVersion(view kube.View) string {
	if n := len(view.Pending); n > 0 && view.Pending[n-1].Next == nil {
		return leadsTo(view.Pending[n-1])
	}
	return ""
}
