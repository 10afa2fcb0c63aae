// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"
	"slices"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// GateState says whether a gate lets a run go on.
type GateState string

// The states. A gate whose facts are not known is Unknown.
const (
	GateOK      GateState = "OK"
	GateHolds   GateState = "Holds"
	GateUnknown GateState = "Unknown"
)

// Gate is one thing that a run needs to go on.
type Gate struct {
	// Name of the gate in one word.
	Name  string    `json:"name"`
	State GateState `json:"state"`
	// Value is what is known, for people.
	Value string `json:"value"`
	// Next says what opens the gate, or what follows; empty if nothing is to be said.
	Next string `json:"next,omitempty"`
}

// Explanation tells why a run goes on or does not, or why the run has ended.
type Explanation struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Run       *Run   `json:"run,omitempty"`
	// Gates in the order in which the discovery server looks at them.
	Gates []Gate `json:"gates,omitempty"`
	// End is why the run has ended; nil while the run is under way.
	End *End `json:"end,omitempty"`
	// Wait is what the run waits for; nil while the run waits for nothing.
	Wait *Wait `json:"wait,omitempty"`
	// Next says what follows the stage under way; empty when no stage is under way.
	Next string `json:"next,omitempty"`
}

// End tells why a run has ended.
type End struct {
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
	// Judge is the last verdict about the run, and Health are its numbers; empty without a measurement.
	Judge  *Judge                     `json:"judge,omitempty"`
	Health []v1alpha1.VariationHealth `json:"health,omitempty"`
	// Rejected is the revision that no run takes up again until a person asks for it.
	Rejected *v1alpha1.RejectedRevision `json:"rejected,omitempty"`
}

// Question is what an explanation rests on.
type Question struct {
	Release *v1alpha1.ABRelease
	// Strategy is the RolloutStrategy that the release names; nil if the strategy does not exist.
	Strategy *v1alpha1.RolloutStrategySpec
	// StrategyUnread says why the RolloutStrategy could not be read; empty if it was read or does not exist.
	StrategyUnread string
	// Now is the time of the API server.
	Now time.Time
}

// Explain tells why a run goes on or does not. Each gate rests on the status alone, but for the strategy.
func Explain(q *Question) Explanation {
	r := q.Release
	e := Explanation{Namespace: r.Namespace, Name: r.Name}
	in := r.Status.Rollout
	if r.Spec.Rollout == nil || in == nil {
		return e
	}
	e.Wait = waitOf(in.Waiting, q.Now)
	g := gates{Question: q, in: in, run: in.Run}
	e.Gates = []Gate{g.spec(), g.strategy(), g.revision()}
	if in.Run == nil {
		return e
	}
	e.Run, e.Next = runOf(in.Run, q.Now), nextOf(r)
	if e.Run.IsOver() {
		e.End = endOf(in)
		return e
	}
	e.Gates = append(e.Gates, g.start())
	e.Gates = append(e.Gates, g.workloads()...)
	if in.Run.Division != nil {
		e.Gates = append(e.Gates, g.group())
	}
	if hasRequests(in.Run) {
		e.Gates = append(append(e.Gates, g.pods()), g.control()...)
		e.Gates = append(e.Gates, g.proxies(), g.observed())
	}
	if i := int(in.Stage) - 1; in.Run.State == "Running" && i >= 0 && i < len(in.Run.Stages) {
		g.stage = &in.Run.Stages[i]
		e.Gates = append(e.Gates, g.measures()...)
		e.Gates = append(e.Gates, g.approval(), g.autoAdvance())
	}
	e.Gates = append(e.Gates, g.asked()...)
	e.Gates = append(e.Gates, g.pause())
	return e
}

// measures are the gates of what a stage measures.
func (g *gates) measures() []Gate {
	if !hasRequests(g.run) {
		return []Gate{g.minimumTime(), g.groupVerdict()}
	}
	all := []Gate{g.counts(), g.minimumTime(), g.verdict()}
	if g.run.Division != nil {
		all = append(all, g.groupVerdict())
	}
	return append(all, g.compared()...)
}

