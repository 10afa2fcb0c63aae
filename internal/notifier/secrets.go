// SPDX-License-Identifier: Apache-2.0

package notifier

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/notify"
)

// secretReader reads Secrets of one namespace. The reader must be live: a cache
// would need the right to list Secrets, and keep them all.
type secretReader struct {
	live      client.Reader
	namespace string
}

// resolve is a deliver.Secrets.
func (s secretReader) resolve(ctx context.Context, ref notify.SecretRef) (string, error) {
	secret := &corev1.Secret{}
	if err := s.live.Get(ctx, types.NamespacedName{Namespace: s.namespace, Name: ref.Name}, secret); err != nil {
		return "", fmt.Errorf("reading Secret %s: %w", ref.Name, err)
	}
	value, ok := secret.Data[ref.Key]
	if !ok {
		return "", fmt.Errorf("reading Secret %s: it has no key %s", ref.Name, ref.Key)
	}
	return string(value), nil
}
