// SPDX-License-Identifier: Apache-2.0

package resync

import (
	"fmt"
	"strings"
	"time"
)

// Level is a place where a setting may be made.
type Level string

// The levels, from the most specific on. A level that says something ends the
// search; what is below it is overruled.
const (
	// LevelObject is the annotation on the object itself.
	LevelObject Level = "Object"
	// LevelGuard are the guards that select it.
	LevelGuard Level = "Guard"
	// LevelEnvironmentKind is the kind in the GuardDefaults of its Environment.
	LevelEnvironmentKind Level = "EnvironmentKind"
	// LevelKind is the kind in the install-wide GuardDefaults.
	LevelKind Level = "Kind"
	// LevelEnvironmentDefault are the defaults of its Environment.
	LevelEnvironmentDefault Level = "EnvironmentDefault"
	// LevelDefault are the install-wide defaults.
	LevelDefault Level = "Default"
	// LevelOption is the command line or the environment variable.
	LevelOption Level = "Option"
	// LevelDriftDetection is the object's wish for checks without a period.
	LevelDriftDetection Level = "DriftDetection"
	// LevelBuiltIn is what holds when nobody says anything.
	LevelBuiltIn Level = "BuiltIn"
)

// Verdict is what became of a level.
type Verdict string

// The verdicts. Exactly one level of an Answer decides.
const (
	// VerdictDecides: its value holds.
	VerdictDecides Verdict = "Decides"
	// VerdictSilent: it says nothing.
	VerdictSilent Verdict = "Silent"
	// VerdictOverruled: a more specific level decides.
	VerdictOverruled Verdict = "Overruled"
	// VerdictRefused: it says something that does not count; the Problem says why.
	VerdictRefused Verdict = "Refused"
)

// Voice is what one source says.
type Voice[T any] struct {
	// From names the source, e.g. SpecGuard/web.
	From  string
	Value T
}

// Step is one level of the search.
type Step[T any] struct {
	Level   Level
	Verdict Verdict
	// Voices are all that this level says, several where several guards speak.
	Voices []Voice[T]
	// Problem says why the level is refused, else nil.
	Problem *InputError
}

// String is one line for people.
func (s Step[T]) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", s.Level, strings.ToLower(string(s.Verdict)))
	for i, v := range s.Voices {
		separator := ", "
		if i == 0 {
			separator = "; "
		}
		fmt.Fprintf(&b, "%s%s says %s", separator, v.From, spoken(v.Value))
	}
	if s.Problem != nil {
		fmt.Fprintf(&b, "; %s", s.Problem.Detail)
	}
	return b.String()
}

func spoken(value any) string {
	if d, ok := value.(time.Duration); ok {
		return short(d)
	}
	return fmt.Sprint(value)
}

// Answer is a setting with the way it was found.
type Answer[T any] struct {
	Value T
	// Level decided it, and From is the source there.
	Level Level
	From  string
	// Trail has every level, the most specific first.
	Trail []Step[T]
}

// level is what one level says before it is known which one decides.
type level[T any] struct {
	name   Level
	voices []Voice[T]
}

// decide takes the first level that speaks. Where several voices speak at it,
// agree makes one of them; it is never called without a voice.
func decide[T any](levels []level[T], agree func([]Voice[T]) Voice[T]) Answer[T] {
	var a Answer[T]
	for _, l := range levels {
		step := Step[T]{Level: l.name, Voices: l.voices}
		switch {
		case len(l.voices) == 0:
			step.Verdict = VerdictSilent
		case a.Level != "":
			step.Verdict = VerdictOverruled
		default:
			step.Verdict = VerdictDecides
			v := agree(l.voices)
			a.Value, a.From, a.Level = v.Value, v.From, l.name
		}
		a.Trail = append(a.Trail, step)
	}
	return a
}

// below puts a more specific level in front. When it decides, the one that
// decided until now is overruled.
func (a Answer[T]) below(first Step[T]) Answer[T] {
	trail := append([]Step[T]{first}, a.Trail...)
	if first.Verdict == VerdictDecides {
		for i := range trail[1:] {
			if trail[i+1].Verdict == VerdictDecides {
				trail[i+1].Verdict = VerdictOverruled
			}
		}
		a.Value, a.Level, a.From = first.Voices[0].Value, first.Level, first.Voices[0].From
	}
	a.Trail = trail
	return a
}
