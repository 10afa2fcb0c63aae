// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/assessor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// readyReads waits until a guard's conditions contain a text, as
// "Type=Status Reason: message" lines.
func (w *world) guardReads(g client.Object, conditions func() []metav1.Condition, want string) {
	w.t.Helper()
	w.Eventually(fmt.Sprintf("the conditions contain %q", want), func() error {
		if err := admin.Get(w.Ctx(), client.ObjectKeyFromObject(g), g); err != nil {
			return err
		}
		var lines []string
		for _, c := range conditions() {
			lines = append(lines, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
		}
		if text := strings.Join(lines, "\n"); !strings.Contains(text, want) {
			return fmt.Errorf("they are %q", text)
		}
		return nil
	})
}

func TestAGuardCountsItsObjects(t *testing.T) {
	w := newWorld(t)
	start(t)
	g := w.UnderGuard()
	w.Deploy(ci, "one")
	w.Deploy(ci, "two")
	w.UntilIs("one", "InSync")
	w.UntilIs("two", "InSync")
	w.SetImage(alice, "two", "registry.example/evil:1")
	w.Eventually("it counts two, one of them drifted", func() error {
		if err := admin.Get(w.Ctx(), client.ObjectKeyFromObject(g), g); err != nil {
			return err
		}
		if g.Status.Objects != 2 || g.Status.Drifted != 1 {
			return fmt.Errorf("it counts %d and %d", g.Status.Objects, g.Status.Drifted)
		}
		return nil
	})
}

func TestMassDriftIsTold(t *testing.T) {
	rotation.Share(t, 3)
	w := newWorld(t)
	start(t)
	g, dev := w.UnderGuard(), w.environment("dev-"+w.namespace, v1alpha1.CriticalityDevelopment)
	for i := range 4 {
		w.Deploy(ci, fmt.Sprint("web-", i))
		w.UntilIs(fmt.Sprint("web-", i), "InSync")
	}
	for i := range 2 {
		w.SetImage(alice, fmt.Sprint("web-", i), "registry.example/evil:1")
	}
	w.Eventually("two of four drift", func() error {
		if err := admin.Get(w.Ctx(), client.ObjectKeyFromObject(g), g); err != nil {
			return err
		}
		if g.Status.Drifted != 2 {
			return fmt.Errorf("%d drift", g.Status.Drifted)
		}
		return nil
	})
	if c := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionDegraded); c == nil || c.Status != metav1.ConditionFalse {
		t.Errorf("two objects, be they half of all, are a mass drift: %+v", c)
	}
	w.SetImage(alice, "web-2", "registry.example/evil:1")
	w.guardReads(g, func() []metav1.Condition { return g.Status.Conditions }, "Degraded=True MassDrift: 3 of 4")
	for i := range 3 {
		w.SetImage(alice, fmt.Sprint("web-", i), "registry.example/shop:1")
	}
	w.waitFor("Degraded=False", "specguards/"+g.Name)
	w.waitFor("Degraded=False", "baselines/deployments.apps.web-0")
	w.waitFor("Degraded=False", "environments/"+dev.Name)
}

// waitFor has kubectl wait for a condition of an object.
func (w *world) waitFor(condition, object string) {
	w.t.Helper()
	w.kubectl(ci, "", "wait", "--for=condition="+condition, object, "--timeout="+patience.String())
}

func TestKindsThatCannotBeGuardedAreToldWithTheirField(t *testing.T) {
	w := newWorld(t)
	start(t)
	g := w.Guard(func(g *v1alpha1.SpecGuard) {
		g.Spec.Resources = append(g.Spec.Resources,
			v1alpha1.GuardedResource{APIVersion: "nowhere.example.org/v1", Kind: "Nothing"},
			v1alpha1.GuardedResource{APIVersion: "cluster.example.org/v1", Kind: "Planet"})
	})
	w.InstallKind("cluster.example.org", "Planet", "planets", apiextensions.ClusterScoped)
	w.guardReads(g, func() []metav1.Condition { return g.Status.Conditions }, "Stalled=True NotActive: spec.resources[1].kind:")
	w.guardReads(g, func() []metav1.Condition { return g.Status.Conditions }, "spec.resources[2].kind:")
	// The kind that can be watched is.
	w.Deploy(ci, "web")
	w.UntilIs("web", "InSync")
}

