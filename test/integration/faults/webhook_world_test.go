// SPDX-License-Identifier: Apache-2.0

//go:build integration

package faults

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	arv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/test/harness"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

// hook is a webhook that the API server calls as the chart registers it, only by
// address instead of by Service.
type hook struct {
	*world
	*server.Process
	of   *testing.T // whose end is the process's
	port int
	args []string
}

// unhurried is for how many seconds the API server waits for an answer in tests that
// are not about that, so that what a busy machine makes slow is no call without one.
const unhurried = 10

// webhook registers a webhook and starts it; both are gone after the test.
func (w *world) webhook(args ...string) *hook {
	w.t.Helper()
	return w.webhookTrusting(nil, args...)
}

// webhookTrusting is webhook with a caBundle that somebody else wrote.
func (w *world) webhookTrusting(bundle []byte, args ...string) *hook {
	w.t.Helper()
	return w.serve(bundle, unhurried, args)
}

// hurriedWebhook is webhook with the timeout of the chart.
func (w *world) hurriedWebhook() *hook {
	w.t.Helper()
	return w.serve(nil, 0, nil)
}

func (w *world) serve(bundle []byte, seconds int32, args []string) *hook {
	w.t.Helper()
	port := freeport.For(w.t)
	h := &hook{world: w, of: w.t, port: port}
	h.args = append([]string{
		"--port=" + strconv.Itoa(port), "--server-names=127.0.0.1", "--drain-delay=0s", "--certificate-settle=1s",
	}, args...)
	w.Must(w.register(port, seconds))
	w.t.Cleanup(w.unregister)
	if bundle != nil {
		w.setBundle(bundle)
	}
	h.start()
	h.awaitServing()
	return h
}

// start starts the process, once more if need be. The Lease of one that was
// killed would be waited for otherwise, up to 15 seconds.
func (h *hook) start() {
	h.t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: rendered.Namespace, Name: "plumbline-webhook"}}
	h.Must(h.c.Admin.Get(h.Ctx(), client.ObjectKeyFromObject(lease), lease))
	lease.Spec.HolderIdentity = nil
	h.Must(h.c.Admin.Update(h.Ctx(), lease))
	h.Process = h.c.startProcess(h.of, "webhook", webhookUser, h.args...)
	h.ready(h.Process)
}

// awaitServing waits until the API server calls it.
func (h *hook) awaitServing() {
	h.t.Helper()
	h.Eventually("the API server calls the webhook", func() error {
		before, err := h.Metric(h.Ctx(), "plumbline_admission_reviews_total")
		if err != nil {
			return err
		}
		if err := h.As(ci).Create(h.Ctx(), guarded.Deployment(h.Name, "probe"), dryRun); err != nil {
			return err
		}
		after, err := h.Metric(h.Ctx(), "plumbline_admission_reviews_total")
		if err != nil {
			return err
		}
		if after < before+2 {
			return fmt.Errorf("%v reviews of one write", after-before)
		}
		return nil
	})
}

// guarded makes a guard and waits until the webhook knows it; for that no
// assessor is needed.
func (h *hook) guarded() {
	h.t.Helper()
	h.Guard()
	h.comes(h.Process, moreThan(0), "plumbline_guards", `state="active"`)
}

// register registers the webhooks of the chart, with an address in place of the
// Service, and with a timeout in seconds; zero is that of the chart.
func (w *world) register(port int, seconds int32) error {
	at := func(c *arv1.WebhookClientConfig, timeout **int32) {
		url := fmt.Sprintf("https://127.0.0.1:%d%s", port, *c.Service.Path)
		*c = arv1.WebhookClientConfig{URL: &url}
		if seconds != 0 {
			*timeout = &seconds
		}
	}
	for _, object := range rendered.OfKind(manifest, "MutatingWebhookConfiguration") {
		m, err := rendered.Convert[arv1.MutatingWebhookConfiguration](object)
		if err != nil {
			return err
		}
		for i := range m.Webhooks {
			at(&m.Webhooks[i].ClientConfig, &m.Webhooks[i].TimeoutSeconds)
		}
		if err := w.c.Admin.Create(w.Ctx(), m); err != nil {
			return err
		}
	}
	for _, object := range rendered.OfKind(manifest, "ValidatingWebhookConfiguration") {
		v, err := rendered.Convert[arv1.ValidatingWebhookConfiguration](object)
		if err != nil {
			return err
		}
		for i := range v.Webhooks {
			at(&v.Webhooks[i].ClientConfig, &v.Webhooks[i].TimeoutSeconds)
		}
		if err := w.c.Admin.Create(w.Ctx(), v); err != nil {
			return err
		}
	}
	return nil
}

// unhurry gives the webhooks of a hurriedWebhook time, once the test is past what it is
// about.
func (w *world) unhurry() {
	w.t.Helper()
	patch := fmt.Appendf(nil, `[{"op":"replace","path":"/webhooks/0/timeoutSeconds","value":%d}]`, unhurried)
	for _, o := range configurations() {
		w.Must(w.c.Admin.Patch(w.Ctx(), o, client.RawPatch(types.JSONPatchType, patch)))
	}
}

