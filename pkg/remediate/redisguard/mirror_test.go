// SPDX-License-Identifier: Apache-2.0

package redisguard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
)

// serverError is an error that a server sent.
type serverError string

func (e serverError) Error() string { return string(e) }
func (serverError) RedisError()     {}

type timeout struct{}

func (timeout) Error() string   { return "i/o timeout" }
func (timeout) Timeout() bool   { return true }
func (timeout) Temporary() bool { return true }

func ask(ctx context.Context, m *Mirror) Answer {
	return m.Ask(ctx, "production", "uid", 1, someRequest("1"), strict(), epoch)
}

func TestWhateverFailsIsUnknownAndSaysWhy(t *testing.T) {
	tests := map[string]struct {
		err   error
		want  Reason
		rests bool
	}{
		"no memory":                 {serverError("OOM command not allowed when used memory > 'maxmemory'."), ReasonServerError, false},
		"a replica":                 {serverError("READONLY You can't write against a read only replica."), ReasonServerError, false},
		"loading":                   {serverError("LOADING Redis is loading the dataset in memory"), ReasonServerError, false},
		"busy":                      {serverError("BUSY Redis is busy running a script."), ReasonServerError, false},
		"its primary is gone":       {serverError("MASTERDOWN Link with MASTER is down"), ReasonServerError, false},
		"too few replicas":          {serverError("NOREPLICAS Not enough good replicas to write."), ReasonServerError, false},
		"no permission":             {serverError("NOPERM this user has no permissions to run the 'evalsha' command"), ReasonServerError, false},
		"no login":                  {serverError("NOAUTH Authentication required."), ReasonServerError, false},
		"its cluster is down":       {serverError("CLUSTERDOWN The cluster is down"), ReasonServerError, false},
		"a command it has not":      {serverError("ERR unknown command 'EVALSHA_RO'"), ReasonServerError, false},
		"no script, again":          {redis.ErrNoScript, ReasonServerError, false},
		"null":                      {redis.Nil, ReasonNonsense, false},
		"a time-out":                {&net.OpError{Op: "read", Err: timeout{}}, ReasonSlow, true},
		"no connection is free":     {redis.ErrPoolTimeout, ReasonSlow, true},
		"the budget is used up":     {context.DeadlineExceeded, ReasonSlow, true},
		"nobody listens":            {&net.OpError{Op: "dial", Err: errors.New("connection refused")}, ReasonUnreachable, true},
		"the connection broke":      {errors.New("EOF"), ReasonUnreachable, true},
		"the client is closed":      {redis.ErrClosed, ReasonUnreachable, true},
		"what no server should say": {errors.New("an answer that is not of the Redis protocol, version 2"), ReasonUnreachable, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := New(failing(test.err), Config{Prefix: "p"})
			got := ask(t.Context(), m)
			if got.Vetoed() || got.Verdict != Unknown || got.Reason != test.want || !errors.Is(got.Err, test.err) {
				t.Errorf("got %+v", got)
			}
			err := m.Put(t.Context(), "production", "uid", &ledger.Status{Sequence: 1})
			if failure, ok := errors.AsType[*MirrorError](err); !ok || failure.Reason != test.want || !errors.Is(err, test.err) {
				t.Errorf("putting fails with %v", err)
			}
			ask(t.Context(), m)
			if rests := ask(t.Context(), m).Reason == ReasonResting; rests != test.rests {
				t.Errorf("it is left alone: %t, want %t", rests, test.rests)
			}
		})
	}
}

func TestAScriptThatTheServerDoesNotHaveIsSent(t *testing.T) {
	f := &fake{}
	f.answer = func(_ context.Context, command string, _ []any) (any, error) {
		if strings.HasPrefix(command, "evalsha") {
			return nil, serverError("NOSCRIPT No matching script. Please use EVAL.")
		}
		if command == "eval" {
			return []any{"stored", "1"}, nil
		}
		return []any{"allowed"}, nil
	}
	m := New(f, Config{Prefix: "p"})
	if got := ask(t.Context(), m); got.Verdict != Allowed {
		t.Errorf("got %+v", got)
	}
	if err := m.Put(t.Context(), "production", "uid", &ledger.Status{Sequence: 1}); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"evalsha_ro", "eval_ro", "evalsha", "eval"}, f.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestWithoutARedisNothingIsVetoed(t *testing.T) {
	m := New(nil, Config{Prefix: "p"})
	s := ledger.Begin(epoch, true)
	if got := m.Consult(t.Context(), "production", "uid", &s, someRequest("1"), strict(), epoch); got.Vetoed() || got.Reason != ReasonDisabled {
		t.Errorf("got %+v", got)
	}
}

func TestALedgerThatHasNotBegunIsNotAskedAbout(t *testing.T) {
	for _, sequence := range []int64{-1, 0, maxSequence + 1} {
		m := New(saying("refused", "LedgerRoom", "1024", ""), Config{Prefix: "p"})
		if got := m.Ask(t.Context(), "production", "uid", sequence, someRequest("1"), strict(), epoch); got.Reason != ReasonUnready {
			t.Errorf("at %d: %+v", sequence, got)
		}
		err := m.Put(t.Context(), "production", "uid", &ledger.Status{Sequence: sequence})
		if failure, ok := errors.AsType[*MirrorError](err); !ok || failure.Reason != ReasonUnready {
			t.Errorf("at %d: %v", sequence, err)
		}
	}
}

