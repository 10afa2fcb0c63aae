// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"context"
	"fmt"
	"net/netip"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// FindArms finds the addresses of each variation of a split behind a port. A Service that is not there has no addresses.
func (c Counter) FindArms(ctx context.Context, split traffic.Split, port uint16) (map[string][]netip.AddrPort, error) {
	g, err := c.readService(ctx, client.ObjectKey{Namespace: split.Namespace, Name: split.Service})
	if err != nil || g.service == nil {
		return nil, err
	}
	return ir.FindArms(g.service, split, port, g.pods, g.quarantined), nil
}

// FindAddresses finds the addresses behind a port of a Service that is not divided. A Service that is not there has no
// addresses.
func (c Counter) FindAddresses(ctx context.Context, service types.NamespacedName, port uint16) ([]netip.AddrPort, error) {
	g, err := c.readService(ctx, service)
	if err != nil || g.service == nil {
		return nil, err
	}
	var list discoveryv1.EndpointSliceList
	if err := c.Reader.List(ctx, &list, client.InNamespace(service.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the EndpointSlices of Service %s: %w", service, err)
	}
	all := make([]*discoveryv1.EndpointSlice, 0, len(list.Items))
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	return ir.FindAddresses(g.service, port, all, g.pods, g.quarantined), nil
}
