// SPDX-License-Identifier: Apache-2.0

package abrelease

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/history"
	"github.com/plumbline-dev/plumbline/pkg/traffic/judge"
)

var inHistory = history.Release{Namespace: "shop", Name: "web", UID: "u1"}

// remembered is a world with a history, whose process leads until resign is called.
func remembered(t *testing.T) (w *world, resign func()) {
	t.Helper()
	w, _ = rolling(t)
	w.History = NewHistory()
	return w, w.History.lead(w.clock)
}

// requestsOf sums the cells of a variation.
func requestsOf(s history.Series, variation string) (requests, failed uint64) {
	for _, c := range s.Cells {
		if c.Variation == variation {
			requests, failed = requests+c.Requests, failed+c.Failed
		}
	}
	return requests, failed
}

func TestTheLeaderKeepsWhatItCountsAndJudges(t *testing.T) {
	w, _ := remembered(t)
	begun := w.clock.Now()
	w.looks()
	for n := range uint64(3) {
		w.tells(n+1, 1)
		w.look()
	}
	s, leads := w.History.Read(inHistory)
	if !leads || !s.Since.Equal(begun) || len(s.Cells) != 6 {
		t.Fatalf("leads %t, since %v, cells %+v", leads, s.Since, s.Cells)
	}
	requests, failed := requestsOf(s, "canary")
	if requests != 300 || failed != 3 {
		t.Errorf("the canary has %d requests, of which %d failed", requests, failed)
	}
	last := s.Looks[len(s.Looks)-1]
	if last.Run != 1 || last.Stage != 1 || last.Verdict != judge.Undecided || !last.Time.Equal(w.clock.Now()) || last.Canary.Variation != "canary" || last.Control.Variation != "stable" ||
		last.Canary.Samples != 200 || last.Errors.FailsAt <= 1 || last.Canary.Low >= last.Canary.ErrorRate || last.Canary.High <= last.Canary.ErrorRate {
		t.Errorf("the last look is %+v", last)
	}
}

// The next look counts the cells of a look again whose status was not stored.
func TestCellsOfALookThatIsNotStoredAreKeptOnce(t *testing.T) {
	w, _ := remembered(t)
	w.looks()
	inner, is := w.Client.(client.WithWatch)
	if !is {
		t.Fatalf("the client is a %T", w.Client)
	}
	fails := true
	w.Client = interceptor.NewClient(inner, interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			if fails {
				return errors.New("away")
			}
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
	})
	w.tells(1, 1)
	w.clock.Step(time.Minute) // the status is worth a write
	request := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}}
	if _, err := w.Reconcile(t.Context(), request); err == nil {
		t.Fatal("the status was stored")
	}
	fails = false
	w.look()
	s, _ := w.History.Read(inHistory)
	if requests, _ := requestsOf(s, "canary"); requests != 100 {
		t.Errorf("the canary has %d requests, want 100", requests)
	}
}

func TestHistoryBeginsAnewWithEachLeader(t *testing.T) {
	w, resign := remembered(t)
	w.looks()
	w.tells(1, 0)
	w.look()
	resign()
	if s, leads := w.History.Read(inHistory); leads || len(s.Cells) > 0 {
		t.Errorf("a replica that does not lead has %+v", s)
	}
	w.tells(2, 0)
	w.look() // the last look of a leader may come after its lease
	w.clock.Step(time.Minute)
	defer w.History.lead(w.clock)()
	s, leads := w.History.Read(inHistory)
	want := history.Series{Since: w.clock.Now(), Cells: []history.Cell{}, Looks: []history.Look{}}
	if diff := cmp.Diff(want, s); diff != "" || !leads {
		t.Errorf("leads %t (-want +got):\n%s", leads, diff)
	}
}

func TestAReleaseThatIsGoneHasNoHistory(t *testing.T) {
	w, _ := remembered(t)
	w.looks()
	w.tells(1, 0)
	w.look()
	if err := w.Client.Delete(t.Context(), w.stored()); err != nil {
		t.Fatal(err)
	}
	var gone v1alpha1.ABRelease
	if err := w.Client.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: "web"}, &gone); err == nil { // its finalizers hold it
		gone.Finalizers = nil
		if err := w.Client.Update(t.Context(), &gone); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}}); err != nil {
		t.Fatal(err)
	}
	if s, _ := w.History.Read(inHistory); len(s.Cells)+len(s.Looks) > 0 {
		t.Errorf("kept are %+v", s)
	}
}
