// SPDX-License-Identifier: Apache-2.0

//go:build integration

package executorfaults

import (
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// Writes of a plan that makes one Deployment again.
const (
	makeIntended = "plan Running: Intent"
	makeEffect   = "make web"
)

// ofCreations is the table of all writes of a plan that makes a Deployment again.
var ofCreations = table{"creations", []string{"Write", "Killed before it, the next one begins with", "Killed after it, the next one begins with"}}

// lostCreations are the points after which nobody can know whether the object was
// made and removed since.
var lostCreations = []crash{{"after", makeIntended}, {"before", makeEffect}}

// TestAnExecutorKilledWhileItMakesAnObjectAgain has an object that is gone. Killed
// at a write, the next executor makes it, but for one that died between the intent
// and the answer: then it is made at most once, and the step fails if it is not there.
func TestAnExecutorKilledWhileItMakesAnObjectAgain(t *testing.T) {
	shared.startAssessor(t)
	remediation.Rollouts(t, shared.Config)
	calm, f := shared.missing(t, 1)[0], newFiles(t)
	e := shared.start(t, f, "")
	want := calm.Account(calm.made(calm.toBeMade(), f), f.Records)
	calm.Must(e.Stop())
	calm.Forget()
	writes := steady(e.writes())
	ofCreations.has(t, writes...)

	points := []crash{{"before", makeIntended}, {"after", makeEffect}}
	if long() {
		points = crashes(writes)
	}
	worlds := shared.missing(t, len(points))
	for i, point := range points {
		t.Run(point.String(), func(t *testing.T) {
			w, f := worlds[i].Within(t), newFiles(t)
			defer w.Forget()
			plan := w.toBeMade()
			e := shared.start(t, f, point.fault())
			e.killedAt(point)
			second := shared.start(t, f, "")
			wait := ""
			if point == lostCreations[0] || point == lostCreations[1] {
				w.notMade(plan, f)
				wait = "after a minute "
			} else {
				w.leaves(w.made(plan, f), f, want)
			}
			w.Must(second.Stop())
			ofCreations.says(t, point.write, point.column(), wait+beginsWith(point, e.writes(), second.writes()))
		})
	}
}

// missing makes worlds in which somebody has deleted a Deployment.
func (c *cluster) missing(t *testing.T, n int) []*world {
	t.Helper()
	worlds := c.empty(t, n)
	each := func(do func(*world)) {
		for _, w := range worlds {
			do(w)
		}
	}
	each(func(w *world) { w.Deploy(guarded.CI, "web") })
	each(func(w *world) { w.UntilIs("web", "InSync") })
	each(func(w *world) { w.Delete(remediation.Mallory, "web") })
	each(func(w *world) { w.told("web", v1alpha1.StateMissing) })
	return worlds
}

// told waits until a Baseline is in a state whose severity is known.
func (w *world) told(name string, state v1alpha1.DriftState) {
	w.t.Helper()
	w.Until(name, "it is told as "+string(state), func(b *v1alpha1.Baseline) error {
		if b.Status.State != state || b.Status.Severity == nil {
			return fmt.Errorf("it is %s", b.Status.State)
		}
		return nil
	})
}

// toBeMade plans that what is gone is made again.
func (w *world) toBeMade() *v1alpha1.RemediationPlan {
	w.t.Helper()
	return w.PlanWith(w.policy, func(p *v1alpha1.PlanTarget) { p.UID, p.DriftType = "", v1alpha1.DriftMissing }, "web")
}

// made waits until a plan has made its object.
func (w *world) made(plan *v1alpha1.RemediationPlan, f *files) *v1alpha1.RemediationPlan {
	w.t.Helper()
	p := w.Ended(plan)
	w.reads(p, "Succeeded: Verified")
	w.UntilIs("web", "InSync")
	w.right(f, p)
	return p
}

// notMade waits until a plan has ended without its object: a creation that may be
// under way has to be over first.
func (w *world) notMade(plan *v1alpha1.RemediationPlan, f *files) {
	w.t.Helper()
	p := &v1alpha1.RemediationPlan{}
	poll.Until(w.t, 2*time.Minute, "the plan has failed", func() error {
		w.Must(shared.Admin.Get(w.Ctx(), client.ObjectKeyFromObject(plan), p))
		if p.Status.Phase != v1alpha1.PlanFailed {
			return fmt.Errorf("it is %s", remediation.Describe(p))
		}
		return nil
	})
	w.reads(p, "Failed: Failed TargetReplaced")
	w.right(f, p)
	w.untouched("web")
	if err := shared.Admin.Get(w.Ctx(), client.ObjectKeyFromObject(w.Named("web")), w.Named("web")); !apierrors.IsNotFound(err) {
		w.t.Errorf("reading web says %v", err)
	}
}
