// SPDX-License-Identifier: Apache-2.0

//go:build integration

package mesh

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/discovery"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/backend"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// explicitPod has these ports in its annotation.
func (s *shop) explicitPod(name, ports string) *corev1.Pod {
	s.t.Helper()
	pod := &corev1.Pod{ObjectMeta: s.named(name), Spec: corev1.PodSpec{ServiceAccountName: "front", Containers: []corev1.Container{{Name: "app", Image: "app"}}}}
	if ports != "" {
		pod.Annotations = map[string]string{inject.AnnotationLocalPorts: ports}
	}
	s.inject(pod, inject.Explicit)
	return pod
}

// silent waits until nobody listens at an address.
func silent(t *testing.T, address string) {
	t.Helper()
	poll.Until(t, patience, "nobody listens on "+address, func() error {
		c, err := net.Dial("tcp", address) //nolint:noctx // bounded by the wait
		if err != nil {
			return nil //nolint:nilerr // that it fails is what is waited for
		}
		_ = c.Close() // only whether it can be was asked
		return fmt.Errorf("somebody does")
	})
}

func local(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }

func TestAnExplicitPodHasItsLocalPorts(t *testing.T) {
	theirs, s := newShop(t), newShop(t)
	theirs.service("pay", backend.Start(t, "paid"))
	theirs.exports("pay", s.namespace)
	slice := s.service("web", backend.Start(t, "one"))
	web, pay, none := freeport.For(t), freeport.For(t), freeport.For(t)
	d := discover(t)
	pod := s.explicitPod("front-0", fmt.Sprintf("%d=web,%d=%s/pay:80,%d=none,80=web", web, pay, theirs.namespace, none))
	e, _ := s.proxy(d, pod)
	backend.Answers(t, patience, local(web), "200 one")
	backend.Answers(t, patience, local(pay), "200 paid")
	silent(t, local(none))
	if n := d.counted(t, "plumbline_xds_scope_problems_total"); n < 2 {
		t.Errorf("%v are counted that cannot be had, want 2: port 80, and the Service that is not there", n)
	}
	if text, err := e.Get(t.Context(), "/listeners"); err != nil || strings.Count(text, "\n") != 2 {
		t.Errorf("its listeners are %q (%v), want those two alone", text, err)
	}

	s.service("none", backend.Start(t, "some")) // it comes later
	backend.Answers(t, patience, local(none), "200 some")
	var svc corev1.Service
	s.must(admin.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "web"}, &svc))
	s.must(admin.Delete(t.Context(), &svc))
	s.must(admin.Delete(t.Context(), slice))
	silent(t, local(web))
	backend.Answers(t, patience, local(pay), "200 paid")
}

func TestAnExplicitPodThatSaysNothingHasThePortsOfItsNamespace(t *testing.T) {
	s := newShop(t)
	s.service("web", backend.Start(t, "one"))
	web := freeport.For(t)
	var n corev1.Namespace
	s.must(admin.Get(t.Context(), client.ObjectKey{Name: s.namespace}, &n))
	n.Annotations = map[string]string{inject.AnnotationLocalPorts: fmt.Sprintf("%d=web", web)}
	s.must(admin.Update(t.Context(), &n))
	s.proxy(discover(t), s.explicitPod("front-0", ""))
	backend.Answers(t, patience, local(web), "200 one")
}

// host is what an address answers to a request for a host.
func host(t *testing.T, address, name string, headers ...string) string {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/", http.NoBody)
	if err != nil {
		return err.Error()
	}
	request.Host = name
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = response.Body.Close() }() // it was read
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	return strconv.Itoa(response.StatusCode) + " " + string(body)
}

func served(t *testing.T, address, name, want string) {
	t.Helper()
	poll.Until(t, patience, name+" is answered with "+want, func() error {
		if got := host(t, address, name); got != want {
			return fmt.Errorf("it answers %q", got)
		}
		return nil
	})
}

// under has a Service served as a host by gateways; none takes it off.
func (s *shop) under(service, hosts string) {
	s.t.Helper()
	s.ownsBackends()
	s.asks(service, hosts)
}

// asks that a Service is served as a host, whosever its endpoints are.
func (s *shop) asks(service, hosts string) {
	s.t.Helper()
	var svc corev1.Service
	s.must(admin.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: service}, &svc))
	svc.Annotations = map[string]string{ir.HostsAnnotation: hosts}
	s.must(admin.Update(s.t.Context(), &svc))
}

// ownsBackends gives the address of the backends to a pod of the namespace. Pods of other tests
// have this address as well, and gateways serve no pod of another namespace alone.
func (s *shop) ownsBackends() {
	s.t.Helper()
	pod := &corev1.Pod{ObjectMeta: s.named("backend-0"), Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}}}
	if err := admin.Create(s.t.Context(), pod); apierrors.IsAlreadyExists(err) {
		return
	} else if err != nil {
		s.t.Fatal(err)
	}
	pod.Status.Phase, pod.Status.PodIP = corev1.PodRunning, backend.Own(s.t)
	pod.Status.PodIPs = []corev1.PodIP{{IP: pod.Status.PodIP}}
	s.must(admin.Status().Update(s.t.Context(), pod))
}

// gateways are pods of a namespace of their own, here with the account "front".
func (s *shop) gateways(port int) func(*discovery.Setup) {
	return func(setup *discovery.Setup) {
		setup.Faces.Gateway = &envoyxds.Gateway{Port: uint16(port)} //nolint:gosec // a port
		setup.Gateways = discovery.Account{Namespace: s.namespace, Name: "front"}
	}
}

