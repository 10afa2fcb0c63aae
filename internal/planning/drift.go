// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"cmp"
	"context"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/resync"
)

// activeFor is how long a trusted writer counts as busy with an object after a
// write of its that was authorized: a rollout of several writes takes a while.
const activeFor = 2 * time.Minute

// drift fills in everything about one drifted object.
func (g *gatherer) drift(ctx context.Context, s *subject) (planner.Drift, error) {
	g.complete(ctx, s)
	b, status := s.baseline, &s.baseline.Status
	d := planner.Drift{
		Namespace: b.Namespace, Baseline: b.Name, Target: b.Spec.Target,
		UID: status.Observed.UID, DriftedHash: status.Observed.Hash, State: s.known(),
		Findings: status.Findings, Component: s.component(),
		Forbidden: !exec.Writable(canon.GVK(s.key.GroupVersionKind)),
		Contended: status.Contention != nil, Attributed: attributed(status),
		Terminating: g.world.Guards.Namespaces[b.Namespace].Terminating || s.object != nil && s.object.DeletionTimestamp != nil,
	}
	if exec.AcceptWaits(b, d.DriftedHash) {
		d.AcceptedBy = b.Spec.Accept.RequestedBy
	}
	if status.Severity != nil {
		d.Severity = *status.Severity
	}
	if status.FirstSeenTime != nil {
		d.FirstSeen = status.FirstSeenTime.Time
	}
	g.world.brakes(b, g.Now, &d)
	d.Rollout = g.world.holder(b)
	quarantine(status, &d)
	rules := g.rules(s)
	g.repairs(b, &d)
	g.managed(s, rules, &d)
	g.active(b, &d)
	d.MeasuredBy, d.MeasuredUntil = g.measurement(b)
	g.past(s, &d)
	d.Chain = g.chain(&d)
	var err error
	if d.Claim, err = g.claim(ctx, b); err != nil {
		return d, err
	}
	if d.To, err = g.chosenState(ctx, b); err != nil {
		return d, err
	}
	if s.object == nil {
		return d, nil
	}
	if d.GitOps, err = gitOpsTool(s.object); err != nil {
		d.State = v1alpha1.StateUnknown // one object that cannot be read must not stop the policy
		return d, nil                   //nolint:nilerr // unknown is a result
	}
	if g.Policy.Spec.Action == v1alpha1.ActionScale {
		err = g.scaled(ctx, s, rules, &d)
	}
	return d, err
}

// quarantine fills in what is known of the quarantine of an object. One that a person lifted
// after the drift began was a quarantine of this drift.
func quarantine(status *v1alpha1.BaselineStatus, d *planner.Drift) {
	if q := status.Quarantine; q != nil {
		d.QuarantinedBy = q.By
	}
	if ended := status.EndedQuarantine; ended != nil && !ended.EndTime.Time.Before(d.FirstSeen) {
		d.LiftedBy = ended.By
	}
}

// rules are what the guards in force say about the object. One that is gone is
// still selected by those that its Baseline names.
func (g *gatherer) rules(s *subject) specguard.Rules {
	q := specguard.Query{
		Namespace: s.key.Namespace, NamespaceLabels: g.world.Guards.Namespaces[s.key.Namespace].Labels,
		Name: s.key.Name, GVK: canon.GVK(s.key.GroupVersionKind), Kept: &s.baseline.Status, Now: g.Now,
	}
	if s.object != nil {
		q.Labels = append(q.Labels, s.object.Labels)
	}
	return g.world.Guards.Set.Rules(q)
}

// repairs are the states that it can be put back to.
func (g *gatherer) repairs(b *v1alpha1.Baseline, d *planner.Drift) {
	if a := b.Spec.Authorized; a != nil {
		d.Authorized = &planner.Repair{Revision: a.Revision, RevisionHash: a.Hash, DesiredHash: a.Hash}
		if d.State == v1alpha1.StateMissing {
			d.UID = cmp.Or(a.UID, d.UID)
		}
	}
	if r := b.Status.LastReady; r != nil {
		d.Ready = &planner.Repair{Revision: r.Revision, RevisionHash: r.Hash, DesiredHash: r.Hash}
	}
}

