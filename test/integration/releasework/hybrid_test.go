// SPDX-License-Identifier: Apache-2.0

//go:build integration

package releasework

import (
	"context"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// hybridWorld has two workloads beside the groups, and proxies that tell counts of both.
type hybridWorld struct {
	*groupsWorld
}

// newHybrid has a release that divides the requests of a Service, and four workers.
func newHybrid(t *testing.T) *hybridWorld {
	t.Helper()
	w := &hybridWorld{groupsWorld: newGroups(t)}
	labels := map[string]string{"app": "web-next"}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Name, Name: "web-next"},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: newImage}}},
		}},
	}
	w.Must(admin.Create(w.Ctx(), d))
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
	w.Must(admin.Status().Update(w.Ctx(), d))
	spec := &w.release.Spec
	spec.ServiceName, spec.Rollout.Model = "web", v1alpha1.RolloutModelHybrid
	spec.Variations[0].Workload = &v1alpha1.VariationWorkload{Kind: v1alpha1.VariationDeployment, Name: "web"}
	spec.Variations[1].Workload = &v1alpha1.VariationWorkload{Kind: v1alpha1.VariationDeployment, Name: "web-next"}
	w.leader.Endpoints = w
	return w
}

// Count implements abrelease.Endpoints: each workload has one.
func (w *hybridWorld) Count(context.Context, traffic.Split) (map[string]traffic.Endpoints, bool, error) {
	one := traffic.Endpoints{Ready: 1, Targets: 1, Revisions: []string{"1"}}
	return map[string]traffic.Endpoints{"stable": one, "canary": one}, true, nil
}

// TestRequestsAndWorkersGoOverTogether has the leader decide and the executor scale, each with the rights that the
// chart gives it.
func TestRequestsAndWorkersGoOverTogether(t *testing.T) {
	w := newHybrid(t)
	startExecutor(t, untouched)
	w.unready.Store(1)
	w.Must(w.As("alice").Create(w.Ctx(), w.release))
	r := w.until("the worker of the canary is not ready", waits("Deployment"))
	w.have("before the first stage", 4, 1)
	if r.Status.Split != "stable 100 / canary 0" {
		t.Errorf("in force is %q", r.Status.Split)
	}
	w.unready.Store(0)
	r = w.until("a quarter has gone over", at(1))
	w.have("in the first stage", 3, 1)
	if r.Status.Split != "stable 75 / canary 25" || len(r.Finalizers) != 1 || r.Status.Effective == nil || len(r.Status.Rollout.Groups) != 2 {
		t.Errorf("the status is %+v, and the finalizers %v", r.Status, r.Finalizers)
	}
	r = w.told("all have gone over", 0, over("Completed"))
	w.have("after the run", 0, 4)
	if r.Status.ActiveVariation != "canary" || r.Status.Split != "canary 100 / stable 0" {
		t.Errorf("active is %s of %q", r.Status.ActiveVariation, r.Status.Split)
	}
	w.Must(admin.Delete(w.Ctx(), r))
	w.until("the release goes once the Service gets the requests", func(*v1alpha1.ABRelease) bool {
		return apierrors.IsNotFound(admin.Get(w.Ctx(), client.ObjectKeyFromObject(w.release), &v1alpha1.ABRelease{}))
	})
	w.have("after the release", 0, 4)
	if last := w.router.Applied(); last[len(last)-1].Shares[0].Variation != "stable" {
		t.Errorf("the requests have gone to %+v, and the Service selects stable", last[len(last)-1].Shares)
	}
}

// TestEitherFailureSendsBothBack: a run fails by its requests, and the run that Retry asks for fails by a worker.
func TestEitherFailureSendsBothBack(t *testing.T) {
	w := newHybrid(t)
	startExecutor(t, untouched)
	w.release.Spec.Rollout.Strategy.Stages[0].Duration = &metav1.Duration{Duration: time.Minute}
	w.Must(w.As("alice").Create(w.Ctx(), w.release))
	w.until("a quarter has gone over", at(1))
	r := w.told("all requests and replicas are back", 500, over("RolledBack"))
	w.have("after the run", 4, 0)
	if run := r.Status.Rollout.Run; run.Reason != "StageFailed" || strings.Contains(run.Message, "group") || r.Status.Split != "stable 100 / canary 0" {
		t.Errorf("in force is %q: %+v", r.Status.Split, run)
	}
	w.retry(1)
	w.until("a quarter has gone over once more", func(r *v1alpha1.ABRelease) bool { return at(1)(r) && r.Status.Rollout.Run.Number == 2 })
	w.have("in the second run", 3, 1)
	w.restarted.Store(1)
	r = w.told("all are back once more", 0, over("RolledBack"))
	w.have("after the second run", 4, 0)
	if run := r.Status.Rollout.Run; !strings.Contains(run.Message, "the group of canary: 1 of the canary's pods have restarted") || r.Status.Split != "stable 100 / canary 0" {
		t.Errorf("in force is %q: %+v", r.Status.Split, run)
	}
	made := &v1alpha1.ReleaseWork{}
	w.Must(admin.Get(w.Ctx(), client.ObjectKey{Namespace: w.Name, Name: "web-2-4"}, made))
	if made.Status.Phase != v1alpha1.WorkSucceeded || made.Status.TargetRef.Name != "worker-next" || *made.Status.GroupReplicas != 4 {
		t.Errorf("the last work is %+v", made.Status)
	}
}
