// SPDX-License-Identifier: Apache-2.0

package repair

import (
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

// FieldManager names the executor in managedFields.
const FieldManager = "plumbline-executor"

// markFields are the fields that the executor keeps: its marks on the object.
var markFields = fieldpath.NewSet(
	fieldpath.MakePathOrDie("metadata", "labels", evidence.LabelPlan),
	fieldpath.MakePathOrDie("metadata", "labels", evidence.LabelStep),
	fieldpath.MakePathOrDie("metadata", "labels", evidence.LabelFence),
	fieldpath.MakePathOrDie("metadata", "annotations", AnnotationNotAfter),
	fieldpath.MakePathOrDie("metadata", "annotations", AnnotationFenced),
)

// FieldReturn is a merge patch that changes managedFields and no field of the object.
type FieldReturn struct {
	// Patch is bound to the uid and resourceVersion of the object.
	Patch []byte
	// To names the field managers that own the fields afterwards, as "helm (Apply)"; empty
	// when it is not known which ones owned the fields before.
	To []string
}

// ReturnFields makes the patch that gives the fields that a repair took over back to the
// field managers that owned them when the state was authorized. A field of an unknown owner
// has none afterwards: the next server-side apply takes it without a conflict. The result is
// nil when the executor owns no fields but its marks.
func ReturnFields(object *metav1.ObjectMeta, authorized []metav1.ManagedFieldsEntry) (*FieldReturn, error) {
	entries := slices.Clone(object.ManagedFields)
	taken := fieldpath.NewSet()
	for i := range entries {
		if !executors(&entries[i]) {
			continue
		}
		own, err := setOf(&entries[i])
		if err != nil {
			return nil, err
		}
		if extra := own.Difference(markFields); !extra.Empty() {
			taken = taken.Union(extra)
			if entries[i].FieldsV1, err = fieldsOf(own.Intersection(markFields)); err != nil {
				return nil, err
			}
		}
	}
	if taken.Empty() {
		return nil, nil //nolint:nilnil // nothing is to be given back
	}
	back := &FieldReturn{}
	for i := range authorized {
		owner := &authorized[i]
		if owner.Subresource != "" || executors(owner) {
			continue
		}
		next, err := giveTo(entries, owner, taken)
		if err != nil {
			return nil, err
		}
		if next != nil {
			entries = next
			back.To = append(back.To, fmt.Sprintf("%s (%s)", owner.Manager, owner.Operation))
		}
	}
	entries = slices.DeleteFunc(entries, func(e metav1.ManagedFieldsEntry) bool {
		return e.FieldsV1 == nil || e.FieldsV1.GetRawString() == "{}"
	})
	var err error
	back.Patch, err = json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": object.UID, "resourceVersion": object.ResourceVersion, "managedFields": entries,
	}})
	return back, err
}

// giveTo adds those of the fields that an owner had to its entry, and returns nil when it
// had none of them.
func giveTo(entries []metav1.ManagedFieldsEntry, owner *metav1.ManagedFieldsEntry, taken *fieldpath.Set) ([]metav1.ManagedFieldsEntry, error) {
	had, err := setOf(owner)
	if err != nil {
		return nil, err
	}
	given := taken.Intersection(had)
	if given.Empty() {
		return nil, nil
	}
	i := slices.IndexFunc(entries, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == owner.Manager && e.Operation == owner.Operation && e.APIVersion == owner.APIVersion && e.Subresource == ""
	})
	if i < 0 {
		entry := *owner
		entry.FieldsV1 = metav1.NewFieldsV1("{}")
		entries, i = append(entries, entry), len(entries)
	}
	has, err := setOf(&entries[i])
	if err != nil {
		return nil, err
	}
	entries[i].FieldsV1, err = fieldsOf(has.Union(given))
	return entries, err
}

// executors says that an entry is that of the executor's writes to the object itself.
func executors(e *metav1.ManagedFieldsEntry) bool {
	return e.Manager == FieldManager && e.Subresource == ""
}

func setOf(e *metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	set := fieldpath.NewSet()
	if e.FieldsV1 == nil {
		return set, nil
	}
	if err := set.FromJSON(e.FieldsV1.GetRawReader()); err != nil {
		return nil, fmt.Errorf("reading the fields of the field manager %q: %w", e.Manager, err)
	}
	return set, nil
}

func fieldsOf(set *fieldpath.Set) (*metav1.FieldsV1, error) {
	raw, err := set.ToJSON()
	if err != nil {
		return nil, fmt.Errorf("writing the fields of a field manager: %w", err)
	}
	return metav1.NewFieldsV1(string(raw)), nil
}

// KeepsFields says whether the executor owns fields of an object beside its marks. Fields
// that cannot be read count as none.
func KeepsFields(object *metav1.ObjectMeta) bool {
	back, err := ReturnFields(&metav1.ObjectMeta{UID: types.UID("any"), ManagedFields: object.ManagedFields}, nil)
	return err == nil && back != nil
}
