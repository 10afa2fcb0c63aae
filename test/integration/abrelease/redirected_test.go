// SPDX-License-Identifier: Apache-2.0

//go:build integration

package abrelease

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/discovery"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// redirected is a pod of another namespace, whose connections come to its proxy by their
// destination. No rules of the kernel are needed: a client says its destination by the PROXY
// protocol. A connection that passes untouched reaches the upstream, as kube-proxy would have it.
type redirected struct {
	*shop
	services *shop
	pod      *corev1.Pod
	envoy    *envoy.Envoy
	server   *replica
	outbound string
	// service is the destination of the clients.
	service string
}

func startRedirected(t *testing.T, upstream string) *redirected {
	t.Helper()
	r := &redirected{shop: newShop(t), services: newShop(t), outbound: freeport.Address(t)}
	r.services.service("web")
	r.create(r.services.slice("web", upstream))
	for _, version := range []string{"stable", "canary"} {
		r.services.backendAt("web-"+version, "web", version, upstream)
	}
	svc := &corev1.Service{}
	r.must(admin.Get(t.Context(), types.NamespacedName{Namespace: r.services.namespace, Name: "web"}, svc))
	r.service = netip.AddrPortFrom(netip.MustParseAddr(svc.Spec.ClusterIP), 80).String()
	r.edit(svc, func() { svc.Annotations = map[string]string{ir.ExportToAnnotation: "*"} })
	r.server = r.start(asksProxies)
	r.pod = r.client("front-0", map[string]string{discovery.UpstreamsAnnotation: r.services.namespace + "/web"})
	r.envoy = envoy.Start(t, envoy.Options{
		Address: r.server.address, Authority: r.server.authority, Node: "front-0", Token: r.token(r.pod), Arguments: []string{"--drain-strategy", "immediate"},
		Listeners: []*listenerv3.Listener{envoy.Capture(t, r.outbound)}, Clusters: envoy.PassThrough(upstream),
	})
	poll.Until(t, patience, "the proxy listens", func() error {
		c, err := net.Dial("tcp", r.outbound) //nolint:noctx // bounded by the wait
		if err != nil {
			return err
		}
		return c.Close()
	})
	return r
}

// edit an object.
func (s *shop) edit(object client.Object, change func()) {
	s.t.Helper()
	s.must(admin.Get(s.t.Context(), client.ObjectKeyFromObject(object), object))
	before := object.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy of one
	change()
	s.must(admin.Patch(s.t.Context(), object, client.MergeFrom(before)))
}

// managed waits until the proxy has a listener for the Service, or none.
func (r *redirected) managed(is bool) {
	r.t.Helper()
	poll.Until(r.t, patience, fmt.Sprintf("that the proxy listens for the Service is %t", is), func() error {
		text, err := r.envoy.Get(r.t.Context(), "/listeners")
		if err == nil && strings.Contains(text, r.service) != is {
			err = fmt.Errorf("its listeners are %s", text)
		}
		return err
	})
}

// through waits until a part of the proxy has a certain number of connections.
func (r *redirected) through(stat string, enough func(int) bool) {
	r.t.Helper()
	poll.Until(r.t, patience, "connections move: "+stat, func() error {
		n, err := r.envoy.Stat(r.t.Context(), stat)
		if err == nil && !enough(n) {
			err = fmt.Errorf("it has %d", n)
		}
		return err
	})
}
