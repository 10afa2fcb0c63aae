// SPDX-License-Identifier: Apache-2.0

package canontest

import (
	"bytes"
	"encoding/json"
	"slices"

	"pgregory.net/rapid"
)

// Edit makes one drawn change somewhere in a drawn object: a member or element
// goes, comes, moves, or gets another value. The argument is left alone.
func Edit(t *rapid.T, value any) any {
	switch v := value.(type) {
	case Members:
		return editMembers(t, v)
	case []any:
		return editList(t, v)
	default:
		return Value(t, 1)
	}
}

func editMembers(t *rapid.T, members Members) Members {
	out := slices.Clone(members)
	if len(out) == 0 || rapid.IntRange(0, 9).Draw(t, "add") == 0 {
		name := drawName(t)
		if !slices.ContainsFunc(out, func(m Member) bool { return m.Key == name }) {
			out = append(out, Member{name, Value(t, 1)})
		}
		return out
	}
	i := rapid.IntRange(0, len(out)-1).Draw(t, "member")
	if rapid.IntRange(0, 9).Draw(t, "remove") == 0 {
		return slices.Delete(out, i, i+1)
	}
	out[i].Value = Edit(t, out[i].Value)
	return out
}

func editList(t *rapid.T, list []any) []any {
	out := slices.Clone(list)
	if len(out) == 0 {
		return append(out, Value(t, 1))
	}
	i := rapid.IntRange(0, len(out)-1).Draw(t, "element")
	switch rapid.IntRange(0, 7).Draw(t, "edit") {
	case 0:
		return slices.Delete(out, i, i+1)
	case 1, 2:
		return rapid.Permutation(out).Draw(t, "order")
	case 3: // one like it, but with another name: an element that came
		if m, isMap := out[i].(Members); isMap {
			return slices.Insert(out, i, any(renamed(t, m)))
		}
		return slices.Insert(out, i, Value(t, 0))
	default:
		out[i] = Edit(t, out[i])
		return out
	}
}

func renamed(t *rapid.T, members Members) Members {
	out := slices.Clone(members)
	for i := range out {
		if out[i].Key == "name" {
			out[i].Value = drawName(t)
		}
	}
	return out
}

// Read makes an object that Edit and Write take out of a body. Members come in
// the order of their keys.
func Read(body []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var decoded any
	if err := decoder.Decode(&decoded); err != nil {
		return nil, err
	}
	return fromDecoded(decoded), nil
}

func fromDecoded(value any) any {
	switch v := value.(type) {
	case map[string]any:
		members := make(Members, 0, len(v))
		for key, member := range v {
			members = append(members, Member{key, fromDecoded(member)})
		}
		slices.SortFunc(members, func(a, b Member) int { return bytes.Compare([]byte(a.Key), []byte(b.Key)) })
		return members
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = fromDecoded(v[i])
		}
		return list
	default:
		return value
	}
}
