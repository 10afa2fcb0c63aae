// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// Rollouts reads which runs of ABReleases are under way.
type Rollouts struct{}

// Holders implements exec.Rollouts.
func (Rollouts) Holders(ctx context.Context, from client.Reader, namespace string, targets []v1alpha1.PlanTarget) ([]string, error) {
	var releases v1alpha1.ABReleaseList
	if err := from.List(ctx, &releases, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing ABReleases of namespace %s: %w", namespace, err)
	}
	holders := make([]string, len(targets))
	for i := range targets {
		t := &targets[i]
		if canon.ParseGVK(t.APIVersion, t.Kind).Group == "apps" {
			holders[i] = rollout.FindHolder(releases.Items, namespace, t.Kind, t.Name)
		}
	}
	return holders, nil
}
