// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"reflect"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// endings are told whose streams have to end, by the pod's uid.
type endings struct {
	// gone is called for a pod that is over, and rescoped for one that depends on something
	// else now: its proxy comes back.
	gone, rescoped func(uid string)
}

// handlers of the watches have changes told, with how soon they matter, and whose streams have to end.
func (s *sources) handlers(ctx context.Context, changed changed, ended endings) map[client.Object]toolscache.ResourceEventHandler {
	handlers := map[client.Object]toolscache.ResourceEventHandler{
		&corev1.Service{}: simple(func(object any) {
			if svc, is := object.(*corev1.Service); is {
				changed(Later, dirtyService(svc.Namespace, svc.Name))
			}
		}),
		&corev1.Namespace{}:          s.onNamespaces(ctx, changed, ended.rescoped),
		&corev1.Node{}:               onNodes(changed),
		&discoveryv1.EndpointSlice{}: onSlices(changed),
		&corev1.Pod{}:                s.onPods(changed, ended),
	}
	if s.namespace != "" {
		handlers[&corev1.ConfigMap{}] = simple(func(any) { changed(Later, dirty{}) }) // each look reads it
	}
	return handlers
}

// watch what a mesh is made of.
func (s *sources) watch(ctx context.Context, changed changed, ended endings) error {
	for object, handler := range s.handlers(ctx, changed, ended) {
		if err := s.handle(ctx, object, handler); err != nil {
			return err
		}
	}
	if err := s.cache.IndexField(ctx, &corev1.Pod{}, injectedField, injected); err != nil {
		return fmt.Errorf("indexing pods: %w", err)
	}
	if err := s.cache.IndexField(ctx, &corev1.Pod{}, podAddressField, podAddresses); err != nil {
		return fmt.Errorf("indexing the addresses of pods: %w", err)
	}
	if err := s.cache.IndexField(ctx, &corev1.Service{}, addressField, addresses); err != nil {
		return fmt.Errorf("indexing Services: %w", err)
	}
	if err := s.cache.IndexField(ctx, &discoveryv1.EndpointSlice{}, sliceField, serviceOfSlice); err != nil {
		return fmt.Errorf("indexing EndpointSlices: %w", err)
	}
	return nil
}

// watchLease has each renewal of the lease told.
func (s *sources) watchLease(ctx context.Context, heard func()) error {
	if s.lease == "" || s.namespace == "" {
		return nil
	}
	return s.handle(ctx, &coordinationv1.Lease{}, simple(func(any) { heard() }))
}

func (s *sources) handle(ctx context.Context, object client.Object, handler toolscache.ResourceEventHandler) error {
	informer, err := s.cache.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching %T: %w", object, err)
	}
	if _, err := informer.AddEventHandler(handler); err != nil {
		return fmt.Errorf("watching %T: %w", object, err)
	}
	return nil
}

// simple tells of each change the object, as it is or was last.
func simple(tell func(object any)) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    tell,
		UpdateFunc: func(_, after any) { tell(after) },
		DeleteFunc: func(last any) { tell(lastOf(last)) },
	}
}

