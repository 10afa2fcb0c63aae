// SPDX-License-Identifier: Apache-2.0

//go:build integration

package admission

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// reviews counts what reached /validate.
func reviews() float64 {
	return w.hook.metric("plumbline_admission_reviews_total", `handler="validate"`)
}

// settle waits until the API server's own cache has what was written last: it
// works on a stale copy first otherwise, and sends a review for that too.
func (p *place) settle() {
	p.t.Helper()
	for _, list := range []func() error{
		func() error {
			d, err := w.kube.AppsV1().Deployments(p.namespace).List(p.t.Context(), metav1.ListOptions{})
			if err != nil {
				return err
			}
			_, err = w.kube.AppsV1().Deployments(p.namespace).List(p.t.Context(), metav1.ListOptions{ResourceVersion: d.ResourceVersion})
			return err
		},
		func() error {
			c, err := w.kube.CoreV1().ConfigMaps(p.namespace).List(p.t.Context(), metav1.ListOptions{})
			if err != nil {
				return err
			}
			_, err = w.kube.CoreV1().ConfigMaps(p.namespace).List(p.t.Context(), metav1.ListOptions{ResourceVersion: c.ResourceVersion})
			return err
		},
	} {
		if err := list(); err != nil {
			p.t.Fatal(err)
		}
	}
}

