// SPDX-License-Identifier: Apache-2.0

//go:build integration

package policies

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
)

const (
	garbageCollector    = "system:serviceaccount:kube-system:generic-garbage-collector"
	namespaceController = "system:serviceaccount:kube-system:namespace-controller"
)

// who acts, with the rights that role bindings give them.
type who struct {
	user   string
	groups []string
}

var (
	alice   = who{"alice", []string{"tenants"}}
	root    = who{"root", []string{"roots"}}
	master  = who{"master", []string{"system:masters"}}
	judge   = who{assessor, nil}
	gc      = who{garbageCollector, []string{"roots"}}
	cleaner = who{namespaceController, []string{"roots"}}
)

// act is one request about the Baseline b and its revision r.
type act func(ctx context.Context, c client.Client, b *v1alpha1.Baseline, r *v1alpha1.BaselineRevision) error

func patchBaseline(patch string) act {
	return func(ctx context.Context, c client.Client, b *v1alpha1.Baseline, _ *v1alpha1.BaselineRevision) error {
		return c.Patch(ctx, b, client.RawPatch(types.MergePatchType, []byte(patch)))
	}
}

func patchRevision(patch string) act {
	return func(ctx context.Context, c client.Client, _ *v1alpha1.Baseline, r *v1alpha1.BaselineRevision) error {
		return c.Patch(ctx, r, client.RawPatch(types.MergePatchType, []byte(patch)))
	}
}

func patchStatus(ctx context.Context, c client.Client, b *v1alpha1.Baseline, _ *v1alpha1.BaselineRevision) error {
	return c.Status().Patch(ctx, b, client.RawPatch(types.MergePatchType, []byte(`{"status":{"state":"InSync"}}`)))
}

func deleteBaseline(ctx context.Context, c client.Client, b *v1alpha1.Baseline, _ *v1alpha1.BaselineRevision) error {
	return c.Delete(ctx, b)
}

func deleteRevision(ctx context.Context, c client.Client, _ *v1alpha1.Baseline, r *v1alpha1.BaselineRevision) error {
	return c.Delete(ctx, r)
}

func deleteAll(ctx context.Context, c client.Client, b *v1alpha1.Baseline, _ *v1alpha1.BaselineRevision) error {
	return c.DeleteAllOf(ctx, b, client.InNamespace(tenant), client.MatchingLabels{"only": b.Name})
}

func createBaseline(ctx context.Context, c client.Client, b *v1alpha1.Baseline, _ *v1alpha1.BaselineRevision) error {
	return c.Create(ctx, baseline(b.Name+"-more"))
}

func createRevision(ctx context.Context, c client.Client, b *v1alpha1.Baseline, _ *v1alpha1.BaselineRevision) error {
	return c.Create(ctx, revision(b.Name+"-2", b.Name))
}

// putAuthorized moves what was authorized as a whole PUT, labels and all.
func putAuthorized(ctx context.Context, c client.Client, b *v1alpha1.Baseline, _ *v1alpha1.BaselineRevision) error {
	b.Spec.Authorized.Hash = "pl1:sha256:bb"
	return c.Update(ctx, b)
}

func acceptBy(requestedBy, hash string) act {
	return patchBaseline(fmt.Sprintf(`{"spec":{"accept":{"hash":%q,"requestedBy":%q}}}`, hash, requestedBy))
}

