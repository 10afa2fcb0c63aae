// SPDX-License-Identifier: Apache-2.0

//go:build integration

package attacks

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// S7: who deletes an object that a finalizer keeps has not taken it out of
// sight, whether he is trusted or not.
func TestAnObjectThatIsBeingDeletedIsStillCompared(t *testing.T) {
	for name, deleter := range map[string]string{"deleted by its attacker": mallory, "deleted by CI": ci} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.guard()
			d := p.deploy("web", func(d *appsv1.Deployment) { d.Finalizers = []string{"example.com/stay"} })
			p.must(as(t, deleter).Delete(t.Context(), d))
			p.setImage(as(t, mallory), "web", "registry.example/evil:1")
			p.untilIs("web", "Drifted: Changed "+imagePath+" by mallory (Untrusted, WriterStamp)")
			live := p.live("web")
			if live.DeletionTimestamp == nil {
				t.Fatal("it is not being deleted")
			}
			hash, err := canon.HashBody(mustJSON(t, live), canon.GVK{Group: "apps", Version: "v1", Kind: "Deployment"})
			p.must(err)
			if got := live.Annotations[v1alpha1.AnnotationSpecHash]; got != string(hash) {
				t.Errorf("the stamp is %q, the hash of what is stored %q", got, hash)
			}
			p.must(admin.Patch(t.Context(), live, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
		})
	}
}

// S7: a deletionTimestamp is the API server's to set.
func TestADeletionTimestampCannotBeForged(t *testing.T) {
	p := newPlace(t)
	p.guard()
	d := deployment(p.namespace, "web")
	now := metav1.Now()
	d.DeletionTimestamp, d.DeletionGracePeriodSeconds = &now, new(int64(1))
	p.must(as(t, mallory).Create(t.Context(), d))
	if d.DeletionTimestamp != nil {
		t.Error("it was taken over at creation")
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"deletionTimestamp":"2020-01-01T00:00:00Z"},"spec":{"paused":true}}`))
	if err := as(t, mallory).Patch(t.Context(), p.named("web"), patch); !apierrors.IsInvalid(err) {
		t.Errorf("the patch: %v", err)
	}
	p.untilIs("web", "Drifted: Added object by mallory (Untrusted, WriterStamp)")
}

// S7: both stamps forged at once, with the content; stripped; and with an owner
// that would make the object a controller's.
func TestForgedAndStrippedStampsNameTheirForger(t *testing.T) {
	const image = `"spec":{"template":{"spec":{"containers":[{"name":"app","image":"registry.example/evil:1"}]}}}`
	for name, patch := range map[string]string{
		"forged":   `{"metadata":{"annotations":{"plumbline.dev/writer":"` + ci + `","plumbline.dev/writer-groups":"ops","plumbline.dev/spec-hash":"pl1:sha256:00"}},` + image + `}`,
		"stripped": `{"metadata":{"annotations":{"plumbline.dev/writer":null,"plumbline.dev/spec-hash":null}},` + image + `}`,
		"with an owner": `{"metadata":{"annotations":{"plumbline.dev/writer":"` + ci + `"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"x","uid":"u","controller":true}]},` +
			image + `}`,
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.guard(func(g *v1alpha1.SpecGuard) { g.Spec.TrustedWriters.Groups = []string{"ops"} })
			d := p.deploy("web")
			p.must(as(t, mallory).Patch(t.Context(), d, client.RawPatch(types.StrategicMergePatchType, []byte(patch))))
			p.untilIs("web", "Drifted: Changed "+imagePath+" by mallory (Untrusted, WriterStamp)")
			if got := p.live("web").Annotations; got[v1alpha1.AnnotationWriter] != mallory || got[v1alpha1.AnnotationWriterGroups] != "" {
				t.Errorf("the stamps are %v", got)
			}
		})
	}
}

// S7: the namespace's owner may change guards, and still not say of one that it
// is well.
func TestATenantForgesNoStatusOfAGuardOrABaseline(t *testing.T) {
	p := newPlace(t)
	g := p.guard()
	p.deploy("web")
	adam := only(t, p.person("admin"))
	forged := client.RawPatch(types.MergePatchType, []byte(`{"status":{"objects":7,"state":"InSync"}}`))
	b, err := p.baseline("web")
	p.must(err)
	for name, o := range map[string]client.Object{"SpecGuard": g, "Baseline": b} {
		if err := adam.Status().Patch(t.Context(), o, forged); !apierrors.IsForbidden(err) {
			t.Errorf("the status of the %s: %v", name, err)
		}
		if err := adam.Patch(t.Context(), o, forged); err != nil {
			t.Errorf("a status beside the %s: %v", name, err) // taken, and dropped
		}
	}
	p.must(admin.Get(t.Context(), client.ObjectKeyFromObject(g), g))
	if g.Status.Objects == 7 {
		t.Error("the status came in beside the object")
	}
}
