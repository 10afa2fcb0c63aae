// SPDX-License-Identifier: Apache-2.0

//go:build integration

package mesh

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/discovery"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/inprocess"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/proxypod"
)

const patience = time.Minute

// process is a server that runs.
type process struct {
	address   string
	authority []byte
	registry  *prometheus.Registry
}

// discover starts one, which ends with the test.
func discover(t *testing.T, changes ...func(*discovery.Setup)) *process {
	t.Helper()
	certificate, authority := envoy.NewServing(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // as a server would
	if err != nil {
		t.Fatal(err)
	}
	d := &process{address: listener.Addr().String(), authority: authority, registry: prometheus.NewRegistry()}
	ctx, stop := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan error, 1)
	setup := discovery.Setup{
		Config: config, Listener: listener, Registry: d.registry, Log: inprocess.Told(t), Clock: clock.RealClock{},
		Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &certificate, nil },
		Ready:       func() { close(ready) },
		Times:       discovery.Times{Goodbye: 100 * time.Millisecond},
	}
	for _, change := range changes {
		change(&setup)
	}
	go func() { done <- discovery.Run(ctx, setup) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	poll.Ready(t, patience, "the discovery server", ready, done)
	return d
}

// figure of a counter or gauge with these label values, in their order.
func (d *process) figure(t *testing.T, name string) int {
	t.Helper()
	n, err := testutil.GatherAndCount(d.registry, name)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// refuses waits until a token was refused for a reason.
func (d *process) refuses(t *testing.T, reason string) {
	t.Helper()
	poll.Until(t, patience, "a token is refused: "+reason, func() error {
		families, err := d.registry.Gather()
		if err != nil {
			return err
		}
		seen := []string{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if f.GetName() != "plumbline_xds_tokens_refused_total" {
					continue
				}
				if seen = append(seen, m.GetLabel()[0].GetValue()); seen[len(seen)-1] == reason {
					return nil
				}
			}
		}
		return fmt.Errorf("it was refused for %q", seen)
	})
}

// shop is a namespace with a service account.
type shop struct {
	t         *testing.T
	namespace string
}

func newShop(t *testing.T) *shop {
	t.Helper()
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "shop-"}}
	s := &shop{t: t}
	s.create(n)
	s.namespace = n.Name
	s.create(&corev1.ServiceAccount{ObjectMeta: s.named("front")})
	return s
}

func (s *shop) named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.namespace, Name: name}
}

func (s *shop) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *shop) create(object client.Object) {
	s.t.Helper()
	s.must(admin.Create(s.t.Context(), object))
}

// service is a managed one on port 80, with the addresses of backends.
func (s *shop) service(name string, backends ...string) *discoveryv1.EndpointSlice {
	s.t.Helper()
	meta := s.named(name)
	meta.Labels = map[string]string{ir.Managed: "true"}
	s.create(&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}})
	slice := s.slice(name, 0, backends...)
	s.create(slice)
	return slice
}

// slice of a service; all backends of one have the same port.
func (s *shop) slice(service string, n int, backends ...string) *discoveryv1.EndpointSlice {
	meta := s.named(fmt.Sprint(service, "-", n))
	meta.Labels = map[string]string{discoveryv1.LabelServiceName: service}
	slice := &discoveryv1.EndpointSlice{ObjectMeta: meta, AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{}}
	for _, backend := range backends {
		at := netip.MustParseAddrPort(backend)
		slice.Ports = []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(at.Port()))}}
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{at.Addr().String()}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}})
	}
	return slice
}

// pod is one with a proxy, which nobody runs.
func (s *shop) pod(name string, annotations map[string]string) *corev1.Pod {
	s.t.Helper()
	pod := &corev1.Pod{ObjectMeta: s.named(name), Spec: corev1.PodSpec{ServiceAccountName: "front", Containers: []corev1.Container{{Name: "app", Image: "app"}}}}
	pod.Annotations = annotations
	s.inject(pod, inject.Redirect)
	return pod
}

// inject creates a pod with a proxy, which connects from this machine.
func (s *shop) inject(pod *corev1.Pod, mode inject.Mode) {
	s.t.Helper()
	proxypod.Inject(pod, mode)
	s.create(pod)
	s.place(pod)
}

// place says that a pod connects from this machine.
func (s *shop) place(pod *corev1.Pod) {
	s.t.Helper()
	proxypod.Place(pod)
	s.must(admin.Status().Update(s.t.Context(), pod))
}

func (s *shop) token(pod *corev1.Pod, audience string) string {
	s.t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: []string{audience}, ExpirationSeconds: new(int64(600)),
		BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
	}}
	s.must(admin.SubResource("token").Create(s.t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: "front"}}, request))
	return request.Status.Token
}

// proxy is the sidecar of a pod, with a local port for each service of it.
func (s *shop) proxy(d *process, pod *corev1.Pod, services ...string) (*envoy.Envoy, map[string]string) {
	s.t.Helper()
	fronts, options := map[string]string{}, envoy.Options{
		Address: d.address, Authority: d.authority, Node: pod.Namespace + "/" + pod.Name, Token: s.token(pod, identity.Audience),
		// As a sidecar's, but for the time: a listener that is gone lets its route go when it ends.
		Arguments: []string{"--drain-strategy", "immediate", "--drain-time-s", "2"},
	}
	for _, name := range services {
		at := freeport.Address(s.t)
		fronts[name] = at
		port := ir.Port{Name: "http", Number: 80, Protocol: ir.HTTP}
		options.Listeners = append(options.Listeners, envoyxds.Local(ir.Service{Namespace: s.namespace, Name: name}, port, netip.MustParseAddrPort(at)))
	}
	return envoy.Start(s.t, options), fronts
}
