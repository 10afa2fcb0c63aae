// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

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

// memory knows when a status was stored last. The zero memory knows nothing.
type memory struct {
	mu sync.Mutex
	at map[types.NamespacedName]time.Time
}

func (m *memory) note(name types.NamespacedName, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.at == nil {
		m.at = map[types.NamespacedName]time.Time{}
	}
	m.at[name] = now
}

func (m *memory) age(name types.NamespacedName, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return now.Sub(m.at[name])
}

func (m *memory) forget(name types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.at, name)
}
