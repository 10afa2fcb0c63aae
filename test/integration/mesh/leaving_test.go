// SPDX-License-Identifier: Apache-2.0

//go:build integration

package mesh

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/discovery"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/backend"
)

// H1 of the review of the mesh: requests on connections that were open got 503. A listener of the
// bootstrap is one that Envoy goes on draining.
func TestAServiceThatLeavesTheMeshIsServedOnConnectionsThatAreOpen(t *testing.T) {
	d := discover(t)
	tests := map[string]func(*corev1.Service){
		"its label is taken off":            func(s *corev1.Service) { s.Labels = nil },
		"it gets a session affinity":        func(s *corev1.Service) { s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP },
		"its port is no longer one of HTTP": func(s *corev1.Service) { s.Spec.Ports[0].Name = "tcp" },
		"it is deleted":                     nil,
		"its consent is withdrawn (H2)":     func(s *corev1.Service) { s.Annotations[ir.ExportToAnnotation] = "elsewhere" },
	}
	for name, leave := range tests {
		t.Run(name, func(t *testing.T) {
			s, asks := newShop(t), newShop(t)
			s.service("web", backend.Start(t, "one"))
			s.exports("web", asks.namespace)
			proxy, fronts := s.proxy(d, asks.pod("front-0", map[string]string{discovery.UpstreamsAnnotation: s.namespace + "/web"}), "web")
			backend.Answers(t, patience, fronts["web"], "200 one")
			service := &corev1.Service{}
			s.must(admin.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "web"}, service))
			at := fmt.Sprint(service.Spec.ClusterIP, ":80")
			listens := func() error {
				text, err := proxy.Get(t.Context(), "/listeners")
				if err == nil && strings.Contains(text, at) {
					err = fmt.Errorf("the listener %s is there", at)
				}
				return err
			}
			if listens() == nil {
				t.Fatalf("the proxy has no listener %s", at)
			}
			if leave == nil {
				s.must(admin.Delete(t.Context(), service))
			} else {
				before := client.MergeFrom(service.DeepCopy())
				leave(service)
				s.must(admin.Patch(t.Context(), service, before))
			}
			for asked := 0; ; asked++ {
				if got := backend.Get(t, fronts["web"]); got != "200 one" {
					t.Fatalf("request %d while it leaves is answered %q", asked, got)
				}
				if listens() == nil {
					break
				}
				if asked == 100_000 {
					t.Fatal(listens())
				}
			}
			for range 50 {
				if got := backend.Get(t, fronts["web"]); got != "200 one" {
					t.Fatalf("when it has left, a request is answered %q", got)
				}
			}
		})
	}
}
