// SPDX-License-Identifier: Apache-2.0

// Package canon gives every Kubernetes object a canonical form and a hash of
// it: two bodies that mean the same have the same hash, two that do not, have
// not.
//
// Three algorithms exist, told apart by the prefix of the [Hash]:
//
//   - pl1 ("pl1:sha256:<hex>"), Plumbline's own for the kinds of Kubernetes. It covers the
//     whole body but the top-level apiVersion, kind, metadata and status, reads
//     the JSON bytes directly (exact decimals, no float64), and reorders a list
//     only where the Kubernetes schema says that its order means nothing.
//   - pl2 ("pl2:sha256:<hex>"), the same for kinds that Kubernetes does not define: a null
//     member of a map is covered, because a custom kind may give null a meaning.
//   - ddem002 ("sha256:<hex>"), the published DD-EM-002 algorithm with its
//     known defects, for comparison with systems that use it.
//
// All are specified, for an implementation in any language, in
// docs/reference/canonical-hash.md, with test vectors beside it.
//
// A workload can change without its object: [Document.Closure] digests the pod
// template together with the ConfigMaps that [Document.ConfigMapReferences]
// finds in it (closure.go, references.go). [Compare] says what three digests of
// one object, before a change, after it and now, mean (standing.go).
//
// # Reading guide
//
// [Parse] turns bytes into a [Document]: one pass, flat arenas, no maps. The
// parser (parse.go, scan.go, container.go) already decides what each list's order means
// (lists.go, from the generated table in zz_generated_listsemantics.go) and what
// the server allocated (removal.go), so hashing is a walk in stored order
// (encode.go). [Value] is a cursor over the tree for package diff and for
// callers that need a field or two. [Path] names places in it; a guarded hash
// is [Document.Hash] with paths to leave out (mask.go).
//
// The package imports nothing of Kubernetes, so that no dependency update can
// change a hash.
package canon

//go:generate go run github.com/plumbline-dev/plumbline/hack/listsemantics -output zz_generated_listsemantics.go
