// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	arv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	arinformers "k8s.io/client-go/informers/admissionregistration/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// watch follows the three objects by name: RBAC grants nothing else.
type watch struct {
	cfg        Config
	secret     cache.SharedIndexInformer
	mutating   cache.SharedIndexInformer
	validating cache.SharedIndexInformer
	onChange   func()
}

func newWatch(client kubernetes.Interface, cfg Config, onChange func()) *watch {
	byName := func(name string) func(*metav1.ListOptions) {
		return func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
		}
	}
	return &watch{
		cfg:        cfg,
		secret:     coreinformers.NewFilteredSecretInformer(client, cfg.Namespace, 0, nil, byName(cfg.SecretName)),
		mutating:   arinformers.NewFilteredMutatingWebhookConfigurationInformer(client, 0, nil, byName(cfg.ConfigurationName)),
		validating: arinformers.NewFilteredValidatingWebhookConfigurationInformer(client, 0, nil, byName(cfg.ConfigurationName)),
		onChange:   onChange,
	}
}

func (w *watch) informers() []cache.SharedIndexInformer {
	return []cache.SharedIndexInformer{w.secret, w.mutating, w.validating}
}

// run follows until ctx ends.
func (w *watch) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, informer := range w.informers() {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { w.onChange() },
			UpdateFunc: func(any, any) { w.onChange() },
			DeleteFunc: func(any) { w.onChange() },
		})
		if err != nil {
			return fmt.Errorf("watching certificates: %w", err)
		}
		group.Go(func() error {
			informer.RunWithContext(ctx)
			return nil
		})
	}
	return group.Wait()
}

// waitSynced reports false when ctx ended first.
func (w *watch) waitSynced(ctx context.Context) bool {
	var synced []cache.InformerSynced
	for _, informer := range w.informers() {
		synced = append(synced, informer.HasSynced)
	}
	return cache.WaitForCacheSync(ctx.Done(), synced...)
}

// secretData is the data of the Secret; false when there is no Secret.
func (w *watch) secretData() (map[string][]byte, bool) {
	obj, ok, err := w.secret.GetStore().GetByKey(w.cfg.Namespace + "/" + w.cfg.SecretName)
	if err != nil || !ok {
		return nil, false
	}
	return obj.(*corev1.Secret).Data, true
}

// bundles are the caBundles of all webhooks of both configurations. It is
// empty when there is no configuration.
func (w *watch) bundles() [][]byte {
	var out [][]byte
	if c := w.mutatingConfiguration(); c != nil {
		for i := range c.Webhooks {
			out = append(out, c.Webhooks[i].ClientConfig.CABundle)
		}
	}
	if c := w.validatingConfiguration(); c != nil {
		for i := range c.Webhooks {
			out = append(out, c.Webhooks[i].ClientConfig.CABundle)
		}
	}
	return out
}

func (w *watch) mutatingConfiguration() *arv1.MutatingWebhookConfiguration {
	obj, ok, err := w.mutating.GetStore().GetByKey(w.cfg.ConfigurationName)
	if err != nil || !ok {
		return nil
	}
	return obj.(*arv1.MutatingWebhookConfiguration)
}

func (w *watch) validatingConfiguration() *arv1.ValidatingWebhookConfiguration {
	obj, ok, err := w.validating.GetStore().GetByKey(w.cfg.ConfigurationName)
	if err != nil || !ok {
		return nil
	}
	return obj.(*arv1.ValidatingWebhookConfiguration)
}
