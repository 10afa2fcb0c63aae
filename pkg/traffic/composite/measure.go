// SPDX-License-Identifier: Apache-2.0

package composite

import (
	"maps"
	"slices"
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// cursorOf is the cursor of one part, whose positions the cursor of the composite has as part/name.
func cursorOf(part string, since traffic.Cursor) traffic.Cursor {
	var own traffic.Cursor
	for name, position := range since {
		if of, within, _ := strings.Cut(name, "/"); of == part {
			own = own.Advance(within, position)
		}
	}
	return own
}

// measure returns what all parts counted after a cursor. The position at a part that answers with an error stays. A
// position of a part that the composite does not have is lost.
func measure(answers []answer[traffic.Measurement], since traffic.Cursor) (traffic.Measurement, error) {
	silent, err := unheard(answers)
	if err != nil {
		return traffic.Measurement{}, err
	}
	all := traffic.Measurement{Next: traffic.Cursor{}, Unheard: silent}
	known := map[string]bool{}
	for _, a := range answers {
		known[a.part] = true
		m := a.said
		if a.err != nil {
			m = traffic.Measurement{Next: cursorOf(a.part, since)}
		}
		for name, position := range m.Next {
			all.Next[a.part+"/"+name] = position
		}
		for _, cell := range m.Cells {
			cell.Part = a.part + "/" + cell.Part
			all.Cells = append(all.Cells, cell)
		}
		all.More = all.More || m.More
		all.Lost, all.Unheard = append(all.Lost, within(a.part, m.Lost)...), append(all.Unheard, within(a.part, m.Unheard)...)
		all.Wanted += m.Wanted
	}
	for _, name := range slices.Sorted(maps.Keys(since)) {
		if of, _, _ := strings.Cut(name, "/"); !known[of] {
			all.Lost = append(all.Lost, name)
		}
	}
	slices.Sort(all.Lost)
	slices.Sort(all.Unheard)
	return all, nil
}

// within are names of one part, as the composite has them.
func within(part string, names []string) []string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = part + "/" + name
	}
	return all
}
