// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"context"
	"errors"
	"fmt"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/stamp"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

const imageByNone = "Drifted: Changed " + imagePath + " by ? (Unknown, ManagedFields)"

// withoutStampPolicy does something while the policy that stamps writers is
// away, as between helm uninstall and the next helm install.
func (w *world) withoutStampPolicy(do func()) {
	w.t.Helper()
	objects := []client.Object{&admissionv1.MutatingAdmissionPolicy{}, &admissionv1.MutatingAdmissionPolicyBinding{}}
	for _, o := range objects {
		w.Must(admin.Get(w.Ctx(), types.NamespacedName{Name: stamp.Name}, o))
		w.Must(admin.Delete(w.Ctx(), o))
	}
	back := false
	restore := func() error {
		if back {
			return nil
		}
		back = true
		var failed []error
		for _, o := range objects {
			o.SetUID("")
			o.SetResourceVersion("")
			failed = append(failed, admin.Create(context.Background(), o))
		}
		return errors.Join(failed...)
	}
	w.t.Cleanup(func() {
		if err := restore(); err != nil {
			w.t.Errorf("putting the policy back: %v", err)
		}
	})
	w.Eventually("nothing is stamped any more", func() error {
		probe := guarded.Deployment("default", "probe")
		err := admin.Create(w.Ctx(), probe, client.DryRunAll)
		if err == nil && probe.Annotations[v1alpha1.AnnotationWriter] != "" {
			err = errors.New("it is")
		}
		return err
	})
	do()
	w.Must(restore())
	w.Must(awaitStamp(w.Ctx()))
}

// stampedBy checks what the stamp on an object says.
func (w *world) stampedBy(name, user string) {
	w.t.Helper()
	d := w.Named(name)
	w.Must(admin.Get(w.Ctx(), client.ObjectKeyFromObject(d), d))
	if got := d.Annotations[v1alpha1.AnnotationWriter]; got != user {
		w.t.Fatalf("the stamp on %s says %q", name, got)
	}
}

// seenUnderNewPolicy waits until a Baseline tells another policy than before.
func (w *world) seenUnderNewPolicy(name, before string) {
	w.t.Helper()
	at := 0
	w.Until(name, "it was seen under the new policy", func(b *v1alpha1.Baseline) error {
		if got := b.Status.Observed.StampPolicy; got == "" || got == before {
			at++
			w.writeStatus(name, at) // brings the watch forward, as bookmarks do once a minute
			return fmt.Errorf("it was seen under %q", got)
		}
		return nil
	})
}

// authorizesInDrift waits until a second state of web is authorized, and checks
// that the image is drift still.
func (w *world) authorizesInDrift(what string) {
	w.t.Helper()
	b := w.Until("web", what, func(b *v1alpha1.Baseline) error {
		if guarded.Authorized(b) != 2 {
			return errors.New("it is not")
		}
		return nil
	})
	if got := guarded.Describe(b); got != imageByNone {
		w.t.Errorf("the baseline is %q", got)
	}
}

func TestWhatIsWrittenWhileTheStampPolicyIsAwayIsNobodysAndAuthorizesNothing(t *testing.T) {
	w := newWorld(t)
	p := start(t)
	w.UnderGuard()
	w.Deploy(ci, "web")
	before := w.UntilIs("web", "InSync").Status.Observed.StampPolicy
	w.Deploy(ci, "cart")
	w.UntilIs("cart", "InSync")
	if before == "" {
		t.Fatal("the policy is in force, and was not remembered")
	}
	w.withoutStampPolicy(func() {
		w.SetImage(alice, "web", "registry.example/evil:1")
		w.stampedBy("web", ci) // left over
		w.UntilIs("web", imageByNone)
		// Nor is it proven that CI wrote this.
		w.SetImage(ci, "cart", "registry.example/shop:2")
		w.UntilIs("cart", imageByNone)
		w.shows(p, "plumbline_stamp_policy_active", map[string]float64{"plumbline_stamp_policy_active{}": 0})
	})
	w.seenUnderNewPolicy("web", before)
	w.shows(p, "plumbline_stamp_policy_active", map[string]float64{"plumbline_stamp_policy_active{}": 1})
	w.SetEnv(ci, "web", "MODE", "live")
	w.authorizesInDrift("what CI writes is authorized again")
}

func TestWhatWasWrittenBetweenUninstallingAndInstallingAgainIsDrift(t *testing.T) {
	rotation.Share(t, 3)
	w := newWorld(t)
	p := start(t)
	w.UnderGuard()
	w.Deploy(ci, "web")
	w.UntilIs("web", "InSync")
	p.Halt(t)
	w.withoutStampPolicy(func() {
		w.SetImage(alice, "web", "registry.example/evil:1")
		w.stampedBy("web", ci)
		forged := guarded.Deployment(w.namespace, "mine")
		forged.Annotations = map[string]string{v1alpha1.AnnotationWriter: ci}
		w.Must(w.As(alice).Create(w.Ctx(), forged))
	})
	p = start(t)
	w.UntilIs("web", imageByNone)
	w.Until("mine", "who signs with another's name is not believed", func(b *v1alpha1.Baseline) error {
		if b.Spec.Authorized != nil || b.Status.State != v1alpha1.StateDrifted {
			return errors.New("it is authorized")
		}
		return nil
	})
	// From here on it has been seen under the new policy: one write in a gap is
	// proven, as before.
	p.Halt(t)
	w.SetEnv(ci, "web", "MODE", "live")
	start(t)
	w.authorizesInDrift("what CI wrote meanwhile is authorized")
}

// Labels and descriptions change at every upgrade; the policy stays what it was.
func TestAnUpgradeThatTouchesTheStampPolicyForgetsNothing(t *testing.T) {
	rotation.Share(t, 3)
	w := newWorld(t)
	p := start(t)
	w.UnderGuard()
	w.Deploy(ci, "web")
	w.UntilIs("web", "InSync")
	p.Halt(t)
	policy := &admissionv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: stamp.Name}}
	w.Must(admin.Patch(w.Ctx(), policy, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"upgraded":"yes"}}}`))))
	w.SetImage(ci, "web", "registry.example/shop:2")
	start(t)
	w.Until("web", "what CI wrote meanwhile is authorized", func(b *v1alpha1.Baseline) error {
		if guarded.Authorized(b) != 2 || guarded.Describe(b) != "InSync" {
			return errors.New("it is not")
		}
		return nil
	})
}
