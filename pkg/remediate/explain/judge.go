// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"time"
)

// judge finds the verdict. What has to be changed comes before what is not known,
// and that before what passes by itself: the strongest no is the answer.
func (e *Explanation) judge() {
	if e.Plan != "" {
		e.Verdict, e.Because = UnderWay, "plan "+e.Plan+" has it"
		return
	}
	if g := e.first(func(g Gate) bool { return g.State == Closed && g.Needs == NeedsChange && g.Name != gateTrigger }); g != nil {
		e.Verdict, e.Because = NeverUnless, g.Message
		return
	}
	if g := e.first(func(g Gate) bool { return g.State == Unknown && !g.Aside }); g != nil {
		e.Verdict, e.Because = NotKnown, g.Message
		return
	}
	if g := e.first(func(g Gate) bool { return g.Name == gateTrigger && g.State == Closed }); g != nil {
		e.Verdict, e.Because = Executable, g.Message
		return
	}
	if g := e.first(func(g Gate) bool { return g.State == Closed && g.Needs == NeedsEvent }); g != nil {
		e.Verdict, e.Because = RepairedAfter, g.Message
		return
	}
	e.Verdict = RepairedNow
	for i := range e.Gates {
		// All have to be open, so the latest decides.
		if g := &e.Gates[i]; g.State == Closed && g.Until.After(e.At) {
			e.Verdict, e.At, e.Because = RepairedAt, g.Until, g.Message
		}
	}
}

func (e *Explanation) first(is func(Gate) bool) *Gate {
	for i := range e.Gates {
		if is(e.Gates[i]) {
			return &e.Gates[i]
		}
	}
	return nil
}

// String is the verdict in one sentence.
func (e *Explanation) String() string {
	switch e.Verdict {
	case RepairedNow:
		return "it would be remediated now"
	case RepairedAt:
		return "it would be remediated at " + e.At.UTC().Format(time.RFC3339) + ": " + e.Because
	case RepairedAfter:
		return "it would be remediated after a while: " + e.Because
	case UnderWay:
		return "it is being remediated: " + e.Because
	case Executable:
		return "it is remediated when a person decides so: " + e.Because
	case NeverUnless:
		return "it is not remediated without a change: " + e.Because
	case NotKnown:
		return "whether it would be remediated is unknown: " + e.Because
	}
	return "unknown verdict " + string(e.Verdict)
}
