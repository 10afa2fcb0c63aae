// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Baseline has the authorized and the observed state of a guarded object.
type Baseline struct {
	Object
	Target        v1alpha1.BaselineTarget   `json:"target"`
	State         Word[v1alpha1.DriftState] `json:"state,omitempty"`
	Severity      *Severity                 `json:"severity,omitempty" kind:"-"`
	Findings      []Finding                 `json:"findings" kind:"-"`
	FindingsTotal int32                     `json:"findingsTotal"`
	FirstSeenAt   *time.Time                `json:"firstSeenAt" kind:"FirstSeenTime"`
	LastCheckAt   *time.Time                `json:"lastCheckAt" kind:"LastCheckTime"`
	NextCheckAt   *time.Time                `json:"nextCheckAt" kind:"NextCheckTime"`
	RetiredAt     *time.Time                `json:"retiredAt,omitempty" kind:"RetirementTime"`
	Authorized    *Authorized               `json:"authorized,omitempty"`
	Observed      Observed                  `json:"observed"`
	Guards        []string                  `json:"guards,omitempty"`
	PlanName      string                    `json:"planName,omitempty"`
	Contended     bool                      `json:"contended" kind:"-"`
	Quarantine    *Quarantine               `json:"quarantine,omitempty"`
	Conditions    []Condition               `json:"conditions,omitempty"`
}

// Finding is one difference from the authorized state. Values are cut and redacted.
type Finding struct {
	Path        string                      `json:"path"`
	Operation   Word[v1alpha1.Operation]    `json:"operation"`
	Type        Word[v1alpha1.DriftType]    `json:"type"`
	Class       Word[v1alpha1.FindingClass] `json:"class"`
	Before      string                      `json:"before,omitempty"`
	After       string                      `json:"after,omitempty"`
	Actor       Actor                       `json:"actor"`
	FirstSeenAt time.Time                   `json:"firstSeenAt" kind:"FirstSeenTime"`
}

// Actor is the author of a change, as far as the author is known.
type Actor struct {
	User             string                     `json:"user,omitempty"`
	Class            Word[v1alpha1.ActorClass]  `json:"class"`
	Source           Word[v1alpha1.ActorSource] `json:"source"`
	FieldManager     string                     `json:"fieldManager,omitempty"`
	BreakGlassReason string                     `json:"breakGlassReason,omitempty"`
}

// Authorized is the state that the object should have.
type Authorized struct {
	Hash         string                `json:"hash"`
	Revision     string                `json:"revision"`
	Number       int64                 `json:"number"`
	By           string                `json:"by,omitempty"`
	AuthorizedAt time.Time             `json:"authorizedAt" kind:"AuthorizationTime"`
	Origin       Word[v1alpha1.Origin] `json:"origin,omitempty"`
}

// Observed is the object as it was last read.
type Observed struct {
	UID        string `json:"uid,omitempty"`
	Hash       string `json:"hash,omitempty"`
	Generation int64  `json:"generation,omitempty"`
	Writer     string `json:"writer,omitempty"`
}

// Quarantine says that a workload gets no new requests.
type Quarantine struct {
	StartedAt time.Time `json:"startedAt" kind:"StartTime"`
	By        string    `json:"by,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	Token     string    `json:"token,omitempty" doc:"Names this quarantine among all of the object."`
}

// BaselineOf shows a Baseline.
func BaselineOf(b *v1alpha1.Baseline) Baseline {
	out := Baseline{Object: objectOf(&b.ObjectMeta), Findings: []Finding{}, Contended: b.Status.Contention != nil}
	show(&out, &b.Spec)
	show(&out, &b.Status)
	for i := range b.Status.Findings {
		finding := Finding{}
		show(&finding, &b.Status.Findings[i])
		out.Findings = append(out.Findings, finding)
	}
	if s := b.Status.Severity; s != nil {
		severity := severityOf(s, ageOf(&b.Status))
		out.Severity = &severity
	}
	return out
}

// ageOf returns how old a drift was at the last check.
func ageOf(s *v1alpha1.BaselineStatus) time.Duration {
	if s.FirstSeenTime == nil || s.LastCheckTime == nil {
		return 0
	}
	return s.LastCheckTime.Sub(s.FirstSeenTime.Time)
}
