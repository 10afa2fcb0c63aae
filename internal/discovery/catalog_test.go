// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"testing"
	"time"
	"unsafe"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

var begin = time.Unix(1_800_000_000, 0)

// serviceOf has one endpoint.
func serviceOf(namespace, name, endpoint string, n byte) ir.Service {
	return ir.Service{
		Namespace: namespace, Name: name, Addresses: []netip.Addr{netip.AddrFrom4([4]byte{10, 0, 0, n})},
		Ports: []ir.Port{{Name: "http", Number: 80, Protocol: ir.HTTP, Slots: []ir.Slot{{Endpoints: []ir.Endpoint{{Address: netip.MustParseAddrPort(endpoint)}}}}}},
	}
}

// exported to all namespaces.
func exported(s ir.Service) ir.Service {
	s.Export.All = true
	return s
}

// sees is what a scope has.
func sees(c *Catalog, s Scope) *ads.View {
	v, _ := c.view(s, nil)
	return v
}

// wholly is the change that leads from what a catalog has to a mesh.
func wholly(c *Catalog, mesh ir.Mesh) ir.Change {
	change := ir.Change{Parts: map[types.NamespacedName]ir.Part{}, Sequence: mesh.Sequence}
	for _, former := range []services{c.services, c.pending} {
		for name := range former {
			change.Parts[name] = ir.Part{}
		}
	}
	for _, s := range mesh.Services {
		change.Parts[types.NamespacedName{Namespace: s.Namespace, Name: s.Name}] = ir.Part{Service: &s}
	}
	return change
}

// publish has to be believed.
func publish(t *testing.T, c *Catalog, now time.Time, services ...ir.Service) {
	t.Helper()
	if believed, err := c.Publish(wholly(c, ir.Mesh{Services: services}), now); err != nil || !believed {
		t.Fatalf("believed: %v, %v", believed, err)
	}
}

func TestAChangeReachesThoseWhoNeedItAlone(t *testing.T) {
	c := NewCatalog(serve.NewProofs())
	shop, _ := ScopeOf("shop", "")
	both, _ := ScopeOf("shop", "bank/pay")
	if sees(c, shop) != nil {
		t.Fatal("there is a view before the first look")
	}
	web, pay := serviceOf("shop", "web", "10.1.0.1:8080", 1), exported(serviceOf("bank", "pay", "10.1.0.2:8080", 2))
	publish(t, c, begin, web, pay)
	for scope, want := range map[Scope]int{shop: 1, both: 2} {
		if n := len(sees(c, scope).Names(ads.Route)); n != want {
			t.Errorf("%v has %d routes, want %d", scope, n, want)
		}
	}
	before := maps.Clone(c.services)
	publish(t, c, begin, web, exported(serviceOf("bank", "pay", "10.1.0.3:8080", 2)))
	for name, e := range c.services {
		if differing(before[name], e) != (name.Name == "pay") {
			t.Errorf("%v differs: %t", name, differing(before[name], e))
		}
	}
	changed := 0
	for i, r := range c.services[types.NamespacedName{Namespace: "bank", Name: "pay"}].resources {
		if r != before[types.NamespacedName{Namespace: "bank", Name: "pay"}].resources[i] {
			changed++
		}
	}
	if changed != 1 {
		t.Errorf("%d resources of it are made anew, want 1: its endpoints", changed)
	}
}

func TestAGroupLivesAsLongAsItsStreams(t *testing.T) {
	c := NewCatalog(serve.NewProofs())
	scope, _ := ScopeOf("shop", "")
	if first, second := c.Join(scope), c.Join(scope); first != second {
		t.Error("two streams of one scope have two groups")
	}
	c.Leave(scope)
	if len(c.groups) != 1 {
		t.Error("the group ends with its first stream")
	}
	c.Leave(scope)
	c.Leave(scope) // once too often
	if len(c.groups) != 0 {
		t.Error("the group outlives its streams")
	}
}

