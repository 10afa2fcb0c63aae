// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	arv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	arinformers "k8s.io/client-go/informers/admissionregistration/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// webhooks publishes into the caBundle of every webhook of some configurations,
// where the API server finds it. They are followed by name: RBAC grants nothing else.
type webhooks struct {
	client kubernetes.Interface
	// manager owns the caBundles; Helm, which leaves them out, cannot take them.
	manager    string
	mutating   map[string]cache.SharedIndexInformer
	validating map[string]cache.SharedIndexInformer
}

func newWebhooks(client kubernetes.Interface, cfg Config) *webhooks {
	w := &webhooks{
		client: client, manager: cfg.FieldManager,
		mutating: map[string]cache.SharedIndexInformer{}, validating: map[string]cache.SharedIndexInformer{},
	}
	w.validating[cfg.ConfigurationName] = arinformers.NewFilteredValidatingWebhookConfigurationInformer(client, 0, nil, byName(cfg.ConfigurationName))
	for _, name := range []string{cfg.ConfigurationName, cfg.InjectionName} {
		if name != "" {
			w.mutating[name] = arinformers.NewFilteredMutatingWebhookConfigurationInformer(client, 0, nil, byName(name))
		}
	}
	return w
}

// Informers implements [Publisher].
func (w *webhooks) Informers() []cache.SharedIndexInformer {
	var out []cache.SharedIndexInformer
	for _, byName := range []map[string]cache.SharedIndexInformer{w.mutating, w.validating} {
		for _, informer := range byName {
			out = append(out, informer)
		}
	}
	return out
}

// hook is one webhook of a configuration.
type hook struct {
	name   string
	bundle []byte
}

func (w *webhooks) mutatingHooks(name string) []hook {
	var out []hook
	if c := stored[arv1.MutatingWebhookConfiguration](w.mutating[name], name); c != nil {
		for i := range c.Webhooks {
			out = append(out, hook{c.Webhooks[i].Name, c.Webhooks[i].ClientConfig.CABundle})
		}
	}
	return out
}

func (w *webhooks) validatingHooks(name string) []hook {
	var out []hook
	if c := stored[arv1.ValidatingWebhookConfiguration](w.validating[name], name); c != nil {
		for i := range c.Webhooks {
			out = append(out, hook{c.Webhooks[i].Name, c.Webhooks[i].ClientConfig.CABundle})
		}
	}
	return out
}

// Published implements [Publisher].
func (w *webhooks) Published() [][]byte {
	var out [][]byte
	add := func(hooks []hook) {
		for _, h := range hooks {
			out = append(out, h.bundle)
		}
	}
	for name := range w.mutating {
		add(w.mutatingHooks(name))
	}
	for name := range w.validating {
		add(w.validatingHooks(name))
	}
	return out
}

// Publish implements [Publisher].
func (w *webhooks) Publish(ctx context.Context, bundle []byte) error {
	var errs []error
	opts := metav1.PatchOptions{FieldManager: w.manager}
	for name := range w.mutating {
		if patch := bundlePatch(w.mutatingHooks(name), bundle); patch != nil {
			_, err := w.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Patch(ctx, name, types.JSONPatchType, patch, opts)
			errs = append(errs, err)
		}
	}
	for name := range w.validating {
		if patch := bundlePatch(w.validatingHooks(name), bundle); patch != nil {
			_, err := w.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Patch(ctx, name, types.JSONPatchType, patch, opts)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// operation is one step of a JSON Patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// bundlePatch sets the caBundle where it differs and nothing else; nil when it
// differs nowhere. Each step first tests the webhook's name: the list may have
// changed since it was read.
func bundlePatch(hooks []hook, bundle []byte) []byte {
	var steps []operation
	for i, h := range hooks {
		if bytes.Equal(h.bundle, bundle) {
			continue
		}
		at := "/webhooks/" + strconv.Itoa(i)
		steps = append(steps,
			operation{"test", at + "/name", h.name},
			operation{"add", at + "/clientConfig/caBundle", bundle})
	}
	if steps == nil {
		return nil
	}
	raw, err := json.Marshal(steps)
	if err != nil {
		panic(fmt.Sprintf("encoding a patch of strings: %v", err)) // Strings and bytes always encode.
	}
	return raw
}
