// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
)

func TestWhatIsLeftAlone(t *testing.T) {
	web := func(c *cluster) *v1alpha1.Baseline { return c.Baselines["web"] }
	tests := map[string]struct {
		change func(*cluster)
		want   planner.Reason
		says   string
	}{
		"a drift like any other": {func(*cluster) {}, "", ""},
		"a guard that is suspended": {func(c *cluster) {
			c.Guard.Spec.Suspend = &v1alpha1.Suspension{EndTime: metav1.NewTime(epoch.Add(time.Hour)), Reason: "move"}
		}, planner.ReasonUnmanaged, ""}, // no guard in force speaks for it
		"one of two guards is suspended": {func(c *cluster) {
			second := c.Guard.DeepCopy()
			second.Name, second.Spec.Suspend = "second", &v1alpha1.Suspension{EndTime: metav1.NewTime(epoch.Add(time.Hour)), Reason: "move"}
			c.Further = append(c.Further, second)
			web(c).Status.Guards = append(web(c).Status.Guards, "SpecGuard/second")
		}, planner.ReasonSuspended, ""},
		"a tenant's guard is suspended under a ClusterSpecGuard": {func(c *cluster) {
			c.Guard.Spec.Suspend = &v1alpha1.Suspension{EndTime: metav1.NewTime(epoch.Add(time.Hour)), Reason: "none of it"}
			platform := &v1alpha1.ClusterSpecGuard{ObjectMeta: metav1.ObjectMeta{Name: "platform"}}
			platform.Spec.GuardSpec = *c.Guard.Spec.DeepCopy()
			platform.Spec.Suspend = nil
			c.Further = append(c.Further, platform)
			web(c).Status.Guards = []string{"ClusterSpecGuard/platform", "SpecGuard/workloads"}
		}, "", ""},
		"a suspension that is over": {func(c *cluster) {
			c.Guard.Spec.Suspend = &v1alpha1.Suspension{EndTime: metav1.NewTime(epoch), Reason: "move"}
		}, "", ""},
		"an unmanaged guard": {func(c *cluster) { c.Guard.Spec.ManagementPolicy = v1alpha1.Unmanaged }, planner.ReasonUnmanaged, ""},
		"unmanaged by default": {func(c *cluster) {
			c.Further = append(c.Further, &v1alpha1.GuardDefaults{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: v1alpha1.GuardDefaultsSpec{
				Defaults: v1alpha1.CheckDefaults{ManagementPolicy: v1alpha1.Unmanaged},
			}})
		}, planner.ReasonUnmanaged, ""},
		"a guard that sees a mass drift": {func(c *cluster) {
			c.Guard.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonMassDrift}}
		}, planner.ReasonMassDrift, "SpecGuard/workloads"},
		"a guard that sees a mass drift in another namespace": {func(c *cluster) {
			c.Guard.Status.MassDrift = &v1alpha1.MassDrift{Namespaces: []v1alpha1.FrozenNamespace{{Name: "bank"}}}
		}, "", ""},
		"a guard that sees a mass drift by another cause": {func(c *cluster) {
			c.Guard.Status.MassDrift = &v1alpha1.MassDrift{Causes: []v1alpha1.FrozenCause{{Path: "/spec/template/spec/containers/*/image", User: "eve"}}}
		}, "", ""},
		"a guard that sees a mass drift by its cause": {func(c *cluster) {
			c.Guard.Status.MassDrift = &v1alpha1.MassDrift{Causes: []v1alpha1.FrozenCause{{Path: "/spec/template/spec/containers/*/image", User: "alice"}}}
		}, planner.ReasonMassDrift, "SpecGuard/workloads"},
		"a mass drift that no guard has counted yet": {func(c *cluster) {
			for _, name := range []string{"web", "db", "cache"} {
				c.Drift(name, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "evil:1" })
				c.Baselines[name].Status.FirstSeenTime = &metav1.Time{Time: epoch.Add(-time.Minute)}
			}
		}, planner.ReasonMassDrift, "SpecGuard/workloads"},
		"a run of a release has it as a variation": {func(c *cluster) { c.Further = append(c.Further, releaseOf("shop", "web", "Running")) }, planner.ReasonRolloutUnderWay, "run 3 of ABRelease web is under way"},
		"a run that has ended":                     {func(c *cluster) { c.Further = append(c.Further, releaseOf("shop", "web", "Completed")) }, "", ""},
		"a run of another Deployment":              {func(c *cluster) { c.Further = append(c.Further, releaseOf("shop", "db", "Running")) }, "", ""},
		"a run of another namespace":               {func(c *cluster) { c.Further = append(c.Further, releaseOf("bank", "web", "Running")) }, "", ""},
		"a namespace that is being deleted": {func(c *cluster) {
			c.Namespace.DeletionTimestamp, c.Namespace.Finalizers = &metav1.Time{Time: epoch}, []string{"kubernetes"}
		}, planner.ReasonTerminating, ""},
		"an object that is being deleted": {func(c *cluster) {
			c.Objects["web"].DeletionTimestamp, c.Objects["web"].Finalizers = &metav1.Time{Time: epoch}, []string{"x"}
		}, planner.ReasonTerminating, ""},
		"a fight":            {func(c *cluster) { web(c).Status.Contention = &v1alpha1.Contention{} }, planner.ReasonContended, ""},
		"nothing authorized": {func(c *cluster) { web(c).Spec.Authorized = nil }, planner.ReasonNothingAuthorized, ""},
		"an object that has changed since": {func(c *cluster) {
			c.Objects["web"].Spec.Template.Spec.Containers[0].Image = "evil:2"
		}, planner.ReasonUnknown, ""},
		"another object of that name":  {func(c *cluster) { c.Objects["web"].UID = "other" }, planner.ReasonUnknown, ""},
		"an object that is gone since": {func(c *cluster) { delete(c.Objects, "web") }, planner.ReasonUnknown, ""},
		"a claim of a plan under way": {func(c *cluster) {
			web(c).Status.PlanName = "other"
			c.Plans = append(c.Plans, &v1alpha1.RemediationPlan{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "other"}})
		}, planner.ReasonUnderWay, "other"},
		"a claim of a plan that ended": {func(c *cluster) {
			web(c).Status.PlanName = "other"
			c.Plans = append(c.Plans, &v1alpha1.RemediationPlan{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "other"}, Status: v1alpha1.RemediationPlanStatus{Phase: v1alpha1.PlanFailed},
			})
		}, "", ""},
		"a claim of a plan that is gone": {func(c *cluster) { web(c).Status.PlanName = "other" }, "", ""},
		"nobody knows who":               {func(c *cluster) { web(c).Status.Findings[0].Actor = v1alpha1.Actor{Class: v1alpha1.ActorUnknown} }, planner.ReasonUnattributed, ""},
		"perhaps somebody":               {func(c *cluster) { web(c).Status.Findings[0].Actor.Class = v1alpha1.ActorUnknown }, planner.ReasonUnattributed, ""},
		"somebody trusted":               {func(c *cluster) { web(c).Status.Findings[0].Actor.Class = v1alpha1.ActorTrusted }, planner.ReasonUnattributed, ""},
		"findings that did not fit":      {func(c *cluster) { web(c).Status.FindingsTotal = 2 }, planner.ReasonUnattributed, ""},
		"a label of Argo CD":             {func(c *cluster) { c.Objects["web"].Labels["argocd.argoproj.io/instance"] = "shop" }, planner.ReasonGitOps, "Argo CD"},
		"an object that Argo CD tracks by an annotation": {func(c *cluster) {
			c.Objects["web"].Annotations = map[string]string{"argocd.argoproj.io/tracking-id": "shop:apps/Deployment:shop/web"}
		}, planner.ReasonGitOps, "Argo CD"},
		"labels of Flux": {func(c *cluster) { c.Objects["web"].Labels["kustomize.toolkit.fluxcd.io/name"] = "shop" }, planner.ReasonGitOps, "Flux"},
		"a field manager of Flux": {func(c *cluster) {
			c.Objects["web"].ManagedFields = []metav1.ManagedFieldsEntry{managedBy("kubectl"), managedBy("helm-controller")}
		}, planner.ReasonGitOps, "Flux"},
		"Helm, which puts nothing back itself": {func(c *cluster) {
			c.Objects["web"].ManagedFields = []metav1.ManagedFieldsEntry{managedBy("helm")}
		}, "", ""},
		"a trusted writer of a moment ago": {func(c *cluster) { web(c).Spec.Authorized.AuthorizationTime = metav1.NewTime(epoch.Add(-time.Minute)) }, planner.ReasonActiveWriter, "ci"},
		"an import of a moment ago": {func(c *cluster) {
			web(c).Spec.Authorized.AuthorizationTime, web(c).Spec.Authorized.By = metav1.NewTime(epoch.Add(-time.Minute)), ""
		}, "", ""},
		"three plans failed": {func(c *cluster) {
			for _, name := range []string{"a", "b", "c"} {
				c.Ended(name, v1alpha1.PlanFailed, v1alpha1.StepFailed, v1alpha1.ReasonUnhealthy)
			}
		}, planner.ReasonAttempts, "3 plans"},
		"three plans failed, before the policy was changed": {func(c *cluster) {
			for _, name := range []string{"a", "b", "c"} {
				c.Ended(name, v1alpha1.PlanFailed, v1alpha1.StepFailed, v1alpha1.ReasonUnhealthy)
			}
			c.Policy.Spec.Strategy = v1alpha1.StrategyStaged
		}, "", ""},
		"a person canceled": {func(c *cluster) {
			p := c.Ended("a", v1alpha1.PlanCanceled, v1alpha1.StepSkipped, v1alpha1.ReasonStopped)
			p.Spec.Control = v1alpha1.PlanControl{Verb: v1alpha1.PlanCancel, RequestedBy: "bob"}
		}, planner.ReasonCanceled, "bob"},
		"the policy was changed while a plan went on": {func(c *cluster) {
			c.Ended("a", v1alpha1.PlanSuperseded, v1alpha1.StepSkipped, v1alpha1.ReasonPolicyChanged)
		}, "", ""},
		"a plan was superseded": {func(c *cluster) { c.Ended("a", v1alpha1.PlanSuperseded, v1alpha1.StepSkipped, v1alpha1.ReasonStopped) }, "", ""},
		// D1 of the review of remediation: a plan whose steps were skipped counted as not
		// tried, and the next one was made within the second, for ever.
		"three plans were skipped for a reason of their own": {func(c *cluster) {
			for _, name := range []string{"a", "b", "c"} {
				c.Ended(name, v1alpha1.PlanSkipped, v1alpha1.StepSkipped, v1alpha1.ReasonNotAllowed)
			}
		}, planner.ReasonAttempts, "3 plans"},
		"three plans were refused, in the words of the last refusal": {func(c *cluster) {
			for i, name := range []string{"a", "b", "c"} {
				p := c.Ended(name, v1alpha1.PlanSkipped, v1alpha1.StepSkipped, v1alpha1.ReasonRefused)
				p.Status.CompletionTime = &metav1.Time{Time: epoch.Add(time.Duration(i) * time.Second)}
				p.Status.Steps[0].Message = "spec.selector: field is immutable, says " + name
			}
		}, planner.ReasonAttempts, "the last one: Refused: spec.selector: field is immutable, says c"},
		"three plans found the target moved, as the next one would": {func(c *cluster) {
			for _, name := range []string{"a", "b", "c"} {
				c.Ended(name, v1alpha1.PlanSuperseded, v1alpha1.StepSkipped, v1alpha1.ReasonTargetMoved)
			}
		}, planner.ReasonAttempts, "3 plans"},
		"one plan was skipped a moment ago": {func(c *cluster) {
			p := c.Ended("a", v1alpha1.PlanSkipped, v1alpha1.StepSkipped, v1alpha1.ReasonRefused)
			p.Status.CompletionTime = &metav1.Time{Time: epoch}
		}, planner.ReasonBackoff, "10:00:01Z"},
		"one plan was skipped long ago": {func(c *cluster) {
			p := c.Ended("a", v1alpha1.PlanSkipped, v1alpha1.StepSkipped, v1alpha1.ReasonRefused)
			p.Status.CompletionTime = &metav1.Time{Time: epoch.Add(-time.Second)}
		}, "", ""},
		"many plans of other drifts of the object ended a while ago": {func(c *cluster) {
			for i := range 20 {
				p := c.Ended(fmt.Sprint("p", i), v1alpha1.PlanSuperseded, v1alpha1.StepSkipped, v1alpha1.ReasonTargetMoved)
				p.Spec.Plan.Targets[0].DriftedHash = fmt.Sprint("pl1:", i)
				p.Status.CompletionTime = &metav1.Time{Time: epoch.Add(-9 * time.Minute)}
			}
		}, planner.ReasonBackoff, "10:01:00Z"},
		"a success between them": {func(c *cluster) {
			for i := range 20 {
				p := c.Ended(fmt.Sprint("p", i), v1alpha1.PlanSuperseded, v1alpha1.StepSkipped, v1alpha1.ReasonTargetMoved)
				p.Spec.Plan.Targets[0].DriftedHash = fmt.Sprint("pl1:", i)
				p.Status.CompletionTime = &metav1.Time{Time: epoch.Add(-9 * time.Minute)}
			}
			p := c.Ended("good", v1alpha1.PlanSucceeded, v1alpha1.StepVerified, "")
			p.Spec.Plan.Targets[0].DriftedHash = "pl1:good"
			p.Status.CompletionTime = &metav1.Time{Time: epoch.Add(-8 * time.Minute)}
		}, "", ""},
		// D5 of the review of remediation.
		"a person has accepted it": {func(c *cluster) {
			b := web(c)
			b.Spec.Accept = &v1alpha1.AcceptRequest{Hash: b.Status.Observed.Hash, RequestedBy: "alice"}
		}, planner.ReasonAccepted, "alice"},
		"a person has accepted another state of it, in vain": {func(c *cluster) {
			web(c).Spec.Accept = &v1alpha1.AcceptRequest{Hash: "pl1:other", RequestedBy: "alice"}
		}, "", ""},
		"a plan succeeded, and it is back": {func(c *cluster) { c.Ended("a", v1alpha1.PlanSucceeded, v1alpha1.StepVerified, "") }, planner.ReasonDone, "plan a"},
		"an older drift of the same hash": {func(c *cluster) {
			p := c.Ended("a", v1alpha1.PlanSucceeded, v1alpha1.StepVerified, "")
			p.Spec.Plan.Targets[0].FirstSeenTime = metav1.NewTime(epoch.Add(-time.Hour))
		}, "", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			tc.change(c)
			g := c.gather()
			var d *planner.Drift
			for i := range g.Input.Drifts {
				if g.Input.Drifts[i].Baseline == "deployments.apps.web" {
					d = &g.Input.Drifts[i]
				}
			}
			if d == nil {
				t.Fatal("the drift is not seen")
			}
			if o := planner.ObstacleTo(&g.Input, d); o.Reason != tc.want || !strings.Contains(o.Message, tc.says) {
				t.Errorf("%s (%s), want %s (%s)", o.Reason, o.Message, tc.want, tc.says)
			}
		})
	}
}

// releaseOf is a release whose stable variation is a Deployment, at run 3.
func releaseOf(namespace, deployment string, state v1alpha1.RunState) *v1alpha1.ABRelease {
	r := &v1alpha1.ABRelease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	r.Spec.Variations = []v1alpha1.Variation{{Name: "stable", Workload: &v1alpha1.VariationWorkload{Kind: v1alpha1.VariationDeployment, Name: deployment}}}
	r.Status.Rollout = &v1alpha1.RolloutStatus{Run: &v1alpha1.RolloutRun{Number: 3, State: state}}
	return r
}

func managedBy(manager string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "apps/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1("{}"),
	}
}
