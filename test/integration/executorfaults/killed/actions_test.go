// SPDX-License-Identifier: Apache-2.0

//go:build integration

package killed

import (
	"fmt"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/test/harness/failpoint"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// action is one that leads elsewhere than to the authorized state as a whole.
type action struct {
	name    v1alpha1.RemediationAction
	prepare func(*testing.T, *failpoint.World)
	// target is what the plan names, from the Baseline.
	target func(*failpoint.World, *v1alpha1.PlanTarget)
	// state is what the Baseline says in the end.
	state v1alpha1.DriftState
	// check looks at what the action is about.
	check func(*testing.T, *failpoint.World, *v1alpha1.RemediationPlan)
}

var actions = []action{
	{
		name: v1alpha1.ActionRollback, prepare: brokenAndDrifted, state: v1alpha1.StateDrifted,
		target: func(w *failpoint.World, p *v1alpha1.PlanTarget) {
			b, err := w.Baseline("web")
			w.Must(err)
			ready := b.Status.LastReady
			p.Revision, p.RevisionHash, p.DesiredHash = ready.Revision, ready.Hash, ready.Hash
		},
		check: func(_ *testing.T, w *failpoint.World, _ *v1alpha1.RemediationPlan) {
			w.CheckImage("web", guarded.Image)
		},
	},
	{
		name: v1alpha1.ActionScale, prepare: scaled, state: v1alpha1.StateInSync,
		target: func(*failpoint.World, *v1alpha1.PlanTarget) {},
		check: func(t *testing.T, w *failpoint.World, _ *v1alpha1.RemediationPlan) {
			if n := *w.Live("web").Spec.Replicas; n != 2 {
				t.Errorf("there are %d replicas", n)
			}
		},
	},
	{
		name: v1alpha1.ActionRestart, state: v1alpha1.StateDrifted,
		prepare: func(_ *testing.T, w *failpoint.World) { w.Drifted("web") },
		target:  func(_ *failpoint.World, p *v1alpha1.PlanTarget) { p.DesiredHash = p.DriftedHash },
		check: func(t *testing.T, w *failpoint.World, p *v1alpha1.RemediationPlan) {
			w.CheckImage("web", remediation.EvilImage)
			if mark := w.Live("web").Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"]; mark != protocol.Token(p, 0) {
				t.Errorf("the mark of the restart is %q, want %q", mark, protocol.Token(p, 0))
			}
		},
	},
}

// ofActions is the table of actions beside Reconcile.
var ofActions = failpoint.Table{Name: "actions", Columns: []string{"Action", "Killed before the write, the next one begins with", "Killed after it, the next one begins with"}}

// TestActionsTakeEffectOnce kills the executor before and after the write of a
// target, whose generation and writes in the audit log are counted in the end: a
// restart above all must not happen twice.
func TestActionsTakeEffectOnce(t *testing.T) {
	shared.StartAssessor(t)
	remediation.Rollouts(t, shared.Config)
	var rows []string
	for _, a := range actions {
		rows = append(rows, string(a.name))
	}
	ofActions.CheckRows(t, rows...)
	for _, a := range actions {
		t.Run(string(a.name), func(t *testing.T) {
			points := []failpoint.Crash{failpoint.Before(failpoint.Effect), failpoint.After(failpoint.Effect)}
			if !failpoint.Long() && a.name != v1alpha1.ActionRestart {
				points = points[1:]
			}
			worlds := shared.MakeEmptyWorlds(t, 1+len(points), func(s *v1alpha1.RemediationPolicySpec) { s.Action = a.name })
			want := acted(t, worlds[0], a, nil)
			for i, point := range points {
				t.Run(point.String(), func(t *testing.T) {
					w := worlds[1+i]
					if got := acted(t, w, a, &point); got != want {
						failpoint.CheckLines(t, "what it left", []string{got}, want)
					}
				})
			}
		})
	}
}

// acted carries a plan with one step out, with a crash or without, and tells what is
// left.
func acted(t *testing.T, outer *failpoint.World, a action, point *failpoint.Crash) string {
	t.Helper()
	w, f := outer.Within(t), failpoint.NewFiles(t)
	defer w.Forget()
	a.prepare(t, w)
	plan := w.PlanWith(w.OwnPolicy, func(p *v1alpha1.PlanTarget) { a.target(w, p) }, "web")
	var first, last *failpoint.Executor
	if point != nil {
		first = shared.Start(t, f, point.Fault())
		first.UntilKilledAt(*point)
	}
	last = shared.Start(t, f, "")
	p := w.UntilAnnounced(plan)
	w.CheckStates(p, "Succeeded: Verified")
	w.Until("web", "its Baseline is told", func(b *v1alpha1.Baseline) error {
		if b.Status.State != a.state || b.Status.PlanName != "" {
			return fmt.Errorf("it is %s, claimed by %q", b.Status.State, b.Status.PlanName)
		}
		return nil
	})
	w.UntilRight(f, p)
	a.check(t, w, p)
	if n := w.CountEffects("web"); n != 1 {
		t.Errorf("%d writes of web were stored", n)
	}
	w.Must(last.Stop())
	if point != nil {
		ofActions.CheckCell(t, string(a.name), point.Column(), failpoint.FirstWrite(*point, first.Writes(), last.Writes()))
	}
	return w.Account(p, f.Records)
}

// brokenAndDrifted has CI deploy what never becomes ready, and somebody change that.
func brokenAndDrifted(t *testing.T, w *failpoint.World) {
	t.Helper()
	w.Deploy(guarded.CI, "web")
	w.Until("web", "it was seen ready", func(b *v1alpha1.Baseline) error {
		if b.Status.LastReady == nil {
			return fmt.Errorf("it was never ready")
		}
		return nil
	})
	w.SetImage(guarded.CI, "web", "broken:1")
	w.Until("web", "the broken state is authorized", func(b *v1alpha1.Baseline) error {
		if guarded.Authorized(b) != 2 {
			return fmt.Errorf("authorized is %d", guarded.Authorized(b))
		}
		return nil
	})
	w.SetEnv(remediation.Mallory, "web", "MORE", "of it")
	w.UntilTold("web", v1alpha1.StateDrifted)
}

// scaled has somebody change the number of replicas.
func scaled(t *testing.T, w *failpoint.World) {
	t.Helper()
	w.Deploy(guarded.CI, "web")
	w.UntilIs("web", "InSync")
	w.Patch(remediation.Mallory, "web", `{"spec":{"replicas":9}}`)
	w.UntilTold("web", v1alpha1.StateDrifted)
}
