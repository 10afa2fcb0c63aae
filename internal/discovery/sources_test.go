// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/elected"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/acknowledged"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/peers"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/pkg/traffic/routertest"
	"github.com/plumbline-dev/plumbline/pkg/traffic/signals/receive"
	"github.com/plumbline-dev/plumbline/test/harness/fakeclient"
)

// cached reads objects as a cache does. What is not asked of it here it cannot do.
type cached struct {
	cache.Cache
	client.Client
}

func (c cached) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	return c.Client.Get(ctx, key, object, options...)
}

func (c cached) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return c.Client.List(ctx, list, options...)
}

// sourcesOf objects.
func sourcesOf(t *testing.T, objects ...client.Object) *sources {
	t.Helper()
	scheme, err := elected.Kinds()
	if err != nil {
		t.Fatal(err)
	}
	c := fakeclient.NewBuilder(scheme).WithObjects(objects...).
		WithIndex(&corev1.Pod{}, injectedField, injected).WithIndex(&corev1.Pod{}, podAddressField, podAddresses).WithIndex(&corev1.Service{}, addressField, addresses).
		WithIndex(&discoveryv1.EndpointSlice{}, sliceField, serviceOfSlice).WithIndex(&v1alpha1.ABRelease{}, releaseField, serviceOfRelease).
		WithIndex(&v1alpha1.Baseline{}, quarantineField, inQuarantine).Build()
	return &sources{
		cache: cached{Client: c}, live: c, clock: clocktesting.NewFakeClock(begin), log: logr.Discard(),
		kinds:   map[string]bool{releaseKind: true, baselineKind: true},
		numbers: newNumbers(),
	}
}

func at(namespace, name string, seconds int) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name), CreationTimestamp: metav1.Unix(begin.Unix()+int64(seconds), 0)}
}

func clusterService(meta metav1.ObjectMeta, ip string) *corev1.Service {
	return &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
		ClusterIP: ip, ClusterIPs: []string{ip}, Ports: []corev1.ServicePort{{Name: "http", Port: 80}},
	}}
}

func splitOf(namespace, name, service string) traffic.Split {
	s := traffic.Split{Namespace: namespace, Name: name, Service: service, Created: begin}
	for _, v := range []string{"stable", "canary"} {
		s.Variations = append(s.Variations, traffic.Variation{Name: v, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"v": v}}})
	}
	s.Shares = traffic.Shares{{Variation: "stable", Weight: 9_000}, {Variation: "canary", Weight: 1_000, Reserved: traffic.Total}}
	return s
}

// A release said that it is in force, and nobody divided anything: proxies have one
// listener for an address, which was that of an older Service.
func TestAServiceWhoseAddressAnotherHasIsNoProspect(t *testing.T) {
	managed := func(s *corev1.Service) *corev1.Service {
		s.Labels = map[string]string{ir.Managed: "true"}
		return s
	}
	divided := &v1alpha1.ABRelease{ObjectMeta: at("bank", "old", -20)}
	divided.Spec.ServiceName = "old"
	divided.Status.Effective = &v1alpha1.EffectiveSplit{Sequence: 1, ServiceName: "old", Generation: 1, Salt: "s", Key: v1alpha1.SplitKey{Type: v1alpha1.SplitKeyPerRequest}, Variations: []v1alpha1.EffectiveVariation{
		{Name: "stable", Workload: &v1alpha1.VariationWorkload{Kind: "Deployment", Name: "a"}, Weight: new(int32(9_000)), Reserved: new(int32(0))},
		{Name: "canary", Workload: &v1alpha1.VariationWorkload{Kind: "Deployment", Name: "b"}, Weight: new(int32(1_000)), Reserved: new(int32(10_000))},
	}}
	tests := map[string]struct {
		others []client.Object
		taken  bool
	}{
		"by an older one that is managed":  {[]client.Object{managed(clusterService(at("bank", "old", -10), "10.0.0.1"))}, true},
		"by an older one that is divided":  {[]client.Object{clusterService(at("bank", "old", -10), "10.0.0.1"), divided}, true},
		"not by one that is not managed":   {[]client.Object{clusterService(at("bank", "old", -10), "10.0.0.1")}, false},
		"not by a younger one":             {[]client.Object{managed(clusterService(at("bank", "old", 10), "10.0.0.1"))}, false},
		"not by one with another address":  {[]client.Object{managed(clusterService(at("bank", "old", -10), "10.0.0.2")), divided}, false},
		"nor do headless ones take a name": {[]client.Object{managed(clusterService(at("bank", "old", -10), corev1.ClusterIPNone))}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := sourcesOf(t, append(tc.others, clusterService(at("shop", "web", 0), "10.0.0.1"))...)
			mesh, err := s.prospect(t.Context(), splitOf("shop", "web", "web"))
			if err != nil {
				t.Fatal(err)
			}
			for _, service := range mesh.Services {
				if service.Name != "web" {
					t.Errorf("Service %s is in the prospect of another", service.Name)
				}
			}
			refused := false
			for _, p := range mesh.Problems {
				if p.Object.Namespace != "shop" {
					t.Errorf("a problem of another: %s", p)
				}
				refused = refused || p.Reason == ir.ServiceRefused && strings.Contains(p.Message, string(ir.AddressTaken))
			}
			if refused != tc.taken || len(mesh.Services) == 0 != tc.taken {
				t.Errorf("refused %t, %d Services; %v", refused, len(mesh.Services), mesh.Problems)
			}
		})
	}
}

