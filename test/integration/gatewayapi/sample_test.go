// SPDX-License-Identifier: Apache-2.0

//go:build integration

package gatewayapi

import (
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// loosen takes from a schema what refuses a value of the right type.
func loosen(s *apiextensionsv1.JSONSchemaProps) {
	s.XValidations, s.Enum, s.Pattern, s.Format, s.Required, s.Default = nil, nil, "", "", nil, nil
	s.Minimum, s.Maximum, s.MinLength, s.MaxLength, s.MinItems, s.MaxItems, s.MinProperties, s.MaxProperties = nil, nil, nil, nil, nil, nil, nil, nil
	s.XListType, s.XListMapKeys = nil, nil
	s.OneOf, s.AnyOf, s.AllOf, s.Not = nil, nil, nil, nil
	for name, property := range s.Properties {
		loosen(&property)
		s.Properties[name] = property
	}
	if s.Items != nil {
		loosen(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		loosen(s.AdditionalProperties.Schema)
	}
}

// sampler makes values that have each field of a schema. No two leaves are equal. Lists have two elements, and within
// two lists one.
type sampler struct{ made, lists int64 }

func (s *sampler) value(schema *apiextensionsv1.JSONSchemaProps) any {
	s.made++
	switch {
	case schema.Type == "object" && len(schema.Properties) > 0:
		object := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
			property := schema.Properties[name]
			object[name] = s.value(&property)
		}
		return object
	case schema.Type == "object":
		return map[string]any{"key": fmt.Sprint("s", s.made)}
	case schema.Type == "array":
		s.lists++
		defer func() { s.lists-- }()
		if s.lists > 2 {
			return []any{s.value(schema.Items.Schema)}
		}
		return []any{s.value(schema.Items.Schema), s.value(schema.Items.Schema)}
	case schema.Type == "integer":
		return s.made
	case schema.Type == "boolean":
		return true
	}
	return fmt.Sprint("s", s.made)
}

// mutation is one change of a value of a schema.
type mutation struct {
	path   string
	mutate func(root map[string]any)
}

// mutations are all changes of one field: another value, no value, and of a list one element more, one less, another
// order. Of a list the last element is changed; lists counts the lists around the value.
func mutations(schema *apiextensionsv1.JSONSchemaProps, path string, lists int, at func(root map[string]any) any, set func(root map[string]any, value any)) []mutation {
	found := []mutation{}
	add := func(how string, value func(now any) any) {
		found = append(found, mutation{path + how, func(root map[string]any) { set(root, value(at(root))) }})
	}
	fresh := &sampler{made: 1_000_000}
	switch {
	case schema.Type == "object" && len(schema.Properties) > 0:
		for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
			property := schema.Properties[name]
			holder := func(root map[string]any) map[string]any { return at(root).(map[string]any) }
			found = append(found, mutation{path + "." + name + " removed", func(root map[string]any) { delete(holder(root), name) }})
			found = append(found, mutations(&property, path+"."+name, lists,
				func(root map[string]any) any { return holder(root)[name] },
				func(root map[string]any, value any) { holder(root)[name] = value })...)
		}
	case schema.Type == "array":
		add(" longer", func(now any) any { return append(slices.Clone(now.([]any)), fresh.value(schema.Items.Schema)) })
		add(" shorter", func(now any) any { return now.([]any)[1:] })
		if lists < 2 {
			add(" turned", func(now any) any { l := slices.Clone(now.([]any)); slices.Reverse(l); return l })
		}
		last := func(root map[string]any) (list []any, i int) { list = at(root).([]any); return list, len(list) - 1 }
		found = append(found, mutations(schema.Items.Schema, path+"[]", lists+1,
			func(root map[string]any) any { list, i := last(root); return list[i] },
			func(root map[string]any, value any) { list, i := last(root); list[i] = value })...)
	case schema.Type == "boolean":
		add(" changed", func(any) any { return false })
	default:
		add(" changed", func(any) any { return fresh.value(schema) })
	}
	return found
}

func mutated(object map[string]any, m mutation) map[string]any {
	changed := runtime.DeepCopyJSON(object)
	m.mutate(changed)
	return changed
}
