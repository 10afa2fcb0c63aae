// SPDX-License-Identifier: Apache-2.0

//go:build integration

package mesh

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/backend"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// A Service that stands for a name outside has no endpoints that a proxy could be told
// of: it is left alone, and harms no other, until it is a Service like others.
func TestAServiceThatStandsForANameIsLeftAlone(t *testing.T) {
	s := newShop(t)
	meta := s.named("outside")
	meta.Labels = map[string]string{ir.Managed: "true"}
	outside := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeExternalName, ExternalName: "example.com", Ports: []corev1.ServicePort{{Name: "http", Port: 80}},
	}}
	s.create(outside)
	s.service("web", backend.Start(t, "one"))
	e, fronts := s.proxy(discover(t), s.pod("front-0", nil), "web", "outside")
	backend.Answers(t, patience, fronts["web"], "200 one")
	backend.Answers(t, patience, fronts["outside"], "503 ")
	if text, err := e.Get(t.Context(), "/clusters"); err != nil || strings.Contains(text, "/outside|") {
		t.Errorf("the proxy has a cluster of it: %v\n%s", err, text)
	}

	s.create(s.slice("outside", 0, backend.Start(t, "inside")))
	outside.Spec.Type, outside.Spec.ExternalName = corev1.ServiceTypeClusterIP, ""
	s.must(admin.Update(t.Context(), outside))
	backend.Answers(t, patience, fronts["outside"], "200 inside")
	at := outside.Spec.ClusterIP + ":80"

	outside.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.com", Ports: outside.Spec.Ports}
	s.must(admin.Update(t.Context(), outside))
	// The proxy drains the listener, and connections that are open are served on.
	poll.Until(t, patience, "the proxy is no longer told of it", func() error {
		text, err := e.Get(t.Context(), "/listeners")
		if err == nil && strings.Contains(text, at) {
			err = fmt.Errorf("the listener %s is there", at)
		}
		return err
	})
	backend.Answers(t, patience, fronts["outside"], "200 inside")
	backend.Answers(t, patience, fronts["web"], "200 one")
}
