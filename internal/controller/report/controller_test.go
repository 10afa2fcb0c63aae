// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/report"
	"github.com/plumbline-dev/plumbline/test/harness/fakeclient"
)

var kinds = fakeclient.KindsOf(v1alpha1.AddToScheme, openreports.Install)

// world is a namespace with one guarded Deployment.
type world struct {
	client.Client
	*Reconciler
	writes  int
	missing bool
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{}
	guard := &v1alpha1.SpecGuard{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "workloads", UID: "guard"}}
	b := &v1alpha1.Baseline{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deployments.apps.web"}}
	b.Spec.Target = v1alpha1.BaselineTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	b.Status.State, b.Status.Guards = v1alpha1.StateInSync, []string{"SpecGuard/workloads"}
	w.Client = fakeclient.NewBuilder(kinds()).WithObjects(guard, b).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if w.missing {
				return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "openreports.io", Kind: "Report"}}
			}
			return c.Get(ctx, key, o, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			w.writes++
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			w.writes++
			return c.Update(ctx, o, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			w.writes++
			return c.Delete(ctx, o, opts...)
		},
	}).Build()
	metrics, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	w.Reconciler = &Reconciler{Client: w.Client, Formats: []report.Format{report.OpenReports}, Metrics: metrics, Log: logr.Discard()}
	return w
}

func (w *world) reconcile(t *testing.T) reconcile.Result {
	t.Helper()
	result, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: Name}})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// stored reads the report by the types of its own module.
func (w *world) stored(t *testing.T) *openreports.Report {
	t.Helper()
	stored := &openreports.Report{}
	switch err := w.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: Name}, stored); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		t.Fatal(err)
	}
	return stored
}

func (w *world) setState(t *testing.T, state v1alpha1.DriftState) {
	t.Helper()
	b := &v1alpha1.Baseline{}
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "deployments.apps.web"}, b); err != nil {
		t.Fatal(err)
	}
	b.Status.State = state
	if err := w.Update(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	w.writes = 0
}

func TestAReportFollowsItsBaselinesAndIsWrittenOncePerChange(t *testing.T) {
	w := newWorld(t)
	w.reconcile(t)
	r := w.stored(t)
	if r == nil || r.Summary.Pass != 1 || r.Labels[managedBy] != manager {
		t.Fatalf("the report is %+v", r)
	}
	if diff := cmp.Diff([]metav1.OwnerReference{{APIVersion: "plumbline.dev/v1alpha1", Kind: "SpecGuard", Name: "workloads", UID: "guard"}}, r.OwnerReferences); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.reconcile(t)
	if w.writes != 1 {
		t.Errorf("%d writes, want 1: an equal report is written again", w.writes)
	}
	w.setState(t, v1alpha1.StateMissing)
	w.reconcile(t)
	if r := w.stored(t); r.Summary.Pass != 0 || r.Summary.Fail != 1 || w.writes != 1 {
		t.Errorf("the report is %+v after %d writes", r, w.writes)
	}
	w.setState(t, v1alpha1.StateRetired)
	w.reconcile(t)
	if r := w.stored(t); r != nil {
		t.Errorf("the report is still there: %+v", r)
	}
	w.reconcile(t)
	if n := testutil.CollectAndCount(w.Metrics.errors); n != 6 {
		t.Errorf("%d series of errors, want 6 of value zero", n)
	}
}

func TestAReportOfAnotherToolStaysAsItIs(t *testing.T) {
	w := newWorld(t)
	others := &openreports.Report{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: Name}, Source: "scanner"}
	if err := w.Create(t.Context(), others); err != nil {
		t.Fatal(err)
	}
	w.writes = 0
	for _, state := range []v1alpha1.DriftState{v1alpha1.StateDrifted, v1alpha1.StateRetired} {
		w.setState(t, state)
		if result := w.reconcile(t); state == v1alpha1.StateDrifted && result.RequeueAfter != retryMissing {
			t.Errorf("the next attempt is after %s", result.RequeueAfter)
		}
		if r := w.stored(t); r == nil || r.Source != "scanner" || len(r.Results) > 0 {
			t.Errorf("the report of the scanner is %+v", r)
		}
	}
	if got := testutil.ToFloat64(w.Metrics.errors.WithLabelValues("OpenReports", reasonNameTaken)); got < 1 {
		t.Errorf("%v errors are counted", got)
	}
}

func TestAKindThatIsNotServedIsTriedAgain(t *testing.T) {
	w := newWorld(t)
	w.missing = true
	if result := w.reconcile(t); result.RequeueAfter != retryMissing {
		t.Errorf("the next attempt is after %s, want %s", result.RequeueAfter, retryMissing)
	}
	if got := testutil.ToFloat64(w.Metrics.errors.WithLabelValues("OpenReports", reasonKindMissing)); got != 1 {
		t.Errorf("%v errors are counted", got)
	}
	w.missing = false
	w.reconcile(t)
	if w.stored(t) == nil {
		t.Error("there is no report after the kind is served")
	}
}
