// SPDX-License-Identifier: Apache-2.0

//go:build integration

package skew

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"testing"

	arv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// callWebhookAt has the API server call the webhook at a local port, once the webhook has
// written its authority into its configurations.
func (w *world) callWebhookAt(port int) {
	w.t.Helper()
	w.moveWebhook(func(c *arv1.WebhookClientConfig) {
		address := fmt.Sprintf("https://127.0.0.1:%d%s", port, pathOf(w.t, c))
		c.URL, c.Service = &address, nil
	})
}

// callWebhookAtService has the API server call the Service of the chart, as Helm expects it.
func (w *world) callWebhookAtService() {
	w.t.Helper()
	w.moveWebhook(func(c *arv1.WebhookClientConfig) {
		path := pathOf(w.t, c)
		c.URL, c.Service = nil, &arv1.ServiceReference{Namespace: rendered.Namespace, Name: "plumbline-webhook", Path: &path, Port: new(int32(443))}
	})
}

// pathOf returns the path at which the API server calls a webhook.
func pathOf(t *testing.T, c *arv1.WebhookClientConfig) string {
	t.Helper()
	if c.Service != nil {
		return *c.Service.Path
	}
	address, err := url.Parse(*c.URL)
	must(t, err)
	return address.Path
}

// moveWebhook changes the address in both configurations of the webhook.
func (w *world) moveWebhook(change func(*arv1.WebhookClientConfig)) {
	w.t.Helper()
	named := metav1.ObjectMeta{Name: "plumbline"}
	mutating, validating := &arv1.MutatingWebhookConfiguration{ObjectMeta: named}, &arv1.ValidatingWebhookConfiguration{ObjectMeta: named}
	poll.Until(w.t, patience, "the webhook has written its authority", func() error {
		if err := errors.Join(w.readObject(mutating), w.readObject(validating)); err != nil {
			return err
		}
		if len(mutating.Webhooks[0].ClientConfig.CABundle) == 0 || len(validating.Webhooks[0].ClientConfig.CABundle) == 0 {
			return errors.New("a configuration has no caBundle")
		}
		return nil
	})
	change(&mutating.Webhooks[0].ClientConfig)
	change(&validating.Webhooks[0].ClientConfig)
	w.patchClientConfig(mutating, &mutating.Webhooks[0].ClientConfig)
	w.patchClientConfig(validating, &validating.Webhooks[0].ClientConfig)
}

func (w *world) readObject(o client.Object) error {
	return w.cluster.Admin.Get(w.t.Context(), client.ObjectKeyFromObject(o), o)
}

func (w *world) patchClientConfig(o client.Object, c *arv1.WebhookClientConfig) {
	w.t.Helper()
	value, err := json.Marshal(c)
	must(w.t, err)
	patch := fmt.Appendf(nil, `[{"op":"replace","path":"/webhooks/0/clientConfig","value":%s}]`, value)
	must(w.t, w.cluster.Admin.Patch(w.t.Context(), o, client.RawPatch(types.JSONPatchType, patch)))
}
