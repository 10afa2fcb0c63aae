// SPDX-License-Identifier: Apache-2.0

//go:build integration

package executorfaults

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// TestTargetsThatChangeBetweenIntentAndEffect has somebody else be faster.
func TestTargetsThatChangeBetweenIntentAndEffect(t *testing.T) {
	shared.startAssessor(t)
	remediation.Rollouts(t, shared.Config)
	worlds := shared.prepared(t, 4)
	atIntent := func(t *testing.T, w *world, f *files) (*v1alpha1.RemediationPlan, *executor) {
		t.Helper()
		plan := w.planned()
		e := shared.start(t, f, "stop:before:"+effect)
		e.stopped()
		return plan, e
	}
	t.Run("another image stays, and nothing more is done", func(t *testing.T) {
		w, f := worlds[0].Within(t), newFiles(t)
		defer w.Forget()
		plan, e := atIntent(t, w, f)
		w.SetImage(remediation.Mallory, "web", "registry.example/evil:2")
		e.goesOn()
		p := w.Ended(plan)
		w.right(f, p)
		w.reads(p, "Failed: Failed TargetMoved, Skipped Stopped")
		w.runs("web", "registry.example/evil:2")
		w.untouched("web")
	})
	t.Run("a change of status alone is none", func(t *testing.T) {
		w, f := worlds[1].Within(t), newFiles(t)
		defer w.Forget()
		plan, e := atIntent(t, w, f)
		w.Must(w.touch(t.Context(), "web", 1))
		e.goesOn()
		w.succeeded(plan, f)
	})
	t.Run("an object that was made again is left alone", func(t *testing.T) {
		w, f := worlds[2].Within(t), newFiles(t)
		defer w.Forget()
		plan, e := atIntent(t, w, f)
		w.Delete(remediation.Mallory, "web")
		made := guarded.Workload(w.Name, "web", remediation.EvilImage, 2)
		w.Must(w.As(remediation.Mallory).Create(t.Context(), made))
		e.goesOn()
		p := w.Ended(plan)
		w.right(f, p)
		w.reads(p, "Failed: Failed TargetReplaced, Skipped Stopped")
		if d := w.Live("web"); d.UID != made.UID || d.Generation != 1 {
			t.Errorf("it is %s at generation %d, made was %s", d.UID, d.Generation, made.UID)
		}
		w.untouched("web")
	})
	t.Run("an object that is gone is not made again", func(t *testing.T) {
		w, f := worlds[3].Within(t), newFiles(t)
		defer w.Forget()
		plan, e := atIntent(t, w, f)
		w.Delete(remediation.Mallory, "web")
		e.goesOn()
		p := w.Ended(plan)
		w.right(f, p)
		if s := p.Status.Steps[0]; s.Reason != v1alpha1.ReasonTargetReplaced {
			t.Errorf("the plan is %s", remediation.Describe(p))
		}
		w.untouched("web")
	})
}

func (w *world) untouched(name string) {
	w.t.Helper()
	if n := w.effects(name); n != 0 {
		w.t.Errorf("the executor wrote %s %d times", name, n)
	}
}

// touch moves the version of a Deployment as a controller does that writes its status.
func (w *world) touch(ctx context.Context, name string, n int) error {
	patch := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Touched","status":"True","reason":"Test","message":"%d"}]}}`, n)
	return w.c.Admin.Status().Patch(ctx, w.Named(name), client.RawPatch("application/strategic-merge-patch+json", patch))
}

// TestAStormOfStatusWrites moves the targets' versions twenty times a second. A step
// is carried out between two of them, or gives up after eight attempts.
func TestAStormOfStatusWrites(t *testing.T) {
	shared.startAssessor(t)
	remediation.Rollouts(t, shared.Config)
	w, f := shared.prepared(t, 1)[0], newFiles(t)
	defer w.Forget()
	ctx, cancel := context.WithCancel(t.Context())
	written, ended := 0, make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ctx.Err() == nil; n++ {
			for _, name := range []string{"web", "api"} {
				if w.touch(ctx, name, n) == nil {
					written++
				}
			}
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	}()
	began := time.Now()
	plan := w.planned()
	shared.start(t, f, "")
	p := w.Ended(plan)
	took := time.Since(began)
	cancel()
	<-ended
	w.right(f, p)
	t.Logf("%d status writes; after %s the plan is %s", written, took.Round(100*time.Millisecond), remediation.Describe(p))
	if took > 30*time.Second || written < 10 {
		t.Errorf("it took %s, with %d status writes", took, written)
	}
	for i, name := range []string{"web", "api"} {
		switch s := p.Status.Steps[i]; {
		case s.State == v1alpha1.StepVerified:
			w.runs(name, guarded.Image)
		case s.State == v1alpha1.StepSkipped && s.Reason == v1alpha1.ReasonTargetContended:
			w.runs(name, remediation.EvilImage)
			w.untouched(name)
		default:
			t.Errorf("step %d is %s %s", i, s.State, s.Reason)
		}
	}
}

// TestANamespaceThatIsDeleted ends its plans.
func TestANamespaceThatIsDeleted(t *testing.T) {
	shared.startAssessor(t)
	remediation.Rollouts(t, shared.Config)
	w, f := shared.prepared(t, 1)[0], newFiles(t)
	defer w.Forget()
	plan := w.planned()
	e := shared.start(t, f, "stop:after:"+reserved)
	e.stopped()
	// Without its controller a namespace goes on being deleted, with all that is in it.
	w.Must(shared.Admin.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Name}}))
	e.goesOn()
	p := w.Ended(plan)
	w.right(f, p)
	w.reads(p, "Superseded: Skipped Terminating, Skipped Terminating")
	w.untouched("web")
}

// TestANamespaceThatIsGone takes plan, targets and Baselines away for good while a
// place is held for them; it is given back within three minutes.
func TestANamespaceThatIsGone(t *testing.T) {
	takesLong(t)
	shared.startAssessor(t)
	remediation.Rollouts(t, shared.Config)
	w, f := shared.prepared(t, 1)[0], newFiles(t)
	defer w.Forget()
	w.planned()
	e := shared.start(t, f, "stop:after:"+intended)
	e.stopped()
	w.emptied()
	e.goesOn()
	w.patient(4*time.Minute, "the places are given back", func() error {
		for _, l := range w.Ledgers() {
			for i := range l.Status.Entries {
				if entry := &l.Status.Entries[i]; entry.SettledAt == nil {
					return fmt.Errorf("ledger %s holds one for step %d", l.Name, entry.Step)
				}
			}
		}
		return nil
	})
	w.untouched("web")
}

// emptied deletes the namespace, and removes all that is in it as the one controller
// that may remove a plan that is under way.
func (w *world) emptied() {
	w.t.Helper()
	w.Must(w.c.Admin.Delete(w.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Name}}))
	controller, err := apiserver.As(w.c.Config, "system:serviceaccount:kube-system:namespace-controller")
	w.Must(err)
	for _, kind := range []client.Object{&v1alpha1.RemediationPlan{}, &v1alpha1.Baseline{}, &v1alpha1.BaselineRevision{}, &appsv1.Deployment{}, &v1alpha1.SpecGuard{}} {
		w.Must(controller.DeleteAllOf(w.t.Context(), kind, client.InNamespace(w.Name)))
	}
}
