// SPDX-License-Identifier: Apache-2.0

package guarded

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// CI is the user whom every guard of [Guard] trusts.
const CI = "system:serviceaccount:ci:deployer"

// Image is what a new Deployment runs.
const Image = "registry.example/shop:1"

// ImagePath is where a finding says that the image changed.
const ImagePath = "/spec/template/spec/containers/[name=app]/image"

// Guard is a guard of the Deployments of a namespace that trusts [CI], with
// changes.
func Guard(namespace string, changes ...func(*v1alpha1.SpecGuard)) *v1alpha1.SpecGuard {
	g := &v1alpha1.SpecGuard{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "workloads"},
		Spec: v1alpha1.GuardSpec{
			Resources: []v1alpha1.GuardedResource{{APIVersion: "apps/v1", Kind: "Deployment"}},
			TrustedWriters: v1alpha1.Writers{
				ServiceAccounts: []v1alpha1.ServiceAccountReference{{Namespace: "ci", Name: "deployer"}},
			},
		},
	}
	for _, change := range changes {
		change(g)
	}
	return g
}

// ExpectAutoscaler changes a guard so that it expects the autoscaler at replicas.
func ExpectAutoscaler(g *v1alpha1.SpecGuard) {
	g.Spec.ExpectedWriters = append(g.Spec.ExpectedWriters, v1alpha1.ExpectedWriter{
		Name:    "autoscaler",
		Writers: v1alpha1.Writers{ServiceAccounts: []v1alpha1.ServiceAccountReference{{Namespace: "kube-system", Name: "horizontal-pod-autoscaler"}}},
		Paths:   []string{"/spec/replicas"},
	})
}

// Ready is an error unless the assessor says that a guard, as it is now, is in
// force.
func Ready(g *v1alpha1.SpecGuard) error {
	return ready(g.Status.Conditions, g.Generation)
}

func ready(conditions []metav1.Condition, generation int64) error {
	c := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady)
	if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != generation {
		return fmt.Errorf("Ready is %+v", c)
	}
	return nil
}

// Deployment is a small workload of two replicas.
func Deployment(namespace, name string) *appsv1.Deployment {
	return Workload(namespace, name, Image, 2)
}

// Workload is a Deployment with one container, named app.
func Workload(namespace, name, image string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: image}}},
			},
		},
	}
}

// ImagePatch changes the image of a [Deployment].
func ImagePatch(image string) client.Patch {
	return client.RawPatch(types.StrategicMergePatchType,
		fmt.Appendf(nil, `{"spec":{"template":{"spec":{"containers":[{"name":"app","image":%q}]}}}}`, image))
}

// EnvPatch sets an environment variable of a [Deployment].
func EnvPatch(key, value string) client.Patch {
	return client.RawPatch(types.StrategicMergePatchType,
		fmt.Appendf(nil, `{"spec":{"template":{"spec":{"containers":[{"name":"app","env":[{"name":%q,"value":%q}]}]}}}}`, key, value))
}

// ScalePatch is what kubectl scale and autoscalers send to /scale.
func ScalePatch(replicas int) client.Patch {
	return client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
}
