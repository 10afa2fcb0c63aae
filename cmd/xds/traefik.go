// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/certs"
	"github.com/plumbline-dev/plumbline/internal/connector/connect"
	"github.com/plumbline-dev/plumbline/internal/connector/traefik/provider"
	"github.com/plumbline-dev/plumbline/internal/telemetry"
	"github.com/plumbline-dev/plumbline/pkg/tlsport"
)

// traefikLimits are those of the port that Traefiks poll: a Traefik has one connection, and each replica one for a relay.
var traefikLimits = tlsport.Limits{Connections: 512, UnderWay: 128, OfCaller: 64, Handshake: 10 * time.Second, Turn: 10 * time.Second}

// identityAgain is how soon the lease is read again after an error.
const identityAgain = time.Second

// newTraefikPort returns the port that Traefiks poll; nil where the installation has none.
func (s *server) newTraefikPort() (*provider.Port, error) {
	address := s.opts.Routers.TraefikAddress
	if address == "" {
		return nil, nil //nolint:nilnil // releases that name Traefiks are refused by name
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("reading --traefik-address: %w", err)
	}
	return &provider.Port{
		Others: func(ctx context.Context) ([]string, error) {
			others, err := s.window.Replicas(ctx, s.opts.Namespace, s.opts.PodName)
			return urlsOf(others, port), err
		},
		Client: &http.Client{Transport: &http.Transport{DialTLSContext: s.dialReplica}},
	}, nil
}

func urlsOf(addresses []netip.Addr, port string) []string {
	urls := make([]string, 0, len(addresses))
	for _, address := range addresses {
		urls = append(urls, "https://"+net.JoinHostPort(address.String(), port))
	}
	return urls
}

// errNoRoots says that no certificate of another replica can be verified yet.
var errNoRoots = errors.New("there is no authority yet that vouches for replicas")

// dialReplica connects to another replica by the authorities of now.
func (s *server) dialReplica(ctx context.Context, network, address string) (net.Conn, error) {
	roots := s.keeper.Roots()
	if roots == nil {
		return nil, errNoRoots
	}
	dialer := tls.Dialer{Config: &tls.Config{
		RootCAs: roots, ServerName: certs.ServiceNames(s.opts.ServiceName, s.opts.Namespace, nil)[0],
		MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"},
	}}
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("connecting to replica %s: %w", address, err)
	}
	return conn, nil
}

// serveTraefiks serves the port until ctx ends.
func (s *server) serveTraefiks(ctx context.Context) error {
	if s.traefik == nil {
		<-ctx.Done()
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.opts.Routers.TraefikAddress)
	if err != nil {
		return fmt.Errorf("listening for Traefiks: %w", err)
	}
	return telemetry.ServeListener(ctx, tlsport.Listen(listener, tlsport.Config{
		Limits: traefikLimits, Metrics: tlsport.NewMetrics("plumbline_xds_traefik"), Log: s.log,
		TLS: &tls.Config{GetCertificate: s.keeper.GetCertificate, MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}},
	}), s.traefik.Routes())
}

// leadTraefiks answers the Traefiks of a registry while this replica leads.
func (l *leader) leadTraefiks(ctx context.Context, registry *connect.Registry) error {
	identity := l.readIdentity(ctx)
	l.traefik.ServeAsLeader(ctx, provider.Leading{
		Find: registry.FindProvider,
		Holds: func(ctx context.Context) error {
			lease, err := l.window.Lease(ctx)
			if err != nil {
				return err //nolint:wrapcheck // it names the lease
			}
			return provider.CheckLease(lease, identity, time.Now()) //nolint:wrapcheck // the reason is the answer
		},
	})
	return nil
}

// readIdentity returns the identity by which this replica has just taken the lease; "" when ctx ends before.
func (l *leader) readIdentity(ctx context.Context) string {
	for {
		lease, err := l.leases.Leases(l.part.Namespace).Get(ctx, l.part.Lease, metav1.GetOptions{})
		if err == nil && lease.Spec.HolderIdentity != nil {
			return *lease.Spec.HolderIdentity
		}
		select {
		case <-ctx.Done():
			return ""
		case <-time.After(identityAgain):
		}
	}
}
