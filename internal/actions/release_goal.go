// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// ReleaseGoal is what a person waits for in one run of a release. The zero value is never reached.
type ReleaseGoal struct {
	// Run is the number of the run; 0 is the run that is on, or else the next one.
	Run int64
	// State of the run, "Ended" for either end; empty if one of the others is waited for.
	State string
	// Stage that has begun, from 1; 0 if one of the others is waited for.
	Stage int32
	// Waiting is the reason of a wait; empty if one of the others is waited for.
	Waiting string
}

// ReleaseEnded is the goal of either end.
const ReleaseEnded = "Ended"

// ParseReleaseGoal reads Completed, RolledBack, Ended, Stage=N and Waiting=REASON; an empty text is no goal.
func ParseReleaseGoal(text string) (ReleaseGoal, error) {
	name, value, has := strings.Cut(text, "=")
	switch {
	case text == "":
		return ReleaseGoal{}, nil
	case !has && slices.Contains([]string{string(runCompleted), string(runRolledBack), ReleaseEnded}, name):
		return ReleaseGoal{State: name}, nil
	case name == "Waiting" && value != "":
		return ReleaseGoal{Waiting: value}, nil
	case name == "Stage":
		if n, err := strconv.ParseInt(value, 10, 32); err == nil && n >= 1 && n <= 16 {
			return ReleaseGoal{Stage: int32(n)}, nil
		}
	}
	return ReleaseGoal{}, fmt.Errorf("%q: want Completed, RolledBack, Ended, Stage=N with a number from 1 to 16, or Waiting=REASON", text)
}

// For returns the goal about the run that is meant: the one that is on, or else the next one.
func (g ReleaseGoal) For(r *v1alpha1.ABRelease) ReleaseGoal {
	if g.Run > 0 {
		return g
	}
	g.Run = 1
	if in := r.Status.Rollout; in != nil && in.Run != nil {
		if g.Run = in.Run.Number; hasEnded(in.Run.State) {
			g.Run++
		}
	}
	return g
}

func hasEnded(state v1alpha1.RunState) bool { return state == runCompleted || state == runRolledBack }

// Check tells whether the goal is reached, and why it cannot be reached any more; empty if it can.
func (g ReleaseGoal) Check(r *v1alpha1.ABRelease) (reached bool, missed string) {
	in := r.Status.Rollout
	if in == nil || in.Run == nil || in.Run.Number < g.Run {
		return false, ""
	}
	run := in.Run
	if run.Number > g.Run {
		return false, fmt.Sprintf("run %d is over: run %d follows", g.Run, run.Number)
	}
	switch {
	case g.State == string(run.State), g.State == ReleaseEnded && hasEnded(run.State):
		return true, ""
	case g.Waiting != "" && in.Waiting != nil && in.Waiting.Reason == g.Waiting:
		return true, ""
	case g.Stage > 0 && g.hasBegun(run):
		return true, ""
	case hasEnded(run.State) && g != (ReleaseGoal{Run: g.Run}):
		return false, fmt.Sprintf("run %d is %s: %s", run.Number, run.State, run.Message)
	}
	return false, ""
}

// hasBegun tells whether the stage of the goal, or a later one, has begun.
func (g ReleaseGoal) hasBegun(run *v1alpha1.RolloutRun) bool {
	return slices.ContainsFunc(run.Stages, func(s v1alpha1.RolloutStageStatus) bool { return s.Number >= g.Stage && s.State != "Pending" })
}

// String is the text that ParseReleaseGoal reads.
func (g ReleaseGoal) String() string {
	switch {
	case g.Stage > 0:
		return fmt.Sprintf("Stage=%d", g.Stage)
	case g.Waiting != "":
		return "Waiting=" + g.Waiting
	}
	return g.State
}
