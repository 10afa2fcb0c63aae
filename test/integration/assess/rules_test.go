// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
)

func TestAnObjectOlderThanItsGuardIsImported(t *testing.T) {
	w := newWorld(t)
	w.Deploy(alice, "web")
	w.Guard()
	start(t)
	b := w.UntilIs("web", "InSync")
	if a := b.Spec.Authorized; a == nil || a.Origin != v1alpha1.OriginImported || a.Number != 1 {
		t.Fatalf("authorized is %+v", a)
	}
	revision := &v1alpha1.BaselineRevision{}
	w.Must(admin.Get(w.Ctx(), types.NamespacedName{Namespace: w.namespace, Name: b.Spec.Authorized.Revision}, revision))
	if revision.Spec.Hash != b.Spec.Authorized.Hash || len(revision.OwnerReferences) != 1 || revision.OwnerReferences[0].UID != b.UID {
		t.Errorf("the revision is %+v", revision)
	}
	if len(b.OwnerReferences) != 0 {
		t.Error("the Baseline has an owner and would go away with it")
	}
}

func TestOnlyTheChangedPathsAreAuthorized(t *testing.T) {
	w := newWorld(t)
	start(t)
	w.UnderGuard()
	w.Deploy(ci, "web")
	if b := w.UntilIs("web", "InSync"); b.Spec.Authorized.Origin != v1alpha1.OriginCreated || b.Spec.Authorized.By != ci {
		t.Fatalf("authorized is %+v", b.Spec.Authorized)
	}
	w.SetEnv(alice, "web", "DEBUG", "1")
	drifted := w.Until("web", "the variable is drift", func(b *v1alpha1.Baseline) error {
		return wantFindings(b, 1, alice)
	})
	before := drifted.Status.Findings[0]
	w.SetImage(ci, "web", "registry.example/shop:2")
	after := w.Until("web", "the image is authorized", func(b *v1alpha1.Baseline) error {
		if n := guarded.Authorized(b); n != 2 {
			return fmt.Errorf("authorized number is %d", n)
		}
		return wantFindings(b, 1, alice)
	})
	if f := after.Status.Findings[0]; f.Path != before.Path || !f.FirstSeenTime.Equal(&before.FirstSeenTime) || f.Actor != before.Actor {
		t.Errorf("the finding was %+v and is %+v", before, f)
	}
}

func wantFindings(b *v1alpha1.Baseline, n int, user string) error {
	if len(b.Status.Findings) != n {
		return fmt.Errorf("%d findings, want %d", len(b.Status.Findings), n)
	}
	for _, f := range b.Status.Findings {
		if f.Actor.User != user || f.Actor.Source != v1alpha1.ActorSourceWriterStamp {
			return fmt.Errorf("the actor is %+v", f.Actor)
		}
	}
	return nil
}

func TestTakingAChangeBackEndsTheDrift(t *testing.T) {
	w := newWorld(t)
	start(t)
	w.UnderGuard()
	w.Deploy(ci, "web")
	w.UntilIs("web", "InSync")
	w.SetImage(alice, "web", "registry.example/evil:1")
	w.UntilIs("web", "Drifted: Changed /spec/template/spec/containers/[name=app]/image by alice (Untrusted, WriterStamp)")
	w.SetImage(bob, "web", "registry.example/shop:1")
	b := w.UntilIs("web", "InSync")
	if b.Spec.Authorized.Number != 1 {
		t.Errorf("taking a change back authorized number %d", b.Spec.Authorized.Number)
	}
}

func TestAnObjectCreatedByAStrangerIsDrift(t *testing.T) {
	w := newWorld(t)
	start(t)
	w.UnderGuard()
	w.Deploy(alice, "web")
	b := w.UntilIs("web", "Drifted: Added object by alice (Untrusted, WriterStamp)")
	if b.Spec.Authorized != nil {
		t.Errorf("it is authorized: %+v", b.Spec.Authorized)
	}
	if class := b.Status.Findings[0].Class; class != v1alpha1.ClassObjectUnexpected {
		t.Errorf("the finding is %s", class)
	}
	w.SetImage(ci, "web", "registry.example/shop:2")
	w.stays("web", "Drifted: Added object by alice (Untrusted, WriterStamp)")
}

