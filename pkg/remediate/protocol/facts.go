// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"maps"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/bluegreen"
)

// Answer to a question that may find no answer.
type Answer int

// The answers. The zero value is that nobody asked.
const (
	NotAsked Answer = iota
	Yes
	No
	// Unknown: it could not be asked, or the answer was lost.
	Unknown
)

// Brakes are what may hold a plan back as a whole.
type Brakes struct {
	// Known says that all of it could be read; what follows counts only then.
	Known bool
	// Cached says that caches answered, and show nothing that holds the plan back. The answer
	// lets a plan go on to wait. Before a step begins or writes, the executor looks again.
	Cached bool
	// Halted says why everything stops at once; empty when nothing is halted.
	Halted string
	// HaltedBy is who did it.
	HaltedBy string
	// Superseded says why no step of the plan may begin any more; empty when steps may.
	Superseded string
	// Closed says why no further step may begin now; empty when it may.
	Closed string
	// Until is when that opens by time alone.
	Until time.Time
	// ClosesAt is when the schedule closes that is open now; zero when it never does.
	ClosesAt time.Time
	// OutsideSchedule says that it is the schedule alone that is closed, which a
	// person may pass.
	OutsideSchedule bool
	// UrgentPasses says that the policy lets an urgent target pass the schedule, and budgets.
	UrgentPasses bool
	// MaximumDriftAge is how old a drift may be that the plan still puts back; zero without
	// a bound. A person who executes the plan passes it.
	MaximumDriftAge time.Duration
	// NoDisruptions says that a PodDisruptionBudget of the namespace allows no disruption now,
	// or that the namespace has more budgets than a look reads.
	NoDisruptions bool
	// MaximumTargets is how many targets of the plan may be written; zero without a bound.
	MaximumTargets int
}

// Store is what the store of the records says about the next record.
type Store struct {
	// Ready says that a record could be written.
	Ready bool
	// Why not, for people, and Until when the store is asked again.
	Why   string
	Until time.Time
}

// Target is what was read of a target.
type Target struct {
	// Read says whether it could be read: Yes, Unknown, or No when it is not there.
	Read                 Answer
	UID, ResourceVersion string
	Generation           int64
	// Hash is its guarded hash, and DDEM002Hash that of DD-EM-002; empty if the policy asks for none.
	Hash, DDEM002Hash string
	// Unassessed says that Hash is not the hash that the assessor saw last. Until the assessor
	// has looked, a change of an expected writer has no mask, and looks like one of a stranger.
	Unassessed bool
	// RestartedFor is the token of the plan's step that restarted it last.
	RestartedFor string
	// Quarantine is what the Baseline says of a quarantine. For an action of Quarantine,
	// ResourceVersion is that of the Baseline, which alone is written.
	Quarantine Quarantine
	// Ending says that it, or its namespace, is being deleted.
	Ending bool
	// Contended says that writers fight over it.
	Contended bool
	// Unwanted says why what the plan leads to is no longer what was authorized, or
	// is not to be written at all; empty when it is.
	Unwanted string
	// Mild says why the policy does not put the drift back by itself any more, by the severity
	// that the drift has now; empty when the policy does.
	Mild string
	// Protected says why the write would remove ready pods that a PodDisruptionBudget protects;
	// empty when it would not.
	Protected string
	// KeepsFields says that the executor owns fields of it beside its marks.
	KeepsFields bool
	// Ready says whether it does what its spec says, and NotReady why it does not, or why
	// that is not known.
	Ready    Answer
	NotReady string
}

// Quarantine is what was read of the quarantine of a target.
type Quarantine struct {
	// Token names the quarantine in force; empty without one.
	Token string
	// Ended names the last quarantine that ended, and Why says why it did.
	Ended, Why string
	// Held says that the plan holds the Baseline: no other plan writes a quarantine.
	Held bool
}

// WriteResult is what came of a write, or of its dry run.
type WriteResult string

// The results. Only Stored and the refusals are known for certain.
const (
	// Stored: the API server answered that it is.
	Stored WriteResult = "Stored"
	// Conflicted: somebody else had written; this was not stored.
	Conflicted WriteResult = "Conflicted"
	// Gone: the target is not there, or is another one; this was not stored.
	Gone WriteResult = "Gone"
	// Forbidden: the executor may not; this was not stored.
	Forbidden WriteResult = "Forbidden"
	// Refused: the API server will never store this.
	Refused WriteResult = "Refused"
	// Lost: nobody knows whether it is stored.
	Lost WriteResult = "Lost"
)

// Write is what came of one, or of its dry run.
type Write struct {
	Result WriteResult
	// ResourceVersion and hashes of what is stored, or would be, as those of [Target].
	ResourceVersion, Hash, DDEM002Hash string
	// UID and Generation of the target after it; zero where they are not known.
	UID        string
	Generation int64
	Message    string
	// Lacks says what an object that is made again lacks, for people.
	Lacks string
	// Artifacts names the contents that a dry run stored beside the records.
	Artifacts v1alpha1.StepArtifacts
}