func TestANodeSaysWhereItsEndpointsAre(t *testing.T) {
	node := func(name string, labels map[string]string) client.Object {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	}
	s := sourcesOf(t,
		node("both", map[string]string{"topology.kubernetes.io/region": "eu", "topology.kubernetes.io/zone": "eu-a"}),
		node("region", map[string]string{"topology.kubernetes.io/region": "eu"}),
		node("neither", map[string]string{"failure-domain.beta.kubernetes.io/zone": "eu-b"}))
	in := ir.Inputs{
		Slices: []*discoveryv1.EndpointSlice{{Endpoints: []discoveryv1.Endpoint{{NodeName: new("both")}, {NodeName: new("region")}, {}}}},
		Pods:   []ir.Pod{{Node: "neither"}, {Node: "unknown"}, {}},
	}
	if err := s.places(t.Context(), &in); err != nil {
		t.Fatal(err)
	}
	want := map[string]ir.Locality{"both": {Region: "eu", Zone: "eu-a"}, "region": {Region: "eu"}, "neither": {}}
	if diff := cmp.Diff(want, in.Localities); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Finding H4: a pod with the label alone was taken for one with a proxy.
func TestInjectedPodsAreFoundByTheirLabelAndSidecar(t *testing.T) {
	with, without := &corev1.Pod{ObjectMeta: at("shop", "with", 0)}, &corev1.Pod{ObjectMeta: at("shop", "without", 0)}
	proxied(with)
	labeled := &corev1.Pod{ObjectMeta: at("shop", "labeled", 0)}
	labeled.Labels = map[string]string{inject.LabelProxy: string(inject.Redirect)}
	front := &corev1.Pod{ObjectMeta: at("plumbline", "gateway", 0)}
	front.Labels = map[string]string{inject.LabelProxy: inject.Gateway}
	s := sourcesOf(t, with, without, labeled, front)
	pods, err := s.injectedPods(t.Context())
	if err != nil || len(pods) != 2 || pods[0].Name != "gateway" || pods[1].Name != "with" {
		t.Errorf("got %v, %v", pods, err)
	}
}

// A pod of a StatefulSet may be deleted and made anew while nothing is watched; then
// its name has another pod, and nobody says that the former is gone.
func TestTheStreamsOfAPodEndWhenAnotherHasItsName(t *testing.T) {
	var over []string
	handler := sourcesOf(t).onPods(func(Haste, dirty) {}, endings{gone: func(uid string) { over = append(over, uid) }})
	was, is := &corev1.Pod{ObjectMeta: at("shop", "web-0", 0)}, &corev1.Pod{ObjectMeta: at("shop", "web-0", 5)}
	was.UID, is.UID = "first", "second"
	handler.OnUpdate(was, is)
	handler.OnUpdate(is, is)
	if !slices.Equal(over, []string{"first"}) {
		t.Errorf("the streams of %q end, want those of the first", over)
	}
}

// What a proxy depends on is read when its stream begins, and was as old as that: for up to
// half an hour it was not sent what a split waited for it to acknowledge.
func TestTheStreamsOfAPodEndWhenItDependsOnSomethingElse(t *testing.T) {
	pod := func(name string, annotations ...string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: at("shop", name, 0)}
		p.Annotations = map[string]string{}
		for i := 0; i < len(annotations); i += 2 {
			p.Annotations[annotations[i]] = annotations[i+1]
		}
		return proxied(p)
	}
	bare := pod("bare")
	bare.Labels = nil
	explicit := pod("a")
	explicit.Labels = map[string]string{inject.LabelProxy: string(inject.Explicit)}
	unlabeled := pod("a")
	unlabeled.Labels = nil
	elsewhere := pod("elsewhere")
	elsewhere.Namespace = "bank"
	namespace := func(annotations map[string]string) *corev1.Namespace {
		n := &corev1.Namespace{ObjectMeta: at("", "shop", 0)}
		n.Annotations = annotations
		return n
	}
	s := sourcesOf(t, pod("a"), pod("b", UpstreamsAnnotation, ""), pod("c", inject.AnnotationLocalPorts, "8001=web"), bare, elsewhere)
	tests := map[string]struct {
		was, is client.Object
		want    []string
	}{
		"another Service":                        {pod("a", UpstreamsAnnotation, "bank/pay"), pod("a", UpstreamsAnnotation, "bank/api"), []string{"a"}},
		"none instead of those of its namespace": {pod("a"), pod("a", UpstreamsAnnotation, ""), []string{"a"}},
		"another port":                           {pod("a", inject.AnnotationLocalPorts, "8001=web"), pod("a"), []string{"a"}},
		"another mode":                           {pod("a"), explicit, []string{"a"}},
		"no label that says it has a proxy":      {pod("a"), unlabeled, []string{"a"}},
		"not with any other annotation":          {pod("a", "x", "1"), pod("a", "x", "2"), nil},
		"its namespace says other Services":      {namespace(nil), namespace(map[string]string{UpstreamsAnnotation: "bank/pay"}), []string{"a", "c"}},
		"its namespace says other ports":         {namespace(map[string]string{inject.AnnotationLocalPorts: "1=a"}), namespace(nil), []string{"a", "b"}},
		"not with another label of that":         {namespace(nil), namespace(map[string]string{"x": "2"}), nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var over []string
			ended := func(uid string) { over = append(over, uid) }
			if _, is := tc.is.(*corev1.Pod); is {
				s.onPods(func(Haste, dirty) {}, endings{rescoped: ended}).OnUpdate(tc.was, tc.is)
			} else {
				s.onNamespaces(t.Context(), func(Haste, dirty) {}, ended).OnUpdate(tc.was, tc.is)
			}
			if slices.Sort(over); !slices.Equal(over, tc.want) {
				t.Errorf("the streams of %q end, want those of %q", over, tc.want)
			}
		})
	}
}

