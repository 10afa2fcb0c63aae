// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

const manifest = `apiVersion: plumbline.dev/v1alpha1
kind: ABRelease
metadata: {name: web}
spec:
  serviceName: web
  stable: blue
  variations:
  - {name: blue, workload: {kind: Deployment, name: web-blue}}
  - {name: green, workload: {kind: Deployment, name: web-green}}
  trafficSplit: {type: Percentage, percentages: {blue: 100, green: 0}}
  rollout: {strategyName: canary}
---
apiVersion: plumbline.dev/v1alpha1
kind: RolloutStrategy
metadata: {name: canary}
spec:
  stages:
  - {trafficPercentage: 10, duration: 5m}
  - {trafficPercentage: LAST, duration: 10m}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: passed-over}
`

func TestLint(t *testing.T) {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{"plumbline.dev/managed": "true"}}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"version": "blue"}, ClusterIP: "10.0.0.1", Ports: []corev1.ServicePort{{Name: "http", Port: 80}},
	}}
	elder := rolling()
	elder.Name, elder.UID, elder.Spec.ServiceName = "admin", "u0", "admin"
	elder.Spec.Variations[1].Workload = &v1alpha1.VariationWorkload{Kind: v1alpha1.VariationDeployment, Name: "web-green"}
	alone := service.DeepCopy()
	alone.Labels, alone.Spec.SessionAffinity = nil, corev1.ServiceAffinityClientIP
	busy := rolling()
	for i := range busy.Status.Observed {
		busy.Status.Observed[i].Failed, busy.Status.Observed[i].WindowSeconds = new(31-21*int64(i)), 60
	}
	for name, tc := range map[string]struct {
		last    string
		objects []client.Object
		// workloads are the ready pods of those that exist.
		workloads map[string]int64
		forbidden bool
		args      []string
		code      int
	}{
		"sound":                 {"100", []client.Object{service}, map[string]int64{"web-blue": 3, "web-green": 3}, false, nil, 0},
		"measured":              {"100", []client.Object{service, busy}, map[string]int64{"web-blue": 3, "web-green": 3}, false, nil, 0},
		"shared":                {"100", []client.Object{service, elder}, map[string]int64{"web-blue": 3, "web-green": 3}, false, nil, 1},
		"given":                 {"50", []client.Object{service, busy}, map[string]int64{"web-blue": 3, "web-green": 3}, false, []string{"--requests-per-minute", "60", "--error-rate", "0.3%"}, 1},
		"unmanaged":             {"100", []client.Object{alone}, map[string]int64{"web-blue": 3, "web-green": 3}, false, nil, 1},
		"faulty":                {"50", nil, map[string]int64{"web-blue": 3}, false, nil, 1},
		"forbidden":             {"100", []client.Object{service}, nil, true, nil, 2},
		"no-number":             {"[]", []client.Object{service}, nil, false, nil, 2},
		"half-given":            {"100", nil, nil, false, []string{"--error-rate", "0.3"}, 2},
		"a-rate-that-cannot-be": {"100", nil, nil, false, []string{"--error-rate", "NaN", "--requests-per-minute", "1"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			f := clitest.Cluster{Objects: tc.objects}
			f.Hooks.Get = func(ctx context.Context, api client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
				u, is := object.(*unstructured.Unstructured)
				if !is {
					return api.Get(ctx, key, object, options...)
				}
				resource := schema.GroupResource{Group: "apps", Resource: "deployments"}
				ready, exists := tc.workloads[key.Name]
				switch {
				case tc.forbidden:
					return apierrors.NewForbidden(resource, key.Name, nil)
				case !exists:
					return apierrors.NewNotFound(resource, key.Name)
				}
				u.Object["status"] = map[string]any{"readyReplicas": ready}
				u.Object["spec"] = map[string]any{"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"version": key.Name[len("web-"):]}}}}
				return nil
			}
			got := f.Run(t, commands, replaceLast(tc.last), append([]string{"release", "lint", "-f", "-"}, tc.args...)...)
			if got.Code != tc.code {
				t.Errorf("exit code %d, want %d: %s", got.Code, tc.code, got.Stderr)
			}
			golden.Check(t, "testdata/lint-"+name+".txt", got.Stdout+got.Stderr)
		})
	}
	for name, input := range map[string]string{"no release": "kind: x\n", "an unknown field": "apiVersion: plumbline.dev/v1alpha1\nkind: ABRelease\nspek: {}\n", "no document": ""} {
		if got := clitest.RunOffline(t, commands, input, "release", "lint", "-f", "-"); got.Code != 2 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// replaceLast returns the manifest with the percentage of the last stage.
func replaceLast(percentage string) string { return strings.Replace(manifest, "LAST", percentage, 1) }
