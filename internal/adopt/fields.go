// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"bytes"
	"slices"
	"strconv"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// outsideContent are the members that the canonical hash does not cover, so
// that nothing below them is ever drift.
var outsideContent = []string{"apiVersion", "kind", "metadata", "status"}

// contentPaths are the places of the guarded content that an entry of
// managedFields owns, sorted, the outermost left out where a place below it is
// owned too. readable is false for a list that is not FieldsV1.
func contentPaths(fields *metav1.FieldsV1) (paths []canon.Path, readable bool) {
	if fields == nil {
		return nil, true
	}
	raw := fields.GetRawBytes()
	var set fieldpath.Set
	if !utf8.Valid(raw) || set.FromJSON(bytes.NewReader(raw)) != nil {
		return nil, false
	}
	for owned := range set.Leaves().All() {
		if len(owned) == 0 || owned[0].FieldName == nil || slices.Contains(outsideContent, *owned[0].FieldName) {
			continue
		}
		paths = append(paths, guardPath(owned))
	}
	slices.SortFunc(paths, canon.Path.Compare)
	return slices.CompactFunc(paths, canon.Path.Equal), true
}

// guardPath writes a path of managedFields as guards write it. What is too long
// for that is cut to its longest ancestor, which covers it.
func guardPath(owned fieldpath.Path) canon.Path {
	var path canon.Path
	for _, element := range owned {
		child, ok := path.Child(segment(element))
		if !ok {
			return path
		}
		path = child
	}
	return path
}

func segment(e fieldpath.PathElement) canon.Segment {
	switch {
	case e.FieldName != nil:
		return canon.Field(*e.FieldName)
	case e.Key != nil:
		keys := make([]canon.KeyValue, 0, len(*e.Key))
		for _, field := range *e.Key {
			keys = append(keys, canon.KeyValue{Key: field.Name, Value: scalarText(field.Value)})
		}
		return canon.Element(keys...)
	case e.Value != nil:
		return canon.Element(canon.KeyValue{Value: scalarText(*e.Value)})
	case e.Index != nil:
		return canon.Position(*e.Index)
	default:
		return canon.Any()
	}
}

func scalarText(v value.Value) string {
	switch {
	case v == nil || v.IsNull():
		return ""
	case v.IsString():
		return v.AsString()
	case v.IsInt():
		return strconv.FormatInt(v.AsInt(), 10)
	case v.IsBool():
		return strconv.FormatBool(v.AsBool())
	default:
		return value.ToString(v)
	}
}

func covered(by []canon.Path, path canon.Path) bool {
	return slices.ContainsFunc(by, func(p canon.Path) bool { return p.Covers(path) })
}
