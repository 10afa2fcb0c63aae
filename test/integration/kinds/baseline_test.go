// SPDX-License-Identifier: Apache-2.0

//go:build integration

package kinds

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	smallestBaseline = `target: {apiVersion: apps/v1, kind: Deployment, name: web}`
	smallestRevision = `{baselineName: deployments.apps.web, number: 1, hash: h, authorizationTime: '2026-01-01T00:00:00Z', encoding: Zstd, body: aGk=, size: 2}`
	authorized       = `authorized: {uid: u, hash: h, revision: r, number: 1, by: ci, authorizationTime: '2026-01-01T00:00:00Z', origin: Created}`
)

func TestBaseline_Fields(t *testing.T) {
	auth := func(from, to string) string { return strings.Replace(authorized, from, to, 1) }
	runSpecCases(t, "Baseline", smallestBaseline, map[string]specCase{
		"an object that nobody authorized is accepted": {},
		"an authorized state is accepted":              {spec: authorized},
		"an accept request is accepted":                {spec: "accept: {hash: h, requestedBy: alice, reason: planned}"},
		"no target is refused":                         {"target: null", []string{"spec.target"}, "Required value"},
		"a target without a name is refused":           {"target: {apiVersion: apps/v1, kind: Deployment}", []string{"spec.target.name"}, "Required value"},
		"an authorized state without a hash, refused":  {auth("hash: h, ", ""), []string{"spec.authorized.hash"}, "Required value"},
		"an authorized state number 0 is refused":      {auth("number: 1", "number: 0"), []string{"spec.authorized.number"}, "should be greater than or equal to 1"},
		"a number that JSON clients round is refused":  {auth("number: 1", "number: 9007199254740992"), []string{"spec.authorized.number"}, "should be less than or equal to 9007199254740991"},
		"an unknown origin is refused":                 {auth("Created", "Adopted"), []string{"spec.authorized.origin"}, `supported values: "Created", "Imported"`},
		"an accept request of nobody is refused":       {"accept: {hash: h}", []string{"spec.accept.requestedBy"}, "Required value"},
		"an accept request for nothing is refused":     {"accept: {requestedBy: alice}", []string{"spec.accept.hash"}, "Required value"},
		"an accept request by 1 MiB of name, refused":  {"accept: {hash: h, requestedBy: " + strings.Repeat("u", 1<<20) + "}", []string{"spec.accept.requestedBy"}, "may not be more than 1024"},
		"an overlong reason is refused":                {"accept: {hash: h, requestedBy: a, reason: " + strings.Repeat("r", 257) + "}", []string{"spec.accept.reason"}, "may not be more than 256"},
	})
}

func TestBaselineRevision_Fields(t *testing.T) {
	runSpecCases(t, "BaselineRevision", smallestRevision, map[string]specCase{
		"a revision is accepted":                {},
		"the largest body is accepted":          {spec: "body: " + strings.Repeat("QUFB", 1<<18)},
		"a larger body is refused":              {"body: " + strings.Repeat("QUFB", 1<<18+1), []string{"spec.body"}, "may not be more than 1048576"},
		"an empty body is refused":              {"body: ''", []string{"spec.body"}, "should be at least 1 chars"},
		"a body that is not base64 is refused":  {"body: '***'", []string{"spec.body"}, "must be of type byte"},
		"an unknown encoding is refused":        {"encoding: Gzip", []string{"spec.encoding"}, `supported values: "Zstd"`},
		"number 0 is refused":                   {"number: 0", []string{"spec.number"}, "should be greater than or equal to 1"},
		"no Baseline is refused":                {"baselineName: null", []string{"spec.baselineName"}, "Required value"},
		"a size beyond what is read is refused": {"size: 8388609", []string{"spec.size"}, "should be less than or equal to 8388608"},
	})
}

// TestTransitions: what may not change, may not be removed either. A rule about
// the old and the new value is silent when one of them is null, so every such
// field must be required (measured on Kubernetes 1.36).
func TestTransitions(t *testing.T) {
	create(t, object(t, "Baseline", "transitions", smallestBaseline, authorized))
	create(t, object(t, "BaselineRevision", "transitions", smallestRevision))
	cases := map[string]struct {
		kind, patch string
		fields      []string
		message     string
	}{
		"a person may ask to accept":                 {kind: "Baseline", patch: `{"spec":{"accept":{"hash":"h","requestedBy":"alice"}}}`},
		"the authorized state may move":              {kind: "Baseline", patch: `{"spec":{"authorized":{"hash":"h2","number":2}}}`},
		"a label may change":                         {kind: "BaselineRevision", patch: `{"metadata":{"labels":{"a":"b"}}}`},
		"another name of the target is refused":      {"Baseline", `{"spec":{"target":{"name":"api"}}}`, []string{"spec.target"}, "target is immutable"},
		"another group of the target is refused":     {"Baseline", `{"spec":{"target":{"apiVersion":"example.org/v1"}}}`, []string{"spec.target"}, "target is immutable"},
		"another version of the target is accepted":  {"Baseline", `{"spec":{"target":{"apiVersion":"apps/v1beta2"}}}`, nil, ""},
		"another kind of the target is refused":      {"Baseline", `{"spec":{"target":{"kind":"StatefulSet"}}}`, []string{"spec.target"}, "target is immutable"},
		"removing the target is refused":             {"Baseline", `{"spec":{"target":null}}`, []string{"spec.target"}, "Required value"},
		"removing the spec is refused":               {"Baseline", `{"spec":null}`, []string{"spec"}, "Required value"},
		"removing the name of the target is refused": {"Baseline", `{"spec":{"target":{"name":null}}}`, []string{"spec.target.name"}, "Required value"},
		"another body of a revision is refused":      {"BaselineRevision", `{"spec":{"body":"aGk2"}}`, []string{"spec"}, "a BaselineRevision is immutable"},
		"another author of a revision is refused":    {"BaselineRevision", `{"spec":{"by":"mallory"}}`, []string{"spec"}, "a BaselineRevision is immutable"},
		"removing the body of a revision is refused": {"BaselineRevision", `{"spec":{"body":null}}`, []string{"spec.body"}, "Required value"},
		"removing the spec of a revision is refused": {"BaselineRevision", `{"spec":null}`, []string{"spec"}, "Required value"},
		"replacing the spec by nothing at all, refused": {"BaselineRevision", `{"spec":{"baselineName":null,"number":null,"hash":null,"authorizationTime":null,"encoding":null,"body":null,"size":null}}`,
			[]string{"spec.baselineName", "spec.number", "spec.hash", "spec.authorizationTime", "spec.encoding", "spec.body", "spec.size"}, "Required value"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := dryPatch(t, tc.kind, "transitions", tc.patch)
			if len(tc.fields) == 0 {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			assertRefused(t, err, tc.message, tc.fields...)
		})
	}
}

// TestSpecIsRequired: an object without a spec means nothing, of any kind.
func TestSpecIsRequired(t *testing.T) {
	for kind := range smallest {
		t.Run(kind, func(t *testing.T) {
			obj := object(t, kind, "no-spec")
			delete(obj.Object, "spec")
			assertRefused(t, dryCreate(t, obj), "Required value", "spec")
		})
	}
}

func dryPatch(t *testing.T, kind, name, patch string) error {
	t.Helper()
	return kube.Patch(t.Context(), object(t, kind, name), client.RawPatch(types.MergePatchType, []byte(patch)),
		client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
}
