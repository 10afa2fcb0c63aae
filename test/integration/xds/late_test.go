// SPDX-License-Identifier: Apache-2.0

//go:build integration

package xds

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strings"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyname"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/test/harness/backend"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// A proxy that comes back with a route, and never asks for the endpoints of it, gets the
// present one in the end; and whoever looks at the Service is told, with the rights that
// the chart gives.
func TestALateRouteIsAnEventOfItsService(t *testing.T) {
	t.Parallel() // it waits
	r := shared.start(t, "one")
	s := shared.shop(t, enabled)
	s.service("web", backend.Start(t, "one"))
	s.awaitCopy()
	token, route := s.token(s.pod("front-0", proxied)), envoyname.RouteName(s.name, "web", 80)
	s.lateFor(r, s.copied().Data[inject.CAKey], token, route)

	var web corev1.Service
	s.must(s.c.admin.Get(s.Context(), client.ObjectKey{Namespace: s.name, Name: "web"}, &web))
	poll.Until(t, patience, "an Event says so", func() error {
		var all eventsv1.EventList
		if err := s.c.admin.List(s.Context(), &all, client.InNamespace(s.name)); err != nil {
			return err
		}
		for _, e := range all.Items {
			if e.Regarding.UID == web.UID && e.Reason == "RouteLate" && e.Type == corev1.EventTypeWarning && strings.Contains(e.Note, s.name+"/front-0") && strings.Contains(e.Note, route) {
				return nil
			}
		}
		return errors.New("none does")
	})
}

// lateFor is a stream that reports an earlier version of a route, acknowledges clusters and
// no more, and ends when it has got the route.
func (s *shop) lateFor(r *replica, bundle, token, route string) {
	s.Helper()
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM([]byte(bundle))
	how := credentials.NewTLS(&tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS13, ServerName: "plumbline-xds." + rendered.Namespace + ".svc"})
	conn, err := grpc.NewClient(r.address, grpc.WithTransportCredentials(how))
	s.must(err)
	defer func() { s.must(conn.Close()) }()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token))
	s.must(err)
	response, err := asked(stream)
	s.must(err)
	next := func() {
		s.must(stream.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: response.GetTypeUrl(), ResponseNonce: response.GetNonce()}))
		response, err = stream.Recv()
		s.must(err)
	}
	for len(response.GetResources()) == 0 { // it may not have seen the Service yet
		next()
	}
	s.must(stream.Send(&discoveryv3.DeltaDiscoveryRequest{
		TypeUrl: ads.Route.URL(), ResourceNamesSubscribe: []string{route}, InitialResourceVersions: map[string]string{route: "0.before"},
	}))
	for response.GetTypeUrl() != ads.Route.URL() {
		next()
	}
	if got := response.GetResources(); len(got) != 1 || got[0].GetName() != route {
		s.Errorf("it gets %v", got)
	}
}
