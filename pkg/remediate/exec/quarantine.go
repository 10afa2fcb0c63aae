// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
)

// Mesh tells what stands against keeping requests from a target.
type Mesh interface {
	// Obstacle says why a target is not kept from requests; empty when nothing stands against it.
	Obstacle(ctx context.Context, from client.Reader, namespace string, target *v1alpha1.PlanTarget) (string, error)
}

// noMesh is why no object is put into quarantine where no proxy sends requests.
const noMesh = "NoMesh: the installation has no mesh, so no proxy would keep requests away: set mesh.enabled in the chart"

// quarantines says that a step writes the Baseline of its target, and leaves the target alone.
func (r *run) quarantines(step int32) bool {
	return r.target(step).Action == v1alpha1.ActionQuarantine
}

// describeBaseline fills in what the step of a quarantine is bound to: the version of the
// Baseline. The readiness of the object is not asked, because the object stays as it is.
func (r *run) describeBaseline(step int32, t *protocol.Target) {
	t.Ready, t.NotReady, t.Generation, t.ResourceVersion = protocol.Yes, "", 0, ""
	b := r.material(step).baseline
	if b == nil {
		return
	}
	t.ResourceVersion = b.ResourceVersion
	t.Quarantine.Held = b.Status.PlanName == r.plan.Name
	if q := b.Status.Quarantine; q != nil {
		t.Quarantine.Token = q.Token
		if q.Token != protocol.Token(r.plan, step) && t.Unwanted == "" {
			t.Unwanted = "it is in quarantine already, by " + q.By
		}
	}
	if ended := b.Status.EndedQuarantine; ended != nil {
		t.Quarantine.Ended, t.Quarantine.Why = ended.Token, describeEnd(ended)
	}
}

// describeEnd says until what a quarantine lasted.
func describeEnd(ended *v1alpha1.EndedQuarantine) string {
	if ended.By != "" {
		return ended.By + " lifted it"
	}
	return "the assessor ended it (" + string(ended.Reason) + ")"
}

// tryQuarantine has the API server carry out the write of the Baseline without storing it. What
// proxies serve may have changed since the plan was made, and is read live.
func (r *run) tryQuarantine(ctx context.Context, step int32) protocol.Write {
	m := r.material(step)
	m.quarantined = nil
	switch {
	case m.baseline == nil, m.raw == nil:
		return protocol.Write{Result: protocol.Gone}
	case r.Mesh == nil:
		return protocol.Write{Result: protocol.Refused, Message: noMesh}
	}
	if why := r.unquarantinable(step); why != "" {
		return protocol.Write{Result: protocol.Lost, Message: why}
	}
	obstacle, err := r.Mesh.Obstacle(ctx, r.Client, r.plan.Namespace, r.target(step))
	switch {
	case err != nil:
		return protocol.Write{Result: protocol.Lost, Message: err.Error()}
	case obstacle != "":
		return protocol.Write{Result: protocol.Refused, Message: obstacle}
	}
	m.quarantined = r.quarantinedBaseline(step)
	return r.sendTrial(ctx, step)
}

// unquarantinable says why a Baseline may not tell of a quarantine now: the assessor ends the
// quarantine of an object that is not drifted, and has not looked at the drift yet.
func (r *run) unquarantinable(step int32) string {
	b, target := r.material(step).baseline, r.target(step)
	switch {
	case b.Status.PlanName != "" && b.Status.PlanName != r.plan.Name:
		return "plan " + b.Status.PlanName + " holds its Baseline"
	case b.Status.State != v1alpha1.StateDrifted || b.Status.Observed.Hash != target.DriftedHash || b.Status.Observed.UID != target.UID:
		return "the assessor has not looked at its drift yet"
	}
	return ""
}

// quarantinedBaseline is the Baseline of a step as it is to be written. The plan claims the
// Baseline in the same write.
func (r *run) quarantinedBaseline(step int32) *v1alpha1.Baseline {
	next, target := r.material(step).baseline.DeepCopy(), r.target(step)
	next.Status.PlanName = r.plan.Name
	next.Status.Quarantine = &v1alpha1.Quarantine{
		StartTime: metav1.NewTime(r.Time.Now().Truncate(time.Second)), By: "RemediationPlan/" + r.plan.Name,
		UID: target.UID, Token: protocol.Token(r.plan, step),
		Reason: fmt.Sprintf("policy %s, for drift of severity %s", r.plan.Spec.Plan.Policy.Name, target.Severity.Level),
	}
	return next
}

// sendQuarantine sends what was tried. It carries uid and resourceVersion of the Baseline.
func (r *run) sendQuarantine(ctx context.Context, step int32, dryRun bool) protocol.Write {
	m := r.material(step)
	if m.quarantined == nil {
		return protocol.Write{Result: protocol.Refused, Message: "there was no earlier attempt"}
	}
	options := []client.SubResourceUpdateOption{client.FieldOwner(FieldManager)}
	if dryRun {
		options = append(options, client.DryRunAll)
	}
	return r.writeBaseline(ctx, step, m.quarantined.DeepCopy(), options...)
}

// fenceBaseline moves the version of the Baseline. A write that changes nothing would move none,
// so the Baseline counts fences.
func (r *run) fenceBaseline(ctx context.Context, step int32) protocol.Write {
	m := r.material(step)
	if m.baseline == nil {
		return protocol.Write{Result: protocol.Gone}
	}
	next := m.baseline.DeepCopy()
	next.Status.Fences++
	write := r.writeBaseline(ctx, step, next, client.FieldOwner(FieldManager))
	if write.Result == protocol.Stored && write.ResourceVersion == m.baseline.ResourceVersion {
		return protocol.Write{Result: protocol.Lost, Message: "the fence had no effect"}
	}
	return write
}

func (r *run) writeBaseline(ctx context.Context, step int32, next *v1alpha1.Baseline, options ...client.SubResourceUpdateOption) protocol.Write {
	if err := r.Client.Status().Update(ctx, next, options...); err != nil {
		return protocol.Write{Result: ResultOf(err), Message: err.Error()}
	}
	write := protocol.Write{Result: protocol.Stored, ResourceVersion: next.ResourceVersion, Hash: r.target(step).DesiredHash}
	if t := r.facts.Of(step).Target; t != nil && t.Hash != "" {
		write.Hash, write.UID, write.Generation = t.Hash, t.UID, t.Generation
	}
	return write
}
