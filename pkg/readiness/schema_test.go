// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// D20 of the review of remediation: a ServiceMonitor was put back correctly, and then
// counted as unhealthy, because it says nothing about itself.
func TestACustomObjectWithoutStatusIsReadyWhenItIsStored(t *testing.T) {
	const (
		bare    = `{"metadata":{"generation":3},"spec":{"endpoints":[{"port":"http"}]}}`
		empty   = `{"metadata":{"generation":3},"spec":{},"status":{}}`
		foreign = `{"metadata":{"generation":3},"status":{"bindings":[{"conditions":[{"type":"Accepted","status":"True"}]}]}}`
	)
	type told struct {
		State   State
		Message string
	}
	stored := told{Ready, "a Widget is ready as it is stored: its kind reports no conditions"}
	waits := told{NotReady, "its controller has not reported yet"}
	silent := told{Unknown, "it does not say whether it is ready"}
	tests := map[string]struct {
		object string
		status Status
		want   told
	}{
		"its kind has no conditions":                                {bare, StatusNone, stored},
		"its kind has no conditions, and its status is empty":       {empty, StatusNone, stored},
		"its kind has no conditions, and its status other fields":   {foreign, StatusNone, stored},
		"its controller has not written its first status":           {bare, StatusReported, waits},
		"its controller has written an empty status":                {empty, StatusReported, waits},
		"its controller has written other fields of its status":     {foreign, StatusReported, waits},
		"the conditions are there and empty":                        {`{"metadata":{"generation":1},"status":{"conditions":[]}}`, StatusReported, waits},
		"the schema of its kind is not known":                       {bare, StatusUnknown, silent},
		"a schema of a later version":                               {bare, "Sometimes", silent},
		"it reports conditions that no rule knows":                  {`{"metadata":{"generation":1},"status":{"conditions":[{"type":"Synced","status":"True"}]}}`, StatusReported, silent},
		"it reports conditions although its schema has none":        {`{"metadata":{"generation":1},"status":{"conditions":[{"type":"Synced","status":"False"}]}}`, StatusNone, silent},
		"it says that it is not ready although its schema has none": {`{"metadata":{"generation":1},"status":{"conditions":[{"type":"Ready","status":"False","reason":"Broken"}]}}`, StatusNone, told{NotReady, "it says that it is not ready: Broken"}},
		"its conditions are none":                                   {`{"metadata":{"generation":1},"status":{"conditions":"fine"}}`, StatusNone, silent},
		"it is being deleted":                                       {`{"metadata":{"generation":1,"deletionTimestamp":"2026-01-02T03:04:05Z"}}`, StatusNone, told{NotReady, "it is being deleted"}},
		"it tells the generation that was looked at":                {`{"metadata":{"generation":2},"status":{"observedGeneration":1}}`, StatusNone, told{NotReady, "generation 2 was not looked at yet, only 1"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			state, message := Judge([]byte(test.object), widgets, Knowledge{Status: test.status})
			if diff := cmp.Diff(test.want, told{state, message}); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

// The schema is asked for where it decides, and not at every reading of every object.
func TestTheSchemaIsAskedOfAKindWhoseObjectIsSilent(t *testing.T) {
	tests := map[string]struct {
		gvk    canon.GVK
		object string
		want   bool
	}{
		"a custom object without a status":            {widgets, `{"spec":{}}`, true},
		"a custom object with other fields":           {widgets, `{"status":{"phase":"Happy"}}`, true},
		"a custom object with conditions":             {widgets, `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`, false},
		"a custom object with observedGeneration":     {widgets, `{"status":{"observedGeneration":1}}`, false},
		"an object of Kubernetes":                     {configMaps, `{"data":{}}`, false},
		"a workload that its controller has not seen": {deployments, `{"metadata":{"generation":1}}`, false},
		"what cannot be read":                         {widgets, `{`, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Silent([]byte(test.object), test.gvk); got != test.want {
				t.Errorf("silent: %t, want %t", got, test.want)
			}
		})
	}
}

func TestWhatTheSchemaOfAKindLetsItsObjectsReport(t *testing.T) {
	const ours = `"x-kubernetes-group-version-kind":[{"group":"example.com","kind":"Widget","version":"v1"}]`
	document := func(widget string) string {
		return `{"components":{"schemas":{"com.example.v1.Other":{"properties":{"status":{"properties":{"conditions":{}}}},` +
			`"x-kubernetes-group-version-kind":[{"group":"example.com","kind":"Other","version":"v1"}]},"com.example.v1.Widget":{` + ours + widget + `},` +
			`"WidgetStatus":{"properties":{"conditions":{"type":"array"}}},"Loop":{"allOf":[{"$ref":"#/components/schemas/Loop"}]}}},` +
			`"paths":{"/apis/example.com/v1/namespaces/{namespace}/others/{name}/status":{"get":{"x-kubernetes-group-version-kind":{"group":"example.com","kind":"Other","version":"v1"}}}}}`
	}
	status := func(s string) string { return document(`,"properties":{"spec":{"type":"object"},"status":` + s + `}`) }
	const subresource = `"/apis/example.com/v1/namespaces/{namespace}/widgets/{name}/status":{"get":{"x-kubernetes-group-version-kind":{"group":"example.com","kind":"Widget","version":"v1"}}}`
	tests := map[string]struct {
		document string
		want     Status
	}{
		"no status":                            {document(`,"properties":{"spec":{"type":"object"}}`), StatusNone},
		"a status of other fields":             {status(`{"type":"object","properties":{"phase":{"type":"string"}}}`), StatusNone},
		"a status without fields":              {status(`{"type":"object"}`), StatusNone},
		"conditions":                           {status(`{"type":"object","properties":{"conditions":{"type":"array"}}}`), StatusReported},
		"observedGeneration":                   {status(`{"type":"object","properties":{"observedGeneration":{"type":"integer"}}}`), StatusReported},
		"conditions of a status of any fields": {status(`{"x-kubernetes-preserve-unknown-fields":true,"properties":{"conditions":{"type":"array"}}}`), StatusReported},
		"a status of any fields":               {status(`{"type":"object","x-kubernetes-preserve-unknown-fields":true}`), StatusUnknown},
		"a status of additional fields":        {status(`{"type":"object","additionalProperties":{"type":"string"}}`), StatusUnknown},
		"a status of no additional fields":     {status(`{"type":"object","additionalProperties":false}`), StatusNone},
		"conditions by a reference":            {status(`{"allOf":[{"$ref":"#/components/schemas/WidgetStatus"}],"default":{}}`), StatusReported},
		"a reference that leads nowhere":       {status(`{"$ref":"#/components/schemas/Gone"}`), StatusUnknown},
		"a reference that never ends":          {status(`{"$ref":"#/components/schemas/Loop"}`), StatusUnknown},
		"an object of any fields":              {document(`,"type":"object","x-kubernetes-preserve-unknown-fields":true`), StatusNone},
		"an object without a schema":           {document(`,"type":"object"`), StatusNone},
		"an object of any fields, and a status of its own": {
			`{"components":{"schemas":{"w":{` + ours + `,"x-kubernetes-preserve-unknown-fields":true}}},"paths":{` + subresource + `}}`, StatusUnknown,
		},
		"a status that is pruned": {
			`{"components":{"schemas":{"w":{` + ours + `,"properties":{"spec":{}}}}},"paths":{` + subresource + `}}`, StatusNone,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := StatusOf([]byte(test.document), widgets)
			if err != nil || got != test.want {
				t.Errorf("got %q, %v; want %q", got, err, test.want)
			}
		})
	}
	for name, document := range map[string]string{
		"no JSON":                   `{`,
		"a document of other kinds": `{"components":{"schemas":{"v1.Other":{"x-kubernetes-group-version-kind":[{"group":"example.com","kind":"Other","version":"v1"}]}}}}`,
		"a document without any":    `{}`,
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := StatusOf([]byte(document), widgets); err == nil || got != StatusUnknown {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}
