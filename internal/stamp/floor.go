// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/kube"
)

// interval is how often the policy is looked at without an occasion.
const interval = 5 * time.Second

// Listing prepares for a kind's list: its floor is to be below all that is seen.
// It waits for a policy that has just been made, as after an installation.
func (p *Policy) Listing(ctx context.Context, resource kube.Resource) {
	p.mu.Lock()
	if p.kinds == nil {
		p.kinds = map[schema.GroupVersionKind]*kind{}
	}
	if p.kinds[resource.GVK] == nil {
		p.kinds[resource.GVK] = &kind{resource: resource}
	}
	p.mu.Unlock()
	now, err := p.Now(ctx)
	if err == nil && now.ID != "" {
		if wait := p.untilInForce(now); wait > 0 {
			p.pause(ctx, wait)
		}
		err = p.raise(ctx, resource)
	}
	if err != nil && ctx.Err() == nil {
		p.Log.Error(err, "preparing for a list; it is tried again", "kind", resource.GVK.Kind)
	}
}

func (p *Policy) pause(ctx context.Context, d time.Duration) {
	timer := p.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	}
}

// untilInForce is how long all API servers may still need to put a new policy in
// force.
func (p *Policy) untilInForce(now Incarnation) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil || p.last.ID != now.ID {
		return enforceTime
	}
	at := p.Clock.Now()
	if at.Sub(now.Made) >= certainAge {
		return 0
	}
	return max(0, p.seenAt.Add(enforceTime).Sub(at))
}

// raise sets the floor of a kind to what it is at now, if a policy is in force
// and has no floor there yet.
func (p *Policy) raise(ctx context.Context, resource kube.Resource) error {
	before, err := p.Now(ctx)
	if err != nil || !before.covers(resource) || p.untilInForce(before) > 0 || p.floorOf(resource.GVK).id == before.ID {
		return err
	}
	var page metav1.PartialObjectMetadataList
	page.SetGroupVersionKind(resource.GVK.GroupVersion().WithKind(resource.GVK.Kind + "List"))
	if err := p.Live.List(ctx, &page, client.Limit(1)); err != nil {
		return fmt.Errorf("asking at which version %s are: %w", resource.Plural, err)
	}
	now, err := p.Now(ctx)
	if err != nil || now.ID != before.ID { // it has gone meanwhile, and nobody knows when
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if k := p.kinds[resource.GVK]; k != nil {
		k.floor, k.since = floor{id: now.ID, version: page.ResourceVersion}, time.Time{}
	}
	return nil
}

func (p *Policy) floorOf(gvk schema.GroupVersionKind) floor {
	p.mu.Lock()
	defer p.mu.Unlock()
	if k := p.kinds[gvk]; k != nil {
		return k.floor
	}
	return floor{}
}

// Start looks after the policy until ctx ends; it is a manager.Runnable.
func (p *Policy) Start(ctx context.Context) error {
	ticker := p.Clock.NewTicker(interval)
	defer ticker.Stop()
	for {
		if err := p.check(ctx); err != nil && ctx.Err() == nil {
			p.Log.Error(err, "looking after the policy that stamps writers")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// check raises the floors that a new policy lacks, and has the objects of a kind
// looked at when the watch has come to its floor: from then on their writers are
// proven, also after a restart.
func (p *Policy) check(ctx context.Context) error {
	now, err := p.Now(ctx)
	if err != nil || now.ID == "" {
		return err
	}
	var failed []error
	for _, resource := range p.watched() {
		if err := p.raise(ctx, resource); err != nil {
			failed = append(failed, err)
			continue
		}
		progress := p.Kinds.Health(resource.GVK).Progress
		if p.Settled(resource.GVK, progress) == now.ID && p.looksFirst(resource.GVK, now.ID) {
			p.LookAt(resource.GVK)
		}
	}
	return errors.Join(failed...)
}

// watched are the kinds in a fixed order; those that no guard names any more are
// forgotten.
func (p *Policy) watched() []kube.Resource {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.kinds, func(gvk schema.GroupVersionKind, _ *kind) bool {
		return errors.Is(p.Kinds.Health(gvk).Failure, kube.ErrNotWatched)
	})
	resources := make([]kube.Resource, 0, len(p.kinds))
	for _, k := range p.kinds {
		resources = append(resources, k.resource)
	}
	slices.SortFunc(resources, func(a, b kube.Resource) int {
		return slices.Compare([]string{a.GVK.Group, a.GVK.Kind}, []string{b.GVK.Group, b.GVK.Kind})
	})
	return resources
}

// looksFirst remembers that a kind's objects are looked at under an incarnation,
// and says whether that is the first time.
func (p *Policy) looksFirst(gvk schema.GroupVersionKind, id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.kinds[gvk]
	if k == nil || k.looked == id {
		return false
	}
	k.looked = id
	return true
}
