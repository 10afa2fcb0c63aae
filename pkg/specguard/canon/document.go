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

// Algorithm returns the algorithm that hashes objects of a kind: [PL1] for the groups of
// Kubernetes itself, and [PL2] for all others. The API server drops null from the objects
// of its own kinds, but keeps it in custom ones, where null may mean something.
func (k GVK) Algorithm() Algorithm {
	if _, own := ownGroups[k.Group]; own {
		return PL1
	}
	return PL2
}

// Fragment returns the kind by which [Parse] reads a value of an object by itself: nulls
// are values as in the object, no list is reordered, and nothing is removed.
func (k GVK) Fragment() GVK { return GVK{Group: k.Group} }

// ownGroups are the groups of Kubernetes itself; part of pl1 and pl2. Absent are the
// groups whose objects hold free-form JSON: apiextensions.k8s.io and resource.k8s.io.
var ownGroups = map[string]struct{}{
	"": {}, "apps": {}, "autoscaling": {}, "batch": {}, "extensions": {}, "policy": {},
	"admissionregistration.k8s.io": {}, "apiregistration.k8s.io": {}, "authentication.k8s.io": {},
	"authorization.k8s.io": {}, "certificates.k8s.io": {}, "coordination.k8s.io": {}, "discovery.k8s.io": {},
	"events.k8s.io": {}, "flowcontrol.apiserver.k8s.io": {}, "internal.apiserver.k8s.io": {},
	"networking.k8s.io": {}, "node.k8s.io": {}, "rbac.authorization.k8s.io": {}, "scheduling.k8s.io": {},
	"storage.k8s.io": {}, "storagemigration.k8s.io": {},
}

// Document is a parsed object: a tree in flat arenas that is read only once
// [Parse] has returned, so any number of goroutines may use it until Release.
// It refers to the body given to Parse, which must not change meanwhile.
type Document struct {
	src []byte
	gvk GVK
	// algorithm is that of the kind; by pl2, null members of maps are values.
	algorithm Algorithm
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

// Hash is the hash by the algorithm of the kind; with excluded paths, the guarded hash: that of the
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
	d.src, d.gvk, d.algorithm = src, gvk, gvk.Algorithm()
	d.nodes, d.text, d.order, d.stack = d.nodes[:0], d.text[:0], d.order[:0], d.stack[:0]
}
