// SPDX-License-Identifier: Apache-2.0

package routertest_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/routertest"
)

func halves() traffic.Split {
	return traffic.Split{{Variation: "a", Weight: 5000}, {Variation: "b", Weight: 5000, Reserved: 5000}}
}

func TestItKeepsWhatItWasTold(t *testing.T) {
	r := &routertest.Recorder{}
	split := halves()
	for _, sequence := range []uint64{1, 1, 3} {
		if err := r.Apply(t.Context(), split, sequence); err != nil {
			t.Fatal(err)
		}
	}
	split[0].Variation = "changed afterwards"
	want := []routertest.Applied{{Split: halves(), Sequence: 1}, {Split: halves(), Sequence: 1}, {Split: halves(), Sequence: 3}}
	if diff := cmp.Diff(want, r.Applied()); diff != "" {
		t.Error(diff)
	}
	seen, err := r.Observe(t.Context())
	if err != nil || seen.Sequence != 3 || seen.Knowledge != traffic.Proven || len(seen.Arms) != 2 {
		t.Errorf("%+v, %v", seen, err)
	}
}

func TestItHoldsItsUserToTheContract(t *testing.T) {
	tests := map[string]struct {
		split    traffic.Split
		sequence uint64
	}{
		"a lower sequence":          {halves(), 6},
		"a split that is not whole": {halves()[:1], 8},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := &routertest.Recorder{}
			if err := r.Apply(t.Context(), halves(), 7); err != nil {
				t.Fatal(err)
			}
			if err := r.Apply(t.Context(), tc.split, tc.sequence); err == nil {
				t.Error("it takes that")
			}
			if n := len(r.Applied()); n != 1 {
				t.Errorf("%d are recorded", n)
			}
		})
	}
}

func TestItSaysWhatTheTestHasItSay(t *testing.T) {
	r, broken := &routertest.Recorder{}, errors.New("broken")
	r.Refuse(broken)
	if err := r.Validate(halves()); !errors.Is(err, broken) {
		t.Errorf("Validate: %v", err)
	}
	r.Refuse(nil)
	if err := r.Validate(halves()[:1]); err == nil {
		t.Error("half a split is valid")
	}
	r.Break(broken)
	if err := r.Apply(t.Context(), halves(), 1); !errors.Is(err, broken) || len(r.Applied()) != 0 {
		t.Errorf("Apply: %v", err)
	}
	said := traffic.Observation{Knowledge: traffic.Unknown, Wanted: 2, Confirmed: 1}
	r.Say(said)
	if seen, err := r.Observe(t.Context()); err != nil || !cmp.Equal(seen, said) {
		t.Errorf("Observe: %+v, %v", seen, err)
	}
	r.Deafen(broken)
	if _, err := r.Observe(t.Context()); !errors.Is(err, broken) {
		t.Errorf("Observe: %v", err)
	}
}

func TestItTellsEachCellOnce(t *testing.T) {
	r := &routertest.Recorder{}
	cell := func(part string, epoch int64, number uint64) traffic.Cell {
		return traffic.Cell{Part: part, Position: traffic.Position{Epoch: epoch, Cell: number}, Variation: "canary", Over: number}
	}
	r.Count(cell("a", 1, 1), cell("b", 5, 1))
	first, err := r.Measure(t.Context(), nil)
	if err != nil || len(first.Cells) != 2 {
		t.Fatalf("%+v, %v", first, err)
	}
	r.Count(cell("a", 1, 2), cell("b", 6, 1)) // b was started again
	next, err := r.Measure(t.Context(), first.Next)
	if err != nil || len(next.Cells) != 2 || next.Cells[0].Over != 2 || next.Cells[1].Position.Epoch != 6 {
		t.Errorf("%+v, %v", next, err)
	}
	if last, err := r.Measure(t.Context(), next.Next); err != nil || len(last.Cells) != 0 || !cmp.Equal(last.Next, next.Next) {
		t.Errorf("%+v, %v", last, err)
	}
}
