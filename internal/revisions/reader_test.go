// SPDX-License-Identifier: Apache-2.0

package revisions

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// api is an API server that counts reads, and answers each read with err if err is set.
type api struct {
	reads int
	err   error
}

// serve makes a Reader of the objects.
func (a *api) serve(objects ...*unstructured.Unstructured) *Reader {
	builder := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			a.reads++
			if a.err != nil {
				return a.err
			}
			return c.Get(ctx, key, object, opts...)
		},
	})
	for _, object := range objects {
		builder = builder.WithObjects(object)
	}
	return &Reader{Live: builder.Build()}
}

// workload has one container of an image, and a status.
func workload(kind, image string, status map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": kind,
		"metadata": map[string]any{"namespace": "shop", "name": "web", "generation": int64(2)},
		"spec": map[string]any{"template": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": image}}},
		}},
		"status": status,
	}}
}

// rolled is the status of a Deployment or StatefulSet with three pods, so many of which are updated.
func rolled(updated int64) map[string]any {
	return map[string]any{"observedGeneration": int64(2), "replicas": int64(3), "updatedReplicas": updated}
}

func web(kind string) traffic.Workload {
	return traffic.Workload{Kind: kind, Namespace: "shop", Name: "web"}
}

func mustRead(t *testing.T, r *Reader, kind string, labels ...string) rollout.Arm {
	t.Helper()
	arm, err := r.Read(t.Context(), web(kind), labels)
	if err != nil {
		t.Fatal(err)
	}
	return arm
}

// appWeb are the labels of the pods of a workload.
var appWeb = map[string]string{"app": "web"}

