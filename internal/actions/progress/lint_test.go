// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// ramp is a strategy with these percentages, each for a minute.
func ramp(percentages ...int32) *v1alpha1.RolloutStrategySpec {
	s := &v1alpha1.RolloutStrategySpec{}
	for _, p := range percentages {
		s.Stages = append(s.Stages, v1alpha1.RolloutStage{TrafficPercentage: new(v1alpha1.Percent(p)), Duration: &metav1.Duration{Duration: time.Minute}})
	}
	return s
}

func service(address, port string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.ServiceSpec{ClusterIP: address, Ports: []corev1.ServicePort{{Name: port, Port: 80}}}}
}

func TestHints_NameALabelThatIsMissing(t *testing.T) {
	f := &ManifestFacts{Service: service("10.0.0.1", "http")}
	if got := Hints(&v1alpha1.ABRelease{}, f); len(got) != 1 || got[0].Field != "spec.serviceName" {
		t.Errorf("without the label: %+v", got)
	}
	f.Service.Labels = map[string]string{"plumbline.dev/managed": "true"}
	if got := Hints(&v1alpha1.ABRelease{}, f); got != nil {
		t.Errorf("with the label: %+v", got)
	}
	if got := Hints(&v1alpha1.ABRelease{}, &ManifestFacts{}); got != nil {
		t.Errorf("of a Service that was not read: %+v", got)
	}
}

// cloned has variation b be a clone of Deployment a with these pod labels.
func cloned(podLabels map[string]v1alpha1.LabelValue, executor Binding) func(*v1alpha1.ABRelease, *ManifestFacts) {
	return func(r *v1alpha1.ABRelease, f *ManifestFacts) {
		r.Spec.Variations[1] = v1alpha1.Variation{Name: "b", Clone: &v1alpha1.VariationClone{Image: "shop:2", PodLabels: podLabels}}
		r.Spec.Rollout.Promotion = v1alpha1.PromotionUpdateBaseline
		delete(f.Workloads, "b")
		a, labels := f.Workloads["a"], map[string]any{"app": "web", "version": "a"}
		a.Object = &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "shop", "name": "a"},
			"spec": map[string]any{"selector": map[string]any{"matchLabels": labels}, "template": map[string]any{
				"metadata": map[string]any{"labels": labels}, "spec": map[string]any{"containers": []any{map[string]any{"name": "app", "image": "shop:1"}}},
			}},
		}}
		f.Workloads["a"], f.Executor = a, executor
	}
}

// rival has another release of the namespace roll out to the same canary. change gets the release as it is stored,
// which is not there yet, and the other one.
func rival(change func(stored, other *v1alpha1.ABRelease)) func(*v1alpha1.ABRelease, *ManifestFacts) {
	return func(r *v1alpha1.ABRelease, f *ManifestFacts) {
		other := r.DeepCopy()
		other.Name, other.UID, other.Spec.ServiceName = "admin", "u1", "admin"
		if change != nil {
			change(&f.Current, other)
		}
		f.Releases = []v1alpha1.ABRelease{*other}
	}
}

