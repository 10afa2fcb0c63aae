// SPDX-License-Identifier: Apache-2.0

//go:build integration

package releasework

import (
	"fmt"
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
)

// mayScale gives a user the right to write the autoscalers of the namespace.
func (w *world) mayScale(user string) {
	w.t.Helper()
	meta := metav1.ObjectMeta{Namespace: w.Name, Name: user + "-scales"}
	w.Must(admin.Create(w.Ctx(), &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"autoscaling"}, Resources: []string{"horizontalpodautoscalers"}, Verbs: []string{"update"},
	}}}))
	subject, role := rbacv1.Subject{Kind: rbacv1.UserKind, Name: user}, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name}
	w.Must(admin.Create(w.Ctx(), &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: role, Subjects: []rbacv1.Subject{subject}}))
	w.Must(apiserver.AwaitBound(w.Ctx(), admin, subject, w.Name, role))
}

// autoscale creates the autoscaler of the Deployment web.
func (w *world) autoscale(least, most int32) *autoscalingv2.HorizontalPodAutoscaler {
	w.t.Helper()
	a := w.autoscaler(least, most)
	w.Must(admin.Create(w.Ctx(), a))
	return a
}

func (w *world) autoscaler(least, most int32) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Name, Name: "web"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, MinReplicas: &least, MaxReplicas: most,
		},
	}
}

// holds asks for the minimum of the stable variation's autoscaler.
func (w *world) holds(replicas int32) *v1alpha1.ReleaseWork {
	w.t.Helper()
	return w.ask(v1alpha1.WorkHoldMinReplicas, &replicas, func(s *v1alpha1.ReleaseWorkSpec) { s.Variation = "stable" })
}

// least reads the minimum of an autoscaler.
func (w *world) least(a *autoscalingv2.HorizontalPodAutoscaler) int32 {
	w.t.Helper()
	w.Must(admin.Get(w.Ctx(), client.ObjectKeyFromObject(a), a))
	return *a.Spec.MinReplicas
}

// holdingWorld is a world whose release asks for a minimum.
func holdingWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.release = w.releaseOf("alice")
	w.release.Spec.Rollout.Fallback = v1alpha1.FallbackHoldMinReplicas
	w.Must(w.As("alice").Create(w.Ctx(), w.release))
	w.run(3, "Running")
	startExecutor(t, untouched)
	return w
}

func TestTheMinimumOfAnAutoscalerIsHeldForARun(t *testing.T) {
	w := holdingWorld(t)
	a := w.autoscale(2, 9)

	w.ended(w.holds(6), v1alpha1.WorkRefused, v1alpha1.WorkNotAllowed)
	w.mayScale("alice")
	held := w.ended(w.holds(6), v1alpha1.WorkSucceeded, "")
	if n, h := w.least(a), held.Status.Held; n != 6 || h == nil || *h.FormerMinReplicas != 2 || *h.MinReplicas != 6 || h.UID != string(a.UID) {
		t.Errorf("the minimum is %d, and the work holds %+v", n, h)
	}
	if a.Labels[v1alpha1.LabelReleaseWork] != string(held.UID) {
		t.Errorf("the autoscaler has the labels %v", a.Labels)
	}
	w.ended(w.holds(8), v1alpha1.WorkSucceeded, "")
	w.run(3, "RolledBack")
	w.ended(w.holds(0), v1alpha1.WorkSucceeded, "")
	if n := w.least(a); n != 2 {
		t.Errorf("after the run the minimum is %d", n)
	}
}

func TestTheMinimumThatAPersonSetsStays(t *testing.T) {
	w := holdingWorld(t)
	a := w.autoscale(2, 9)
	w.mayScale("alice")
	w.ended(w.holds(6), v1alpha1.WorkSucceeded, "")
	w.Must(admin.Get(w.Ctx(), client.ObjectKeyFromObject(a), a))
	a.Spec.MinReplicas = new(int32(4))
	w.Must(admin.Update(w.Ctx(), a))
	w.run(3, "Completed")
	back := w.ended(w.holds(0), v1alpha1.WorkSucceeded, "")
	if n := w.least(a); n != 4 || !strings.Contains(back.Status.Message, "another writer has set minReplicas") {
		t.Errorf("the minimum is %d: %q", n, back.Status.Message)
	}
}

func TestAMinimumThatCannotBeHeldIsRefusedByName(t *testing.T) {
	w := holdingWorld(t)
	w.mayScale("alice")
	w.ended(w.holds(6), v1alpha1.WorkRefused, v1alpha1.WorkAutoscalerMissing)
	a := w.autoscale(2, 5)
	w.ended(w.holds(6), v1alpha1.WorkRefused, v1alpha1.WorkAutoscalerTooSmall)
	second := a.DeepCopy()
	second.ObjectMeta = metav1.ObjectMeta{Namespace: w.Name, Name: "web-2"}
	w.Must(admin.Create(w.Ctx(), second))
	w.ended(w.holds(4), v1alpha1.WorkRefused, v1alpha1.WorkAutoscalerAmbiguous)
	if n := w.least(a); n != 2 {
		t.Errorf("the minimum is %d", n)
	}
}

