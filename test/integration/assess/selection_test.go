// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// labelGuard is a guard of what has a label app.
func (w *world) labelGuard(name, app string) *v1alpha1.SpecGuard {
	w.t.Helper()
	return w.UnderGuard(func(g *v1alpha1.SpecGuard) {
		g.Name = name
		g.Spec.Selector = selector("app", app)
	})
}

func guardedBy(guards ...string) func(*v1alpha1.Baseline) error {
	return func(b *v1alpha1.Baseline) error {
		if fmt.Sprint(b.Status.Guards) != fmt.Sprint(guards) {
			return fmt.Errorf("its guards are %v", b.Status.Guards)
		}
		return nil
	}
}

func isReleased(b *v1alpha1.Baseline) error {
	if c := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady); c == nil || c.Reason != v1alpha1.ReasonNotGuarded {
		return fmt.Errorf("Ready is %+v", c)
	}
	return nil
}

// M6 of the guard's review: only to delete or rename the guard helped.
func TestASelectorThatNarrowsLetsGo(t *testing.T) {
	w := newWorld(t)
	p := start(t)
	g := w.labelGuard("g", "web")
	w.labelGuard("other", "web")
	w.Deploy(ci, "web")
	w.Until("web", "both guards select it", guardedBy("SpecGuard/g", "SpecGuard/other"))
	w.Patch(alice, "web", `{"metadata":{"labels":{"app":"gone"}}}`)
	w.SetEnv(alice, "web", "DEBUG", "1")
	const drift = "Drifted: Added /spec/template/spec/containers/[name=app]/env by alice (Untrusted, WriterStamp)"
	w.UntilIs("web", drift)

	// The guard narrows while no assessor looks.
	p.Halt(t)
	w.Must(admin.Patch(w.Ctx(), g.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"selector":{"matchLabels":{"app":"api"}}}}`))))
	start(t)
	w.Until("web", "one guard selects it", guardedBy("SpecGuard/other"))
	w.UntilIs("web", drift)

	// A guard that is made anew under its name inherits nothing.
	other := &v1alpha1.SpecGuard{}
	other.Namespace, other.Name = w.namespace, "other"
	w.Must(admin.Delete(w.Ctx(), other))
	w.Until("web", "it is released", isReleased)
	w.labelGuard("other", "web")
	w.Deploy(ci, "witness")
	w.Patch(ci, "witness", `{"metadata":{"labels":{"app":"web"}}}`)
	w.Until("witness", "the new guard is in force", guardedBy("SpecGuard/other"))
	w.Until("web", "it stays released", isReleased)
}

func TestATrustedWriterWhoMovesTheLabelReleases(t *testing.T) {
	w := newWorld(t)
	start(t)
	w.labelGuard("g", "web")
	w.Deploy(ci, "web")
	w.UntilIs("web", "InSync")
	w.Patch(ci, "web", `{"metadata":{"labels":{"app":"api"}},"spec":{"template":{"spec":{"containers":[{"name":"app","image":"registry.example/shop:2"}]}}}}`)
	w.Until("web", "it is released", isReleased)
}
