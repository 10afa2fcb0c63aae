// SPDX-License-Identifier: Apache-2.0

//go:build integration

package releasework

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/executor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/traffic/work"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/inprocess"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// records is a store of signed records, which outlives executors, and their key.
type records struct {
	store  *failingStore
	key    *evidence.PrivateKey
	ring   *evidence.Keyring
	public []byte
}

func newRecords(t *testing.T) *records {
	t.Helper()
	private, public, err := evidence.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	key, err := evidence.ParsePrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	ring, err := evidence.ParseKeyring(public)
	if err != nil {
		t.Fatal(err)
	}
	return &records{store: &failingStore{Store: remediation.OpenRecords(t)}, key: key, ring: ring, public: public}
}

// startExecutor starts one with the rights that the chart gives it.
func (r *records) startExecutor(t *testing.T, wrap func(*rest.Config)) *inprocess.Process {
	t.Helper()
	setup := executor.Setup{
		Config: apiserver.Impersonate(config, remediation.ExecutorUser), Namespace: rendered.Namespace, ReleaseWorks: true,
		Evidence: evidence.Writer{Store: r.store, Signer: r.key, Keys: r.ring}, Builder: evidence.Builder{Version: "test"}, PublicKeys: r.public,
		Registry: prometheus.NewRegistry(), Log: inprocess.Log(t), Clock: clock.RealClock{},
	}
	wrap(setup.Config)
	return inprocess.Start(t, "executor", patience, func(ctx context.Context, ready func()) error {
		setup.Ready = ready
		return executor.Run(ctx, setup)
	})
}

// failingStore fails where a test says so.
type failingStore struct {
	evidence.Store
	mu sync.Mutex
	// fault is asked before and after each creation; nil fails none.
	fault func(after bool) error
}

func (s *failingStore) set(fault func(after bool) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = fault
}

func (s *failingStore) ask(after bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fault == nil {
		return nil
	}
	return s.fault(after)
}

// Create implements evidence.Store.
func (s *failingStore) Create(ctx context.Context, name string, data []byte) error {
	if err := s.ask(false); err != nil {
		return err
	}
	if err := s.Store.Create(ctx, name, data); err != nil {
		return err
	}
	return s.ask(true)
}

// chain is that of the releases of the world's Environment.
func (w *world) chain() string {
	w.t.Helper()
	environment := &v1alpha1.Environment{}
	w.Must(admin.Get(w.Ctx(), client.ObjectKey{Name: w.Name}, environment))
	return string(environment.UID)
}

// told verifies the chain against the head in the ledger and the audit log, and lists its records.
func (w *world) told(r *records) ([]string, error) {
	w.t.Helper()
	chain, head := w.chain(), evidence.Head{}
	ledger := &v1alpha1.RemediationLedger{}
	if err := admin.Get(w.Ctx(), client.ObjectKey{Namespace: rendered.Namespace, Name: w.Name}, ledger); err != nil {
		return nil, err
	}
	for _, c := range ledger.Status.Chains {
		if c.PolicyUID == chain {
			head = evidence.Head{Sequence: c.Sequence, Digest: c.Digest}
		}
	}
	var all []evidence.Record
	report, err := evidence.Verify(w.Ctx(), r.store, r.ring, evidence.Options{
		Chains: []string{chain}, Heads: map[string]evidence.Head{chain: head}, Each: func(s evidence.Sealed) { all = append(all, s.Record) },
	})
	if err != nil {
		return nil, err
	}
	log, err := auditLog.Writes(w.Name)
	if err != nil {
		return nil, err
	}
	joined := evidence.Join(all, log, evidence.JoinOptions{})
	if problems := slices.Concat(report.Problems, joined.Problems); len(problems) > 0 {
		return nil, fmt.Errorf("%v", problems)
	}
	var out []string
	for i := range all {
		d := all[i].Delivery
		switch {
		case d.Decision != nil:
			out = append(out, fmt.Sprintf("%s %d %s", all[i].Kind, d.Decision.Number, d.Decision.Event))
		case d.Work != nil:
			out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", all[i].Kind, d.Work.Name, d.Work.Verb, all[i].Result.State)))
		default:
			out = append(out, string(all[i].Kind))
		}
	}
	return out, nil
}

