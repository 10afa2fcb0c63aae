// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// CheckState says how a condition of a run stands.
type CheckState string

// The states of a condition.
const (
	CheckPassed  CheckState = "Passed"
	CheckHolding CheckState = "Holding"
	CheckFailed  CheckState = "Failed"
	CheckUnknown CheckState = "Unknown"
)

// Check is one condition that a run has to meet before the run goes on.
type Check struct {
	Name    string     `json:"name"`
	State   CheckState `json:"state"`
	Message string     `json:"message"`
}

// Explanation says why a run is where it is.
type Explanation struct {
	// Headline names the release, the run, and the stage.
	Headline string `json:"headline"`
	// Checks are the conditions in the order in which they are decided; none of a run that has ended.
	Checks []Check `json:"checks,omitempty"`
	// Because says why the run ended; empty while the run is on.
	Because string `json:"because,omitempty"`
	// Next says what follows.
	Next string `json:"next,omitempty"`
	// Rejected is the revision that the run has rejected; empty if none.
	Rejected string `json:"rejected,omitempty"`
}

// Explain returns why a run is where it is. now is the time of the API server.
func Explain(r *v1alpha1.ABRelease, now time.Time) Explanation {
	s := ScreenOf(r, now)
	name := r.Namespace + "/" + r.Name
	switch {
	case !s.HasRollout:
		return Explanation{Headline: name + " has no rollout: the percentages of the spec are what proxies are told"}
	case s.Run == nil:
		e := Explanation{Headline: name + " has no run yet"}
		if c := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionProgressing); c != nil {
			e.Because = c.Message
		}
		return e
	}
	e := Explanation{Headline: fmt.Sprintf("%s: run %d is %s", name, s.Run.Number, s.Run.State)}
	if s.Run.IsOver() {
		e.Because, e.Next = s.Run.Message, "another revision begins the next run"
		for i := range r.Status.Rollout.Rejected {
			if rejected := &r.Status.Rollout.Rejected[i]; rejected.Run == s.Run.Number {
				e.Rejected = s.Run.To
			}
		}
		return e
	}
	if stage := stageUnderWay(r.Status.Rollout, &s); stage != nil {
		e.Headline += fmt.Sprintf(", stage %d of %d (%s %%)", stage.Number, len(s.Stages), stage.Percentage)
	}
	x := explainer{r: r, in: r.Status.Rollout, s: &s}
	for _, check := range []func() (Check, bool){x.spec, x.revision, x.pods, x.proxies, x.traffic, x.counts, x.minimumTime, x.judge} {
		if c, is := check(); is {
			e.Checks = append(e.Checks, c)
		}
	}
	e.Checks = append(e.Checks, x.gates()...)
	for _, check := range []func() (Check, bool){x.person, x.pause, x.otherWait} {
		if c, is := check(); is {
			e.Checks = append(e.Checks, c)
		}
	}
	e.Next = s.Next
	return e
}

func stageUnderWay(in *v1alpha1.RolloutStatus, s *Screen) *Stage {
	if in.Stage < 1 || int(in.Stage) > len(s.Stages) {
		return nil
	}
	return &s.Stages[in.Stage-1]
}

// explainer looks at one condition after the other.
type explainer struct {
	r  *v1alpha1.ABRelease
	in *v1alpha1.RolloutStatus
	s  *Screen
	// named says that the wait of the run was told as a condition.
	named bool
}

// waits tells whether the run waits for one of these reasons.
func (x *explainer) waits(reasons ...string) bool {
	is := x.s.Wait != nil && slices.Contains(reasons, x.s.Wait.Reason)
	x.named = x.named || is
	return is
}

// held returns a condition that holds the run with the message of its wait, or else another message.
func (x *explainer) held(name, otherwise string, reasons ...string) (Check, bool) {
	if x.waits(reasons...) {
		return Check{name, CheckHolding, x.s.Wait.Message}, true
	}
	return Check{name, CheckPassed, otherwise}, true
}

func (x *explainer) spec() (Check, bool) {
	if c := meta.FindStatusCondition(x.r.Status.Conditions, v1alpha1.ConditionStalled); c != nil && c.Status == metav1.ConditionTrue {
		x.waits("InvalidSpec")
		return Check{"spec", CheckFailed, c.Reason + ": " + c.Message}, true
	}
	return x.held("spec", "can be carried out", "InvalidSpec")
}

func (x *explainer) revision() (Check, bool) {
	return Check{"revision", CheckPassed, x.s.Run.From + " → " + x.s.Run.To}, true
}

