// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/printable"
)

// Result is the opinion of a gate.
type Result string

// The results. All but Pass and Fail hold.
const (
	Pass   Result = "Pass"
	Fail   Result = "Fail"
	Wait   Result = "Wait"
	NoData Result = "NoData"
)

// maxMessage of a gate, in bytes.
const maxMessage = 256

// Answer is the answer to one question.
type Answer struct {
	Question
	// Time is when the answer came.
	Time time.Time
	// Value is the number that a query has; nil if there is none, and Message says why.
	Value *float64
	// Result of a webhook.
	Result Result
	// Message is for people.
	Message string
}

// State is the last answer of one gate.
type State struct {
	Key
	// Point of the last question.
	Point  Point
	Result Result
	// Value of a query, for people; empty without one.
	Value string
	// Failures are the numbers outside of the bounds in a row. No data neither counts nor ends the row.
	Failures int
	// Time is when the answer came, in whole seconds.
	Time    time.Time
	Message string
}

// Settle has the states follow answers. A gate that is not one of the set, and a state or an answer of
// another run, are left out. The result is in the order of kind and name.
func Settle(set Set, states []State, answers []Answer, run int64) []State {
	var next []State
	for i := range states {
		if s := &states[i]; s.Point.Run == run && set.has(s.Key) {
			next = append(next, *s)
		}
	}
	for i := range answers {
		a := &answers[i]
		if a.Run != run || !set.has(a.Key) || !slices.Contains(set.At(a.Point), a.Key) {
			continue
		}
		at := slices.IndexFunc(next, func(s State) bool { return s.Key == a.Key })
		if at < 0 {
			at, next = len(next), append(next, State{})
		}
		next[at] = Step(set, next[at], *a)
	}
	slices.SortFunc(next, func(a, b State) int {
		return strings.Compare(string(a.Kind)+"/"+a.Name, string(b.Kind)+"/"+b.Name)
	})
	return next
}

// Step is the state of a gate after an answer. An answer that is earlier than the state changes nothing,
// and neither does one of the same time about the same point: the same answer twice counts once.
func Step(set Set, before State, a Answer) State {
	at := a.Time.Truncate(time.Second)
	isKnown := before.Key == a.Key
	if isKnown && (at.Before(before.Time) || at.Equal(before.Time) && before.Point == a.Point) {
		return before
	}
	next := State{Key: a.Key, Point: a.Point, Time: at}
	if isKnown && before.Point == a.Point {
		next.Failures = before.Failures
	}
	if q := set.query(a.Key); q != nil {
		next.compare(q, &a)
	} else {
		next.believe(&a)
	}
	next.Message = printable.Line(next.Message, maxMessage)
	return next
}

// compare judges the number of a query.
func (s *State) compare(q *Query, a *Answer) {
	if a.Value == nil || math.IsNaN(*a.Value) || math.IsInf(*a.Value, 0) {
		s.Result, s.Message = NoData, a.Message
		return
	}
	s.Value = strconv.FormatFloat(*a.Value, 'g', -1, 64)
	violation, err := q.violation(*a.Value)
	switch {
	case err != nil: // validation lets no such bound in
		s.Result, s.Message = NoData, err.Error()
	case violation == "":
		s.Result, s.Failures, s.Message = Pass, 0, q.bounds()
	default:
		s.Failures = min(s.Failures+1, MaxFailureLimit)
		s.Message = fmt.Sprintf("%s; %d of %d in a row", violation, s.Failures, q.FailureLimit)
		if s.Result = Wait; s.Failures >= q.FailureLimit {
			s.Result = Fail
		}
	}
}

// bounds of a query for people.
func (q *Query) bounds() string {
	switch {
	case q.Minimum == "":
		return "is at most " + q.Maximum
	case q.Maximum == "":
		return "is at least " + q.Minimum
	}
	return "is from " + q.Minimum + " to " + q.Maximum
}

// believe takes the result of a webhook; an unknown result waits.
func (s *State) believe(a *Answer) {
	s.Failures, s.Message = 0, a.Message
	switch a.Result {
	case Pass, Fail, Wait:
		s.Result = a.Result
	case NoData:
		s.Result = Wait
	default:
		s.Result = Wait
	}
}

// find the state of a gate; the zero State if there is none.
func find(states []State, k Key) State {
	for i := range states {
		if states[i].Key == k {
			return states[i]
		}
	}
	return State{}
}