func TestPutSaysWhenACopyIsLater(t *testing.T) {
	f := saying()
	f.answer = func(context.Context, string, []any) (any, error) { return []any{"stale", "9"}, nil }
	err := New(f, Config{Prefix: "p"}).Put(t.Context(), "production", "uid", &ledger.Status{Sequence: 8})
	if !errors.Is(err, ErrStale) || !strings.Contains(err.Error(), "9") {
		t.Errorf("got %v", err)
	}
}

func TestPutBelievesNoOtherAnswer(t *testing.T) {
	for _, reply := range []any{nil, "OK", int64(1), []any{}, []any{"stored"}, []any{"allowed", "1"}, []any{"stale", int64(9)}} {
		f := &fake{answer: func(context.Context, string, []any) (any, error) { return reply, nil }}
		err := New(f, Config{Prefix: "p"}).Put(t.Context(), "production", "uid", &ledger.Status{Sequence: 8})
		if failure, ok := errors.AsType[*MirrorError](err); !ok || failure.Reason != ReasonNonsense {
			t.Errorf("%v: got %v", reply, err)
		}
	}
}

// A server that never answers, in time that only this test has.
func TestASlowRedisCostsItsBudgetAFewTimesAndThenNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		well := false
		f := &fake{}
		f.answer = func(ctx context.Context, _ string, _ []any) (any, error) {
			if well {
				return []any{"allowed"}, nil
			}
			<-ctx.Done()
			return nil, fmt.Errorf("reading: %w", ctx.Err())
		}
		m := New(f, Config{Prefix: "p"})
		took := func() (Reason, time.Duration) {
			begin := time.Now()
			a := ask(t.Context(), m)
			return a.Reason, time.Since(begin)
		}
		for range Failures {
			if why, d := took(); why != ReasonSlow || d != Budget {
				t.Fatalf("%s after %s", why, d)
			}
		}
		for range 1000 {
			if why, d := took(); why != ReasonResting || d != 0 {
				t.Fatalf("%s after %s", why, d)
			}
		}
		<-time.After(Rest)
		if why, d := took(); why != ReasonSlow || d != Budget {
			t.Fatalf("%s after %s", why, d)
		}
		if why, d := took(); why != ReasonResting || d != 0 {
			t.Fatalf("%s after %s", why, d)
		}
		well = true
		<-time.After(Rest)
		for range 3 {
			if why, _ := took(); why != "" {
				t.Fatalf("it is well again, and %s", why)
			}
		}
		if len(f.calls) != Failures+1+3 {
			t.Errorf("%d calls", len(f.calls))
		}
	})
}

// Consult keeps the budget of one call, however many it makes.
func TestConsultKeepsOneBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		f.answer = func(ctx context.Context, command string, args []any) (any, error) {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(Budget * 4 / 5):
			}
			if command == "evalsha" {
				return []any{"stored", fmt.Sprint(args[0])}, nil
			}
			return []any{"missing"}, nil
		}
		s := ledger.Begin(epoch, true)
		begin := time.Now()
		got := New(f, Config{Prefix: "p"}).Consult(t.Context(), "production", "uid", &s, someRequest("1"), strict(), epoch)
		if took := time.Since(begin); took != Budget || got.Reason != ReasonMissing || got.Err == nil {
			t.Errorf("%+v after %s", got, took)
		}
	})
}

func TestWhoGoesAwayIsNotHeldAgainstRedis(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := &fake{answer: func(ctx context.Context, _ string, _ []any) (any, error) {
		cancel()
		return nil, ctx.Err()
	}}
	m := New(f, Config{Prefix: "p", Failures: 1})
	for range 3 {
		if got := ask(ctx, m); got.Reason != ReasonCanceled {
			t.Errorf("got %+v", got)
		}
	}
	if len(f.calls) != 1 || m.circuit.resting() {
		t.Errorf("%d calls, resting %t", len(f.calls), m.circuit.resting())
	}
}

