// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// write names the writes of the assessor in the order in which they are made.
func write(r *http.Request) string {
	path := r.URL.Path
	switch {
	case r.Method == http.MethodPost && strings.HasSuffix(path, "/baselines"):
		return "create the baseline"
	case r.Method == http.MethodPost && strings.HasSuffix(path, "/baselinerevisions"):
		return "store the revision"
	case r.Method == http.MethodPut && strings.HasSuffix(path, "/status") && strings.Contains(path, "/baselines/"):
		return "write the status"
	case r.Method == http.MethodPut && strings.Contains(path, "/baselines/"):
		return "write the spec"
	}
	return ""
}

// dieAt makes an assessor's writes fail from the named one on, as if the process
// had ended right before it. It returns a channel that is closed at that write.
func (p *process) dieAt(step string) <-chan struct{} {
	reached := make(chan struct{})
	var dead atomic.Bool
	p.faults.when(func(r *http.Request) error {
		name := write(r)
		if name == step && dead.CompareAndSwap(false, true) {
			close(reached)
		}
		if name != "" && dead.Load() {
			return errRefused
		}
		return nil
	})
	return reached
}

func (w *world) await(what string, ch <-chan struct{}) {
	w.t.Helper()
	w.Eventually(what, func() error {
		select {
		case <-ch:
			return nil
		default:
			return fmt.Errorf("not yet")
		}
	})
}

// TestACrashAtTheFirstSightHeals ends the assessor before each of its writes when
// it sees an object for the first time.
func TestACrashAtTheFirstSightHeals(t *testing.T) {
	for _, step := range []string{"create the baseline", "store the revision", "write the spec", "write the status"} {
		t.Run("before it could "+step, func(t *testing.T) {
			rotation.Share(t, 3)
			w := newWorld(t)
			p := start(t)
			w.UnderGuard()
			reached := p.dieAt(step)
			w.Deploy(ci, "web")
			w.await("the assessor reaches the write", reached)
			p.Halt(t)
			start(t)
			b := w.UntilIs("web", "InSync")
			if a := b.Spec.Authorized; a == nil || a.By != ci || a.Origin != v1alpha1.OriginCreated || a.Number != 1 {
				t.Errorf("authorized is %+v", a)
			}
			w.checkRevisions(b)
		})
	}
}

// TestAStrangerAfterACrashAuthorizesNothing ends the assessor at the first sight,
// and a person changes the object before the next one starts. A decision that
// was stored is completed, so that only the person's change is drift; where
// nothing was stored, nobody knows what CI created, and nothing is authorized.
func TestAStrangerAfterACrashAuthorizesNothing(t *testing.T) {
	tests := map[string]struct{ by string }{
		"create the baseline": {},
		"store the revision":  {},
		"write the spec":      {by: ci},
		"write the status":    {by: ci},
	}
	for step, tc := range tests {
		t.Run("before it could "+step, func(t *testing.T) {
			rotation.Share(t, 3)
			w := newWorld(t)
			p := start(t)
			w.UnderGuard()
			reached := p.dieAt(step)
			w.Deploy(ci, "web")
			w.await("the assessor reaches the write", reached)
			p.Halt(t)
			w.SetEnv(alice, "web", "DEBUG", "1")
			start(t)
			b := w.Until("web", "it is drift", func(b *v1alpha1.Baseline) error {
				if b.Status.State != v1alpha1.StateDrifted {
					return fmt.Errorf("it is not")
				}
				return nil
			})
			switch a := b.Spec.Authorized; {
			case tc.by == "" && a != nil:
				t.Errorf("authorized is %+v", a)
			case tc.by != "" && (a == nil || a.By != tc.by || a.Number != 1):
				t.Errorf("authorized is %+v", a)
			case tc.by != "" && (len(b.Status.Findings) != 1 || !strings.HasSuffix(b.Status.Findings[0].Path, "/env")):
				t.Errorf("the baseline is %s", guarded.Describe(b))
			}
		})
	}
}

