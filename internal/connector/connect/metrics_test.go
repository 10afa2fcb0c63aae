// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/connector/gatewayapi"
	"github.com/plumbline-dev/plumbline/internal/elected"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
	"github.com/plumbline-dev/plumbline/pkg/notify/deliver"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/routertest"
	"github.com/plumbline-dev/plumbline/test/harness/fakeclient"
)

// scripted is a router whose answers the test chooses.
type scripted struct {
	traffic.Router
	err      error
	seen     traffic.Observation
	restored []time.Time
}

func (s *scripted) Validate(traffic.Split) error                         { return s.err }
func (s *scripted) Apply(context.Context, traffic.Split) error           { return s.err }
func (s *scripted) Remove(context.Context) error                         { return s.err }
func (s *scripted) Observe(context.Context) (traffic.Observation, error) { return s.seen, s.err }

// restoring is a scripted router that tells its restores.
type restoring struct{ *scripted }

func (r restoring) Restored() []time.Time { return r.restored }

// stand is a measured router with the clock of the test.
type stand struct {
	t        *testing.T
	program  *scripted
	router   *measured
	registry *prometheus.Registry
	now      time.Time
	resign   func()
}

func newStand(t *testing.T, router func(*scripted) traffic.Router) *stand {
	t.Helper()
	s := &stand{t: t, program: &scripted{}, registry: prometheus.NewRegistry(), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	metrics, err := NewMetrics(s.registry)
	if err != nil {
		t.Fatal(err)
	}
	now := func() time.Time { return s.now }
	s.resign = metrics.Lead(now)
	s.router = newMeasured(router(s.program), identity{"edge", "Webhook"}, metrics, now)
	metrics.addRouter(route{name: "edge"}, s.router)
	return s
}

func asIs(p *scripted) traffic.Router { return p }

func telling(p *scripted) traffic.Router { return restoring{p} }

// applyAndObserve applies a sequence and observes the knowledge of it, as a release does each few seconds.
func (s *stand) applyAndObserve(sequence uint64, knowledge traffic.Knowledge) {
	s.t.Helper()
	has := sequence
	if knowledge == traffic.Unknown {
		has--
	}
	s.program.err, s.program.seen = nil, traffic.Observation{Sequence: has, Knowledge: knowledge, SettledAt: s.now}
	if err := s.router.Apply(s.t.Context(), routertest.Split(sequence, 1_000)); err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.router.Observe(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// failWith has the router answer an error to the next look.
func (s *stand) failWith(sequence uint64, err error) {
	s.t.Helper()
	s.program.err = err
	if got := s.router.Validate(routertest.Split(sequence, 1_000)); !errors.Is(got, err) {
		s.t.Fatalf("the router answers %v, want %v", got, err)
	}
	if got := s.router.Apply(s.t.Context(), routertest.Split(sequence, 1_000)); !errors.Is(got, err) {
		s.t.Fatalf("the router answers %v, want %v", got, err)
	}
}

// wantSeries compares series, such as `plumbline_router_splits{knowledge="Proven",router="edge",type="Webhook"} 1`.
func (s *stand) wantSeries(lines ...string) {
	s.t.Helper()
	is := exposition(s.t, s.registry)
	for _, line := range lines {
		if !strings.Contains(is, "\n"+line+"\n") {
			s.t.Errorf("there is no %s in:\n%s", line, is)
		}
	}
}

// exposition is the text that Prometheus reads.
func exposition(t *testing.T, registry *prometheus.Registry) string {
	t.Helper()
	names := []string{
		"plumbline_router_splits", "plumbline_router_refused_splits", "plumbline_router_held_splits", "plumbline_router_starved_variations", "plumbline_router_unconfirmed_seconds",
		"plumbline_router_confirmation_duration_seconds", "plumbline_router_refusals_total", "plumbline_router_edits_total", "plumbline_router_requests_total",
	}
	text, err := testutil.GatherAndFormat(registry, expfmt.TypeTextPlain, names...)
	if err != nil {
		t.Fatal(err)
	}
	return "\n" + string(text)
}

const ofEdge = `router="edge",type="Webhook"`

func TestASplitThatIsEffectiveIsConfirmedOnce(t *testing.T) {
	s := newStand(t, asIs)
	s.applyAndObserve(1, traffic.Unknown)
	s.now = s.now.Add(3 * time.Second)
	s.wantSeries(`plumbline_router_splits{knowledge="Unknown",`+ofEdge+`} 1`, `plumbline_router_unconfirmed_seconds{`+ofEdge+`} 3`)
	for range 2 {
		s.applyAndObserve(1, traffic.Proven)
	}
	s.wantSeries(
		`plumbline_router_splits{knowledge="Proven",`+ofEdge+`} 1`, `plumbline_router_splits{knowledge="Unknown",`+ofEdge+`} 0`,
		`plumbline_router_unconfirmed_seconds{`+ofEdge+`} 0`,
		`plumbline_router_confirmation_duration_seconds_count{`+ofEdge+`} 1`, `plumbline_router_confirmation_duration_seconds_sum{`+ofEdge+`} 3`,
	)
	s.applyAndObserve(2, traffic.Accepted)
	s.wantSeries(`plumbline_router_splits{knowledge="Accepted",`+ofEdge+`} 1`, `plumbline_router_confirmation_duration_seconds_count{`+ofEdge+`} 2`)
}

func TestASplitThatIsLostAgainIsUnconfirmed(t *testing.T) {
	s := newStand(t, asIs)
	s.applyAndObserve(1, traffic.Proven)
	s.now = s.now.Add(time.Hour)
	s.applyAndObserve(1, traffic.Unknown)
	s.now = s.now.Add(time.Minute)
	s.wantSeries(`plumbline_router_unconfirmed_seconds{`+ofEdge+`} 60`, `plumbline_router_confirmation_duration_seconds_count{`+ofEdge+`} 1`)
}

func TestASplitThatSettlesIsNotLate(t *testing.T) {
	s := newStand(t, asIs)
	s.applyAndObserve(1, traffic.Unknown)
	s.program.seen = traffic.Observation{Sequence: 1, Knowledge: traffic.Accepted, SettledAt: s.now.Add(time.Hour)}
	for _, want := range []string{"0", "1"} {
		s.now = s.now.Add(time.Minute)
		if _, err := s.router.Observe(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.wantSeries(`plumbline_router_unconfirmed_seconds{` + ofEdge + `} 0`)
		if is := exposition(t, s.registry); strings.Contains(is, "duration_seconds_count{"+ofEdge+"}") != (want == "1") {
			t.Errorf("confirmations are not %s:\n%s", want, is)
		}
		s.now = s.now.Add(time.Hour)
	}
}

func TestARefusalIsCountedOnceForEachSplitAndReason(t *testing.T) {
	s := newStand(t, asIs)
	incapable := &traffic.IncapableError{Lacks: []traffic.Lack{{Capability: traffic.CapabilitySticky, Why: "why"}}}
	route := &gatewayapi.RefusalError{Reason: gatewayapi.ReasonRuleNotNamed}
	for range 3 {
		s.failWith(1, incapable)
	}
	s.wantSeries(`plumbline_router_refused_splits{`+ofEdge+`} 1`, `plumbline_router_refusals_total{reason="Incapable",`+ofEdge+`} 1`)
	s.failWith(2, incapable)
	s.failWith(2, route)
	s.failWith(2, errors.New("no route to host"))
	s.failWith(2, &traffic.LaterError{Sequence: 3})
	s.wantSeries(
		`plumbline_router_refusals_total{reason="Incapable",`+ofEdge+`} 2`, `plumbline_router_refusals_total{reason="RuleNotNamed",`+ofEdge+`} 1`,
		`plumbline_router_refusals_total{reason="Other",`+ofEdge+`} 1`, `plumbline_router_refusals_total{reason="LaterSequence",`+ofEdge+`} 1`,
	)
	s.applyAndObserve(3, traffic.Proven)
	s.wantSeries(`plumbline_router_refused_splits{` + ofEdge + `} 0`)
}

func TestEditsOfOtherWritersAreCounted(t *testing.T) {
	s := newStand(t, asIs)
	s.wantSeries(`plumbline_router_edits_total{result="held",`+ofEdge+`} 0`, `plumbline_router_edits_total{result="restored",`+ofEdge+`} 0`)
	s.applyAndObserve(1, traffic.Proven)
	s.applyAndObserve(1, traffic.Contradicted)
	s.applyAndObserve(1, traffic.Proven)
	s.wantSeries(`plumbline_router_edits_total{result="restored",` + ofEdge + `} 1`)

	s = newStand(t, telling)
	s.applyAndObserve(1, traffic.Accepted)
	s.program.restored = []time.Time{s.now}
	for range 2 {
		s.applyAndObserve(1, traffic.Accepted)
	}
	s.now = s.now.Add(time.Second)
	s.program.restored = []time.Time{s.now}
	s.applyAndObserve(1, traffic.Contradicted)
	s.applyAndObserve(1, traffic.Accepted)
	s.wantSeries(`plumbline_router_edits_total{result="restored",` + ofEdge + `} 2`)
	for range 2 {
		s.failWith(1, &gatewayapi.HeldError{})
	}
	s.wantSeries(`plumbline_router_edits_total{result="held",`+ofEdge+`} 1`, `plumbline_router_held_splits{`+ofEdge+`} 1`)
	s.applyAndObserve(1, traffic.Accepted)
	s.wantSeries(`plumbline_router_held_splits{` + ofEdge + `} 0`)
}

func TestStarvedVariationsAreCounted(t *testing.T) {
	s := newStand(t, asIs)
	s.applyAndObserve(1, traffic.Proven)
	s.program.seen.Starved = []traffic.Starved{{Part: "edge", Variation: "canary"}}
	if _, err := s.router.Observe(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.wantSeries(`plumbline_router_starved_variations{` + ofEdge + `} 1`)
}

func TestARemovedSplitIsNotAwaited(t *testing.T) {
	s := newStand(t, asIs)
	s.applyAndObserve(1, traffic.Unknown)
	s.program.err = nil
	if err := s.router.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.now = s.now.Add(time.Hour)
	s.wantSeries(`plumbline_router_unconfirmed_seconds{`+ofEdge+`} 0`, `plumbline_router_splits{knowledge="Unknown",`+ofEdge+`} 0`)
	s.resign()
	if text := exposition(t, s.registry); strings.Contains(text, "plumbline_router_splits") {
		t.Errorf("a process that does not lead tells of splits:\n%s", text)
	}
}

// The requests of a receiver go through the registry, as those of a release do.
func TestRequestsToAReceiverAreCountedByResult(t *testing.T) {
	var status atomic.Int64
	status.Store(http.StatusConflict)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(int(status.Load()))
		_, _ = io.WriteString(w, `{"sequence": 1, "knowledge": "Proven"}`)
	}))
	t.Cleanup(receiver.Close)
	kinds, err := elected.Kinds()
	if err != nil {
		t.Fatal(err)
	}
	edge := &v1alpha1.TrafficRouter{ObjectMeta: metav1.ObjectMeta{Name: "edge", UID: "r-1"}, Spec: v1alpha1.TrafficRouterSpec{
		Type: v1alpha1.TrafficRouterWebhook, AllowedNamespaces: &metav1.LabelSelector{}, Webhook: &v1alpha1.WebhookRouter{
			URL: receiver.URL, Capabilities: []v1alpha1.ReceiverCapability{v1alpha1.ReceiverSticky},
		},
	}}
	s := newStand(t, asIs)
	key := "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))
	registry := &Registry{
		Context: t.Context(), Now: time.Now, Metrics: s.router.metrics,
		Client: fakeclient.NewBuilder(kinds).WithObjects(edge, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}).Build(),
		Sender: deliver.NewAsker(func(context.Context, notify.SecretRef) (string, error) { return key, nil },
			deliver.Egress{PlainHTTP: true, Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, nil),
	}
	release := &v1alpha1.ABRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "autumn", UID: "u-1"}}
	look := func() {
		t.Helper()
		router, err := registry.Connect(t.Context(), release, "edge")
		if err != nil {
			t.Fatal(err)
		}
		if err := router.Apply(t.Context(), routertest.Split(1, 1_000)); err != nil {
			t.Fatal(err)
		}
		if _, err := router.Observe(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	look()
	s.wantSeries(`plumbline_router_refusals_total{reason="RequestRefused",`+ofEdge+`} 1`, `plumbline_router_refused_splits{`+ofEdge+`} 1`)
	status.Store(http.StatusOK)
	look()
	s.wantSeries(`plumbline_router_requests_total{result="succeeded",`+ofEdge+`} 1`, `plumbline_router_refused_splits{`+ofEdge+`} 0`, `plumbline_router_splits{knowledge="Proven",`+ofEdge+`} 1`)
	receiver.Close()
	look()
	s.wantSeries(`plumbline_router_requests_total{result="failed",` + ofEdge + `} 1`)
	registry.Forget(client.ObjectKeyFromObject(release))
	s.wantSeries(`plumbline_router_splits{knowledge="Proven",` + ofEdge + `} 0`)
}
