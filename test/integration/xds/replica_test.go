// SPDX-License-Identifier: Apache-2.0

//go:build integration

package xds

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strconv"
	"testing"

	"github.com/plumbline-dev/plumbline/test/chart/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

// replica is a discovery server that runs.
type replica struct {
	*server.Process
	address string
}

// start starts one, with the arguments of the chart that matter here; it ends with
// the test.
func (c *cluster) start(t *testing.T, name string, args ...string) *replica {
	t.Helper()
	port, err := server.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	r := &replica{address: "127.0.0.1:" + strconv.Itoa(port)}
	args = append([]string{
		"--kubeconfig=" + c.kubeconfig, "--namespace=" + rendered.Namespace, "--address=" + r.address,
		"--server-names=127.0.0.1", "--drain-delay=0s",
	}, args...)
	if r.Process, err = server.StartWith([]string{"POD_NAME=" + name}, binary, args...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("%s said:\n%s", name, r.Said())
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := r.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	return r
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