// tells waits until the chain has records in any order.
func (w *world) tells(r *records, want ...string) {
	w.t.Helper()
	slices.Sort(want)
	w.Eventually("the chain tells of the run", func() error {
		got, err := w.told(r)
		if err != nil {
			return err
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
			return fmt.Errorf("the records (-want +got):\n%s", diff)
		}
		return nil
	})
}

// decide adds lines to the history, as the discovery server does.
func (w *world) decide(events ...string) {
	w.t.Helper()
	w.Must(w.xds.Get(w.Ctx(), client.ObjectKeyFromObject(w.release), w.release))
	in := w.release.Status.Rollout
	for _, event := range events {
		number, percent := int64(1), v1alpha1.Percent(10)
		if n := len(in.History); n > 0 {
			number = in.History[n-1].Number + 1
		}
		in.History = append(in.History, v1alpha1.RolloutEvent{Number: number, EventTime: metav1.Now(), Run: 3, Event: event, TrafficPercentage: &percent, Message: event})
	}
	w.Must(w.xds.Status().Update(w.Ctx(), w.release))
}

// TestARunWithACloneLeavesAChainThatVerifies goes through a run. The records are those of the writes in the
// API server's audit log.
func TestARunWithACloneLeavesAChainThatVerifies(t *testing.T) {
	w, r := newWorld(t), newRecords(t)
	w.mayWrite("alice")
	w.releasedBy("alice")
	w.decide("ab.created")
	r.startExecutor(t, untouched)
	made := w.ended(w.ask(v1alpha1.WorkCreateClone, new(int32(1))), v1alpha1.WorkSucceeded, "")
	if result := made.Status.Result; result == nil || result.ResourceVersion == "" {
		t.Errorf("the result of the write is %+v", result)
	}
	w.decide("ab.started", "canary.stage_started")
	w.ended(w.ask(v1alpha1.WorkScale, new(int32(2))), v1alpha1.WorkSucceeded, "")
	w.release.Status.Rollout.Run.To.Hash = w.hash("web-canary")
	w.Must(w.xds.Status().Update(w.Ctx(), w.release))
	w.ended(w.ask(v1alpha1.WorkUpdateBaseline, nil), v1alpha1.WorkSucceeded, "")
	w.decide("ab.promoted")
	w.ended(w.ask(v1alpha1.WorkScale, new(int32(0))), v1alpha1.WorkSucceeded, "")
	want := []string{
		"ReleaseDecision 1 ab.created", "ReleaseDecision 2 ab.started", "ReleaseDecision 3 canary.stage_started", "ReleaseDecision 4 ab.promoted",
		"WorkIntended web-1 CreateClone", "WorkEnded web-1 CreateClone Succeeded", "WorkIntended web-2 Scale", "WorkEnded web-2 Scale Succeeded",
		"WorkIntended web-3 UpdateBaseline", "WorkEnded web-3 UpdateBaseline Succeeded", "WorkEnded web-4 Scale Succeeded",
	}
	w.tells(r, want...)
	w.Must(admin.Delete(w.Ctx(), w.release))
	w.tells(r, append(want, "ReleaseGone")...)
}

// TestAStoreThatIsDownHoldsForwardWorkAlone: a scale to 0 is done, and is recorded once the store is back.
func TestAStoreThatIsDownHoldsForwardWorkAlone(t *testing.T) {
	w, r := newWorld(t), newRecords(t)
	w.mayWrite("alice")
	w.releasedBy("alice")
	r.startExecutor(t, untouched)
	w.ended(w.ask(v1alpha1.WorkCreateClone, new(int32(2))), v1alpha1.WorkSucceeded, "")
	r.store.set(func(bool) error {
		return &evidence.StoreError{Op: "create", Reason: evidence.StoreFull, Err: errors.New("no room")}
	})
	w.decide("canary.stage_failed")
	w.ended(w.ask(v1alpha1.WorkScale, new(int32(0))), v1alpha1.WorkSucceeded, "")
	if n := *w.Live("web-canary").Spec.Replicas; n != 0 {
		t.Errorf("the clone has %d replicas", n)
	}
	waits := w.ask(v1alpha1.WorkScale, new(int32(3)))
	w.until(waits, "held", func() bool { return waits.Status.Reason == v1alpha1.WorkEvidenceUnavailable })
	if !strings.Contains(waits.Status.Message, "no room") || *w.Live("web-canary").Spec.Replicas != 0 {
		t.Errorf("the work is %+v", waits.Status)
	}
	r.store.set(nil)
	w.ended(waits, v1alpha1.WorkSucceeded, "")
	w.tells(r, "ReleaseDecision 1 canary.stage_failed", "WorkIntended web-1 CreateClone", "WorkEnded web-1 CreateClone Succeeded",
		"WorkEnded web-2 Scale Succeeded", "WorkIntended web-3 Scale", "WorkEnded web-3 Scale Succeeded")
}

