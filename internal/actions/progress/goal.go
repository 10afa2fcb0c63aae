// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// GoalKind is the kind of a state that a person awaits.
type GoalKind string

// The kinds.
const (
	// GoalNone awaits no state.
	GoalNone       GoalKind = ""
	GoalCompleted  GoalKind = "Completed"
	GoalRolledBack GoalKind = "RolledBack"
	// GoalEnded awaits either end of a run.
	GoalEnded GoalKind = "Ended"
	// GoalStage awaits that a run has reached a stage.
	GoalStage GoalKind = "Stage"
	// GoalWaiting awaits that a run waits for a reason.
	GoalWaiting GoalKind = "Waiting"
)

// Goal is a state that a person awaits.
type Goal struct {
	Kind GoalKind
	// Stage is the number of the stage, of GoalStage: from 1 to 16.
	Stage int32
	// Reason is a reason of status.rollout.waiting, of GoalWaiting.
	Reason string
	// Run is the number of the run that is meant; 0 is none yet, see [Goal.For].
	Run int64
}

// Goals returns the texts that [ParseGoal] reads, without the stages.
func Goals() []string {
	texts := []string{string(GoalCompleted), string(GoalRolledBack), string(GoalEnded)}
	for _, reason := range rollout.WaitReasons() {
		texts = append(texts, string(GoalWaiting)+"="+string(reason))
	}
	return texts
}

// ParseGoal reads a goal: Completed, RolledBack, Ended, Stage=N or Waiting=REASON. The empty text is
// [GoalNone]. The error names the text.
func ParseGoal(text string) (Goal, error) {
	kind, value, has := strings.Cut(text, "=")
	switch k := GoalKind(kind); {
	case !has && slices.Contains([]GoalKind{GoalNone, GoalCompleted, GoalRolledBack, GoalEnded}, k):
		return Goal{Kind: k}, nil
	case has && k == GoalStage:
		if n, err := strconv.ParseInt(value, 10, 32); err == nil && n >= 1 && n <= rollout.MaxStages {
			return Goal{Kind: k, Stage: int32(n)}, nil
		}
		return Goal{}, fmt.Errorf("reading the goal %q: a stage has a number from 1 to %d", text, rollout.MaxStages)
	case has && k == GoalWaiting:
		if slices.Contains(rollout.WaitReasons(), rollout.WaitReason(value)) {
			return Goal{Kind: k, Reason: value}, nil
		}
		return Goal{}, fmt.Errorf("reading the goal %q: no run waits for that reason", text)
	}
	return Goal{}, fmt.Errorf("reading the goal %q: want Completed, RolledBack, Ended, Stage=N or Waiting=REASON", text)
}

// Outcome says how a release stands to a goal.
type Outcome int

// The outcomes.
const (
	// Awaited: the goal can still be reached.
	Awaited Outcome = iota
	// Reached: the release is where the goal wants it.
	Reached
	// Missed: the run has ended otherwise, or has no such stage.
	Missed
)

// For returns the goal about one run: the run that it names, or else the run that is on, or else the next
// one. While a change waits for the end of a run, the goal is about the run that takes the change up. So the end of the run before a deployment is not taken for the end of the run after it.
func (g Goal) For(in *v1alpha1.RolloutStatus) Goal {
	switch {
	case g.Run > 0:
	case in == nil || in.Run == nil:
		g.Run = 1
	case hasEnded(in.Run.State), in.Run.Clone != nil && in.Run.Clone.QueuedTime != nil:
		g.Run = in.Run.Number + 1
	default:
		g.Run = in.Run.Number
	}
	return g
}

// Judge says how a release stands to the goal. A run that another run has followed is over.
func (g Goal) Judge(in *v1alpha1.RolloutStatus) Outcome {
	switch {
	case g.Kind == GoalNone || in == nil || in.Run == nil || in.Run.Number < g.Run:
		return Awaited
	case g.Run > 0 && in.Run.Number > g.Run:
		return Missed
	case g.isReached(in):
		return Reached
	case hasEnded(in.Run.State), g.Kind == GoalStage && int(g.Stage) > len(in.Run.Stages):
		return Missed
	}
	return Awaited
}

func (g Goal) isReached(in *v1alpha1.RolloutStatus) bool {
	run := in.Run
	switch g.Kind {
	case GoalCompleted:
		return run.State == "Completed"
	case GoalRolledBack:
		return run.State == "RolledBack"
	case GoalEnded:
		return hasEnded(run.State)
	case GoalStage:
		isPast := run.State == "Completed" || run.State == "Promoting" || run.State == "Running" && in.Stage >= g.Stage
		return isPast && int(g.Stage) <= len(run.Stages)
	case GoalWaiting:
		return in.Waiting != nil && in.Waiting.Reason == g.Reason
	case GoalNone:
	}
	return false
}
