// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"maps"
	"slices"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/gates"
)

// RunState is how far a run is.
type RunState string

// The states of a run, in their order. Completed and RolledBack are its ends.
const (
	Created    RunState = "Created"
	Deploying  RunState = "Deploying"
	Running    RunState = "Running"
	Promoting  RunState = "Promoting"
	Completed  RunState = "Completed"
	RolledBack RunState = "RolledBack"
)

// Ended tells whether a run goes no further. An unknown state has ended, so that it moves nothing.
func (s RunState) Ended() bool {
	switch s {
	case Created, Deploying, Running, Promoting:
		return false
	case Completed, RolledBack:
		return true
	}
	return true
}

// StageState is how far a stage is.
type StageState string

// The states of a stage.
const (
	StagePending   StageState = "Pending"
	StageRunning   StageState = "Running"
	StageSucceeded StageState = "Succeeded"
	StageFailed    StageState = "Failed"
	StageSkipped   StageState = "Skipped"
)

// EndReason says why a run ended.
type EndReason string

// The reasons.
const (
	EndPromoted          EndReason = "Promoted"
	EndFailed            EndReason = "StageFailed"
	EndUndecided         EndReason = "Undecided"
	EndSuperseded        EndReason = "Superseded"
	EndRequested         EndReason = "RollbackRequested"
	EndActivePromoted    EndReason = "ActivePromoted"
	EndDeploymentTimeout EndReason = "DeploymentTimeout"
	EndApprovalTimeout   EndReason = "ApprovalTimeout"
	EndDeleted           EndReason = "ReleaseDeleted"
	EndGateFailed        EndReason = "GateFailed"
)

// Revision of a variation.
type Revision struct {
	// Hash is the canonical hash of the pod template; empty when it is not known.
	Hash string
	// Label is the revision label of its pods; empty while pods of several revisions are there.
	Label string
	// Image is for people.
	Image string
}

// Is tells whether two revisions are one: a new version of Kubernetes can change the hash by its defaults,
// and a controller can give the same template another label.
func (r Revision) Is(other Revision) bool {
	return r.Hash == other.Hash || r.Label != "" && r.Label == other.Label
}

// StageStatus is what has become of a stage.
type StageStatus struct {
	Stage
	State StageState
	// ShiftTime is when its weight was decided, StartTime when its clock began: proxies had acknowledged
	// the weight. EndTime is when it passed, failed, or was skipped.
	ShiftTime, StartTime, EndTime time.Time
	// Stopped is for how long its clock stood before, and StoppedSince since when it stands now.
	Stopped      time.Duration
	StoppedSince time.Time
	// PassTime is when health passed.
	PassTime time.Time
	// ApprovedBy is the person who approved it.
	ApprovedBy string
	// ShortSince is since when the canary has fewer ready endpoints than its weight needs.
	ShortSince time.Time
	// Required are the ready endpoints that the weight needed when it was decided.
	Required int
	// Restarts counts measurements that began anew, each of which spends half of the error that is left.
	Restarts int
	// Message says why it passed or failed.
	Message string
}

// Run is one revision on its way.
type Run struct {
	Number int64
	State  RunState
	// Active is the variation that the requests come from, Canary the one that they go to.
	Active, Canary string
	From, To       Revision
	// Approval is what the release said when the run began.
	Approval Approval
	// ActiveImages are those of From while the API server refuses other revisions; nil if they are not known.
	ActiveImages []string
	StrategyName string
	Strategy     Strategy
	Stages       []StageStatus
	// Check is the cohort check before the first stage; nil if there is none.
	Check *CohortCheck
	// Promotion says what becomes of the canary, and Change identifies its change. Both are empty unless the
	// canary is a clone.
	Promotion Promotion
	Change    string
	// QueuedTime is since when the spec asks for another change, which the next run takes up; zero if it does not.
	QueuedTime time.Time
	// Baseline is the revision of the active variation that was seen with that change, and ReturnTime when it
	// was decided that the requests return to it.
	Baseline   Revision
	ReturnTime time.Time
	// Control is nil unless the canary is compared with a clone of the active variation.
	Control *FreshControl
	// Division is nil unless the run divides the replicas of groups.
	Division *Division
	// Capacity is the largest number of ready endpoints of the active variation since the run began.
	Capacity           int
	StartTime, EndTime time.Time
	EndReason          EndReason
	EndMessage         string
}