// configurations are both, by name.
func configurations() []client.Object {
	name := metav1.ObjectMeta{Name: rendered.Release}
	return []client.Object{&arv1.MutatingWebhookConfiguration{ObjectMeta: name}, &arv1.ValidatingWebhookConfiguration{ObjectMeta: name}}
}

func (w *world) unregister() {
	for _, o := range configurations() {
		if err := w.c.Admin.Delete(context.Background(), o); err != nil {
			w.t.Errorf("removing a webhook configuration: %v", err)
		}
	}
}

// bundles are the caBundles of both configurations.
func (w *world) bundles() (mutating, validating []byte) {
	w.t.Helper()
	m, v := &arv1.MutatingWebhookConfiguration{}, &arv1.ValidatingWebhookConfiguration{}
	key := client.ObjectKey{Name: rendered.Release}
	w.Must(w.c.Admin.Get(w.Ctx(), key, m))
	w.Must(w.c.Admin.Get(w.Ctx(), key, v))
	return m.Webhooks[0].ClientConfig.CABundle, v.Webhooks[0].ClientConfig.CABundle
}

// setBundle puts an authority into both configurations, as somebody who thinks
// that he knows better.
func (w *world) setBundle(bundle []byte) {
	w.t.Helper()
	m, v := &arv1.MutatingWebhookConfiguration{}, &arv1.ValidatingWebhookConfiguration{}
	key := client.ObjectKey{Name: rendered.Release}
	w.Must(w.c.Admin.Get(w.Ctx(), key, m))
	m.Webhooks[0].ClientConfig.CABundle = bytes.Clone(bundle)
	w.Must(w.c.Admin.Update(w.Ctx(), m))
	w.Must(w.c.Admin.Get(w.Ctx(), key, v))
	v.Webhooks[0].ClientConfig.CABundle = bytes.Clone(bundle)
	w.Must(w.c.Admin.Update(w.Ctx(), v))
}

// raw is a client of the API server's paths.
func (w *world) raw() rest.Interface {
	w.t.Helper()
	config := rest.CopyConfig(w.c.Config)
	config.GroupVersion, config.NegotiatedSerializer = &metav1.Unversioned, serializer.NewCodecFactory(scheme.Scheme)
	raw, err := rest.UnversionedRESTClientFor(config)
	w.Must(err)
	return raw
}

// apiMetric sums a metric of the API server.
func (w *world) apiMetric(name string, labels ...string) float64 {
	w.t.Helper()
	page, err := w.raw().Get().AbsPath("/metrics").DoRaw(w.Ctx())
	w.Must(err)
	sum, err := harness.SumSamples(string(page), name, labels...)
	w.Must(err)
	return sum
}

// failOpen is how many calls of our webhooks the API server went on without.
func (w *world) failOpen() float64 {
	w.t.Helper()
	return w.apiMetric("apiserver_admission_webhook_fail_open_count", ".plumbline.dev")
}

// metric reads a metric of a process that runs.
func (w *world) metric(p *server.Process, name string, labels ...string) float64 {
	w.t.Helper()
	v, err := p.Metric(w.Ctx(), name, labels...)
	w.Must(err)
	return v
}

// comes waits until a metric is as the check wants it.
func (w *world) comes(p *server.Process, enough func(float64) bool, name string, labels ...string) {
	w.t.Helper()
	w.Eventually(fmt.Sprintf("%s%v comes", name, labels), func() error {
		v, err := p.Metric(w.Ctx(), name, labels...)
		if err == nil && !enough(v) {
			err = fmt.Errorf("it is %v", v)
		}
		return err
	})
}

func moreThan(n float64) func(float64) bool { return func(v float64) bool { return v > n } }
func exactly(n float64) func(float64) bool  { return func(v float64) bool { return v == n } }

// stampOf is the hash that a stored Deployment is stamped with.
func (w *world) stampOf(name string) string {
	w.t.Helper()
	return w.Live(name).Annotations[v1alpha1.AnnotationSpecHash]
}

// hashOf is the hash of the whole of a stored Deployment, which a fresh stamp has.
func (w *world) hashOf(name string) string {
	w.t.Helper()
	body, err := w.raw().Get().AbsPath("/apis/apps/v1/namespaces", w.Name, "deployments", name).
		SetHeader("Accept", "application/json").DoRaw(w.Ctx())
	w.Must(err)
	hash, err := canon.HashBody(body, canon.GVK{Group: "apps", Version: "v1", Kind: "Deployment"})
	w.Must(err)
	return string(hash)
}

// timed is how long a write took.
func timed(write func()) time.Duration {
	began := time.Now()
	write()
	return time.Since(began)
}

// dryRun asks for everything but the storing.
var dryRun = client.DryRunAll

// background is for what has to be done after the test's own context ended.
func (w *world) background() context.Context { return context.WithoutCancel(w.Ctx()) }
