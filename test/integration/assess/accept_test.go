// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// accept asks to authorize a hash as a user, as the plugin does.
func (w *world) accept(user string, b *v1alpha1.Baseline, hash string) {
	w.t.Helper()
	w.Eventually("the request is stored", func() error {
		live := &v1alpha1.Baseline{}
		if err := admin.Get(w.Ctx(), client.ObjectKeyFromObject(b), live); err != nil {
			return err
		}
		live.Spec.Accept = &v1alpha1.AcceptRequest{Hash: hash, RequestedBy: user, Reason: "reviewed"}
		return w.As(user).Update(w.Ctx(), live)
	})
}

func accepted(by string, number int64) func(*v1alpha1.Baseline) error {
	return func(b *v1alpha1.Baseline) error {
		a := b.Spec.Authorized
		if a == nil || a.By != by || a.Number != number || a.Origin != v1alpha1.OriginCreated {
			return fmt.Errorf("authorized is %+v", a)
		}
		if b.Spec.Accept != nil || b.Status.State != v1alpha1.StateInSync {
			return fmt.Errorf("the request is %+v", b.Spec.Accept)
		}
		return nil
	}
}

func TestAccept(t *testing.T) {
	w := newWorld(t)
	start(t)
	w.UnderGuard()
	w.Deploy(ci, "web")
	w.Deploy(alice, "foreign")
	w.UntilIs("web", "InSync")
	w.SetEnv(alice, "web", "DEBUG", "1")
	const drift = "Drifted: Added /spec/template/spec/containers/[name=app]/env by alice (Untrusted, WriterStamp)"
	b := w.UntilIs("web", drift)

	t.Run("a request for another state than the observed one does nothing", func(t *testing.T) {
		w.accept(bob, b, "pl1:sha256:0000000000000000000000000000000000000000000000000000000000000000")
		after := w.Until("web", "the request is answered", func(b *v1alpha1.Baseline) error {
			if b.Spec.Accept != nil {
				return fmt.Errorf("it is not")
			}
			return nil
		})
		if got := guarded.Describe(after); got != drift || after.Spec.Authorized.Number != 1 {
			t.Errorf("the baseline is %q with %+v", got, after.Spec.Authorized)
		}
	})
	t.Run("the observed state becomes the authorized one", func(t *testing.T) {
		w.accept(bob, b, b.Status.Observed.Hash)
		w.Until("web", "bob's acceptance is authorized", accepted(bob, 2))
	})
	t.Run("an object that nobody trusted created becomes authorized", func(t *testing.T) {
		foreign := w.UntilIs("foreign", "Drifted: Added object by alice (Untrusted, WriterStamp)")
		w.accept(bob, foreign, foreign.Status.Observed.Hash)
		w.Until("foreign", "bob's acceptance is authorized", accepted(bob, 1))
	})
	t.Run("a missing object is retired", func(t *testing.T) {
		w.Delete(alice, "foreign")
		foreign := w.UntilIs("foreign", "Missing: Removed object by ? (Unknown, None)")
		w.accept(bob, foreign, specguard.HashAbsent)
		w.Until("foreign", "it is retired", func(b *v1alpha1.Baseline) error {
			if b.Status.RetirementTime == nil {
				return fmt.Errorf("it is not")
			}
			return nil
		})
	})
}

