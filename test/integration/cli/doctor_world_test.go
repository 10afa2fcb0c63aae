// SPDX-License-Identifier: Apache-2.0

//go:build integration

package cli

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

// clinic is an API server with the chart installed by Helm, a webhook and an
// assessor that run as processes, and stand-ins for what only nodes can give:
// pods, readiness, and the way from a Service to a process.
type clinic struct {
	server *envtest.Environment
	kube   client.Client
	config string // kubeconfig of admin
	dir    string
	// t is the whole test: processes outlive its parts.
	t                 *testing.T
	helm              *rendered.Client
	webhook, assessor *server.Process
	port, metrics     int
}

// start starts a process that is killed at the end of the test. Without the name
// of a pod it gives itself another one at each start, as a new pod would have.
func start(t *testing.T, binary string, args ...string) *server.Process {
	t.Helper()
	p, err := server.StartWith([]string{"POD_NAME="}, binary, args...)
	must(t, err)
	t.Cleanup(func() { kill(t, p) })
	return p
}

// kill ends a process: nobody waits for its manners here. A second call does
// nothing.
func kill(t *testing.T, p *server.Process) {
	t.Helper()
	must(t, p.Kill())
}

// hostAddress is one that the API server's pod proxy consents to call: it
// refuses loopback.
func hostAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	must(t, err)
	for _, address := range addresses {
		if ip, ok := address.(*net.IPNet); ok && ip.IP.To4() != nil && ip.IP.IsGlobalUnicast() {
			return ip.IP.String()
		}
	}
	t.Fatal("this machine has no address but loopback, and the pod proxy of the API server does not call that")
	return ""
}

func newClinic(t *testing.T, args ...string) *clinic {
	t.Helper()
	c := &clinic{t: t, dir: t.TempDir(), port: freeport.For(t), metrics: freeport.For(t)}
	var err error
	c.server, err = apiserver.Start()
	must(t, err)
	t.Cleanup(func() { must(t, c.server.Stop()) })
	c.kube, err = client.New(c.server.Config, client.Options{Scheme: scheme.Scheme})
	must(t, err)
	c.config = c.user(t, "admin", "system:masters")
	helm, err := rendered.Find(t.Context())
	must(t, err)
	helm.Kubeconfig, c.helm = c.config, helm
	_, err = helm.Run(t.Context(), append([]string{"install", rendered.Release, rendered.ChartDir(), "--create-namespace"}, args...)...)
	must(t, err)
	c.standIn(t)
	must(t, server.Build(t.Context(), c.dir, "webhook", "assessor"))
	c.startAssessor()
	c.startWebhook()
	return c
}

// user makes a kubeconfig.
func (c *clinic) user(t *testing.T, name string, groups ...string) string {
	t.Helper()
	path := filepath.Join(c.dir, name+".kubeconfig")
	must(t, apiserver.Enrol(c.server, path, name, groups...))
	return path
}

// account is a kubeconfig of one of the chart's service accounts: the processes
// have the rights that the chart gives them, and the names that policies know.
func (c *clinic) account(name string) string {
	return c.user(c.t, "system:serviceaccount:"+rendered.Namespace+":"+name, "system:serviceaccounts", "system:serviceaccounts:"+rendered.Namespace)
}

func (c *clinic) startAssessor() {
	c.assessor = start(c.t, filepath.Join(c.dir, "assessor"), "--kubeconfig="+c.account("plumbline-assessor"), "--namespace="+rendered.Namespace, "--role=assess", "--leader-elect=true",
		"--metrics-address=", "--health-address=")
}

func (c *clinic) startWebhook() {
	c.webhook = start(c.t, filepath.Join(c.dir, "webhook"), "--kubeconfig="+c.account("plumbline-webhook"), "--namespace="+rendered.Namespace, "--port="+strconv.Itoa(c.port),
		"--metrics-address=:"+strconv.Itoa(c.metrics), "--health-address=", "--redis-address=", "--stamp-writer=false", "--drain-delay=0s")
}

// standIn gives what a node and its controllers would: the Service leads to the
// process, Deployments are ready, and the webhook has a pod.
func (c *clinic) standIn(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	key := client.ObjectKey{Namespace: rendered.Namespace, Name: "plumbline-webhook"}
	service := &corev1.Service{}
	must(t, c.kube.Get(ctx, key, service))
	must(t, c.kube.Delete(ctx, service))
	must(t, c.kube.Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: service.Labels},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	}))
	mutating, validating := &admissionv1.MutatingWebhookConfiguration{}, &admissionv1.ValidatingWebhookConfiguration{}
	c.edit(t, mutating, "", "plumbline", func() { mutating.Webhooks[0].ClientConfig.Service.Port = new(int32(c.port)) })
	c.edit(t, validating, "", "plumbline", func() { validating.Webhooks[0].ClientConfig.Service.Port = new(int32(c.port)) })
	deployments := &appsv1.DeploymentList{}
	must(t, c.kube.List(ctx, deployments, client.InNamespace(rendered.Namespace)))
	for i := range deployments.Items {
		c.ready(t, deployments.Items[i].Name, *deployments.Items[i].Spec.Replicas)
	}
	must(t, c.kube.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: rendered.Namespace, Name: "default"}}))
	c.pod(t, "plumbline-webhook", corev1.ContainerPort{Name: "metrics", ContainerPort: int32(c.metrics)})
}