// TestAKindThatAppearsIsGuardedThen also covers custom resources as such.
func TestAKindThatAppearsIsGuardedThen(t *testing.T) {
	rotation.Share(t, 3)
	w := newWorld(t)
	start(t)
	g := w.Guard(func(g *v1alpha1.SpecGuard) {
		g.Spec.Resources = []v1alpha1.GuardedResource{{APIVersion: "example.org/v1", Kind: "Widget"}}
	})
	w.guardReads(g, func() []metav1.Condition { return g.Status.Conditions }, "Stalled=True NotActive: spec.resources[0].kind:")
	w.InstallKind("example.org", "Widget", "widgets", apiextensions.NamespaceScoped)
	w.guardReads(g, func() []metav1.Condition { return g.Status.Conditions }, "Ready=True Active")
	widget := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "Widget",
		"metadata": map[string]any{"namespace": w.namespace, "name": "one"},
		"spec":     map[string]any{"size": int64(1)},
	}}
	// The API server itself answers "not found" for a moment after it has
	// established a kind, and the assessor may be faster than that.
	w.Eventually("the API server takes a widget", func() error { return w.As(ci).Create(w.Ctx(), widget) })
	var b v1alpha1.Baseline
	named := client.ObjectKey{Namespace: w.namespace, Name: "widgets.example.org.one"}
	w.Eventually("the widget has a baseline", func() error { return admin.Get(w.Ctx(), named, &b) })
	w.Must(unstructured.SetNestedField(widget.Object, int64(2), "spec", "size"))
	w.Must(w.As(alice).Update(w.Ctx(), widget))
	w.Eventually("the widget drifts", func() error {
		if err := admin.Get(w.Ctx(), named, &b); err != nil {
			return err
		}
		if !strings.HasPrefix(guarded.Describe(&b), "Drifted: Changed /spec/size by ") {
			return fmt.Errorf("it is %q", guarded.Describe(&b))
		}
		return nil
	})
}

func TestASuspendedGuardComparesNothingAndComesBack(t *testing.T) {
	rotation.Share(t, 3)
	w := newWorld(t)
	start(t)
	g := w.UnderGuard()
	w.Deploy(ci, "web")
	w.UntilIs("web", "InSync")
	suspend := func(d time.Duration) {
		until := time.Now().Add(d).UTC().Format(time.RFC3339)
		w.Must(admin.Patch(w.Ctx(), g.DeepCopy(), client.RawPatch(types.MergePatchType,
			fmt.Appendf(nil, `{"spec":{"suspend":{"reason":"maintenance","endTime":%q}}}`, until))))
	}
	suspend(time.Hour)
	w.Until("web", "the suspension is told", func(b *v1alpha1.Baseline) error {
		if c := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady); c == nil || c.Reason != "GuardNotActive" {
			return fmt.Errorf("Ready is %+v", c)
		}
		return nil
	})
	w.guardReads(g, func() []metav1.Condition { return g.Status.Conditions }, "Ready=False Suspended")
	w.SetImage(alice, "web", "registry.example/evil:1")
	// It still has to end by itself: nobody has to do anything for the drift to be seen.
	suspend(3 * time.Second)
	b := w.Until("web", "the drift of the suspension is seen", func(b *v1alpha1.Baseline) error {
		if b.Status.State != v1alpha1.StateDrifted || len(b.Status.Findings) != 1 {
			return fmt.Errorf("it is not")
		}
		return nil
	})
	if c := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady); c.Status != metav1.ConditionFalse {
		t.Errorf("Ready is %+v", c)
	}
}