// Only what changes something that we look at leaves the API server.
func TestMatchConditions(t *testing.T) {
	p := newPlace(t, nil)
	patch := func(text string, subresources ...string) func() error {
		return func() error { return p.patch(alice, text, subresources...) }
	}
	configMap := func(text string) func() error {
		return func() error {
			_, err := w.kube.CoreV1().ConfigMaps(p.namespace).Patch(t.Context(), "c", types.MergePatchType, []byte(text), metav1.PatchOptions{})
			return err
		}
	}
	steps := []struct {
		name string
		do   func() error
		want float64
	}{
		{"a creation", func() error { p.deploy(ci); return nil }, 1},
		{"a patch that changes nothing", patch(`{"spec":{"replicas":1}}`), 0},
		{"another annotation", patch(`{"metadata":{"annotations":{"x":"y"}}}`), 0},
		{"one of our annotations", patch(`{"metadata":{"annotations":{"plumbline.dev/resync-period":"1h"}}}`), 1},
		{"its removal", patch(`{"metadata":{"annotations":{"plumbline.dev/resync-period":null}}}`), 1},
		{"a stamp, which the webhook takes off at once", patch(`{"metadata":{"annotations":{"plumbline.dev/writer":"y"}}}`), 0},
		{"the removal of all others", patch(`{"metadata":{"annotations":null}}`), 0},
		{"a label", patch(`{"metadata":{"labels":{"x":"y"}}}`), 1},
		{"its removal again", patch(`{"metadata":{"labels":{"x":null}}}`), 1},
		{"an owner", patch(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"1"}]}}`), 1},
		{"a finalizer", patch(`{"metadata":{"finalizers":["example.com/f"]}}`), 0},
		{"the spec", patch(`{"spec":{"replicas":2}}`), 1},
		{"the status", patch(`{"status":{"replicas":2}}`, "status"), 0},
		{"the status again", patch(`{"status":{"replicas":1,"observedGeneration":2}}`, "status"), 0},
		{"a scale", patch(`{"spec":{"replicas":3}}`, "scale"), 1},
		{"a scale to the same", patch(`{"spec":{"replicas":3}}`, "scale"), 0},
		{"a deletion", func() error {
			return w.kube.AppsV1().Deployments(p.namespace).Delete(t.Context(), "web", metav1.DeleteOptions{})
		}, 1},
		{"the removal of the last finalizer", patch(`{"metadata":{"finalizers":null}}`), 0},
		{"a kind without spec, created", func() error {
			_, err := w.kube.CoreV1().ConfigMaps(p.namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}}, metav1.CreateOptions{})
			return err
		}, 1},
		{"its first data", configMap(`{"data":{"a":"b"}}`), 1},
		{"its annotation", configMap(`{"metadata":{"annotations":{"a":"b"}}}`), 0},
		{"its binary data", configMap(`{"binaryData":{"c":"Yg=="}}`), 1},
		{"its data's end", configMap(`{"data":null}`), 1},
		{"its deletion", func() error {
			return w.kube.CoreV1().ConfigMaps(p.namespace).Delete(t.Context(), "c", metav1.DeleteOptions{})
		}, 1},
	}
	for _, s := range steps {
		p.settle()
		before := reviews()
		if err := s.do(); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		if got := reviews() - before; got != s.want {
			t.Errorf("%s: %v reviews, want %v", s.name, got, s.want)
		}
	}
	if n := sumSamples(t, apiServerMetrics(t), "apiserver_admission_match_condition_evaluation_errors_total"); n != 0 {
		t.Errorf("%v conditions could not be evaluated", n)
	}
}

// ownedPod is a pod of the ReplicaSet web-1, which stands for the Deployment web.
func (p *place) ownedPod() *corev1.Pod {
	p.t.Helper()
	controller := true
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web-1-a", Namespace: p.namespace, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-1", UID: "o-1", Controller: &controller},
		}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "app", Image: "x:1",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}},
		}}, NodeName: "nowhere"},
	}
	if err := w.client.Create(p.t.Context(), pod); err != nil {
		p.t.Fatal(err)
	}
	return pod
}

func TestPodSubresources(t *testing.T) {
	p := newPlace(t, unchanged)
	pod := p.ownedPod()
	debug := `{"spec":{"ephemeralContainers":[{"name":"debug","image":"busybox"}]}}`
	if _, err := as(t, alice).CoreV1().Pods(p.namespace).Patch(t.Context(), pod.Name, types.StrategicMergePatchType, []byte(debug), metav1.PatchOptions{}, "ephemeralcontainers"); err != nil {
		t.Fatal(err)
	}
	rec := p.waitRecord("the debug container", func(r specguard.WriteRecord) bool { return r.Subresource == "ephemeralcontainers" })
	if rec.User != alice || rec.UID != string(pod.UID) || rec.Kind != "Pod" || len(rec.Fields) != 2 || rec.Fields[0] != "/metadata/ownerReferences/[uid=o-1]" {
		t.Errorf("record %+v", rec)
	}
}

func TestPodResize(t *testing.T) {
	p := newPlace(t, unchanged)
	pod := p.ownedPod()
	// The API server refuses to resize beyond what a node that it knows can give.
	cpus := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Spec.NodeName},
		Status:     corev1.NodeStatus{Capacity: cpus, Allocatable: cpus},
	}
	if err := w.client.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.client.Delete(context.Background(), node); err != nil {
			t.Error(err)
		}
	}()
	resize := []string{"patch", "pod", pod.Name, "--subresource=resize", "-p", `{"spec":{"containers":[{"name":"app","resources":{"requests":{"cpu":"200m"}}}]}}`}
	eventually(t, "the API server knows the node", func() bool {
		_, _, err := p.kubectl(alice, "", append(resize, "--dry-run=server")...)
		return err == nil
	})
	_, stderr := p.mustKubectl(alice, "", resize...)
	if !strings.Contains(stderr, "Warning: plumbline:") {
		t.Errorf("no warning: %q", stderr)
	}
	rec := p.waitRecord("the resize", func(r specguard.WriteRecord) bool { return r.Subresource == "resize" })
	if rec.User != alice || rec.UID != string(pod.UID) || rec.Kind != "Pod" || rec.Name != pod.Name || rec.FieldManager != "kubectl-patch" {
		t.Errorf("record %+v", rec)
	}
	want := []string{"/metadata/ownerReferences/[uid=o-1]", "/spec/containers/[name=app]/resources/requests/cpu"}
	if diff := cmp.Diff(want, rec.Fields); diff != "" {
		t.Errorf("fields (-want +got)\n%s", diff)
	}
}
