// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// InitiatedByItself is who initiates a plan that nobody asked for.
const InitiatedByItself = "system:auto"

const (
	// lasts is how long a plan may take from when it may begin: its drift is of
	// that day.
	lasts = 24 * time.Hour
	// waits is how long a plan waits for the person who is to execute it.
	waits = 72 * time.Hour
	// MaxActors is how many names a target carries.
	MaxActors = 8
	// maxPaths is how many paths a target carries.
	maxPaths = 64
	// maxPolicyName is how much of the policy's name a plan's name carries.
	maxPolicyName = 40
)

func plan(in *Input, group []*Drift, left []LeftOut) Plan {
	spec := &in.Policy.Spec
	principal := PrincipalOf(spec)
	p := Plan{Namespace: group[0].Namespace, PlannedRemediation: v1alpha1.PlannedRemediation{
		Policy: in.Policy.PlanPolicy, EnvironmentName: spec.EnvironmentName,
		Trigger: spec.Trigger, Strategy: cmp.Or(spec.Strategy, v1alpha1.StrategyRolling), Standby: spec.Standby.DeepCopy(),
		Request:     in.Request.reference(),
		InitiatedBy: in.InitiatedBy, Requester: cmp.Or(principal.User, in.InitiatedBy),
		RequesterGroups: principal.Groups,
		Batches:         batches(spec, len(group)),
	}}
	if in.InitiatedBy != InitiatedByItself {
		p.Requester, p.RequesterGroups = in.InitiatedBy, in.InitiatedByGroups
	}
	for _, d := range group {
		p.Targets = append(p.Targets, targetOf(in, d))
	}
	p.LeftOut, p.LeftOutTotal = leftOut(p.Namespace, left)
	begins := beginning(in, group[0])
	if begins.After(in.Now) {
		at := metav1.NewTime(begins)
		p.ScheduledTime = &at
	}
	p.DeadlineTime = metav1.NewTime(begins.Add(lasts).Truncate(time.Second))
	if WaitsForPerson(&p.PlannedRemediation) {
		p.DeadlineTime = metav1.NewTime(begins.Add(waits).Truncate(time.Second))
	}
	id := identity(in, group)
	p.CorrelationID, p.DriftReportID = id[:32], driftReportID(spec.EnvironmentName, group)
	p.Name = nameOf(in.Policy.Name, id)
	return p
}

// identity returns the same digest for the same attempt on the same drift by the same policy, so that
// a plan that is made twice, after a crash or by two assessors, has one name. The plans before it tell
// an attempt from another, and their number does not: when one of them is deleted, the number is that of
// a plan that is still stored, and no plan could be made under its name.
func identity(in *Input, group []*Drift) string {
	type drift struct {
		Namespace, Baseline, UID, Drifted, Desired string
		FirstSeen                                  int64
		After                                      []string
	}
	what := struct {
		Policy, Digest, InitiatedBy string
		Request                     string `json:",omitempty"`
		Drifts                      []drift
	}{in.Policy.UID, in.Policy.Digest, in.InitiatedBy, in.Request.uid(), nil}
	for _, d := range group {
		what.Drifts = append(what.Drifts, drift{
			d.Namespace, d.Baseline, d.UID, d.DriftedHash, repair(in, d).DesiredHash, d.FirstSeen.Unix(), slices.Sorted(slices.Values(d.Ended)),
		})
	}
	raw, err := json.Marshal(what)
	if err != nil {
		panic("a plan's identity cannot be encoded: " + err.Error()) // strings and numbers always can
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

func nameOf(policy, id string) string {
	head := strings.TrimRight(policy[:min(len(policy), maxPolicyName)], "-.")
	return head + "-" + id[:10]
}

func targetOf(in *Input, d *Drift) v1alpha1.PlanTarget {
	to := repair(in, d)
	t := v1alpha1.PlanTarget{
		BaselineTarget: d.Target, BaselineName: d.Baseline, UID: d.UID,
		DriftedHash: d.DriftedHash, DesiredHash: to.DesiredHash, Revision: to.Revision, RevisionHash: to.RevisionHash,
		Action: ActionOn(&in.Policy.Spec, d), Severity: *d.Severity.DeepCopy(), DriftType: v1alpha1.DriftOther,
		FirstSeenTime: metav1.NewTime(d.FirstSeen),
	}
	if d.State == v1alpha1.StateMissing {
		t.UID, t.DriftType = "", v1alpha1.DriftMissing
		return t
	}
	if len(d.Findings) > 0 {
		t.DriftType = d.Findings[0].Type
	}
	for i := range d.Findings {
		f := &d.Findings[i]
		if f.Path != "" && len(t.Paths) < maxPaths {
			t.Paths = append(t.Paths, f.Path)
		}
		if f.Actor.User != "" && len(t.Actors) < MaxActors && !slices.Contains(t.Actors, f.Actor.User) {
			t.Actors = append(t.Actors, f.Actor.User)
		}
	}
	return t
}

// ActionOn is the policy's action; what is gone can only be made again.
func ActionOn(policy *v1alpha1.RemediationPolicySpec, d *Drift) v1alpha1.RemediationAction {
	if d.State == v1alpha1.StateMissing && policy.Action != v1alpha1.ActionRollback {
		return v1alpha1.ActionReconcile
	}
	return policy.Action
}

// repair is the state a drift is put back to. A restart and a quarantine leave it as it is.
func repair(in *Input, d *Drift) Repair {
	switch ActionOn(&in.Policy.Spec, d) {
	case v1alpha1.ActionRollback:
		return *cmp.Or(d.To, d.Ready)
	case v1alpha1.ActionScale:
		return *d.Scaled
	case v1alpha1.ActionRestart, v1alpha1.ActionQuarantine:
		return Repair{Revision: d.Authorized.Revision, RevisionHash: d.Authorized.RevisionHash, DesiredHash: d.DriftedHash}
	case v1alpha1.ActionReconcile, v1alpha1.ActionNotifyOnly:
		return *d.Authorized
	}
	return *d.Authorized
}
