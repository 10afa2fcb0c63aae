// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// overRuns has a guard select Deployments, and what runs without one.
func overRuns(g *v1alpha1.SpecGuard) {
	g.Spec.Resources = []v1alpha1.GuardedResource{
		{APIVersion: "apps/v1", Kind: "Deployment"}, {APIVersion: "apps/v1", Kind: "ReplicaSet"},
		{APIVersion: "batch/v1", Kind: "Job"}, {APIVersion: "v1", Kind: "Pod"},
	}
}

// runControllers runs the controllers of Kubernetes that make pods, until the test ends.
func runControllers(t *testing.T) {
	t.Helper()
	directory := t.TempDir()
	path := filepath.Join(directory, "kubeconfig")
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	controllers, err := apiserver.StartControllers(directory, path, "deployment-controller", "replicaset-controller", "job-controller", "cronjob-controller", "garbage-collector-controller")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := controllers.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
}

// pod is one that runs an image.
func (w *world) pod(name, image string, owners ...metav1.OwnerReference) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name, Labels: map[string]string{"run": name}, OwnerReferences: owners}}
	p.Spec.Containers = []corev1.Container{{Name: "app", Image: image}}
	return p
}

// job is one that runs a pod.
func (w *world) job(name string) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	j.Spec.Template.Spec = w.pod("", guarded.Image).Spec
	j.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	return j
}

// podsOf waits until there are so many pods with a prefix, and returns one of them.
func (w *world) podsOf(prefix string, n int) (one corev1.Pod) {
	w.t.Helper()
	// On a busy machine, kube-controller-manager alone takes half a minute to start.
	poll.Until(w.t, 6*patience, fmt.Sprintf("the controllers make %d pods of %s", n, prefix), func() error {
		var list corev1.PodList
		if err := admin.List(w.Ctx(), &list, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		found := 0
		for i := range list.Items {
			if strings.HasPrefix(list.Items[i].Name, prefix) {
				found++
				one = list.Items[i]
			}
		}
		if found != n {
			return fmt.Errorf("there are %d", found)
		}
		return nil
	})
	return one
}

// baselines are those of the namespace in a line each, by name.
func (w *world) baselines() map[string]string {
	w.t.Helper()
	var list v1alpha1.BaselineList
	w.Must(admin.List(w.Ctx(), &list, client.InNamespace(w.namespace)))
	all := map[string]string{}
	for i := range list.Items {
		all[list.Items[i].Name] = guarded.Describe(&list.Items[i])
	}
	return all
}

// A pod, a Job or a ReplicaSet that a user made by hand is found with the user's name, while the controllers of
// Kubernetes make their own beside it. These have no Baseline, also after the assessor starts again.
func TestAPodThatNoControllerMadeIsUnexpected(t *testing.T) {
	w := newWorld(t)
	runControllers(t)
	p := start(t)
	w.UnderGuard(overRuns)
	w.Deploy(ci, "web")
	w.Must(w.As(ci).Create(w.Ctx(), w.job("migrate")))
	cron := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "nightly"}}
	cron.Spec.Schedule, cron.Spec.Suspend = "0 0 1 1 *", new(true)
	cron.Spec.JobTemplate.Spec = w.job("").Spec
	w.Must(w.As(ci).Create(w.Ctx(), cron))
	made := w.podsOf("web-", 2)
	w.podsOf("migrate-", 1)

	w.Must(w.As(mallory).Create(w.Ctx(), w.pod("miner", "registry.example/miner:1")))
	byHand := w.job("by-hand")
	byHand.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "CronJob", Name: "nightly", UID: cron.UID, Controller: new(true)}}
	w.Must(w.As(mallory).Create(w.Ctx(), byHand))
	w.podsOf("by-hand-", 1)
	w.Must(w.As(mallory).Patch(w.Ctx(), &made, client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec":{"containers":[{"name":"app","image":"registry.example/miner:1"}]}}`))))

	want := map[string]string{
		"deployments.apps.web":   "InSync",
		"jobs.batch.migrate":     "InSync",
		"jobs.batch.by-hand":     "Drifted: Added object by mallory (Untrusted, WriterStamp)",
		"pods.core.miner":        "Drifted: Added object by mallory (Untrusted, WriterStamp)",
		"pods.core." + made.Name: "Drifted: Added object by mallory (Unknown, WriterStamp)",
	}
	exactly := func() error {
		if diff := cmp.Diff(want, w.baselines()); diff != "" {
			return errors.New(diff)
		}
		return nil
	}
	w.Eventually("what users made is found, and nothing else", exactly)
	p.Halt(t)
	start(t)
	w.Must(w.As(mallory).Create(w.Ctx(), w.pod("later", "registry.example/miner:1")))
	want["pods.core.later"] = want["pods.core.miner"]
	w.Eventually("the assessor that starts again finds the same, and the next pod", exactly)
	// A pod that is gone is no drift: no user was to have it.
	w.Must(admin.Delete(w.Ctx(), w.pod("miner", "")))
	delete(want, "pods.core.miner")
	w.Eventually("the pod that is gone is not told any more", exactly)
}

// C1 of the guard's review: an owner of a controller hid what a user had made.
func TestAnOwnerHidesNoObjectOfAUser(t *testing.T) {
	start(t)
	for _, o := range ownables {
		t.Run(o.kind, func(t *testing.T) {
			w := newWorld(t)
			w.guardKind(o.apiVersion, o.kind, o.resource)
			u := w.own(o)
			u.SetAnnotations(map[string]string{v1alpha1.AnnotationWriter: "system:serviceaccount:kube-system:replicaset-controller"})
			u.SetOwnerReferences([]metav1.OwnerReference{w.ownerOf(o)})
			w.Must(w.As(mallory).Create(w.Ctx(), u))
			w.isMallorys("web", 0)
		})
	}
}
