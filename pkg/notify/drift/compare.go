// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
	"github.com/plumbline-dev/plumbline/pkg/remediate/severity"
)

// Object is the drift of one guarded object, or that there is none.
type Object struct {
	// UID is that of the Baseline.
	UID   string
	State v1alpha1.DriftState
	// Since is when the drift began; zero without one.
	Since time.Time
	// Severity and Score are those of the drift; empty and 0 without one.
	Severity v1alpha1.SeverityLevel
	Score    int32
	// Target names the object; its reason is the worst finding.
	Target notify.Target
}

// Known is the drift that people know, by the uid of the Baseline.
type Known map[string]Object

// News is the drift that people do not know yet, worst first.
type News struct {
	// Detected are new drifts, and drifts with a higher severity than people know.
	Detected []Object
	// Resolved are drifts that people know, and that are over, as people know them.
	Resolved []Object
}

// Compare returns the news of objects, and the drift that people know once they are told. The
// drift of an object whose state is unknown stays as people know it. An object that no guard
// selects any more, or that is not among the objects, is forgotten without a word.
func Compare(known Known, objects []Object) (News, Known) {
	news, next := News{}, Known{}
	for _, o := range objects {
		before, told := known[o.UID]
		switch standingOf(o.State) {
		case drifted:
			switch {
			case !told, isWorse(before, o), !before.Since.Equal(o.Since):
				next[o.UID] = o
				news.Detected = append(news.Detected, o)
			default:
				next[o.UID] = before // the highest severity: its channels hear of the end
			}
		case sound:
			if told {
				news.Resolved = append(news.Resolved, before)
			}
		case unknown:
			if told {
				next[o.UID] = before
			}
		case unguarded:
		}
	}
	slices.SortFunc(news.Detected, compareWorstFirst)
	slices.SortFunc(news.Resolved, compareWorstFirst)
	return news, next
}

// standing is the meaning of a state for people.
type standing int

const (
	unknown standing = iota
	drifted
	sound
	unguarded
)

// standingOf takes a state that it does not know for unknown.
func standingOf(state v1alpha1.DriftState) standing {
	switch state {
	case v1alpha1.StateDrifted, v1alpha1.StateMissing:
		return drifted
	case v1alpha1.StateInSync, v1alpha1.StateRetired:
		return sound
	case v1alpha1.StateNotGuarded:
		return unguarded
	case v1alpha1.StateUnknown:
	}
	return unknown
}

func isWorse(before, now Object) bool {
	return severity.CompareLevels(now.Severity, before.Severity) > 0
}

func compareWorstFirst(a, b Object) int {
	return cmp.Or(severity.CompareLevels(b.Severity, a.Severity), cmp.Compare(b.Score, a.Score),
		cmp.Compare(a.Target.Kind, b.Target.Kind), cmp.Compare(a.Target.Name, b.Target.Name), cmp.Compare(a.UID, b.UID))
}

// KnownAtStart is the drift that counts as known when a process begins: each drift that began
// before a time, which the process before has told.
func KnownAtStart(objects []Object, before time.Time) Known {
	known := Known{}
	for _, o := range objects {
		if standingOf(o.State) == drifted && o.Since.Before(before) {
			known[o.UID] = o
		}
	}
	return known
}

// BuildEvent makes the event about some objects, worst first; there is at least one. Its
// transition derives from the objects, so that the same news has the same id.
func BuildEvent(kind notify.EventType, guard notify.GuardRef, objects []Object, now time.Time) notify.Event {
	e := notify.Event{
		Type: kind, Guard: &guard, Counts: notify.Counts{Total: len(objects)}, Transition: digest(objects), Time: now,
	}
	for _, o := range objects {
		if severity.CompareLevels(o.Severity, e.Severity) > 0 {
			e.Severity = o.Severity
		}
		if len(e.Targets) < notify.MaxTargets {
			e.Targets = append(e.Targets, o.Target)
		}
	}
	return e
}

func digest(objects []Object) string {
	lines := make([]string, 0, len(objects))
	for _, o := range objects {
		lines = append(lines, fmt.Sprintf("%s %d %s", o.UID, o.Since.Unix(), o.Severity))
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:16])
}

// SilentUntil is when the last silence of a namespace ends that is in force; zero if
// none is in force.
func SilentUntil(silences []v1alpha1.NotificationSilence, namespace string, now time.Time) time.Time {
	var until time.Time
	for i := range silences {
		s := &silences[i]
		concerned := len(s.Namespaces) == 0 || slices.Contains(s.Namespaces, namespace)
		if concerned && s.EndTime.After(now) && s.EndTime.After(until) {
			until = s.EndTime.Time
		}
	}
	return until
}

// HasSilence says whether a silence of the namespace was in force at a time or later: drift of
// then may be untold.
func HasSilence(silences []v1alpha1.NotificationSilence, namespace string, since time.Time) bool {
	return !SilentUntil(silences, namespace, since).IsZero()
}
