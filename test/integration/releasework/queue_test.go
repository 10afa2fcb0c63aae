// SPDX-License-Identifier: Apache-2.0

//go:build integration

package releasework

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// TestARunGoesOnWithItsChangeWhileAnotherOneIsQueued: the author asks for another image when the clone is made.
// The run scales and promotes what its requests have proved, the guard authorizes that, and the next run takes
// the other image up.
func TestARunGoesOnWithItsChangeWhileAnotherOneIsQueued(t *testing.T) {
	const queuedImage = "registry.example/shop:3"
	startAssessor(t)
	w := newGuardedWorld(t, "alice").releasedBy("alice")
	w.edit(func(r *v1alpha1.ABRelease) { r.Spec.Rollout.Supersede = v1alpha1.SupersedeQueue })
	startExecutor(t, untouched)
	w.ended(w.ask(v1alpha1.WorkCreateClone, new(int32(1))), v1alpha1.WorkSucceeded, "")
	w.run(3, "Running") // the revision of the clone is known now

	w.edit(func(r *v1alpha1.ABRelease) {
		r.Spec.Variations[1].Clone.Image, r.Spec.Variations[1].Clone.Env = queuedImage, nil
	})
	scaled := w.ended(w.ask(v1alpha1.WorkScale, new(int32(2))), v1alpha1.WorkSucceeded, "")
	if image := w.Live("web-canary").Spec.Template.Spec.Containers[0].Image; image != newImage {
		t.Errorf("the clone has %s", image)
	}
	w.authorizedBy("web-canary", "alice", 3, scaled.Name)
	w.run(3, "Promoting")
	updated := w.ended(w.ask(v1alpha1.WorkUpdateBaseline, nil), v1alpha1.WorkSucceeded, "")
	if c := w.Live("web").Spec.Template.Spec.Containers[0]; c.Image != newImage || len(c.Env) != 1 {
		t.Errorf("the baseline has %+v", c)
	}
	w.authorizedBy("web", "alice", 3, updated.Name)

	w.run(4, "Deploying")
	renewed := w.ended(w.ask(v1alpha1.WorkCreateClone, new(int32(1)), func(s *v1alpha1.ReleaseWorkSpec) { s.Run = 4 }), v1alpha1.WorkSucceeded, "")
	if image := w.Live("web-canary").Spec.Template.Spec.Containers[0].Image; image != queuedImage {
		t.Errorf("the clone of the next run has %s", image)
	}
	w.authorizedBy("web-canary", "alice", 4, renewed.Name)
}

// TestAQueuedChangeIsNotTakenForThatOfTheRun: without the policy Queue, and with a clone that another writer has
// changed, the executor refuses to go on.
func TestAQueuedChangeIsNotTakenForThatOfTheRun(t *testing.T) {
	w := newWorld(t)
	w.mayWrite("alice")
	w.releasedBy("alice")
	startExecutor(t, untouched)
	w.ended(w.ask(v1alpha1.WorkCreateClone, new(int32(1))), v1alpha1.WorkSucceeded, "")
	w.run(3, "Promoting")
	w.edit(func(r *v1alpha1.ABRelease) { r.Spec.Variations[1].Clone.Image = "registry.example/shop:3" })
	w.ended(w.ask(v1alpha1.WorkUpdateBaseline, nil), v1alpha1.WorkRefused, v1alpha1.WorkInvalidSpec)

	w.edit(func(r *v1alpha1.ABRelease) { r.Spec.Rollout.Supersede = v1alpha1.SupersedeQueue })
	canary := w.Live("web-canary")
	canary.Spec.Template.Spec.Containers[0].Image = "registry.example/evil:1"
	canary.Annotations[v1alpha1.AnnotationCloneChange] = `{"image":"registry.example/evil:1","podLabels":{"app":"web-canary"}}`
	w.Must(w.As("alice").Update(w.Ctx(), canary))
	w.run(3, "Promoting") // even a discovery server that takes the template for that of the run
	w.ended(w.ask(v1alpha1.WorkUpdateBaseline, nil), v1alpha1.WorkRefused, v1alpha1.WorkInvalidSpec)
}

// edit changes the release as its author.
func (w *world) edit(change func(*v1alpha1.ABRelease)) {
	w.t.Helper()
	w.Must(admin.Get(w.Ctx(), client.ObjectKeyFromObject(w.release), w.release))
	change(w.release)
	w.Must(w.As("alice").Update(w.Ctx(), w.release))
}
