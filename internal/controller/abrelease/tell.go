// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
)

const (
	// action is what was done when an Event was made.
	action = "Decide"
	// maxNote is the API server's limit of an Event's note, in bytes.
	maxNote = 1024
)

// tell makes Events of what is new in a status that was stored.
func (r *Reconciler) tell(s *subject, was *v1alpha1.ABReleaseStatus) {
	for _, e := range s.decision.Events {
		r.event(s, e.Warning, string(e.Reason), e.Message)
	}
	r.tellRollout(s)
	is := &s.release.Status
	for _, c := range []struct {
		kind    string
		warning bool
	}{
		{v1alpha1.ConditionAcknowledged, false}, {v1alpha1.ConditionStalled, true},
	} {
		before, now := reasonOf(was, c.kind), reasonOf(is, c.kind)
		if now.reason != "" && (before.reason != now.reason || c.kind == v1alpha1.ConditionStalled && before.message != now.message) {
			r.event(s, c.warning, now.reason, now.message)
		}
	}
	r.tellDegraded(s, was)
	r.tellRestores(s, was)
	if s.decision.Grew {
		split := s.decision.After.Split
		r.Log.Info("abrelease.split", "event", "abrelease.split", "namespace", split.Namespace, "release", split.Name,
			"service", split.Service, "sequence", split.Sequence, "split", release.Text(split.Shares), "generation", s.decision.After.Generation)
	}
}

type told struct{ reason, message string }

// reasonOf a condition that is True.
func reasonOf(status *v1alpha1.ABReleaseStatus, kind string) told {
	for _, c := range status.Conditions {
		if c.Type == kind && c.Status == "True" {
			return told{c.Reason, c.Message}
		}
	}
	return told{}
}

func (r *Reconciler) event(s *subject, warning bool, reason, message string) {
	kind := corev1.EventTypeNormal
	if warning {
		kind = corev1.EventTypeWarning
	}
	if after := s.decision.After; after != nil {
		message = fmt.Sprintf("%s (sequence %d)", message, after.Split.Sequence)
	}
	r.Recorder.Eventf(s.release, nil, kind, reason, action, "%s", diff.TruncateText(diff.Printable(message), maxNote))
}

// memory knows the status that this process stored last of each release. The zero memory knows nothing.
type memory struct {
	mu     sync.Mutex
	stored map[types.NamespacedName]stored
}

// stored is a part of a status, and when the status was stored.
type stored struct {
	at       time.Time
	uid      types.UID
	sequence uint64 // the highest in force
	taken    uint64 // the highest that a decision took, also for a prepared rollback
}

func (m *memory) note(release *v1alpha1.ABRelease, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stored == nil {
		m.stored = map[types.NamespacedName]stored{}
	}
	is := m.of(release)
	is.at, is.uid = now, release.UID
	if in := release.Status.Effective; in != nil {
		is.sequence = max(is.sequence, uint64(in.Sequence))                        //nolint:gosec // the schema has it above zero
		is.taken = max(is.taken, is.sequence, uint64(max(in.PreparedSequence, 0))) //nolint:gosec // it is not negative
	}
	m.stored[client.ObjectKeyFromObject(release)] = is
}

func (m *memory) age(name types.NamespacedName, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return now.Sub(m.stored[name].at)
}

// sequence returns the highest that this process stored of a release; 0 if it stored none.
func (m *memory) sequence(release *v1alpha1.ABRelease) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of(release).sequence
}

// taken returns the highest sequence that this process stored of a release, prepared rollbacks included; 0 if it stored
// none. A store that was put back has lost it, and proxies have not.
func (m *memory) taken(release *v1alpha1.ABRelease) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of(release).taken
}

// of returns what is known of this very release, and not of one of its name that was deleted.
func (m *memory) of(release *v1alpha1.ABRelease) stored {
	if is := m.stored[client.ObjectKeyFromObject(release)]; is.uid == release.UID {
		return is
	}
	return stored{}
}

func (m *memory) forget(name types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.stored, name)
}
