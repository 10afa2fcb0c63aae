// SPDX-License-Identifier: Apache-2.0

//go:build integration

package policies

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestAStampCannotBeForgedThroughStatus(t *testing.T) {
	needsStampingPolicy(t)
	forgeJSON := `[{"op":"replace","path":"/metadata/annotations","value":{"plumbline.dev/writer":"ci"}}]`
	tests := map[string]struct {
		kind    types.PatchType
		patch   string
		refused bool
	}{
		"the writer replaced":              {types.MergePatchType, forge, true},
		"the writer removed":               {types.MergePatchType, `{"metadata":{"annotations":{"plumbline.dev/writer":null}}}`, true},
		"every annotation removed":         {types.MergePatchType, `{"metadata":{"annotations":null}}`, true},
		"all annotations replaced at once": {types.JSONPatchType, forgeJSON, true},
		"a hash stamp added":               {types.MergePatchType, `{"metadata":{"annotations":{"plumbline.dev/spec-hash":"pl1:sha256:00"}}}`, true},
		"a period of checks added":         {types.MergePatchType, `{"metadata":{"annotations":{"plumbline.dev/resync-period":"0s"}}}`, true},
		"a reason with an empty text":      {types.MergePatchType, `{"metadata":{"annotations":{"plumbline.dev/break-glass-reason":""}}}`, true},
		"an annotation of the deployment controller": {types.MergePatchType,
			`{"metadata":{"annotations":{"deployment.kubernetes.io/revision":"7"}},"status":{"observedGeneration":1}}`, false},
		"a status alone": {types.MergePatchType, `{"status":{"observedGeneration":1,"replicas":3,"readyReplicas":2}}`, false},
		"an annotation whose name only looks like ours": {types.MergePatchType, `{"metadata":{"annotations":{"plumbline.development/writer":"x"}}}`, false},
	}
	number := 0
	for name, test := range tests {
		number++
		d := deployment(fmt.Sprintf("status-%d", number))
		t.Run(name, func(t *testing.T) {
			if err := mustBe(t, "alice", "tenants").Create(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			controller := mustBe(t, "system:serviceaccount:kube-system:deployment-controller", "roots")
			err := controller.Status().Patch(t.Context(), d, client.RawPatch(test.kind, []byte(test.patch)))
			if got := apierrors.IsForbidden(err); got != test.refused || (err != nil && !got) {
				t.Fatalf("refused = %v (%v), want %v", got, err, test.refused)
			}
			if err != nil && !strings.Contains(err.Error(), "annotations of plumbline.dev and of kubectl apply cannot be changed through the status subresource") {
				t.Errorf("the message does not say why: %v", err)
			}
			if err := admin.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(by("alice"), stampOf(d)); diff != "" {
				t.Errorf("stamp (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAStatusOfACustomResourceCannotForgeEither(t *testing.T) {
	needsStampingPolicy(t)
	o := object("example.com/v1", "Widget", "status", nil)
	if err := mustBe(t, "alice", "roots").Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	err := admin.Status().Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{"status":{"a":1},"metadata":{"annotations":{"plumbline.dev/writer":"ci"}}}`)))
	if err != nil && !apierrors.IsForbidden(err) {
		t.Fatal(err)
	}
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(by("alice"), stampOf(o)); diff != "" {
		t.Errorf("stamp (-want +got):\n%s", diff)
	}
}
