// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/planner"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// asks has bob ask for web, by changes of the one target.
func (c *cluster) asks(changes ...func(*v1alpha1.RequestedTarget)) Question {
	b := c.Baselines["web"]
	target := v1alpha1.RequestedTarget{BaselineName: b.Name, DriftedHash: b.Status.Observed.Hash}
	for _, change := range changes {
		change(&target)
	}
	q := c.question()
	q.InitiatedBy = "bob"
	q.Request = &v1alpha1.RemediationRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "ask", UID: "uid-ask"},
		Spec:       v1alpha1.RemediationRequestSpec{PolicyName: "auto", RequestedBy: "bob", Targets: []v1alpha1.RequestedTarget{target}},
	}
	return q
}

func TestHowWhatAPersonAsksForStands(t *testing.T) {
	none := func(*cluster) {}
	named := func(name string) func(*v1alpha1.RequestedTarget) {
		return func(t *v1alpha1.RequestedTarget) { t.BaselineName = name }
	}
	tests := map[string]struct {
		change func(*cluster)
		target func(*v1alpha1.RequestedTarget)
		want   planner.Standing
		of     string
	}{
		"a drift":                      {none, nil, planner.StandingDrifted, "production"},
		"an object that is in sync":    {none, named("deployments.apps.db"), planner.StandingNotDrifted, "production"},
		"an object without a Baseline": {none, named("deployments.apps.nope"), planner.StandingNotGuarded, ""},
		"an object that no guard selects any more": {
			func(c *cluster) {
				c.Baselines["web"].Status.State = v1alpha1.StateNotGuarded
			}, nil, planner.StandingNotGuarded, "",
		},
		"a kind that the policy does not select": {
			func(c *cluster) {
				c.Policy.Spec.Resources = []v1alpha1.GuardedResource{{APIVersion: "v1", Kind: "ConfigMap"}}
			}, nil, planner.StandingNotSelected, "production",
		},
		"a namespace of another Environment": {
			func(c *cluster) {
				c.Namespace.Labels["tier"] = "staging"
				c.Further = append(c.Further, &v1alpha1.Environment{ObjectMeta: metav1.ObjectMeta{Name: "staging"}, Spec: v1alpha1.EnvironmentSpec{
					NamespaceSelector: metav1.LabelSelector{MatchLabels: map[string]string{"tier": "staging"}},
				}})
			}, nil, planner.StandingOtherEnvironment, "staging",
		},
		"a namespace of no Environment": {func(c *cluster) { c.Namespace.Labels = nil }, nil, planner.StandingOtherEnvironment, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			test.change(c)
			var changes []func(*v1alpha1.RequestedTarget)
			if test.target != nil {
				changes = append(changes, test.target)
			}
			g, err := Gather(t.Context(), c.live(), c.asks(changes...))
			if err != nil {
				t.Fatal(err)
			}
			if got := g.Input.Request.Targets[0]; got.Standing != test.want || got.Environment != test.of {
				t.Errorf("it stands as %d in %q, want %d in %q", got.Standing, got.Environment, test.want, test.of)
			}
		})
	}
}

// Two namespaces may have an object of the same name.
func TestARequestNamesObjectsOfItsOwnNamespaceAlone(t *testing.T) {
	c := newCluster(t)
	c.Further = append(c.Further, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other", Labels: c.Namespace.Labels}})
	q := c.asks()
	q.Request.Namespace = "other"
	g, err := Gather(t.Context(), c.live(), q)
	if err != nil {
		t.Fatal(err)
	}
	if out := planner.Make(&g.Input); len(out.Plans) != 0 || out.LeftOut[0].Reason != planner.ReasonNotGuarded {
		t.Errorf("plans are %+v, left out %+v", out.Plans, out.LeftOut)
	}
}

func TestAChosenRevisionIsOneOfTheObjectItself(t *testing.T) {
	first := specguard.RevisionName("deployments.apps.web", 1)
	tests := map[string]struct {
		revision string
		want     bool
	}{
		"its first":             {first, true},
		"none":                  {"", false},
		"one that is not there": {specguard.RevisionName("deployments.apps.web", 9), false},
		"one of another object": {specguard.RevisionName("deployments.apps.db", 1), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			g, err := Gather(t.Context(), c.live(), c.asks(func(t *v1alpha1.RequestedTarget) { t.Revision = test.revision }))
			if err != nil {
				t.Fatal(err)
			}
			var want *planner.Repair
			if hash := c.Baselines["web"].Spec.Authorized.Hash; test.want {
				want = &planner.Repair{Revision: first, RevisionHash: hash, DesiredHash: hash}
			}
			if diff := cmp.Diff(want, g.Input.Drifts[0].To); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// unreadable cannot read revisions.
type unreadable struct{ Source }

func (unreadable) Revision(context.Context, string, string) (*v1alpha1.BaselineRevisionSpec, error) {
	return nil, errors.New("connection reset")
}

func TestARevisionThatCannotBeReadIsNotTakenForAbsent(t *testing.T) {
	c := newCluster(t)
	if _, err := Gather(t.Context(), unreadable{c.live()}, c.asks(func(t *v1alpha1.RequestedTarget) { t.Revision = "r" })); err == nil {
		t.Error("it was taken for absent")
	}
}

func TestAStateThatAPersonChoseIsRemembered(t *testing.T) {
	ended := func(c *cluster, at time.Duration) *v1alpha1.RemediationPlan {
		p := c.Ended("chosen-"+at.String(), v1alpha1.PlanSucceeded, v1alpha1.StepVerified, "")
		p.Status.CompletionTime = &metav1.Time{Time: epoch.Add(at)}
		p.Spec.Plan.InitiatedBy = "bob"
		p.Spec.Plan.Request = &v1alpha1.PlanRequest{Name: "ask", UID: "uid-ask"}
		target := &p.Spec.Plan.Targets[0]
		target.Action, target.DriftedHash, target.DesiredHash = v1alpha1.ActionRollback, "pl1:before", c.Baselines["web"].Status.Observed.Hash
		return p
	}
	tests := map[string]struct {
		change func(*cluster)
		want   string
	}{
		"a rollback that bob asked for":  {func(c *cluster) { ended(c, -time.Hour) }, "bob"},
		"a rollback that did not happen": {func(c *cluster) { ended(c, -time.Hour).Status.Steps[0].State = v1alpha1.StepFailed }, ""},
		"a rollback of the policy":       {func(c *cluster) { ended(c, -time.Hour).Spec.Plan.Request = nil }, ""},
		"a reconciliation that bob asked for": {func(c *cluster) {
			ended(c, -time.Hour).Spec.Plan.Targets[0].Action = v1alpha1.ActionReconcile
		}, ""},
		"a rollback to another state": {func(c *cluster) { ended(c, -time.Hour).Spec.Plan.Targets[0].DesiredHash = "pl1:other" }, ""},
		"a rollback before another plan put it elsewhere": {func(c *cluster) {
			ended(c, -time.Hour)
			ended(c, -time.Minute).Spec.Plan.Request = nil
		}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			test.change(c)
			if got := c.gather().Input.Drifts[0].ChosenBy; got != test.want {
				t.Errorf("chosen by %q, want %q", got, test.want)
			}
		})
	}
}
