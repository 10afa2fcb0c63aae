// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"cmp"
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/planning"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// Report is the answer of a preview.
type Report struct {
	Policy string              `json:"policy"`
	Mode   v1alpha1.PolicyMode `json:"mode"`
	// Selected objects of the policy; of those Drifted, and of those Eligible to be put back.
	Selected int `json:"selected"`
	Drifted  int `json:"drifted"`
	Eligible int `json:"eligible"`
	// Problems of the policy that the schema does not see; with any there are no plans.
	Problems []string `json:"problems,omitempty"`
	// Waiting names the condition that the policy as a whole waits for; empty without one.
	Waiting string `json:"waitingFor,omitempty"`
	Plans   []Plan `json:"plans"`
	// Notify names the objects about which people are told, and nothing is written.
	Notify []string `json:"notify,omitempty"`
	// LeftOut are the drifts without a plan.
	LeftOut []LeftOut `json:"leftOut"`
	// NextLook is the time at which the decision may be another one; nil when no time is known.
	NextLook *time.Time `json:"nextLook,omitempty"`
}

// Plan is a plan that would be made.
type Plan struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// ScheduledFor is the time at which the plan begins; nil for at once.
	ScheduledFor *time.Time `json:"scheduledFor,omitempty"`
	Steps        []Step     `json:"steps"`
	// Planned is the plan as it would be stored, with a step for each target.
	Planned v1alpha1.RemediationPlan `json:"-"`
}

// LeftOut is a drift without a plan, and why.
type LeftOut struct {
	Namespace string     `json:"namespace"`
	Object    string     `json:"object"`
	Reason    string     `json:"reason"`
	Message   string     `json:"message"`
	Until     *time.Time `json:"until,omitempty"`
	// Baseline is the name of the object's Baseline.
	Baseline string `json:"-"`
}

// unnamed stands where the name of a plan would, which follows from the request that is stored.
const unnamed = "(named when it is made)"

// Cluster is the cluster that a preview reads, and in which it tries writes, with the rights of
// the person who asks.
type Cluster struct {
	client.Reader
	Mapper meta.RESTMapper
	// Targets sends the dry runs, as the executor sends its writes.
	Targets exec.Targets
	// System is Plumbline's own namespace, which is never guarded; the usual one when empty.
	System string
}

// Times are the two clocks of a preview.
type Times struct {
	// Now is the API server's time, by which the assessor decides.
	Now time.Time
	// Clock is the clock of the process that asks, by which writes are tried.
	Clock func() time.Time
}

// ReportPolicy makes the plans that a policy in any mode would make now, and tries each write
// as a dry run. Nothing is stored. A policy with problems has no plans. An error says that
// nothing is known; a write that cannot be tried is a step with an [Outcome] instead.
func ReportPolicy(ctx context.Context, c Cluster, policy *v1alpha1.RemediationPolicy, at Times) (*Report, error) {
	src := c.source()
	gathered, err := planning.Gather(ctx, src, planning.Question{Policy: policy, InitiatedBy: planner.InitiatedByItself, Now: at.Now})
	if err != nil {
		return nil, err
	}
	return c.report(ctx, src, policy, gathered, at.Clock)
}

// ReportRequest makes the plans by which a policy would answer a request that is not stored, as
// [ReportPolicy] does. The plans of the report have no names yet.
func ReportRequest(ctx context.Context, c Cluster, policy *v1alpha1.RemediationPolicy, request *v1alpha1.RemediationRequest, at Times) (*Report, error) {
	src, asked := c.source(), request.DeepCopy()
	asked.Name, asked.UID = asked.GenerateName+"preview", previewUID
	gathered, err := planning.Gather(ctx, src, planning.Question{
		Policy: policy, InitiatedBy: asked.Spec.RequestedBy, InitiatedByGroups: asked.Spec.RequestedByGroups, Request: asked, Now: at.Now,
	})
	if err != nil {
		return nil, err
	}
	report, err := c.report(ctx, src, policy, gathered, at.Clock)
	if err != nil {
		return nil, err
	}
	for i := range report.Plans {
		report.Plans[i].Name, report.Plans[i].Planned.Name = unnamed, ""
	}
	return report, nil
}

// source reads the cluster once for the decision and for the dry runs. Kinds that no guard names
// are not read.
func (c Cluster) source() planning.Source {
	system := cmp.Or(c.System, actions.SystemNamespace)
	return &planning.Once{Source: &planning.Live{Reader: c, Mapper: c.Mapper, Excluded: specguard.ExcludedNamespaces(system)}}
}

// report plans as the assessor does, and tries the plans.
func (c Cluster) report(ctx context.Context, src planning.Source, policy *v1alpha1.RemediationPolicy, g *planning.Gathered, clock func() time.Time) (*Report, error) {
	r := &Report{
		Policy: policy.Name, Mode: actions.ModeOf(policy), Selected: g.Input.Scope.Selected, Drifted: len(g.Input.Drifts),
		Plans: []Plan{}, LeftOut: []LeftOut{},
	}
	for _, problem := range g.Problems {
		r.Problems = append(r.Problems, problem.Error())
	}
	if len(r.Problems) > 0 {
		return r, nil
	}
	out := planner.Make(&g.Input)
	r.Eligible, r.NextLook = out.Eligible, timeOrNil(out.NextLook)
	if !g.Input.Opening.Open {
		r.Waiting = g.Input.Opening.Why
	}
	for _, d := range out.Notify {
		r.Notify = append(r.Notify, d.Namespace+"/"+actions.NameTarget(&d.Target))
	}
	for i := range out.LeftOut {
		l := &out.LeftOut[i]
		r.LeftOut = append(r.LeftOut, LeftOut{
			Namespace: l.Drift.Namespace, Object: actions.NameTarget(&l.Drift.Target), Reason: string(l.Reason), Message: l.Message, Until: timeOrNil(l.Until),
			Baseline: l.Drift.Baseline,
		})
	}
	tries := &tryer{Cluster: c, source: src, now: clock()}
	for i := range out.Plans {
		p, err := tries.plan(ctx, &out.Plans[i])
		if err != nil {
			return nil, err
		}
		r.Plans = append(r.Plans, p)
	}
	return r, nil
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
