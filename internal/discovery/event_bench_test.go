// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	toolscache "k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
)

// BenchmarkEventToGroups is from the event of a watch to the view of the last of a thousand groups:
// informer, pace, cache, Rebuild, Catalog. Endpoints that go are collected for ten milliseconds.
func BenchmarkEventToGroups(b *testing.B) {
	const scopes = 1000
	in := benchInputs()
	services, endpoints := cachetesting.NewFakeControllerSource(), cachetesting.NewFakeControllerSource()
	for i := range in.Services {
		services.Add(in.Services[i])
		endpoints.Add(in.Slices[i])
	}
	of := newShelf()
	var informers []toolscache.SharedIndexInformer
	inform := func(source toolscache.ListerWatcher, kind client.Object) toolscache.SharedIndexInformer {
		i := toolscache.NewSharedIndexInformer(source, kind, 0, of.stores[reflect.TypeOf(kind)].GetIndexers())
		of.stores[reflect.TypeOf(kind)] = i.GetIndexer()
		informers = append(informers, i)
		return i
	}
	inform(services, &corev1.Service{})
	changes := inform(endpoints, &discoveryv1.EndpointSlice{})
	ctx, stop := context.WithCancel(b.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	s := benchService(of)
	for _, i := range informers {
		running.Go(func() { i.RunWithContext(ctx) })
		if !toolscache.WaitForCacheSync(ctx.Done(), i.HasSynced) {
			b.Fatal("a cache is not synced")
		}
	}
	if _, err := changes.AddEventHandler(onSlices(s.lookout.changed)); err != nil {
		b.Fatal(err)
	}
	groups := make([]*serve.Group, scopes)
	for g := range scopes {
		groups[g] = s.catalog.Join(benchScope(g))
	}
	if !s.publish(ctx, dirty{everything: true}) {
		b.Fatal("the first look is not believed")
	}
	running.Go(func() { s.lookout.run(ctx, func(d dirty) bool { return s.publish(ctx, d) }) })
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
