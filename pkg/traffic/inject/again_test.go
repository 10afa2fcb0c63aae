// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
)

// anyResources are such that a pod is of any class of service.
func anyResources(t *rapid.T) corev1.ResourceRequirements {
	of := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	}
	return rapid.SampledFrom([]corev1.ResourceRequirements{
		{}, {Limits: of("1", "1Gi")}, {Requests: of("1", "1Gi"), Limits: of("1", "1Gi")}, {Requests: of("100m", "1Gi"), Limits: of("1", "1Gi")},
	}).Draw(t, "resources")
}

// TestItIsTheSameWhetherOthersComeBeforeOrAfterUs as far as the proxy's resources go.
func TestItIsTheSameWhetherOthersComeBeforeOrAfterUs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, mode := anyPod(t), anyMode(t)
		before.Spec.Containers[0].Resources = anyResources(t)
		if rapid.Bool().Draw(t, "limited by annotation") {
			before.Annotations[AnnotationMemoryLimit] = "512Mi"
		}
		injected := must[*corev1.Pod](t)(Pod(before, installation(), mode))
		if patch := must[[]byte](t)(PatchAgain(injected, installation())); patch != nil {
			t.Fatalf("nothing changed, and yet: %s", patch)
		}
		// What somebody else does.
		change := anyResources(t)
		added := corev1.Container{Name: "added", Resources: anyResources(t)}
		atTheFront := rapid.Bool().Draw(t, "at the front")
		alter := func(pod *corev1.Pod) {
			pod.Spec.Containers[0].Resources = change
			if atTheFront {
				pod.Spec.InitContainers = append([]corev1.Container{added}, pod.Spec.InitContainers...)
				return
			}
			pod.Spec.Containers = append(pod.Spec.Containers, added)
		}
		alter(injected)
		alter(before)
		got, want := patchedAgain(t, injected), must[*corev1.Pod](t)(Pod(before, installation(), mode))
		if diff := cmp.Diff(resourcesOfOurs(want), resourcesOfOurs(got)); diff != "" {
			t.Fatalf("(-first +afterwards):\n%s", diff)
		}
		// And nothing else was touched.
		for i := range got.Spec.InitContainers {
			if ours(got.Spec.InitContainers[i]) {
				got.Spec.InitContainers[i].Resources = injected.Spec.InitContainers[i].Resources
			}
		}
		if !equality.Semantic.DeepEqual(injected, got) {
			t.Fatalf("(-want +got):\n%s", cmp.Diff(injected, got))
		}
	})
}

func patchedAgain(t *rapid.T, pod *corev1.Pod) *corev1.Pod {
	patch := must[[]byte](t)(PatchAgain(pod, installation()))
	if patch == nil {
		return pod.DeepCopy()
	}
	decoded := must[jsonpatch.Patch](t)(jsonpatch.DecodePatch(patch))
	var out corev1.Pod
	if err := json.Unmarshal(must[[]byte](t)(decoded.Apply(must[[]byte](t)(json.Marshal(pod)))), &out); err != nil {
		t.Fatal(err)
	}
	return &out
}

func resourcesOfOurs(pod *corev1.Pod) map[string]corev1.ResourceRequirements {
	out := map[string]corev1.ResourceRequirements{}
	for _, c := range pod.Spec.InitContainers {
		if ours(c) {
			out[c.Name] = c.Resources
		}
	}
	return out
}

func TestAContainerOfOthersWithTheLimitsOfTheProxyIsLeftAsItIs(t *testing.T) {
	limits := defaultResources().Limits
	pod, err := Pod(askingPod(func(*corev1.Pod) {}), installation(), Explicit)
	if err != nil {
		t.Fatal(err)
	}
	pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: "theirs", Resources: corev1.ResourceRequirements{Limits: limits}})
	if patch, err := PatchAgain(pod, installation()); patch != nil || err != nil {
		t.Errorf("%s, %v", patch, err)
	}
}

func TestWhoseProxyIsLeftAsItIs(t *testing.T) {
	guaranteed := corev1.ResourceRequirements{Limits: defaultResources().Limits}
	older, err := Pod(askingPod(func(p *corev1.Pod) { p.Annotations[AnnotationMemoryLimit] = "1Gi" }), installation(), Explicit)
	if err != nil {
		t.Fatal(err)
	}
	delete(older.Annotations, AnnotationMemoryLimit)
	older.Spec.Containers[0].Resources = guaranteed
	spoilt, err := Pod(askingPod(func(*corev1.Pod) {}), installation(), Explicit)
	if err != nil {
		t.Fatal(err)
	}
	spoilt.Annotations[AnnotationCPU] = "much"
	spoilt.Spec.Containers[0].Resources = guaranteed
	for name, pod := range map[string]*corev1.Pod{
		"a pod without a proxy":                 askingPod(func(p *corev1.Pod) { p.Spec.Containers[0].Resources = guaranteed }),
		"a copy made with another limit before": older,
		"an annotation that was spoilt since":   spoilt,
	} {
		if patch, err := PatchAgain(pod, installation()); patch != nil || err != nil {
			t.Errorf("%s: %s, %v", name, patch, err)
		}
	}
}
