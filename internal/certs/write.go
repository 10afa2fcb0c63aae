// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
)

// fieldManager owns the caBundles; Helm, which leaves them out, cannot take them.
const fieldManager = "plumbline-webhook"

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
	if _, err := k.client.CoreV1().Secrets(k.cfg.Namespace).Update(ctx, secret, metav1.UpdateOptions{FieldManager: fieldManager}); err != nil {
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
	opts := metav1.ApplyOptions{FieldManager: fieldManager + "-" + k.cfg.Identity}
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

// publish brings the bundle into every webhook of both configurations that has
// another one.
func (k *Keeper) publish(ctx context.Context, bundle []byte) error {
	var errs []error
	if c := k.watch.mutatingConfiguration(); c != nil {
		hooks := make([]hook, len(c.Webhooks))
		for i := range c.Webhooks {
			hooks[i] = hook{c.Webhooks[i].Name, c.Webhooks[i].ClientConfig.CABundle}
		}
		if patch := bundlePatch(hooks, bundle); patch != nil {
			_, err := k.client.AdmissionregistrationV1().MutatingWebhookConfigurations().
				Patch(ctx, c.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
			errs = append(errs, err)
		}
	}
	if c := k.watch.validatingConfiguration(); c != nil {
		hooks := make([]hook, len(c.Webhooks))
		for i := range c.Webhooks {
			hooks[i] = hook{c.Webhooks[i].Name, c.Webhooks[i].ClientConfig.CABundle}
		}
		if patch := bundlePatch(hooks, bundle); patch != nil {
			_, err := k.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().
				Patch(ctx, c.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("publishing the bundle: %w", err)
	}
	return nil
}

// hook is one webhook of a configuration.
type hook struct {
	name   string
	bundle []byte
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