// Each of the two streams of a proxy kept the names of up to two hundred Services.
func TestTheStreamsOfAGroupShareTheTextsOfTheirScope(t *testing.T) {
	c := NewCatalog(serve.NewProofs())
	scopes := make([]Scope, 2)
	for i := range scopes {
		scopes[i], _ = ScopeOf("shop", "bank/pay,bank/rates")
		c.Join(scopes[i])
		scopes[i] = c.shared(scopes[i])
	}
	if a, b := scopes[0].upstreams, scopes[1].upstreams; a != "bank/pay,bank/rates" || b != a || unsafe.StringData(a) != unsafe.StringData(b) {
		t.Errorf("%q and %q are kept, want one text of the two", a, b)
	}
	if other, _ := ScopeOf("shop", "bank/pay"); c.shared(other) != other {
		t.Error("a scope without a group is another one")
	}
}

func TestWhatWasAcknowledgedIsForgottenAMinuteAfterItsEnd(t *testing.T) {
	proofs := serve.NewProofs()
	c := NewCatalog(proofs)
	web := serviceOf("shop", "web", "10.1.0.1:8080", 1)
	publish(t, c, begin, web)
	shop, _ := ScopeOf("shop", "")
	route := sees(c, shop).Names(ads.Route)[0]
	proofs.Prove(sees(c, shop).Get(ads.Route, route))
	known := func() bool { return proofs.Last(ads.Key{Type: ads.Route, Name: route}) != nil }
	publish(t, c, begin)
	publish(t, c, begin.Add(59*time.Second))
	if !known() {
		t.Error("it is forgotten too early")
	}
	publish(t, c, begin.Add(time.Minute))
	if known() || len(c.gone) != 0 {
		t.Error("it is remembered for ever")
	}
	publish(t, c, begin.Add(time.Minute), web)
	proofs.Prove(sees(c, shop).Get(ads.Route, route))
	publish(t, c, begin.Add(2*time.Minute))
	publish(t, c, begin.Add(2*time.Minute), web)
	publish(t, c, begin.Add(4*time.Minute), web)
	if !known() {
		t.Error("what came back is forgotten")
	}
}

func TestALossOfMostIsPublishedAtTheSecondLook(t *testing.T) {
	c := NewCatalog(serve.NewProofs())
	var services []ir.Service
	for i := range byte(20) {
		services = append(services, serviceOf("shop", fmt.Sprint("web-", i), "10.1.0.1:8080", i+1))
	}
	publish(t, c, begin, services...)
	if believed, err := c.Publish(wholly(c, ir.Mesh{Services: services[:1]}), begin); believed || err != nil || len(c.services) != 20 {
		t.Errorf("believed at once: %v %v", believed, err)
	}
	publish(t, c, begin.Add(time.Second), services[:1]...)
}

// cluster is what is known of pods.
type cluster struct {
	pods       map[string]*corev1.Pod
	annotation string
}

func (c *cluster) Pod(namespace, name string) *corev1.Pod    { return c.pods[namespace+"/"+name] }
func (c *cluster) NamespaceAnnotation(string, string) string { return c.annotation }

// believer takes a token for the uid of the pod shop/web.
type believer struct{ err error }

func (b believer) Verify(_ context.Context, token string) (identity.Proxy, error) {
	return identity.Proxy{Namespace: "shop", Pod: "web", PodUID: token}, b.err
}

func web(uid types.UID, phase corev1.PodPhase) *cluster {
	return &cluster{pods: map[string]*corev1.Pod{"shop/web": proxied(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: uid}, Status: corev1.PodStatus{Phase: phase}})}}
}

func TestAProxyIsRefusedWhen(t *testing.T) {
	tests := map[string]struct {
		authorization []string
		cluster       *cluster
		verifier      believer
		want          codes.Code
	}{
		"it shows no token":              {nil, web("1", corev1.PodRunning), believer{}, codes.Unauthenticated},
		"its token is not good":          {[]string{"Bearer 1"}, web("1", corev1.PodRunning), believer{&identity.Error{Reason: identity.ReasonAudience}}, codes.Unauthenticated},
		"its token cannot be judged now": {[]string{"Bearer 1"}, web("1", corev1.PodRunning), believer{&identity.Error{Reason: identity.ReasonBusy}}, codes.Unavailable},
		"its pod is not known here yet":  {[]string{"Bearer 1"}, &cluster{}, believer{}, codes.Unavailable},
		"another pod has its pod's name": {[]string{"Bearer 1"}, web("2", corev1.PodRunning), believer{}, codes.Unavailable},
		"its pod has ended":              {[]string{"Bearer 1"}, web("1", corev1.PodSucceeded), believer{}, codes.Unavailable},
		"it shows two tokens":            {[]string{"Bearer 1", "Bearer 2"}, web("1", corev1.PodRunning), believer{}, codes.Unauthenticated},
		"it shows a password":            {[]string{"Basic 1"}, web("1", corev1.PodRunning), believer{}, codes.Unauthenticated},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := NewCatalog(serve.NewProofs())
			d := NewDirectory(tc.verifier, tc.cluster, c, nil)
			if _, err := d.Admit(fromPod(t), tc.authorization); status.Code(err) != tc.want {
				t.Errorf("got %v, want %v", err, tc.want)
			}
			if len(d.seats) != 0 || len(c.groups) != 0 {
				t.Errorf("%d pods and %d groups are left behind", len(d.seats), len(c.groups))
			}
		})
	}
}

