// SPDX-License-Identifier: Apache-2.0

//go:build integration

package faults

import (
	"fmt"
	"testing"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

func definition(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: apiextensions.GroupName, Version: "v1", Kind: "CustomResourceDefinition"})
	u.SetName(name)
	return u
}

// removeKind deletes a CustomResourceDefinition, and with it every object of the
// kind, and waits until it is gone.
func (w *world) removeKind(name string) {
	w.t.Helper()
	w.Must(w.c.Admin.Delete(w.Ctx(), definition(name)))
	w.Eventually(name+" is gone", func() error {
		err := w.c.Admin.Get(w.Ctx(), client.ObjectKey{Name: name}, definition(name))
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is not: %w", err)
	})
}

// restoreKind makes a kind of the chart anew and waits until it is served.
func (w *world) restoreKind(name string, list client.ObjectList) {
	w.t.Helper()
	for _, object := range manifest {
		if object.GetKind() == "CustomResourceDefinition" && object.GetName() == name {
			w.Must(w.c.Admin.Create(w.Ctx(), object.DeepCopy()))
		}
	}
	w.Eventually(name+" is served", func() error { return w.c.Admin.List(w.Ctx(), list) })
}

// requests is how many requests a process has made.
func (w *world) requests(p *server.Process) float64 {
	w.t.Helper()
	n, err := p.Metric(w.Ctx(), "plumbline_api_requests_total")
	w.Must(err)
	return n
}

// calm checks that a process does not flood the API server with requests.
func (w *world) calm(p *server.Process) {
	w.t.Helper()
	const window = 5 * time.Second
	before, began := w.requests(p), time.Now()
	w.Eventually("the window is over", func() error {
		if left := window - time.Since(began); left > 0 {
			return fmt.Errorf("%s are left", left)
		}
		return nil
	})
	if n := w.requests(p) - before; n > 150 {
		w.t.Errorf("%v requests in %s, want at most 150", n, window)
	} else {
		w.t.Logf("%v requests in %s", n, window)
	}
}

func lost(b *v1alpha1.Baseline) error {
	ready := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady)
	if b.Status.State != v1alpha1.StateUnknown || ready == nil || ready.Status != metav1.ConditionUnknown || ready.Reason != v1alpha1.ReasonBodyLost {
		return fmt.Errorf("Ready is %+v", ready)
	}
	if b.Spec.Authorized != nil {
		return fmt.Errorf("authorized is %+v", b.Spec.Authorized)
	}
	return nil
}

// baselinesLost deletes the kind of Baselines, and so all that was authorized.
// What runs then may be drift. It must not be taken for authorized just because
// it is older than its guard; that holds for a first adoption alone.
func baselinesLost(t *testing.T, c *cluster) {
	const kind = "baselines.plumbline.dev"
	w := c.newWorld(t)
	w.Deploy(ci, "old")
	w.SecondOver(w.Deploy(ci, "old-drifted").CreationTimestamp.Time)
	p := w.assessor("")
	g := w.UnderGuard()
	for _, name := range []string{"old", "old-drifted"} {
		b := w.untilAuthorized(name, 1)
		if o := b.Spec.Authorized.Origin; o != v1alpha1.OriginImported {
			t.Fatalf("the origin of %s is %s", name, o)
		}
	}
	w.Deploy(ci, "young")
	w.untilAuthorized("young", 1)
	w.Deploy(alice, "strange")
	w.UntilIs("strange", unexpected)
	w.SetImage(alice, "old-drifted", evilImage)
	w.UntilIs("old-drifted", evil)

	w.removeKind(kind)
	w.SetImage(alice, "old", evilImage)
	w.Deploy(ci, "meanwhile")
	w.calm(p)
	w.restoreKind(kind, &v1alpha1.BaselineList{})
	h, stop := w.record()

	// Who created these and that nobody wrote since is proven by the objects.
	for _, name := range []string{"young", "meanwhile"} {
		if b := w.untilAuthorized(name, 1); b.Spec.Authorized.By != ci {
			t.Errorf("%s is authorized by %q", name, b.Spec.Authorized.By)
		}
	}
	w.UntilIs("strange", unexpected)
	lostObjects := []string{"old", "old-drifted"}
	for _, name := range lostObjects {
		w.Until(name, "it is said that what was authorized is lost", lost)
		w.Eventually("it is said aloud", func() error {
			if n := len(w.events("Deployment", name, "ObjectUnreadable")); n == 0 {
				return fmt.Errorf("no event")
			}
			return nil
		})
	}
	w.Must(p.Stop())
	p = w.assessor("")
	w.Deploy(ci, "witness")
	w.untilAuthorized("witness", 1)
	for _, name := range lostObjects {
		w.Until(name, "a restart changes nothing", lost)
	}
	stop()
	for _, name := range lostObjects {
		h.only(name, "Unknown")
	}

	// The two ways back: to accept one object, and to adopt all of them anew.
	b, err := w.Baseline("old-drifted")
	w.Must(err)
	w.accept(bob, b)
	if b := w.untilAuthorized("old-drifted", 1); b.Spec.Authorized.By != bob {
		t.Errorf("authorized is %+v, want bob's", b.Spec.Authorized)
	}
	w.Must(c.Admin.Delete(w.Ctx(), g))
	w.UnderGuard()
	if b := w.untilAuthorized("old", 1); b.Spec.Authorized.Origin != v1alpha1.OriginImported {
		t.Errorf("authorized is %+v, want it imported", b.Spec.Authorized)
	}
	w.alive(p)
}

// guardsLost deletes the kind of guards, and so all guards of namespaces. The
// Baselines stay, and what drifted meanwhile is drift once the guard is back,
// although every object is older than the new guard.
func guardsLost(t *testing.T, c *cluster) {
	long(t)
	const kind = "specguards.plumbline.dev"
	w := c.newWorld(t)
	h, stop := w.record()
	p := w.assessor("")
	w.UnderGuard()
	for _, name := range []string{"web", "quiet", "released"} {
		w.Deploy(ci, name)
		w.untilAuthorized(name, 1)
	}
	w.removeKind(kind)
	w.Until("web", "it is said that nothing is compared", func(b *v1alpha1.Baseline) error {
		ready := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || ready.Status != metav1.ConditionUnknown || ready.Reason != "NotGuarded" {
			return fmt.Errorf("Ready is %+v", ready)
		}
		return nil
	})
	w.SetImage(alice, "web", evilImage)
	w.SetImage(ci, "released", "registry.example/shop:2")
	w.calm(p)
	w.restoreKind(kind, &v1alpha1.SpecGuardList{})
	w.UnderGuard()
	w.UntilIs("web", evil)
	w.untilAuthorized("released", 2)
	w.untilAuthorized("quiet", 1)
	w.alive(p)
	stop()
	h.only("web", inSync, evil)
	h.only("quiet", inSync)
	h.only("released", inSync)
}