// grounded are routers of a mesh in which a release divides a Service.
func grounded(t *testing.T, releases ...client.Object) (*Routers, *ground) {
	t.Helper()
	from := sourcesOf(t, releases...)
	others := &following{clock: from.clock, log: from.log, others: map[string]*other{}}
	told, err := newPeerMetrics(prometheus.NewRegistry(), others)
	if err != nil {
		t.Fatal(err)
	}
	on := &ground{
		from: from, others: others, times: Times{}.withDefaults(), told: told, clock: from.clock, changed: func(Haste, dirty) {}, catalog: NewCatalog(serve.NewProofs()),
		counts: receive.New(receive.Config{}, nil, nil, from.clock.Now), directory: NewDirectory(nil, from, nil, nil), index: acknowledged.NewIndex(),
	}
	routers := NewRouters()
	routers.open(on)
	return routers, on
}

func releaseOf(uid types.UID, service string) *v1alpha1.ABRelease {
	r := &v1alpha1.ABRelease{ObjectMeta: at("shop", "web", 0)}
	r.UID, r.Spec.ServiceName = uid, service
	return r
}

// A release that was deleted and made anew under its name for another Service begins at
// the sequence of that one. It was never observed again.
func TestAReleaseThatIsMadeAnewForAnotherServiceIsApplied(t *testing.T) {
	r := releaseOf("first", "web")
	routers, on := grounded(t, r)
	name := client.ObjectKeyFromObject(r)
	if err := routers.Router(name).Apply(t.Context(), routertest.Split(5_000, 1_000)); err != nil {
		t.Fatal(err)
	}
	if err := routers.Router(name).Apply(t.Context(), routertest.Split(4_999, 1_000)); err == nil {
		t.Error("a release goes back")
	}
	c := on.from.live.(client.Client) //nolint:forcetypeassert // it is the fake one
	if err := c.Delete(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), releaseOf("second", "pay")); err != nil {
		t.Fatal(err)
	}
	if err := routers.Router(name).Apply(t.Context(), routertest.Split(1, 1_000)); err != nil {
		t.Error(err)
	}
}

