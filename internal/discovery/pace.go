// SPDX-License-Identifier: Apache-2.0

package discovery

import "time"

// Haste says how soon a change matters.
type Haste int

// The kinds of haste.
const (
	// Later is for what comes in flocks.
	Later Haste = iota
	// Soon is for endpoints that go: each request to one is lost.
	Soon
	// AtOnce is for what somebody decided: a weight, a rollback, a quarantine.
	AtOnce
)

// How long changes are collected.
const (
	// soon is for endpoints that go, of which one is rarely alone.
	soon = 10 * time.Millisecond
	// quiet is for everything else, as long as changes come; patient is the longest.
	quiet   = 100 * time.Millisecond
	patient = time.Second
)

// Pace says when changes that have come are worth a look. The zero Pace has none.
type Pace struct {
	first, last, hurry time.Time
}

// Changed notes a change.
func (p Pace) Changed(now time.Time, haste Haste) Pace {
	if p.first.IsZero() {
		p.first = now
	}
	p.last = now
	switch haste {
	case Later:
	case Soon:
		p.hurry = sooner(p.hurry, now.Add(soon))
	case AtOnce:
		p.hurry = sooner(p.hurry, now)
	}
	return p
}

// Due is when to look; zero while nothing has changed.
func (p Pace) Due() time.Time {
	if p.first.IsZero() {
		return time.Time{}
	}
	due := sooner(p.last.Add(quiet), p.first.Add(patient))
	if !p.hurry.IsZero() {
		due = sooner(due, p.hurry)
	}
	return due
}

// sooner of two times, of which a may be none.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