func endOf(in *v1alpha1.RolloutStatus) *End {
	end := &End{Reason: in.Run.Reason, Message: in.Run.Message}
	if a := in.Analysis; a != nil && a.Run == in.Run.Number {
		end.Health = a.Variations
		if a.Verdict != "" {
			end.Judge = judgeOf(a)
		}
	}
	for i := range in.Rejected {
		if in.Rejected[i].Run == in.Run.Number {
			end.Rejected = &in.Rejected[i]
		}
	}
	return end
}

// gates looks at each gate of a release.
type gates struct {
	*Question
	in  *v1alpha1.RolloutStatus
	run *v1alpha1.RolloutRun
	// stage is the stage under way; nil without one.
	stage *v1alpha1.RolloutStageStatus
}

// waits tells whether the run waits for one of the reasons.
func (g *gates) waits(reasons ...rollout.WaitReason) bool {
	return g.in.Waiting != nil && slices.Contains(reasons, rollout.WaitReason(g.in.Waiting.Reason))
}

// held returns a gate that holds with the message of the wait.
func (g *gates) held(name, next string) Gate {
	return Gate{name, GateHolds, g.in.Waiting.Message, next}
}

func (g *gates) spec() Gate {
	switch r := g.Release; {
	case g.waits(rollout.WaitInvalid):
		return g.held("Spec", "correct the spec; until then no run begins")
	case r.Status.ObservedGeneration < r.Generation:
		return Gate{"Spec", GateUnknown, fmt.Sprintf("the status is about generation %d, and the spec has %d", r.Status.ObservedGeneration, r.Generation), "the discovery server reads the spec"}
	}
	return Gate{"Spec", GateOK, "the spec can be carried out", ""}
}

func (g *gates) strategy() Gate {
	name := g.Release.Spec.Rollout.StrategyName
	if name == "" {
		name = "of the release"
	}
	if g.run != nil && !hasEnded(g.run.State) {
		value := fmt.Sprintf("run %d keeps the strategy that it began with: %d stages", g.run.Number, len(g.run.Stages))
		return Gate{"Strategy", GateOK, value, ""}
	}
	if g.StrategyUnread != "" {
		return Gate{"Strategy", GateUnknown, name + ": " + g.StrategyUnread, ""}
	}
	plan, err := rollout.PlanOf(g.Release, g.Strategy, anywhere(g.Release))
	if err != nil {
		return Gate{"Strategy", GateHolds, err.Error(), "no run begins until the strategy is there and valid"}
	}
	return Gate{"Strategy", GateOK, fmt.Sprintf("%s: %d stages", name, len(plan.Strategy.Stages)), ""}
}

func (g *gates) revision() Gate {
	switch {
	case g.waits(rollout.WaitRevision):
		return g.held("Revision", "")
	case g.run == nil:
		return Gate{"Revision", GateUnknown, "no run has taken up a revision", "a new revision of the inactive variation begins a run"}
	case hasEnded(g.run.State):
		return Gate{"Revision", GateOK, "no revision waits", "a new revision of the inactive variation begins a run"}
	}
	run, next := runOf(g.run, g.Now), ""
	if run.QueuedTime != nil {
		next = "the next run is queued, with the change that the spec has: it begins when this run has ended"
	}
	return Gate{"Revision", GateOK, fmt.Sprintf("%s of %s is not rejected", run.To, g.run.To.Variation), next}
}

func (g *gates) start() Gate {
	if g.waits(rollout.WaitStart) {
		return g.held("Start", "ask for Start")
	}
	return Gate{"Start", GateOK, "run is " + string(g.run.State), ""}
}

func (g *gates) pause() Gate {
	if g.Release.Spec.Rollout.Pause == v1alpha1.Enabled {
		return Gate{"Pause", GateHolds, "spec.rollout.pause is Enabled", "resume the release; a failure still rolls back"}
	}
	return Gate{"Pause", GateOK, "the release is not paused", ""}
}
