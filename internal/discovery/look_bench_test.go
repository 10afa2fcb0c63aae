// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/go-logr/logr"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// The cluster of the benchmarks: so many Services, each with ten endpoints, in a hundred namespaces, and
// nodes with fifty endpoints each.
const (
	benchServices  = 5000
	benchEndpoints = 10
	benchNodes     = 1000
)

func benchName(i int) (namespace, name string) {
	return fmt.Sprintf("ns%03d", i%100), fmt.Sprintf("s%04d", i)
}

func benchNode(i int) string { return fmt.Sprintf("n%04d", i) }

// benchInputs are what caches would have of it.
func benchInputs() (in ir.Inputs) {
	for i := range benchServices {
		namespace, name := benchName(i)
		meta := metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: fmt.Sprint(i), Labels: map[string]string{ir.Managed: "true"}, Annotations: map[string]string{ir.ExportToAnnotation: "*"}}
		in.Services = append(in.Services, &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
			ClusterIPs: []string{netip.AddrFrom4([4]byte{10, 200, byte(i / 250), byte(i % 250)}).String()},
			Ports:      []corev1.ServicePort{{Name: "http", Port: 80}},
		}})
		in.Slices = append(in.Slices, benchSlice(i, 0))
	}
	return in
}

// benchSlice is a Service's, of which a revision has another first endpoint.
func benchSlice(i, revision int) *discoveryv1.EndpointSlice {
	namespace, name := benchName(i)
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: namespace, Name: name + "-0", ResourceVersion: fmt.Sprint(i, ".", revision), Labels: map[string]string{discoveryv1.LabelServiceName: name}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(8080))}},
	}
	for k := range benchEndpoints {
		at := netip.AddrFrom4([4]byte{11, byte(i / 250), byte(i % 250), byte(k)})
		if k == 0 {
			at = netip.AddrFrom4([4]byte{12, byte(revision >> 16), byte(revision >> 8), byte(revision)})
		}
		node := benchNode((i + 97*k) % benchNodes)
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{at.String()}, NodeName: &node, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}})
	}
	return s
}

// benchScope needs the first Service and 49 of its own.
func benchScope(g int) Scope {
	upstreams := "ns000/s0000"
	for k := range 49 {
		namespace, name := benchName((g*49+k)%(benchServices-1) + 1)
		upstreams += "," + namespace + "/" + name
	}
	s, _ := ScopeOf(fmt.Sprint("app", g), upstreams)
	return s
}

// benchService looks at what a shelf has.
func benchService(of *shelf) *service {
	return &service{
		Setup:   Setup{Clock: clock.RealClock{}, Log: logr.Discard(), Window: NewWindow()},
		catalog: NewCatalog(serve.NewProofs()), lookout: newLookout(clock.RealClock{}),
		from: &sources{cache: of, clock: clock.RealClock{}, log: logr.Discard(), kinds: map[string]bool{}, numbers: newNumbers()},
	}
}

// looked is a mesh with groups, and the stores that it is made of.
type looked struct {
	*service
	stores   *shelf
	groups   []*serve.Group
	revision int
}

func newLooked(b *testing.B, scopes int) *looked {
	b.Helper()
	stores := newShelf()
	l := &looked{service: benchService(stores), stores: stores}
	in := benchInputs()
	for i := range in.Services {
		l.put(b, in.Services[i])
		l.put(b, in.Slices[i])
	}
	for i := range benchNodes {
		l.move(b, benchNode(i))
	}
	for g := range scopes {
		l.groups = append(l.groups, l.catalog.Join(benchScope(g)))
	}
	l.look(b, dirty{everything: true})
	return l
}

func (l *looked) put(b *testing.B, object client.Object) {
	b.Helper()
	if err := l.stores.stores[reflect.TypeOf(object)].Update(object); err != nil {
		b.Fatal(err)
	}
}

// move a node to another zone.
func (l *looked) move(b *testing.B, node string) {
	b.Helper()
	l.revision++
	l.put(b, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, Labels: map[string]string{corev1.LabelTopologyZone: fmt.Sprint(l.revision)}}})
}

func (l *looked) look(b *testing.B, d dirty) {
	b.Helper()
	if !l.publish(b.Context(), d) {
		b.Fatal("a look is not believed")
	}
}

// change an endpoint of the first Service, and look.
func (l *looked) change(b *testing.B) {
	b.Helper()
	l.revision++
	l.put(b, benchSlice(0, l.revision))
	l.look(b, dirtyService("ns000", "s0000"))
}

const benchEnds = "ns000/s0000|80|"

