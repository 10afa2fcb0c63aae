// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"fmt"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/printable"
)

// Verdict is the verdict of all gates of a point together.
type Verdict struct {
	// Result is Pass, Wait or Fail.
	Result Result
	// Message names the gate that does not pass, its value and its limit; empty for Pass.
	Message string
}

// Judge says whether a run may go past a point. A failure comes before a wait. A Pass that is older than
// freshFor waits until the gate is asked again. A point without gates passes.
func Judge(set Set, states []State, p Point, now time.Time, freshFor time.Duration) Verdict {
	verdict := Verdict{Result: Pass}
	for _, k := range set.At(p) {
		s := find(states, k)
		switch {
		case s.Key != k || s.Point != p:
			verdict.wait("%s was not asked about %s yet", k, p)
		case s.Result == Fail:
			return Verdict{Fail, s.describe()}
		case s.Result == Pass && now.Sub(s.Time) > freshFor:
			verdict.wait("%s was not asked about %s since %s", k, p, s.Time.UTC().Format(time.RFC3339))
		case s.Result == Pass:
		case s.Result == NoData:
			verdict.wait("%s has no data: %s", k, s.Message)
		default: // Wait, and each unknown result
			verdict.wait("%s", s.describe())
		}
	}
	return verdict
}

// wait keeps the first reason.
func (v *Verdict) wait(format string, args ...any) {
	if v.Result == Pass {
		*v = Verdict{Wait, printable.Line(fmt.Sprintf(format, args...), maxVerdict)}
	}
}

// maxVerdict of a message that names a gate, in bytes.
const maxVerdict = maxMessage + 128

// describe renders the state of a gate for people.
func (s *State) describe() string {
	text := s.String()
	switch s.Kind {
	case KindQuery:
		text += ": " + s.Value
	case KindWebhook:
		text += fmt.Sprintf(" says %s about %s", s.Result, s.Point)
		if s.Message != "" {
			text += ":"
		}
	}
	if s.Message != "" {
		text += " " + s.Message
	}
	return printable.Line(text, maxVerdict)
}
