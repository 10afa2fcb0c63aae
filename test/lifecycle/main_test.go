// SPDX-License-Identifier: Apache-2.0

//go:build lifecycle

package lifecycle

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/plumbline-dev/plumbline/test/harness"
)

const (
	systemNamespace = "plumbline-system"
	deployment      = "deployment/plumbline-webhook"
	webhookPods     = "app.kubernetes.io/name=plumbline,app.kubernetes.io/component=webhook"
	quietNamespace  = "lifecycle-quiet"
	patience        = 4 * time.Minute
)

var (
	clusterName = cmp.Or(os.Getenv("LIFECYCLE_NAME"), "lifecycle")
	// cluster is the admin's way in, and kube the same for what kubectl lacks.
	cluster *harness.Cluster
	config  *rest.Config
	kube    kubernetes.Interface
	// busyNamespaces are where the stream writes.
	busyNamespaces = []string{"lifecycle-0", "lifecycle-1", "lifecycle-2", "lifecycle-3"}
)

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx := context.Background()
	if err := os.Chdir("../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer harness.Remove(ctx, clusterName)
	if err := setUp(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "setting up:", err)
		return 1
	}
	return m.Run()
}

func setUp(ctx context.Context) error {
	var err error
	if cluster, err = harness.Install(ctx, clusterName); err != nil {
		return err
	}
	if config, err = clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig); err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.QPS = -1 // the client's own limit would only slow the tests
	if kube, err = kubernetes.NewForConfig(config); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	return guard(ctx)
}

// The stream's objects are stamped as all guarded ones, and what it changes is
// ignored: the assessor would make a revision of each of some 40,000 versions,
// and on a small machine take from the API server what is measured here.
const guardManifest = `
apiVersion: plumbline.dev/v1alpha1
kind: ClusterSpecGuard
metadata: {name: lifecycle-busy}
spec:
  namespaceSelector: {matchLabels: {lifecycle: busy}}
  resources: [{apiVersion: apps/v1, kind: Deployment}]
  mode: Audit
  trustedWriters: {users: [ADMIN]}
  ignore: [/spec/template, /spec/replicas]
---
apiVersion: plumbline.dev/v1alpha1
kind: ClusterSpecGuard
metadata: {name: lifecycle-quiet}
spec:
  namespaceSelector: {matchLabels: {lifecycle: quiet}}
  resources: [{apiVersion: apps/v1, kind: Deployment}]
  mode: Audit
  trustedWriters: {users: [ADMIN]}
`

const namespaceManifest = `
---
apiVersion: v1
kind: Namespace
metadata: {name: NS, labels: {lifecycle: ROLE}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: edit, namespace: NS}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{kind: User, name: alice}]
`

// guard makes the namespaces and guards over them, which trust the
// stream's user and not alice.
func guard(ctx context.Context) error {
	admin, err := cluster.Kubectl(ctx, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
	if err != nil {
		return err
	}
	manifest := strings.ReplaceAll(guardManifest, "ADMIN", strings.TrimSpace(admin))
	manifest += strings.NewReplacer("NS", quietNamespace, "ROLE", "quiet").Replace(namespaceManifest)
	for _, namespace := range busyNamespaces {
		manifest += strings.NewReplacer("NS", namespace, "ROLE", "busy").Replace(namespaceManifest)
	}
	if err := cluster.Apply(ctx, manifest); err != nil {
		return err
	}
	_, err = cluster.Kubectl(ctx, "wait", "--for=condition=Ready", "clusterspecguard/lifecycle-busy", "clusterspecguard/lifecycle-quiet", "--timeout=60s")
	return err
}

// podsOfWebhook lists its pods, those that are ending included.
func podsOfWebhook(ctx context.Context) ([]string, error) {
	list, err := kube.CoreV1().Pods(systemNamespace).List(ctx, metav1.ListOptions{LabelSelector: webhookPods})
	if err != nil {
		return nil, fmt.Errorf("listing the webhook's pods: %w", err)
	}
	var names []string
	for _, pod := range list.Items {
		names = append(names, pod.Name)
	}
	return names, nil
}

// whole gives the webhook its two replicas, should a test before have failed.
func whole(t *testing.T) []string {
	t.Helper()
	kubectl(t, "scale", deployment, "--replicas=2")
	return awaitPods(t, 2)
}

// awaitPods waits until exactly n pods of the webhook are left, and all of them
// know the guard.
func awaitPods(t *testing.T, n int) []string {
	t.Helper()
	var pods []string
	eventually(t, fmt.Sprintf("%d pods of the webhook that know the guard", n), func(ctx context.Context) (bool, string) {
		var err error
		if pods, err = podsOfWebhook(ctx); err != nil {
			return false, err.Error()
		}
		if len(pods) != n {
			return false, strings.Join(pods, " ")
		}
		for _, pod := range pods {
			guards, err := sample(ctx, pod, "plumbline_guards", `state="active"`)
			if err != nil || guards < 2 {
				return false, fmt.Sprintf("%v: %s has %v guards, %v", pods, pod, guards, err)
			}
		}
		return true, ""
	})
	return pods
}

// sample reads a metric of a pod of ours.
func sample(ctx context.Context, pod, name string, labels ...string) (float64, error) {
	page, err := kube.CoreV1().RESTClient().Get().Namespace(systemNamespace).Resource("pods").Name(pod + ":8080").
		SubResource("proxy").Suffix("metrics").MaxRetries(0).DoRaw(ctx)
	if err != nil {
		return 0, fmt.Errorf("reading the metrics of %s: %w", pod, err)
	}
	return harness.SumSamples(string(page), name, labels...)
}

func eventually(t *testing.T, what string, check func(context.Context) (bool, string)) {
	t.Helper()
	must(t, harness.Eventually(t.Context(), what, patience, check))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// kubectl runs as admin in our namespace.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := cluster.Kubectl(t.Context(), append(args, "-n", systemNamespace)...)
	must(t, err)
	return out
}
