// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/plumbline-dev/plumbline/internal/discovery"
	"github.com/plumbline-dev/plumbline/internal/options"
	"github.com/plumbline-dev/plumbline/pkg/traffic/envoyxds"
)

// facesOf says where proxies listen, and whose pods are gateways: nobody's without a
// port for them.
func facesOf(opts *options.XDS) (discovery.Faces, discovery.Account, error) {
	faces := discovery.Faces{IPv6: opts.Faces.IPv6}
	if opts.Faces.GatewayPort == 0 {
		return faces, discovery.Account{}, nil
	}
	trusted, err := opts.Faces.Trusted()
	if err != nil {
		return faces, discovery.Account{}, fmt.Errorf("reading the trusted writers of gateways: %w", err)
	}
	if faces.Grants, err = opts.Faces.Grants(); err != nil {
		return faces, discovery.Account{}, fmt.Errorf("reading the hosts that gateways serve: %w", err)
	}
	faces.Gateway = &envoyxds.Gateway{
		Port: uint16(opts.Faces.GatewayPort), IPv6: opts.Faces.IPv6, //nolint:gosec // validated
		Trusted: trusted, Hops: uint32(opts.Faces.GatewayHops), //nolint:gosec // validated
	}
	return faces, discovery.Account{Namespace: opts.Namespace, Name: opts.Faces.GatewayAccount}, nil
}
