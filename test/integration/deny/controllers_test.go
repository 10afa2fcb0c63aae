// SPDX-License-Identifier: Apache-2.0

//go:build integration

package deny

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func withReplicaSets(g *v1alpha1.ClusterSpecGuard) {
	g.Spec.Resources = append([]v1alpha1.GuardedResource{{APIVersion: "apps/v1", Kind: "ReplicaSet"}}, workloads...)
}

// TestProductsOfControllers: a ReplicaSet of a Deployment is its controller's to
// write, and nobody else's, whatever owner somebody writes on an object.
func TestProductsOfControllers(t *testing.T) {
	s := newShop(t, nil)
	s.guarded(t, withReplicaSets)
	s.rolledTwice(t, "web") // the deployment controller makes and scales ReplicaSets
	var sets appsv1.ReplicaSetList
	mustDo(t, admin.List(t.Context(), &sets, client.InNamespace(s.namespace)))
	tina := tenant(t)
	for i := range sets.Items {
		set := &sets.Items[i]
		wantRefused(t, tina.Patch(t.Context(), set.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"minReadySeconds":9}}`))), "may not change ReplicaSet")
		wantRefused(t, tina.Delete(t.Context(), set.DeepCopy()), "may not delete ReplicaSet")
		wantRefused(t, tina.Patch(t.Context(), set.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"ownerReferences":null}}`))), "may not change the owners")
	}
	mine := &appsv1.ReplicaSet{ObjectMeta: deployment(s.namespace, "mine").ObjectMeta}
	mine.Spec.Selector, mine.Spec.Template = &metav1.LabelSelector{MatchLabels: mine.Labels}, deployment("", "mine").Spec.Template
	mine.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "u", Controller: new(true)}}
	wantRefused(t, tina.Create(t.Context(), mine), "may not create ReplicaSet")
}

