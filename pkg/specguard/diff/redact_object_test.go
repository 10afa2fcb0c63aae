// SPDX-License-Identifier: Apache-2.0

package diff_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon/canontest"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

func TestRedactObject(t *testing.T) {
	deployments := canon.ParseGVK("apps/v1", "Deployment")
	tests := map[string]struct {
		gvk          canon.GVK
		object, want string
	}{
		"the content stays, metadata and status do not": {
			deployments,
			`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","uid":"u"},"spec":{"replicas":3.0},"status":{"replicas":3}}`,
			`{"spec":{"replicas":3}}`,
		},
		"an env var of a password": {
			deployments,
			`{"spec":{"template":{"spec":{"containers":[{"name":"app","env":[{"name":"DB_PASSWORD","value":"hunter2"},{"name":"LEVEL","value":"debug"}]}]}}}}`,
			`{"spec":{"template":{"spec":{"containers":[{"env":[{"name":"DB_PASSWORD","value":"[redacted, ≤8 bytes]"},{"name":"LEVEL","value":"debug"}],"name":"app"}]}}}}`,
		},
		"a URL with a password": {
			deployments, `{"spec":{"x":"postgres://u:hunter2@db/x"}}`, `{"spec":{"x":"[redacted, ≤32 bytes]"}}`,
		},
		"a Secret": {
			canon.ParseGVK("v1", "Secret"),
			`{"apiVersion":"v1","kind":"Secret","data":{"a":"aHVudGVyMg=="},"stringData":{"password":"hunter2"},"type":"Opaque"}`,
			`{"data":{"a":"[redacted, ≤16 bytes]"},"stringData":{"password":"[redacted, ≤8 bytes]"},"type":"Opaque"}`,
		},
		"a ConfigMap": {
			canon.ParseGVK("v1", "ConfigMap"), `{"data":{"app.yaml":"password: hunter2"},"binaryData":{"c":"aHVudGVyMg=="}}`,
			`{"binaryData":{"c":"[redacted, ≤16 bytes]"},"data":{"app.yaml":"[redacted, ≤32 bytes]"}}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := diff.RedactObject([]byte(test.object), test.gvk)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(test.want, string(got)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
	if _, err := diff.RedactObject([]byte("nothing"), deployments); err == nil {
		t.Error("no error for a body that is none")
	}
}

// TestRedactObject_HidesEachPayload: no value below data, of whatever form, is kept.
func TestRedactObject_HidesEachPayload(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw, err := json.Marshal(map[string]any{
			"kind": "Secret", "data": map[string]any{"canary": canontest.Value(t, 3), "text": "canary-" + rapid.String().Draw(t, "text")},
		})
		if err != nil {
			t.Fatal(err)
		}
		got, err := diff.RedactObject(raw, canon.ParseGVK("v1", "Secret"))
		if err != nil {
			t.Skip("no object of Kubernetes")
		}
		var kept struct{ Data map[string]any }
		if err := json.Unmarshal(got, &kept); err != nil {
			t.Fatal(err)
		}
		hidden(t, kept.Data)
	})
}

// hidden fails for any scalar that is no marker.
func hidden(t *rapid.T, value any) {
	switch v := value.(type) {
	case map[string]any:
		for _, member := range v {
			hidden(t, member)
		}
	case []any:
		for _, element := range v {
			hidden(t, element)
		}
	case nil:
	case string:
		if !strings.HasPrefix(v, "[redacted, ") {
			t.Fatalf("%q is kept", v)
		}
	default:
		t.Fatalf("%v is kept", v)
	}
}