// onNodes tells of nodes that have another locality.
func onNodes(changed changed) toolscache.ResourceEventHandler {
	tell := func(object any) {
		if node, is := lastOf(object).(*corev1.Node); is {
			changed(Later, dirty{nodes: map[string]bool{node.Name: true}})
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: tell,
		UpdateFunc: func(before, after any) {
			was, is := before.(*corev1.Node), after.(*corev1.Node) //nolint:forcetypeassert // informers keep one type
			if localityOf(was) != localityOf(is) {
				tell(after)
			}
		},
		DeleteFunc: tell,
	}
}

// onSlices tells of the Service whose endpoints change.
func onSlices(changed changed) toolscache.ResourceEventHandler {
	of := func(objects ...any) (d dirty) {
		for _, object := range objects {
			if slice, is := lastOf(object).(*discoveryv1.EndpointSlice); is {
				d = d.with(dirtyService(slice.Namespace, slice.Labels[discoveryv1.LabelServiceName]))
			}
		}
		return d
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { changed(Later, of(object)) },
		UpdateFunc: func(before, after any) { changed(soonIf(loses(before, after)), of(before, after)) },
		DeleteFunc: func(last any) { changed(Soon, of(last)) },
	}
}

func soonIf(soon bool) Haste {
	if soon {
		return Soon
	}
	return Later
}

// onPods tells of pods that are part of a decision, of addresses that come and go, and of each
// whose streams end.
func (s *sources) onPods(changed changed, ended endings) toolscache.ResourceEventHandler {
	tell := func(namespace string, counts, soon bool, addresses map[netip.Addr]bool) {
		d := dirty{addresses: addresses}
		if counts = counts && s.concern.has(namespace); counts {
			d.pods = map[string]bool{namespace: true}
		}
		if counts || len(addresses) > 0 {
			changed(soonIf(counts && soon), d)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			if pod := podOf(object); pod != nil {
				tell(pod.Namespace, true, false, addressesOf(pod))
			}
		},
		UpdateFunc: func(before, after any) {
			was, is := podOf(before), podOf(after)
			if was == nil || is == nil {
				return
			}
			if was.UID != is.UID { // the end of the former was not seen
				ended.gone(string(was.UID))
			}
			switch {
			case over(is):
				ended.gone(string(is.UID))
			case leaves(was, is), rescoped(was, is):
				ended.rescoped(string(is.UID))
			}
			old, now := ir.PodOf(was), ir.PodOf(is)
			moved := united(addressesOf(was), addressesOf(is))
			if was.UID == is.UID && maps.Equal(addressesOf(was), addressesOf(is)) {
				moved = nil
			}
			tell(is.Namespace, !reflect.DeepEqual(old, now), serves(old) && !serves(now), moved)
		},
		DeleteFunc: func(last any) {
			ended.gone(uidOf(last))
			if pod := podOf(last); pod != nil {
				tell(pod.Namespace, true, true, addressesOf(pod))
			}
		},
	}
}

// serves says that a pod may be sent new requests.
func serves(p ir.Pod) bool { return p.Ready && !p.Terminating && len(p.Addresses) > 0 }

// addressesOf a pod that an endpoint may have.
func addressesOf(pod *corev1.Pod) map[netip.Addr]bool {
	addresses := map[netip.Addr]bool{}
	for _, text := range podAddresses(pod) {
		addresses[netip.MustParseAddr(text)] = true
	}
	return addresses
}

// onReleases tells at once what changes where requests go, and of no other change.
func (s *sources) onReleases(changed changed) toolscache.ResourceEventHandler {
	tell := func(r *v1alpha1.ABRelease, is, ended bool, services ir.Names) {
		s.concern.set(r.Namespace, releaseKind+"/"+r.Name, is)
		d := dirty{services: services}
		if ended {
			d.holders = ir.Names{client.ObjectKeyFromObject(r): true}
		}
		changed(AtOnce, d)
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			if r, is := object.(*v1alpha1.ABRelease); is {
				tell(r, true, false, servicesOf(r))
			}
		},
		UpdateFunc: func(before, after any) {
			was, is := before.(*v1alpha1.ABRelease), after.(*v1alpha1.ABRelease) //nolint:forcetypeassert // informers keep one type
			if was.UID != is.UID || !reflect.DeepEqual(was.Status.Effective, is.Status.Effective) {
				tell(is, true, was.UID != is.UID, united(servicesOf(was), servicesOf(is)))
			}
		},
		DeleteFunc: func(last any) {
			if r, is := lastOf(last).(*v1alpha1.ABRelease); is {
				tell(r, false, true, servicesOf(r))
			}
		},
	}
}

// onBaselines tells at once of quarantines.
func (s *sources) onBaselines(changed changed) toolscache.ResourceEventHandler {
	// of is the workload in quarantine; the zero Workload if there is none.
	of := func(object any) (w traffic.Workload) {
		if b, is := object.(*v1alpha1.Baseline); is && b.Status.Quarantine != nil {
			w = traffic.Workload{Namespace: b.Namespace, Kind: b.Spec.Target.Kind, Name: b.Spec.Target.Name}
		}
		return w
	}
	tell := func(object any, was, is traffic.Workload) {
		if b, known := object.(*v1alpha1.Baseline); known && was != is {
			s.concern.set(b.Namespace, baselineKind+"/"+b.Name, is != traffic.Workload{})
			changed(AtOnce, dirty{namespaces: map[string]bool{b.Namespace: true}})
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { tell(object, traffic.Workload{}, of(object)) },
		UpdateFunc: func(before, after any) { tell(after, of(before), of(after)) },
		DeleteFunc: func(last any) { tell(lastOf(last), of(lastOf(last)), traffic.Workload{}) },
	}
}

func podOf(object any) *corev1.Pod {
	pod, _ := lastOf(object).(*corev1.Pod)
	return pod
}

// lastOf is the object itself where its end was not seen.
func lastOf(object any) any {
	if tombstone, is := object.(toolscache.DeletedFinalStateUnknown); is {
		return tombstone.Obj
	}
	return object
}

func uidOf(last any) string {
	if o, err := meta.Accessor(lastOf(last)); err == nil {
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
