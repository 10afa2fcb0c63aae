// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// errCrash is the end of the process.
var errCrash = errors.New("the process has ended")

// crash ends the process at one of its writes, before or after the API server has stored it.
type crash struct {
	at    int
	after bool

	n       int
	crashed bool
}

func (c *crash) write(do func() error) error {
	c.n++
	if c.n != c.at {
		return do()
	}
	c.crashed = true
	if c.after {
		if err := do(); err != nil {
			return err
		}
	}
	return errCrash
}

// install has all writes of the world go through the crash.
func (c *crash) install(t *testing.T, w *world) {
	t.Helper()
	inner, is := w.Client.(client.WithWatch)
	if !is {
		t.Fatalf("the client is a %T", w.Client)
	}
	wrapped := interceptor.NewClient(inner, interceptor.Funcs{
		Create: func(ctx context.Context, k client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return c.write(func() error { return k.Create(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, k client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return c.write(func() error { return k.Update(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, k client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return c.write(func() error { return k.Patch(ctx, o, p, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, k client.Client, name string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			return c.write(func() error { return k.SubResource(name).Update(ctx, o, opts...) })
		},
	})
	w.Client = wrapped
	w.Sequences = &Ledger{Live: wrapped, Client: wrapped, Namespace: "plumbline-system", Clock: w.clock}
}

// live has the release looked at for a while, and the process begin anew whenever it has ended.
func (w *world) live(t *testing.T, looks int) {
	t.Helper()
	for range looks {
		_, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}})
		if errors.Is(err, errCrash) {
			w.written = memory{}
			w.Sequences = &Ledger{Live: w.Client, Client: w.Client, Namespace: "plumbline-system", Clock: w.clock}
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// diesAtEachWrite tells a good run and a bad one again and again. In each the process ends at another write,
// before or after it, until there is none. A run has at least so many writes. One rotation in so many makes
// each of the four enumerations.
func diesAtEachWrite(t *testing.T, least, of int, tell func(t *testing.T, failed uint64, c *crash) bool) {
	for name, failed := range map[string]uint64{"a good run": 0, "a bad run": 50} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, after the write: %v", name, after), func(t *testing.T) {
				rotation.Share(t, of)
				at := 1
				for ; tell(t, failed, &crash{at: at, after: after}); at++ {
					if t.Failed() {
						t.Fatalf("the process had ended at write %d", at)
					}
				}
				if at < least {
					t.Errorf("a run has %d writes: too few to be all", at-1)
				}
			})
		}
	}
}

// crashesAt tells one run, and whether the process ended in it.
func crashesAt(t *testing.T, failed uint64, c *crash) bool {
	t.Helper()
	w, _ := rolling(t)
	c.install(t, w)
	w.live(t, 8)
	for n := range uint64(14) {
		w.tells(n+1, failed)
		w.live(t, 3)
	}
	w.live(t, 6)
	r := &v1alpha1.ABRelease{}
	if err := w.Client.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: "web"}, r); err != nil {
		t.Fatal(err)
	}
	wantState, wantSplit := v1alpha1.RunState("Completed"), "canary 100 / stable 0"
	if failed > 0 {
		wantState, wantSplit = "RolledBack", "stable 100 / canary 0"
	}
	if run := r.Status.Rollout.Run; run == nil || run.State != wantState || run.Number != 1 || r.Status.Split != wantSplit {
		t.Errorf("in force is %q in %+v", r.Status.Split, r.Status.Rollout.Run)
	}
	times := map[string]int{}
	for i, e := range r.Status.Rollout.History {
		times[e.Event+" "+e.Message]++
		if e.Number != int64(i+1) {
			t.Errorf("line %d of the history has number %d", i+1, e.Number)
		}
	}
	for line, n := range times {
		if n > 1 {
			t.Errorf("the history has %d times %q", n, line)
		}
	}
	w.neverBack(t, failed == 0)
	return c.crashed
}

// neverBack demands of what proxies were told that sequences rise, that one sequence has one split, and of
// a good run that the weight of the canary never falls.
func (w *world) neverBack(t *testing.T, good bool) {
	t.Helper()
	told := map[uint64]string{}
	var sequence uint64
	var weight traffic.Weight
	for _, split := range w.router.Applied() {
		if split.Sequence < sequence {
			t.Errorf("sequence %d is told after %d", split.Sequence, sequence)
		}
		sequence = split.Sequence
		text := fmt.Sprintf("%+v", split.Shares)
		if before, is := told[sequence]; is && before != text {
			t.Errorf("sequence %d is %s, and was %s", sequence, text, before)
		}
		told[sequence] = text
		for _, share := range split.Shares {
			if share.Variation != "canary" {
				continue
			}
			if good && share.Weight < weight {
				t.Errorf("the weight of the canary falls from %d to %d", weight, share.Weight)
			}
			weight = share.Weight
		}
	}
}
