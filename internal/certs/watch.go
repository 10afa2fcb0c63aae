// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// watch follows the Secret and what is published.
type watch struct {
	cfg       Config
	secret    cache.SharedIndexInformer
	publisher Publisher
	onChange  func()
}

func newWatch(client kubernetes.Interface, cfg Config, publisher Publisher, onChange func()) *watch {
	secret := coreinformers.NewFilteredSecretInformer(client, cfg.Namespace, 0, nil, byName(cfg.SecretName))
	return &watch{cfg: cfg, secret: secret, publisher: publisher, onChange: onChange}
}

func (w *watch) informers() []cache.SharedIndexInformer {
	return append(w.publisher.Informers(), w.secret)
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
	secret := stored[corev1.Secret](w.secret, w.cfg.Namespace+"/"+w.cfg.SecretName)
	if secret == nil {
		return nil, false
	}
	return secret.Data, true
}

// bundles are those that callers find now.
func (w *watch) bundles() [][]byte { return w.publisher.Published() }