// TestControllersComeToRestOnStampedObjects: the deployment controller copies the
// annotations of a Deployment, the stamp among them, to its ReplicaSets, and the policy
// puts the stamps of those back.
func TestControllersComeToRestOnStampedObjects(t *testing.T) {
	const controller = "system:serviceaccount:kube-system:deployment-controller"
	s := newShop(t, nil)
	d := s.rolledTwice(t, "web")
	mustDo(t, as(t, ci).Patch(t.Context(), d, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"note":"copied"}}}`))))
	versions := func(noted string) (map[string]string, error) {
		var sets appsv1.ReplicaSetList
		if err := admin.List(t.Context(), &sets, client.InNamespace(s.namespace), client.MatchingLabels{"app": "web"}); err != nil {
			return nil, err
		}
		found := map[string]string{}
		for i := range sets.Items {
			set := &sets.Items[i]
			found[set.Name] = set.ResourceVersion
			if writer := set.Annotations[v1alpha1.AnnotationWriter]; writer != controller {
				t.Fatalf("ReplicaSet %s carries the stamp of %q", set.Name, writer)
			}
			if set.Annotations["note"] == noted {
				noted = ""
			}
		}
		if noted != "" {
			return nil, errors.New("the note was not copied to any ReplicaSet")
		}
		return found, nil
	}
	eventually(t, "the annotation to be copied", func() error {
		_, err := versions("copied")
		return err
	})
	// While another Deployment is rolled twice, the controllers have the time.
	s.rolledTwice(t, "first")
	before, err := versions("copied") // their statuses have followed
	mustDo(t, err)
	s.rolledTwice(t, "second")
	after, err := versions("copied")
	mustDo(t, err)
	if diff := cmp.Diff(before, after); diff != "" || len(after) != 2 {
		t.Errorf("the controllers did not come to rest (-before +after):\n%s", diff)
	}
}

// TestTheGarbageCollectorCleansUp what a trusted writer removed.
func TestTheGarbageCollectorCleansUp(t *testing.T) {
	s := newShop(t, nil)
	s.guarded(t, withReplicaSets)
	d := s.rolledTwice(t, "web")
	mustDo(t, remove(client.PropagationPolicy(metav1.DeletePropagationForeground))(t.Context(), as(t, ci), d))
	eventually(t, "the Deployment and its ReplicaSets to be gone", func() error {
		var sets appsv1.ReplicaSetList
		if err := admin.List(t.Context(), &sets, client.InNamespace(s.namespace)); err != nil {
			return err
		}
		err := admin.Get(t.Context(), client.ObjectKeyFromObject(d), &appsv1.Deployment{})
		if len(sets.Items) > 0 || !apierrors.IsNotFound(err) {
			return fmt.Errorf("%d ReplicaSets, Deployment: %w", len(sets.Items), err)
		}
		return nil
	})
}

// TestAnAutoscalerScalesThroughDeny with the real controller. Raising the minimum
// makes it act without metrics.
func TestAnAutoscalerScalesThroughDeny(t *testing.T) {
	s := newShop(t, nil)
	s.guarded(t, func(g *v1alpha1.ClusterSpecGuard) {
		g.Spec.ExpectedWriters = []v1alpha1.ExpectedWriter{{
			Name: "autoscaler", Paths: []string{"/spec/replicas"}, Writers: v1alpha1.Writers{Users: []string{hpa}},
		}}
	})
	d := s.deployed(t, "web")
	scaler := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web"}}
	scaler.Spec = autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
		MinReplicas:    new(int32(3)), MaxReplicas: 5,
	}
	mustDo(t, as(t, ci).Create(t.Context(), scaler))
	eventually(t, "three replicas", func() error {
		var now appsv1.Deployment
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(d), &now); err != nil {
			return err
		}
		if *now.Spec.Replicas != 3 {
			return fmt.Errorf("%d replicas", *now.Spec.Replicas)
		}
		return nil
	})
}

// TestPodsOfWorkloads: subresources that bend a pod out of the shape that its
// workload gave it count as the workload.
func TestPodsOfWorkloads(t *testing.T) {
	s := newShop(t, nil)
	g := s.guarded(t)
	s.allow(t, "debuggers", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/ephemeralcontainers", "pods/resize"}, Verbs: []string{"*"}})
	tina := as(t, "tina", "tenants", "debuggers")
	template := deployment("", "x").Spec.Template
	template.Spec.Containers[0].Resources = corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"cpu": resource.MustParse("100m")}, Limits: corev1.ResourceList{"cpu": resource.MustParse("1")},
	}
	selector := &metav1.LabelSelector{MatchLabels: template.Labels}
	jobTemplate := *template.DeepCopy()
	jobTemplate.Spec.RestartPolicy = corev1.RestartPolicyNever
	tests := map[string]struct {
		owners  []metav1.OwnerReference
		refused bool
	}{
		"of a StatefulSet":              {s.owner(t, &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Selector: selector, Template: template}}), true},
		"of a DaemonSet":                {s.owner(t, &appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template}}), true},
		"of a CronJob, by its Job":      {s.owner(t, &batchv1.Job{Spec: batchv1.JobSpec{Template: jobTemplate}}), true},
		"of a kind that is not guarded": {s.owner(t, &corev1.ConfigMap{}), false},
		"of nobody":                     {nil, false},
		"owned but not controlled by a workload": {func() []metav1.OwnerReference {
			owners := s.owner(t, &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Selector: selector, Template: template}})
			owners[0].Controller = nil
			return owners
		}(), false},
	}
	attempt := func(t *testing.T, pod *corev1.Pod, isRefused bool) {
		for subresource, body := range map[string]string{
			"ephemeralcontainers": `{"spec":{"ephemeralContainers":[{"name":"debug","image":"tools:1","targetContainerName":"app"}]}}`,
			"resize":              `{"spec":{"containers":[{"name":"app","resources":{"requests":{"cpu":"50m"}}}]}}`,
		} {
			err := tina.SubResource(subresource).Patch(t.Context(), pod.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, []byte(body)))
			if isRefused {
				wantRefused(t, err, "may not change Pod", "through "+subresource, "kubectl describe clusterspecguard "+g.Name)
			} else {
				wantAllowed(t, err)
			}
		}
	}
	number := 0
	for name, test := range tests {
		number++
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: fmt.Sprintf("pod-%d", number)}, Spec: template.Spec}
		t.Run(name, func(t *testing.T) {
			pod.OwnerReferences = test.owners
			mustDo(t, admin.Create(t.Context(), pod))
			attempt(t, pod, test.refused)
		})
	}
	t.Run("of a Deployment, by its ReplicaSet, made by the controllers", func(t *testing.T) {
		d := deployment(s.namespace, "web")
		d.Spec.Template.Spec.Containers = template.Spec.Containers
		mustDo(t, as(t, ci).Create(t.Context(), d))
		var pods corev1.PodList
		eventually(t, "a pod", func() error {
			if err := admin.List(t.Context(), &pods, client.InNamespace(s.namespace), client.MatchingLabels{"app": "web"}); err != nil {
				return err
			}
			if len(pods.Items) == 0 {
				return errors.New("none")
			}
			return nil
		})
		attempt(t, &pods.Items[0], true)
	})
}

// owner makes an object as ci, and a reference to it as a controller: the
// garbage collector removes what belongs to an owner that is not there.
func (s shop) owner(t testing.TB, o client.Object) []metav1.OwnerReference {
	t.Helper()
	o.SetNamespace(s.namespace)
	o.SetGenerateName("owner-")
	mustDo(t, as(t, ci).Create(t.Context(), o))
	kind, err := apiutil.GVKForObject(o, scheme.Scheme)
	mustDo(t, err)
	apiVersion, name := kind.ToAPIVersionAndKind()
	return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: name, Name: o.GetName(), UID: o.GetUID(), Controller: new(true)}}
}