func TestDeleteAndRecreate(t *testing.T) {
	w := newWorld(t)
	start(t)
	w.UnderGuard()
	old := w.Deploy(ci, "web")
	w.UntilIs("web", "InSync")
	w.Delete(alice, "web")
	w.UntilIs("web", "Missing: Removed object by ? (Unknown, None)")
	d := guarded.Deployment(w.namespace, "web")
	d.Spec.Template.Spec.Containers[0].Image = "registry.example/evil:1"
	w.Must(w.As(alice).Create(w.Ctx(), d))
	b := w.UntilIs("web", "Drifted: Changed /spec/template/spec/containers/[name=app]/image by alice (Untrusted, WriterStamp)")
	if b.Spec.Authorized.Number != 1 || b.Status.Observed.UID == string(old.UID) || b.Status.Observed.UID != string(d.UID) {
		t.Errorf("authorized is %+v, observed is %+v: want what CI made, compared with another object", b.Spec.Authorized, b.Status.Observed)
	}
}

// TestAnAutoscalerAndAPerson has an autoscaler move replicas fifty times while a
// person edits other fields and a controller writes the status in between. No
// webhook runs, so a write to /scale names nobody: replicas are written by PATCH
// of the object, as an autoscaler's API client may.
func TestAnAutoscalerAndAPerson(t *testing.T) {
	w := newWorld(t)
	p := start(t)
	w.UnderGuard()
	w.Deploy(ci, "web")
	w.UntilIs("web", "InSync")
	for i := range 50 {
		w.Patch(hpa, "web", fmt.Sprintf(`{"spec":{"replicas":%d}}`, 3+i%7))
		w.writeStatus("web", i)
		if i == 20 {
			w.SetEnv(alice, "web", "DEBUG", "1")
		}
		if i == 30 {
			p.faults.breakWatches()
		}
	}
	w.Until("web", "the variable is drift and the replicas are not", func(b *v1alpha1.Baseline) error {
		if len(b.Status.Findings) != 1 || b.Status.Findings[0].Actor.User != alice {
			return fmt.Errorf("findings")
		}
		if len(b.Status.Masks) != 1 || b.Status.Masks[0].Path != "/spec/replicas" || b.Status.Masks[0].Value != fmt.Sprint(3+49%7) {
			return fmt.Errorf("masks are %+v", b.Status.Masks)
		}
		return nil
	})
}

func TestAnObjectOfAControllerIsNotARoot(t *testing.T) {
	w := newWorld(t)
	start(t)
	w.UnderGuard(func(g *v1alpha1.SpecGuard) {
		g.Spec.Resources = append(g.Spec.Resources, v1alpha1.GuardedResource{APIVersion: "apps/v1", Kind: "ReplicaSet"})
	})
	d := w.Deploy(ci, "web")
	w.UntilIs("web", "InSync")
	w.Must(w.As("system:serviceaccount:kube-system:deployment-controller").Create(w.Ctx(), replicaSetOf(d)))
	w.Deploy(ci, "witness")
	w.UntilIs("witness", "InSync")
	var all v1alpha1.BaselineList
	w.Must(admin.List(w.Ctx(), &all, client.InNamespace(w.namespace)))
	if len(all.Items) != 2 {
		t.Errorf("%d baselines, want those of the two deployments", len(all.Items))
	}
}

func TestTakingTheLabelOffDoesNotFree(t *testing.T) {
	w := newWorld(t)
	start(t)
	w.UnderGuard(func(g *v1alpha1.SpecGuard) {
		g.Spec.Selector = selector("app", "web")
	})
	w.Deploy(ci, "web")
	w.UntilIs("web", "InSync")
	w.Patch(alice, "web", `{"metadata":{"labels":{"app":"gone"}}}`)
	w.SetImage(alice, "web", "registry.example/evil:1")
	w.UntilIs("web", "Drifted: Changed /spec/template/spec/containers/[name=app]/image by alice (Untrusted, WriterStamp)")
}

func TestARolloutRestartIsNoDrift(t *testing.T) {
	w := newWorld(t)
	start(t)
	w.UnderGuard()
	w.Deploy(ci, "web")
	w.UntilIs("web", "InSync")
	w.Patch(alice, "web", `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"2026-01-02T03:04:05Z"}}}}}`)
	w.stays("web", "InSync")
}
