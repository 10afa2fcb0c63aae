// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	metricsv3 "github.com/envoyproxy/go-control-plane/envoy/service/metrics/v3"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/grpc/metadata"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/serve"
	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/pkg/traffic/signals/receive"
	"github.com/plumbline-dev/plumbline/test/harness/grpcpipe"
)

// secret is a divided Service with what its owner shows to no other namespace.
func secret(export ir.Export) ir.Service {
	s := serviceOf("shop", "web", "10.1.1.1:8080", 1)
	ends := s.Ports[0].Slots[0].Endpoints
	s.Ports[0].Slots = []ir.Slot{{Variation: "stable", Endpoints: ends}, {Variation: "canary", Endpoints: ends}}
	s.Sequence, s.Export = 7, export
	s.Routing = &traffic.Routing{
		Shares: traffic.Shares{{Variation: "stable", Weight: 9000}, {Variation: "canary", Weight: 1000, Reserved: 10000}},
		Key:    traffic.Key{Kind: traffic.ByHeader, Name: "x-user"},
		Salt:   "0b6c7a3e-secret-salt", Override: "x-qa-secret",
		Match: traffic.Match{Header: "x-customer", Values: map[string]string{"customer-4711": "canary"}},
	}
	return s
}

var secrets = []string{"0b6c7a3e-secret-salt", "x-qa-secret", "customer-4711", "10.1.1.1"}

// foreigner takes every token for that of the pod evil/x.
type foreigner struct{}

func (foreigner) Verify(context.Context, string) (identity.Proxy, error) {
	return identity.Proxy{Namespace: "evil", Pod: "x", PodUID: "1"}, nil
}

// foreign is the directory of a cluster with the pod evil/x, which asks for all of shop.
func foreign(c *Catalog) *Directory {
	pod := proxied(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "evil", Name: "x", UID: "1", Annotations: map[string]string{UpstreamsAnnotation: "shop/*"}}})
	return NewDirectory(foreigner{}, &cluster{pods: map[string]*corev1.Pod{"evil/x": pod}}, c, nil)
}

// Finding H2: a pod of another namespace read addresses, salts and the values of headers.
func TestAProxyOfAnotherNamespaceReadsAServiceOnlyWithConsent(t *testing.T) {
	tests := map[string]struct {
		export ir.Export
		reads  bool
	}{
		"not without":              {ir.Export{}, false},
		"not with that for others": {ir.Export{Namespaces: []string{"pay"}}, false},
		"with its own":             {ir.Export{Namespaces: []string{"evil"}}, true},
		"with that for all":        {ir.Export{All: true}, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := NewCatalog(serve.NewProofs())
			publish(t, c, begin, secret(tc.export))
			var told []string
			d := foreign(c)
			d.Misread = func(_ *corev1.Pod, wrong []string) { told = wrong }
			in, err := d.Admit(fromPod(t), []string{"Bearer t"})
			if err != nil {
				t.Fatal(err)
			}
			view := in.Group.View()
			var all []byte
			for _, k := range []ads.Type{ads.Route, ads.Endpoints} {
				for _, n := range view.Names(k) {
					all = append(all, view.Get(k, n).Body...)
				}
			}
			for _, s := range secrets {
				if bytes.Contains(all, []byte(s)) != tc.reads {
					t.Errorf("it reads %q: %t", s, !tc.reads)
				}
			}
			if tc.reads != (len(told) == 0) {
				t.Errorf("the owner of the pod is told %q", told)
			}
		})
	}
}