func TestAGatewayServesHostsOfAllNamespaces(t *testing.T) {
	ours, shop, bank := newShop(t), newShop(t), newShop(t)
	if bank.namespace < shop.namespace { // which decides between two of one second
		shop, bank = bank, shop
	}
	shop.service("web", backend.Start(t, "one"))
	bank.service("pay", backend.Start(t, "paid"))
	shop.under("web", shop.namespace+".example.com")
	port := freeport.For(t)
	d := discover(t, ours.gateways(port))
	ours.proxy(d, ours.pod("gateway-0", nil))
	address := local(port)
	served(t, address, shop.namespace+".example.com", "200 one")
	served(t, address, bank.namespace+".example.com", "404 ")
	if got := host(t, address, bank.namespace+".example.com"); got != "404 " {
		t.Errorf("a Service without a host answers %q", got)
	}
	bank.under("pay", "*."+bank.namespace+".example.com")
	served(t, address, "a."+bank.namespace+".example.com", "200 paid")
	bank.under("pay", shop.namespace+".example.com, "+bank.namespace+".example.com") // the first is the older Service's
	served(t, address, bank.namespace+".example.com", "200 paid")
	served(t, address, shop.namespace+".example.com", "200 one")
	shop.under("web", "")
	served(t, address, shop.namespace+".example.com", "200 paid") // and is now free
	bank.under("pay", "")
	served(t, address, bank.namespace+".example.com", "404 ")
}

// Who calls himself a gateway is none: it is the account that counts.
func TestNobodyElseIsAGateway(t *testing.T) {
	ours, shop := newShop(t), newShop(t)
	shop.service("web", backend.Start(t, "one"))
	shop.under("web", shop.namespace+".example.com")
	port := freeport.For(t)
	d := discover(t, ours.gateways(port))
	pod := &corev1.Pod{ObjectMeta: shop.named("gateway-0"), Spec: corev1.PodSpec{ServiceAccountName: "front", Containers: []corev1.Container{{Name: "app", Image: "app"}}}}
	pod.Labels = map[string]string{inject.LabelProxy: inject.Gateway}
	shop.create(pod)
	shop.place(pod)
	e := envoy.Start(t, envoy.Options{Address: d.address, Authority: d.authority, Node: "x", Token: shop.token(pod, identity.Audience)})
	d.refuses(t, "NoProxy")
	if text, err := e.Get(t.Context(), "/listeners"); err != nil || strings.Contains(text, "gateway") {
		t.Errorf("it has %s; %v", text, err)
	}
}

// A gateway whose pod begins to end answers as before, and closes each connection with
// the answer, so that nobody has one when it ends.
func TestAGatewayThatEndsSendsItsClientsAway(t *testing.T) {
	ours, shop := newShop(t), newShop(t)
	shop.service("web", backend.Start(t, "one"))
	name := shop.namespace + ".example.com"
	shop.under("web", name)
	port := freeport.For(t)
	d := discover(t, ours.gateways(port))
	pod := &corev1.Pod{ObjectMeta: ours.named("gateway-0"), Spec: corev1.PodSpec{ServiceAccountName: "front", Containers: []corev1.Container{{Name: "app", Image: "app"}}}}
	pod.Labels = map[string]string{inject.LabelProxy: inject.Gateway}
	pod.Spec.NodeName = "somewhere" // or it would be gone at once
	ours.create(pod)
	ours.place(pod)
	envoy.Start(t, envoy.Options{
		Address: d.address, Authority: d.authority, Node: "x", Token: ours.token(pod, identity.Audience),
		// As the chart has it.
		Arguments: []string{"--drain-time-s", "15", "--drain-strategy", "immediate"},
	})
	served(t, local(port), name, "200 one")
	kept, fresh := connect(t, port), func() string { return connect(t, port)(name) }
	for range 3 {
		if got := kept(name); got != "200 one, kept" {
			t.Fatalf("before it ends it answers %q", got)
		}
	}
	ours.must(admin.Delete(t.Context(), pod, client.GracePeriodSeconds(60)))
	poll.Until(t, patience, "who comes is sent away with the answer", func() error {
		if got := fresh(); got != "200 one, closed" {
			return fmt.Errorf("it answers %q", got)
		}
		return nil
	})
	if got := kept(name); got != "200 one, closed" {
		t.Errorf("who was there before is answered %q", got)
	}
	for range 20 {
		if got := fresh(); got != "200 one, closed" {
			t.Fatalf("while it ends it answers %q", got)
		}
	}
}

// connect opens a connection, over which requests for hosts are sent.
func connect(t *testing.T, port int) func(host string) string {
	t.Helper()
	c, err := net.Dial("tcp", local(port)) //nolint:noctx // has a deadline
	if err == nil {
		err = c.SetDeadline(time.Now().Add(patience))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // only read until here
	r := bufio.NewReader(c)
	return func(host string) string {
		if _, err := fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", host); err != nil {
			return err.Error()
		}
		response, err := http.ReadResponse(r, nil)
		if err != nil {
			return err.Error()
		}
		defer func() { _ = response.Body.Close() }() // it was read
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return err.Error()
		}
		fate := "kept"
		if response.Close {
			fate = "closed"
		}
		return fmt.Sprintf("%d %s, %s", response.StatusCode, body, fate)
	}
}

// counted is the sum of a counter.
func (d *process) counted(t *testing.T, name string) (sum float64) {
	t.Helper()
	families, err := d.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}
