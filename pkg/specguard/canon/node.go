// SPDX-License-Identifier: Apache-2.0

package canon

// Kind is the JSON type of a [Value].
type Kind uint8

// The kinds. Absent is the zero Value: what a lookup gives that found nothing.
const (
	Absent Kind = iota
	Null
	Bool
	Number
	String
	List
	Map
)

// String names the kind in lower case.
func (k Kind) String() string {
	return [...]string{"absent", "null", "bool", "number", "string", "list", "map"}[min(k, Map)]
}

// ListMode says what the order of a list's elements means.
type ListMode uint8

const (
	// Atomic lists are one value: their order counts, elements have no
	// identity. Every list that the schema does not describe is atomic.
	Atomic ListMode = iota
	// Set lists hold scalars that are identified by their value; order means
	// nothing.
	Set
	// Keyed lists hold maps that are identified by the value of some members;
	// order means nothing.
	Keyed
	// KeyedOrdered lists are keyed, but their order counts: initContainers, and
	// env lists where a value refers to another variable.
	KeyedOrdered
)

type flags uint8

const (
	// keyDecoded: the key lies in Document.text, not in the source.
	keyDecoded flags = 1 << iota
	// keyEscapes: the key needs escapes when written.
	keyEscapes
	// textDecoded: the scalar lies in Document.text.
	textDecoded
	// textEscapes: the string needs escapes when written.
	textEscapes
	// verbatim: the source bytes of this container are its canonical form.
	verbatim
	// absentNull: a map member that is null, which equals an absent one.
	absentNull
	// uncovered: one of the four top-level members that no hash covers.
	uncovered
	// removed: taken out by the removal table, or emptied by it.
	removed
)

const ignored = absentNull | uncovered | removed

// node is one value. Offsets fit 32 bits since a body is at most 8 MiB, and
// decoded text is never longer than its source.
type node struct {
	keyStart, keyEnd uint32 // decoded key, for map members
	start, end       uint32 // decoded scalar without quotes; container with brackets
	first, count     uint32 // children in Document.nodes
	order            uint32 // 1 + start of a permutation in Document.order; 0: as written
	list             typeID // schema of a list that is not atomic
	kind             Kind
	mode             ListMode
	flags            flags
}

func (d *Document) keyOf(n *node) []byte {
	if n.flags&keyDecoded != 0 {
		return d.text[n.keyStart:n.keyEnd]
	}
	return d.src[n.keyStart:n.keyEnd]
}

func (d *Document) textOf(n *node) []byte {
	if n.flags&textDecoded != 0 {
		return d.text[n.start:n.end]
	}
	return d.src[n.start:n.end]
}

// canonicalChild is the index of the i-th child in canonical order.
func (d *Document) canonicalChild(n *node, i uint32) uint32 {
	if n.order == 0 {
		return n.first + i
	}
	return d.order[n.order-1+i]
}

// fewMembers is up to how many members looking at each beats binary search:
// most differ in length already.
const fewMembers = 8

// member finds a child of a map; ok is false when there is none.
func (d *Document) member(n *node, key string) (index uint32, ok bool) {
	lo, hi := n.first, n.first+n.count
	if n.count <= fewMembers {
		for ; lo < hi; lo++ {
			if string(d.keyOf(&d.nodes[lo])) == key {
				return lo, true
			}
		}
		return 0, false
	}
	for lo < hi {
		mid := (lo + hi) / 2
		k := d.keyOf(&d.nodes[mid])
		switch {
		case string(k) == key:
			return mid, true
		case string(k) < key:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return 0, false
}
