// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"maps"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/pkg/traffic/release"
)

// changed is told of a change: how soon it matters, and what of the mesh has to be built anew.
type changed func(Haste, dirty)

// dirty says what of the mesh has to be built anew. The zero dirty is none of it.
type dirty struct {
	// everything is for what all Services depend on.
	everything bool
	services   ir.Names
	// holders are releases that have ended, whose sequences outlive them.
	holders ir.Names
	// namespaces are those of which all Services are dirty, pods those of which pods have changed.
	namespaces, pods map[string]bool
	// addresses are those that a pod has or had.
	addresses map[netip.Addr]bool
	// nodes are those that have another locality.
	nodes map[string]bool
}

// dirtyService is one Service.
func dirtyService(namespace, name string) dirty {
	return dirty{services: ir.Names{{Namespace: namespace, Name: name}: true}}
}

// with has what is dirty by either.
func (d dirty) with(other dirty) dirty {
	d.everything = d.everything || other.everything
	d.services, d.holders = united(d.services, other.services), united(d.holders, other.holders)
	d.addresses, d.nodes = united(d.addresses, other.addresses), united(d.nodes, other.nodes)
	d.namespaces, d.pods = united(d.namespaces, other.namespaces), united(d.pods, other.pods)
	return d
}

// united adds to a set, which may be nil.
func united[K comparable, S ~map[K]bool](set, other S) S {
	if len(other) == 0 {
		return set
	}
	if set == nil {
		set = S{}
	}
	maps.Copy(set, other)
	return set
}

// names of the Services, and namespaces, that have to be built anew. The ledger is read at each look: a
// release that ends has the sequence that the ledger has for it at that moment.
func (s *sources) names(ctx context.Context, d dirty, memory *ir.Memory) (ir.Names, error) {
	names := united(ir.Names{}, d.services)
	if err := s.readEntries(ctx, names); err != nil {
		return nil, err
	}
	maps.Copy(names, s.numbers.unsure)
	maps.Copy(names, s.heldBy(d.holders))
	if d.everything {
		return names, s.everything(ctx, memory, names)
	}
	for namespace := range d.pods {
		workloads, err := s.quarantined(ctx, namespace)
		if err != nil {
			return nil, err
		}
		if len(workloads) > 0 {
			d.namespaces = united(d.namespaces, map[string]bool{namespace: true})
		}
		maps.Copy(names, memory.Divided(namespace))
	}
	for namespace := range d.namespaces {
		names[types.NamespacedName{Namespace: namespace}] = true
		maps.Copy(names, memory.In(namespace))
		if err := s.labeled(ctx, names, client.InNamespace(namespace)); err != nil {
			return nil, err
		}
	}
	for address := range d.addresses {
		maps.Copy(names, memory.Behind(address))
	}
	for node := range d.nodes {
		maps.Copy(names, memory.On(node))
	}
	return names, nil
}

// everything there is and was.
func (s *sources) everything(ctx context.Context, memory *ir.Memory, names ir.Names) error {
	var namespaces corev1.NamespaceList
	if err := s.list(ctx, &namespaces); err != nil {
		return err
	}
	for i := range namespaces.Items {
		names[types.NamespacedName{Namespace: namespaces.Items[i].Name}] = true
	}
	if s.has(releaseKind) {
		var releases v1alpha1.ABReleaseList
		if err := s.list(ctx, &releases); err != nil {
			return err
		}
		for i := range releases.Items {
			maps.Copy(names, servicesOf(&releases.Items[i]))
		}
	}
	for name := range s.numbers.highest {
		names[name] = true
	}
	maps.Copy(names, memory.All())
	return s.labeled(ctx, names)
}

// labeled adds the Services that are in the mesh for themselves.
func (s *sources) labeled(ctx context.Context, names ir.Names, options ...client.ListOption) error {
	var services corev1.ServiceList
	if err := s.list(ctx, &services, append(options, client.MatchingLabels{ir.Managed: "true"})...); err != nil {
		return err
	}
	for i := range services.Items {
		names[client.ObjectKeyFromObject(&services.Items[i])] = true
	}
	return nil
}

// servicesOf a release are those that it divides, or is to divide.
func servicesOf(r *v1alpha1.ABRelease) ir.Names {
	names := ir.Names{}
	if r.Spec.ServiceName != "" { // a release of groups has none
		names[types.NamespacedName{Namespace: r.Namespace, Name: r.Spec.ServiceName}] = true
	}
	if split, is := release.SplitOf(r); is {
		names[types.NamespacedName{Namespace: r.Namespace, Name: split.Service}] = true
	}
	return names
}

// inputs of the Services that have to be built anew with some that are dirty, and which these are.
func (s *sources) inputs(ctx context.Context, names ir.Names, memory *ir.Memory) (ir.Names, ir.Inputs, error) {
	for {
		in, err := s.about(ctx, names)
		if err != nil {
			return nil, in, err
		}
		wider := memory.Affected(names, in)
		if len(wider) == len(names) {
			return names, in, nil
		}
		names = wider
	}
}

// found is whether an object is there.
func (s *sources) found(ctx context.Context, name types.NamespacedName, object client.Object) (bool, error) {
	err := s.cache.Get(ctx, name, object, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}
