// SPDX-License-Identifier: Apache-2.0

//go:build integration

package deny

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
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

// L5 of the guard's review, which docs/reference/deny.md names as a limit: a pod tells its
// ReplicaSet and no owner of that, so a guard over a custom owner does not see the pod.
func TestAPodOfACustomOwnersReplicaSetIsNotSeen(t *testing.T) {
	s := newShop(t, nil)
	widgets := v1alpha1.GuardedResource{APIVersion: "example.com/v1", Kind: "Widget"}
	s.guarded(t, func(g *v1alpha1.ClusterSpecGuard) { g.Spec.Resources = []v1alpha1.GuardedResource{widgets} })
	trusted := as(t, ci)
	template := deployment(s.namespace, "rollout").Spec
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "rollout"}}
	set.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Widget", Name: "rollout", UID: "1", Controller: new(true)}}
	set.Spec = appsv1.ReplicaSetSpec{Replicas: new(int32(0)), Selector: template.Selector, Template: template.Template}
	mustDo(t, trusted.Create(t.Context(), set))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "rollout-1"}}
	pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "shop:1"}}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: set.Name, UID: set.UID, Controller: new(true)}}
	mustDo(t, trusted.Create(t.Context(), pod))
	debug := func() error {
		return as(t, "root", "roots").SubResource("ephemeralcontainers").Patch(t.Context(), pod.DeepCopy(),
			client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec":{"ephemeralContainers":[{"name":"debug","image":"shop:1"}]}}`)),
			&client.SubResourcePatchOptions{PatchOptions: client.PatchOptions{DryRun: []string{metav1.DryRunAll}}})
	}
	wantAllowed(t, debug())
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
