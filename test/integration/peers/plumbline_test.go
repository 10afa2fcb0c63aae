// SPDX-License-Identifier: Apache-2.0

//go:build integration

package peers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/procfs"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

// hookUser is the service account of the webhook, which has the rights of the chart.
const hookUser = "system:serviceaccount:" + rendered.Namespace + ":plumbline-webhook"

// plumbline is the chart on the API server, and the webhook as a process.
type plumbline struct {
	*server.Process
	redis  int // the process
	guards int
	port   int
	chart  []*unstructured.Unstructured
}

// renderChart renders the chart with its own values, and with further arguments of Helm.
func renderChart(b *testing.B, args ...string) []*unstructured.Unstructured {
	b.Helper()
	helm, err := rendered.Find(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	chart, err := apiserver.Render(b.Context(), helm, args...)
	if err != nil {
		b.Fatal(err)
	}
	return chart
}

// startPlumbline installs the chart and starts the webhook. The policies and webhooks
// hold in the namespaces that selected returns for each of them.
func startPlumbline(b *testing.B, w *world, chart []*unstructured.Unstructured, selected func(*unstructured.Unstructured) []string) *plumbline {
	b.Helper()
	ctx := b.Context()
	port, err := freeport.Claim()
	if err != nil {
		b.Fatal(err)
	}
	p := &plumbline{port: port, chart: chart}
	installed := make([]*unstructured.Unstructured, 0, len(chart))
	for _, object := range chart {
		if holdsInNamespaces(object) {
			object = p.confine(b, object, selected(object)...)
		}
		installed = append(installed, object)
	}
	if err := apiserver.Install(ctx, w.admin, installed, mutatingKind, validatingKind); err != nil {
		b.Fatal(err)
	}
	p.start(b, w)
	if err := p.Ready(ctx); err != nil {
		b.Fatal(err)
	}
	return p
}

const (
	mutatingKind   = "MutatingWebhookConfiguration"
	validatingKind = "ValidatingWebhookConfiguration"
)

func isWebhook(object *unstructured.Unstructured) bool {
	return object.GetKind() == mutatingKind || object.GetKind() == validatingKind
}

// holdsInNamespaces says whether an object is a webhook configuration, or a policy with
// a selector of namespaces. Other policies hold for Plumbline's own kinds.
func holdsInNamespaces(object *unstructured.Unstructured) bool {
	_, selects, _ := unstructured.NestedMap(object.Object, "spec", "matchConstraints", "namespaceSelector")
	return selects || isWebhook(object)
}

// confine returns a copy of an object of the chart that holds in these namespaces alone,
// and whose calls go to the process and not to a Service.
func (p *plumbline) confine(b *testing.B, object *unstructured.Unstructured, namespaces ...string) *unstructured.Unstructured {
	b.Helper()
	object = object.DeepCopy()
	if !isWebhook(object) {
		spec := field(b, object.Object, "spec", "matchConstraints", "namespaceSelector")
		addNamespaces(spec, namespaces)
		return object
	}
	for _, webhook := range object.Object["webhooks"].([]any) {
		webhook := webhook.(map[string]any)
		addNamespaces(field(b, webhook, "namespaceSelector"), namespaces)
		config := field(b, webhook, "clientConfig")
		if service, is := config["service"].(map[string]any); is {
			config["url"] = fmt.Sprintf("https://127.0.0.1:%d%s", p.port, service["path"])
			delete(config, "service")
		}
	}
	return object
}

// field returns a map inside a map, to be changed in place.
func field(b *testing.B, of map[string]any, path ...string) map[string]any {
	b.Helper()
	for _, name := range path {
		inner, is := of[name].(map[string]any)
		if !is {
			b.Fatalf("%s of %s is no map in the rendered chart", name, strings.Join(path, "."))
		}
		of = inner
	}
	return of
}

func addNamespaces(selector map[string]any, namespaces []string) {
	values := make([]any, len(namespaces))
	for i, namespace := range namespaces {
		values[i] = namespace
	}
	expressions, _ := selector["matchExpressions"].([]any)
	selector["matchExpressions"] = append(slices.Clone(expressions), map[string]any{
		"key": corev1.LabelMetadataName, "operator": string(metav1.LabelSelectorOpIn), "values": values,
	})
}

// start starts Redis, and the webhook with the arguments of the chart.
func (p *plumbline) start(b *testing.B, w *world) {
	b.Helper()
	folder := filepath.Join(w.dir, "redis")
	if err := os.Mkdir(folder, 0o700); err != nil {
		b.Fatal(err)
	}
	redis, err := server.StartRedis(b.Context(), folder)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(redis.Kill)
	if p.redis, err = procfs.FindChild("redis-server"); err != nil {
		b.Fatal(err)
	}
	if err := server.Build(b.Context(), w.dir, "webhook"); err != nil {
		b.Fatal(err)
	}
	kubeconfig := filepath.Join(w.dir, "webhook.kubeconfig")
	if err := apiserver.WriteKubeconfig(kubeconfig, w.config, apiserver.Impersonating(w.config, hookUser)); err != nil {
		b.Fatal(err)
	}
	environment, args := p.command(b)
	args = append(args,
		"--kubeconfig="+kubeconfig, "--namespace="+rendered.Namespace, fmt.Sprintf("--port=%d", p.port), "--server-names=127.0.0.1",
		"--redis-address="+redis.Socket)
	if p.Process, err = server.StartWith(environment, filepath.Join(w.dir, "webhook"), args...); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { report(b, p.Stop()) })
}

