// SPDX-License-Identifier: Apache-2.0

//go:build integration

package kinds

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
)

// smallest valid spec of each kind.
var smallest = map[string]string{
	"Environment":      smallestEnvironment,
	"GuardDefaults":    "{}",
	"ClusterSpecGuard": smallestGuard,
	"SpecGuard":        smallestGuard,
	"Baseline":         smallestBaseline,
	"BaselineRevision": smallestRevision,

	"RemediationPolicy": smallestPolicy,
	"RemediationPlan":   smallestPlan,
	"RemediationLedger": smallestLedger,

	"RemediationRequest": smallestRequest,

	"EffectivenessAssessment": smallestAssessment,

	"ReleaseWork": smallestWork,
}

// TestUnknownFields: kubectl asks for strict decoding and is told of a misspelt
// field; a client that does not ask loses the field, never has it stored.
func TestUnknownFields(t *testing.T) {
	for kind, spec := range smallest {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			obj := object(t, kind, "unknown-field", spec, "trustedWriter: {users: [alice]}")
			err := dryCreate(t, obj.DeepCopy())
			if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), `unknown field "spec.trustedWriter"`) {
				t.Errorf("strict: got %v, want a refusal that names spec.trustedWriter", err)
			}
			if err := kube.Create(t.Context(), obj, client.DryRunAll, client.FieldValidation(metav1.FieldValidationIgnore)); err != nil {
				t.Fatalf("lenient: %v", err)
			}
			if _, stored := obj.Object["spec"].(map[string]any)["trustedWriter"]; stored {
				t.Error("the unknown field was kept")
			}
		})
	}
}

// TestDefaults: what a person leaves out means the strict or quiet choice.
func TestDefaults(t *testing.T) {
	cases := map[string]map[string]any{
		"SpecGuard":        {"mode": "Audit", "objectOverride": "Forbidden", "authenticatedDeletes": "NotRequired"},
		"ClusterSpecGuard": {"mode": "Audit", "objectOverride": "Forbidden", "authenticatedDeletes": "NotRequired"},
		"GuardDefaults":    {},
		"Environment":      {},
		"Baseline":         {},
		"BaselineRevision": {},

		"RemediationPolicy": policyDefaults,
		"RemediationPlan":   {},
		"RemediationLedger": {},

		"RemediationRequest": {},

		"EffectivenessAssessment": {},

		"ReleaseWork": {},
	}
	for kind, added := range cases {
		t.Run(kind, func(t *testing.T) {
			obj := object(t, kind, "defaults", smallest[kind])
			want := obj.DeepCopy().Object["spec"].(map[string]any)
			maps.Copy(want, added)
			if err := dryCreate(t, obj); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, obj.Object["spec"]); diff != "" {
				t.Errorf("spec as stored (-want +got):\n%s", diff)
			}
		})
	}
}

// TestGuardableKinds compares the closed list of built-in kinds with what this
// API server serves: whatever is namespaced, built in, and can be listed,
// watched and written must be guardable, or be left out here with a reason.
func TestGuardableKinds(t *testing.T) {
	leftOut := map[string]string{
		" Secret":                            "its values would have to be stored",
		" Event":                             "a message, not a wish",
		"events.k8s.io Event":                "a message, not a wish",
		" Endpoints":                         "computed from Services and Pods",
		"discovery.k8s.io EndpointSlice":     "computed from Services and Pods",
		"coordination.k8s.io Lease":          "a heartbeat",
		"coordination.k8s.io LeaseCandidate": "a heartbeat",
		"storage.k8s.io CSIStorageCapacity":  "a report of the storage driver",

		"certificates.k8s.io PodCertificateRequest": "a request of one kubelet for one pod; its spec is immutable",
	}
	for _, gvk := range builtinNamespacedKinds(t) {
		apiVersion, kind := gvk.ToAPIVersionAndKind()
		err := dryCreate(t, object(t, "SpecGuard", "builtin", "resources: [{apiVersion: "+apiVersion+", kind: "+kind+"}]"))
		switch reason, out := leftOut[gvk.Group+" "+kind]; {
		case out && err == nil:
			t.Errorf("%v is accepted, though it is left out (%s)", gvk, reason)
		case !out && err != nil:
			t.Errorf("%v is refused, and no reason is given here: %v", gvk, err)
		}
	}
}

// builtinNamespacedKinds lists what the API server serves without CRDs.
func builtinNamespacedKinds(t *testing.T) []schema.GroupVersionKind {
	t.Helper()
	out, err := apiserver.Kinds(config, apiserver.NamespacedObjects)
	if err != nil {
		t.Fatal(err)
	}
	out = slices.DeleteFunc(out, func(gvk schema.GroupVersionKind) bool { return gvk.Group == "plumbline.dev" })
	if len(out) < 25 {
		t.Fatalf("discovery shows only %d namespaced kinds, so this test would prove nothing: %v", len(out), out)
	}
	return out
}
