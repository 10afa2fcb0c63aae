// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
)

// addDefaults gives the kind of widgets defaults of fields of the spec, and waits until
// the API server serves the last one.
func (w *world) addDefaults(name string, fields ...string) {
	w.t.Helper()
	properties := make([]string, len(fields))
	for i, field := range fields {
		properties[i] = fmt.Sprintf(`%q:{"type":"string","default":"strict"}`, field)
	}
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(apiextensions.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	crd.SetName("widgets." + widgets.Group)
	w.Must(admin.Patch(w.Ctx(), crd, client.RawPatch(types.JSONPatchType, fmt.Appendf(nil,
		`[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties","value":{"spec":{"type":"object",`+
			`"x-kubernetes-preserve-unknown-fields":true,"properties":{%s}}}}]`, strings.Join(properties, ",")))))
	w.Eventually("the default is served", func() error {
		u := w.widget(name)
		if err := admin.Get(w.Ctx(), client.ObjectKeyFromObject(u), u); err != nil {
			return err
		}
		if _, found, err := unstructured.NestedString(u.Object, "spec", fields[len(fields)-1]); err != nil || !found {
			return fmt.Errorf("it is not: %w", err)
		}
		return nil
	})
}

// takesOver waits until a revision of an object is authorized because of a new default.
func (w *world) takesOver(name string, revision int64) {
	w.t.Helper()
	w.Until(name, fmt.Sprintf("the API server makes revision %d", revision), func(b *v1alpha1.Baseline) error {
		if b.Status.State == v1alpha1.StateDrifted {
			w.t.Fatalf("a default is drift: %s", guarded.Describe(b))
		}
		if guarded.Authorized(b) != revision || b.Spec.Authorized.By != "system:apiserver" || b.Status.State != v1alpha1.StateInSync {
			return errors.New("it has not")
		}
		return nil
	})
}

// H7 of the guard's review: nothing was written, and each object drifted.
func TestANewDefaultOfACustomKindIsNoDrift(t *testing.T) {
	w, p := widgetWorld(t)
	names := []string{"one", "two"}
	for _, name := range names {
		w.makeWidget(ci, name, "red")
		w.UntilIs(name, "InSync")
	}
	w.addDefaults("one", "tls")
	for _, name := range names {
		w.takesOver(name, 2)
	}
	w.setWidget(mallory, "one", "color", "black")
	w.UntilIs("one", "Drifted: Changed /spec/color by mallory (Untrusted, WriterStamp)")
	w.setWidget(ci, "one", "color", "red")
	w.UntilIs("one", "InSync")
	p.Halt(t)
	w.addDefaults("one", "tls", "mode")
	start(t)
	for _, name := range names {
		w.takesOver(name, 3)
	}
	for _, path := range []string{"/spec/tls", "/spec/mode"} {
		w.Eventually("the default is told", func() error { // events are written beside the status
			if w.toldDefaults(path) == 0 {
				return errors.New("it is not")
			}
			return nil
		})
		if told := w.toldDefaults(path); told != 1 {
			t.Errorf("the default of %s was told %d times, want once for the kind", path, told)
		}
	}
}

// toldDefaults counts the events of objects about a new default at a path.
func (w *world) toldDefaults(path string) int {
	w.t.Helper()
	var events eventsv1.EventList
	w.Must(admin.List(w.Ctx(), &events, client.InNamespace(w.namespace)))
	told := 0
	for i := range events.Items {
		e := &events.Items[i]
		if e.Reason == string(specguard.ReasonServerDefault) && e.Regarding.Kind != "Baseline" && strings.Contains(e.Note, path) {
			told++
		}
	}
	return told
}
