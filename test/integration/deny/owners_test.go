// SPDX-License-Identifier: Apache-2.0

//go:build integration

package deny

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness"
)

// manyOwners is about as many owners as etcd has room for.
const manyOwners = 12_000

// strangeOwners are of a kind that no API server serves, which the garbage collector leaves alone.
func strangeOwners(n int) []metav1.OwnerReference {
	owners := make([]metav1.OwnerReference, n)
	for i := range owners {
		owners[i] = metav1.OwnerReference{APIVersion: "example.net/v1", Kind: "None", Name: "o", UID: types.UID(fmt.Sprint(i))}
	}
	return owners
}

// TestTwelveThousandOwnersChangeNoAnswer: a tenant fills the owners, and an
// expression that fails would let the write through.
func TestTwelveThousandOwnersChangeNoAnswer(t *testing.T) {
	s := newShop(t, nil)
	s.guarded(t)
	trusted, root := as(t, ci), as(t, "root", "roots")
	image := client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"shop:2"}]}}}}`))
	annotation := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"a":"b"}}}`))
	noOwners := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"ownerReferences":null}}`))
	scale := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":2}}`))
	debug := client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec":{"ephemeralContainers":[{"name":"debug","image":"shop:1"}]}}`))
	dry := &client.SubResourcePatchOptions{PatchOptions: client.PatchOptions{DryRun: []string{metav1.DryRunAll}}}
	failed := policyFailures(t)
	for _, owners := range []int{0, manyOwners} {
		name := fmt.Sprintf("web-%d", owners)
		d := deployment(s.namespace, name)
		d.OwnerReferences = strangeOwners(owners)
		mustDo(t, trusted.Create(t.Context(), d))
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
		pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "shop:1"}}
		pod.OwnerReferences = append(strangeOwners(owners), metav1.OwnerReference{
			APIVersion: "apps/v1", Kind: "Deployment", Name: name, UID: d.UID, Controller: new(true), // one that exists, for the garbage collector
		})
		mustDo(t, trusted.Create(t.Context(), pod))
		write := func(c client.Client, p client.Patch) func() error {
			return func() error { return c.Patch(t.Context(), d.DeepCopy(), p, client.DryRunAll) }
		}
		through := func(c client.Client, o client.Object, sub string, p client.Patch) func() error {
			return func() error { return c.SubResource(sub).Patch(t.Context(), o, p, dry) }
		}
		cases := map[string]struct {
			do      func() error
			refused string // part of the message
		}{
			"a stranger changes the image":            {write(root, image), "root may not change Deployment"},
			"a stranger annotates":                    {write(root, annotation), ""},
			"a trusted writer changes the image":      {write(trusted, image), ""},
			"a stranger scales":                       {through(root, d.DeepCopy(), "scale", scale), "root may not scale deployments"},
			"a trusted writer scales":                 {through(trusted, d.DeepCopy(), "scale", scale), ""},
			"a stranger deletes":                      {func() error { return root.Delete(t.Context(), d.DeepCopy(), client.DryRunAll) }, "root may not delete Deployment"},
			"a stranger debugs a pod of the workload": {through(root, pod.DeepCopy(), "ephemeralcontainers", debug), "root may not change Pod"},
			"a trusted writer debugs a pod":           {through(trusted, pod.DeepCopy(), "ephemeralcontainers", debug), ""},
			"a stranger creates an object of this sort": {func() error {
				next := deployment(s.namespace, name+"-next")
				next.OwnerReferences = strangeOwners(owners)
				return root.Create(t.Context(), next, client.DryRunAll)
			}, "root may not create Deployment"},
		}
		if owners > 0 {
			cases["a stranger takes the owners off"] = struct {
				do      func() error
				refused string
			}{write(root, noOwners), "root may not change the owners of Deployment"}
		}
		for title, tc := range cases {
			t.Run(fmt.Sprintf("%d owners, %s", owners, title), func(t *testing.T) {
				if tc.refused == "" {
					wantAllowed(t, tc.do())
					return
				}
				wantRefused(t, tc.do(), tc.refused)
			})
		}
	}
	if n := policyFailures(t) - failed; n != 0 {
		t.Errorf("%v expressions could not be evaluated", n)
	}
}