func TestReadCountsThePodsOfARevision(t *testing.T) {
	for name, c := range map[string]struct {
		object *unstructured.Unstructured
		labels []string
		want   rollout.Arm
	}{
		"a Deployment whose pods all have the revision": {
			workload("Deployment", "shop:1", rolled(3)), []string{"a"},
			rollout.Arm{Revision: rollout.Revision{Label: "a", Image: "shop:1"}, Labels: appWeb, Targets: 3, Updated: 3},
		},
		"a StatefulSet whose pods all have the revision": {
			workload("StatefulSet", "shop:1", rolled(3)), []string{"a"},
			rollout.Arm{Revision: rollout.Revision{Label: "a", Image: "shop:1"}, Labels: appWeb, Targets: 3, Updated: 3},
		},
		"a DaemonSet counts the nodes that want a pod": {
			workload("DaemonSet", "shop:1", map[string]any{"observedGeneration": int64(2), "desiredNumberScheduled": int64(5), "updatedNumberScheduled": int64(5)}), []string{"a"},
			rollout.Arm{Revision: rollout.Revision{Label: "a", Image: "shop:1"}, Labels: appWeb, Targets: 5, Updated: 5},
		},
		"without a label of the pods the revision has none": {
			workload("Deployment", "shop:1", rolled(3)), nil,
			rollout.Arm{Revision: rollout.Revision{Image: "shop:1"}, Labels: appWeb, Targets: 3, Updated: 3},
		},
		"labels of several revisions give the revision no label": {
			workload("Deployment", "shop:1", rolled(3)), []string{"a", "b"},
			rollout.Arm{Revision: rollout.Revision{Image: "shop:1"}, Labels: appWeb, Targets: 3, Updated: 3},
		},
		"one label does not belong to the revision while pods are to be replaced": {
			workload("Deployment", "shop:1", rolled(1)), []string{"a"},
			rollout.Arm{Revision: rollout.Revision{Image: "shop:1"}, Labels: appWeb, Targets: 3, Updated: 1},
		},
		"no pod counts while the controller has not seen the generation": {
			workload("Deployment", "shop:1", map[string]any{"observedGeneration": int64(1), "replicas": int64(3), "updatedReplicas": int64(3)}), []string{"a"},
			rollout.Arm{Revision: rollout.Revision{Image: "shop:1"}, Labels: appWeb, Targets: 3},
		},
		"a new workload without pods is not complete": {
			workload("Deployment", "shop:1", map[string]any{}), nil,
			rollout.Arm{Revision: rollout.Revision{Image: "shop:1"}, Labels: appWeb, Targets: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := mustRead(t, (&api{}).serve(c.object), c.object.GetKind(), c.labels...)
			if got.Revision.Hash == "" {
				t.Error("the revision has no hash")
			}
			got.Revision.Hash, c.want.Images = "", []string{"web=shop:1"}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("the arm differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadTellsTheImagesOfAllContainers(t *testing.T) {
	container := func(name, image string) any { return map[string]any{"name": name, "image": image} }
	for name, c := range map[string]struct {
		containers, initContainers []any
		want                       []string
	}{
		"init containers come last":              {[]any{container("web", "shop:1"), container("side", "side:1")}, []any{container("move", "move:1")}, []string{"web=shop:1", "side=side:1", "move=move:1"}},
		"a container without an image hides all": {[]any{container("web", "shop:1"), map[string]any{"name": "side"}}, nil, nil},
		"what is no container hides all":         {[]any{container("web", "shop:1"), "side"}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			object := workload("Deployment", "shop:1", rolled(3))
			for field, containers := range map[string][]any{"containers": c.containers, "initContainers": c.initContainers} {
				if err := unstructured.SetNestedSlice(object.Object, containers, "spec", "template", "spec", field); err != nil {
					t.Fatal(err)
				}
			}
			arm, err := armOf(object)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, arm.Images); diff != "" {
				t.Errorf("the images differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadOfAMissingWorkloadIsTheZeroArm(t *testing.T) {
	a := &api{}
	r := a.serve()
	for range 2 {
		if diff := cmp.Diff(rollout.Arm{}, mustRead(t, r, "Deployment", "a")); diff != "" {
			t.Errorf("the arm differs (-want +got):\n%s", diff)
		}
	}
	if a.reads != 2 {
		t.Errorf("the API server was asked %d times, want 2: the workload may appear", a.reads)
	}
}

func TestTheHashIsOfThePodTemplateAlone(t *testing.T) {
	first := workload("Deployment", "shop:1", rolled(3))
	for name, c := range map[string]struct {
		edit func(*unstructured.Unstructured) error
		same bool
	}{
		"another number of replicas is no revision": {func(u *unstructured.Unstructured) error {
			return unstructured.SetNestedField(u.Object, int64(7), "spec", "replicas")
		}, true},
		"a restart is no revision": {func(u *unstructured.Unstructured) error {
			return unstructured.SetNestedField(u.Object, "2026-03-02T12:00:00Z", "spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt")
		}, true},
		"another annotation of the pods is a revision": {func(u *unstructured.Unstructured) error {
			return unstructured.SetNestedField(u.Object, "2", "spec", "template", "metadata", "annotations", "shop/config")
		}, false},
		"another label of the pods is a revision": {func(u *unstructured.Unstructured) error {
			return unstructured.SetNestedField(u.Object, "2", "spec", "template", "metadata", "labels", "version")
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			other := first.DeepCopy()
			if err := c.edit(other); err != nil {
				t.Fatal(err)
			}
			a, b := mustRead(t, (&api{}).serve(first.DeepCopy()), "Deployment"), mustRead(t, (&api{}).serve(other), "Deployment")
			if same := a.Revision.Hash == b.Revision.Hash; same != c.same {
				t.Errorf("the hashes are equal: %t, want %t", same, c.same)
			}
		})
	}
}

func TestReadAsksTheAPIServerOnlyWhereTheRevisionMayChange(t *testing.T) {
	for name, c := range map[string]struct {
		updated       int64
		first, second []string
		reads         int
	}{
		"the same label is remembered":                    {3, []string{"a"}, []string{"a"}, 1},
		"without pods the last revision is remembered":    {3, []string{"a"}, nil, 1},
		"another label is read":                           {3, []string{"a"}, []string{"b"}, 2},
		"labels of several revisions are read":            {3, []string{"a", "b"}, []string{"a", "b"}, 2},
		"a workload that replaces its pods is read again": {1, []string{"a"}, []string{"a"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			a := &api{}
			r := a.serve(workload("Deployment", "shop:1", rolled(c.updated)))
			mustRead(t, r, "Deployment", c.first...)
			mustRead(t, r, "Deployment", c.second...)
			if a.reads != c.reads {
				t.Errorf("the API server was asked %d times, want %d", a.reads, c.reads)
			}
		})
	}
}

func TestReadTellsErrors(t *testing.T) {
	forbidden := errors.New("forbidden")
	bare := workload("Deployment", "shop:1", rolled(3))
	unstructured.RemoveNestedField(bare.Object, "spec", "template")
	for name, c := range map[string]struct {
		api  *api
		want string
	}{
		"of the API server":              {&api{err: forbidden}, "reading Deployment shop/web: forbidden"},
		"of a workload without template": {&api{}, "reading spec.template of Deployment web: it is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			r := c.api.serve(bare.DeepCopy())
			arm, err := r.Read(t.Context(), web("Deployment"), []string{"a"})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("the error is %v, want %q", err, c.want)
			}
			if c.api.err != nil && !errors.Is(err, forbidden) {
				t.Errorf("%v does not wrap the cause", err)
			}
			if diff := cmp.Diff(rollout.Arm{}, arm); diff != "" {
				t.Errorf("the arm differs (-want +got):\n%s", diff)
			}
		})
	}
}
