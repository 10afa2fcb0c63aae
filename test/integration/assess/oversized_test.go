// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// incompressible is text of which a BaselineRevision holds less than that.
func incompressible() string {
	raw := make([]byte, 640<<10)
	source := rand.New(rand.NewPCG(1, 2))
	for i := range raw {
		raw[i] = byte(source.Uint32())
	}
	return base64.StdEncoding.EncodeToString(raw)
}

// tooLarge says whether a Baseline is Unknown because its body is not kept.
func tooLarge(b *v1alpha1.Baseline) error {
	ready := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady)
	if b.Status.State != v1alpha1.StateUnknown || ready == nil || ready.Reason != v1alpha1.ReasonBodyTooLarge {
		return fmt.Errorf("it is %s, Ready is %+v", b.Status.State, ready)
	}
	return nil
}

// guardCountsUnknown waits until a guard counts so many objects of which the state
// is Unknown.
func (w *world) guardCountsUnknown(g *v1alpha1.SpecGuard, objects, unknown int32) {
	w.t.Helper()
	w.Eventually(fmt.Sprintf("the state of %d of %d objects is Unknown", unknown, objects), func() error {
		if err := admin.Get(w.Ctx(), client.ObjectKeyFromObject(g), g); err != nil {
			return err
		}
		if g.Status.Objects != objects || g.Status.Unknown != unknown || g.Status.Drifted != 0 {
			return fmt.Errorf("the status is %+v", g.Status)
		}
		return nil
	})
}

// TestABodyTooLargeForARevisionIsUnknown: an object that was padded before its guard
// came is never in sync, and neither is one that CI makes too large.
func TestABodyTooLargeForARevisionIsUnknown(t *testing.T) {
	rotation.Share(t, 3)
	w := newWorld(t)
	padding := incompressible()
	d := guarded.Deployment(w.namespace, "web")
	d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PAD", Value: padding}}
	w.Must(w.As(alice).Create(w.Ctx(), d))
	w.Deploy(ci, "other")
	w.SecondOver(time.Now())
	p := start(t)
	g := w.UnderGuard()
	w.UntilIs("other", "InSync")
	w.Until("web", "its body is too large", tooLarge)
	w.guardCountsUnknown(g, 2, 1)
	w.SetImage(alice, "web", "registry.example/evil:1")
	w.Until("web", "alice's image is found, and the state stays Unknown", func(b *v1alpha1.Baseline) error {
		if b.Status.FindingsTotal != 1 || b.Spec.Authorized != nil {
			return fmt.Errorf("%d findings, authorized %+v", b.Status.FindingsTotal, b.Spec.Authorized)
		}
		return tooLarge(b)
	})

	w.SetEnv(ci, "other", "PAD", padding)
	b := w.Until("other", "CI made it too large", tooLarge)
	if guarded.Authorized(b) != 1 {
		t.Errorf("authorized is %+v", b.Spec.Authorized)
	}
	w.guardCountsUnknown(g, 2, 2)
	w.Eventually("it is told", func() error {
		told, err := w.events("Deployment", "other", specguard.ReasonBodyTooLarge)
		if err == nil && len(told) != 1 {
			err = fmt.Errorf("%d events", len(told))
		}
		return err
	})
	p.Halt(t)
	start(t)
	w.Deploy(ci, "witness")
	w.UntilIs("witness", "InSync") // it watches again
	w.SetEnv(ci, "other", "PAD", "short")
	b = w.UntilIs("other", "InSync")
	if guarded.Authorized(b) != 2 {
		t.Errorf("authorized is %+v", b.Spec.Authorized)
	}
	w.guardCountsUnknown(g, 3, 1)
}

// TestPaddedKeysDoNotFreezeABaseline: JSON writes a control character as six bytes, so
// reversals at long keys once made a status that etcd refuses.
func TestPaddedKeysDoNotFreezeABaseline(t *testing.T) {
	rotation.Share(t, 3)
	w, _ := widgetWorld(t)
	w.makeWidget(ci, "one", "green")
	w.UntilIs("one", "InSync")
	put := func(value any, color string) *unstructured.Unstructured {
		keys := map[string]any{}
		for i := range 16 {
			keys[strings.Repeat("\x01", 945)+fmt.Sprint(i)] = value
		}
		return w.patchWidget("one", map[string]any{"keep": keys, "color": color})
	}
	for range 9 {
		put(1, "green")
		u := put(nil, "green")
		w.Until("one", "the writes are judged", func(b *v1alpha1.Baseline) error {
			if b.Status.Observed.Generation < u.GetGeneration() {
				return fmt.Errorf("generation %d is observed, want %d", b.Status.Observed.Generation, u.GetGeneration())
			}
			return nil
		})
	}
	put(1, "evil")
	b := w.Until("one", "the color is found", drifts(2))
	if raw, err := json.Marshal(b); err != nil || len(raw) > 2*specguard.MaxStatusBytes {
		t.Errorf("the Baseline has %d bytes (%v)", len(raw), err)
	}
}

// TestAFilledBaselineIsWrittenAllTheSame: people may annotate a Baseline, and etcd
// refuses the status of a Baseline that is full of annotations.
func TestAFilledBaselineIsWrittenAllTheSame(t *testing.T) {
	rotation.Share(t, 3)
	w, _ := widgetWorld(t)
	w.makeWidget(ci, "one", "green")
	b := w.UntilIs("one", "InSync")
	filled := 262_000 // bytes, each of which JSON writes as six
	for ; filled > 0; filled -= 250 {
		raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{"filled": strings.Repeat("\x01", filled)}}})
		w.Must(err)
		if err := admin.Patch(w.Ctx(), b, client.RawPatch(types.MergePatchType, raw)); err == nil {
			break
		}
	}
	drift := map[string]any{}
	for i := range 30 {
		drift[fmt.Sprint("k", i)] = strings.Repeat("v", 500)
	}
	w.patchWidget("one", drift)
	b = w.Until("one", "the drift is found", drifts(30))
	if len(b.Annotations) > 0 {
		t.Errorf("%d annotations are left of %d bytes", len(b.Annotations), filled)
	}
}

func drifts(findings int32) func(*v1alpha1.Baseline) error {
	return func(b *v1alpha1.Baseline) error {
		if b.Status.State != v1alpha1.StateDrifted || b.Status.FindingsTotal < findings {
			return fmt.Errorf("it is %s with %d findings", b.Status.State, b.Status.FindingsTotal)
		}
		return nil
	}
}

// patchWidget has alice change fields of a widget.
func (w *world) patchWidget(name string, fields map[string]any) *unstructured.Unstructured {
	w.t.Helper()
	raw, err := json.Marshal(map[string]any{"spec": fields})
	w.Must(err)
	u := w.widget(name)
	w.Must(w.As(alice).Patch(w.Ctx(), u, client.RawPatch(types.MergePatchType, raw)))
	return u
}
