// SPDX-License-Identifier: Apache-2.0

//go:build integration

package skew

import (
	"slices"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// listNewFields lists the kinds and fields that schemas have and former schemas lack. A
// field below a new field is not listed.
func listNewFields(former, present map[string]*apiextensions.JSONSchemaProps) []string {
	var added []string
	for kind, schema := range present {
		if former[kind] == nil {
			added = append(added, kind)
			continue
		}
		added = append(added, compareFields(kind+" ", former[kind], schema)...)
	}
	slices.Sort(added)
	return added
}

// compareFields lists the paths that a schema has and a former schema lacks.
func compareFields(path string, former, present *apiextensions.JSONSchemaProps) []string {
	var added []string
	for name := range present.Properties {
		below := joinPath(path, name)
		before, now := former.Properties[name], present.Properties[name]
		if _, has := former.Properties[name]; !has {
			added = append(added, below)
			continue
		}
		added = append(added, compareFields(below, &before, &now)...)
	}
	if present.Items != nil && former.Items != nil {
		added = append(added, compareFields(path+"[]", former.Items.Schema, present.Items.Schema)...)
	}
	if present.AdditionalProperties != nil && former.AdditionalProperties != nil && former.AdditionalProperties.Schema != nil {
		added = append(added, compareFields(path+"{}", former.AdditionalProperties.Schema, present.AdditionalProperties.Schema)...)
	}
	return added
}

// joinPath appends a field to a path such as "ABRelease spec.routers"; the path of a whole
// object ends with a space.
func joinPath(path, field string) string {
	if strings.HasSuffix(path, " ") {
		return path + field
	}
	return path + "." + field
}

// pruneValue returns a value without the fields that a schema lacks, and lists their paths.
func pruneValue(path string, schema *apiextensions.JSONSchemaProps, value any) (kept any, lost []string) {
	if schema.XPreserveUnknownFields != nil && *schema.XPreserveUnknownFields {
		return value, nil
	}
	switch v := value.(type) {
	case map[string]any:
		return pruneMap(path, schema, v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			var below []string
			list[i], below = pruneValue(path+"[]", schema.Items.Schema, v[i])
			lost = append(lost, below...)
		}
		return list, lost
	default:
		return value, nil
	}
}

func pruneMap(path string, schema *apiextensions.JSONSchemaProps, value map[string]any) (kept any, lost []string) {
	fields := map[string]any{}
	for name, field := range value {
		below, has := schema.Properties[name]
		switch {
		case has:
			var lostBelow []string
			fields[name], lostBelow = pruneValue(joinPath(path, name), &below, field)
			lost = append(lost, lostBelow...)
		case schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil:
			var lostBelow []string
			fields[name], lostBelow = pruneValue(path+"{}", schema.AdditionalProperties.Schema, field)
			lost = append(lost, lostBelow...)
		default:
			lost = append(lost, joinPath(path, name))
		}
	}
	return fields, lost
}
