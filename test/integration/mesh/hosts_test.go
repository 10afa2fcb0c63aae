// SPDX-License-Identifier: Apache-2.0

//go:build integration

package mesh

import (
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/discovery"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/backend"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
)

// labeled gives the namespace a label.
func (s *shop) labeled(key, value string) {
	s.t.Helper()
	body := fmt.Sprintf(`{"metadata": {"labels": {%q: %q}}}`, key, value)
	s.must(admin.Patch(s.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}, client.RawPatch(types.MergePatchType, []byte(body))))
}

// Finding M8: a gateway serves a host for the namespace that it was given to, and no pod of another
// namespace behind a host.
func TestAGatewayServesWhatANamespaceWasGiven(t *testing.T) {
	ours, shop, bank := newShop(t), newShop(t), newShop(t)
	const team = "team"
	shop.service("web", backend.Start(t, "one"))
	shop.labeled(team, shop.namespace)
	port, domain := freeport.For(t), shop.namespace+".example.com"
	d := discover(t, ours.gateways(port), func(setup *discovery.Setup) {
		setup.Faces.Grants = []ir.Grant{{Namespaces: labels.SelectorFromSet(labels.Set{team: shop.namespace}), Domains: []string{"*." + domain}}}
	})
	ours.proxy(d, ours.pod("gateway-0", nil))
	address := local(port)

	// The bank asks first.
	bank.service("web", backend.Start(t, "forged"))
	bank.under("web", "a."+domain)
	shop.under("web", "a."+domain+", a.elsewhere.example.com")
	served(t, address, "a."+domain, "200 one")
	served(t, address, "a.elsewhere.example.com", "404 ")
	bank.labeled(team, shop.namespace)
	shop.under("web", "")
	served(t, address, "a."+domain, "200 forged")

	// Each backend has the address of a pod of this test, and this shop has none.
	thief := newShop(t)
	thief.service("web", backend.Start(t, "stolen"))
	thief.labeled(team, shop.namespace)
	thief.asks("web", "b."+domain)
	served(t, address, "b."+domain, "503 no healthy upstream")
	thief.ownsBackends()
	served(t, address, "b."+domain, "200 stolen")
}

// Finding H1, at a gateway: a host is served until the gateway has let go of it, and is not found from
// then on. Requests of another host on the same connections go on.
func TestAHostThatLeavesAGatewayIsServedOrNotFound(t *testing.T) {
	ours := newShop(t)
	port := freeport.For(t)
	d := discover(t, ours.gateways(port))
	ours.proxy(d, ours.pod("gateway-0", nil))
	service := func(s *shop) *corev1.Service { return &corev1.Service{ObjectMeta: s.named("web")} }
	tests := map[string]func(s *shop){
		"its host is taken out": func(s *shop) { s.under("web", "") },
		"its label is taken off": func(s *shop) {
			s.must(admin.Patch(t.Context(), service(s), client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"labels": null}}`))))
		},
		"it is deleted": func(s *shop) { s.must(admin.Delete(t.Context(), service(s))) },
	}
	for name, leave := range tests {
		t.Run(name, func(t *testing.T) {
			s, stays := newShop(t), newShop(t)
			s.service("web", backend.Start(t, "one"))
			stays.service("web", backend.Start(t, "two"))
			s.under("web", s.namespace+".example.com")
			stays.under("web", stays.namespace+".example.com")
			served(t, local(port), s.namespace+".example.com", "200 one")
			served(t, local(port), stays.namespace+".example.com", "200 two")
			var clients errgroup.Group
			for range 8 {
				ask := connect(t, port)
				clients.Go(func() error {
					for range 100_000 {
						if got := ask(stays.namespace + ".example.com"); got != "200 two, kept" {
							return fmt.Errorf("the other host is answered %q", got)
						}
						switch got := ask(s.namespace + ".example.com"); got {
						case "200 one, kept":
						case "404 , kept":
							return nil
						default:
							return fmt.Errorf("the host that leaves is answered %q", got)
						}
					}
					return errors.New("it is served for ever")
				})
			}
			leave(s)
			if err := clients.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}
