// SPDX-License-Identifier: Apache-2.0

//go:build integration

package ads

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
)

// object is a managed Service of the shop, older than those with a higher age.
func object(name, clusterIP string, age int, change func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, Labels: map[string]string{ir.Managed: "true"}, CreationTimestamp: metav1.NewTime(time.Unix(int64(age), 0)),
		},
		Spec: corev1.ServiceSpec{ClusterIP: clusterIP, Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromString("serve")}}},
	}
	if change != nil {
		change(s)
	}
	return s
}

// slice of a Service: one for each port that its pods have, as the API server makes them.
func slice(service, address string) *discoveryv1.EndpointSlice {
	at := netip.MustParseAddrPort(address)
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: service + address, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(at.Port()))}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{at.Addr().String()}}},
	}
}

// pod of a variation, which has a name for the port it is to be reached on.
func pod(variation, address string) ir.Pod {
	at := netip.MustParseAddrPort(address)
	return ir.Pod{
		Namespace: "shop", Name: variation + address, Labels: map[string]string{"version": variation}, Ready: true,
		Addresses: []netip.Addr{at.Addr()}, Ports: map[string]uint16{"serve": at.Port()},
	}
}

// divided is a split of web.
func divided(stable, canary traffic.Weight) traffic.Split {
	variation := func(name string) traffic.Variation {
		return traffic.Variation{Name: name, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"version": name}}}
	}
	return traffic.Split{
		Namespace: "shop", Name: "release", Service: "web", Sequence: 1, Variations: []traffic.Variation{variation("stable"), variation("canary")},
		Routing: traffic.Routing{Shares: traffic.Shares{{Variation: "stable", Weight: stable}, {Variation: "canary", Weight: canary, Reserved: traffic.Total}}},
	}
}

// answering asks until all of some have answered, and says who else has.
func answering(t testing.TB, front string, names ...string) (others map[string]bool) {
	t.Helper()
	others, left := map[string]bool{}, map[string]bool{}
	for _, name := range names {
		left[name] = true
	}
	eventually(t, fmt.Sprint(names, " answer"), func() error {
		text, code := answers(t, front)
		if code == 200 && !left[text] {
			others[text] = true
		}
		if delete(left, text); len(left) > 0 {
			return fmt.Errorf("%d %s, and not %v", code, text, left)
		}
		return nil
	})
	for _, name := range names {
		delete(others, name)
	}
	return others
}

func TestPodsWhoseNamedPortsDifferAreAllReached(t *testing.T) {
	backends := map[string]string{}
	for _, name := range []string{"s1", "s2", "c1"} {
		backends[name] = backend(t, name)
	}
	in := ir.Inputs{Services: []*corev1.Service{object("web", "10.0.0.1", 1, nil)}}
	in.Slices = []*discoveryv1.EndpointSlice{slice("web", backends["s1"]), slice("web", backends["s2"])}
	in.Pods = []ir.Pod{pod("stable", backends["s1"]), pod("stable", backends["s2"]), pod("canary", backends["c1"])}
	m := newMesh(t)
	m.serves(ir.Build(in).Services...)
	_, fronts := m.sidecar("web-0", service("web", nil))
	if others := answering(t, fronts[0], "s1", "s2"); len(others) > 0 {
		t.Errorf("without a split %v answer as well", others)
	}
	in.Splits = []traffic.Split{divided(5_000, 5_000)}
	m.serves(ir.Build(in).Services...)
	answering(t, fronts[0], "s1", "s2", "c1")
}

func TestOfTwoServicesAtOneAddressTheOlderOneIsServed(t *testing.T) {
	first, second := backend(t, "first"), backend(t, "second")
	built := ir.Build(ir.Inputs{
		Services: []*corev1.Service{object("young", "10.0.0.1", 2, nil), object("web", "10.0.0.1", 1, nil)},
		Slices:   []*discoveryv1.EndpointSlice{slice("web", first), slice("young", second)},
	})
	if len(built.Problems) != 1 || !strings.Contains(built.Problems[0].String(), "10.0.0.1:80 belongs to the older Service shop/web") {
		t.Errorf("told is %v", built.Problems)
	}
	m := newMesh(t)
	m.serves(built.Services...)
	e, fronts := m.sidecar("web-0", service("web", nil))
	m.has("web-0", ads.Listener, "10.0.0.1:80")
	answering(t, fronts[0], "first")
	if n := stat(t, e, `listener_manager\.lds\.update_rejected`); n != 0 {
		t.Errorf("%d listeners are refused", n)
	}
}

