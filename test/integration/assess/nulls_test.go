// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
)

// applyJSONPatch writes a widget by a JSON patch, which can add null.
func (w *world) applyJSONPatch(user, name, patch string) {
	w.t.Helper()
	w.Must(w.As(user).Patch(w.Ctx(), w.widget(name), client.RawPatch(types.JSONPatchType, []byte(patch))))
}

// M2 of the guard's review: a foreign null in a custom kind was in sync.
func TestAForeignNullInACustomKindIsDrift(t *testing.T) {
	w, _ := widgetWorld(t)
	w.makeWidget(ci, "release", "red")
	w.UntilIs("release", "InSync")
	w.applyJSONPatch(ci, "release", `[{"op":"add","path":"/spec/service","value":null}]`)
	w.Until("release", "the null of ci is authorized", func(b *v1alpha1.Baseline) error {
		if guarded.Authorized(b) != 2 || b.Status.State != v1alpha1.StateInSync || canon.Hash(b.Spec.Authorized.Hash).Algorithm() != canon.PL2 {
			return errors.New(guarded.Describe(b))
		}
		return nil
	})
	w.applyJSONPatch(mallory, "release", `[{"op":"add","path":"/spec/securityContext","value":null}]`)
	w.UntilIs("release", "Drifted: Added /spec/securityContext by mallory (Untrusted, WriterStamp)")
	w.applyJSONPatch(mallory, "release", `[{"op":"remove","path":"/spec/securityContext"},{"op":"remove","path":"/spec/service"}]`)
	w.UntilIs("release", "Drifted: Removed /spec/service by mallory (Untrusted, WriterStamp)")
	w.applyJSONPatch(mallory, "release", `[{"op":"add","path":"/spec/service","value":null}]`)
	w.UntilIs("release", "InSync")
}
