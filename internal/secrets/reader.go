// SPDX-License-Identifier: Apache-2.0

// Package secrets reads keys of Secrets of Plumbline's own namespace.
package secrets

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
)

// Reader reads Secrets of one namespace.
type Reader struct {
	// Live reads from the API server: a cache would need the right to list Secrets, and keep them all.
	Live client.Reader
	// Namespace is Plumbline's own.
	Namespace string
	// Only are the Secrets that may be named; nil: each one that may be read.
	Only []string
}

// Resolve is a deliver.Secrets. The error names the Secret and the key, and holds no value.
func (r Reader) Resolve(ctx context.Context, ref notify.SecretRef) (string, error) {
	if r.Only != nil && !slices.Contains(r.Only, ref.Name) {
		return "", fmt.Errorf("reading Secret %s: the installation does not list the Secret", ref.Name)
	}
	secret := &corev1.Secret{}
	if err := r.Live.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: ref.Name}, secret); err != nil {
		return "", fmt.Errorf("reading Secret %s: %w", ref.Name, err)
	}
	if err := checkPermission(secret, ref.ForNamespace); err != nil {
		return "", fmt.Errorf("reading Secret %s: %w", ref.Name, err)
	}
	value, ok := secret.Data[ref.Key]
	if !ok {
		return "", fmt.Errorf("reading Secret %s: it has no key %s", ref.Name, ref.Key)
	}
	return string(value), nil
}

// checkPermission returns an error if an object of a namespace names a Secret that does not permit it.
// Otherwise each tenant could write to each channel of the installation.
func checkPermission(secret *corev1.Secret, namespace string) error {
	if namespace == "" {
		return nil
	}
	for name := range strings.SplitSeq(secret.Annotations[v1alpha1.AnnotationNotificationNamespaces], ",") {
		if name = strings.TrimSpace(name); name == "*" || name == namespace {
			return nil
		}
	}
	return fmt.Errorf("its annotation %s does not list namespace %s", v1alpha1.AnnotationNotificationNamespaces, namespace)
}
