// SPDX-License-Identifier: Apache-2.0

//go:build integration

package xds

import (
	"fmt"
	"net/netip"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/proxypod"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// shop is a namespace with a service account.
type shop struct {
	*testing.T
	c    *cluster
	name string
}

func (c *cluster) shop(t *testing.T, labels map[string]string) *shop {
	t.Helper()
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "shop-", Labels: labels}}
	s := &shop{T: t, c: c}
	s.create(n)
	s.name = n.Name
	s.create(&corev1.ServiceAccount{ObjectMeta: s.named("front")})
	return s
}

// enabled is the label of a namespace whose pods get proxies.
var enabled = map[string]string{inject.LabelInject: inject.Enabled}

func (s *shop) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *shop) named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.name, Name: name}
}

// system is the metadata of an object in Plumbline's own namespace.
func system(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: rendered.Namespace, Name: name}
}

func (s *shop) create(object client.Object) {
	s.Helper()
	s.must(s.c.admin.Create(s.Context(), object))
}

// label sets a label of the namespace.
func (s *shop) label(key, value string) {
	s.Helper()
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, key, value)
	s.must(s.c.admin.Patch(s.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}}, client.RawPatch("application/merge-patch+json", []byte(patch))))
}

// pod is one that nobody runs.
func (s *shop) pod(name string, labels map[string]string) *corev1.Pod {
	s.Helper()
	pod := &corev1.Pod{ObjectMeta: s.named(name), Spec: corev1.PodSpec{ServiceAccountName: "front", Containers: []corev1.Container{{Name: "app", Image: "app"}}}}
	pod.Labels = labels
	if mode := labels[inject.LabelProxy]; mode != "" {
		proxypod.Inject(pod, inject.Mode(mode))
	}
	s.create(pod)
	proxypod.Place(pod)
	s.must(s.c.admin.Status().Update(s.Context(), pod))
	return pod
}

// service is a managed one on port 80 with one address.
func (s *shop) service(name, backend string) *discoveryv1.EndpointSlice {
	s.Helper()
	meta := s.named(name)
	meta.Labels = map[string]string{ir.Managed: "true"}
	s.create(&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}})
	return s.addressed(name, backend)
}

// addressed gives a service one address.
func (s *shop) addressed(name, backend string) *discoveryv1.EndpointSlice {
	s.Helper()
	slice := &discoveryv1.EndpointSlice{ObjectMeta: s.named(name), AddressType: discoveryv1.AddressTypeIPv4}
	slice.Labels = map[string]string{discoveryv1.LabelServiceName: name}
	point(slice, backend)
	s.create(slice)
	return slice
}

// move points a service to another address.
func (s *shop) move(slice *discoveryv1.EndpointSlice, backend string) {
	s.Helper()
	point(slice, backend)
	s.must(s.c.admin.Update(s.Context(), slice))
}

func point(slice *discoveryv1.EndpointSlice, backend string) {
	at := netip.MustParseAddrPort(backend)
	slice.Ports = []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(at.Port()))}}
	slice.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{at.Addr().String()}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}}
}

func (s *shop) token(pod *corev1.Pod) string {
	s.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: []string{identity.Audience}, ExpirationSeconds: new(int64(3600)),
		BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
	}}
	s.must(s.c.admin.SubResource("token").Create(s.Context(), &corev1.ServiceAccount{ObjectMeta: s.named("front")}, request))
	return request.Status.Token
}

// proxy is the sidecar of a pod, with a local port for a service.
func (s *shop) proxy(r *replica, bundle, pod, token, service string) (e *envoy.Envoy, front string) {
	s.Helper()
	front = freeport.Address(s.T)
	port := ir.Port{Name: "http", Number: 80, Protocol: ir.HTTP}
	options := envoy.Options{Address: r.address, Authority: []byte(bundle), Node: s.name + "/" + pod, Token: token}
	options.Listeners = append(options.Listeners, envoyxds.Local(ir.Service{Namespace: s.name, Name: service}, port, netip.MustParseAddrPort(front)))
	return envoy.Start(s.T, options), front
}

// copied is the ConfigMap of authorities; nil when there is none.
func (s *shop) copied() *corev1.ConfigMap {
	s.Helper()
	return s.c.authorities(s.T, s.name)
}

// awaitCopy waits until it has the authorities of the original.
func (s *shop) awaitCopy() {
	s.Helper()
	poll.Until(s.T, patience, s.name+" has the authorities", s.hasCopy)
}

// hasCopy compares the copy with the original.
func (s *shop) hasCopy() error {
	want, got := s.c.authorities(s.T, rendered.Namespace), s.copied()
	switch {
	case want == nil || want.Data[inject.CAKey] == "":
		return fmt.Errorf("the original is %v", want)
	case got == nil:
		return fmt.Errorf("there is no copy")
	case len(got.Data) != 1 || got.Data[inject.CAKey] != want.Data[inject.CAKey] || len(got.BinaryData) > 0 || got.Immutable != nil && *got.Immutable:
		return fmt.Errorf("the copy is %v", got)
	}
	return nil
}

func (c *cluster) authorities(t *testing.T, namespace string) *corev1.ConfigMap {
	t.Helper()
	var m corev1.ConfigMap
	err := c.admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: inject.CAConfigMap}, &m)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return &m
}