// M9 of the guard's review: an accept took along what its hash does not name.
func TestAnAcceptLeavesWhatAGuardIgnoresAsItWasAuthorized(t *testing.T) {
	rotation.Share(t, 3)
	const args = "/spec/template/spec/containers/[name=app]/args"
	w := newWorld(t)
	start(t)
	g := w.UnderGuard(func(g *v1alpha1.SpecGuard) { g.Spec.Ignore = []string{args} })
	w.Deploy(ci, "web")
	w.UntilIs("web", "InSync")
	w.Patch("mallory", "web", `{"spec":{"template":{"spec":{"containers":[{"name":"app","args":["--unsafe"]}]}}}}`)
	w.SetEnv(alice, "web", "DEBUG", "1")
	b := w.UntilIs("web", "Drifted: Added /spec/template/spec/containers/[name=app]/env by alice (Untrusted, WriterStamp)")
	w.accept(bob, b, b.Status.Observed.Hash)
	w.Until("web", "bob's acceptance is authorized", accepted(bob, 2))
	w.Must(w.As(bob).Patch(w.Ctx(), g, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"ignore":null}}`))))
	w.Until("web", "the arguments are drift, and nothing else", func(b *v1alpha1.Baseline) error {
		if f := b.Status.Findings; b.Status.State != v1alpha1.StateDrifted || len(f) != 1 || f[0].Path != args {
			return fmt.Errorf("it is %q", guarded.Describe(b))
		}
		return nil
	})
}

func TestAcceptInBulk(t *testing.T) {
	rotation.Share(t, 3)
	w := newWorld(t)
	start(t)
	w.UnderGuard()
	const n = 12
	for i := range n {
		w.Deploy(ci, fmt.Sprint("web-", i))
	}
	for i := range n {
		w.UntilIs(fmt.Sprint("web-", i), "InSync")
		w.SetImage(alice, fmt.Sprint("web-", i), "registry.example/shop:hotfix")
	}
	for i := range n {
		b := w.UntilIs(fmt.Sprint("web-", i), "Drifted: Changed /spec/template/spec/containers/[name=app]/image by alice (Untrusted, WriterStamp)")
		w.accept(bob, b, b.Status.Observed.Hash)
	}
	for i := range n {
		w.Until(fmt.Sprint("web-", i), "bob's acceptance is authorized", accepted(bob, 2))
	}
}

func TestOnlyTheLastRevisionsAreKept(t *testing.T) {
	rotation.Share(t, 3)
	w := newWorld(t)
	start(t)
	w.UnderGuard()
	w.Deploy(ci, "web")
	w.UntilIs("web", "InSync")
	for i := range 5 {
		w.SetImage(ci, "web", fmt.Sprint("registry.example/shop:", i+2))
		w.Until("web", "the image is authorized", func(b *v1alpha1.Baseline) error {
			if guarded.Authorized(b) != int64(i+2) {
				return fmt.Errorf("authorized is %+v", b.Spec.Authorized)
			}
			return nil
		})
	}
	w.Eventually("three revisions are left", func() error {
		var all v1alpha1.BaselineRevisionList
		if err := admin.List(w.Ctx(), &all, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		var numbers []int64
		for i := range all.Items {
			numbers = append(numbers, all.Items[i].Spec.Number)
		}
		if len(numbers) != 3 || numbers[0] != 4 {
			return fmt.Errorf("they are %v", numbers)
		}
		return nil
	})
}

// M5 of the guard's review: an admin of the namespace changed an object of the
// platform's guard and accepted the change.
func TestOnlyThoseWhomAClusterSpecGuardNamesAccept(t *testing.T) {
	w, g, b := acceptedUnder(t, func(s *v1alpha1.ClusterGuardSpec) { s.AcceptBy = &v1alpha1.Writers{Users: []string{bob}} })
	w.accept(alice, b, b.Status.Observed.Hash)
	b = w.untilRefused(fmt.Sprintf("alice may not accept: ClusterSpecGuard/%s lets only these accept: bob", g.Name))
	w.acceptedByBob(b)
}

func TestTheWriterOfAChangeDoesNotAcceptItUnderTwoPersons(t *testing.T) {
	w, g, b := acceptedUnder(t, func(s *v1alpha1.ClusterGuardSpec) { s.AcceptByAuthor = v1alpha1.Forbidden })
	w.accept(alice, b, b.Status.Observed.Hash)
	b = w.untilRefused(fmt.Sprintf("alice may not accept: ClusterSpecGuard/%s lets no writer accept a change of their own: alice has written /spec/template/spec/containers/[name=app]/env", g.Name))
	w.acceptedByBob(b)
}

// aliceDrift is what alice has added.
const aliceDrift = "Drifted: Added /spec/template/spec/containers/[name=app]/env by alice (Untrusted, WriterStamp)"

// acceptedUnder is a world with a ClusterSpecGuard, and a Deployment that alice has changed.
func acceptedUnder(t *testing.T, change func(*v1alpha1.ClusterGuardSpec)) (*world, *v1alpha1.ClusterSpecGuard, *v1alpha1.Baseline) {
	t.Helper()
	w := newWorld(t)
	start(t)
	g := &v1alpha1.ClusterSpecGuard{ObjectMeta: metav1.ObjectMeta{Name: "accept-" + w.namespace}}
	g.Spec.GuardSpec = guarded.Guard(w.namespace).Spec
	g.Spec.NamespaceSelector = selector("kubernetes.io/metadata.name", w.namespace)
	change(&g.Spec)
	w.Must(admin.Create(w.Ctx(), g))
	t.Cleanup(func() {
		if err := admin.Delete(context.Background(), g); err != nil {
			t.Errorf("removing the guard: %v", err)
		}
	})
	w.guardReads(g, func() []metav1.Condition { return g.Status.Conditions }, "Ready=True Active")
	w.SecondOver(g.CreationTimestamp.Time)
	w.Deploy(ci, "web")
	w.UntilIs("web", "InSync")
	w.SetEnv(alice, "web", "DEBUG", "1")
	return w, g, w.UntilIs("web", aliceDrift)
}

// untilRefused waits until an acceptance is refused with a message, and nothing has moved.
func (w *world) untilRefused(want string) *v1alpha1.Baseline {
	w.t.Helper()
	b := w.Until("web", "the refusal is told", func(b *v1alpha1.Baseline) error {
		c := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionAcceptanceAllowed)
		if c == nil || c.Status != metav1.ConditionFalse || b.Spec.Accept != nil {
			return fmt.Errorf("the condition is %+v", c)
		}
		if c.Message != want {
			return fmt.Errorf("it says %q, not %q", c.Message, want)
		}
		return nil
	})
	if got := guarded.Describe(b); got != aliceDrift || b.Spec.Authorized.Number != 1 {
		w.t.Errorf("the baseline is %q with %+v", got, b.Spec.Authorized)
	}
	return b
}

// acceptedByBob has bob accept what alice may not.
func (w *world) acceptedByBob(b *v1alpha1.Baseline) {
	w.t.Helper()
	w.accept(bob, b, b.Status.Observed.Hash)
	w.Until("web", "bob's acceptance is authorized", accepted(bob, 2))
	w.Until("web", "the refusal is over", func(b *v1alpha1.Baseline) error {
		if c := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionAcceptanceAllowed); c == nil || c.Status != metav1.ConditionTrue {
			return fmt.Errorf("the condition is %+v", c)
		}
		return nil
	})
}
