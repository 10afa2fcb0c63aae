// SPDX-License-Identifier: Apache-2.0

// One goroutine: the race detector has nothing to say, and takes six times as long.
//go:build !race

package abrelease

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// promoted is a world whose canary has all requests, while the Service selects the stable variation.
func promoted(t *testing.T) (*world, *workloads) {
	t.Helper()
	w, a := rolling(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Finalizers: []string{"kubernetes.io/content"}}}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.ServiceSpec{Selector: map[string]string{"workload": "web"}}}
	for _, o := range []client.Object{namespace, service} {
		if err := w.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if r := w.looks(); !controllerutil.ContainsFinalizer(r, v1alpha1.FinalizerReturnRequests) {
		t.Fatalf("nothing holds the release in a run: %v", r.Finalizers)
	}
	for n := range uint64(12) {
		w.tells(n+1, 0)
		w.look()
	}
	if r := w.looks(); r.Status.Split != "canary 100 / stable 0" || !controllerutil.ContainsFinalizer(r, v1alpha1.FinalizerReturnRequests) {
		t.Fatalf("in force is %q, and the finalizers are %v", r.Status.Split, r.Finalizers)
	}
	return w, a
}

// selectLabel has the Service select the pods with another label.
func (w *world) selectLabel(value string) {
	w.Helper()
	service := &corev1.Service{}
	if err := w.Client.Get(w.Context(), types.NamespacedName{Namespace: "shop", Name: "web"}, service); err != nil {
		w.Fatal(err)
	}
	service.Spec.Selector = map[string]string{"workload": value}
	if err := w.Client.Update(w.Context(), service); err != nil {
		w.Fatal(err)
	}
}

// lookOften looks at a release that may go meanwhile. It returns the release, or nil, and the last error.
func (w *world) lookOften() (*v1alpha1.ABRelease, error) {
	w.Helper()
	name := types.NamespacedName{Namespace: "shop", Name: "web"}
	var last error
	for range 6 {
		_, last = w.Reconcile(w.Context(), reconcile.Request{NamespacedName: name})
	}
	r := &v1alpha1.ABRelease{}
	err := w.Client.Get(w.Context(), name, r)
	if apierrors.IsNotFound(err) {
		return nil, last
	}
	if err != nil {
		w.Fatal(err)
	}
	return r, last
}

func TestADeletedReleaseReturnsItsRequestsFirst(t *testing.T) {
	cases := map[string]struct {
		given func(*world, *workloads)
		// waits is a part of what the release waits for, or of the error; empty if it goes at once.
		waits string
		then  func(*world, *workloads)
	}{
		"and goes when proxies have them": {},
		"and waits for pods that can take them": {
			given: func(w *world, _ *workloads) { w.ready["stable"] = 1 },
			waits: "stable, which the Service selects, has 1 ready pods and wants 4",
			then:  func(w *world, _ *workloads) { w.ready["stable"] = 4 },
		},
		"and waits for proxies": {
			given: func(w *world, _ *workloads) {
				w.router.Say(traffic.Observation{Knowledge: traffic.Unknown, Wanted: 2, Acknowledged: 1, OutOfSync: []traffic.OutOfSync{{Name: "shop/front-0"}}})
			},
			waits: "all requests to go to stable",
			then: func(w *world, _ *workloads) {
				w.router.Say(traffic.Observation{Sequence: w.router.Current().Sequence, Knowledge: traffic.Proven, Wanted: 2, Acknowledged: 2})
			},
		},
		"and waits for workloads that cannot be read": {
			given: func(_ *world, a *workloads) { a.err = errors.New("the API server is away") },
			waits: "its workloads cannot be read",
			then:  func(_ *world, a *workloads) { a.err = nil },
		},
		"but not in a namespace that is being deleted": {given: func(w *world, _ *workloads) {
			w.ready["stable"] = 0
			if err := w.Client.Delete(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}); err != nil {
				w.Fatal(err)
			}
		}},
		"but not without the Service":                 {given: func(w *world, _ *workloads) { w.ready["stable"], w.absent = 0, true }},
		"but not if the Service selects no variation": {given: func(w *world, _ *workloads) { w.ready["stable"] = 0; w.selectLabel("other") }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w, a := promoted(t)
			if tc.given != nil {
				tc.given(w, a)
			}
			if err := w.Client.Delete(t.Context(), &v1alpha1.ABRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}); err != nil {
				t.Fatal(err)
			}
			r, err := w.lookOften()
			if tc.waits != "" {
				said := ""
				switch {
				case r == nil:
					t.Fatal("the release is gone")
				case err != nil:
					said = err.Error()
				case r.Status.Rollout.Waiting != nil:
					said = r.Status.Rollout.Waiting.Message
				}
				if !strings.Contains(said, tc.waits) {
					t.Fatalf("it waits for %q, want %q: %+v", said, tc.waits, r.Status)
				}
				tc.then(w, a)
				r, err = w.lookOften()
			}
			if r != nil || err != nil {
				t.Fatalf("the release is held: %v\n%+v", err, r)
			}
			if all := w.router.Applied(); tc.given == nil && all[len(all)-1].Shares[0].Variation != "stable" {
				t.Errorf("at last requests went to %+v", all[len(all)-1].Shares)
			}
		})
	}
}

func TestNothingHoldsAReleaseWhoseActiveVariationTheServiceSelects(t *testing.T) {
	w, _ := promoted(t)
	w.selectLabel("canary")
	if r := w.looks(); len(r.Finalizers) > 0 {
		t.Errorf("the finalizers are %v", r.Finalizers)
	}
	w.selectLabel("web")
	if r := w.looks(); !controllerutil.ContainsFinalizer(r, v1alpha1.FinalizerReturnRequests) {
		t.Error("a Service that selects the stable variation again holds nothing")
	}
	w.edit(func(r *v1alpha1.ABRelease) { r.Spec.Rollout = nil })
	if r := w.looks(); len(r.Finalizers) > 0 {
		t.Errorf("without a rollout the finalizers are %v", r.Finalizers)
	}
}

func TestAReleaseInARunReturnsToTheActiveVariation(t *testing.T) {
	w, _ := rolling(t)
	w.looks()
	if err := w.Client.Delete(t.Context(), &v1alpha1.ABRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}); err != nil {
		t.Fatal(err)
	}
	if r, err := w.lookOften(); r != nil || err != nil {
		t.Fatalf("the release is held: %v\n%+v", err, r)
	}
}
