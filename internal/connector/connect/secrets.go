// SPDX-License-Identifier: Apache-2.0

package connect

import "github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"

// SecretsOf returns the keys of Secrets that a TrafficRouter names.
func SecretsOf(spec *v1alpha1.TrafficRouterSpec) (refs []v1alpha1.RouterSecretKey) {
	if spec.Webhook != nil {
		refs = append(refs, spec.Webhook.SecretRef)
	}
	if spec.Traefik == nil {
		return refs
	}
	refs = append(refs, spec.Traefik.TokenSecretRef)
	for i := range spec.Traefik.Programs {
		if ref := spec.Traefik.Programs[i].PasswordSecretRef; ref != nil {
			refs = append(refs, *ref)
		}
	}
	return refs
}
