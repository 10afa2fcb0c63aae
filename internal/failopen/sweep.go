// SPDX-License-Identifier: Apache-2.0

package failopen

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/guards"
	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

const (
	// sweepPage is how many objects one list returns at most.
	sweepPage = 500
	// settleTime is the time that watch and queue get to catch up with the list before
	// an object counts as behind.
	settleTime = 10 * time.Second
	// clockSlack covers whole seconds in managedFields and clocks that differ.
	clockSlack = 5 * time.Second
)

// Objects returns the objects of the watch; *kube.Tracker does.
type Objects interface {
	View(kube.Key) kube.View
	Each(func(kube.Key))
	Watch(ctx context.Context, resources []kube.Resource)
}

// Guards returns the guarded kinds and objects; *guard.Controller does.
type Guards interface {
	Snapshot() *guards.Snapshot
}

// Sweep compares the API server's own list with the watch and the Baselines. It puts
// each object that was written in the window through the queue once more, and counts
// the objects that are behind after a while. It lists a kind again whose watch has
// missed a write.
type Sweep struct {
	// Live reads past the cache. A list without a resourceVersion is answered
	// from a quorum.
	Live client.Reader
	// Baselines are read from the cache.
	Baselines client.Reader
	Objects   Objects
	Guards    Guards
	// Look asks to look at an object.
	Look func(kube.Key)
	// Lifetime of the watches.
	Lifetime context.Context
	Metrics  *Metrics
	Clock    clock.Clock
	Log      logr.Logger
}

// listed is one object in a list.
type listed struct {
	key        kube.Key
	uid        types.UID
	version    string
	generation int64
}

// Sweep looks again at the objects that were written in a window.
func (s *Sweep) Sweep(ctx context.Context, w Window) error {
	snapshot := s.Guards.Snapshot()
	if snapshot == nil {
		return errors.New("sweeping: the guards are not read yet")
	}
	var written []listed
	var stale []listed
	for _, resource := range snapshot.Watched() {
		all, err := s.list(ctx, resource, w)
		if err != nil {
			return err
		}
		written = append(written, all.written...)
		stale = append(stale, s.staleOf(all)...)
	}
	s.Metrics.swept.Add(float64(len(written)))
	for _, o := range written {
		s.Look(o.key)
	}
	if err := s.settle(ctx); err != nil {
		return err
	}
	s.healWatches(stale)
	s.countLagging(ctx, written)
	s.Log.Info("failopen.swept", "evidence", w.Evidence, "from", w.From, "to", w.To, "objects", len(written))
	return nil
}

// kindList is the list of one kind: all objects, and those that were written in the window.
type kindList struct {
	resource kube.Resource
	present  map[kube.Key]listed
	written  []listed
	version  string
}

func (s *Sweep) list(ctx context.Context, resource kube.Resource, w Window) (kindList, error) {
	all := kindList{resource: resource, present: map[kube.Key]listed{}}
	next := ""
	for {
		var page metav1.PartialObjectMetadataList
		page.SetGroupVersionKind(resource.GVK.GroupVersion().WithKind(resource.GVK.Kind + "List"))
		if err := s.Live.List(ctx, &page, client.Limit(sweepPage), client.Continue(next)); err != nil {
			return kindList{}, fmt.Errorf("sweeping %s: %w", resource.Plural, err)
		}
		for i := range page.Items {
			s.take(&all, &page.Items[i], w)
		}
		all.version = page.ResourceVersion
		if next = page.Continue; next == "" {
			return all, nil
		}
	}
}

func (s *Sweep) take(all *kindList, o *metav1.PartialObjectMetadata, w Window) {
	key := kube.Key{GroupVersionKind: all.resource.GVK, Namespace: o.Namespace, Name: o.Name}
	entry := listed{key: key, uid: o.UID, version: o.ResourceVersion, generation: o.Generation}
	all.present[key] = entry
	if writtenSince(&o.ObjectMeta, w.From.Add(-clockSlack)) {
		all.written = append(all.written, entry)
	}
}