// managed says whether Plumbline may write the object, and whether it may make it
// again.
func (g *gatherer) managed(s *subject, rules specguard.Rules, d *planner.Drift) {
	h := resync.Hierarchy{GVK: canon.GVK(s.key.GroupVersionKind), Guards: rules.Checks(), Option: g.ResyncPeriod}
	if s.object != nil {
		h.Annotations = s.object.Annotations
	}
	settings := g.world.Defaults.Resolve(g.Policy.Spec.EnvironmentName, h)
	d.Managed = !rules.Empty() && settings.Management.Value == v1alpha1.Managed
	if s.baseline.Status.State != v1alpha1.StateMissing {
		return
	}
	deletion := resync.DeletionOf(s.baseline)
	deletion.NamespaceTerminating = g.world.Guards.Namespaces[s.key.Namespace].Terminating
	deletion.Guarded, deletion.Management, deletion.Resync = !rules.Empty(), settings.Management.Value, settings.On()
	consequence, reason := resync.Deleted(deletion)
	d.Recreation = planner.Recreation{Allowed: consequence == resync.Recreate, Reason: string(reason)}
}

func (g *gatherer) active(b *v1alpha1.Baseline, d *planner.Drift) {
	a := b.Spec.Authorized
	if a == nil || a.By == "" {
		return
	}
	if until := a.AuthorizationTime.Add(activeFor); until.After(g.Now) {
		d.ActiveWriter, d.ActiveUntil = a.By, until
	}
}

func (g *gatherer) past(s *subject, d *planner.Drift) {
	uid := d.UID
	if s.baseline.Status.State == v1alpha1.StateMissing {
		uid = "" // as in a plan: what is to be made has none
	}
	h := g.history.drifts[drifted{d.Namespace, d.Baseline, uid, d.DriftedHash, d.FirstSeen.Unix()}]
	d.Attempts, d.LastFailure, d.Ended, d.CanceledBy, d.DoneBy = h.attempts, h.failure, h.ended, h.canceledBy, h.doneBy
	if c := g.history.choices[object{d.Namespace, d.Baseline}]; c.hash == d.DriftedHash {
		d.ChosenBy = c.by
	}
	if r := g.history.rows[object{d.Namespace, d.Baseline}]; r.plans > 0 {
		d.RetryAt = r.ended.Add(planner.RetryDelay(r.plans))
	}
}

// claim is the plan that holds the object. One that ended, or is gone, holds
// nothing; one that the cache does not have may be too new for it, and is asked for.
func (g *gatherer) claim(ctx context.Context, b *v1alpha1.Baseline) (string, error) {
	name := b.Status.PlanName
	if name == "" {
		return "", nil
	}
	p := g.byName[b.Namespace+"/"+name]
	if p == nil {
		var err error
		if p, err = g.src.Plan(ctx, b.Namespace, name); err != nil {
			return "", err
		}
	}
	if p == nil || protocol.Final(p.Status.Phase) {
		return "", nil
	}
	return name, nil
}

// attributed says that who made each difference is known for certain, and is not
// somebody who may: what a trusted writer did and could not prove is left to people.
func attributed(status *v1alpha1.BaselineStatus) bool {
	if len(status.Findings) == 0 || int(status.FindingsTotal) > len(status.Findings) {
		return false
	}
	for i := range status.Findings {
		a := &status.Findings[i].Actor
		switch a.Class {
		case v1alpha1.ActorUntrusted, v1alpha1.ActorExpected, v1alpha1.ActorSystem:
			if a.User == "" {
				return false
			}
		case v1alpha1.ActorTrusted, v1alpha1.ActorUnknown:
			return false
		default:
			return false
		}
	}
	return true
}
