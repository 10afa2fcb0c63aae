// SPDX-License-Identifier: Apache-2.0

// Package manifest makes the objects of tests as JSON.
package manifest

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
)

// Deployment returns a small object as the API server sends it; edits change the
// decoded form.
func Deployment(t testing.TB, edits ...func(map[string]any)) []byte {
	t.Helper()
	var o map[string]any
	const text = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop","uid":"u-1",
		"resourceVersion":"275","generation":1,"labels":{"app":"web"}},
		"spec":{"replicas":2,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},
		"spec":{"containers":[{"name":"app","image":"shop/web:1","env":[{"name":"A","value":"1"}]}]}}},"status":{"replicas":2}}`
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	for _, edit := range edits {
		edit(o)
	}
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// Set replaces the value at a dotted path; a nil value removes it.
func Set(path string, value any) func(map[string]any) {
	return func(o map[string]any) {
		keys := strings.Split(path, ".")
		var at any = o
		for _, key := range keys[:len(keys)-1] {
			switch c := at.(type) {
			case map[string]any:
				if c[key] == nil {
					c[key] = map[string]any{}
				}
				at = c[key]
			case []any:
				i, err := strconv.Atoi(key)
				if err != nil {
					panic(err)
				}
				at = c[i]
			}
		}
		last, m := keys[len(keys)-1], at.(map[string]any)
		if value == nil {
			delete(m, last)
			return
		}
		m[last] = value
	}
}

// Image replaces the image of the first container.
func Image(name string) func(map[string]any) {
	return func(o map[string]any) {
		Set("spec.template.spec.containers.0.image", name)(o)
	}
}
