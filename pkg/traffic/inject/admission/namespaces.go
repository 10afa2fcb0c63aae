// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// Whoever reaches the port may post reviews about namespaces that nobody knows. What
// we ask the API server for their sake is bounded; beyond it a pod is denied, at once
// if its turn would come too late. So at most 80 reviews wait for an answer, which
// leaves most places of the server to others.
const (
	asksPerSecond = 20
	asksAtOnce    = 40
)

// Namespaces are the Labels of a cluster.
type Namespaces struct {
	known  func(namespace string) map[string]string
	client metadata.Getter
}

// NewNamespaces asks the API server where known, a cache, knows nothing.
func NewNamespaces(config *rest.Config, known func(namespace string) map[string]string) (*Namespaces, error) {
	// A limit of its own: what others ask does not wait for it.
	config = rest.CopyConfig(config)
	config.RateLimiter, config.QPS, config.Burst = nil, asksPerSecond, asksAtOnce
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the client for namespaces: %w", err)
	}
	return &Namespaces{known: known, client: client.Resource(corev1.SchemeGroupVersion.WithResource("namespaces"))}, nil
}

// Known implements Labels.
func (n *Namespaces) Known(namespace string) map[string]string { return n.known(namespace) }

// Ask implements Labels.
func (n *Namespaces) Ask(ctx context.Context, namespace string) (map[string]string, error) {
	found, err := n.client.Get(ctx, namespace, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("asking the API server: %w", err)
	}
	return found.Labels, nil
}