// Place is what the ledgers, or their copy, say about a step.
type Place struct {
	// Granted: Yes, No, or Unknown.
	Granted Answer
	// Ended says that the ledger knows the step as ended.
	Ended bool
	// Refusal says for people what refuses, and Until when it no longer does.
	Refusal string
	Until   time.Time
}

// StepFacts are what was learned about one step since the plan was read.
type StepFacts struct {
	Authorized Answer
	// Denied says who may not, when Authorized is No.
	Denied string
	// Claimed: Yes, Unknown, or No when another plan holds the target.
	Claimed   Answer
	ClaimedBy string
	Mirror    *Place
	Place     *Place
	Target    *Target
	// Revision: Yes when the body is what the plan says, No when it is damaged.
	Revision Answer
	Tried    *Write
	Written  *Write
	Fenced   *Write
	// Standby is what was read of its standby, StandbyActed what came of the last act about it, and
	// StandbyEvidence names the record of the Deployment.
	Standby         *bluegreen.Seen
	StandbyActed    *bluegreen.Acted
	StandbyEvidence *v1alpha1.StepEvidence
	// Returned is what came of the return of its fields.
	Returned *Write
	// Settled, Recorded and Let: Yes, or Unknown to ask again.
	Settled  Answer
	Recorded Answer
	Evidence *v1alpha1.StepEvidence
	Let      Answer
	// Assessment of the step, once it was asked for.
	Assessment *Assessment
	// AssessmentRecorded: Yes, or Unknown to ask again. AssessmentEvidence names the record.
	AssessmentRecorded Answer
	AssessmentEvidence *v1alpha1.StepEvidence
	// Judged: Yes when the ledger knows the verdict, or Unknown to ask again. Turned is what the
	// verdict turned the breaker to; empty if it turned none. Told says that people know it.
	Judged Answer
	Turned v1alpha1.BreakerState
	Told   bool
}

// Assessment is what the assessor says about the effect of a step.
type Assessment struct {
	// Read: Yes or Unknown.
	Read Answer
	// Effect is nil while it is measured.
	Effect *v1alpha1.StepEffect
}

// Facts are what was learned since the plan was read; nothing of it is stored,
// and a wait ends them: who comes back reads everything anew.
type Facts struct {
	Brakes *Brakes
	Store  *Store
	Steps  map[int32]StepFacts
	// Announced says that the end of the plan is announced.
	Announced bool
}

// Of returns what was learned about a step.
func (f Facts) Of(step int32) StepFacts { return f.Steps[step] }

// Learn returns the facts with more about one step. What a write may have
// changed is forgotten by whoever tells its result: see [StepFacts.Wrote].
func (f Facts) Learn(step int32, more func(*StepFacts)) Facts {
	next := f
	next.Steps = make(map[int32]StepFacts, len(f.Steps)+1)
	maps.Copy(next.Steps, f.Steps)
	about := next.Steps[step]
	more(&about)
	next.Steps[step] = about
	return next
}

// Without returns the facts without those that a stored status outdates. A right to write
// is not one of them: the time between the read of a target and its write stays short.
func (f Facts) Without(what Forget) Facts {
	next := f
	next.Steps = maps.Clone(f.Steps)
	if what.Brakes {
		next.Brakes, next.Store = nil, nil
		for step, of := range next.Steps {
			of.Target = nil // it was read beside those brakes
			next.Steps[step] = of
		}
	}
	for _, step := range what.Steps {
		if of, ok := next.Steps[step]; ok {
			next.Steps[step] = StepFacts{Authorized: of.Authorized, Denied: of.Denied}
		}
	}
	return next
}

// Wrote learns what came of the write; what was read of the target is outdated.
func (f *StepFacts) Wrote(w Write) { f.Written, f.Target, f.Tried = &w, nil, nil }

// SawStandby learns what was read of the standby.
func (f *StepFacts) SawStandby(seen bluegreen.Seen) { f.Standby, f.StandbyActed = &seen, nil }

// ActedOnStandby learns what came of an act about the standby; what was read of it is outdated.
func (f *StepFacts) ActedOnStandby(acted bluegreen.Acted) { f.StandbyActed, f.Standby = &acted, nil }

// FencedBy learns what came of the fence; what was read of the target is outdated.
func (f *StepFacts) FencedBy(w Write) { f.Fenced, f.Target, f.Tried = &w, nil, nil }

// ReturnedBy learns what came of the return of the fields, which moves the version.
func (f *StepFacts) ReturnedBy(w Write) { f.Returned, f.Target, f.Tried = &w, nil, nil }

// State is everything a decision depends on. Next changes nothing of it.
type State struct {
	// Plan as it is stored.
	Plan *v1alpha1.RemediationPlan
	// Holder is the executor that decides.
	Holder string
	// Health has the settings of the plan's policy for health; nil when the policy could not be
	// read, and then no step that has written ends.
	Health *Health
	// AssessesEffects says that an assessor measures the effect of each step.
	AssessesEffects bool
	Facts           Facts
	// Now is the API server's time.
	Now time.Time
	// TimeUnknown says that Now is the time of the process instead, because no answer of
	// the API server has told its time lately.
	TimeUnknown bool
}

// Health says when a target that was written counts as healthy.
type Health struct {
	Stabilization, Timeout time.Duration
}
