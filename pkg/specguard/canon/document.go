// SPDX-License-Identifier: Apache-2.0

package canon

import (
	"strings"
	"sync"
)

// Bounds of what [Parse] accepts.
const (
	// MaxBodyBytes is the largest body.
	MaxBodyBytes = 8 << 20
	// MaxDepth is the deepest nesting of objects and arrays; the outermost
	// object has depth 1.
	MaxDepth = 256
	// MaxValues is the most values (maps, lists and scalars) below the
	// outermost object. It bounds memory: a body of "[1,1,1…" would otherwise
	// need forty times its size.
	MaxValues = 1 << 20
	// MaxExponent bounds the written exponent of a number, both ways.
	MaxExponent = 999_999_999
)

// GVK is the group, version and kind whose schema and removal table apply.
// An unknown one is valid: all lists keep their order, nothing is removed.
type GVK struct {
	Group, Version, Kind string
}

// ParseGVK joins the apiVersion and kind of an object: "apps/v1" and
// "Deployment", or "v1" and "Pod" for the group without a name.
func ParseGVK(apiVersion, kind string) GVK {
	group, version, found := strings.Cut(apiVersion, "/")
	if !found {
		group, version = "", apiVersion
	}
	return GVK{Group: group, Version: version, Kind: kind}
}

// Document is a parsed object: a tree in flat arenas that is read only once
// [Parse] has returned, so any number of goroutines may use it until Release.
// It refers to the body given to Parse, which must not change meanwhile.
type Document struct {
	src []byte
	gvk GVK
	// nodes holds every value of the tree. The children of one container lie
	// side by side: those of a map in key order, those of a list as written.
	nodes []node
	// text holds strings that had escapes, decoded, and numbers that were not
	// written canonically, rewritten.
	text []byte
	// order holds the canonical order of lists that are not written in it.
	order []uint32
	root  uint32

	// Scratch space of the parser.
	stack      []node
	memberKeys []memberKey
	sortKeys   []elementKey
}

// GVK is what was given to Parse.
func (d *Document) GVK() GVK { return d.gvk }

// Size is the length of the body in bytes.
func (d *Document) Size() int { return len(d.src) }

// Root is the whole object, with metadata and status.
func (d *Document) Root() Value { return Value{doc: d, index: d.root} }

// RootWithout is the whole object as seen without the excluded paths: what they
// cover exists, but is not [Value.Covered].
func (d *Document) RootWithout(exclude ...Path) Value {
	return Value{doc: d, index: d.root, mask: newMask(d, exclude)}
}

// Hash is the pl1 hash; with excluded paths, the guarded hash: that of the
// object without the values that a path covers, and without the containers
// that become empty by it. A path that matches nothing changes nothing.
func (d *Document) Hash(exclude ...Path) Hash {
	return d.RootWithout(exclude...).hash()
}

// AppendCanonical appends the bytes that [Document.Hash] digests: valid JSON.
func (d *Document) AppendCanonical(dst []byte, exclude ...Path) []byte {
	return d.RootWithout(exclude...).AppendCanonical(dst)
}

var documents = sync.Pool{New: func() any { return new(Document) }}

// maxPooledNodes keeps one giant body from holding its arenas for ever: about
// four MiB of nodes, ten times what a large Deployment needs.
const maxPooledNodes = 100_000

// Release gives the arenas back for reuse. Neither the Document nor any Value
// or byte slice got from it may be used afterwards. Optional: an unreleased
// Document is collected as any other.
func (d *Document) Release() {
	if d.src == nil || cap(d.nodes)+cap(d.stack) > maxPooledNodes {
		return
	}
	d.reset(nil, GVK{})
	documents.Put(d)
}

func (d *Document) reset(src []byte, gvk GVK) {
	d.src, d.gvk = src, gvk
	d.nodes, d.text, d.order, d.stack = d.nodes[:0], d.text[:0], d.order[:0], d.stack[:0]
}
