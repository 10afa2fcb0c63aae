// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/evidence/storetest"
	"github.com/plumbline-dev/plumbline/pkg/remediate/window"
)

// samples are the gauges of a collector, one line each.
func samples(t *testing.T, c prometheus.Collector) string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(c); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, family := range families {
		for _, m := range family.GetMetric() {
			labels := ""
			for _, label := range m.GetLabel() {
				labels += fmt.Sprintf("{%s=%q}", label.GetName(), label.GetValue())
			}
			lines = append(lines, fmt.Sprintf("%s%s %v", strings.TrimPrefix(family.GetName(), "plumbline_remediation_"), labels, m.GetGauge().GetValue()))
		}
	}
	return strings.Join(lines, "\n")
}

func unfinished(name string, phase v1alpha1.PlanPhase, age time.Duration) *v1alpha1.RemediationPlan {
	p := planOf(1)
	p.Name, p.CreationTimestamp, p.Status.Phase = name, *at(-age), phase
	return p
}

func ledgerOf(name string, change func(*v1alpha1.RemediationLedger)) *v1alpha1.RemediationLedger {
	l := &v1alpha1.RemediationLedger{ObjectMeta: metav1.ObjectMeta{Namespace: "plumbline-system", Name: name}}
	change(l)
	return l
}

// standingBy has steps with standbys.
func standingBy(p *v1alpha1.RemediationPlan, standbys ...v1alpha1.StepStandby) *v1alpha1.RemediationPlan {
	p.Status.Steps = nil
	for i := range standbys {
		p.Status.Steps = append(p.Status.Steps, v1alpha1.PlanStep{Index: int32(i), Standby: &standbys[i]}) //nolint:gosec // few
	}
	return p
}

// backlog is what the tests below are about.
func backlog(t *testing.T) []client.Object {
	t.Helper()
	calm := nightly()
	calm.Name, calm.UID = "weekly", "other-uid"
	return []client.Object{
		nightly(), calm,
		unfinished("a", "", time.Second),
		standingBy(unfinished("b", v1alpha1.PlanRunning, time.Minute),
			v1alpha1.StepStandby{Phase: v1alpha1.StandbyRemoved, StartTime: *at(-time.Hour)}, v1alpha1.StepStandby{Phase: v1alpha1.StandbyReturning, StartTime: *at(-50 * time.Second)}), unfinished("c", v1alpha1.PlanRunning, time.Hour),
		unfinished("d", v1alpha1.PlanSucceeded, 24*time.Hour), unfinished("e", v1alpha1.PlanSealing, time.Minute),
		ledgerOf("production", func(l *v1alpha1.RemediationLedger) {
			l.Status.Breakers = []v1alpha1.LedgerBreaker{{PolicyUID: "policy-uid", State: v1alpha1.BreakerHalfOpen}, {PolicyUID: "other-uid", State: v1alpha1.BreakerClosed}}
			l.Status.Entries = []v1alpha1.LedgerEntry{
				{ReservationTime: *at(-time.Hour), CompletionTime: at(-time.Minute)}, {ReservationTime: *at(-90 * time.Second)}, {ReservationTime: *at(-time.Second)},
			}
			l.Status.GrantStartTime = at(-time.Second)
		}),
		ledgerOf("plumbline-cluster", func(l *v1alpha1.RemediationLedger) {
			l.Spec.Halt = &v1alpha1.LedgerHalt{RequestedBy: "alice", Reason: "incident"}
			l.Status.GrantStartTime = at(time.Hour)
		}),
	}
}

