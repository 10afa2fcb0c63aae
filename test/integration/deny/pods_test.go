// SPDX-License-Identifier: Apache-2.0

//go:build integration

package deny

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// withPods has a guard name what runs without a workload, beside the workloads.
func withPods(g *v1alpha1.ClusterSpecGuard) {
	g.Spec.Resources = append([]v1alpha1.GuardedResource{{APIVersion: "v1", Kind: "Pod"}, {APIVersion: "batch/v1", Kind: "Job"}}, workloads...)
}

func (s shop) pod(name string, owners ...metav1.OwnerReference) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name, OwnerReferences: owners}}
	p.Spec.Containers = []corev1.Container{{Name: "app", Image: "miner:1"}}
	return p
}

// podOf waits until the replicaset controller has made a pod of a Deployment.
func (s shop) podOf(t *testing.T, name string) (found *corev1.Pod) {
	t.Helper()
	eventually(t, "a pod of Deployment "+name, func() error {
		var pods corev1.PodList
		if err := admin.List(t.Context(), &pods, client.InNamespace(s.namespace), client.MatchingLabels{"app": name}); err != nil {
			return err
		}
		for i := range pods.Items {
			if pods.Items[i].DeletionTimestamp == nil {
				found = &pods.Items[i]
				return nil
			}
		}
		return fmt.Errorf("there are %d pods, and none that stays", len(pods.Items))
	})
	return found
}

// Only trusted writers start a pod or a Job by hand. The pods of the controllers come and go as before, and no node is
// kept from removing a pod that has ended.
func TestAPodByHandIsRefused(t *testing.T) {
	s := newShop(t, nil)
	s.guarded(t, withPods)
	s.deployed(t, "web")
	made := s.podOf(t, "web")
	tina, trusted := tenant(t), as(t, ci)
	node := as(t, "system:node:n1", "system:nodes", "roots")
	notANode := as(t, "system:node:n1", "roots")
	mine := s.pod("mine")
	mustDo(t, trusted.Create(t.Context(), mine))
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "job"}}
	job.Spec.Template.Spec = s.pod("").Spec
	job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	var sets appsv1.ReplicaSetList
	mustDo(t, admin.List(t.Context(), &sets, client.InNamespace(s.namespace)))
	set := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: sets.Items[0].Name, UID: sets.Items[0].UID, Controller: new(true)}
	image := client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec":{"containers":[{"name":"app","image":"miner:2"}]}}`))

	wantRefused(t, tina.Create(t.Context(), s.pod("miner")), "tina may not create Pod")
	wantRefused(t, tina.Create(t.Context(), s.pod("hidden", set)), "tina may not create Pod")
	wantRefused(t, tina.Create(t.Context(), job), "tina may not create Job")
	wantRefused(t, tina.Patch(t.Context(), made.DeepCopy(), image), "tina may not change Pod")
	wantRefused(t, tina.Delete(t.Context(), mine.DeepCopy()), "tina may not delete Pod")
	wantRefused(t, notANode.Delete(t.Context(), mine.DeepCopy()), "may not delete Pod")
	wantAllowed(t, tina.Delete(t.Context(), made.DeepCopy()))
	if again := s.podOf(t, "web"); again.UID == made.UID {
		t.Error("the pod of the controller is there still")
	}
	wantAllowed(t, node.Delete(t.Context(), mine.DeepCopy()))

	// The TTL controller removes a Job of CI after its time, and no other Job controller and no user does.
	mustDo(t, trusted.Create(t.Context(), job))
	wantRefused(t, tina.Delete(t.Context(), job.DeepCopy()), "tina may not delete Job")
	wantRefused(t, as(t, "system:serviceaccount:kube-system:cronjob-controller", "roots").Delete(t.Context(), job.DeepCopy()), "may not delete Job")
	wantAllowed(t, as(t, "system:serviceaccount:kube-system:ttl-after-finished-controller", "roots").Delete(t.Context(), job.DeepCopy()))
}

// A guard that names no pods leaves pods alone, although the chart registers them.
func TestAGuardOfWorkloadsLeavesPodsAlone(t *testing.T) {
	s := newShop(t, nil)
	s.guarded(t)
	s.deployed(t, "web")
	tina := tenant(t)
	wantAllowed(t, tina.Create(t.Context(), s.pod("debug")))
	wantAllowed(t, tina.Delete(t.Context(), s.pod("debug")))
	wantAllowed(t, tina.Delete(t.Context(), s.podOf(t, "web")))
}