func TestWhoMayWriteWhatOfABaseline(t *testing.T) {
	const (
		onlyCreates  = "only the assessor creates"
		onlyDeletes  = "only the assessor, the garbage collector and the namespace controller delete"
		onlyStatus   = "only the assessor writes the status"
		onlySpec     = "only the assessor writes the authorized content"
		onlyMetadata = "only the assessor changes owners, finalizers and labels"
		inOnesGroups = "spec.accept.requestedByGroups must be groups of the authenticated user"
		inOnesName   = "spec.accept.requestedBy must be the authenticated user"
	)
	tests := map[string]struct {
		who     who
		accept  *v1alpha1.AcceptRequest // there already
		act     act
		refused string // part of the message; empty: accepted
	}{
		"the assessor creates a Baseline":                      {judge, nil, createBaseline, ""},
		"the assessor creates a revision":                      {judge, nil, createRevision, ""},
		"the assessor moves what was authorized":               {judge, nil, putAuthorized, ""},
		"the assessor writes status":                           {judge, nil, patchStatus, ""},
		"the assessor deletes a Baseline":                      {judge, nil, deleteBaseline, ""},
		"the assessor deletes a revision":                      {judge, nil, deleteRevision, ""},
		"the assessor clears an acceptance":                    {judge, accepted("alice"), patchBaseline(`{"spec":{"accept":null}}`), ""},
		"the assessor authorizes beside an acceptance":         {judge, accepted("alice"), putAuthorized, ""},
		"the assessor cannot accept in another's name":         {judge, nil, acceptBy("alice", "h"), inOnesName},
		"alice accepts in her name":                            {alice, nil, acceptBy("alice", "h"), ""},
		"alice accepts by a group that she is not in":          {alice, nil, patchBaseline(`{"spec":{"accept":{"hash":"h","requestedBy":"alice","requestedByGroups":["platform"]}}}`), inOnesGroups},
		"alice adds a group to her acceptance":                 {alice, accepted("alice"), patchBaseline(`{"spec":{"accept":{"requestedByGroups":["platform"]}}}`), inOnesGroups},
		"alice accepts by a group that she is in":              {alice, nil, patchBaseline(`{"spec":{"accept":{"hash":"h","requestedBy":"alice","requestedByGroups":["system:authenticated"]}}}`), ""},
		"alice accepts in another's name":                      {alice, nil, acceptBy("bob", "h"), inOnesName},
		"alice moves the hash of bob's acceptance":             {alice, accepted("bob"), patchBaseline(`{"spec":{"accept":{"hash":"other"}}}`), inOnesName},
		"alice changes the reason of bob's acceptance":         {alice, accepted("bob"), patchBaseline(`{"spec":{"accept":{"reason":"x"}}}`), inOnesName},
		"alice replaces bob's acceptance by her own":           {alice, accepted("bob"), acceptBy("alice", "other"), ""},
		"alice annotates beside bob's acceptance":              {alice, accepted("bob"), patchBaseline(`{"metadata":{"annotations":{"note":"x"}}}`), ""},
		"alice withdraws an acceptance":                        {alice, accepted("alice"), patchBaseline(`{"spec":{"accept":null}}`), ""},
		"root cannot accept in another's name":                 {root, nil, acceptBy("alice", "h"), inOnesName},
		"alice moves the authorized hash":                      {alice, nil, patchBaseline(`{"spec":{"authorized":{"hash":"x"}}}`), onlySpec},
		"alice accepts and moves the hash at once":             {alice, nil, patchBaseline(`{"spec":{"authorized":{"hash":"x"},"accept":{"hash":"h","requestedBy":"alice"}}}`), onlySpec},
		"alice removes what was authorized":                    {alice, nil, patchBaseline(`{"spec":{"authorized":null}}`), onlySpec},
		"root moves what was authorized":                       {root, nil, putAuthorized, onlySpec},
		"a member of system:masters moves it":                  {master, nil, putAuthorized, onlySpec},
		"root writes status":                                   {root, nil, patchStatus, onlyStatus},
		"root creates a Baseline":                              {root, nil, createBaseline, onlyCreates},
		"root creates a revision":                              {root, nil, createRevision, onlyCreates},
		"root deletes a Baseline":                              {root, nil, deleteBaseline, onlyDeletes},
		"root deletes Baselines in bulk":                       {root, nil, deleteAll, onlyDeletes},
		"root deletes a revision":                              {root, nil, deleteRevision, onlyDeletes},
		"root gives a Baseline an owner that is gone":          {root, nil, patchBaseline(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"gone"}]}}`), onlyMetadata},
		"root adds a finalizer":                                {root, nil, patchBaseline(`{"metadata":{"finalizers":["example.com/stay"]}}`), onlyMetadata},
		"root moves a Baseline out of a selector":              {root, nil, patchBaseline(`{"metadata":{"labels":{"plumbline.dev/target-kind":"x"}}}`), onlyMetadata},
		"root gives a revision an owner that is gone":          {root, nil, patchRevision(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"gone"}]}}`), onlyMetadata},
		"root relabels a revision":                             {root, nil, patchRevision(`{"metadata":{"labels":{"plumbline.dev/baseline":"other"}}}`), onlyMetadata},
		"a write that changes nothing, as a storage migration": {root, nil, patchBaseline(`{}`), ""},
		"the garbage collector deletes a Baseline":             {gc, nil, deleteBaseline, ""},
		"the garbage collector removes an owner":               {gc, nil, patchBaseline(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"there"}]}}`), ""},
		"the garbage collector cannot move what is authorized": {gc, nil, putAuthorized, onlySpec},
		"the namespace controller deletes in bulk":             {cleaner, nil, deleteAll, ""},
		"the namespace controller deletes a revision":          {cleaner, nil, deleteRevision, ""},
		"the namespace controller cannot create":               {cleaner, nil, createBaseline, onlyCreates},
	}
	number := 0
	for name, test := range tests {
		number++
		objectName := fmt.Sprintf("baseline-%d", number)
		t.Run(name, func(t *testing.T) {
			b, r := givenBaseline(t, objectName, test.accept)
			err := test.act(t.Context(), mustBe(t, test.who.user, test.who.groups...), b, r)
			switch {
			case test.refused == "" && err != nil:
				t.Errorf("refused: %v", err)
			case test.refused != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), test.refused)):
				t.Errorf("error = %v, want Forbidden with %q", err, test.refused)
			}
		})
	}
}

func accepted(by string) *v1alpha1.AcceptRequest {
	return &v1alpha1.AcceptRequest{Hash: "pl1:sha256:cc", RequestedBy: by}
}

// givenBaseline makes, as the assessor, a Baseline with a revision and, as its
// author, an acceptance.
func givenBaseline(t *testing.T, name string, accept *v1alpha1.AcceptRequest) (*v1alpha1.Baseline, *v1alpha1.BaselineRevision) {
	t.Helper()
	b, r := baseline(name), revision(name+"-1", name)
	b.Labels = map[string]string{"only": name}
	for _, o := range []client.Object{b, r} {
		if err := mustBe(t, assessor).Create(t.Context(), o); err != nil {
			t.Fatalf("creating as the assessor: %v", err)
		}
	}
	if accept != nil {
		b.Spec.Accept = accept
		if err := mustBe(t, accept.RequestedBy, "tenants").Update(t.Context(), b); err != nil {
			t.Fatalf("accepting as %s: %v", accept.RequestedBy, err)
		}
	}
	return b, r
}

func TestATenantWithEditAloneCanNeitherAcceptNorUnguard(t *testing.T) {
	b, _ := givenBaseline(t, "edit-only", nil)
	editor := mustBe(t, "eve", "editors")
	if err := apiserver.Bind(t.Context(), admin, "editors-edit", "system:aggregate-to-edit", "editors"); err != nil {
		t.Fatal(err)
	}
	if err := apiserver.Bind(t.Context(), admin, "editors-history", "plumbline-history", "editors"); err != nil {
		t.Fatal(err)
	}
	err := acceptBy("eve", "h")(t.Context(), editor, b, nil)
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `cannot patch resource "baselines"`) {
		t.Errorf("accepting = %v, want forbidden by role", err)
	}
	guard := &v1alpha1.SpecGuard{}
	guard.Name, guard.Namespace = "any", tenant
	if err := editor.Delete(t.Context(), guard); !apierrors.IsForbidden(err) {
		t.Errorf("deleting a guard = %v, want forbidden", err)
	}
}
