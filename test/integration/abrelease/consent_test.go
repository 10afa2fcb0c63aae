// SPDX-License-Identifier: Apache-2.0

//go:build integration

package abrelease

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	metricsv3 "github.com/envoyproxy/go-control-plane/envoy/service/metrics/v3"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/discovery"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/proxypod"
)

// export a Service to a namespace; empty for none.
func (s *shop) export(service, namespace string) {
	s.t.Helper()
	svc := &corev1.Service{ObjectMeta: s.named(service)}
	s.must(admin.Patch(s.t.Context(), svc, client.RawPatch("application/merge-patch+json", []byte(fmt.Sprintf(`{"metadata": {"annotations": {%q: %q}}}`, ir.ExportToAnnotation, namespace)))))
}

// forge tells a server of a million failed requests of the canary, with the token of a pod.
func (s *shop) forge(r *replica, token string) error {
	s.t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(r.authority)
	conn, err := grpc.NewClient(r.address, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: roots, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS13})))
	s.must(err)
	defer func() { s.must(conn.Close()) }()
	stream, err := metricsv3.NewMetricsServiceClient(conn).StreamMetrics(metadata.AppendToOutgoingContext(s.t.Context(), "authorization", "Bearer "+token))
	s.must(err)
	cluster, n := s.namespace+"/web|80|canary", 1e6
	metric := func(name string, more ...*dto.LabelPair) *dto.MetricFamily {
		label := &dto.LabelPair{Name: new("envoy.cluster_name"), Value: &cluster}
		return &dto.MetricFamily{Name: &name, Type: dto.MetricType_COUNTER.Enum(), Metric: []*dto.Metric{{Label: append(more, label), Counter: &dto.Counter{Value: &n}}}}
	}
	err = stream.Send(&metricsv3.StreamMetricsMessage{EnvoyMetrics: []*dto.MetricFamily{
		metric("cluster.upstream_rq_completed"), metric("cluster.upstream_rq_xx", &dto.LabelPair{Name: new("envoy.response_code_class"), Value: new("5")}),
	}})
	if err != nil && !errors.Is(err, io.EOF) {
		s.must(err)
	}
	_, err = stream.CloseAndRecv()
	return err
}

// believed is how many requests of the canary a server believes.
func (s *shop) believed(r *replica) (n uint64) {
	for _, v := range r.counts.Service(s.namespace, "web", time.Now().Add(-time.Minute)).Variations {
		completed, _ := v.Total.Outcomes()
		n += completed
	}
	return n
}

// Findings H2 and L7: a pod of another namespace, which never sent a request, told of a
// million failed ones, and the release of its neighbor had them.
func TestAPodOfAnotherNamespaceForgesNoCounts(t *testing.T) {
	s, _ := shopWithTwo(t)
	evil := newShop(t)
	r := s.start(leads)
	s.split(s.release("web", "{type: Percentage, percentages: {stable: 90, canary: 10}}"), "stable 90 / canary 10")
	asks := map[string]string{discovery.UpstreamsAnnotation: s.namespace + "/*"}

	bare := &corev1.Pod{ObjectMeta: evil.named("bare"), Spec: corev1.PodSpec{ServiceAccountName: "front", Containers: []corev1.Container{{Name: "app", Image: "app"}}}}
	bare.Annotations = asks
	evil.create(bare)
	proxypod.Place(bare)
	evil.must(admin.Status().Update(t.Context(), bare))
	stolen := s.client("elsewhere", nil)
	stolen.Status.PodIP, stolen.Status.PodIPs = "10.1.2.3", []corev1.PodIP{{IP: "10.1.2.3"}}
	s.must(admin.Status().Update(t.Context(), stolen))
	injected := evil.client("injected", asks)
	for name, tc := range map[string]struct{ token, want string }{
		"of a pod without a proxy":              {evil.token(bare), "its pod has no proxy"},
		"from an address that is another pod's": {s.token(stolen), "the connection comes from 127.0.0.1"},
	} {
		poll.Until(t, patience, "a token "+name+" is refused", func() error { // the cache may be behind
			if err := s.forge(r, tc.token); status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), tc.want) {
				return fmt.Errorf("it is answered %w, want %q", err, tc.want)
			}
			return nil
		})
	}
	taken := func() error { return s.forge(r, evil.token(injected)) }
	poll.Until(t, patience, "a proxy without consent is admitted", taken)
	if n := s.believed(r); n != 0 {
		t.Errorf("without consent %d requests are believed", n)
	}
	s.export("web", evil.namespace)
	poll.Until(t, patience, "with consent it is believed", func() error {
		if err := taken(); err != nil {
			return err
		}
		if s.believed(r) == 0 {
			return errors.New("no request is")
		}
		return nil
	})
}

