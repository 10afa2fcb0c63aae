// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
)

// name of the controller, and of who reports its events.
const name = "authority"

// concurrency bounds how many namespaces are written at once: a change of authority
// goes to all of them.
const concurrency = 4

// Add adds the controller to a manager, which works only while it leads. namespace is
// Plumbline's own.
func Add(mgr manager.Manager, namespace string, metrics *Metrics) error {
	cached, err := newCache(mgr)
	if err != nil {
		return err
	}
	// As a plain function it is started when this replica leads, and not before.
	if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		metrics.reset()
		defer metrics.reset()
		return cached.Start(ctx)
	})); err != nil {
		return fmt.Errorf("adding the cache of authorities: %w", err)
	}
	r := &Reconciler{
		Reader: cached, Writer: mgr.GetClient(), Namespace: namespace,
		Recorder: mgr.GetEventRecorder("plumbline-xds"), Metrics: metrics, Log: mgr.GetLogger().WithName(name),
	}
	itself := func(_ context.Context, object client.Object) []reconcile.Request { return of(object.GetName()) }
	its := func(_ context.Context, object client.Object) []reconcile.Request { return of(object.GetNamespace()) }
	err = builder.TypedControllerManagedBy[reconcile.Request](mgr).Named(name).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency}).
		WatchesRawSource(source.Kind[client.Object](cached, &corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(itself))).
		WatchesRawSource(source.Kind[client.Object](cached, pod(), handler.EnqueueRequestsFromMapFunc(its))).
		WatchesRawSource(source.Kind[client.Object](cached, &corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.concerned))).
		Complete(r)
	if err != nil {
		return fmt.Errorf("adding the controller of authorities: %w", err)
	}
	return nil
}

func of(namespace string) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: namespace}}}
}

// concerned are the namespaces that a ConfigMap matters to: all, if it is the original.
func (r *Reconciler) concerned(ctx context.Context, object client.Object) []reconcile.Request {
	if object.GetNamespace() != r.Namespace {
		return of(object.GetNamespace())
	}
	var namespaces corev1.NamespaceList
	if err := r.Reader.List(ctx, &namespaces, client.UnsafeDisableDeepCopy); err != nil {
		r.Log.Error(err, "reading the cache of namespaces")
		return nil
	}
	var out []reconcile.Request
	for i := range namespaces.Items {
		out = append(out, of(namespaces.Items[i].Name)...)
	}
	return out
}

// newCache follows namespaces, the metadata of pods with a proxy, and the ConfigMaps
// of our name. It is apart from the manager's, whose other users see all pods.
func newCache(mgr manager.Manager) (cache.Cache, error) {
	proxied, err := labels.NewRequirement(inject.LabelProxy, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("selecting pods with a proxy: %w", err)
	}
	cached, err := cache.New(mgr.GetConfig(), cache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(),
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			pod():               {Label: labels.NewSelector().Add(*proxied)},
			&corev1.ConfigMap{}: {Field: fields.OneTermEqualSelector(metav1.ObjectNameField, inject.CAConfigMap)},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("making the cache of authorities: %w", err)
	}
	return cached, nil
}

func pod() *metav1.PartialObjectMetadata {
	p := &metav1.PartialObjectMetadata{}
	p.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	return p
}

func pods() *metav1.PartialObjectMetadataList {
	p := &metav1.PartialObjectMetadataList{}
	p.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	return p
}

var _ reconcile.Reconciler = (*Reconciler)(nil)