// elsewhere are the arguments of the chart for parts that have another place here.
var elsewhere = []string{"--namespace=", "--port=", "--metrics-address=", "--health-address=", "--redis-address=", "--redis-username=", "--redis-password-file="}

// command reads the arguments and the limit of memory of the webhook from the chart.
func (p *plumbline) command(b *testing.B) (environment, args []string) {
	b.Helper()
	for _, object := range rendered.OfKind(p.chart, "Deployment") {
		if object.GetName() != "plumbline-webhook" {
			continue
		}
		deployment, err := rendered.Convert[appsv1.Deployment](object)
		if err != nil {
			b.Fatal(err)
		}
		container := deployment.Spec.Template.Spec.Containers[0]
		for _, variable := range container.Env {
			if variable.Name == "GOMEMLIMIT" {
				environment = append(environment, variable.Name+"="+variable.Value)
			}
		}
		return environment, slices.DeleteFunc(slices.Clone(container.Args), func(arg string) bool {
			return slices.ContainsFunc(elsewhere, func(prefix string) bool { return strings.HasPrefix(arg, prefix) })
		})
	}
	b.Fatal("the chart has no Deployment plumbline-webhook")
	return nil, nil
}

// guard makes a guard of mode Warn on the Deployments of a namespace.
func (p *plumbline) guard(b *testing.B, w *world, namespace string) {
	b.Helper()
	guard := &v1alpha1.SpecGuard{
		ObjectMeta: metav1.ObjectMeta{Name: "guard", Namespace: namespace},
		Spec: v1alpha1.GuardSpec{
			Resources:      []v1alpha1.GuardedResource{{APIVersion: "apps/v1", Kind: "Deployment"}},
			Mode:           v1alpha1.GuardModeWarn,
			TrustedWriters: v1alpha1.Writers{ServiceAccounts: []v1alpha1.ServiceAccountReference{{Namespace: "cicd", Name: "deployer"}}},
		},
	}
	if err := w.admin.Create(b.Context(), guard); err != nil {
		b.Fatal(err)
	}
	p.guards++
	eventually(b, "the webhook knows the guard", func() error {
		known, err := p.Metric(context.WithoutCancel(b.Context()), "plumbline_guards")
		if err == nil && known != float64(p.guards) {
			err = fmt.Errorf("it knows %v of %d", known, p.guards)
		}
		return err
	})
}