func TestABaselineOutlivesItsGuardForTheRetention(t *testing.T) {
	rotation.Share(t, 3)
	w := newWorld(t)
	start(t, withRetention(8*time.Second)) // for so long it is there to be seen
	g := w.UnderGuard()
	w.Deploy(ci, "web")
	w.UntilIs("web", "InSync")
	w.Must(admin.Delete(w.Ctx(), g))
	w.Until("web", "it says that nobody guards it", func(b *v1alpha1.Baseline) error {
		if c := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady); c == nil || c.Reason != "NotGuarded" || b.Status.State != v1alpha1.StateNotGuarded {
			return fmt.Errorf("it is %s, Ready is %+v", b.Status.State, c)
		}
		return nil
	})
	w.Eventually("it is removed", func() error {
		_, err := w.Baseline("web")
		return isGone(err)
	})
}

func TestAGuardMadeAnewDoesNotWashDriftClean(t *testing.T) {
	w := newWorld(t)
	start(t)
	g := w.UnderGuard()
	w.Deploy(ci, "web")
	w.UntilIs("web", "InSync")
	w.Must(admin.Delete(w.Ctx(), g))
	w.Until("web", "it says that nobody guards it", func(b *v1alpha1.Baseline) error {
		if c := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady); c == nil || c.Reason != "NotGuarded" || b.Status.State != v1alpha1.StateNotGuarded {
			return fmt.Errorf("it is %s, Ready is %+v", b.Status.State, c)
		}
		return nil
	})
	w.SetImage(alice, "web", "registry.example/evil:1")
	w.UnderGuard()
	w.Until("web", "the change is drift", func(b *v1alpha1.Baseline) error {
		if b.Status.State != v1alpha1.StateDrifted {
			return fmt.Errorf("it is not")
		}
		return nil
	})
}

// TestUnreadableIsNotAbsent: a kind that may not be read says nothing about its
// objects; after a while their state is Unknown, and back when it can be read.
func TestUnreadableIsNotAbsent(t *testing.T) {
	w := newWorld(t)
	p := start(t)
	g := w.UnderGuard()
	w.Deploy(ci, "web")
	w.UntilIs("web", "InSync")
	w.SetEnv(alice, "web", "DEBUG", "1")
	const drift = ": Added /spec/template/spec/containers/[name=app]/env by alice (Untrusted, WriterStamp)"
	w.UntilIs("web", "Drifted"+drift)
	p.Halt(t)
	p = start(t, func(s *assessor.Setup) { s.UnreadableAfter = time.Second }, withBlindness())
	w.guardReads(g, func() []metav1.Condition { return g.Status.Conditions }, "Reconciling=True NotReadable: spec.resources[0]: Deployment cannot be read")
	w.UntilIs("web", "Unknown"+drift)
	p.faults.when(nil)
	w.UntilIs("web", "Drifted"+drift)
}

