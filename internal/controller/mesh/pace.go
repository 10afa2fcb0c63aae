// SPDX-License-Identifier: Apache-2.0

package mesh

import "time"

// How long changes are collected.
const (
	// urgently is for endpoints that go: each request to one is lost.
	urgently = 10 * time.Millisecond
	// quiet is for everything else, as long as changes come; patient is the longest.
	quiet   = 100 * time.Millisecond
	patient = time.Second
)

// Pace says when changes that have come are worth a look. The zero Pace has none.
type Pace struct {
	first, last, urgent time.Time
}

// Changed notes a change.
func (p Pace) Changed(now time.Time, urgent bool) Pace {
	if p.first.IsZero() {
		p.first = now
	}
	if urgent && p.urgent.IsZero() {
		p.urgent = now
	}
	p.last = now
	return p
}

// Due is when to look; zero while nothing has changed.
func (p Pace) Due() time.Time {
	if p.first.IsZero() {
		return time.Time{}
	}
	due := earlier(p.last.Add(quiet), p.first.Add(patient))
	if !p.urgent.IsZero() {
		due = earlier(due, p.urgent.Add(urgently))
	}
	return due
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