// Findings H4 and H6: a release that no proxy carried out was Ready, and a pod of another
// namespace that was never connected held one for ever.
func TestWhoIsWaitedForAndWhoIsNot(t *testing.T) {
	s, _ := shopWithTwo(t)
	evil := newShop(t)
	r := s.start(asksProxies)
	release := s.release("web", "{type: Percentage, percentages: {stable: 90, canary: 10}}")
	s.says(release, v1alpha1.ConditionAcknowledged, metav1.ConditionFalse, "no proxy routes requests to Service web: of 2 running pods in namespace "+s.namespace+" 0 have a proxy")
	s.says(release, v1alpha1.ConditionReady, metav1.ConditionFalse, "no proxy routes requests to Service web")
	if c := release.Status.Acknowledged; c == nil || c.Knowledge != v1alpha1.AcknowledgedByNoProxy || c.Count != "0/0" {
		t.Errorf("it is %+v", c)
	}

	s.proxy(r, "front-0")
	s.runs("front-0")
	evil.client("lost-0", map[string]string{discovery.UpstreamsAnnotation: s.namespace + "/web"})
	evil.runs("lost-0")
	s.says(release, v1alpha1.ConditionAcknowledged, metav1.ConditionTrue, "1 of 1 proxies have acknowledged sequence 1")

	s.export("web", "*")
	s.says(release, v1alpha1.ConditionAcknowledged, metav1.ConditionFalse, "1 of 2 proxies have acknowledged sequence 1; not "+evil.namespace+"/lost-0")
	s.patch(release, "spec: {acknowledgment: {namespaces: Same}}")
	s.says(release, v1alpha1.ConditionAcknowledged, metav1.ConditionTrue, "1 of 1 proxies have acknowledged sequence 1")
	s.patch(release, "spec: {acknowledgment: {namespaces: All}}")
	s.says(release, v1alpha1.ConditionAcknowledged, metav1.ConditionFalse, evil.namespace+"/lost-0")
	s.export("web", "")
	s.says(release, v1alpha1.ConditionAcknowledged, metav1.ConditionTrue, "1 of 1 proxies have acknowledged sequence 1")
}

// Finding H2: without an Event the owner of a pod wonders why its requests go past a split.
func TestTheOwnerOfAPodIsToldThatAServiceIsNotExported(t *testing.T) {
	s, _ := shopWithTwo(t)
	asks := newShop(t)
	s.manage("web")
	r := s.start(leads)
	pod := asks.client("front-0", map[string]string{discovery.UpstreamsAnnotation: s.namespace + "/web"})
	asks.sidecar(r, pod)
	poll.Until(t, patience, "an Event tells of the consent that is missing", func() error {
		var all eventsv1.EventList
		if err := admin.List(t.Context(), &all, client.InNamespace(asks.namespace)); err != nil {
			return err
		}
		for i := range all.Items {
			e := &all.Items[i]
			if e.Regarding.UID == pod.UID && e.Reason == string(discovery.NotExported) && strings.Contains(e.Note, ir.ExportToAnnotation) {
				return nil
			}
		}
		return fmt.Errorf("there are %d others", len(all.Items))
	})
}
