// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/gates"
	"github.com/plumbline-dev/plumbline/pkg/traffic/judge"
)

// StartMode says what a new run waits for.
type StartMode string

// The modes.
const (
	StartAutomatic StartMode = "Automatic"
	StartManual    StartMode = "Manual"
)

// UndecidedPolicy says what follows when the data of a stage decides nothing for too long.
type UndecidedPolicy string

// The policies.
const (
	UndecidedHold     UndecidedPolicy = "Hold"
	UndecidedPromote  UndecidedPolicy = "Promote"
	UndecidedRollback UndecidedPolicy = "Rollback"
)

// Deadlines bound waits.
type Deadlines struct {
	// Deployment is for the pods of the canary, and for capacity.
	Deployment time.Duration
	// Acknowledgment is for proxies.
	Acknowledgment time.Duration
	// Approval is for a person.
	Approval time.Duration
	// Extension is how long a stage is measured beyond its duration while the data decides nothing.
	Extension time.Duration
}

// Plan is what the spec asks for now.
type Plan struct {
	StrategyName string
	Strategy     Strategy
	Start        StartMode
	OnUndecided  UndecidedPolicy
	Promotion    Promotion
	Fallback     Fallback
	Supersede    Supersede
	// HeadroomPercent is what a clone has beyond its part of the endpoints.
	HeadroomPercent int
	Deadlines       Deadlines
	// Control says with what the canary is compared.
	Control ControlMode
	// CohortCheck is how long the visitors of the first stage are compared with the others; 0 for not.
	CohortCheck time.Duration
	// Warmup is how long new pods may be slow; see [WarmupOf].
	Warmup time.Duration
}

// Arm is what is known of one variation.
type Arm struct {
	Revision Revision
	// Images of its containers, as [ImageOf] writes them; nil if they are not known.
	Images []string
	// Labels of its pods, by the pod template.
	Labels map[string]string
	// Ready endpoints take requests. Targets are all of them, and Updated those of the revision.
	Ready, Targets, Updated int
	// Replicas are how many the workload asks for; 0 if that is not known.
	Replicas int
	// Restarted are the pods of a group with a container that has restarted since the weight of the stage
	// under way was decided.
	Restarted int
}

// Standing is what has become of the split that is in force.
type Standing struct {
	// Active is the variation that gets the rest of the requests, and Weight the weight of the other one.
	Active string
	Weight traffic.Weight
	// Checking says that the active variation serves the requests of the other one.
	Checking bool
	// Comparison is the place of the fresh control.
	Comparison Comparison
	// Acknowledged says that all proxies that have to acknowledge it have done so, or that the release
	// goes on without the others.
	Acknowledged bool
	// Contradiction says what was seen that cannot be; empty if nothing.
	Contradiction string
}

// Health is a verdict of the judge, and where it belongs. The zero value says that there is no data.
type Health struct {
	Run   int64
	Stage int
	// ShiftTime is that of the stage that was judged: a stage that is tried again is not judged by what was seen
	// before.
	ShiftTime time.Time
	Verdict   judge.Verdict
	// ClockStopped says that too little is heard for the time to count.
	ClockStopped bool
	Message      string
}

// Facts are what is known when it is decided.
type Facts struct {
	// Stable is the variation that is active before the first run, and Variations are both.
	Stable     string
	Variations [2]string
	// Plan is nil if the spec cannot be carried out; Problem says why.
	Plan    *Plan
	Problem string
	// Control is the last request of a person; nil if there is none.
	Control *Control
	Paused  bool
	// Approval is what the release says now.
	Approval Approval
	Before   State
	// Arms by variation, with the fresh control; one that is missing is not known.
	Arms     map[string]Arm
	Standing Standing
	Health   Health
	// Cohort is what the cohort check under way shows.
	Cohort Cohort
	// Ordered says that replicas carry out the prepared rollback of the stage under way: a leader gave the
	// order after a failure, and could not store its decision.
	Ordered bool
	// Clone is nil unless the executor makes a variation from the other one. The Revision of its Arm is the
	// one that it is to have, and no pod of another revision is ready or Updated.
	Clone *Clone
	// Kept is the change that the clone there is was made from; nil if it is not known. Clone and its Arm are
	// those of the spec.
	Kept *Kept
	// Groups is nil unless runs divide the replicas of two groups.
	Groups *Groups
	// Works are the answers of the executor.
	Works []WorkAnswer
	// Deletion is nil unless the release is being deleted.
	Deletion *Deletion
	// Webhooks are the gates of the spec; the queries are those that the run began with.
	Webhooks []gates.Webhook
	// Routers is the noun of the routers in messages; empty means proxies.
	Routers string
	// Answers are the last answers of gates.
	Answers []gates.Answer
	Now     time.Time
}

// Decision is what follows from them.
type Decision struct {
	After State
	// Weight of the canary, which the variation Canary is.
	Weight traffic.Weight
	Canary string
	// Checking says that the active variation is to serve the requests of the canary.
	Checking bool
	// Comparison is the place of the fresh control.
	Comparison Comparison
	Events     []Event
	// Problem says why no run can begin; empty if one can.
	Problem string
	// Again is when time alone changes something; zero if it does not.
	Again time.Time
	// Returned says of a release that is being deleted that it can go.
	Returned bool
	// Works are those that the executor does not have yet. It may have them once After is stored.
	Works []Work
}