func TestASplitThatEnvoyCannotCarryOutIsRefused(t *testing.T) {
	router := NewRouters().Router(types.NamespacedName{Namespace: "shop", Name: "web"})
	for name, tc := range map[string]struct {
		change func(*traffic.Split)
		want   string
	}{
		"a header of the connection is mapped": {func(s *traffic.Split) {
			s.Match = traffic.Match{Header: "host", Values: map[string]string{"x": "canary"}}
		}, "header host belongs to the connection or to proxies: name another"},
		"a header of proxies overrides":      {func(s *traffic.Split) { s.Override = "X-Plb-Any" }, "header x-plb-any belongs to the connection or to proxies: name another"},
		"the salt means something elsewhere": {func(s *traffic.Split) { s.Salt = "(" }, `the salt "(" is not`},
	} {
		t.Run(name, func(t *testing.T) {
			split := routertest.Split(1, 1_000)
			tc.change(&split)
			if err := split.Validate(); err != nil {
				t.Fatalf("another router could not either: %v", err)
			}
			if err := router.Validate(split); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want something with %q", err, tc.want)
			}
		})
	}
}

// Where requests go, proxies say: TestEnvoysKeepTheContractOfRouters asks them.
func TestTheRouterOfEnvoysKeepsTheContract(t *testing.T) {
	routertest.Conform(t, routertest.Maker{Capabilities: traffic.FullCapabilities(), Begin: func(t *testing.T) routertest.Stand {
		r := releaseOf("first", "web")
		r.Name = routertest.Split(1, 0).Name
		routers, _ := grounded(t, r)
		return routers
	}})
}

// Who decides has a cache of its own, in which a release may be gone a moment before it
// is here. Its router and its figure stayed for good.
func TestARouterOfAReleaseThatIsGoneIsForgotten(t *testing.T) {
	r := releaseOf("first", "web")
	routers, on := grounded(t, r)
	name := client.ObjectKeyFromObject(r)
	routers.Router(name)
	on.told.unacknowledgedProxies(name, traffic.Observation{Wanted: 3, Acknowledged: 1})
	routers.sweep()
	if len(routers.routes) != 1 || testutil.ToFloat64(on.told.unacknowledged) != 2 {
		t.Fatalf("%d routers, %v unacknowledged, want what there is", len(routers.routes), testutil.ToFloat64(on.told.unacknowledged))
	}
	if err := on.from.live.(client.Client).Delete(t.Context(), r); err != nil { //nolint:forcetypeassert // it is the fake one
		t.Fatal(err)
	}
	routers.sweep()
	if len(routers.routes) != 0 || testutil.ToFloat64(on.told.unacknowledged) != 0 {
		t.Errorf("%d routers and %v unacknowledged proxies of what is gone", len(routers.routes), testutil.ToFloat64(on.told.unacknowledged))
	}
}

// A variation that somebody tells of for the first time, or a replica that was just
// started, was compared with what others had counted in a minute; and as the window
// seemed short, a split was contradicted by what was counted before it was acknowledged.
func TestAllVariationsAreCountedSinceTheSameTime(t *testing.T) {
	_, on := grounded(t)
	web := ir.Service{Namespace: "shop", Name: "web"}
	count := func(variation string, n uint64) peers.Count {
		return peers.Count{Namespace: "shop", Service: "web", Variation: variation, Completed: n}
	}
	for i := range uint64(31) { // ten requests of the stable one each second, and at last the other
		counts := []peers.Count{count("stable", 20*i)}
		if i >= 26 {
			counts = append(counts, count("canary", 20*i))
		}
		if err := on.tally.Add(begin, counts, begin.Add(time.Duration(i)*2*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	got, from := on.outcomes(web, begin)
	if got["stable"].Completed != 80 || got["canary"].Completed != 80 || !from.Equal(begin.Add(52*time.Second)) {
		t.Errorf("since %v stable has %d and canary %d, want 80 of both since 52 s", from.Sub(begin), got["stable"].Completed, got["canary"].Completed)
	}
}
