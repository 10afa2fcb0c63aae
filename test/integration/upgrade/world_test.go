// SPDX-License-Identifier: Apache-2.0

//go:build integration

package upgrade

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	arv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

const (
	// The chart's service accounts.
	assessorUser = "system:serviceaccount:plumbline-system:plumbline-assessor"
	webhookUser  = "system:serviceaccount:plumbline-system:plumbline-webhook"
	// people is a group that may do anything a role can give.
	people  = "people"
	ci      = guarded.CI
	mallory = "mallory"
	// patience bounds every wait.
	patience = 2 * time.Minute
	// webhookSeconds is for how long the API server waits for the webhook, so that a busy
	// machine makes no write without a stamp.
	webhookSeconds = int32(10)
)

// world is a guarded namespace on an API server that can be upgraded, with the webhook
// and the assessor of an installation for the older one.
type world struct {
	*guarded.Namespace
	t        *testing.T
	cluster  *guarded.Cluster
	server   *envtest.Environment
	binaries string
	redis    *server.Redis
	assessor *server.Process
}

// newWorld installs the chart on the oldest API server. All ends with the test.
func newWorld(t *testing.T) *world {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	w := &world{t: t, binaries: t.TempDir()}
	must(t, server.Build(t.Context(), w.binaries, "webhook", "assessor"))
	w.startServer()
	must(t, v1alpha1.AddToScheme(scheme.Scheme))
	admin, err := client.New(w.server.Config, client.Options{Scheme: scheme.Scheme})
	must(t, err)
	w.cluster = &guarded.Cluster{Config: w.server.Config, Admin: admin, People: people, Patience: patience}
	manifest := w.install()
	w.Namespace = w.cluster.NewNamespace(t)
	w.InstallKind("example.org", "Widget", "widgets", apiextensions.NamespaceScoped, withDefaults)
	w.startRedis()
	w.startWebhook(manifest)
	w.startAssessor()
	return w
}

// withDefaults gives widgets a schema with a default, as most custom kinds have.
func withDefaults(crd *apiextensions.CustomResourceDefinition) {
	preserve := true
	crd.Spec.Versions[0].Schema.OpenAPIV3Schema = &apiextensions.JSONSchemaProps{
		Type: "object", Properties: map[string]apiextensions.JSONSchemaProps{"spec": {
			Type: "object", XPreserveUnknownFields: &preserve,
			Properties: map[string]apiextensions.JSONSchemaProps{"mode": {Type: "string", Default: &apiextensions.JSON{Raw: []byte(`"strict"`)}}},
		}},
	}
}

// startServer starts the oldest API server.
func (w *world) startServer() {
	w.t.Helper()
	program, err := apiserver.Oldest()
	must(w.t, err)
	oldest, err := apiserver.Program(program)
	must(w.t, err)
	w.server, err = apiserver.Start(apiserver.CertificatesIn(w.t.TempDir()), oldest)
	must(w.t, err)
	w.t.Cleanup(func() {
		if err := w.server.Stop(); err != nil {
			w.t.Errorf("stopping the API server: %v", err)
		}
	})
	w.server.Config.QPS = -1
}

// upgrade replaces the oldest API server by the newest one; etcd runs on.
func (w *world) upgrade() {
	w.t.Helper()
	assets, err := apiserver.Assets()
	must(w.t, err)
	newest, err := apiserver.Program(filepath.Join(assets, "kube-apiserver"))
	must(w.t, err)
	from := w.version()
	must(w.t, apiserver.Upgrade(w.server, newest))
	to := w.version()
	if from == to {
		w.t.Fatalf("the API server is %s before and after the upgrade", from)
	}
	w.t.Logf("the API server was upgraded from %s to %s", from, to)
}

// version is the release of the API server.
func (w *world) version() string {
	w.t.Helper()
	d, err := w.discovery().ServerVersion()
	must(w.t, err)
	return d.GitVersion
}

// install puts the chart in place as its values have it, but for the webhook
// configurations, which are returned with all of the manifest.
func (w *world) install() (manifest []*unstructured.Unstructured) {
	w.t.Helper()
	helm, err := rendered.Find(w.t.Context())
	must(w.t, err)
	manifest, err = apiserver.Render(w.t.Context(), helm, "--values", "testdata/values.yaml")
	must(w.t, err)
	must(w.t, apiserver.Bind(w.t.Context(), w.cluster.Admin, people, "cluster-admin", people))
	must(w.t, apiserver.Install(w.t.Context(), w.cluster.Admin, manifest, "Secret"))
	w.letReadPods()
	return manifest
}

