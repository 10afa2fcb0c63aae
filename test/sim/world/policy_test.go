// SPDX-License-Identifier: Apache-2.0

package world

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// fieldsOf names the fields of a type as in JSON. Of the API's own structs it names those
// inside; anything else is one field.
func fieldsOf(of reflect.Type, path string) []string {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || of.PkgPath() != reflect.TypeFor[v1alpha1.RemediationPolicySpec]().PkgPath() {
		return []string{path}
	}
	var all []string
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		all = append(all, fieldsOf(field.Type, strings.TrimPrefix(path+"."+name, "."))...)
	}
	return all
}

// whole are fields that are edited as a whole: their parts make sense together alone.
var whole = []string{"escalation", "schedule.maintenanceWindow"}

// A policy that gains a field has a person who edits that field, or a reason why not.
func TestEachFieldOfAPolicyIsEdited(t *testing.T) {
	untouched := map[string]bool{}
	for _, field := range fieldsOf(reflect.TypeFor[v1alpha1.RemediationPolicySpec](), "") {
		for _, w := range whole {
			if strings.HasPrefix(field, w+".") {
				field = w
			}
		}
		if fixed()[field] == "" {
			untouched[field] = true
		}
	}
	for _, edit := range edits() {
		spec := v1alpha1.RemediationPolicySpec{Safety: v1alpha1.RemediationSafety{CircuitBreaker: v1alpha1.CircuitBreakerSettings{OpenDuration: &metav1.Duration{}}}}
		before := jsonOf(t, spec)
		edit.do(&spec)
		changed := changedBetween(before, jsonOf(t, spec), "")
		if len(changed) == 0 {
			t.Errorf("the edit of %s changes nothing", edit.field)
		}
		for _, field := range changed {
			maps.DeleteFunc(untouched, func(of string, _ bool) bool { return field == of || strings.HasPrefix(field, of+".") })
		}
	}
	if left := slices.Sorted(maps.Keys(untouched)); len(left) > 0 {
		t.Errorf("no person edits %s", strings.Join(left, ", "))
	}
}

func jsonOf(t *testing.T, spec v1alpha1.RemediationPolicySpec) map[string]any {
	t.Helper()
	raw, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// changedBetween names what differs between two objects.
func changedBetween(before, after any, path string) []string {
	was, isObject := before.(map[string]any)
	is, areObjects := after.(map[string]any)
	if !isObject && before != nil || !areObjects {
		if reflect.DeepEqual(before, after) {
			return nil
		}
		return []string{path}
	}
	var all []string
	for name := range is {
		all = append(all, changedBetween(was[name], is[name], strings.TrimPrefix(path+"."+name, "."))...)
	}
	return all
}