func (x *explainer) pods() (Check, bool) {
	for i := range x.s.Variations {
		v := &x.s.Variations[i]
		if !v.IsCanary {
			continue
		}
		if v.Ready == nil || v.Targets == nil {
			return Check{"pods", CheckUnknown, "the pods of " + string(v.Name) + " are not counted"}, true
		}
		return x.held("pods", fmt.Sprintf("%s has %d of %d ready", v.Name, *v.Ready, *v.Targets), "Deployment", "Capacity", "FallbackShrunk")
	}
	return x.held("pods", "ready", "Deployment", "Capacity", "FallbackShrunk")
}

func (x *explainer) proxies() (Check, bool) {
	p := x.s.Proxies
	if p == nil {
		return Check{"proxies", CheckUnknown, "it is not known which proxies have the split"}, true
	}
	text := fmt.Sprintf("%d of %d have acknowledged sequence %d", p.Acknowledged, p.All, p.Sequence)
	if x.waits("Acknowledgment") || p.Acknowledged < p.All {
		return Check{"proxies", CheckHolding, text}, true
	}
	return Check{"proxies", CheckPassed, text}, true
}

func (x *explainer) traffic() (Check, bool) {
	return x.held("traffic", "no request is seen where none may be", "Contradicted")
}

func (x *explainer) counts() (Check, bool) {
	if x.in.Stage == 0 {
		return Check{}, false
	}
	return x.held("counts", "proxies tell counts", "ProxiesSilent", "NoData")
}

func (x *explainer) minimumTime() (Check, bool) {
	stage := stageUnderWay(x.in, x.s)
	if stage == nil || stage.Wanted.Duration == 0 {
		return Check{}, false
	}
	text := fmt.Sprintf("%s of %s", stage.Measured.Round(time.Second), stage.Wanted.Duration)
	if x.waits("MinimumTime") || stage.Measured.Duration < stage.Wanted.Duration {
		return Check{"time", CheckHolding, text}, true
	}
	return Check{"time", CheckPassed, text}, true
}

func (x *explainer) judge() (Check, bool) {
	if x.in.Stage == 0 {
		return Check{}, false
	}
	if x.s.Judge == nil {
		return Check{"judge", CheckUnknown, "no verdict about the stage yet"}, true
	}
	x.waits("MoreData", "Undecided", "BothBad", "StageFailed")
	text := string(x.s.Judge.Verdict)
	if x.s.Judge.Message != "" {
		text += ": " + x.s.Judge.Message
	}
	switch x.s.Judge.Verdict {
	case "Pass":
		return Check{"judge", CheckPassed, text}, true
	case "Fail":
		return Check{"judge", CheckFailed, text}, true
	case "BothBad", "Undecided", "NoData":
		return Check{"judge", CheckHolding, text}, true
	}
	return Check{"judge", CheckUnknown, text}, true
}

func (x *explainer) gates() (checks []Check) {
	held := x.waits("Gate")
	for i := range x.in.Gates {
		g := &x.in.Gates[i]
		state := CheckHolding
		switch g.Result {
		case "Pass":
			state = CheckPassed
		case "Fail":
			state = CheckFailed
		}
		text := string(g.Result)
		if g.Value != "" {
			text = g.Value + ", " + text
		}
		if g.Message != "" {
			text += ": " + g.Message
		}
		checks = append(checks, Check{"gate " + g.Name, state, text})
	}
	if held {
		checks = append(checks, Check{"gates", CheckHolding, x.s.Wait.Message})
	}
	return checks
}

func (x *explainer) person() (Check, bool) {
	stage := stageUnderWay(x.in, x.s)
	switch {
	case x.waits("Approval", "ManualAdvance", "ManualStart"):
		return Check{"person", CheckHolding, x.s.Wait.Message}, true
	case stage != nil && stage.NeedsApproval:
		return Check{"person", CheckHolding, fmt.Sprintf("stage %d needs an approval, for which a person is asked once the stage has passed", stage.Number)}, true
	case stage != nil && stage.ApprovedBy != "":
		return Check{"person", CheckPassed, "approved by " + stage.ApprovedBy}, true
	}
	return Check{}, false
}

func (x *explainer) pause() (Check, bool) {
	if x.r.Spec.Rollout.Pause == v1alpha1.Enabled {
		x.waits("Paused")
		return Check{"pause", CheckHolding, "spec.rollout.pause is Enabled: a failure alone changes something"}, true
	}
	return x.held("pause", "none", "Paused")
}

// otherWait tells a wait that no condition before has told.
func (x *explainer) otherWait() (Check, bool) {
	if x.s.Wait == nil || x.named {
		return Check{}, false
	}
	return Check{x.s.Wait.Reason, CheckHolding, x.s.Wait.Message}, true
}
