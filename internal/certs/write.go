// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
)

// readSecret reads the live Secret, so that a write carries the version it was
// decided on; nil when there is none.
func (k *Keeper) readSecret(ctx context.Context) (*corev1.Secret, error) {
	secret, err := k.client.CoreV1().Secrets(k.cfg.Namespace).Get(ctx, k.cfg.SecretName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // Absence is a value here, not an error.
	case err != nil:
		return nil, fmt.Errorf("reading secret %s: %w", k.cfg.SecretName, err)
	default:
		return secret, nil
	}
}

// writeSecret replaces the Secret that was read, or makes it.
func (k *Keeper) writeSecret(ctx context.Context, old *corev1.Secret, m *Material) error {
	data, err := m.Data()
	if err != nil {
		return err
	}
	if old == nil {
		return k.createSecret(ctx, data)
	}
	secret := old.DeepCopy()
	secret.Data = data
	if _, err := k.client.CoreV1().Secrets(k.cfg.Namespace).Update(ctx, secret, metav1.UpdateOptions{FieldManager: k.cfg.FieldManager}); err != nil {
		return fmt.Errorf("writing secret %s: %w", k.cfg.SecretName, err)
	}
	return nil
}

// createSecret makes the Secret by an apply, because RBAC can name the object
// of an apply and not that of a POST. The field manager is this replica's own
// and nothing is forced: had another replica made the Secret in the meantime,
// the API server reports a conflict over its fields.
func (k *Keeper) createSecret(ctx context.Context, data map[string][]byte) error {
	secret := applycorev1.Secret(k.cfg.SecretName, k.cfg.Namespace).WithType(corev1.SecretTypeOpaque).WithData(data)
	if owner := k.owner(ctx); owner != nil {
		secret.WithOwnerReferences(owner)
	}
	opts := metav1.ApplyOptions{FieldManager: k.cfg.FieldManager + "-" + k.cfg.Identity}
	if _, err := k.client.CoreV1().Secrets(k.cfg.Namespace).Apply(ctx, secret, opts); err != nil {
		return fmt.Errorf("making secret %s: %w", k.cfg.SecretName, err)
	}
	return nil
}

// owner is our own Deployment. A Secret without owner still serves, so its
// absence is no error.
func (k *Keeper) owner(ctx context.Context) *applymetav1.OwnerReferenceApplyConfiguration {
	d, err := k.client.AppsV1().Deployments(k.cfg.Namespace).Get(ctx, k.cfg.DeploymentName, metav1.GetOptions{})
	if err != nil {
		k.log.Warn("certs.owner.unknown", "deployment", k.cfg.DeploymentName, "error", err.Error())
		return nil
	}
	return applymetav1.OwnerReference().WithAPIVersion("apps/v1").WithKind("Deployment").WithName(d.Name).WithUID(d.UID)
}
