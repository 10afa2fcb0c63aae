// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// ClassifyChange says what kind of drift a change would be and what it touches.
// A change of a whole subtree is as bad as the worst difference inside it: an
// added container brings an image, so it is no milder than another image.
func ClassifyChange(gvk canon.GVK, c diff.Change) (v1alpha1.DriftType, v1alpha1.FindingClass) {
	w := classWalk{gvk: gvk, budget: maxClassifiedValues}
	tokens := pathTokens(c.Path)
	class := w.worst(tokens, decodeValue(c.Before), decodeValue(c.After))
	return driftType(tokens, c.Op, class), class
}

func driftType(tokens []string, op diff.Op, class v1alpha1.FindingClass) v1alpha1.DriftType {
	isImage := class == v1alpha1.ClassImageRepository || class == v1alpha1.ClassImageVersion
	switch {
	case class == v1alpha1.ClassContainerMissing:
		return v1alpha1.DriftMissing
	case isImage && (op == diff.Changed || len(tokens) > 0 && tokens[len(tokens)-1] == "image"):
		return v1alpha1.DriftImage
	case class == v1alpha1.ClassScale:
		return v1alpha1.DriftScale
	case op == diff.Added:
		return v1alpha1.DriftUnexpected
	default:
		return v1alpha1.DriftOther
	}
}

// maxClassifiedValues bounds the work on one change; beyond it the class is
// Security, so that size hides nothing.
const maxClassifiedValues = 50_000

// element stands for a segment that names a list's element.
const element = "[]"

func pathTokens(p canon.Path) []string {
	segments := p.Segments()
	tokens := make([]string, len(segments))
	for i, s := range segments {
		tokens[i] = s.Name()
		if len(s.Keys()) > 0 {
			tokens[i] = element
		}
	}
	return tokens
}

// decodeValue gives nil for an absent value; numbers stay as written.
func decodeValue(raw []byte) any {
	if raw == nil {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return string(raw) // not JSON: the caller's mistake, compared as text
	}
	return v
}

type classWalk struct {
	gvk    canon.GVK
	budget int
}

// worst descends where before and after differ; nil is absent.
func (w *classWalk) worst(tokens []string, before, after any) v1alpha1.FindingClass {
	if w.budget--; w.budget < 0 {
		return v1alpha1.ClassSecurity
	}
	own, final := w.classAt(tokens, before, after)
	if final {
		return own
	}
	class, differs := v1alpha1.ClassOther, false
	for token, pair := range childPairs(before, after) {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			differs = true
			class = worseClass(class, w.worst(append(slices.Clip(tokens), pairToken(token, before, after)), pair[0], pair[1]))
		}
	}
	if !differs { // the order alone, or a scalar
		return own
	}
	return class
}

// pairToken is what stands in a path for a child of these containers.
func pairToken(token string, before, after any) string {
	if asList(before) != nil || asList(after) != nil {
		return element
	}
	return token
}

// childPairs pairs the children of two maps by key, of two lists by the name of
// their elements, else by position. Scalars have none.
func childPairs(before, after any) map[string][2]any {
	pairs := map[string][2]any{}
	for side, v := range [2]any{before, after} {
		if m, ok := v.(map[string]any); ok {
			for key, child := range m {
				pair := pairs[key]
				pair[side] = child
				pairs[key] = pair
			}
		}
		for i, child := range asList(v) {
			key := elementName(child, i)
			pair := pairs[key]
			pair[side] = child
			pairs[key] = pair
		}
	}
	return pairs
}

func asList(v any) []any {
	list, _ := v.([]any)
	return list
}

func elementName(v any, i int) string {
	if m, ok := v.(map[string]any); ok {
		if name, ok := m["name"].(string); ok {
			return "=" + name
		}
	}
	return strconv.Itoa(i)
}

// classRank orders classes from mild to bad.
var classRank = map[v1alpha1.FindingClass]int{
	v1alpha1.ClassOther:            0,
	v1alpha1.ClassTemplateMetadata: 1,
	v1alpha1.ClassResources:        2,
	v1alpha1.ClassScale:            3,
	v1alpha1.ClassStorage:          4,
	v1alpha1.ClassNetworking:       5,
	v1alpha1.ClassSecurity:         6,
	v1alpha1.ClassExecution:        7,
	v1alpha1.ClassImageVersion:     8,
	v1alpha1.ClassImageRepository:  9,
	v1alpha1.ClassContainerMissing: 10,
	v1alpha1.ClassObjectUnexpected: 11,
	v1alpha1.ClassObjectMissing:    12,
}

func worseClass(a, b v1alpha1.FindingClass) v1alpha1.FindingClass {
	if classRank[b] > classRank[a] {
		return b
	}
	return a
}
