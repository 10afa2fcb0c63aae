// SPDX-License-Identifier: Apache-2.0

//go:build integration

package injection

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	arv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

// webhook is the real one, with the arguments, the configuration and the rights that
// the chart gives it.
type webhook struct {
	process *server.Process
	binary  string
	args    []string
	port    int
}

// account is the webhook's own, so that its rights are those of the chart.
const account = "system:serviceaccount:" + rendered.Namespace + ":plumbline-webhook"

func newWebhook(directory string, objects []*unstructured.Unstructured) (*webhook, error) {
	kubeconfig, injectConfig := filepath.Join(directory, "kubeconfig"), filepath.Join(directory, "inject.yaml")
	if err := apiserver.WriteKubeconfig(kubeconfig, config, apiserver.Impersonating(config, account)); err != nil {
		return nil, err
	}
	configured, err := one[corev1.ConfigMap](objects, "ConfigMap", "plumbline-inject")
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(injectConfig, []byte(configured.Data["inject.yaml"]), 0o600); err != nil {
		return nil, err
	}
	deployment, err := one[appsv1.Deployment](objects, "Deployment", "plumbline-webhook")
	if err != nil {
		return nil, err
	}
	port, err := freeport.Claim()
	if err != nil {
		return nil, err
	}
	w := &webhook{binary: filepath.Join(directory, "webhook"), port: port}
	for _, arg := range deployment.Spec.Template.Spec.Containers[0].Args {
		// Those of the harness count, and there is no Redis.
		if !strings.HasPrefix(arg, "--metrics-address") && !strings.HasPrefix(arg, "--health-address") && !strings.HasPrefix(arg, "--redis-") {
			w.args = append(w.args, strings.ReplaceAll(arg, "$(POD_NAMESPACE)", rendered.Namespace))
		}
	}
	// The last word holds.
	w.args = append(w.args, "--kubeconfig="+kubeconfig, "--inject-config="+injectConfig, "--port="+strconv.Itoa(port),
		"--server-names=127.0.0.1", "--drain-delay=0s", "--certificate-settle=1s")
	return w, nil
}

// one is an object of the chart as its type.
func one[T any](objects []*unstructured.Unstructured, kind, name string) (*T, error) {
	for _, object := range rendered.OfKind(objects, kind) {
		if object.GetName() == name {
			return rendered.Convert[T](object)
		}
	}
	return nil, fmt.Errorf("the chart has no %s %s", kind, name)
}

// register installs the chart's webhook configurations, each with an address of this
// machine in place of the Service.
func (w *webhook) register(ctx context.Context, objects []*unstructured.Unstructured) error {
	at := func(c *arv1.WebhookClientConfig) {
		url := "https://127.0.0.1:" + strconv.Itoa(w.port) + *c.Service.Path
		c.URL, c.Service = &url, nil
	}
	for _, object := range rendered.OfKind(objects, "MutatingWebhookConfiguration") {
		mutating, err := rendered.Convert[arv1.MutatingWebhookConfiguration](object)
		if err != nil {
			return err
		}
		for i := range mutating.Webhooks {
			at(&mutating.Webhooks[i].ClientConfig)
		}
		if err := admin.Create(ctx, mutating); err != nil {
			return err
		}
	}
	for _, object := range rendered.OfKind(objects, "ValidatingWebhookConfiguration") {
		validating, err := rendered.Convert[arv1.ValidatingWebhookConfiguration](object)
		if err != nil {
			return err
		}
		for i := range validating.Webhooks {
			at(&validating.Webhooks[i].ClientConfig)
		}
		if err := admin.Create(ctx, validating); err != nil {
			return err
		}
	}
	return nil
}

// start waits until the API server can call it: it is ready when every configuration
// vouches for its certificate.
func (w *webhook) start(ctx context.Context) (err error) {
	if w.process, err = server.Start(w.binary, w.args...); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := w.process.Ready(ctx); err != nil {
		return errors.Join(err, w.process.Stop())
	}
	return nil
}

// pods counts those that were decided on, by parts of labels as in `reason="Asked"`.
func (w *webhook) pods(t *testing.T, labels ...string) float64 {
	t.Helper()
	sum, err := w.process.Metric(t.Context(), "plumbline_injection_pods_total", labels...)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}