// L5 of the guard's review, which docs/reference/deny.md names as a limit: a pod names its
// ReplicaSet and no owner of that, so a guard over a custom owner does not see the pod. A
// guard that lists ReplicaSet as well sees it.
func TestAPodOfACustomOwnersReplicaSetIsSeenWhereTheGuardListsReplicaSets(t *testing.T) {
	customKind(t, "Widget", false)
	s := newShop(t, nil)
	pod := s.podOfACustomOwner(t)
	widget := v1alpha1.GuardedResource{APIVersion: "example.com/v1", Kind: "Widget"}
	replicaSet := v1alpha1.GuardedResource{APIVersion: "apps/v1", Kind: "ReplicaSet"}
	for title, tc := range map[string]struct {
		guarded []v1alpha1.GuardedResource
		refused bool
	}{
		"the custom owner alone":             {[]v1alpha1.GuardedResource{widget}, false},
		"ReplicaSets alone":                  {[]v1alpha1.GuardedResource{replicaSet}, true},
		"the custom owner, then ReplicaSets": {[]v1alpha1.GuardedResource{widget, replicaSet}, true},
		"Deployments":                        {workloads, true},
	} {
		t.Run(title, func(t *testing.T) {
			s.guarded(t, func(g *v1alpha1.ClusterSpecGuard) {
				g.Name, g.GenerateName, g.Spec.Resources = "", s.namespace+"-", tc.guarded
			})
			for sub, patch := range map[string]string{
				"ephemeralcontainers": `{"spec":{"ephemeralContainers":[{"name":"debug","image":"tools:1"}]}}`,
				"resize":              `{"spec":{"containers":[{"name":"app","resources":{"requests":{"cpu":"50m"}}}]}}`,
			} {
				err := as(t, "root", "roots").SubResource(sub).Patch(t.Context(), pod.DeepCopy(),
					client.RawPatch(types.StrategicMergePatchType, []byte(patch)),
					&client.SubResourcePatchOptions{PatchOptions: client.PatchOptions{DryRun: []string{metav1.DryRunAll}}})
				if tc.refused {
					wantRefused(t, err, "root may not change Pod "+s.namespace+"/"+pod.Name+" through "+sub)
				} else {
					wantAllowed(t, err)
				}
			}
		})
	}
}

// podOfACustomOwner has a Widget own a ReplicaSet as its controller, and the ReplicaSet
// controller make the pod: it lets go of any other.
func (s shop) podOfACustomOwner(t *testing.T) *corev1.Pod {
	t.Helper()
	owner := custom("Widget", s.namespace, "rollout", map[string]any{"spec": map[string]any{}})
	mustDo(t, as(t, ci).Create(t.Context(), owner))
	d := deployment(s.namespace, "rollout")
	d.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("100m")}
	set := &appsv1.ReplicaSet{ObjectMeta: d.ObjectMeta, Spec: appsv1.ReplicaSetSpec{Selector: d.Spec.Selector, Template: d.Spec.Template}}
	set.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())}
	mustDo(t, as(t, ci).Create(t.Context(), set))
	var pods corev1.PodList
	eventually(t, "a pod of the ReplicaSet", func() error {
		if err := admin.List(t.Context(), &pods, client.InNamespace(s.namespace)); err != nil {
			return err
		}
		if len(pods.Items) != 1 || !metav1.IsControlledBy(&pods.Items[0], set) {
			return fmt.Errorf("%d pods", len(pods.Items))
		}
		return nil
	})
	return &pods.Items[0]
}

// policyFailures counts evaluations of policies and match conditions that failed. The
// metric counts refusals as "invalid_error", so that type is left out: the messages of
// refusals tell whether they are the policy's own.
func policyFailures(t *testing.T) float64 {
	t.Helper()
	kube, err := kubernetes.NewForConfig(rest.CopyConfig(config))
	mustDo(t, err)
	page, err := kube.RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	mustDo(t, err)
	failed, err := harness.SumSamples(string(page), "apiserver_admission_match_condition_evaluation_errors_total")
	mustDo(t, err)
	for _, kind := range []string{"compile_error", "out_of_budget"} {
		n, err := harness.SumSamples(string(page), "apiserver_validating_admission_policy_check_total", fmt.Sprintf("error_type=%q", kind))
		mustDo(t, err)
		failed += n
	}
	return failed
}