// TestAnExecutorKilledAtAnyRecordLeavesAChainWithoutHoles kills one executor after another, in turn before and
// after its first record.
func TestAnExecutorKilledAtAnyRecordLeavesAChainWithoutHoles(t *testing.T) {
	w, r := newWorld(t), newRecords(t)
	w.mayWrite("alice")
	w.releasedBy("alice")
	w.decide("ab.created", "ab.started")
	made := w.ask(v1alpha1.WorkCreateClone, new(int32(1)))
	kills := w.killUntilEnded(r, made)
	scaled := w.ask(v1alpha1.WorkScale, new(int32(2)))
	if kills += w.killUntilEnded(r, scaled); kills < 6 {
		t.Errorf("the executor was killed %d times, so this proves little", kills)
	}
	r.store.set(nil)
	r.startExecutor(t, untouched)
	w.ended(made, v1alpha1.WorkSucceeded, "")
	w.ended(scaled, v1alpha1.WorkSucceeded, "")
	w.tells(r, "ReleaseDecision 1 ab.created", "ReleaseDecision 2 ab.started", "WorkIntended web-1 CreateClone", "WorkEnded web-1 CreateClone Succeeded",
		"WorkIntended web-2 Scale", "WorkEnded web-2 Scale Succeeded")
}

// killUntilEnded kills executors until a work has ended, and counts them.
func (w *world) killUntilEnded(r *records, of *v1alpha1.ReleaseWork) (kills int) {
	w.t.Helper()
	for after := false; !work.Final(of.Status.Phase); after = !after {
		if kills > 20 {
			w.t.Fatalf("the work does not end: %+v", of.Status)
		}
		dead := make(chan struct{})
		die := sync.OnceFunc(func() { close(dead) })
		r.store.set(func(isAfter bool) error {
			if isAfter != after {
				return nil
			}
			die()
			return errDead
		})
		running := r.startExecutor(w.t, func(c *rest.Config) {
			c.Wrap(func(next http.RoundTripper) http.RoundTripper { return &cutTransport{next, dead} })
		})
		w.Eventually("the executor dies, or the work has ended", func() error {
			if err := admin.Get(w.Ctx(), client.ObjectKeyFromObject(of), of); err != nil {
				return err
			}
			select {
			case <-dead:
				kills++
				return nil
			default:
			}
			if !work.Final(of.Status.Phase) {
				return fmt.Errorf("the work is %+v", of.Status)
			}
			return nil
		})
		die()
		running.Halt(w.t)
		w.Must(admin.Get(w.Ctx(), client.ObjectKeyFromObject(of), of))
	}
	return kills
}

// cutTransport sends nothing of a dead process.
type cutTransport struct {
	next http.RoundTripper
	dead <-chan struct{}
}

// RoundTrip implements http.RoundTripper.
func (t *cutTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case <-t.dead:
		return nil, errDead
	default:
	}
	return t.next.RoundTrip(r)
}

// The records of a work need the ledger of its Environment, also before the assessor has written a status.
func TestAnEnvironmentWithoutAStatusHoldsNoWorkBack(t *testing.T) {
	w := newWorld(t)
	w.mayWrite("alice")
	w.releasedBy("alice")
	startExecutor(t, untouched)
	w.ended(w.ask(v1alpha1.WorkCreateClone, new(int32(1))), v1alpha1.WorkSucceeded, "")
	environment, ledger := &v1alpha1.Environment{}, &v1alpha1.RemediationLedger{}
	w.Must(admin.Get(w.Ctx(), client.ObjectKey{Name: w.Name}, environment))
	w.Must(admin.Get(w.Ctx(), client.ObjectKey{Namespace: rendered.Namespace, Name: w.Name}, ledger))
	if diff := cmp.Diff(v1alpha1.EnvironmentStatus{LedgerUID: string(ledger.UID)}, environment.Status); diff != "" {
		t.Errorf("the status of the Environment (-want +got):\n%s", diff)
	}
}