// The webhook is not asked about the pods of controllers. A policy with the webhook's own condition tells which writes
// the condition lets through: it refuses each of them.
func TestTheWebhookIsNotAskedAboutThePodsOfControllers(t *testing.T) {
	const (
		controller = "system:serviceaccount:kube-system:replicaset-controller"
		asked      = "the webhook is asked"
	)
	s := newShop(t, nil)
	fail := admissionv1.Fail
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "asks-" + s.namespace}}
	policy.Spec = admissionv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: &fail,
		MatchConstraints: &admissionv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.namespace}},
			ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update, admissionv1.Delete},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}}},
		},
		MatchConditions: conditionsOfTheWebhook(t),
		Validations:     []admissionv1.Validation{{Expression: "false", Message: asked}},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: policy.ObjectMeta}
	binding.Spec = admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: policy.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}
	owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "u", Controller: new(true)}
	strange := metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "ReplicaSet", Name: "web", UID: "u", Controller: new(true)}
	s.deployed(t, "web")
	theirs, mine, many := s.podOf(t, "web"), s.pod("mine"), s.pod("many", append(strangeOwners(65), owner)...)
	for _, p := range []*corev1.Pod{mine, many} {
		mustDo(t, admin.Create(t.Context(), p))
	}
	mustDo(t, admin.Create(t.Context(), policy))
	mustDo(t, admin.Create(t.Context(), binding))
	t.Cleanup(func() {
		mustDo(t, admin.Delete(context.WithoutCancel(t.Context()), binding))
		mustDo(t, admin.Delete(context.WithoutCancel(t.Context()), policy))
	})
	alice, made := as(t, "alice", "roots"), as(t, controller, "roots")
	eventually(t, "the policy to be in force", func() error {
		if err := alice.Create(t.Context(), s.pod("probe"), client.DryRunAll); err == nil {
			return errors.New("it refuses nothing")
		}
		return nil
	})
	label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`))
	for name, tc := range map[string]struct {
		do    func() error
		asked bool
	}{
		"a user makes a pod":                            {func() error { return alice.Create(t.Context(), s.pod("new"), client.DryRunAll) }, true},
		"a user makes a pod with an owner":              {func() error { return alice.Create(t.Context(), s.pod("new", owner), client.DryRunAll) }, true},
		"a controller makes its pod":                    {func() error { return made.Create(t.Context(), s.pod("new", owner), client.DryRunAll) }, false},
		"a controller makes a pod without an owner":     {func() error { return made.Create(t.Context(), s.pod("new"), client.DryRunAll) }, true},
		"a controller makes a pod of a custom kind":     {func() error { return made.Create(t.Context(), s.pod("new", strange), client.DryRunAll) }, true},
		"a controller makes a pod with many owners":     {func() error { return made.Create(t.Context(), s.pod("new", many.OwnerReferences...), client.DryRunAll) }, true},
		"a user labels the pod of a controller":         {func() error { return alice.Patch(t.Context(), theirs.DeepCopy(), label, client.DryRunAll) }, true},
		"a user deletes the pod of a controller":        {func() error { return alice.Delete(t.Context(), theirs.DeepCopy(), client.DryRunAll) }, false},
		"a user deletes a pod without an owner":         {func() error { return alice.Delete(t.Context(), mine.DeepCopy(), client.DryRunAll) }, true},
		"a user deletes a pod with more owners than 64": {func() error { return alice.Delete(t.Context(), many.DeepCopy(), client.DryRunAll) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			switch err := tc.do(); {
			case tc.asked && (err == nil || !strings.Contains(err.Error(), asked)):
				t.Errorf("the webhook is not asked: %v", err)
			case !tc.asked && err != nil:
				t.Error(err)
			}
		})
	}
}

// conditionsOfTheWebhook are the chart's, with pods registered.
func conditionsOfTheWebhook(t *testing.T) []admissionv1.MatchCondition {
	t.Helper()
	helm, err := rendered.Find(t.Context())
	mustDo(t, err)
	objects, err := apiserver.Render(t.Context(), helm, "--values", "testdata/values.yaml")
	mustDo(t, err)
	for _, o := range objects {
		if o.GetKind() != "ValidatingWebhookConfiguration" {
			continue
		}
		var c admissionv1.ValidatingWebhookConfiguration
		mustDo(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &c))
		for i := range c.Webhooks {
			if c.Webhooks[i].Name == "verdict.plumbline.dev" {
				return c.Webhooks[i].MatchConditions
			}
		}
	}
	t.Fatal("the chart has no webhook verdict.plumbline.dev")
	return nil
}
