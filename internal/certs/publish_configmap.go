// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// configMap publishes into one ConfigMap of our own namespace.
type configMap struct {
	client   kubernetes.Interface
	cfg      Config
	informer cache.SharedIndexInformer
}

func newConfigMap(client kubernetes.Interface, cfg Config) *configMap {
	return &configMap{client, cfg, coreinformers.NewFilteredConfigMapInformer(client, cfg.Namespace, 0, nil, byName(cfg.ConfigMapName))}
}

// Informers implements [Publisher].
func (c *configMap) Informers() []cache.SharedIndexInformer {
	return []cache.SharedIndexInformer{c.informer}
}

func (c *configMap) present() *corev1.ConfigMap {
	return stored[corev1.ConfigMap](c.informer, c.cfg.Namespace+"/"+c.cfg.ConfigMapName)
}

// Published implements [Publisher].
func (c *configMap) Published() [][]byte {
	if m := c.present(); m != nil {
		return [][]byte{[]byte(m.Data[keyCABundle])}
	}
	return nil
}

// Publish implements [Publisher]. A ConfigMap that was removed is made again.
func (c *configMap) Publish(ctx context.Context, bundle []byte) error {
	present := c.present()
	if present == nil {
		return c.create(ctx, bundle)
	}
	if present.Data[keyCABundle] == string(bundle) {
		return nil
	}
	if present.Immutable != nil && *present.Immutable {
		return c.remove(ctx, present)
	}
	changed := present.DeepCopy() // With its version: who was overtaken does not write.
	changed.Data = map[string]string{keyCABundle: string(bundle)}
	changed.BinaryData = nil
	if _, err := c.client.CoreV1().ConfigMaps(c.cfg.Namespace).Update(ctx, changed, metav1.UpdateOptions{FieldManager: c.cfg.FieldManager}); err != nil {
		return fmt.Errorf("writing ConfigMap %s: %w", c.cfg.ConfigMapName, err)
	}
	return nil
}

// remove removes one that cannot be changed; the watch tells when it is gone.
func (c *configMap) remove(ctx context.Context, present *corev1.ConfigMap) error {
	exactly := metav1.Preconditions{UID: &present.UID, ResourceVersion: &present.ResourceVersion}
	if err := c.client.CoreV1().ConfigMaps(c.cfg.Namespace).Delete(ctx, c.cfg.ConfigMapName, metav1.DeleteOptions{Preconditions: &exactly}); err != nil {
		return fmt.Errorf("removing the immutable ConfigMap %s: %w", c.cfg.ConfigMapName, err)
	}
	return nil
}

func (c *configMap) create(ctx context.Context, bundle []byte) error {
	m := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.cfg.Namespace, Name: c.cfg.ConfigMapName},
		Data:       map[string]string{keyCABundle: string(bundle)},
	}
	if _, err := c.client.CoreV1().ConfigMaps(c.cfg.Namespace).Create(ctx, m, metav1.CreateOptions{FieldManager: c.cfg.FieldManager}); err != nil {
		return fmt.Errorf("making ConfigMap %s: %w", c.cfg.ConfigMapName, err)
	}
	return nil
}