// guardedHold is a world whose release holds the minimum of an autoscaler that a guard selects. Its Baselines are
// those of autoscalers.
func guardedHold(t *testing.T, users ...string) (*world, *autoscalingv2.HorizontalPodAutoscaler) {
	t.Helper()
	w := newWorld(t)
	w.mayScale("alice")
	w.UnderGuard(trusts(users...), func(g *v1alpha1.SpecGuard) {
		g.Spec.Resources = append(g.Spec.Resources, v1alpha1.GuardedResource{APIVersion: "autoscaling/v2", Kind: "HorizontalPodAutoscaler"})
	})
	w.Resource = schema.GroupResource{Group: "autoscaling", Resource: "horizontalpodautoscalers"}
	a := w.autoscaler(2, 9)
	w.Must(w.As(guarded.CI).Create(w.Ctx(), a))
	w.UntilIs("web", "InSync")
	w.release = w.releaseOf("alice")
	w.release.Spec.Rollout.Fallback = v1alpha1.FallbackHoldMinReplicas
	w.Must(w.As("alice").Create(w.Ctx(), w.release))
	w.run(3, "Running")
	return w, a
}

// authorizedAlone waits until the autoscaler is in sync with a state that no run authorized.
func (w *world) authorizedAlone(by string) {
	w.t.Helper()
	w.Until("web", "the autoscaler is as it was before the run", func(b *v1alpha1.Baseline) error {
		if err := guarded.Reads("InSync")(b); err != nil {
			return err
		}
		if a := b.Spec.Authorized; a.By != by || a.Release != nil {
			return fmt.Errorf("authorized is %+v", a)
		}
		return nil
	})
}

// A minimum that a run held was drift for the time of the run.
func TestTheGuardAuthorizesTheMinimumThatARunHolds(t *testing.T) {
	startAssessor(t)
	w, a := guardedHold(t, "alice")
	startExecutor(t, untouched)
	first := w.ended(w.holds(6), v1alpha1.WorkSucceeded, "")
	w.authorizedBy("web", "alice", 3, first.Name)
	more := w.ended(w.holds(8), v1alpha1.WorkSucceeded, "")
	w.authorizedBy("web", "alice", 3, more.Name)
	w.run(3, "RolledBack")
	w.ended(w.holds(0), v1alpha1.WorkSucceeded, "")
	w.authorizedAlone(guarded.CI)

	// The next run begins from there, and another number is drift by its writer.
	w.run(4, "Running")
	again := w.ended(w.ask(v1alpha1.WorkHoldMinReplicas, new(int32(7)), func(s *v1alpha1.ReleaseWorkSpec) { s.Variation, s.Run = "stable", 4 }), v1alpha1.WorkSucceeded, "")
	w.authorizedBy("web", "alice", 4, again.Name)
	w.Must(admin.Get(w.Ctx(), client.ObjectKeyFromObject(a), a))
	a.Spec.MinReplicas = new(int32(1))
	w.Must(w.As(mallory).Update(w.Ctx(), a))
	w.drifts("web")
}

// The works of a release go with it, and so may the release before any assessor has looked.
func TestAMinimumThatWasPutBackIsAuthorizedWithoutItsRelease(t *testing.T) {
	away := startAssessor(t)
	w, _ := guardedHold(t, "alice")
	startExecutor(t, untouched)
	held := w.ended(w.holds(6), v1alpha1.WorkSucceeded, "")
	w.authorizedBy("web", "alice", 3, held.Name)
	away.Halt(t)
	w.run(3, "RolledBack")
	back := w.ended(w.holds(0), v1alpha1.WorkSucceeded, "")
	w.Must(admin.Delete(w.Ctx(), w.release))
	for _, made := range []*v1alpha1.ReleaseWork{held, back} { // as the garbage collector does
		w.Must(client.IgnoreNotFound(admin.Delete(w.Ctx(), made)))
	}
	startAssessor(t)
	w.authorizedAlone(guarded.CI)
}

func TestAMinimumWaitsForAGuardThatDistrustsTheAuthor(t *testing.T) {
	startAssessor(t)
	w, a := guardedHold(t)
	startExecutor(t, untouched)
	made := w.holds(6)
	w.until(made, "waiting for trust", func() bool { return made.Status.Reason == v1alpha1.WorkRequesterNotTrusted })
	if n := w.least(a); n != 2 || made.Status.Phase != v1alpha1.WorkPending {
		t.Errorf("the minimum is %d, and the work %+v", n, made.Status)
	}
}
