// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// own moves the ownership of the changed fields as the API server does: all entries lose
// those fields, and the writer's entry gains the fields that are still there.
func (w *world) own(wr write, changes []diff.Change) {
	w.live.Managers = slices.Clone(w.live.Managers)
	var gained []canon.Path
	for _, c := range changes {
		for i := range w.live.Managers {
			w.moveField(&w.live.Managers[i], c.Path, false)
		}
		if c.Op != diff.Removed {
			gained = append(gained, c.Path)
		}
	}
	w.live.Managers = slices.DeleteFunc(w.live.Managers, func(e metav1.ManagedFieldsEntry) bool { return e.FieldsV1.GetRawString() == "{}" })
	if w.untracked || len(gained) == 0 && !wr.applies {
		return
	}
	e := metav1.ManagedFieldsEntry{
		Manager: wr.manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "apps/v1",
		Subresource: wr.sub, FieldsV1: metav1.NewFieldsV1("{}"),
	}
	if wr.applies {
		e.Operation = metav1.ManagedFieldsOperationApply
	}
	w.live.Managers = slices.DeleteFunc(w.live.Managers, func(o metav1.ManagedFieldsEntry) bool {
		same := o.Manager == e.Manager && o.Operation == e.Operation && o.Subresource == e.Subresource
		if same {
			e.FieldsV1 = o.FieldsV1
		}
		return same
	})
	for _, path := range gained {
		w.moveField(&e, path, true)
	}
	if wr.sub == "" {
		at := metav1.NewTime(w.now)
		e.Time = &at
	}
	w.live.Managers = append(w.live.Managers, e)
}

// moveField puts a path into an entry, or takes it and all below out.
func (w *world) moveField(e *metav1.ManagedFieldsEntry, path canon.Path, in bool) {
	w.t.Helper()
	fields := map[string]any{}
	if err := json.Unmarshal(e.FieldsV1.GetRawBytes(), &fields); err != nil {
		w.t.Fatal(err)
	}
	moveFieldIn(fields, path.Segments(), in)
	raw, err := json.Marshal(fields)
	if err != nil {
		w.t.Fatal(err)
	}
	e.FieldsV1 = metav1.NewFieldsV1(string(raw))
}

// bogusField is a field that no object has, and that an entry may name all the same.
const bogusField = "f:bogus"

func moveFieldIn(fields map[string]any, segments []canon.Segment, in bool) {
	key := "f:" + segments[0].Name()
	if keys := segments[0].Keys(); len(keys) > 0 {
		values := map[string]string{}
		for _, kv := range keys {
			values[kv.Key] = kv.Value
		}
		raw, _ := json.Marshal(values)
		key = "k:" + string(raw)
	}
	if len(segments) == 1 {
		was, _ := fields[key].(map[string]any)
		delete(fields, key)
		switch bogus, claimed := was[bogusField]; {
		case in:
			fields[key] = map[string]any{}
		case claimed: // no field of the object, so the API server does not see it go
			fields[key] = map[string]any{bogusField: bogus}
		}
		return
	}
	below, there := fields[key].(map[string]any)
	if !there {
		below = map[string]any{}
	}
	leaf := there && len(below) == 0
	moveFieldIn(below, segments[1:], in)
	switch {
	case len(below) > 0:
		fields[key] = below
		if leaf {
			below["."] = map[string]any{}
		}
	case there && !leaf:
		delete(fields, key)
	}
}