// writtenSince tells by the API server's own book-keeping whether an object was
// written; without any, it counts as written.
func writtenSince(o *metav1.ObjectMeta, since time.Time) bool {
	if !o.CreationTimestamp.Time.Before(since) || len(o.ManagedFields) == 0 {
		return true
	}
	for i := range o.ManagedFields {
		if t := o.ManagedFields[i].Time; t != nil && !t.Time.Before(since) {
			return true
		}
	}
	return false
}

// staleOf are the objects of a kind that the watch does not have as listed. Most
// are merely on their way.
func (s *Sweep) staleOf(all kindList) []listed {
	var stale []listed
	known := map[kube.Key]bool{}
	s.Objects.Each(func(key kube.Key) {
		if key.GroupVersionKind != all.resource.GVK || s.Objects.View(key).Current == nil {
			return
		}
		known[key] = true
		if _, ok := all.present[key]; !ok {
			stale = append(stale, listed{key: key, version: all.version}) // missed its end
		}
	})
	for key, o := range all.present {
		// An object that the watch does not have may be in a namespace that does not count.
		if known[key] && s.behind(o) {
			stale = append(stale, o)
		}
	}
	return stale
}

// behind tells whether the watch has an older version than the list.
func (s *Sweep) behind(o listed) bool {
	view := s.Objects.View(o.key)
	switch {
	case view.Unknown != nil, view.Current == nil:
		return false // gone since the list, or being listed
	default:
		return kube.IsOlder(view.Current.ResourceVersion, o.version)
	}
}

func (s *Sweep) settle(ctx context.Context) error {
	timer := s.Clock.NewTimer(settleTime)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C():
		return nil
	}
}

// healWatches lists the kinds again whose watches are still behind.
func (s *Sweep) healWatches(stale []listed) {
	broken := map[string]bool{}
	for _, o := range stale {
		if !s.behind(o) {
			continue
		}
		s.Metrics.behind.WithLabelValues(behindWatch).Inc()
		s.Log.Error(nil, "the watch had missed a version; the kind is listed again", "kind", o.key.Kind,
			"namespace", o.key.Namespace, "name", o.key.Name, "version", o.version)
		broken[o.key.GroupVersionKind.String()] = true
	}
	if len(broken) == 0 {
		return
	}
	for {
		snapshot := s.Guards.Snapshot()
		var sound []kube.Resource
		for _, resource := range snapshot.Watched() {
			if !broken[resource.GVK.String()] {
				sound = append(sound, resource)
			}
		}
		s.Objects.Watch(s.Lifetime, sound)
		s.Objects.Watch(s.Lifetime, snapshot.Watched())
		if s.Guards.Snapshot() == snapshot { // else a kind that came in between was dropped again
			return
		}
	}
}

// countLagging counts written objects with a Baseline that does not speak of their
// present generation, and has the objects looked at once more.
func (s *Sweep) countLagging(ctx context.Context, written []listed) {
	if len(written) == 0 {
		return
	}
	var baselines v1alpha1.BaselineList
	if err := s.Baselines.List(ctx, &baselines, client.UnsafeDisableDeepCopy); err != nil {
		s.Log.Error(err, "sweeping: listing baselines")
		return
	}
	observed := make(map[target]v1alpha1.ObservedState, len(baselines.Items))
	for i := range baselines.Items {
		b := &baselines.Items[i]
		if !b.Guarded() { // it speaks of the past, and no guard selects its object
			continue
		}
		observed[target{b.Spec.Target, b.Namespace}] = b.Status.Observed
	}
	for _, o := range written {
		apiVersion, kind := o.key.ToAPIVersionAndKind()
		seen, guarded := observed[target{v1alpha1.BaselineTarget{APIVersion: apiVersion, Kind: kind, Name: o.key.Name}, o.key.Namespace}]
		if !guarded || (seen.UID == string(o.uid) && seen.Generation >= o.generation) || s.Objects.View(o.key).Current == nil {
			continue
		}
		s.Metrics.behind.WithLabelValues(behindStatus).Inc()
		s.Log.Error(nil, "the baseline does not speak of the present generation", "kind", o.key.Kind,
			"namespace", o.key.Namespace, "name", o.key.Name, "generation", o.generation, "observed", seen.Generation)
		s.Look(o.key)
	}
}

type target struct {
	v1alpha1.BaselineTarget
	namespace string
}