func (c *clinic) ready(t *testing.T, deployment string, replicas int32) {
	t.Helper()
	d := &appsv1.Deployment{}
	must(t, c.kube.Get(t.Context(), client.ObjectKey{Namespace: rendered.Namespace, Name: deployment}, d))
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas, UpdatedReplicas: replicas}
	must(t, c.kube.Status().Update(t.Context(), d))
}

// pod stands in for the first pod of a Deployment; its port is the process's.
func (c *clinic) pod(t *testing.T, deployment string, port corev1.ContainerPort) {
	t.Helper()
	d := &appsv1.Deployment{}
	must(t, c.kube.Get(t.Context(), client.ObjectKey{Namespace: rendered.Namespace, Name: deployment}, d))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: rendered.Namespace, Name: deployment + "-0", Labels: d.Spec.Template.Labels},
		Spec: corev1.PodSpec{ServiceAccountName: "default", Containers: []corev1.Container{{
			Name: "process", Image: "process", Ports: []corev1.ContainerPort{port},
		}}},
	}
	must(t, c.kube.Create(t.Context(), pod))
	pod.Status.Phase = corev1.PodRunning
	pod.Status.PodIP = hostAddress(t)
	pod.Status.PodIPs = []corev1.PodIP{{IP: pod.Status.PodIP}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	must(t, c.kube.Status().Update(t.Context(), pod))
}

// edit reads an object, changes it and writes it, and gives the way back.
func (c *clinic) edit(t *testing.T, object client.Object, namespace, name string, change func()) (restore func()) {
	t.Helper()
	key := client.ObjectKey{Namespace: namespace, Name: name}
	must(t, c.kube.Get(t.Context(), key, object))
	before := object.DeepCopyObject().(client.Object)
	change()
	must(t, c.kube.Update(t.Context(), object))
	return func() {
		t.Helper()
		must(t, c.kube.Get(t.Context(), key, object))
		before.SetResourceVersion(object.GetResourceVersion())
		must(t, c.kube.Update(t.Context(), before))
	}
}

// remove deletes an object and gives the way back.
func (c *clinic) remove(t *testing.T, object client.Object, namespace, name string) (restore func()) {
	t.Helper()
	must(t, c.kube.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object))
	before := object.DeepCopyObject().(client.Object)
	must(t, c.kube.Delete(t.Context(), object))
	return func() {
		t.Helper()
		before.SetResourceVersion("")
		before.SetUID("")
		before.SetManagedFields(nil)
		must(t, harness.Eventually(t.Context(), "the old one to be gone", patience, func(ctx context.Context) (bool, string) {
			err := c.kube.Create(ctx, before.DeepCopyObject().(client.Object))
			return err == nil, fmt.Sprint(err)
		}))
	}
}

// add creates an object and gives the way back.
func (c *clinic) add(t *testing.T, objects ...client.Object) (restore func()) {
	t.Helper()
	for _, object := range objects {
		must(t, c.kube.Create(t.Context(), object))
	}
	return func() {
		t.Helper()
		for _, object := range objects {
			must(t, c.kube.Delete(t.Context(), object))
		}
	}
}

// allow lets a user do something everywhere.
func (c *clinic) allow(t *testing.T, name string, subject rbacv1.Subject, rules ...rbacv1.PolicyRule) (restore func()) {
	t.Helper()
	subject.APIGroup = rbacv1.GroupName
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
	restore = c.add(t,
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: []rbacv1.Subject{subject}, RoleRef: ref})
	must(t, apiserver.AwaitBound(t.Context(), c.kube, subject, "", ref))
	return restore
}

// shop is a namespace with a guard that warns.
func (c *clinic) shop(t *testing.T) {
	t.Helper()
	must(t, c.kube.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}))
	must(t, c.kube.Create(t.Context(), shopGuard("shop", "apps/v1", "Deployment")))
}

// vaultGuard refuses changes in namespace vault.
func vaultGuard() *v1alpha1.ClusterSpecGuard {
	return &v1alpha1.ClusterSpecGuard{
		ObjectMeta: metav1.ObjectMeta{Name: "vault"},
		Spec: v1alpha1.ClusterGuardSpec{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: "vault"}},
			GuardSpec: v1alpha1.GuardSpec{
				Mode: v1alpha1.GuardModeDeny, Resources: []v1alpha1.GuardedResource{{APIVersion: "apps/v1", Kind: "Deployment"}},
				TrustedWriters: v1alpha1.Writers{ServiceAccounts: []v1alpha1.ServiceAccountReference{{Namespace: "ci", Name: "deployer"}}},
			},
		},
	}
}

func shopGuard(name, apiVersion, kind string) *v1alpha1.SpecGuard {
	return &v1alpha1.SpecGuard{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec: v1alpha1.GuardSpec{
			Mode: v1alpha1.GuardModeWarn, Resources: []v1alpha1.GuardedResource{{APIVersion: apiVersion, Kind: kind}},
			TrustedWriters: v1alpha1.Writers{ServiceAccounts: []v1alpha1.ServiceAccountReference{{Namespace: "ci", Name: "deployer"}}},
		},
	}
}

func describe(findings []string) string {
	return fmt.Sprintf("%d findings: %q", len(findings), findings)
}
