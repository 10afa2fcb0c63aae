// SPDX-License-Identifier: Apache-2.0

package assessor

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-dev/plumbline/internal/checks"
	"github.com/plumbline-dev/plumbline/internal/controller/baseline"
	"github.com/plumbline-dev/plumbline/internal/kube"
)

// addObjects makes what tells of guarded objects: their watches, and live reads.
func (p *parts) addObjects(setup Setup, metrics *baseline.Metrics) (err error) {
	if p.live, err = checks.NewLiveObjects(setup.Config, setup.Clock); err != nil {
		return err
	}
	p.tracker, err = kube.NewTracker(setup.Config, p.findDetail, setup.ObjectCacheBytes, setup.Clock, setup.Log, kube.Hooks{
		Overflow: metrics.Overflow, Failed: metrics.WatchFailed,
		Synced:  func(gvk schema.GroupVersionKind) { p.synced(gvk) },
		Listing: func(ctx context.Context, resource kube.Resource) { p.listing(ctx, resource) },
	})
	p.ahead = checks.NewAhead(p.tracker)
	return err
}

// findDetail tells how much of the objects of a kind in a namespace is kept. Until the guards
// are known, everything is.
func (p *parts) findDetail(gvk schema.GroupVersionKind, namespace string) kube.Detail {
	if slices.Contains(p.excluded, namespace) {
		return kube.DetailNone
	}
	if snapshot := p.guards.Snapshot(); snapshot != nil && !snapshot.Covers(gvk, namespace) {
		return kube.DetailMetadata
	}
	return kube.DetailWhole
}

// readObject reads a guarded object past all caches; nil when it is absent.
func (p *parts) readObject(ctx context.Context, key kube.Key) (*kube.Object, error) {
	snapshot := p.guards.Snapshot()
	if snapshot == nil {
		return nil, fmt.Errorf("reading %s: the guards are not known", key)
	}
	resource, served := snapshot.Resources[key.GroupVersionKind]
	if !served {
		return nil, fmt.Errorf("reading %s: no active guard names its kind", key)
	}
	reading, err := p.live.Read(ctx, resource, key)
	return reading.Object, err
}
