// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"reflect"
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// body is the location of a body as a whole.
const body = "body"

// LocatePolicy returns where a policy of the API has a field of a RemediationPolicy: the location of
// spec.safety.maxPerHour is body.maxRemediationsPerHour. A field that the API does not have is located at
// the object around it.
func LocatePolicy(field string) string {
	return locate(reflect.TypeFor[Policy](), reflect.TypeFor[v1alpha1.RemediationPolicySpec](), field)
}

// elsewhere are the fields of an ABRelease that the API has at another place. The longest prefix counts.
var elsewhere = map[string]string{
	"spec.stable":                       "body.variations",
	"spec.rollout.strategyName":         "body.rolloutStrategy.name",
	"spec.trafficSplit.sticky":          "body.trafficSplit.stickyKey",
	"spec.trafficSplit.sticky.domain":   "body.trafficSplit.cookieDomain",
	"spec.trafficSplit.sticky.secure":   "body.trafficSplit.cookieSecure",
	"spec.trafficSplit.sticky.visitors": "body.trafficSplit.visitors",
}

// LocateRelease returns where a release of the API has a field of an ABRelease, as [LocatePolicy] does.
func LocateRelease(field string) string {
	const strategy = "spec.rollout.strategy"
	if rest, ok := strings.CutPrefix(field, strategy); ok && (rest == "" || rest[0] == '.') {
		at := locate(reflect.TypeFor[Strategy](), reflect.TypeFor[v1alpha1.RolloutStrategySpec](), "spec"+rest)
		return body + ".rolloutStrategy" + strings.TrimPrefix(at, body)
	}
	found := ""
	for prefix := range elsewhere {
		if len(prefix) > len(found) && (field == prefix || strings.HasPrefix(field, prefix+".")) {
			found = prefix
		}
	}
	if found != "" {
		return elsewhere[found]
	}
	return locate(reflect.TypeFor[Release](), reflect.TypeFor[v1alpha1.ABReleaseSpec](), field)
}

// verbFields are the fields of requests in the specs of kinds.
var verbFields = map[string]string{
	"reason": "body.reason", "stage": "body.stageNumber", "variation": "body.variation", "hash": "body.hash",
	"requestedByGroups": "body.groups", "policyName": "body.policyId", "targets": "body.targets",
}

// LocateVerb returns where the body of a verb has a field of the spec that the verb changes.
func LocateVerb(field string) string {
	name, _, _ := strings.Cut(field[strings.LastIndexByte(field, '.')+1:], "[")
	if location, known := verbFields[name]; known {
		return location
	}
	return body
}

// locate follows a path through a kind and through the type of this package side by side. An object that
// this package lacks has its fields in the object around it.
func locate(ours, kind reflect.Type, field string) string {
	switch field {
	case "metadata.name":
		return body + ".name"
	case "metadata.namespace":
		return body + ".namespace"
	}
	location := body
	path, found := strings.CutPrefix(field, "spec.")
	if !found {
		return location
	}
	for segment := range strings.SplitSeq(path, ".") {
		name, index, isItem := strings.Cut(segment, "[")
		inKind, found := fieldOf(kind, name)
		if !found {
			return location
		}
		kind = within(inKind.Type, isItem)
		counterpart, found := counterpartOf(ours, inKind.Name)
		if !found {
			continue
		}
		ours = within(counterpart.Type, isItem)
		location += "." + nameOf(&counterpart)
		if isItem {
			location += "[" + index
		}
	}
	return location
}

// within returns the type of a value without pointers around it, and of one item of a list or a map.
func within(t reflect.Type, isItem bool) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if isItem && (t.Kind() == reflect.Slice || t.Kind() == reflect.Map) {
		return within(t.Elem(), false)
	}
	return t
}

func nameOf(f *reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// fieldOf returns the field of a struct by its name in JSON.
func fieldOf(t reflect.Type, name string) (reflect.StructField, bool) {
	if t.Kind() == reflect.Struct {
		for _, f := range reflect.VisibleFields(t) {
			if nameOf(&f) == name {
				return f, true
			}
		}
	}
	return reflect.StructField{}, false
}

// counterpartOf returns the field of a type of this package for a field of a kind, as translate pairs
// them, or else the field of the same name, which the function of the object copies.
func counterpartOf(ours reflect.Type, name string) (byName reflect.StructField, found bool) {
	if ours.Kind() != reflect.Struct {
		return byName, false
	}
	for _, f := range reflect.VisibleFields(ours) {
		tag := f.Tag.Get("kind")
		if tag == name || tag == "" && f.Name == name && !f.Anonymous {
			return f, true
		}
		if tag == "-" && f.Name == name {
			byName, found = f, true
		}
	}
	return byName, found
}
