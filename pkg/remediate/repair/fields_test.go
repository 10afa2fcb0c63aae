// SPDX-License-Identifier: Apache-2.0

package repair_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/remediate/repair"
)

const (
	imageField    = `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{"f:image":{}}}}}}}`
	replicasField = `{"f:spec":{"f:replicas":{}}}`
	bothFields    = `{"f:spec":{"f:replicas":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{"f:image":{}}}}}}}`
	markedImage   = `{"f:metadata":{"f:labels":{"f:plumbline.dev/plan":{},"f:plumbline.dev/step":{}}},"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{"f:image":{}}}}}}}`
	markFields    = `{"f:metadata":{"f:labels":{"f:plumbline.dev/plan":{},"f:plumbline.dev/step":{}}}}`
)

func entry(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: operation, APIVersion: "apps/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
}

// D19 of the review of remediation: after a repair the next server-side apply of the pipeline
// failed, with a conflict with the executor.
func TestTheFieldsOfARepairGoBackToTheirFieldManagers(t *testing.T) {
	apply, update := metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate
	type entries = []metav1.ManagedFieldsEntry
	status := entry(repair.FieldManager, update, bothFields)
	status.Subresource = "status"
	tests := map[string]struct {
		live, authorized entries
		want             map[string]string
		to               []string
	}{
		"to the one that still owns others": {
			entries{entry("helm", apply, replicasField), entry(repair.FieldManager, update, markedImage)}, entries{entry("helm", apply, bothFields)},
			map[string]string{"helm Apply": bothFields, repair.FieldManager + " Update": markFields}, []string{"helm (Apply)"},
		},
		"to one that owns none any more": {
			entries{entry(repair.FieldManager, update, markedImage)}, entries{entry("helm", apply, bothFields)},
			map[string]string{"helm Apply": imageField, repair.FieldManager + " Update": markFields}, []string{"helm (Apply)"},
		},
		"to both that owned it": {
			entries{entry(repair.FieldManager, update, imageField)}, entries{entry("helm", apply, imageField), entry("kubectl", update, bothFields)},
			map[string]string{"helm Apply": imageField, "kubectl Update": imageField}, []string{"helm (Apply)", "kubectl (Update)"},
		},
		"another field manager keeps what it owns": {
			entries{entry("vpa", update, replicasField), entry(repair.FieldManager, update, markedImage)}, entries{entry("helm", apply, imageField)},
			map[string]string{"vpa Update": replicasField, "helm Apply": imageField, repair.FieldManager + " Update": markFields}, []string{"helm (Apply)"},
		},
		"a field of an unknown owner has none": {
			entries{entry("helm", apply, replicasField), entry(repair.FieldManager, update, markedImage)}, nil,
			map[string]string{"helm Apply": replicasField, repair.FieldManager + " Update": markFields}, nil,
		},
		"an earlier repair owned it":            {entries{entry(repair.FieldManager, update, imageField)}, entries{entry(repair.FieldManager, update, imageField)}, map[string]string{}, nil},
		"the marks alone stay":                  {entries{entry(repair.FieldManager, update, markFields)}, entries{entry("helm", apply, bothFields)}, nil, nil},
		"what a subresource owns is left alone": {entries{status}, entries{entry("helm", apply, bothFields)}, nil, nil},
		"without field managers":                {nil, entries{entry("helm", apply, bothFields)}, nil, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before, _ := json.Marshal(test.live)
			object := &metav1.ObjectMeta{UID: "uid", ResourceVersion: "42", ManagedFields: test.live}
			back, err := repair.ReturnFields(object, test.authorized)
			if err != nil {
				t.Fatal(err)
			}
			if repair.KeepsFields(object) != (test.want != nil) {
				t.Errorf("it keeps fields: %t", repair.KeepsFields(object))
			}
			if after, _ := json.Marshal(test.live); string(after) != string(before) {
				t.Errorf("the entries of the object were changed to %s", after)
			}
			if back == nil || test.want == nil {
				if (back == nil) != (test.want == nil) {
					t.Fatalf("got %+v", back)
				}
				return
			}
			if diff := cmp.Diff(test.to, back.To); diff != "" {
				t.Errorf("to (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.want, owners(t, back.Patch)); diff != "" {
				t.Errorf("owners (-want +got):\n%s", diff)
			}
		})
	}
}

// owners reads who owns what after a patch, which has to be bound to the object and to
// change nothing else.
func owners(t *testing.T, patch []byte) map[string]string {
	t.Helper()
	var sent map[string]map[string]json.RawMessage
	if err := json.Unmarshal(patch, &sent); err != nil {
		t.Fatal(err)
	}
	metadata := sent["metadata"]
	if len(sent) != 1 || len(metadata) != 3 || string(metadata["uid"]) != `"uid"` || string(metadata["resourceVersion"]) != `"42"` {
		t.Errorf("the patch is %s", patch)
	}
	var entries []metav1.ManagedFieldsEntry
	if err := json.Unmarshal(metadata["managedFields"], &entries); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, e := range entries {
		out[e.Manager+" "+string(e.Operation)] = e.FieldsV1.GetRawString()
	}
	return out
}

func TestFieldsThatCannotBeReadStayAsTheyAre(t *testing.T) {
	broken := metav1.ManagedFieldsEntry{Manager: repair.FieldManager, Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:spec":`)}
	object := &metav1.ObjectMeta{UID: "uid", ManagedFields: []metav1.ManagedFieldsEntry{broken}}
	if back, err := repair.ReturnFields(object, nil); err == nil {
		t.Errorf("got %+v", back)
	}
	if repair.KeepsFields(object) {
		t.Error("the executor would try again and again")
	}
}
