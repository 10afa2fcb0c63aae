// SPDX-License-Identifier: Apache-2.0

//go:build integration

package admission

import (
	"context"
	"fmt"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	arv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
)

// The trace: applications that a pipeline deploys again and again, as a
// GitOps tool applies them, with an autoscaler.
const (
	traceNamespace = "trace"
	traceApps      = 8
	traceRollouts  = 4
	traceReplicas  = 3
	traceScales    = 2
	traceApplies   = 5 // that change nothing, per rollout
)

// startControllers runs the real Deployment and ReplicaSet controllers.
func startControllers(b *testing.B) {
	b.Helper()
	directory := b.TempDir()
	// As one user, and without a limit of its own: the trace is what is measured.
	flags := []string{"--kube-api-qps=500", "--kube-api-burst=500", "--use-service-account-credentials=false"}
	controllers, err := apiserver.StartControllersWith(flags, directory, w.kubeconfig, "deployment-controller", "replicaset-controller")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := controllers.Stop(context.WithoutCancel(b.Context())); err != nil {
			b.Error(err)
		}
		if b.Failed() {
			b.Log(controllers.Said())
		}
	})
}

// startKubelet stands in for one: it says of each pod that it is ready.
func startKubelet(b *testing.B, client *kubernetes.Clientset) {
	b.Helper()
	pods := client.CoreV1().Pods(traceNamespace)
	ctx, cancel := context.WithCancel(b.Context())
	events, err := pods.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range events.ResultChan() {
			pod, ok := e.Object.(*corev1.Pod)
			if !ok {
				continue
			}
			if pod.DeletionTimestamp != nil {
				now := int64(0)
				_ = pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}) // Gone already, as a rule.
				continue
			}
			if len(pod.Status.Conditions) == 0 {
				_, _ = pods.Patch(ctx, pod.Name, types.MergePatchType, // A pod that was deleted meanwhile needs none.
					[]byte(`{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`), metav1.PatchOptions{}, "status")
			}
		}
	}()
	b.Cleanup(func() { cancel(); events.Stop(); <-done })
}

// count registers a validating webhook that counts: with everything about
// Deployments, or as the chart registers them.
func count(b *testing.B, name string, all bool) *recorder {
	b.Helper()
	r := &recorder{}
	server := httptest.NewTLSServer(r)
	b.Cleanup(server.Close)
	url := server.URL + "/" + name
	ignore, none := arv1.Ignore, arv1.SideEffectClassNone
	hook := arv1.ValidatingWebhook{
		Name: name + ".example.com", ClientConfig: arv1.WebhookClientConfig{URL: &url, CABundle: pemOf("CERTIFICATE", server.Certificate().Raw)},
		FailurePolicy: &ignore, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: traceNamespace}},
	}
	operations := []arv1.OperationType{arv1.Create, arv1.Update, arv1.Delete}
	if all {
		hook.Rules = []arv1.RuleWithOperations{rules(operations, "apps", "deployments", "deployments/*")}
	} else {
		conditions, err := matchConditions()
		if err != nil {
			b.Fatal(err)
		}
		hook.MatchConditions = conditions
		hook.Rules = []arv1.RuleWithOperations{rules(operations, "apps", "deployments", "deployments/scale")}
	}
	configuration := &arv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: []arv1.ValidatingWebhook{hook}}
	if err := w.client.Create(b.Context(), configuration); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := w.client.Delete(context.Background(), configuration); err != nil {
			b.Error(err)
		}
	})
	return r
}

// byResource groups what was counted.
func (r *recorder) byResource() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]int{}
	for _, record := range r.records {
		out[record.Label]++
	}
	return out
}

// trace is one application's life.
func trace(b *testing.B, client *kubernetes.Clientset, name string) {
	deployments := client.AppsV1().Deployments(traceNamespace)
	apply := func(image string) {
		body := fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":%q,"labels":{"app":%[1]q}},"spec":{"selector":{"matchLabels":{"app":%[1]q}},
			"template":{"metadata":{"labels":{"app":%[1]q}},"spec":{"containers":[{"name":"app","image":%q}]}}}}`, name, image)
		force := true
		if _, err := deployments.Patch(b.Context(), name, types.ApplyPatchType, []byte(body), metav1.PatchOptions{FieldManager: "gitops", Force: &force}); err != nil {
			b.Fatal(err)
		}
	}
	scale := func(n int) {
		if _, err := deployments.Patch(b.Context(), name, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, n), metav1.PatchOptions{}, "scale"); err != nil {
			b.Fatal(err)
		}
		rolledOut(b, client, name)
	}
	for rollout := range traceRollouts {
		image := fmt.Sprintf("shop/%s:%d", name, rollout)
		apply(image)
		if rollout == 0 {
			scale(traceReplicas)
		}
		rolledOut(b, client, name)
		for range traceApplies {
			apply(image)
		}
	}
	for n := range traceScales {
		scale(traceReplicas + n + 1)
	}
}

func rolledOut(b *testing.B, client *kubernetes.Clientset, name string) {
	b.Helper()
	eventually(b, name+" is rolled out", func() bool {
		var d *appsv1.Deployment
		d, err := client.AppsV1().Deployments(traceNamespace).Get(b.Context(), name, metav1.GetOptions{})
		if err != nil {
			b.Fatal(err)
		}
		s := d.Status
		return s.ObservedGeneration == d.Generation && s.UpdatedReplicas == *d.Spec.Replicas && s.Replicas == *d.Spec.Replicas && s.AvailableReplicas == *d.Spec.Replicas
	})
}

// BenchmarkDeployTrace counts which of all writes to Deployments and their
// subresources leave the API server, in a trace that deploys all the time: with
// the real controllers, and pods that are ready at once. Use -benchtime 1x.
func BenchmarkDeployTrace(b *testing.B) {
	benchPlace(b, traceNamespace)
	config := rest.CopyConfig(w.config)
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		b.Fatal(err)
	}
	startControllers(b)
	startKubelet(b, client)
	all, registered := count(b, "all", true), count(b, "registered", false)
	for i := 0; b.Loop(); i++ {
		for n := range traceApps {
			trace(b, client, fmt.Sprintf("app-%d-%d", i, n))
		}
	}
	writes, reviews := all.count(), registered.count()
	if reviews == 0 || writes < traceApps*traceRollouts {
		b.Fatalf("%d reviews of %d writes", reviews, writes)
	}
	var lines []string
	of := all.byResource()
	leave := registered.byResource()
	for _, what := range slices.Sorted(maps.Keys(of)) {
		lines = append(lines, fmt.Sprintf("%s: %d, %d leave", what, of[what], leave[what]))
	}
	b.Logf("%d writes, %d leave the API server, %.1f %% stay; %s", writes, reviews, 100*(1-float64(reviews)/float64(writes)), strings.Join(lines, "; "))
	b.ReportMetric(100*(1-float64(reviews)/float64(writes)), "%stay")
	b.ReportMetric(0, "ns/op")
}
