// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// RequestForgiveness lets a policy repair again what earlier repairs did not help, if no user has
// changed its spec since it was shown; otherwise the error is ErrPolicyChanged. Repairs of after the
// time count again. What is stored is in p afterwards.
func RequestForgiveness(ctx context.Context, c client.Client, p *v1alpha1.RemediationPolicy, at time.Time, dryRun bool) error {
	shown := p.Generation
	return Submit(ctx, c, "it", p, func(current *v1alpha1.RemediationPolicy) (map[string]any, error) {
		if current.Generation != shown {
			return nil, ErrPolicyChanged
		}
		annotations := map[string]any{v1alpha1.AnnotationChainsForgiven: at.UTC().Format(time.RFC3339)}
		return map[string]any{"metadata": map[string]any{"annotations": annotations}}, nil
	}, patchOptions(dryRun)...)
}
