// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

const namespaceController = "system:serviceaccount:kube-system:namespace-controller"

// terminate marks the namespace for deletion. No namespace controller runs here:
// the test does its work, in the order it wants.
func (w *world) terminate() {
	w.t.Helper()
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
}

// finalize is the namespace controller's last step.
func (w *world) finalize() {
	w.t.Helper()
	c, err := kubernetes.NewForConfig(config)
	w.Must(err)
	ns, err := c.CoreV1().Namespaces().Get(w.Ctx(), w.namespace, metav1.GetOptions{})
	w.Must(err)
	ns.Spec.Finalizers = nil
	if _, err = c.CoreV1().Namespaces().Finalize(w.Ctx(), ns, metav1.UpdateOptions{}); err != nil && !apierrors.IsNotFound(err) {
		w.t.Fatal(err)
	}
	w.Eventually("the namespace is gone", func() error {
		return isGone(admin.Get(w.Ctx(), client.ObjectKey{Name: w.namespace}, &corev1.Namespace{}))
	})
}

// TestDeletingANamespaceIsNoDrift deletes a namespace with guarded objects, one
// of them drifted, and what is in it in every order that matters, as discovery
// decides it. Nobody is told that anything is missing, nothing is told over and
// over, no figure is left behind, and the assessor comes to rest.
func TestDeletingANamespaceIsNoDrift(t *testing.T) {
	kinds := map[string]client.Object{
		"objects": &appsv1.Deployment{}, "guards": &v1alpha1.SpecGuard{},
		"baselines": &v1alpha1.Baseline{}, "revisions": &v1alpha1.BaselineRevision{},
	}
	orders := [][]string{
		{"objects", "guards", "baselines", "revisions"},
		{"baselines", "revisions", "guards", "objects"},
		{"guards", "revisions", "objects", "baselines"},
		{"revisions", "baselines", "objects", "guards"},
	}
	for _, order := range orders {
		t.Run(strings.Join(order, ", then "), func(t *testing.T) {
			rotation.Share(t, 2)
			const objects = 5
			w := newWorld(t)
			p := start(t)
			w.UnderGuard()
			for i := range objects {
				w.Deploy(ci, fmt.Sprint("web-", i))
				w.UntilIs(fmt.Sprint("web-", i), "InSync")
			}
			w.SetImage(alice, "web-0", "registry.example/evil:1")
			w.Until("web-0", "it drifts", isState(v1alpha1.StateDrifted))
			w.Eventually("the drift is told", func() error {
				told, err := w.events("Deployment", "web-0", specguard.ReasonDriftDetected)
				if err != nil {
					return err
				}
				if len(told) != 1 {
					return fmt.Errorf("%d events", len(told))
				}
				return nil
			})
			w.terminate()
			told := w.allEvents()
			var writes, events atomic.Int64
			p.faults.when(func(r *http.Request) error {
				switch {
				case r.Method == http.MethodGet || !strings.Contains(r.URL.Path, "/namespaces/"+w.namespace+"/"):
				case strings.HasSuffix(r.URL.Path, "/events"):
					events.Add(1)
				default:
					writes.Add(1)
				}
				return nil
			})
			for _, kind := range order {
				w.Must(w.As(namespaceController).DeleteAllOf(w.Ctx(), kinds[kind], client.InNamespace(w.namespace)))
			}
			w.shows(p, "plumbline_drift_objects", map[string]float64{})
			w.shows(p, "plumbline_drift_oldest_seconds", map[string]float64{})
			if more := w.allEvents()[len(told):]; len(more) > 0 {
				t.Errorf("%d events in a namespace that goes away, the first is %+v", len(more), more[0])
			}
			w.finalize()
			other := newWorld(t)
			other.UnderGuard()
			other.stays(other.witness(), "InSync")
			// Each object may be retired or released: a status, and a conflict on the way.
			if n := writes.Load(); n > 3*objects || events.Load() > 0 {
				t.Errorf("%d writes and %d events for %d objects that went away", n, events.Load(), objects)
			}
			t.Logf("%d writes", writes.Load())
			all, err := p.figures()
			w.Must(err)
			for name, n := range all {
				if strings.Contains(name, "class=ObjectMissing") && n > 0 {
					t.Errorf("%s is %v", name, n)
				}
			}
		})
	}
}

// witness makes an object that the assessor has dealt with.
func (w *world) witness() string {
	w.t.Helper()
	w.Deploy(ci, "witness")
	w.UntilIs("witness", "InSync")
	return "witness"
}

// allEvents are those of the namespace, oldest first.
func (w *world) allEvents() []eventsv1.Event {
	w.t.Helper()
	var list eventsv1.EventList
	w.Must(admin.List(w.Ctx(), &list, client.InNamespace(w.namespace)))
	slices.SortFunc(list.Items, func(a, b eventsv1.Event) int { return cmp.Compare(a.EventTime.UnixNano(), b.EventTime.UnixNano()) })
	return list.Items
}
