// SPDX-License-Identifier: Apache-2.0

package assessor

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/internal/stamp"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// addStamps makes what looks after the policy that stamps writers, where there is one.
func (p *parts) addStamps(mgr manager.Manager, setup Setup) error {
	if setup.Rules.Stamp == specguard.StampWebhook && !setup.StampPolicy {
		return nil
	}
	metrics, err := stamp.NewMetrics(setup.Registry)
	if err != nil {
		return err
	}
	p.stamps = &stamp.Policy{
		Live: mgr.GetAPIReader(), Kinds: p.tracker, Clock: setup.Clock, Metrics: metrics, Log: setup.Log,
		LookAt: func(gvk schema.GroupVersionKind) { p.synced(gvk) },
	}
	p.baselines.Stamps = p.stamps
	return mgr.Add(p.stamps)
}

func (p *parts) listing(ctx context.Context, resource kube.Resource) {
	if p.stamps != nil {
		p.stamps.Listing(ctx, resource)
	}
}
