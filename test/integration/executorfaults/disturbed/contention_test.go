// SPDX-License-Identifier: Apache-2.0

//go:build integration

package disturbed

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/failpoint"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// TestTargetsThatChangeBetweenIntentAndEffect has somebody else be faster.
func TestTargetsThatChangeBetweenIntentAndEffect(t *testing.T) {
	shared.StartAssessor(t)
	remediation.Rollouts(t, shared.Config)
	worlds := shared.MakeWorlds(t, 4)
	atIntent := func(t *testing.T, w *failpoint.World, f *failpoint.Files) (*v1alpha1.RemediationPlan, *failpoint.Executor) {
		t.Helper()
		plan := w.MakePlan()
		e := shared.Start(t, f, "stop:before:"+failpoint.Effect)
		e.UntilStopped()
		return plan, e
	}
	t.Run("another image stays, and nothing more is done", func(t *testing.T) {
		w, f := worlds[0].Within(t), failpoint.NewFiles(t)
		defer w.Forget()
		plan, e := atIntent(t, w, f)
		w.SetImage(remediation.Mallory, "web", "registry.example/evil:2")
		e.GoOn()
		p := w.Ended(plan)
		w.UntilRight(f, p)
		w.CheckStates(p, "Failed: Failed TargetMoved, Skipped Stopped")
		w.CheckImage("web", "registry.example/evil:2")
		w.CheckUntouched("web")
	})
	t.Run("a change of status alone is none", func(t *testing.T) {
		w, f := worlds[1].Within(t), failpoint.NewFiles(t)
		defer w.Forget()
		plan, e := atIntent(t, w, f)
		w.Must(touch(t, w, t.Context(), "web", 1))
		e.GoOn()
		w.UntilSucceeded(plan, f)
	})
	t.Run("an object that was made again is left alone", func(t *testing.T) {
		w, f := worlds[2].Within(t), failpoint.NewFiles(t)
		defer w.Forget()
		plan, e := atIntent(t, w, f)
		w.Delete(remediation.Mallory, "web")
		made := guarded.Workload(w.Name, "web", remediation.EvilImage, 2)
		w.Must(w.As(remediation.Mallory).Create(t.Context(), made))
		e.GoOn()
		p := w.Ended(plan)
		w.UntilRight(f, p)
		w.CheckStates(p, "Failed: Failed TargetReplaced, Skipped Stopped")
		if d := w.Live("web"); d.UID != made.UID || d.Generation != 1 {
			t.Errorf("it is %s at generation %d, made was %s", d.UID, d.Generation, made.UID)
		}
		w.CheckUntouched("web")
	})
	t.Run("an object that is gone is not made again", func(t *testing.T) {
		w, f := worlds[3].Within(t), failpoint.NewFiles(t)
		defer w.Forget()
		plan, e := atIntent(t, w, f)
		w.Delete(remediation.Mallory, "web")
		e.GoOn()
		p := w.Ended(plan)
		w.UntilRight(f, p)
		if s := p.Status.Steps[0]; s.Reason != v1alpha1.ReasonTargetReplaced {
			t.Errorf("the plan is %s", remediation.Describe(p))
		}
		w.CheckUntouched("web")
	})
}

// touch moves the version of a Deployment as a controller does that writes its status.
func touch(t *testing.T, w *failpoint.World, ctx context.Context, name string, n int) error {
	patch := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Touched","status":"True","reason":"Test","message":"%d"}]}}`, n)
	return shared.Admin.Status().Patch(ctx, w.Named(name), client.RawPatch("application/strategic-merge-patch+json", patch))
}

// attempts is how often a step is tried whose target moves.
const attempts = 8

