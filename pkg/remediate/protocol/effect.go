// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/bluegreen"
)

// Effect is what is to be done next. Exactly one of the types below.
type Effect interface{ effect() }

// The effects. Those with a Step are about the target of that index.
type (
	// WriteStatus stores the plan's status, with the resourceVersion it was read
	// at. When that fails, everything is read and decided anew. Once it is stored,
	// some facts count no more.
	//
	// Passing says that the status may be stored together with the next one, as long as each
	// effect in between is one that [Precedes] a status.
	WriteStatus struct {
		Status  v1alpha1.RemediationPlanStatus
		Forget  Forget
		Passing bool
	}
	// Look reads what may hold a plan back: policy, guards, schedule, health, halts. Idle says
	// that the plan only waits, so that an answer from caches does, see [Brakes].
	Look struct{ Idle bool }
	// AskStore asks whether a record could be written now.
	AskStore struct{}
	// Authorize asks whether the requester may write the target.
	Authorize struct{ Step int32 }
	// ClaimTarget takes the target for this plan. A claim of a plan that has ended,
	// or is gone, holds nothing: an executor that slept may have left it.
	ClaimTarget struct{ Step int32 }
	// AskMirror asks the copy of the ledger, which may refuse.
	AskMirror struct{ Step int32 }
	// Reserve asks both ledgers for a place, the cluster's first.
	Reserve struct{ Step int32 }
	// ReadTarget reads it live.
	ReadTarget struct{ Step int32 }
	// LoadRevision reads the body that the target is to have.
	LoadRevision struct{ Step int32 }
	// Try is a dry run of the write, bound to what was read.
	Try struct{ Step int32 }
	// WriteTarget is the write, bound to the stored intent.
	WriteTarget struct{ Step int32 }
	// FenceTarget moves the target's resourceVersion.
	FenceTarget struct{ Step int32 }
	// ReturnFields gives the fields that the write took over back to their field managers.
	ReturnFields struct{ Step int32 }
	// CarryStandby does something about the standby of a step, or reads it.
	CarryStandby struct {
		Step int32
		Act  bluegreen.Act
	}
	// Settle tells both ledgers how the step ended, the cluster's last.
	Settle struct {
		Step    int32
		Outcome v1alpha1.LedgerOutcome
	}
	// Release gives its place in both ledgers back: it wrote nothing.
	Release struct{ Step int32 }
	// Record writes the signed record of the step.
	Record struct{ Step int32 }
	// ReleaseTarget lets go of the target.
	ReleaseTarget struct{ Step int32 }
	// Announce tells people, logs and metrics that the plan has ended, and how.
	Announce struct{}
	// ReadAssessment reads what the assessor says about the effect of a step of an ended plan.
	ReadAssessment struct{ Step int32 }
	// RecordAssessment writes the signed record of the assessment that was read.
	RecordAssessment struct{ Step int32 }
	// ApplyVerdict tells the ledger of the Environment the verdict on a step, for its breaker.
	ApplyVerdict struct {
		Step    int32
		Verdict v1alpha1.EffectVerdict
	}
	// AnnounceEffect tells people, logs and metrics the verdict on a step.
	AnnounceEffect struct {
		Step   int32
		Effect v1alpha1.StepEffect
	}
	// Wait does nothing until a time, or until something changes.
	Wait struct {
		Until time.Time
		Why   string
	}
	// Done says that nothing is left to do.
	Done struct{}
)

// Forget names facts to be learned anew. What the store of the records said is one of the
// brakes here.
type Forget struct {
	Brakes bool
	Steps  []int32
}

func (WriteStatus) effect()      {}
func (Look) effect()             {}
func (AskStore) effect()         {}
func (Authorize) effect()        {}
func (ClaimTarget) effect()      {}
func (AskMirror) effect()        {}
func (Reserve) effect()          {}
func (ReadTarget) effect()       {}
func (LoadRevision) effect()     {}
func (Try) effect()              {}
func (WriteTarget) effect()      {}
func (FenceTarget) effect()      {}
func (ReturnFields) effect()     {}
func (CarryStandby) effect()     {}
func (Settle) effect()           {}
func (Release) effect()          {}
func (Record) effect()           {}
func (ReleaseTarget) effect()    {}
func (Announce) effect()         {}
func (ReadAssessment) effect()   {}
func (RecordAssessment) effect() {}
func (ApplyVerdict) effect()     {}
func (AnnounceEffect) effect()   {}
func (Wait) effect()             {}
func (Done) effect()             {}

// Precedes says that an effect may be carried out before a passing status is stored: it changes
// nothing that another executor would have to know of.
func Precedes(e Effect) bool {
	switch e.(type) {
	case Look, AskStore, Authorize, ReadTarget, LoadRevision, Try:
		return true
	}
	return false
}
