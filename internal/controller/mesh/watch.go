// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"context"
	"fmt"
	"maps"
	"reflect"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// endings are told whose streams have to end, by the pod's uid.
type endings struct {
	// gone is called for a pod that is over, and rescoped for one that depends on something
	// else now: its proxy comes back.
	gone, rescoped func(uid string)
}

// watch has changes told, with how soon they matter, and whose streams have to end.
func (s *sources) watch(ctx context.Context, changed func(Haste), ended endings) error {
	handlers := map[client.Object]toolscache.ResourceEventHandler{
		&corev1.Service{}:   simple(changed),
		&corev1.Namespace{}: s.onNamespaces(ctx, changed, ended.rescoped),
		&corev1.Node{}: toolscache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { changed(Later) },
			UpdateFunc: func(before, after any) {
				if !maps.Equal(labelsOf(before), labelsOf(after)) {
					changed(Later)
				}
			},
		},
		&discoveryv1.EndpointSlice{}: toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { changed(Later) },
			UpdateFunc: func(before, after any) { changed(soonIf(loses(before, after))) },
			DeleteFunc: func(any) { changed(Soon) },
		},
		&corev1.Pod{}: s.onPods(changed, ended),
	}
	if s.namespace != "" {
		handlers[&corev1.ConfigMap{}] = simple(changed)
	}
	for object, handler := range handlers {
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
	return nil
}

// watchLease has each renewal of the lease told.
func (s *sources) watchLease(ctx context.Context, heard func()) error {
	if s.lease == "" || s.namespace == "" {
		return nil
	}
	return s.handle(ctx, &coordinationv1.Lease{}, simple(func(Haste) { heard() }))
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

// simple tells of each change.
func simple(changed func(Haste)) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { changed(Later) },
		UpdateFunc: func(any, any) { changed(Later) },
		DeleteFunc: func(any) { changed(Later) },
	}
}

func soonIf(soon bool) Haste {
	if soon {
		return Soon
	}
	return Later
}

// onPods tells of pods that are part of a decision, and of each whose streams end.
func (s *sources) onPods(changed func(Haste), ended endings) toolscache.ResourceEventHandler {
	tell := func(object any, soon bool) {
		if pod := podOf(object); pod != nil && s.concerns(pod.Namespace) {
			changed(soonIf(soon))
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { tell(object, false) },
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
			if old, now := ir.PodOf(was), ir.PodOf(is); !reflect.DeepEqual(old, now) {
				tell(after, serves(old) && !serves(now))
			}
		},
		DeleteFunc: func(last any) {
			ended.gone(uidOf(last))
			tell(last, true)
		},
	}
}

// serves says that a pod may be sent new requests.
func serves(p ir.Pod) bool { return p.Ready && !p.Terminating && len(p.Addresses) > 0 }

// onReleases tells at once what changes where requests go, and of no other change.
func onReleases(changed func(Haste)) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { changed(AtOnce) },
		UpdateFunc: func(before, after any) {
			was, is := before.(*v1alpha1.ABRelease), after.(*v1alpha1.ABRelease) //nolint:forcetypeassert // informers keep one type
			if !reflect.DeepEqual(was.Status.InForce, is.Status.InForce) {
				changed(AtOnce)
			}
		},
		DeleteFunc: func(any) { changed(AtOnce) },
	}
}

// onBaselines tells at once of quarantines.
func onBaselines(changed func(Haste)) toolscache.ResourceEventHandler {
	in := func(object any) bool {
		b, is := object.(*v1alpha1.Baseline)
		return is && b.Status.Quarantine != nil
	}
	tell := func(is bool) {
		if is {
			changed(AtOnce)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { tell(in(object)) },
		UpdateFunc: func(before, after any) { tell(in(before) != in(after)) },
		DeleteFunc: func(last any) { tell(in(lastOf(last))) },
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

func labelsOf(object any) map[string]string {
	if o, err := meta.Accessor(object); err == nil {
		return o.GetLabels()
	}
	return nil
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