func TestAServiceWithoutEndpointsAnswers503UntilItHasSome(t *testing.T) {
	m := newMesh(t)
	in := ir.Inputs{Services: []*corev1.Service{object("web", "10.0.0.1", 1, nil)}}
	m.serves(ir.Build(in).Services...)
	_, fronts := m.sidecar("web-0", service("web", nil))
	answersSoon(t, fronts[0], "503 no healthy upstream")
	in.Slices = []*discoveryv1.EndpointSlice{slice("web", backend(t, "a"))}
	m.serves(ir.Build(in).Services...)
	answersSoon(t, fronts[0], "200 a")
	in.Slices = nil
	m.serves(ir.Build(in).Services...)
	answersSoon(t, fronts[0], "503 no healthy upstream")
}

// Envoy takes no route whose weights are nothing together, so none is ever made.
func TestTwoVariationsWithoutWeightAreNeverSent(t *testing.T) {
	a := backend(t, "a")
	in := ir.Inputs{
		Services: []*corev1.Service{object("web", "10.0.0.1", 1, nil)}, Slices: []*discoveryv1.EndpointSlice{slice("web", a)},
		Pods: []ir.Pod{pod("stable", a)}, Splits: []traffic.Split{divided(0, 0)},
	}
	built := ir.Build(in)
	if len(built.Problems) != 1 || !strings.Contains(built.Problems[0].String(), "the weights add up to 0, want 10000") {
		t.Errorf("told is %v", built.Problems)
	}
	m := newMesh(t)
	m.serves(built.Services...)
	e, fronts := m.sidecar("web-0", service("web", nil))
	answersSoon(t, fronts[0], "200 a") // as without the split
	nothing := divided(0, 0).Routing
	unchecked := service("web", &nothing, slotOf("stable", a), slotOf("canary"))
	unchecked.Sequence = 2
	m.serves(unchecked) // even so the stable one gets what is left
	m.has("web-0", ads.Route, routeOfService("web"))
	answersSoon(t, fronts[0], "200 a")
	if n := stat(t, e, `http\.outbound\.rds\.shop/web\|80\.update_rejected`); n != 0 {
		t.Errorf("%d routes are refused", n)
	}
}

// A port that is declared HTTP and is not gets an answer in HTTP, which ends the
// handshake at once: clients are told, and nothing of theirs goes on.
func TestTLSToAPortDeclaredHTTPIsAnswered400(t *testing.T) {
	m := newMesh(t)
	shop := service("web", nil, slotOf("", backend(t, "a")))
	m.serves(shop)
	_, fronts := m.sidecar("web-0", shop)
	answersSoon(t, fronts[0], "200 a")
	var dialer net.Dialer
	plain, err := dialer.DialContext(t.Context(), "tcp", fronts[0])
	if err != nil {
		t.Fatal(err)
	}
	seen := &copied{Conn: plain}
	defer func() { _ = plain.Close() }() // only read
	if err := tls.Client(seen, &tls.Config{ServerName: "web", MinVersion: tls.VersionTLS12}).HandshakeContext(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "first record does not look like a TLS handshake") {
		t.Errorf("the handshake ends with %v", err)
	}
	if text := seen.text.String(); !strings.HasPrefix(text, "HTTP") {
		t.Errorf("the answer begins %q", text)
	}
	raw, err := dialer.DialContext(t.Context(), "tcp", fronts[0])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = raw.Close() }() // only read
	if _, err := raw.Write([]byte("\x16\x03\x01\x00\x05\x01\x00\x00\x01\x03")); err != nil {
		t.Fatal(err)
	}
	if lines, err := head(bufio.NewReader(raw)); err != nil || lines[0] != "HTTP/1.1 400 Bad Request" {
		t.Errorf("the answer is %q: %v", lines, err)
	}
}

// copied keeps what was read.
type copied struct {
	net.Conn
	text strings.Builder
}

func (c *copied) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.text.Write(p[:n])
	return n, err
}

// Proxies and endpoints of either family reach those of the other.
func TestBothFamiliesOfAddressesPass(t *testing.T) {
	front6 := net.JoinHostPort("::1", strconv.Itoa(freeport.For(t)))
	six, err := net.Listen("tcp6", front6) //nolint:noctx // only whether it can be is asked
	if err != nil {
		t.Logf("this machine has no IPv6 on loopback, so nothing of it can be seen here: %v", err)
		return
	}
	if err := six.Close(); err != nil {
		t.Fatal(err)
	}
	m, front4 := newMesh(t), freeport.Address(t)
	shop := service("web", nil, slotOf("", backend(t, "four"), backendAt(t, "six", "[::1]:0")))
	shop.Addresses = []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")}
	m.serves(shop)
	m.sidecarWith("web-0",
		envoyxds.Local(shop, shop.Ports[0], netip.MustParseAddrPort(front4)), envoyxds.Local(shop, shop.Ports[0], netip.MustParseAddrPort(front6)))
	for _, front := range []string{front4, front6} {
		answering(t, front, "four", "six")
	}
	m.has("web-0", ads.Listener, "10.0.0.1:80")
	m.has("web-0", ads.Listener, "[fd00::1]:80")
}