// Finding H2: one message of a pod that was never in the path of a request was believed.
func TestAProxyWithoutConsentForgesNoCounts(t *testing.T) {
	for name, export := range map[string]ir.Export{"without consent": {}, "with consent": {All: true}} {
		t.Run(name, func(t *testing.T) {
			c := NewCatalog(serve.NewProofs())
			publish(t, c, begin, secret(export))
			observer, err := newCountsObserver(prometheus.NewRegistry())
			if err != nil {
				t.Fatal(err)
			}
			server := receive.New(receive.Config{}, counting{foreign(c)}, observer, time.Now)
			client := metricsv3.NewMetricsServiceClient(grpcpipe.DialFrom(t, podAddress, server.Register, serve.Options()...))
			stream, err := client.StreamMetrics(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer t"))
			if err != nil {
				t.Fatal(err)
			}
			if err := stream.Send(forged("shop/web|80|canary", 1e6)); err != nil {
				t.Fatal(err)
			}
			if _, err := stream.CloseAndRecv(); err != nil { // all of it was taken
				t.Fatal(err)
			}
			var completed, failed uint64
			for _, v := range server.Service("shop", "web", time.Now().Add(-time.Minute)).Variations {
				of, wrong := v.Total.Outcomes()
				completed, failed = completed+of, failed+wrong
			}
			if consents := export.All; (completed > 0) != consents || (failed > 0) != consents {
				t.Errorf("%d requests and %d failures of shop/web are believed", completed, failed)
			}
		})
	}
}

// forged counts of failed requests of a cluster.
func forged(cluster string, n float64) *metricsv3.StreamMetricsMessage {
	metric := func(name string, more ...*dto.LabelPair) *dto.MetricFamily {
		label := &dto.LabelPair{Name: new("envoy.cluster_name"), Value: &cluster}
		return &dto.MetricFamily{Name: &name, Type: dto.MetricType_COUNTER.Enum(), Metric: []*dto.Metric{{Label: append(more, label), Counter: &dto.Counter{Value: &n}}}}
	}
	return &metricsv3.StreamMetricsMessage{EnvoyMetrics: []*dto.MetricFamily{
		metric("cluster.upstream_rq_total"), metric("cluster.upstream_rq_completed"),
		metric("cluster.upstream_rq_xx", &dto.LabelPair{Name: new("envoy.response_code_class"), Value: new("5")}),
	}}
}

func TestConsentThatChangesReachesThoseWhoAsk(t *testing.T) {
	c := NewCatalog(serve.NewProofs())
	asks, _ := ScopeOf("evil", "shop/web")
	c.Join(asks)
	knows := func() bool { return c.groups[asks].group.View().Get(ads.Route, "shop/web|80") != nil }
	for i, step := range []struct {
		export ir.Export
		want   bool
	}{{ir.Export{}, false}, {ir.Export{Namespaces: []string{"evil"}}, true}, {ir.Export{Namespaces: []string{"pay"}}, false}, {ir.Export{All: true}, true}, {ir.Export{}, false}} {
		publish(t, c, begin, secret(step.export))
		if knows() != step.want || (len(c.Problems()) > 0) == step.want {
			t.Fatalf("step %d, %+v: it is known: %t; problems %v", i, step.export, knows(), c.Problems())
		}
	}
}

func TestTheOwnerOfAPodIsToldWhatIsNotExported(t *testing.T) {
	c := NewCatalog(serve.NewProofs())
	var services []ir.Service
	for i, name := range []string{"a", "b", "c", "d", "e", "f"} {
		services = append(services, serviceOf("bank", name, "10.1.0.1:8080", byte(i+10)))
	}
	shown := serviceOf("bank", "shown", "10.1.0.1:8080", 20)
	shown.Export.All = true
	publish(t, c, begin, append(services, secret(ir.Export{}), shown)...)
	const help = "the owner exports a Service with evil in the annotation plumbline.dev/export-to of the Service or of namespace "
	redirected, _ := ScopeOf("evil", "shop/web,shop/none,bank/*")
	local, _ := ExplicitScope("evil", "8001=shop/web:80")
	tests := map[string]struct {
		scope Scope
		want  []string
	}{
		"to a redirected proxy": {redirected, []string{
			"Namespace bank: NotExported: pods of namespace evil do not get 6 of the Services that bank/* in the annotation plumbline.dev/upstreams asks for (a, b, c, d, e, ...): " + help + "bank",
			"Service shop/web: NotExported: pods of namespace evil do not get the Service, which the annotation plumbline.dev/upstreams names: " + help + "shop",
		}},
		"to a local port": {local, []string{
			"Service shop/web port 80: NotExported: pods of namespace evil have no proxy at their local port 8001, which the annotation plumbline.dev/local-ports has lead here: " + help + "shop",
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c.Join(tc.scope)
			if d := cmp.Diff(tc.want, textsOf(c.Unserved(tc.scope))); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if got := strings.Join(names(c.groups[tc.scope].group.View()), " "); strings.Contains(got, "shop/") {
				t.Errorf("it sees %s", got)
			}
		})
	}
}