func TestLint_FindsTheFaultsOfARelease(t *testing.T) {
	for name, tc := range map[string]struct {
		change       func(*v1alpha1.ABRelease, *ManifestFacts)
		want, unread []string
	}{
		"a sound manifest":                   {func(*v1alpha1.ABRelease, *ManifestFacts) {}, nil, nil},
		"a manifest that the server refuses": {func(_ *v1alpha1.ABRelease, f *ManifestFacts) { f.Refusal = "no" }, []string{""}, nil},
		"a Service that is not there":        {func(_ *v1alpha1.ABRelease, f *ManifestFacts) { f.ServiceExists = false }, []string{"spec.serviceName"}, nil},
		"a Service that may not be read": {
			func(_ *v1alpha1.ABRelease, f *ManifestFacts) { f.ServiceExists, f.ServiceUnread = false, "forbidden" }, nil, []string{"Service web: forbidden"},
		},
		"a Service that proxies can manage": {func(_ *v1alpha1.ABRelease, f *ManifestFacts) { f.Service = service("10.0.0.1", "http") }, nil, nil},
		"a Service without an address":      {func(_ *v1alpha1.ABRelease, f *ManifestFacts) { f.Service = service("None", "http") }, []string{"spec.serviceName"}, nil},
		"a Service without HTTP":            {func(_ *v1alpha1.ABRelease, f *ManifestFacts) { f.Service = service("10.0.0.1", "smtp") }, []string{"spec.serviceName"}, nil},
		"a workload that is not there":      {func(_ *v1alpha1.ABRelease, f *ManifestFacts) { delete(f.Workloads, "b") }, []string{"spec.variations[1].workload"}, nil},
		"a Service that selects the canary": {
			func(_ *v1alpha1.ABRelease, f *ManifestFacts) { f.ServiceSelector = map[string]string{"app": "web"} }, []string{"spec.variations[1].workload"}, nil,
		},
		"a canary with too few pods": {
			func(_ *v1alpha1.ABRelease, f *ManifestFacts) {
				f.Strategy = ramp(50, 100)
				f.Workloads["a"] = WorkloadFacts{Exists: true, Ready: 9}
			},
			[]string{"spec.variations[1].workload"}, nil,
		},
		"a clone": {cloned(map[string]v1alpha1.LabelValue{"version": "b"}, Binding{Exists: true}), nil, nil},
		"a clone whose pods the Service selects": {
			cloned(map[string]v1alpha1.LabelValue{"tier": "b"}, Binding{Exists: true}), []string{"spec.variations[b].clone.podLabels"}, nil,
		},
		"a clone where the executor may not write": {cloned(map[string]v1alpha1.LabelValue{"version": "b"}, Binding{}), []string{"spec"}, nil},
		"a clone and bindings that may not be read": {
			cloned(map[string]v1alpha1.LabelValue{"version": "b"}, Binding{Unread: "forbidden"}), nil, []string{"RoleBindings of namespace shop: forbidden"},
		},
		"a minimum that is held where the executor may not write": {
			func(r *v1alpha1.ABRelease, _ *ManifestFacts) {
				r.Spec.Rollout.Fallback = v1alpha1.FallbackHoldMinReplicas
			}, []string{"spec"}, nil,
		},
		"another release with the canary":               {rival(nil), []string{"spec.variations"}, nil},
		"another release with the canary as its stable": {rival(func(_, other *v1alpha1.ABRelease) { other.Spec.Stable = "b" }), nil, nil},
		"an elder release with the canary": {rival(func(stored, _ *v1alpha1.ABRelease) {
			stored.UID, stored.CreationTimestamp = "u2", metav1.Unix(9, 0)
		}), []string{"spec.variations"}, nil},
		"a younger release with the canary": {rival(func(stored, other *v1alpha1.ABRelease) {
			stored.UID, other.CreationTimestamp = "u2", metav1.Unix(9, 0)
		}), nil, nil},
		"the release itself as it is stored": {rival(func(_, other *v1alpha1.ABRelease) { other.Name = "web" }), nil, nil},
		"releases that may not be read": {
			func(_ *v1alpha1.ABRelease, f *ManifestFacts) { f.ReleasesUnread = "forbidden" }, nil, []string{"ABReleases of namespace shop: forbidden"},
		},
		"a strategy that is not there": {func(_ *v1alpha1.ABRelease, f *ManifestFacts) { f.Strategy = nil }, []string{"spec.rollout"}, nil},
		"a strategy that descends":     {func(_ *v1alpha1.ABRelease, f *ManifestFacts) { f.Strategy = ramp(50, 10) }, []string{"spec.rollout"}, nil},
		"a strategy that ends early": {
			func(_ *v1alpha1.ABRelease, f *ManifestFacts) { f.Strategy = ramp(5, 10) }, []string{"spec.rollout.strategy.stages[1].trafficPercentage"}, nil,
		},
		"a release without a rollout needs no strategy": {
			func(r *v1alpha1.ABRelease, f *ManifestFacts) { r.Spec.Rollout, f.Strategy = nil, nil }, nil, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := &v1alpha1.ABRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
			r.Spec.ServiceName, r.Spec.Stable = "web", "a"
			r.Spec.Rollout = &v1alpha1.Rollout{StrategyName: "canary"}
			for _, v := range []v1alpha1.VariationName{"a", "b"} {
				r.Spec.Variations = append(r.Spec.Variations, v1alpha1.Variation{Name: v, Workload: &v1alpha1.VariationWorkload{Kind: "Deployment", Name: string(v)}})
			}
			f := &ManifestFacts{
				ServiceExists: true, ServiceSelector: map[string]string{"app": "web", "version": "a"}, Strategy: ramp(10, 100),
				Workloads: map[v1alpha1.VariationName]WorkloadFacts{
					"a": {Exists: true, Ready: 3, PodLabels: map[string]string{"app": "web", "version": "a"}},
					"b": {Exists: true, Ready: 1, PodLabels: map[string]string{"app": "web", "version": "b"}},
				},
			}
			tc.change(r, f)
			findings, unread := LintRelease(r, f)
			var got []string
			for _, finding := range findings {
				got = append(got, finding.Field)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.unread, unread); diff != "" {
				t.Errorf("unread (-want +got):\n%s", diff)
			}
		})
	}
	if got := LintStrategy(ramp(10, 100)); got != nil {
		t.Errorf("%+v", got)
	}
	if got := LintStrategy(ramp(10)); len(got) != 1 || got[0].Field != "spec.stages[0].trafficPercentage" {
		t.Errorf("%+v", got)
	}
	if got := LeastDuration(ramp(10, 50, 100)); got != 3*time.Minute {
		t.Errorf("least duration %s", got)
	}
}
