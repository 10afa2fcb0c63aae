// SPDX-License-Identifier: Apache-2.0

//go:build integration

package killed

import (
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/failpoint"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// Writes of a plan that makes one Deployment again.
const (
	makeIntended = "plan Running: Intent"
	makeEffect   = "make web"
)

// ofCreations is the table of all writes of a plan that makes a Deployment again.
var ofCreations = failpoint.Table{Name: "creations", Columns: []string{"Write", "Killed before it, the next one begins with", "Killed after it, the next one begins with"}}

// lostCreations are the points after which nobody can know whether the object was
// made and removed since.
var lostCreations = []failpoint.Crash{failpoint.After(makeIntended), failpoint.Before(makeEffect)}

// TestAnExecutorKilledWhileItMakesAnObjectAgain has an object that is gone. Killed
// at a write, the next executor makes it, but for one that died between the intent
// and the answer: then it is made at most once, and the step fails if it is not there.
func TestAnExecutorKilledWhileItMakesAnObjectAgain(t *testing.T) {
	shared.StartAssessor(t)
	remediation.Rollouts(t, shared.Config)
	calm, f := missing(t, 1)[0], failpoint.NewFiles(t)
	e := shared.Start(t, f, "")
	want := calm.Account(made(t, calm, toBeMade(t, calm), f), f.Records)
	calm.Must(e.Stop())
	calm.Forget()
	writes := failpoint.Steady(e.Writes())
	ofCreations.CheckRows(t, writes...)

	points := []failpoint.Crash{failpoint.Before(makeIntended), failpoint.After(makeEffect)}
	if failpoint.Long() {
		points = crashes(writes)
	}
	worlds := missing(t, len(points))
	for i, point := range points {
		t.Run(point.String(), func(t *testing.T) {
			w, f := worlds[i].Within(t), failpoint.NewFiles(t)
			defer w.Forget()
			plan := toBeMade(t, w)
			e := shared.Start(t, f, point.Fault())
			e.UntilKilledAt(point)
			second := shared.Start(t, f, "")
			wait := ""
			if point == lostCreations[0] || point == lostCreations[1] {
				notMade(t, w, plan, f)
				wait = "after a minute "
			} else {
				w.CheckLeft(made(t, w, plan, f), f, want)
			}
			w.Must(second.Stop())
			ofCreations.CheckCell(t, point.Write, point.Column(), wait+failpoint.FirstWrite(point, e.Writes(), second.Writes()))
		})
	}
}

// TestAnExecutorThatSleptMakesNothingOnceThePlanIsCanceled stops one directly before it
// sends a creation, which no version binds, and cancels the plan. Another one says that
// the plan is canceled, once nothing of it can be made any more; then the first one goes
// on and sends. Without leases nothing but the API server's policy keeps the object away.
func TestAnExecutorThatSleptMakesNothingOnceThePlanIsCanceled(t *testing.T) {
	rotation.Share(t, 3) // it takes a minute
	shared.StartAssessor(t)
	remediation.Rollouts(t, shared.Config)
	w, f := missing(t, 1)[0], failpoint.NewFiles(t)
	defer w.Forget()
	plan := toBeMade(t, w)
	first := shared.Start(t, f, "stop:before:"+makeEffect)
	first.UntilStopped()
	w.Control(plan, v1alpha1.PlanCancel)
	second := shared.Start(t, f, "")
	p := notMadeBy(t, w, plan, v1alpha1.PlanCanceled)
	first.GoOn()
	first.UntilForbidden()
	w.UntilRight(f, p)
	w.CheckQuiet(p)
	checkNotThere(t, w)
	w.Must(second.Stop())
}

// missing makes worlds in which somebody has deleted a Deployment.
func missing(t *testing.T, n int) []*failpoint.World {
	t.Helper()
	worlds := shared.MakeEmptyWorlds(t, n)
	each := func(do func(*failpoint.World)) {
		for _, w := range worlds {
			do(w)
		}
	}
	each(func(w *failpoint.World) { w.Deploy(guarded.CI, "web") })
	each(func(w *failpoint.World) { w.UntilIs("web", "InSync") })
	each(func(w *failpoint.World) { w.Delete(remediation.Mallory, "web") })
	each(func(w *failpoint.World) { w.UntilTold("web", v1alpha1.StateMissing) })
	return worlds
}

// toBeMade plans that what is gone is made again.
func toBeMade(t *testing.T, w *failpoint.World) *v1alpha1.RemediationPlan {
	t.Helper()
	return w.PlanWith(w.OwnPolicy, func(p *v1alpha1.PlanTarget) { p.UID, p.DriftType = "", v1alpha1.DriftMissing }, "web")
}

// made waits until a plan has made its object.
func made(t *testing.T, w *failpoint.World, plan *v1alpha1.RemediationPlan, f *failpoint.Files) *v1alpha1.RemediationPlan {
	t.Helper()
	p := w.UntilAnnounced(plan)
	w.CheckStates(p, "Succeeded: Verified")
	w.UntilIs("web", "InSync")
	w.UntilRight(f, p)
	return p
}

// notMade waits until a plan has failed without its object.
func notMade(t *testing.T, w *failpoint.World, plan *v1alpha1.RemediationPlan, f *failpoint.Files) {
	t.Helper()
	p := notMadeBy(t, w, plan, v1alpha1.PlanFailed)
	w.UntilRight(f, p)
	checkNotThere(t, w)
}

// notMadeBy waits until a plan has ended in a phase without its object: a creation that may
// be under way has to be over first.
func notMadeBy(t *testing.T, w *failpoint.World, plan *v1alpha1.RemediationPlan, phase v1alpha1.PlanPhase) *v1alpha1.RemediationPlan {
	t.Helper()
	p := &v1alpha1.RemediationPlan{}
	poll.Until(t, 2*time.Minute, "the plan is "+string(phase), func() error {
		w.Must(shared.Admin.Get(w.Ctx(), client.ObjectKeyFromObject(plan), p))
		if p.Status.Phase != phase {
			return fmt.Errorf("it is %s", remediation.Describe(p))
		}
		return nil
	})
	w.CheckStates(p, string(phase)+": Failed TargetReplaced")
	return p
}

// checkNotThere checks that the object was not made, and is not there.
func checkNotThere(t *testing.T, w *failpoint.World) {
	t.Helper()
	w.CheckUntouched("web")
	if err := shared.Admin.Get(w.Ctx(), client.ObjectKeyFromObject(w.Named("web")), w.Named("web")); !apierrors.IsNotFound(err) {
		t.Errorf("reading web says %v", err)
	}
}
