// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"strconv"

	"github.com/plumbline-dev/plumbline/internal/certs"
	"github.com/plumbline-dev/plumbline/internal/discovery"
	"github.com/plumbline-dev/plumbline/internal/options"
)

// replicasOf says how this replica is one of several; it is alone without a token.
func replicasOf(opts *options.XDS, keeper *certs.Keeper) (discovery.Replicas, error) {
	if opts.PeerTokenFile == "" {
		return discovery.Replicas{}, nil
	}
	_, text, err := net.SplitHostPort(opts.Address)
	if err != nil {
		return discovery.Replicas{}, fmt.Errorf("reading --address: %w", err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return discovery.Replicas{}, fmt.Errorf("reading the port of --address, where other replicas serve too: %w", err)
	}
	return discovery.Replicas{
		Namespace: opts.Namespace, Name: opts.PodName, Port: port,
		ServerName: certs.ServiceNames(opts.ServiceName, opts.Namespace, nil)[0], Roots: keeper.Roots, TokenFile: opts.PeerTokenFile,
	}, nil
}
