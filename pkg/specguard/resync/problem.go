// SPDX-License-Identifier: Apache-2.0

package resync

import "fmt"

// ProblemKind says what is wrong with something that somebody wrote.
type ProblemKind string

// The kinds of problems.
const (
	// ProblemNotAPeriod: the text is no duration of the form 1h30m.
	ProblemNotAPeriod ProblemKind = "NotAPeriod"
	// ProblemOutOfBounds: it is one, but not within what is allowed.
	ProblemOutOfBounds ProblemKind = "OutOfBounds"
	// ProblemNotABoolean: the text is neither true nor false.
	ProblemNotABoolean ProblemKind = "NotABoolean"
	// ProblemNotAPercentage: the text is neither a percentage from 1% to 100% nor a fraction
	// from 0.01 to 1.
	ProblemNotAPercentage ProblemKind = "NotAPercentage"
	// ProblemUnknownValue: the value is not one of the closed list.
	ProblemUnknownValue ProblemKind = "UnknownValue"
	// ProblemOverrideForbidden: no annotation counts under these guards.
	ProblemOverrideForbidden ProblemKind = "OverrideForbidden"
	// ProblemMayNotStop: the guards let an annotation lengthen the period only.
	ProblemMayNotStop ProblemKind = "MayNotStop"
	// ProblemMayNotShorten: an annotation never makes checks more frequent.
	ProblemMayNotShorten ProblemKind = "MayNotShorten"
)

// InputError is something that was written and does not count. Nothing is ever
// switched off by it: what the other levels say holds.
type InputError struct {
	Kind  ProblemKind
	Level Level
	// From names the annotation or the object that says it.
	From string
	// Text is what was written, quoted, at most 64 bytes of it: others chose it.
	Text string
	// Detail is a sentence for people, without a full stop.
	Detail string
}

// Error names the source, the text and what is wrong.
func (p *InputError) Error() string {
	if p.From == "" {
		return fmt.Sprintf("%s: %s", p.Text, p.Detail)
	}
	return fmt.Sprintf("%s: %s: %s", p.From, p.Text, p.Detail)
}

// at says where the problem was found.
func (p *InputError) at(l Level, from string) *InputError {
	q := *p
	q.Level, q.From = l, from
	return &q
}

const maxTextBytes = 64

// quoted makes a foreign text fit for a message or a terminal.
func quoted(text string) string {
	if len(text) > maxTextBytes {
		return fmt.Sprintf("%q…", text[:maxTextBytes])
	}
	return fmt.Sprintf("%q", text)
}