func TestBacklog(t *testing.T) {
	b := &Backlog{Cached: readerOf(t, backlog(t)...), Time: &fixed{now: noon, skew: -1500 * time.Millisecond}, Active: func() bool { return true }}
	want := `circuit_breaker_open{policy="nightly"} 1
circuit_breaker_open{policy="weekly"} 0
clock_skew_seconds -1.5
ledger_halted{ledger="plumbline-cluster"} 1
ledger_halted{ledger="production"} 0
ledger_refuses{ledger="plumbline-cluster"} 1
ledger_refuses{ledger="production"} 0
plan_oldest_seconds{phase="created"} 1
plan_oldest_seconds{phase="deferred"} 0
plan_oldest_seconds{phase="paused"} 0
plan_oldest_seconds{phase="running"} 3600
plan_oldest_seconds{phase="scheduled"} 0
plan_oldest_seconds{phase="sealing"} 60
plans_unfinished{environment="production"}{phase="created"} 1
plans_unfinished{environment="production"}{phase="running"} 2
plans_unfinished{environment="production"}{phase="sealing"} 1
standby_oldest_seconds 50
step_oldest_seconds{ledger="plumbline-cluster"} 0
step_oldest_seconds{ledger="production"} 90
steps_in_flight{ledger="plumbline-cluster"} 0
steps_in_flight{ledger="production"} 2`
	if diff := cmp.Diff(want, samples(t, b)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// unreadable fails every list.
type unreadable struct{ client.Reader }

func (unreadable) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("no cache")
}

func TestWhatIsNotKnownIsNotTold(t *testing.T) {
	b := &Backlog{Cached: unreadable{}, Time: &fixed{now: noon, skew: window.SkewUnknown}, Active: func() bool { return true }}
	if got := samples(t, b); got != "" {
		t.Errorf("without a cache and a time it tells:\n%s", got)
	}
	b = &Backlog{Cached: readerOf(t, backlog(t)...), Time: &fixed{now: noon}, Active: func() bool { return false }}
	if got := samples(t, b); got != "" {
		t.Errorf("a replica that waits tells:\n%s", got)
	}
}

// failing is a store of which every call fails so.
type failing struct {
	evidence.Store
	err error
}

func (f failing) Create(context.Context, string, []byte) error { return f.err }
func (f failing) Read(context.Context, string) ([]byte, error) { return nil, f.err }
func (f failing) Ready(context.Context) error                  { return f.err }

func TestCallsOfTheEvidenceStoreAreCounted(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	full := fmt.Errorf("wrapped: %w", &evidence.StoreError{Op: "create", Reason: evidence.StoreFull, Err: errors.New("no space left")})
	tests := map[string]struct {
		ctx   context.Context
		err   error
		want  string
		ready string
	}{
		"the disk is full":      {t.Context(), full, "full", "evidence_store_ready 0"},
		"it is read only":       {t.Context(), &evidence.StoreError{Reason: evidence.StoreReadOnly, Err: errors.New("erofs")}, "read_only", "evidence_store_ready 0"},
		"something else":        {t.Context(), errors.New("boom"), "failed", "evidence_store_ready 0"},
		"the process ends":      {over, &evidence.StoreError{Reason: evidence.StoreUnreachable, Err: context.Canceled}, "stopped", ""},
		"the name is taken":     {t.Context(), fmt.Errorf("creating: %w", evidence.ErrExists), "taken", "evidence_store_ready 0"},
		"there is no such name": {t.Context(), evidence.ErrNotFound, "absent", "evidence_store_ready 0"},
		"nothing fails":         {t.Context(), nil, "done", "evidence_store_ready 1"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m, err := NewMetrics(prometheus.NewPedanticRegistry())
			if err != nil {
				t.Fatal(err)
			}
			if got := samples(t, m.evidence.ready); got != "" {
				t.Errorf("before the first probe: %s", got)
			}
			store := m.Monitored(failing{err: tc.err}, 0, clocktesting.NewFakePassiveClock(noon)) // each look is a probe
			_, errRead := store.Read(tc.ctx, "n")
			for operation, got := range map[string]error{"create": store.Create(tc.ctx, "n", nil), "read": errRead, "probe": store.Ready(tc.ctx)} {
				if !errors.Is(got, tc.err) {
					t.Errorf("%s answers %v", operation, got)
				}
				if n := testutil.ToFloat64(m.evidence.calls.WithLabelValues(operation, tc.want)); n != 1 {
					t.Errorf("%s, %s: %v times", operation, tc.want, n)
				}
			}
			if got := samples(t, m.evidence.ready); got != tc.ready {
				t.Errorf("ready: %q, want %q", got, tc.ready)
			}
		})
	}
}

func TestAMonitoredStoreIsAStore(t *testing.T) {
	storetest.Contract(t, func(t *testing.T) evidence.Store {
		m, err := NewMetrics(prometheus.NewPedanticRegistry())
		if err != nil {
			t.Fatal(err)
		}
		return m.Monitored(&storetest.Memory{}, evidence.ProbeInterval, clocktesting.NewFakePassiveClock(noon))
	})
}

// D10 of the review of remediation: the gauge said 1 while a store hung.
func TestAnAnswerOfTheEvidenceStoreAges(t *testing.T) {
	full := &evidence.StoreError{Op: "create", Reason: evidence.StoreFull, Err: errors.New("no space left")}
	tests := map[string]struct {
		err  error
		age  time.Duration
		want string
	}{
		"an answer of now":                   {nil, 0, "evidence_store_ready 1"},
		"an answer of some minutes ago":      {nil, answerStale, "evidence_store_ready 1"},
		"an answer that is too old":          {nil, answerStale + time.Second, "evidence_store_ready 0"},
		"a failure of now":                   {full, 0, "evidence_store_ready 0"},
		"a failure that is old is no better": {full, answerStale + time.Second, "evidence_store_ready 0"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m, err := NewMetrics(prometheus.NewPedanticRegistry())
			if err != nil {
				t.Fatal(err)
			}
			own := clocktesting.NewFakePassiveClock(noon)
			store := m.Monitored(failing{err: tc.err}, evidence.ProbeInterval, own)
			if err := store.Create(t.Context(), "n", nil); !errors.Is(err, tc.err) {
				t.Fatal(err)
			}
			own.SetTime(noon.Add(tc.age))
			if got := samples(t, m.evidence.ready); got != tc.want {
				t.Errorf("ready: %q, want %q", got, tc.want)
			}
		})
	}
}