// TestAStormOfStatusWrites moves the targets' versions twenty times a second. A step
// is carried out between two of them, or gives up after eight attempts.
func TestAStormOfStatusWrites(t *testing.T) {
	shared.StartAssessor(t)
	remediation.Rollouts(t, shared.Config)
	w, f := shared.MakeWorlds(t, 1)[0], failpoint.NewFiles(t)
	defer w.Forget()
	ctx, cancel := context.WithCancel(t.Context())
	written, ended := 0, make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ctx.Err() == nil; n++ {
			for _, name := range []string{"web", "api"} {
				if touch(t, w, ctx, name, n) == nil {
					written++
				}
			}
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	}()
	plan := w.MakePlan()
	e := shared.Start(t, f, "")
	// Each of the two steps may take all attempts, whose pauses grow.
	w.UntilPlan(plan, "the first step has ended", func(p *v1alpha1.RemediationPlan) bool {
		return len(p.Status.Steps) > 0 && (p.Status.Steps[0].State == v1alpha1.StepVerified || p.Status.Steps[0].State == v1alpha1.StepSkipped)
	})
	p := w.Ended(plan)
	cancel()
	<-ended
	w.UntilRight(f, p)
	t.Logf("%d status writes; the plan is %s", written, remediation.Describe(p))
	if written < 10 {
		t.Errorf("there were %d status writes", written)
	}
	for i, name := range []string{"web", "api"} {
		tried := 0
		for _, write := range e.Writes() {
			if write == "write "+name {
				tried++
			}
		}
		// On a busy machine each attempt may end before its write: the version that it
		// read is never the newest.
		s := p.Status.Steps[i]
		allBefore := strings.Contains(s.Message, fmt.Sprintf("%d times another writer had written", attempts))
		if tried > attempts || tried < 1 && !allBefore {
			t.Errorf("%s was written %d times: %s", name, tried, s.Message)
		}
		switch {
		case s.State == v1alpha1.StepVerified:
			w.CheckImage(name, guarded.Image)
		case s.State == v1alpha1.StepSkipped && s.Reason == v1alpha1.ReasonTargetContended:
			w.CheckImage(name, remediation.EvilImage)
			w.CheckUntouched(name)
		default:
			t.Errorf("step %d is %s %s", i, s.State, s.Reason)
		}
	}
}

// TestANamespaceThatIsDeleted ends its plans.
func TestANamespaceThatIsDeleted(t *testing.T) {
	shared.StartAssessor(t)
	remediation.Rollouts(t, shared.Config)
	w, f := shared.MakeWorlds(t, 1)[0], failpoint.NewFiles(t)
	defer w.Forget()
	plan := w.MakePlan()
	e := shared.Start(t, f, "stop:after:"+failpoint.Claimed)
	e.UntilStopped()
	// Without its controller a namespace goes on being deleted, with all that is in it.
	w.Must(shared.Admin.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Name}}))
	e.GoOn()
	p := w.Ended(plan)
	w.UntilRight(f, p)
	w.CheckStates(p, "Superseded: Skipped Terminating, Skipped Terminating")
	w.CheckUntouched("web")
}

// TestANamespaceThatIsGone takes plan, targets and Baselines away for good while a
// place is held for them; it is given back within three minutes.
func TestANamespaceThatIsGone(t *testing.T) {
	failpoint.SkipUnlessLong(t)
	shared.StartAssessor(t)
	remediation.Rollouts(t, shared.Config)
	w, f := shared.MakeWorlds(t, 1)[0], failpoint.NewFiles(t)
	defer w.Forget()
	w.MakePlan()
	e := shared.Start(t, f, "stop:after:"+failpoint.Intended)
	e.UntilStopped()
	emptied(t, w)
	e.GoOn()
	poll.Until(t, 4*time.Minute, "the places are given back", func() error {
		for _, l := range w.Ledgers() {
			for i := range l.Status.Entries {
				if entry := &l.Status.Entries[i]; entry.CompletionTime == nil {
					return fmt.Errorf("ledger %s holds one for step %d", l.Name, entry.Step)
				}
			}
		}
		return nil
	})
	w.CheckUntouched("web")
}

// emptied deletes the namespace, and removes all that is in it as the one controller
// that may remove a plan that is under way.
func emptied(t *testing.T, w *failpoint.World) {
	t.Helper()
	w.Must(shared.Admin.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Name}}))
	controller, err := apiserver.As(shared.Config, "system:serviceaccount:kube-system:namespace-controller")
	w.Must(err)
	for _, kind := range []client.Object{&v1alpha1.RemediationPlan{}, &v1alpha1.Baseline{}, &v1alpha1.BaselineRevision{}, &appsv1.Deployment{}, &v1alpha1.SpecGuard{}} {
		w.Must(controller.DeleteAllOf(t.Context(), kind, client.InNamespace(w.Name)))
	}
}
