// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

const (
	// action is what the assessor did when it made an event.
	action = "Assess"
	// quiet is how long the same event of the same object is not told again.
	quiet = 2 * time.Minute
	// quietDefault is the same for a new default, which concerns all objects of a kind.
	quietDefault = 24 * time.Hour
	// maxTold bounds the memory of what was told.
	maxTold = 4096
	// maxNote is the API server's limit of an event's note, in bytes.
	maxNote = 1024
)

// tell makes events and figures of a decision that was carried out.
func (r *Reconciler) tell(s *subject, d *decision) {
	r.Metrics.decided(s, d)
	if s.terminating {
		return // nothing can be created there any more, events included
	}
	for _, e := range d.events {
		if !toldByExecutor(s, e.Event) {
			r.announce(s, d, e)
		}
	}
	r.tellChecks(s, d)
}

// toldByExecutor says that a plan has the target of a drift that is gone. The executor tells about
// that object how the step of the plan ended.
func toldByExecutor(s *subject, e specguard.Event) bool {
	return e.Reason == specguard.ReasonDriftResolved && s.baseline != nil && s.baseline.Status.PlanName != ""
}

// news is an event and the version of the object that it is about.
type news struct {
	specguard.Event
	version string
}

// announce tells an event about the object, with its Baseline as the related one. The Baseline
// itself says as much in its conditions and findings. Of an object that is not there no person can ask,
// so an event about such an object is told about the Baseline as well.
//
// Both references carry a resourceVersion: the recorder takes events that differ
// in nothing but their text for one that repeats, and shows only the first text
// (client-go, tools/events, getKey). What somebody else drifted a minute later
// would be lost.
func (r *Reconciler) announce(s *subject, d *decision, n news) {
	e := n.Event
	if s.baseline == nil || !r.told.first(s.key, e, s.now) {
		return
	}
	if !r.budget.spend(s.key.Namespace, e.Type, s.now) {
		r.Metrics.eventsSuppressed.WithLabelValues(string(e.Type)).Inc()
		return
	}
	kind, reason := string(e.Type), string(e.Reason)
	object, baseline := reference(s, d), baselineReference(s.baseline)
	object.ResourceVersion = n.version
	note := diff.TruncateText(e.Message, maxNote)
	r.Recorder.Eventf(object, baseline, kind, reason, action, "%s", note)
	if d.state.Drift == v1alpha1.StateMissing || !d.state.RetiredAt.IsZero() {
		r.Recorder.Eventf(baseline, object, kind, reason, action, "%s", note)
	}
}

func reference(s *subject, d *decision) *corev1.ObjectReference {
	apiVersion, kind := s.key.ToAPIVersionAndKind()
	ref := &corev1.ObjectReference{
		APIVersion: apiVersion, Kind: kind, Namespace: s.key.Namespace, Name: s.key.Name,
		UID: types.UID(d.state.Observed.UID),
	}
	if ref.UID == "" && d.state.Authorized != nil {
		ref.UID = types.UID(d.state.Authorized.UID)
	}
	return ref
}

func baselineReference(b *v1alpha1.Baseline) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "Baseline",
		Namespace: b.Namespace, Name: b.Name, UID: b.UID, ResourceVersion: b.ResourceVersion,
	}
}

// announcements remembers what was told lately.
type announcements struct {
	mu   sync.Mutex
	last map[announcement]time.Time
}

type announcement struct {
	key     kube.Key
	reason  specguard.EventReason
	message string
}

// announcementOf tells a new default once for a kind, and all else once for an object.
func announcementOf(key kube.Key, e specguard.Event) announcement {
	if e.Reason == specguard.ReasonServerDefault {
		key = kube.Key{GroupVersionKind: key.GroupVersionKind}
	}
	return announcement{key, e.Reason, e.Message}
}

// isRecent tells whether an event was told so lately that it is not told again.
func (a announcement) isRecent(at, now time.Time) bool {
	if a.reason == specguard.ReasonServerDefault {
		return now.Sub(at) < quietDefault
	}
	return now.Sub(at) < quiet
}

func newAnnouncements() *announcements {
	return &announcements{last: map[announcement]time.Time{}}
}

// first says whether an event was not told lately.
func (a *announcements) first(key kube.Key, e specguard.Event, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	told := announcementOf(key, e)
	if at, ok := a.last[told]; ok && told.isRecent(at, now) {
		return false
	}
	if len(a.last) >= maxTold {
		a.forgetOld(now)
	}
	a.last[told] = now
	return true
}

// forgetOld makes room; when everything is recent, everything goes, and at worst
// an event is told twice.
func (a *announcements) forgetOld(now time.Time) {
	for what, at := range a.last {
		if !what.isRecent(at, now) {
			delete(a.last, what)
		}
	}
	if len(a.last) >= maxTold {
		clear(a.last)
	}
}
