// SPDX-License-Identifier: Apache-2.0

//go:build integration

package mesh

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/test/harness/backend"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// node with the labels of a region and a zone; it ends with the test.
func (s *shop) node(prefix, region, zone string) *corev1.Node {
	s.t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix, Labels: map[string]string{corev1.LabelTopologyRegion: region, corev1.LabelTopologyZone: zone}}}
	s.create(n)
	s.t.Cleanup(func() { s.must(admin.Delete(context.WithoutCancel(s.t.Context()), n)) })
	return n
}

// placed waits until an Envoy knows where an endpoint is.
func placed(t *testing.T, e *envoy.Envoy, address, region, zone string) {
	t.Helper()
	poll.Until(t, patience, fmt.Sprint(address, " is in ", region, "/", zone), func() error {
		text, err := e.Get(t.Context(), "/clusters")
		for _, want := range []string{address + "::region::" + region + "\n", address + "::zone::" + zone + "\n"} {
			if err == nil && !strings.Contains(text, want) {
				err = fmt.Errorf("no %q in\n%s", want, text)
			}
		}
		return err
	})
}

// Where an endpoint is, an Envoy learns from the labels of its node.
func TestAnEnvoyKnowsTheRegionAndTheZoneOfEachEndpoint(t *testing.T) {
	s := newShop(t)
	north, south := s.node("north-", "eu", "eu-a"), s.node("south-", "eu", "eu-b")
	one, two, nowhere := backend.Start(t, "one"), backend.Start(t, "one"), backend.Start(t, "one")
	s.service("web", nowhere)
	for i, of := range map[int]struct {
		node    *corev1.Node
		address string
	}{1: {north, one}, 2: {south, two}} {
		slice := s.slice("web", i, of.address)
		slice.Endpoints[0].NodeName = &of.node.Name
		s.create(slice)
	}
	e, fronts := s.proxy(discover(t), s.pod("front-0", nil), "web")
	backend.Answers(t, patience, fronts["web"], "200 one")
	placed(t, e, one, "eu", "eu-a")
	placed(t, e, two, "eu", "eu-b")
	placed(t, e, nowhere, "", "")

	south.Labels[corev1.LabelTopologyRegion], south.Labels[corev1.LabelTopologyZone] = "us", "us-c"
	s.must(admin.Update(t.Context(), south))
	placed(t, e, two, "us", "us-c")
	placed(t, e, one, "eu", "eu-a")
}
