// SPDX-License-Identifier: Apache-2.0

package routertest_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/routertest"
)

func TestItKeepsWhatItWasTold(t *testing.T) {
	r := &routertest.Recorder{}
	split := routertest.Split(0, 5_000)
	for _, sequence := range []uint64{1, 1, 3} {
		split.Sequence = sequence
		if err := r.Apply(t.Context(), split); err != nil {
			t.Fatal(err)
		}
	}
	split.Shares[0].Variation = "changed afterwards"
	want := []traffic.Split{routertest.Split(1, 5_000), routertest.Split(1, 5_000), routertest.Split(3, 5_000)}
	if diff := cmp.Diff(want, r.Applied()); diff != "" {
		t.Error(diff)
	}
	seen, err := r.Observe(t.Context())
	if err != nil || seen.Sequence != 3 || seen.Knowledge != traffic.Proven || len(seen.Arms) != 2 {
		t.Errorf("%+v, %v", seen, err)
	}
}

func TestItSaysWhatTheTestHasItSay(t *testing.T) {
	r, broken := &routertest.Recorder{}, errors.New("broken")
	r.Refuse(broken)
	if err := r.Validate(routertest.Split(1, 5_000)); !errors.Is(err, broken) {
		t.Errorf("Validate: %v", err)
	}
	r.Refuse(nil)
	if err := r.Validate(traffic.Split{}); err == nil {
		t.Error("half a split is valid")
	}
	r.Break(broken)
	if err := r.Apply(t.Context(), routertest.Split(1, 5_000)); !errors.Is(err, broken) || len(r.Applied()) != 0 {
		t.Errorf("Apply: %v", err)
	}
	said := traffic.Observation{Knowledge: traffic.Unknown, Wanted: 2, Acknowledged: 1}
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