func TestTheMostCriticalEnvironmentDecides(t *testing.T) {
	rotation.Share(t, 3)
	w := newWorld(t)
	start(t)
	w.Must(admin.Patch(w.Ctx(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}},
		client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"labels":{"team":%q}}}`, w.namespace))))
	w.UnderGuard()
	w.Deploy(ci, "web")
	w.UntilIs("web", "InSync")
	w.SetImage(alice, "web", "registry.example/evil:1")
	level := func(want v1alpha1.SeverityLevel) {
		w.Until("web", "its severity is "+string(want), func(b *v1alpha1.Baseline) error {
			if b.Status.Severity == nil || b.Status.Severity.Level != want {
				return fmt.Errorf("it is %+v", b.Status.Severity)
			}
			return nil
		})
	}
	level(v1alpha1.SeverityLow)
	dev := w.environment("dev-"+w.namespace, v1alpha1.CriticalityDevelopment)
	prod := w.environment("prod-"+w.namespace, v1alpha1.CriticalityProduction)
	level(v1alpha1.SeverityCritical) // the floor of an image from another repository
	w.guardReads(dev, func() []metav1.Condition { return dev.Status.Conditions }, "Degraded=True NamespacesOverlap")
	w.guardReads(prod, func() []metav1.Condition { return prod.Status.Conditions }, "Ready=True Active: 1 namespaces")
	if b, err := w.Baseline("web"); err != nil || b.Status.Severity.First != v1alpha1.SeverityLow {
		t.Errorf("the first level is forgotten: %+v, %v", b.Status.Severity, err)
	}
}

func (w *world) environment(name string, c v1alpha1.Criticality) *v1alpha1.Environment {
	w.t.Helper()
	e := &v1alpha1.Environment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.EnvironmentSpec{Criticality: c, NamespaceSelector: *selector("team", w.namespace)},
	}
	w.Must(admin.Create(w.Ctx(), e))
	w.t.Cleanup(func() {
		if err := admin.Delete(context.Background(), e); err != nil {
			w.t.Errorf("removing the environment: %v", err)
		}
	})
	return e
}

func TestTheOlderGuardDefaultsAreInForce(t *testing.T) {
	rotation.Share(t, 3)
	w := newWorld(t)
	start(t)
	makeDefaults := func(name string) *v1alpha1.GuardDefaults {
		d := &v1alpha1.GuardDefaults{
			ObjectMeta: metav1.ObjectMeta{Name: name + "-" + w.namespace},
			Spec:       v1alpha1.GuardDefaultsSpec{DriftThreshold: "20%"},
		}
		w.Must(admin.Create(w.Ctx(), d))
		t.Cleanup(func() { _ = admin.Delete(context.Background(), d) }) // the test removes one itself
		return d
	}
	first, second := makeDefaults("a"), makeDefaults("b")
	w.guardReads(first, func() []metav1.Condition { return first.Status.Conditions }, "Ready=True Active")
	w.guardReads(second, func() []metav1.Condition { return second.Status.Conditions }, "Stalled=True OlderActive")
	w.Must(admin.Delete(w.Ctx(), first))
	w.guardReads(second, func() []metav1.Condition { return second.Status.Conditions }, "Ready=True Active")
}

// TestANamespaceThatGoesAway has what the namespace controller does: the
// namespace is terminating, and its objects are deleted one by one.
func TestANamespaceThatGoesAway(t *testing.T) {
	w := newWorld(t)
	start(t)
	w.UnderGuard()
	w.Deploy(ci, "web")
	w.UntilIs("web", "InSync")
	w.Must(admin.Delete(w.Ctx(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}))
	w.Eventually("the namespace is terminating", func() error {
		ns := &corev1.Namespace{}
		if err := admin.Get(w.Ctx(), client.ObjectKey{Name: w.namespace}, ns); err != nil {
			return err
		}
		if ns.Status.Phase != corev1.NamespaceTerminating {
			return fmt.Errorf("it is %s", ns.Status.Phase)
		}
		return nil
	})
	w.Delete("system:serviceaccount:kube-system:namespace-controller", "web")
	w.Until("web", "it is retired", func(b *v1alpha1.Baseline) error {
		if b.Status.State != v1alpha1.StateRetired || b.Status.RetirementTime == nil {
			return fmt.Errorf("it is %s", b.Status.State)
		}
		return nil
	})
}

func TestOneOfTwoReplicasWorksAndTheOtherTakesOver(t *testing.T) {
	w := newWorld(t)
	first := start(t, withLeaderElection())
	w.UnderGuard()
	w.Deploy(ci, "web")
	w.UntilIs("web", "InSync")
	start(t, withLeaderElection())
	first.Halt(t)
	w.SetImage(alice, "web", "registry.example/evil:1")
	w.UntilOn(poll.Takeover, "web", "the other replica tells the drift", guarded.Reads("Drifted: Changed /spec/template/spec/containers/[name=app]/image by alice (Untrusted, WriterStamp)"))
}