func TestConsultPutsACopyThatIsNotThere(t *testing.T) {
	for name, first := range map[string][]any{
		"missing": {"missing"}, "behind": {"behind", "1"}, "damaged": {"damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{}
			f.answer = func(_ context.Context, command string, args []any) (any, error) {
				switch {
				case command == "evalsha":
					return []any{"stored", fmt.Sprint(args[0])}, nil
				case len(f.calls) == 1:
					return first, nil
				}
				return []any{"allowed"}, nil
			}
			s := ledger.Status{Sequence: 2}
			got := New(f, Config{Prefix: "p"}).Consult(t.Context(), "production", "uid", &s, someRequest("1"), strict(), epoch)
			if got.Verdict != Allowed {
				t.Errorf("got %+v", got)
			}
			if diff := cmp.Diff([]string{"evalsha_ro", "evalsha", "evalsha_ro"}, f.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

// What the copy says against the ledger is asked again when it was put anew: so a
// copy that somebody spoilt does not refuse for ever, and a Redis that only lies
// may refuse all the same.
func TestConsultPutsACopyThatContradictsTheLedger(t *testing.T) {
	full := ledger.Status{Sequence: 2, Entries: []v1alpha1.LedgerEntry{entry(1, "p", "a", nil), entry(2, "p", "b", nil)}}
	refused := []any{"refused", "LedgerRoom", "1024", ""}
	tests := map[string]struct {
		s             ledger.Status
		first, second []any
		calls         int
		contradicts   float64
		vetoed        bool
	}{
		"it refuses, and the ledger does not":     {ledger.Status{Sequence: 2}, refused, []any{"allowed"}, 3, 1, false},
		"it goes on refusing":                     {ledger.Status{Sequence: 2}, refused, refused, 3, 1, true},
		"it allows, and the ledger does not":      {full, []any{"allowed"}, []any{"refused", "MaxConcurrent", "2", ""}, 3, 1, true},
		"both refuse, if not for the same reason": {full, refused, nil, 1, 0, true},
		"both allow": {ledger.Status{Sequence: 2}, []any{"allowed"}, nil, 1, 0, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := &fake{}
			f.answer = func(_ context.Context, command string, args []any) (any, error) {
				switch {
				case command == "evalsha":
					return []any{"stored", fmt.Sprint(args[0])}, nil
				case len(f.calls) == 1:
					return test.first, nil
				}
				return test.second, nil
			}
			m := New(f, Config{Prefix: "p"})
			got := m.Consult(t.Context(), "production", "uid", &test.s, someRequest("9"), strict(), epoch)
			if got.Vetoed() != test.vetoed || len(f.calls) != test.calls {
				t.Errorf("after %v: %+v", f.calls, got)
			}
			if n := testutil.ToFloat64(m.metrics.contradictions); n != test.contradicts {
				t.Errorf("%v contradictions are counted", n)
			}
		})
	}
}

// A step that has its entry is not refused for what it takes up itself.
func TestConsultAgreesThatAStepWithAnEntryIsAllowed(t *testing.T) {
	e := entry(1, "p", "a", nil)
	s := ledger.Status{Sequence: 2, Entries: []v1alpha1.LedgerEntry{e, entry(2, "p", "b", nil)}}
	f := saying("allowed")
	r := ledger.Request{Step: e.StepReference, PolicyUID: "p", TargetUID: "a"}
	if got := New(f, Config{Prefix: "p"}).Consult(t.Context(), "production", "uid", &s, r, strict(), epoch); got.Verdict != Allowed || len(f.calls) != 1 {
		t.Errorf("after %v: %+v", f.calls, got)
	}
}

// A Redis that loses everything at once makes no loop of it.
func TestConsultPutsOnlyOnce(t *testing.T) {
	f := saying("missing")
	s := ledger.Status{Sequence: 2}
	got := New(f, Config{Prefix: "p"}).Consult(t.Context(), "production", "uid", &s, someRequest("1"), strict(), epoch)
	if got.Reason != ReasonMissing || len(f.calls) != 3 {
		t.Errorf("%d calls: %+v", len(f.calls), got)
	}
}

func TestConsultLeavesALaterCopyAlone(t *testing.T) {
	f := saying("stale", "9")
	s := ledger.Status{Sequence: 2}
	got := New(f, Config{Prefix: "p"}).Consult(t.Context(), "production", "uid", &s, someRequest("1"), strict(), epoch)
	if got.Vetoed() || got.Reason != ReasonStale || got.Sequence != 9 || len(f.calls) != 1 {
		t.Errorf("%d calls: %+v", len(f.calls), got)
	}
}

func TestFigures(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	metrics, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewMetrics(registry); err == nil {
		t.Error("they can be registered twice")
	}
	good := New(saying("allowed"), Config{Prefix: "p", Metrics: metrics})
	ask(t.Context(), good)
	if err := good.Put(t.Context(), "production", "uid", &ledger.Status{Sequence: 1}); err != nil {
		t.Fatal(err)
	}
	ask(t.Context(), New(saying("refused", "LedgerRoom", "1024", ""), Config{Prefix: "p", Metrics: metrics}))
	ask(t.Context(), New(failing(context.DeadlineExceeded), Config{Prefix: "p", Metrics: metrics, Failures: 1}))
	for what, got := range map[string]float64{
		"allowed":  testutil.ToFloat64(metrics.answers.WithLabelValues("Allowed", "")),
		"refused":  testutil.ToFloat64(metrics.answers.WithLabelValues("Refused", "")),
		"too slow": testutil.ToFloat64(metrics.answers.WithLabelValues("Unknown", "Slow")),
		"put":      testutil.ToFloat64(metrics.puts.WithLabelValues("")),
		"resting":  testutil.ToFloat64(metrics.resting),
	} {
		if got != 1 {
			t.Errorf("%s is %v", what, got)
		}
	}
	if lint, err := testutil.GatherAndLint(registry); err != nil || len(lint) > 0 {
		t.Errorf("lint: %v %v", lint, err)
	}
}