// TestACrashAtATrustedWriteHeals does the same at a trusted write on top of
// drift: after the next start the write is authorized, and the drift is not.
func TestACrashAtATrustedWriteHeals(t *testing.T) {
	for _, step := range []string{"write the spec", "write the status"} {
		t.Run("before it could "+step, func(t *testing.T) {
			rotation.Share(t, 3)
			w := newWorld(t)
			p := start(t)
			w.UnderGuard()
			w.Deploy(ci, "web")
			w.UntilIs("web", "InSync")
			w.SetEnv(alice, "web", "DEBUG", "1")
			const drift = "Drifted: Added /spec/template/spec/containers/[name=app]/env by alice (Untrusted, WriterStamp)"
			before := w.UntilIs("web", drift)
			reached := p.dieAt(step)
			w.SetImage(ci, "web", "registry.example/shop:2")
			w.await("the assessor reaches the write", reached)
			p.Halt(t)
			start(t)
			b := w.Until("web", "the image is authorized and the variable is not", func(b *v1alpha1.Baseline) error {
				if n := guarded.Authorized(b); n != 2 {
					return fmt.Errorf("authorized number is %d", n)
				}
				if got := guarded.Describe(b); got != drift {
					return fmt.Errorf("it is %q", got)
				}
				if b.Status.ObservedGeneration != b.Generation {
					return fmt.Errorf("the status lags")
				}
				return nil
			})
			if !b.Status.Findings[0].FirstSeenTime.Equal(&before.Status.Findings[0].FirstSeenTime) {
				t.Error("the drift was forgotten and found anew")
			}
			w.checkRevisions(b)
		})
	}
}

// TestAStoredDecisionIsCompletedWhateverCameAfter: CI's write was decided and
// its revision stored, then the assessor ended, and a person wrote. Two writes
// hide behind the person's stamp, and still CI's is authorized.
func TestAStoredDecisionIsCompletedWhateverCameAfter(t *testing.T) {
	w := newWorld(t)
	p := start(t)
	w.UnderGuard()
	w.Deploy(ci, "web")
	w.UntilIs("web", "InSync")
	reached := p.dieAt("write the spec")
	w.SetImage(ci, "web", "registry.example/shop:2")
	w.await("the assessor reaches the write", reached)
	p.Halt(t)
	w.SetEnv(alice, "web", "DEBUG", "1")
	start(t)
	b := w.Until("web", "the image is authorized", func(b *v1alpha1.Baseline) error {
		if b.Spec.Authorized.Number != 2 || b.Spec.Authorized.By != ci || b.Status.State != v1alpha1.StateDrifted {
			return fmt.Errorf("authorized is %+v", b.Spec.Authorized)
		}
		return nil
	})
	if len(b.Status.Findings) != 1 || !strings.HasSuffix(b.Status.Findings[0].Path, "/env") {
		t.Errorf("the baseline is %s", guarded.Describe(b))
	}
}

// TestAWriteThatFailsIsNotDoneTwice lets each write of a trusted change fail
// once, in one run after it was carried out and the answer was lost.
func TestAWriteThatFailsIsNotDoneTwice(t *testing.T) {
	for _, step := range []string{"store the revision", "write the spec", "write the status"} {
		for _, lost := range []string{"the request", "the answer"} {
			t.Run(lost+" is lost when it would "+step, func(t *testing.T) {
				rotation.Share(t, 3)
				w := newWorld(t)
				p := start(t)
				w.UnderGuard()
				w.Deploy(ci, "web")
				w.UntilIs("web", "InSync")
				var once atomic.Bool
				p.faults.when(func(r *http.Request) error {
					if write(r) != step || !once.CompareAndSwap(false, true) {
						return nil
					}
					if lost == "the answer" {
						response, err := p.faults.next.RoundTrip(r)
						if err != nil {
							return err
						}
						_ = response.Body.Close() // the answer is lost
					}
					return errRefused
				})
				w.SetImage(ci, "web", "registry.example/shop:2")
				b := w.Until("web", "the image is authorized and told", func(b *v1alpha1.Baseline) error {
					if guarded.Authorized(b) < 2 || b.Status.State != v1alpha1.StateInSync || b.Status.Observed.Hash != b.Spec.Authorized.Hash {
						return fmt.Errorf("it is not")
					}
					return nil
				})
				if !once.Load() || b.Spec.Authorized.Number != 2 || b.Spec.Authorized.By != ci {
					t.Errorf("authorized is %+v", b.Spec.Authorized)
				}
				w.stays("web", "InSync")
				w.checkRevisions(b)
			})
		}
	}
}

// TestACrashBeforeTheRevisionForgetsNothingForeign: nothing of the decision was
// stored, so the next assessor sees two writes at once and one stamp. It may not
// take the person's change for authorized.
func TestACrashBeforeTheRevisionForgetsNothingForeign(t *testing.T) {
	rotation.Share(t, 3)
	w := newWorld(t)
	p := start(t)
	w.UnderGuard()
	w.Deploy(ci, "web")
	w.UntilIs("web", "InSync")
	reached := p.dieAt("write the status")
	w.SetEnv(alice, "web", "DEBUG", "1")
	w.await("the assessor reaches the write", reached)
	w.SetImage(ci, "web", "registry.example/shop:2")
	p.Halt(t)
	start(t)
	w.Until("web", "the variable is drift", func(b *v1alpha1.Baseline) error {
		for _, f := range b.Status.Findings {
			if strings.HasSuffix(f.Path, "/env") && f.Actor.Class != v1alpha1.ActorTrusted {
				return nil
			}
		}
		return fmt.Errorf("it is not")
	})
}

