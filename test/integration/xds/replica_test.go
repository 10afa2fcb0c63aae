// SPDX-License-Identifier: Apache-2.0

//go:build integration

package xds

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"testing"

	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

// replica is a discovery server that runs.
type replica struct {
	*server.Process
	address string
}

// start starts one that is ready, with the arguments of the chart that matter here; it
// ends with the test.
func (c *cluster) start(t *testing.T, name string, args ...string) *replica {
	t.Helper()
	return c.startAt(t, freeport.Address(t), name, args...)
}

// startAt is start at an address.
func (c *cluster) startAt(t *testing.T, address, name string, args ...string) *replica {
	t.Helper()
	return c.launch(t, address, name, args...).awaitReady(t)
}

func (r *replica) awaitReady(t *testing.T) *replica {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), starting)
	defer cancel()
	if err := r.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	return r
}

// launch is startAt for one that need not become ready.
func (c *cluster) launch(t *testing.T, address, name string, args ...string) *replica {
	t.Helper()
	return c.launchFrom(t, binary, []string{"POD_NAME=" + name}, address, args...)
}

// launchFrom is launch of another binary, with an environment.
func (c *cluster) launchFrom(t *testing.T, binary string, environment []string, address string, args ...string) *replica {
	t.Helper()
	r, err := c.process(binary, environment, address, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("%q said:\n%s", environment, r.Said())
		}
	})
	return r
}

// process starts a discovery server; the caller stops it.
func (c *cluster) process(binary string, environment []string, address string, args ...string) (*replica, error) {
	p, err := server.StartWith(environment, binary, append([]string{
		"--kubeconfig=" + c.kubeconfig, "--namespace=" + rendered.Namespace, "--address=" + address,
		"--server-names=127.0.0.1", "--drain-delay=0s", "--admin-address=",
	}, args...)...)
	return &replica{p, address}, err
}

// shake makes a connection as a proxy would that trusts a bundle, and returns the
// certificate.
func (r *replica) shake(ctx context.Context, bundle string) (*x509.Certificate, error) {
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM([]byte(bundle)) {
		return nil, fmt.Errorf("no authority in the bundle %q", bundle)
	}
	dialer := tls.Dialer{Config: &tls.Config{
		RootCAs: trusted, MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"},
		ServerName: "plumbline-xds." + rendered.Namespace + ".svc",
	}}
	connection, err := dialer.DialContext(ctx, "tcp", r.address)
	if err != nil {
		return nil, err
	}
	certificate := connection.(*tls.Conn).ConnectionState().PeerCertificates[0]
	return certificate, connection.Close()
}
