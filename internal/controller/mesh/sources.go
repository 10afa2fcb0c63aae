// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// sources are the caches of what a mesh is made of. They implement [Cluster].
type sources struct{ cache cache.Cache }

func newSources(config *rest.Config) (*sources, error) {
	types := runtime.NewScheme()
	if err := scheme.AddToScheme(types); err != nil {
		return nil, fmt.Errorf("registering kinds: %w", err)
	}
	work := rest.CopyConfig(config)
	work.QPS = -1 // the API server's priority and fairness decides
	c, err := cache.New(work, cache.Options{
		Scheme: types, Mapper: mapper(), DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {Transform: slimPod}, &corev1.Node{}: {Transform: slimNode}},
	})
	if err != nil {
		return nil, fmt.Errorf("making the cache: %w", err)
	}
	return &sources{c}, nil
}

// mapper knows the kinds that are cached, so that the process starts while the API
// server is away.
func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"Service", "Pod"} {
		m.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	for _, kind := range []string{"Node", "Namespace"} {
		m.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeRoot)
	}
	m.Add(discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"), meta.RESTScopeNamespace)
	return m
}

// slimPod keeps of a pod what is asked of it: of all objects there are most of these.
func slimPod(object any) (any, error) {
	pod, is := object.(*corev1.Pod)
	if !is {
		return object, nil
	}
	slim := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		Labels: pod.Labels, DeletionTimestamp: pod.DeletionTimestamp, OwnerReferences: pod.OwnerReferences,
	}}
	if upstreams, there := pod.Annotations[UpstreamsAnnotation]; there {
		slim.Annotations = map[string]string{UpstreamsAnnotation: upstreams}
	}
	slim.Spec.ServiceAccountName, slim.Spec.NodeName = pod.Spec.ServiceAccountName, pod.Spec.NodeName
	slim.Status.Phase = pod.Status.Phase
	return slim, nil
}

func slimNode(object any) (any, error) {
	node, is := object.(*corev1.Node)
	if !is {
		return object, nil
	}
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion, Labels: node.Labels}}, nil
}

// watch has changes told, urgent ones as such, and the ends of pods.
func (s *sources) watch(ctx context.Context, changed func(urgent bool), ended func(uid string)) error {
	simple := toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { changed(false) },
		UpdateFunc: func(any, any) { changed(false) },
		DeleteFunc: func(any) { changed(false) },
	}
	handlers := map[client.Object]toolscache.ResourceEventHandler{
		&corev1.Service{}:   simple,
		&corev1.Namespace{}: toolscache.ResourceEventHandlerFuncs{}, // asked for when a stream begins
		&corev1.Node{}: toolscache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { changed(false) },
			UpdateFunc: func(before, after any) {
				if !maps.Equal(labelsOf(before), labelsOf(after)) {
					changed(false)
				}
			},
		},
		&discoveryv1.EndpointSlice{}: toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { changed(false) },
			UpdateFunc: func(before, after any) { changed(loses(before, after)) },
			DeleteFunc: func(any) { changed(true) },
		},
		&corev1.Pod{}: toolscache.ResourceEventHandlerFuncs{
			UpdateFunc: func(_, after any) {
				if pod, is := after.(*corev1.Pod); is && over(pod) {
					ended(string(pod.UID))
				}
			},
			DeleteFunc: func(last any) { ended(uidOf(last)) },
		},
	}
	for object, handler := range handlers {
		informer, err := s.cache.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watching %T: %w", object, err)
		}
		if _, err := informer.AddEventHandler(handler); err != nil {
			return fmt.Errorf("watching %T: %w", object, err)
		}
	}
	return nil
}

func labelsOf(object any) map[string]string {
	if o, err := meta.Accessor(object); err == nil {
		return o.GetLabels()
	}
	return nil
}

func uidOf(last any) string {
	if tombstone, is := last.(toolscache.DeletedFinalStateUnknown); is {
		last = tombstone.Obj
	}
	if o, err := meta.Accessor(last); err == nil {
		return string(o.GetUID())
	}
	return ""
}

// loses says that an endpoint that was ready no longer is.
func loses(before, after any) bool {
	was, is := readyAddresses(before), readyAddresses(after)
	for address := range was {
		if !is[address] {
			return true
		}
	}
	return false
}

func readyAddresses(object any) map[string]bool {
	slice, is := object.(*discoveryv1.EndpointSlice)
	if !is {
		return nil
	}
	ready := map[string]bool{}
	for _, e := range slice.Endpoints {
		if e.Conditions.Ready == nil || *e.Conditions.Ready {
			for _, address := range e.Addresses {
				ready[address] = true
			}
		}
	}
	return ready
}

// inputs reads what there is.
func (s *sources) inputs(ctx context.Context) (in ir.Inputs, err error) {
	var services corev1.ServiceList
	var slices discoveryv1.EndpointSliceList
	var nodes corev1.NodeList
	for _, list := range []client.ObjectList{&services, &slices, &nodes} {
		if err := s.cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return in, fmt.Errorf("reading the cache of %T: %w", list, err)
		}
	}
	for i := range services.Items {
		in.Services = append(in.Services, &services.Items[i])
	}
	for i := range slices.Items {
		in.Slices = append(in.Slices, &slices.Items[i])
	}
	in.Localities = map[string]ir.Locality{}
	for i := range nodes.Items {
		n := &nodes.Items[i]
		in.Localities[n.Name] = ir.Locality{Region: n.Labels[corev1.LabelTopologyRegion], Zone: n.Labels[corev1.LabelTopologyZone]}
	}
	return in, nil
}

// Pod implements Cluster.
func (s *sources) Pod(namespace, name string) *corev1.Pod {
	var pod corev1.Pod
	if s.cache.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, &pod) != nil {
		return nil
	}
	return &pod
}

// NamespaceAnnotation implements Cluster.
func (s *sources) NamespaceAnnotation(namespace, annotation string) string {
	var n corev1.Namespace
	if s.cache.Get(context.Background(), client.ObjectKey{Name: namespace}, &n) != nil {
		return ""
	}
	return n.Annotations[annotation]
}

// podsOf tells the verifier of tokens about pods.
type podsOf struct{ cluster Cluster }

// Pod implements identity.Pods.
func (p podsOf) Pod(namespace, name string) (uid, serviceAccount string, found bool) {
	pod := p.cluster.Pod(namespace, name)
	if pod == nil {
		return "", "", false
	}
	return string(pod.UID), pod.Spec.ServiceAccountName, true
}
