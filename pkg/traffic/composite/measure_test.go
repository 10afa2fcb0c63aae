// SPDX-License-Identifier: Apache-2.0

package composite

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/routertest"
)

func TestWhatPartsCountTogether(t *testing.T) {
	at := func(n uint64) traffic.Position { return traffic.Position{Epoch: 1, Cell: n} }
	since := traffic.Cursor{"mesh/xds-0": at(1), "edge/nginx-0": at(4), "gone/x": at(9)}
	answers := []answer[traffic.Measurement]{
		{part: "mesh", said: traffic.Measurement{
			Cells: []traffic.Cell{{Part: "xds-0", Position: at(2), Over: 7}}, Next: traffic.Cursor{"xds-0": at(2)}, More: true,
			Lost: []string{"xds-1"}, Unheard: []string{"xds-2"}, Wanted: 3,
		}},
		{part: "edge", err: errors.New("away")},
		{part: "third", said: traffic.Measurement{Cells: []traffic.Cell{{Part: "xds-0", Position: at(1)}}, Next: traffic.Cursor{"xds-0": at(1)}, Wanted: 2}},
	}
	got, err := measure(answers, since)
	if err != nil {
		t.Fatal(err)
	}
	want := traffic.Measurement{
		Cells: []traffic.Cell{{Part: "mesh/xds-0", Position: at(2), Over: 7}, {Part: "third/xds-0", Position: at(1)}},
		Next:  traffic.Cursor{"mesh/xds-0": at(2), "edge/nginx-0": at(4), "third/xds-0": at(1)}, More: true,
		Lost: []string{"gone/x", "mesh/xds-1"}, Unheard: []string{"edge", "mesh/xds-2"}, Wanted: 5,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if _, err := measure(answers[1:2], since); err == nil {
		t.Error("no part answers, and there is a measurement")
	}
}

// Whatever parts answer at each reading, each cell is told once, and none is missing at the end.
func TestEachCellOfEachPartIsToldOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := map[string]*routertest.Recorder{"mesh": {}, "edge": {}}
		router := New(Part{"mesh", parts["mesh"]}, Part{"edge", parts["edge"]})
		counted, told := map[string]uint64{}, map[string]uint64{}
		cells := map[string]uint64{}
		var cursor traffic.Cursor
		read := func() {
			m, err := router.Measure(t.Context(), cursor)
			if err != nil {
				return
			}
			for _, c := range m.Cells {
				told[c.Part] += c.Over
			}
			cursor = m.Next
		}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			part := rapid.SampledFrom([]string{"edge", "mesh"}).Draw(t, "part")
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				name := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name")
				cells[part+"/"+name]++
				over := rapid.Uint64Range(1, 99).Draw(t, "over")
				counted[part+"/"+name] += over
				parts[part].Count(traffic.Cell{Part: name, Position: traffic.Position{Epoch: 1, Cell: cells[part+"/"+name]}, Over: over})
			case 1:
				parts[part].Deafen(errors.New("away"))
			case 2:
				parts[part].Deafen(nil)
			default:
				read()
			}
		}
		parts["mesh"].Deafen(nil)
		parts["edge"].Deafen(nil)
		read()
		if d := cmp.Diff(counted, told, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("(-counted +told):\n%s", d)
		}
	})
}