// Wait says what a run waits for.
type Wait struct {
	Reason WaitReason
	Since  time.Time
	// Deadline is when something follows that Message names; zero if only what is waited for ends it.
	Deadline time.Time
	Message  string
}

// Rejected is a revision that no run takes up again until a person asks for it.
type Rejected struct {
	Revision
	Variation string
	Run       int64
	Reason    EndReason
	Time      time.Time
}

// Entry is one line of the history.
type Entry struct {
	Number  int64
	Time    time.Time
	Run     int64
	Event   EventName
	Weight  traffic.Weight
	Message string
}

// The bounds of what is kept.
const (
	MaxHistory  = 64
	MaxRejected = 16
)

// State is all that is kept about the runs of a release.
type State struct {
	// Active is the variation that gets the requests when no run is on.
	Active string
	// Run is the last one; nil before the first.
	Run *Run
	// Gates are the last answers of the gates of the run.
	Gates []gates.State
	// Works are what the executor was asked for in the run.
	Works []Work
	// Hold is the minimum that the executor holds; nil if none.
	Hold *Hold
	// Waiting is what it waits for; nil if for nothing.
	Waiting *Wait
	// Seen has the revision of each variation that a run has taken up, or that was there at its end.
	Seen map[string]Revision
	// Handled is the last verb that was answered.
	Handled  *Handled
	Rejected []Rejected
	History  []Entry
}

// Weight is what the canary is to have.
func (s State) Weight() traffic.Weight {
	if s.Run == nil {
		return 0
	}
	switch s.Run.State {
	case Running:
		if i := s.Run.current(); i >= 0 {
			return s.Run.Stages[i].Weight
		}
		return 0
	case Promoting:
		if !s.Run.ReturnTime.IsZero() {
			return 0
		}
		return traffic.Total
	case Deploying:
		if s.IsChecking() {
			return s.Run.Stages[0].Weight
		}
		return 0
	case Created, Completed, RolledBack:
		return 0
	}
	return 0
}

// runState is empty before the first run.
func (s State) runState() RunState {
	if s.Run == nil {
		return ""
	}
	return s.Run.State
}

// IsOn tells whether a run is under way.
func (s State) IsOn() bool { return s.Run != nil && !s.Run.State.Ended() }

// current is the index of the stage that has begun last; -1 if none has.
func (r *Run) current() int {
	for i, stage := range slices.Backward(r.Stages) {
		if stage.State == StageRunning || stage.State == StageFailed {
			return i
		}
	}
	return -1
}

// Current is the number of the stage that is under way, from 1; 0 if none is.
func (s State) Current() int {
	if s.Run == nil || s.Run.State != Running {
		return 0
	}
	return s.Run.current() + 1
}

func (s State) clone() State {
	if s.Run != nil {
		run := *s.Run
		run.Stages = slices.Clone(run.Stages)
		if run.Check != nil {
			check := *run.Check
			run.Check = &check
		}
		if run.Control != nil {
			control := *run.Control
			run.Control = &control
		}
		if run.Division != nil {
			division := *run.Division
			run.Division = &division
		}
		s.Run = &run
	}
	s.Seen = maps.Clone(s.Seen)
	if s.Seen == nil {
		s.Seen = map[string]Revision{}
	}
	s.Rejected, s.History, s.Works = slices.Clone(s.Rejected), slices.Clone(s.History), slices.Clone(s.Works)
	return s
}

// rejects tells whether a revision of a variation is remembered as bad.
func (s State) rejects(variation string, revision Revision) bool {
	return slices.ContainsFunc(s.Rejected, func(r Rejected) bool { return r.Variation == variation && r.Is(revision) })
}