// BenchmarkLook is from a changed EndpointSlice to the view of each group that needs its Service.
func BenchmarkLook(b *testing.B) {
	for _, scopes := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint(scopes, "-scopes"), func(b *testing.B) {
			l := newLooked(b, scopes)
			b.ReportAllocs()
			for b.Loop() {
				last := l.groups[scopes-1].View().Get(ads.Endpoints, benchEnds)
				l.change(b)
				if l.groups[scopes-1].View().Get(ads.Endpoints, benchEnds) == last {
					b.Fatal("the group has not changed")
				}
			}
		})
	}
}

// BenchmarkNodeLook is from a node that has another zone, with endpoints of fifty Services, to the view
// of each group that needs one of them.
func BenchmarkNodeLook(b *testing.B) {
	l := newLooked(b, 1000)
	node := benchNode(0) // the first Service has an endpoint on it
	b.ReportAllocs()
	for b.Loop() {
		last := l.groups[999].View().Get(ads.Endpoints, benchEnds)
		l.move(b, node)
		l.look(b, dirty{nodes: map[string]bool{node: true}})
		if l.groups[999].View().Get(ads.Endpoints, benchEnds) == last {
			b.Fatal("the group has not changed")
		}
	}
}

// BenchmarkNewest finds the routes that a decision stands behind, as is done each second. There are none here; walked
// looks at all resources.
func BenchmarkNewest(b *testing.B) {
	l := newLooked(b, 1)
	b.Run("kept", func(b *testing.B) {
		for b.Loop() {
			l.catalog.Newest()
		}
	})
	b.Run("walked", func(b *testing.B) {
		for b.Loop() {
			newestOf(l.catalog)
		}
	})
}

// BenchmarkWholeLook is one at which everything is dirty, as at the start.
func BenchmarkWholeLook(b *testing.B) {
	l := newLooked(b, 1000)
	for b.Loop() {
		l.look(b, dirty{everything: true})
	}
}

// BenchmarkJoinDuringLooks is how long a stream waits for its group while looks follow each other.
func BenchmarkJoinDuringLooks(b *testing.B) {
	l := newLooked(b, 1000)
	stop := make(chan struct{})
	var looks sync.WaitGroup
	looks.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				l.change(b)
			}
		}
	})
	streams := time.NewTicker(time.Millisecond) // one comes after the other
	defer streams.Stop()
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		s := benchScope(2000 + i%7000)
		start := time.Now()
		l.catalog.Join(s)
		took = append(took, time.Since(start))
		l.catalog.Leave(s)
		<-streams.C
	}
	close(stop)
	looks.Wait()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "ms-p99")
	b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "ms-max")
}

// BenchmarkReferenceLook feeds go-control-plane's SnapshotCache the same: a snapshot for each scope,
// with the versions that streams of deltas need. It begins with translated resources.
func BenchmarkReferenceLook(b *testing.B) {
	const scopes = 1000
	l := newLooked(b, scopes)
	reference := cache.NewSnapshotCache(true, cache.IDHash{}, nil)
	made := map[*ads.Resource]types.Resource{}
	contents := make([]map[string][]types.Resource, scopes)
	for g := range scopes {
		contents[g] = map[string][]types.Resource{}
		view := l.groups[g].View()
		for kind := ads.Cluster; kind <= ads.Route; kind++ {
			for _, name := range view.Names(kind) {
				r := view.Get(kind, name)
				if made[r] == nil {
					made[r] = unpacked(b, r)
				}
				contents[g][kind.URL()] = append(contents[g][kind.URL()], made[r])
			}
		}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		l.change(b)
		changed := unpacked(b, l.groups[0].View().Get(ads.Endpoints, benchEnds))
		b.StartTimer()
		for g := range scopes {
			contents[g][ads.Endpoints.URL()][0] = changed // its name is the first in order
			snapshot, err := cache.NewSnapshot(fmt.Sprint(i), contents[g])
			if err != nil {
				b.Fatal(err)
			}
			if err := snapshot.ConstructVersionMap(); err != nil {
				b.Fatal(err)
			}
			if err := reference.SetSnapshot(b.Context(), fmt.Sprint(g), snapshot); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func unpacked(b *testing.B, r *ads.Resource) types.Resource {
	b.Helper()
	packed := &anypb.Any{}
	if err := proto.Unmarshal(r.Body, packed); err != nil {
		b.Fatal(err)
	}
	m, err := packed.UnmarshalNew()
	if err != nil {
		b.Fatal(err)
	}
	return m
}
