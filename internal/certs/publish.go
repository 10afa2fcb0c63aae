// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Publisher is where those that call us find the authorities that they trust.
type Publisher interface {
	// Informers see what is published; nothing is known before they are synced.
	Informers() []cache.SharedIndexInformer
	// Published are the bundles that are there now, one for each caller; none when
	// there is no place for one.
	Published() [][]byte
	// Publish brings a bundle everywhere where there is another one.
	Publish(ctx context.Context, bundle []byte) error
}

// newPublisher is the one that the configuration names.
func newPublisher(client kubernetes.Interface, cfg Config) Publisher {
	if cfg.ConfigMapName != "" {
		return newConfigMap(client, cfg)
	}
	return newWebhooks(client, cfg)
}

// byName narrows an informer to the one object that RBAC grants.
func byName(name string) func(*metav1.ListOptions) {
	return func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	}
}

// stored is an object of an informer; nil when there is none of that name.
func stored[T any](informer cache.SharedIndexInformer, key string) *T {
	object, ok, err := informer.GetStore().GetByKey(key)
	if err != nil || !ok {
		return nil
	}
	return object.(*T)
}
