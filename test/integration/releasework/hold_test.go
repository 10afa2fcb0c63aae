// SPDX-License-Identifier: Apache-2.0

//go:build integration

package releasework

import (
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
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
	a := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Name, Name: "web"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, MinReplicas: &least, MaxReplicas: most,
		},
	}
	w.Must(admin.Create(w.Ctx(), a))
	return a
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
