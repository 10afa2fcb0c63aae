// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Ledger grants the remediations of one Environment, or of all Environments together.
type Ledger struct {
	Object
	Scope string `json:"scope" enum:"Environment,Cluster" doc:"The ledger of an Environment has its name."`
	Halt  *Halt  `json:"halt,omitempty" doc:"A ledger that is halted grants no step."`
	// GrantsFrom is the time from which a new ledger grants steps.
	GrantsFrom *time.Time `json:"grantsFrom,omitempty" kind:"GrantStartTime"`
}

// Halt is the request of a person that remediation stops.
type Halt struct {
	RequestedBy string `json:"requestedBy"`
	Reason      string `json:"reason"`
}

// LedgerOf shows a ledger.
func LedgerOf(l *v1alpha1.RemediationLedger) Ledger {
	out := Ledger{Object: objectOf(&l.ObjectMeta)}
	show(&out, &l.Spec)
	show(&out, &l.Status)
	return out
}
