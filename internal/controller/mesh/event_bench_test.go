// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
)

// informed lists what informers of client-go have, as the cache of controller-runtime does that is
// told not to copy.
type informed struct {
	cache.Cache
	services, slices toolscache.SharedIndexInformer
}

func (c informed) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	var objects []runtime.Object
	add := func(of toolscache.SharedIndexInformer) {
		for _, o := range of.GetStore().List() {
			objects = append(objects, o.(runtime.Object)) //nolint:forcetypeassert // informers keep objects
		}
	}
	switch list.(type) {
	case *corev1.ServiceList:
		add(c.services)
	case *discoveryv1.EndpointSliceList:
		add(c.slices)
	}
	return meta.SetList(list, objects)
}

// BenchmarkEventToGroups is from the event of a watch to the view of the last of a thousand groups:
// informer, pace, list, Build, Catalogue. Endpoints that go are collected for ten milliseconds.
func BenchmarkEventToGroups(b *testing.B) {
	const scopes = 1000
	in := benchInputs()
	services, endpoints := cachetesting.NewFakeControllerSource(), cachetesting.NewFakeControllerSource()
	for i := range in.Services {
		services.Add(in.Services[i])
		endpoints.Add(in.Slices[i])
	}
	of := informed{
		services: toolscache.NewSharedIndexInformer(services, &corev1.Service{}, 0, toolscache.Indexers{}),
		slices:   toolscache.NewSharedIndexInformer(endpoints, &discoveryv1.EndpointSlice{}, 0, toolscache.Indexers{}),
	}
	ctx, stop := context.WithCancel(b.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	s := &service{
		Setup: Setup{Clock: clock.RealClock{}, Log: logr.Discard(), Window: NewWindow()}, catalogue: NewCatalogue(serve.NewProofs()), lookout: newLookout(clock.RealClock{}),
		from: &sources{cache: of, clock: clock.RealClock{}, log: logr.Discard(), kinds: map[string]bool{}, numbers: numbers{highest: map[types.NamespacedName]uint64{}, gone: map[string]bool{}}},
	}
	if _, err := of.slices.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, after any) { s.lookout.changed(soonIf(loses(before, after))) },
	}); err != nil {
		b.Fatal(err)
	}
	for _, i := range []toolscache.SharedIndexInformer{of.services, of.slices} {
		running.Go(func() { i.RunWithContext(ctx) })
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), of.services.HasSynced, of.slices.HasSynced) {
		b.Fatal("the caches are not synced")
	}
	groups := make([]*serve.Group, scopes)
	for g := range scopes {
		groups[g] = s.catalogue.Join(benchScope(g))
	}
	if !s.publish(ctx) {
		b.Fatal("the first look is not believed")
	}
	running.Go(func() { s.lookout.run(ctx, func() bool { return s.publish(ctx) }) })
	looks := time.NewTicker(100 * time.Microsecond) // milliseconds are measured
	defer looks.Stop()
	var took []time.Duration
	for revision := 1; b.Loop(); revision++ {
		last := make([]*ads.Resource, scopes)
		for g := range groups {
			last[g] = groups[g].View().Get(ads.Endpoints, benchEnds)
		}
		start := time.Now()
		endpoints.Modify(benchSlice(0, revision))
		for g := range groups {
			for groups[g].View().Get(ads.Endpoints, benchEnds) == last[g] {
				<-looks.C
			}
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	for _, p := range []int{50, 99} {
		b.ReportMetric(float64(took[len(took)*p/100].Microseconds())/1000, fmt.Sprint("ms-p", p))
	}
}