// letReadPods gives the assessor the right to read Pods, which the chart does not.
func (w *world) letReadPods() {
	w.t.Helper()
	const name = "assessor-reads-pods"
	must(w.t, w.cluster.Admin.Create(w.t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch"}}},
	}))
	must(w.t, apiserver.Bind(w.t.Context(), w.cluster.Admin, name, name, "system:serviceaccounts:"+rendered.Namespace))
}

func (w *world) startRedis() {
	w.t.Helper()
	// The path of a socket may have 107 bytes, and t.TempDir is too long.
	directory, err := os.MkdirTemp("", "up")
	must(w.t, err)
	w.t.Cleanup(func() { _ = os.RemoveAll(directory) }) // under the system's temporary directory
	w.redis, err = server.StartRedis(w.t.Context(), directory)
	must(w.t, err)
	w.t.Cleanup(w.redis.Kill)
}

// startWebhook registers the webhooks of the chart, with an address in place of the
// Service, and starts the webhook.
func (w *world) startWebhook(manifest []*unstructured.Unstructured) {
	w.t.Helper()
	port := freeport.For(w.t)
	for _, object := range rendered.OfKind(manifest, "MutatingWebhookConfiguration") {
		m, err := rendered.Convert[arv1.MutatingWebhookConfiguration](object)
		must(w.t, err)
		for i := range m.Webhooks {
			at(port, &m.Webhooks[i].ClientConfig, &m.Webhooks[i].TimeoutSeconds)
		}
		must(w.t, w.cluster.Admin.Create(w.t.Context(), m))
	}
	for _, object := range rendered.OfKind(manifest, "ValidatingWebhookConfiguration") {
		v, err := rendered.Convert[arv1.ValidatingWebhookConfiguration](object)
		must(w.t, err)
		for i := range v.Webhooks {
			at(port, &v.Webhooks[i].ClientConfig, &v.Webhooks[i].TimeoutSeconds)
		}
		must(w.t, w.cluster.Admin.Create(w.t.Context(), v))
	}
	w.start("webhook", webhookUser, "--port="+strconv.Itoa(port), "--server-names=127.0.0.1", "--drain-delay=0s", "--certificate-settle=1s")
}

// stamps waits until the webhook stamps the writes of CI under the guard.
func (w *world) stamps() {
	w.t.Helper()
	c := w.As(ci)
	w.Eventually("the webhook stamps the writer", func() error {
		probe := guarded.Deployment(w.Name, "probe")
		err := c.Create(w.Ctx(), probe, client.DryRunAll)
		if got := probe.Annotations[v1alpha1.AnnotationWriter]; err == nil && got != ci {
			err = fmt.Errorf("the stamp is %q", got)
		}
		return err
	})
}

func at(port int, c *arv1.WebhookClientConfig, timeout **int32) {
	url, seconds := fmt.Sprintf("https://127.0.0.1:%d%s", port, *c.Service.Path), webhookSeconds
	*c, *timeout = arv1.WebhookClientConfig{URL: &url}, &seconds
}

// startAssessor starts the assessor, and waits until it reads records.
func (w *world) startAssessor() {
	w.t.Helper()
	key := filepath.Join(w.t.TempDir(), "digest-key")
	must(w.t, os.WriteFile(key, []byte("a digest key of the tests"), 0o600))
	w.assessor = w.start("assessor", assessorUser, "--leader-elect=false", "--api-server-metrics=0", "--digest-key-file="+key)
	w.Eventually("the assessor reads records", func() error {
		up, err := w.assessor.Metric(w.Ctx(), "plumbline_assessor_admission_records_up")
		if err == nil && up != 1 {
			err = fmt.Errorf("plumbline_assessor_admission_records_up is %v", up)
		}
		return err
	})
}

// start starts a binary as a user, with the flags that the chart gives to both.
func (w *world) start(name, user string, args ...string) *server.Process {
	w.t.Helper()
	kubeconfig := filepath.Join(w.t.TempDir(), "kubeconfig")
	must(w.t, apiserver.WriteKubeconfig(kubeconfig, w.server.Config, apiserver.Impersonating(w.server.Config, user)))
	p, err := server.Start(filepath.Join(w.binaries, name), append([]string{
		"--kubeconfig=" + kubeconfig, "--namespace=" + rendered.Namespace, "--stamp-writer=true",
		"--redis-address=" + w.redis.Socket, "--redis-timeout=5s",
	}, args...)...)
	must(w.t, err)
	w.t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			w.t.Error(err)
		}
		if w.t.Failed() {
			w.t.Logf("the %s said last:\n%s", name, lastLines(p.Said(), 30))
		}
	})
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	must(w.t, p.Ready(ctx))
	return p
}

// lastLines are the end of a log.
func lastLines(text string, n int) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