func TestAPodEndsAllOfItsStreamsAndLeavesNothing(t *testing.T) {
	c := NewCatalog(serve.NewProofs())
	d := NewDirectory(believer{}, web("1", corev1.PodRunning), c, nil)
	var in []serve.Admission
	for range 2 {
		a, err := d.Admit(fromPod(t), []string{"Bearer 1"})
		if err != nil {
			t.Fatal(err)
		}
		in = append(in, a)
	}
	d.Ended("another")
	if in[0].Ended.Err() != nil {
		t.Fatal("another pod's end ends it")
	}
	d.Ended("1")
	d.Ended("1") // a pod that has ended is deleted later
	for _, a := range in {
		if a.Ended.Err() == nil {
			t.Error("a stream goes on without its pod")
		}
		a.Leave()
	}
	if len(d.seats) != 0 || len(c.groups) != 0 {
		t.Errorf("%d pods and %d groups are left behind", len(d.seats), len(c.groups))
	}
}

// A gateway that leaves, and a pod that depends on something else, come back while one of
// the former streams is still there: that must not end the new one.
func TestAStreamThatBeginsAfterTheOthersHadToEndStays(t *testing.T) {
	c := NewCatalog(serve.NewProofs())
	d := NewDirectory(believer{}, web("1", corev1.PodRunning), c, nil)
	admit := func() serve.Admission {
		a, err := d.Admit(fromPod(t), []string{"Bearer 1"})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	former := admit()
	d.Ended("1")
	next := admit()
	former.Leave()
	if next.Ended.Err() != nil {
		t.Error("it ends with the former")
	}
	d.Ended("1")
	if next.Ended.Err() == nil {
		t.Error("it goes on without its pod")
	}
	next.Leave()
	if len(d.seats) != 0 || len(c.groups) != 0 {
		t.Errorf("%d pods and %d groups are left behind", len(d.seats), len(c.groups))
	}
}

func TestAPodsOwnUpstreamsHoldOverThoseOfItsNamespace(t *testing.T) {
	known := web("1", corev1.PodRunning)
	known.annotation = "bank/*"
	d := NewDirectory(believer{}, known, NewCatalog(serve.NewProofs()), nil)
	pod := known.pods["shop/web"]
	want, _ := ScopeOf("shop", "bank/*")
	if got, _ := d.scope(pod); got != want {
		t.Errorf("the scope is %v", got)
	}
	pod.Annotations = map[string]string{UpstreamsAnnotation: ""}
	want, _ = ScopeOf("shop", "")
	if got, _ := d.scope(pod); got != want {
		t.Errorf("the scope of a pod that needs none is %v", got)
	}
}

// What one service loses and another takes over at the same moment is not gone.
func TestAnAddressThatGoesFromOneServiceToAnotherIsNotForgotten(t *testing.T) {
	c := NewCatalog(serve.NewProofs())
	web := serviceOf("shop", "web", "10.1.0.1:8080", 1)
	publish(t, c, begin, web)
	for _, name := range []string{"a", "z", "b"} { // before and after it in order
		successor := serviceOf("shop", name, "10.1.0.1:8080", 1)
		publish(t, c, begin, successor)
		if _, gone := c.gone[ads.Key{Type: ads.Listener, Name: "10.0.0.1:80"}]; gone {
			t.Errorf("with %s the listener counts as gone", name)
		}
		if _, gone := c.gone[ads.Key{Type: ads.Route, Name: "shop/web|80"}]; !gone {
			t.Error("the route of web does not count as gone")
		}
	}
}
