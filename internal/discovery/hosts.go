// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// podAddressField is that of an index: the pods that have an address.
const podAddressField = "podAddress"

// podAddresses are the values of podAddressField. A pod that has ended keeps its addresses, which
// others may have by now.
func podAddresses(object client.Object) (all []string) {
	pod, is := object.(*corev1.Pod)
	if !is || over(pod) {
		return nil
	}
	for _, ip := range pod.Status.PodIPs {
		if a, err := netip.ParseAddr(ip.IP); err == nil {
			all = append(all, a.Unmap().String())
		}
	}
	return all
}

// owned reads whose the addresses behind the hosts of gateways are.
func (s *sources) owned(ctx context.Context, in *ir.Inputs) error {
	served := map[apitypes.NamespacedName]bool{}
	for _, svc := range in.Services {
		if svc.Annotations[ir.HostsAnnotation] != "" {
			served[client.ObjectKeyFromObject(svc)] = true
		}
	}
	in.Owners = map[netip.Addr][]apitypes.NamespacedName{}
	for _, slice := range in.Slices {
		if !served[apitypes.NamespacedName{Namespace: slice.Namespace, Name: slice.Labels[discoveryv1.LabelServiceName]}] {
			continue
		}
		if err := s.owners(ctx, slice, in.Owners); err != nil {
			return err
		}
	}
	return nil
}

// owners of the addresses of a slice.
func (s *sources) owners(ctx context.Context, slice *discoveryv1.EndpointSlice, into map[netip.Addr][]apitypes.NamespacedName) error {
	for i := range slice.Endpoints {
		for _, text := range slice.Endpoints[i].Addresses {
			address, err := netip.ParseAddr(text)
			if err != nil {
				continue // no endpoint comes of it
			}
			address = address.Unmap()
			if _, known := into[address]; known {
				continue
			}
			var pods corev1.PodList
			if err := s.list(ctx, &pods, client.MatchingFields{podAddressField: address.String()}); err != nil {
				return err
			}
			into[address] = nil
			for j := range pods.Items {
				into[address] = append(into[address], client.ObjectKeyFromObject(&pods.Items[j]))
			}
		}
	}
	return nil
}
