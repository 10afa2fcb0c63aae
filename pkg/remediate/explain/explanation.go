// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
)

// State of a gate.
type State string

// The states.
const (
	// Open: it lets the drift through.
	Open State = "Open"
	// Closed: it does not.
	Closed State = "Closed"
	// Unknown: what it depends on could not be read.
	Unknown State = "Unknown"
)

// Needs is what it takes to open a gate that is closed.
type Needs string

// What it takes.
const (
	// NeedsNothing: it is open.
	NeedsNothing Needs = ""
	// NeedsTime: it opens by itself, at Gate.Until.
	NeedsTime Needs = "Time"
	// NeedsEvent: it opens by itself when something ends or becomes better.
	NeedsEvent Needs = "Event"
	// NeedsChange: a person, or a change of policy, guard or drift.
	NeedsChange Needs = "Change"
)

// Gate is one condition, and where it stands.
type Gate struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	// Value is what it is now, and Limit what it must be; empty where the message
	// says both.
	Value string `json:"value,omitempty"`
	Limit string `json:"limit,omitempty"`
	Needs Needs  `json:"needs,omitempty"`
	// Until is when it opens by time alone; zero when that is not known.
	Until time.Time `json:"until,omitzero"`
	// Message is a sentence for people.
	Message string `json:"message,omitempty"`
	// Aside: the verdict is given without this gate, because who asks may not see
	// what it depends on.
	Aside bool `json:"aside,omitempty"`
}

// Verdict over all gates.
type Verdict string

// The verdicts.
const (
	// RepairedNow: it would be remediated now.
	RepairedNow Verdict = "RepairedNow"
	// RepairedAt: it would be remediated at a time, as far as is known today.
	RepairedAt Verdict = "RepairedAt"
	// RepairedAfter: it would be put back when something has ended.
	RepairedAfter Verdict = "RepairedAfter"
	// UnderWay: a plan has it already.
	UnderWay Verdict = "UnderWay"
	// Executable: a plan is made, and waits for a person to execute it.
	Executable Verdict = "Executable"
	// NeverUnless: it is not put back unless something is changed.
	NeverUnless Verdict = "NeverUnless"
	// NotKnown: not enough could be read to say.
	NotKnown Verdict = "NotKnown"
)

// Explanation of one drift under one policy.
type Explanation struct {
	Policy    string                  `json:"policy"`
	Namespace string                  `json:"namespace"`
	Baseline  string                  `json:"baseline"`
	Target    v1alpha1.BaselineTarget `json:"target"`
	Verdict   Verdict                 `json:"verdict"`
	// At is when, for RepairedAt.
	At time.Time `json:"at,omitzero"`
	// Because is the first reason for the verdict, for people; empty for RepairedNow.
	Because string `json:"because,omitempty"`
	// Plan that has it; empty when none does.
	Plan string `json:"plan,omitempty"`
	// Command that a person runs where nothing is put back without one; empty where that
	// is not so, or another change has to come first.
	Command  string            `json:"command,omitempty"`
	Severity v1alpha1.Severity `json:"severity"`
	Gates    []Gate            `json:"gates"`
}

// Ledger is what was read of one ledger.
type Ledger struct {
	// Name of it.
	Name string
	// Known says that it could be read; an absent one is known, and its Status nil.
	Known  bool
	Status *v1alpha1.RemediationLedgerStatus
	Halt   *v1alpha1.LedgerHalt
	// PastUnknown says that an absent one follows another: it would begin by
	// granting nothing for a day.
	PastUnknown bool
	Rules       ledger.Rules
	// CapsUnknown says that the caps in Rules.All are not known, as those of the
	// cluster are not to a user: they are options of the executor.
	CapsUnknown bool
}

// Surroundings are what a repair depends on beside the planner's input.
type Surroundings struct {
	// Cluster and Environment are the ledgers, in the order in which they are asked.
	Cluster, Environment Ledger
}

// Of explains one drift of the input.
func Of(in *planner.Input, d *planner.Drift, around Surroundings) Explanation {
	e := Explanation{
		Policy: in.Policy.Name, Namespace: d.Namespace, Baseline: d.Baseline, Target: d.Target, Severity: d.Severity,
	}
	e.Gates = append(e.Gates, mode(in), trigger(in), action(in))
	e.Gates = append(e.Gates, planned(in, d)...)
	e.Gates = append(e.Gates, operation(in, d)...)
	e.Gates = append(e.Gates, granted(in, d, around.Cluster, ofAll)...)
	e.Gates = append(e.Gates, granted(in, d, around.Environment, ofPolicyAndAll)...)
	e.Plan = planOf(in, d)
	e.judge()
	e.Command = command(in, d, &e)
	return e
}
