// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// TestAnAcceptRescuesALostBody: somebody deleted the BaselineRevision. What was
// authorized is unknown from then on, whoever writes, until a person accepts
// what runs; after that everything is as before.
func TestAnAcceptRescuesALostBody(t *testing.T) {
	rotation.Share(t, 3)
	w := newWorld(t)
	p := start(t)
	w.UnderGuard()
	w.Deploy(ci, "web")
	before := w.UntilIs("web", "InSync")
	p.Halt(t) // it has the body in memory
	// Nobody else may; a backup that left them out does the same.
	const gc = "system:serviceaccount:kube-system:generic-garbage-collector"
	w.Must(w.As(gc).DeleteAllOf(w.Ctx(), &v1alpha1.BaselineRevision{}, client.InNamespace(w.namespace)))
	start(t)
	w.stays("web", "InSync") // nothing moved, so nothing is to be compared
	w.SetImage(alice, "web", "registry.example/shop:2")
	lost := func(b *v1alpha1.Baseline) error {
		ready := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady)
		if b.Status.State != v1alpha1.StateUnknown || ready == nil || ready.Status != metav1.ConditionUnknown || ready.Reason != v1alpha1.ReasonBodyLost {
			return fmt.Errorf("it is %s, Ready is %+v", b.Status.State, ready)
		}
		if b.Status.Observed.Hash == before.Status.Observed.Hash {
			return fmt.Errorf("the hash that could be accepted is the old one")
		}
		return nil
	}
	b := w.Until("web", "the loss is told", lost)
	w.Eventually("it is told once", func() error {
		told, err := w.events("Deployment", "web", specguard.ReasonUnreadable)
		if err == nil && len(told) != 1 {
			err = fmt.Errorf("%d events", len(told))
		}
		return err
	})

	t.Run("not even CI authorizes without a body", func(t *testing.T) {
		w := w.in(t)
		w.SetImage(ci, "web", "registry.example/shop:3")
		old := b.Status.Observed.Hash
		b = w.Until("web", "the new hash is shown", func(b *v1alpha1.Baseline) error {
			if b.Status.Observed.Hash == old {
				return fmt.Errorf("it is not")
			}
			return lost(b)
		})
		w.accept(bob, b, old)
		b = w.Until("web", "an accept of what ran before is refused", func(b *v1alpha1.Baseline) error {
			if b.Spec.Accept != nil || b.Spec.Authorized.Number != 1 {
				return fmt.Errorf("the request is %+v, authorized %+v", b.Spec.Accept, b.Spec.Authorized)
			}
			return lost(b)
		})
	})
	w.accept(bob, b, b.Status.Observed.Hash)
	b = w.Until("web", "bob's acceptance is authorized", accepted(bob, 2))
	w.checkRevisions(b)
	w.SetImage(ci, "web", "registry.example/shop:4")
	w.Until("web", "CI authorizes again", func(b *v1alpha1.Baseline) error {
		if guarded.Authorized(b) != 3 {
			return fmt.Errorf("authorized is %+v", b.Spec.Authorized)
		}
		return nil
	})
	w.SetEnv(alice, "web", "DEBUG", "1")
	w.UntilIs("web", "Drifted: Added /spec/template/spec/containers/[name=app]/env by alice (Untrusted, WriterStamp)")
}
