// SPDX-License-Identifier: Apache-2.0

package failopen

import "time"

// Evidence says what tells that the webhook was not asked.
type Evidence string

// The kinds of evidence.
const (
	// EvidenceEndpoints: the Service had no ready endpoint.
	EvidenceEndpoints Evidence = "endpoints"
	// EvidenceLease: no replica renewed the Lease.
	EvidenceLease Evidence = "lease"
	// EvidenceAPIServer: the API server counted a call that it went on without.
	EvidenceAPIServer Evidence = "apiserver"
)

// Evidences lists all kinds, for metrics that exist from the start.
func Evidences() []Evidence {
	return []Evidence{EvidenceEndpoints, EvidenceLease, EvidenceAPIServer}
}

// Window is a stretch of time in which writes may have passed unasked.
type Window struct {
	Evidence Evidence
	// From is the last moment at which all was known to be well, To the first
	// at which it was again. So a window is never too short.
	From, To time.Time
}

// Cover returns the stretch that holds both windows; the zero Window adds
// nothing. The evidence is that of the later one.
func Cover(a, b Window) Window {
	switch {
	case a.To.IsZero():
		return b
	case b.To.IsZero():
		return a
	}
	if a.From.Before(b.From) {
		b.From = a.From
	}
	if a.To.After(b.To) {
		b.To = a.To
	}
	return b
}

// Signal follows one heartbeat. The zero value has seen nothing.
type Signal struct {
	Evidence Evidence
	// lastGood is when the heartbeat was last seen, lastSeen when anything was.
	lastGood, lastSeen time.Time
	// since is when the open window began, zero while none is open.
	since time.Time
}

// Observe takes one sample. It returns the window that this sample ends, if any,
// and how much of a window has passed since the sample before. Samples come in
// the order of time.
func (s *Signal) Observe(at time.Time, good bool) (ended *Window, passed time.Duration) {
	wasOpen, before := s.Open(), s.lastSeen
	if !good && !wasOpen {
		s.since = at
		if !s.lastGood.IsZero() {
			s.since = s.lastGood
		}
		before = s.since
	}
	if s.Open() {
		passed = at.Sub(before)
	}
	if good {
		if wasOpen {
			ended = &Window{Evidence: s.Evidence, From: s.since, To: at}
		}
		s.since, s.lastGood = time.Time{}, at
	}
	s.lastSeen = at
	return ended, passed
}

// Open says that a window is open.
func (s *Signal) Open() bool { return !s.since.IsZero() }

// renewal turns the versions of a Lease into a heartbeat, by the observer's own
// clock: that of the replica which renews it may be off.
type renewal struct {
	version string
	changed time.Time
}

// observe takes the Lease's present version. known is false until the first
// change, or until patience is over.
func (r *renewal) observe(at time.Time, version string, patience time.Duration) (good, known bool) {
	switch {
	case r.changed.IsZero():
		r.version, r.changed = version, at
		return false, false
	case version != r.version:
		r.version, r.changed = version, at
		return true, true
	default:
		// Between two renewals the last one still counts, but nothing new is known.
		late := at.Sub(r.changed) > patience
		return false, late
	}
}
