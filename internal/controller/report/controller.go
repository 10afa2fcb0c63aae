// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/report"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

const (
	// Name is the name of each report.
	Name = "plumbline"
	// Interval is how old a report is at most, and the least time between two writes of it.
	Interval = 10 * time.Second
	// retryMissing is the time to the next attempt where the kind of a format is not served.
	retryMissing = 5 * time.Minute
	// managedBy is the label of objects that Plumbline manages, and its value.
	managedBy, manager = "app.kubernetes.io/managed-by", "plumbline"
)

// errNameTaken is the error for a report that Plumbline did not make.
var errNameTaken = errors.New("another tool has made the report of this name")

// Reconciler writes the reports of namespaces.
type Reconciler struct {
	// Client reads Baselines and guards from the cache, and reads and writes reports.
	Client client.Client
	// Formats are the formats to write.
	Formats []report.Format
	Metrics *Metrics
	// Interval is [Interval] if it is zero.
	Interval time.Duration
	Log      logr.Logger
}

// Register adds the controller to a manager.
func (r *Reconciler) Register(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).Named("report").Watches(&v1alpha1.Baseline{}, r.enqueueNamespace()).Complete(r)
	if err != nil {
		return fmt.Errorf("registering the controller of reports: %w", err)
	}
	return nil
}

// enqueueNamespace enqueues the namespace of a Baseline after the interval: a namespace that
// is queued already keeps its time.
func (r *Reconciler) enqueueNamespace() handler.EventHandler {
	later := func(object client.Object, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		interval := r.Interval
		if interval == 0 {
			interval = Interval
		}
		queue.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: Name}}, interval)
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			later(e.Object, q)
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			later(e.ObjectNew, q)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			later(e.Object, q)
		},
	}
}

// Reconcile writes the reports of one namespace, or removes them if no object has a result.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	baselines, owners, err := r.read(ctx, request.Namespace)
	if err != nil {
		return reconcile.Result{}, err
	}
	built, ok := report.Build(baselines, owners)
	built.Namespace, built.Name, built.Labels = request.Namespace, request.Name, map[string]string{managedBy: manager}
	var failed []error
	result := reconcile.Result{}
	for _, format := range r.Formats {
		err := r.put(ctx, format, &built, ok)
		switch reason := r.Metrics.count(format, err); {
		case reason == reasonKindMissing || reason == reasonNameTaken:
			r.Log.Info("a report is not written", "namespace", request.Namespace, "format", format, "reason", reason, "error", err.Error())
			result.RequeueAfter = retryMissing
		case reason == reasonNamespaceEnding:
		case err != nil:
			failed = append(failed, err)
		}
	}
	return result, errors.Join(failed...)
}

// read lists the Baselines of a namespace, and the guards that may own its report.
func (r *Reconciler) read(ctx context.Context, namespace string) ([]*v1alpha1.Baseline, map[string]metav1.OwnerReference, error) {
	var list v1alpha1.BaselineList
	if err := r.Client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("listing the baselines of namespace %s: %w", namespace, err)
	}
	baselines := make([]*v1alpha1.Baseline, len(list.Items))
	for i := range list.Items {
		baselines[i] = &list.Items[i]
	}
	var own v1alpha1.SpecGuardList
	if err := r.Client.List(ctx, &own, client.InNamespace(namespace)); err != nil {
		return nil, nil, fmt.Errorf("listing the guards of namespace %s: %w", namespace, err)
	}
	var cluster v1alpha1.ClusterSpecGuardList
	if err := r.Client.List(ctx, &cluster); err != nil {
		return nil, nil, fmt.Errorf("listing the guards of the cluster: %w", err)
	}
	owners := map[string]metav1.OwnerReference{}
	add := func(kind string, ref specguard.GuardRef, uid types.UID) {
		owners[ref.String()] = metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind, Name: ref.Name, UID: uid}
	}
	for i := range own.Items {
		add("SpecGuard", specguard.GuardRef{Namespace: namespace, Name: own.Items[i].Name}, own.Items[i].UID)
	}
	for i := range cluster.Items {
		add("ClusterSpecGuard", specguard.GuardRef{Name: cluster.Items[i].Name}, cluster.Items[i].UID)
	}
	return baselines, owners, nil
}

// put stores a report if it differs from the stored one, and deletes the stored one if there
// is no result.
func (r *Reconciler) put(ctx context.Context, format report.Format, built *openreports.Report, wanted bool) error {
	object, err := format.Encode(built)
	if err != nil {
		return err
	}
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(format.Kind())
	err = r.Client.Get(ctx, client.ObjectKeyFromObject(object), stored)
	switch {
	case apierrors.IsNotFound(err) && !wanted:
		return nil
	case apierrors.IsNotFound(err):
		return wrapWrite("creating", object, r.Client.Create(ctx, object))
	case err != nil:
		return wrapWrite("reading", object, err)
	case stored.GetLabels()[managedBy] != manager && !wanted:
		return nil
	case stored.GetLabels()[managedBy] != manager:
		return wrapWrite("writing", object, errNameTaken)
	case !wanted:
		uid, version := stored.GetUID(), stored.GetResourceVersion()
		return wrapWrite("deleting", object, client.IgnoreNotFound(r.Client.Delete(ctx, stored, client.Preconditions{UID: &uid, ResourceVersion: &version})))
	case isEqual(stored, object):
		return nil
	}
	object.SetResourceVersion(stored.GetResourceVersion())
	object.SetUID(stored.GetUID())
	return wrapWrite("updating", object, r.Client.Update(ctx, object))
}

// isEqual compares all parts of a report that Plumbline writes.
func isEqual(stored, wanted *unstructured.Unstructured) bool {
	for _, field := range []string{"source", "summary", "results"} {
		if !equality.Semantic.DeepEqual(stored.Object[field], wanted.Object[field]) {
			return false
		}
	}
	return equality.Semantic.DeepEqual(stored.GetOwnerReferences(), wanted.GetOwnerReferences())
}

func wrapWrite(operation string, object *unstructured.Unstructured, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s %s/%s: %w", operation, object.GetKind(), object.GetNamespace(), object.GetName(), err)
}