// TestARestartInTheMiddleOfWrites stops and starts the assessor while people and
// CI write; in the end everything foreign is drift.
func TestARestartInTheMiddleOfWrites(t *testing.T) {
	rotation.Share(t, 3)
	w := newWorld(t)
	p := start(t)
	w.UnderGuard()
	w.Deploy(ci, "web")
	w.UntilIs("web", "InSync")
	w.SetEnv(alice, "web", "A", "1")
	p.Halt(t)
	w.SetEnv(alice, "web", "B", "2")
	w.SetImage(ci, "web", "registry.example/shop:2")
	w.writeStatus("web", 3)
	p = start(t)
	w.SetEnv(bob, "web", "C", "3")
	w.Until("web", "the environment is drift and is not trusted", func(b *v1alpha1.Baseline) error {
		for _, f := range b.Status.Findings {
			if strings.Contains(f.Path, "/env") && f.Actor.Class == v1alpha1.ActorTrusted {
				return fmt.Errorf("a person's change is taken for CI's: %+v", f)
			}
		}
		if !strings.Contains(guarded.Describe(b), "/env") || !strings.Contains(guarded.Describe(b), "bob") {
			return fmt.Errorf("it is not")
		}
		return nil
	})
	if p.faults.breakWatches() == 0 {
		t.Fatal("no watch was open")
	}
	w.SetImage(ci, "web", "registry.example/shop:3")
	w.Until("web", "a write after a broken connection is authorized", func(b *v1alpha1.Baseline) error {
		if b.Spec.Authorized.By != ci || b.Spec.Authorized.Number != 2 {
			return fmt.Errorf("authorized is %+v", b.Spec.Authorized)
		}
		return nil
	})
}

// TestConflictsAreDecidedAgain lets every first write of a status meet a
// Baseline that somebody else has written meanwhile.
func TestConflictsAreDecidedAgain(t *testing.T) {
	w := newWorld(t)
	p := start(t)
	w.UnderGuard()
	w.Deploy(ci, "web")
	w.UntilIs("web", "InSync")
	var once atomic.Bool
	p.faults.when(func(r *http.Request) error {
		if write(r) != "write the status" || !once.CompareAndSwap(false, true) {
			return nil
		}
		b, err := w.Baseline("web")
		if err != nil {
			return err
		}
		b.Spec.Accept = &v1alpha1.AcceptRequest{Hash: "pl1:sha256:of something else", RequestedBy: bob}
		return w.As(bob).Update(w.Ctx(), b)
	})
	w.SetImage(alice, "web", "registry.example/evil:1")
	b := w.Until("web", "the drift is told and the request answered", func(b *v1alpha1.Baseline) error {
		if got, want := guarded.Describe(b), "Drifted: Changed /spec/template/spec/containers/[name=app]/image by alice (Untrusted, WriterStamp)"; got != want {
			return fmt.Errorf("it is %q", got)
		}
		if b.Spec.Accept != nil {
			return fmt.Errorf("the request is still there")
		}
		return nil
	})
	if !once.Load() || b.Spec.Authorized.Number != 1 {
		t.Errorf("authorized is %+v", b.Spec.Authorized)
	}
}

// checkRevisions checks that the authorized revision exists and no other of a
// higher number does.
func (w *world) checkRevisions(b *v1alpha1.Baseline) {
	w.t.Helper()
	var all v1alpha1.BaselineRevisionList
	w.Must(admin.List(w.Ctx(), &all, client.InNamespace(w.namespace)))
	found := false
	for i := range all.Items {
		r := &all.Items[i]
		if r.Spec.BaselineName != b.Name {
			continue
		}
		if r.Spec.Number > b.Spec.Authorized.Number {
			w.t.Errorf("revision %d is newer than the authorized %d", r.Spec.Number, b.Spec.Authorized.Number)
		}
		found = found || r.Name == b.Spec.Authorized.Revision && r.Spec.Hash == b.Spec.Authorized.Hash
	}
	if !found {
		w.t.Errorf("the authorized revision %s does not exist", b.Spec.Authorized.Revision)
	}
}
