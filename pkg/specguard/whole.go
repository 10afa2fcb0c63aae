// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"bytes"
	"strconv"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// maxAlignment bounds the table of one alignment of two lists, in cells. Lists that
// are longer where they differ are not aligned, and so a write of them authorizes
// nothing.
const maxAlignment = 1 << 22

// maxComparisons bounds how many pairs of elements are compared part by part. A write
// that needs more authorizes nothing: the elements of a list are as many and as large
// as whoever may edit the object wants.
const maxComparisons = 1 << 14

// carriesForeign tells whether a trusted write of an atomic list or map, which
// replaced before by after, left anything of what somebody else had changed in it.
// want is the authorized value. The write is taken as the edits that lead from before
// to after: when they lead from want to after, too, all of after is the writer's own.
//
// Somebody else's change is an element that want lacks, an element of want that is
// missing, or an order that is not that of want. An element that the writer moved or
// changed a little remains the element of whoever put it there.
func carriesForeign(want, before, after canon.Value) bool {
	if before.Kind() < canon.List || before.Kind() != after.Kind() || want.Equal(before) || want.Equal(after) {
		return false
	}
	if before.Kind() == canon.Map {
		return mapCarriesForeign(want, before, after)
	}
	return listCarriesForeign(elementsOf(want), elementsOf(before), elementsOf(after))
}

// mapCarriesForeign tells whether a member that somebody else had changed is as he
// left it, or is still there although want has none.
func mapCarriesForeign(want, before, after canon.Value) bool {
	for member := range before.All() {
		if !member.Covered() {
			continue
		}
		key := string(member.Key())
		authorized, written := coveredPart(want.Get(key)), coveredPart(after.Get(key))
		switch {
		case authorized.Equal(member), !written.Exists():
		case !authorized.Exists(), written.Equal(member):
			return true
		}
	}
	for member := range want.All() {
		key := string(member.Key())
		if member.Covered() && !coveredPart(before.Get(key)).Exists() && !coveredPart(after.Get(key)).Exists() {
			return true // taken out by somebody else, still missing
		}
	}
	return false
}

// coveredPart is the value, or absent when the hash does not cover it.
func coveredPart(v canon.Value) canon.Value {
	if !v.Covered() {
		return canon.Value{}
	}
	return v
}

// listElement is one element of an atomic list.
type listElement struct {
	text  string // canonical
	value canon.Value
}

func elementsOf(list canon.Value) []listElement {
	if list.Kind() != canon.List {
		return nil
	}
	elements := make([]listElement, 0, list.Len())
	for child := range list.All() {
		if child.Covered() {
			elements = append(elements, listElement{text: string(child.AppendCanonical(nil)), value: child})
		}
	}
	return elements
}

func listCarriesForeign(want, before, after []listElement) bool {
	inWant, inBefore, ok := align(want, before)
	if !ok {
		return true
	}
	ours, foreign := split(before, inBefore)
	kept, _, ok := align(ours, after)
	if !ok {
		return true
	}
	// What has to be there: what the writer kept, and what somebody else took out.
	var due, dropped []listElement
	at := 0
	for i, e := range want {
		switch {
		case !inWant[i]:
			due = append(due, e)
			continue
		case kept[at]:
			due = append(due, e)
		default:
			dropped = append(dropped, e)
		}
		at++
	}
	written, ok := without(after, due)
	if !ok {
		return true
	}
	if len(foreign) > 0 && len(written) > maxComparisons/(len(foreign)+len(dropped)) {
		return true
	}
	for _, e := range written {
		if isOneOf(e, foreign, dropped) {
			return true
		}
	}
	return false
}

// split takes elements apart by a mark.
func split(elements []listElement, marked []bool) (yes, no []listElement) {
	for i, e := range elements {
		if marked[i] {
			yes = append(yes, e)
		} else {
			no = append(no, e)
		}
	}
	return yes, no
}

// without takes a subsequence out of elements; false when it is none.
func without(elements, subsequence []listElement) (rest []listElement, ok bool) {
	for _, e := range elements {
		if len(subsequence) > 0 && subsequence[0].text == e.text {
			subsequence = subsequence[1:]
			continue
		}
		rest = append(rest, e)
	}
	return rest, len(subsequence) == 0
}

// isOneOf tells whether an element that was written is one of the foreign elements,
// moved or changed a little, rather than one of the authorized elements that the
// writer dropped.
func isOneOf(written listElement, foreign, dropped []listElement) bool {
	best := 0.0
	for _, f := range foreign {
		if f.text == written.text {
			return true
		}
		best = max(best, remains(f.value, written.value))
	}
	if best == 0 {
		return false
	}
	for _, d := range dropped {
		if remains(d.value, written.value) > best {
			return false
		}
	}
	return true
}

// remains measures how much of an element remains in another one: 0 when half of it
// or less does, else the number of parts that remain, and a fraction by which the
// element that remains as a whole comes first. Parts are the scalars of a map or
// list, and the bytes of a string.
func remains(before, after canon.Value) float64 {
	var same, all int
	switch {
	case before.Kind() != after.Kind():
		return 0
	case before.Kind() >= canon.List:
		parts := map[string]string{}
		scalars(after, "", parts)
		of := map[string]string{}
		scalars(before, "", of)
		for path, text := range of {
			if got, ok := parts[path]; ok && got == text {
				same++
			}
		}
		all = len(of)
	case before.Kind() == canon.String:
		all = max(len(before.Bytes()), len(after.Bytes())-len(before.Bytes()))
		if bytes.Contains(after.Bytes(), before.Bytes()) {
			same = len(before.Bytes())
		}
	}
	if 2*same <= all {
		return 0
	}
	return float64(same) + float64(same)/float64(all+1)
}

// scalars collects the scalars below a value by their places.
func scalars(v canon.Value, at string, into map[string]string) {
	if v.Kind() < canon.List {
		into[at] = string(v.AppendCanonical(nil))
		return
	}
	for i := range v.Len() {
		child := v.Index(i)
		name := strconv.Itoa(i)
		if v.Kind() == canon.Map {
			name = string(child.Key())
		}
		if child.Covered() {
			scalars(child, at+"/"+name, into)
		}
	}
}

// align marks the elements of a longest common subsequence in both lists; false when
// the lists are too long for that.
func align(a, b []listElement) (inA, inB []bool, ok bool) {
	inA, inB = make([]bool, len(a)), make([]bool, len(b))
	head := 0
	for head < min(len(a), len(b)) && a[head].text == b[head].text {
		inA[head], inB[head] = true, true
		head++
	}
	endA, endB := len(a), len(b)
	for endA > head && endB > head && a[endA-1].text == b[endB-1].text {
		endA, endB = endA-1, endB-1
		inA[endA], inB[endB] = true, true
	}
	n, m := endA-head, endB-head
	if n > 0 && m > maxAlignment/n {
		return nil, nil, false
	}
	// length[i*(m+1)+j] is that of the rest from i and j on.
	length := make([]int32, (n+1)*(m+1))
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			if a[head+i].text == b[head+j].text {
				length[i*(m+1)+j] = length[(i+1)*(m+1)+j+1] + 1
			} else {
				length[i*(m+1)+j] = max(length[(i+1)*(m+1)+j], length[i*(m+1)+j+1])
			}
		}
	}
	for i, j := 0, 0; i < n && j < m; {
		switch {
		case a[head+i].text == b[head+j].text:
			inA[head+i], inB[head+j] = true, true
			i, j = i+1, j+1
		case length[(i+1)*(m+1)+j] >= length[i*(m+1)+j+1]:
			i++
		default:
			j++
		}
	}
	return inA, inB, true
}
