// SPDX-License-Identifier: Apache-2.0

//go:build integration

package skew

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

func TestAnUpgradeKeepsObjectsAndARollbackDropsNewFieldsAlone(t *testing.T) {
	w := newWorld(t)
	former := w.schemas()
	objects := w.createObjects("objects.yaml")
	checkKinds(t, former, objects)
	before := w.readContents(objects)
	writes := w.startStream(objects)

	w.upgradeRelease()
	present := w.schemas()
	dropped := listNewFields(former, present)
	golden.Check(t, "testdata/dropped.txt", strings.Join(dropped, "\n")+"\n")
	if diff := cmp.Diff(before, w.readContents(objects)); diff != "" {
		t.Errorf("objects before and after the upgrade (-before +after):\n%s", diff)
	}

	objects = append(objects, w.createObjects("newer.yaml")...)
	before = w.readContents(objects)
	w.rollBackRelease()
	after := w.readContents(objects)
	checkDropped(t, former, dropped, before, after)

	w.annotateWritten()
	w.upgradeRelease()
	w.checkStream(writes)
	want := before
	written := "ABRelease/" + shop + "/written"
	want[written] = after[written]
	if diff := cmp.Diff(want, w.readContents(objects)); diff != "" {
		t.Errorf("objects after another upgrade; the API server stores a new field until a write of the object (-want +got):\n%s", diff)
	}
}

// checkKinds demands an object of each kind of the former release.
func checkKinds(t *testing.T, former map[string]*apiextensions.JSONSchemaProps, objects []*unstructured.Unstructured) {
	t.Helper()
	for kind := range former {
		if !slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind }) {
			t.Errorf("testdata/objects.yaml has no %s", kind)
		}
	}
}

// checkDropped compares objects after a rollback with the objects before, without the fields
// that the former schemas lack. Objects of a new kind stay, as its definition does.
func checkDropped(t *testing.T, former map[string]*apiextensions.JSONSchemaProps, dropped []string, before, after map[string]map[string]any) {
	t.Helper()
	want, lost := map[string]map[string]any{}, []string{}
	for id, content := range before {
		kind, _, _ := strings.Cut(id, "/")
		want[id] = content
		if schema := former[kind]; schema != nil {
			kept, below := pruneValue(kind+" ", schema, content)
			want[id], lost = kept.(map[string]any), append(lost, below...)
		}
	}
	if diff := cmp.Diff(want, after); diff != "" {
		t.Errorf("objects after the rollback, without the fields that the former release lacks (-want +got):\n%s", diff)
	}
	if len(lost) == 0 {
		t.Error("testdata/newer.yaml has no field that the rollback drops")
	}
	for _, path := range lost {
		if !slices.Contains(dropped, path) {
			t.Errorf("the rollback dropped %s, which is no new field", path)
		}
	}
}

// annotateWritten has a user write one of two equal releases after the rollback.
func (w *world) annotateWritten() {
	w.t.Helper()
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ABRelease"))
	o.SetNamespace(shop)
	o.SetName("written")
	must(w.t, w.clientOf("").Patch(w.t.Context(), o, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"example.org/write":"1"}}}`))))
}
